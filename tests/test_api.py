"""What a user of the Python API meets: names, what they print, and what arguments mean."""

from __future__ import annotations

import dataclasses
import inspect
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pandas as pd
import pyarrow as pa
import pytest

import holdfast
from holdfast import (
    DenialConstraint,
    Denials,
    HoldfastError,
    InputError,
    Key,
    Options,
    Predicate,
    Profile,
    Results,
    Source,
    Superseded,
    flow,
)
from holdfast.input.frames import as_arrow
from holdfast.model import errors
from holdfast.model.errors import UnknownTableError
from holdfast.model.progress import no_progress
from holdfast.model.results import Tabular
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from tests.cli.conftest import Run, run
from tests.flow.tables import text_input

__all__ = ["run"]

ORDERS = [("1", "7"), ("2", "7"), ("3", "8"), ("4", "9")]
CUSTOMERS = [("7", "Ann"), ("8", "Bob"), ("10", "Cid")]


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Profile:
    """Orders and customers, of whom one is missing."""
    row_inputs = {
        "orders": text_input(["id", "customer_id"], ORDERS),
        "customers": text_input(["id", "name"], CUSTOMERS),
    }
    store = Store.create(tmp_path / "shop")
    options = Options(min_coverage=0.5)
    flow.profile(InProcess(), store, row_inputs, options, no_progress)
    batch = flow.Batch(inserts=text_input(["id", "customer_id"], ORDERS[:1]), batch_id="again")
    flow.apply(InProcess(), store, "orders", batch, no_progress)
    monkeypatch.setattr(Profile, "_running", lambda _: InProcess())
    return Profile.open(tmp_path / "shop")


# Names


def mentioned(annotation: Any) -> Iterator[type]:
    """The classes of ours in an annotation."""
    if inspect.isclass(annotation) and annotation.__module__.startswith("holdfast."):
        yield annotation
    for part in get_args(annotation):
        yield from mentioned(part)


def members(owner: type) -> Iterator[Any]:
    """The annotations of what a value of a class gives: fields, properties, results of methods."""
    # Modules import some names for type checkers alone: those are public ones.
    public = {name: getattr(holdfast, name) for name in holdfast.__all__}
    scope = {**public, **vars(sys.modules[owner.__module__]), "pa": pa}
    told: list[Any] = []
    for name, member in vars(owner).items():
        if name.startswith("_"):
            continue
        function = member.fget if isinstance(member, property) else member
        function = getattr(function, "__func__", function)  # of class and static methods
        if inspect.isfunction(function):
            told.append(function.__annotations__["return"])
    if dataclasses.is_dataclass(owner):
        told += [each.type for each in dataclasses.fields(owner) if not each.name.startswith("_")]
    for annotation in told:
        yield eval(annotation, scope) if isinstance(annotation, str) else annotation


def returned() -> set[type]:
    """Every class of ours that Profile gives, or that is part of what it gives."""
    found: set[type] = set()
    left: list[type] = [Profile]
    while left:
        owner = left.pop()
        if owner not in found:
            found.add(owner)
            left += [each for annotation in members(owner) for each in mentioned(annotation)]
    return found


def test_what_is_returned_can_be_imported() -> None:
    found = returned()
    names = {each.__name__ for each in found}
    assert {"Changes", "Broken", "Snapshot", "TableSnapshot", "Dependencies", "Attribute"} <= names
    for each in found:
        assert each.__name__ in holdfast.__all__, each
        assert getattr(holdfast, each.__name__) is each


def test_what_is_raised_can_be_imported() -> None:
    raised = {
        name: each
        for name, each in vars(errors).items()
        if inspect.isclass(each) and issubclass(each, HoldfastError)
    }
    assert len(raised) > 5
    for name, each in raised.items():
        assert name in holdfast.__all__
        assert getattr(holdfast, name) is each


def test_the_public_names_exist() -> None:
    for name in holdfast.__all__:
        assert getattr(holdfast, name) is not None


# What is printed


def test_the_tables_of_a_profile(shop: Profile) -> None:
    assert shop.tables == ("customers", "orders")


def test_values_can_be_read_where_they_are_looked_at(shop: Profile) -> None:
    assert repr(shop) == f"<Profile {shop.path!r}, version 2: customers, orders>"
    now = shop.snapshot()
    assert repr(now).startswith("<Snapshot of version 2, 2")
    assert repr(now).endswith(": customers (rows 3), orders (rows 5)>")
    orders = repr(now.tables["orders"])
    assert orders.startswith("<TableSnapshot 'orders': rows 5, columns 2, keys 1, non-keys 1, ")
    assert orders.endswith(", repeated rows 1>")
    assert repr(now.inclusions) == "<Inclusions: columns 4, tables 2>"
    first, second = shop.history()
    assert "version 1" in repr(first)
    assert "first profile" in repr(first)
    told = "<Changes of 'orders', applied, version 2: inserted 1, keys broken 1, repeated rows 1>"
    assert repr(second.changes) == told
    assert told in repr(second)
    assert second.changes is not None
    assert repr(second.changes.broken) == "(<Broken orders: key(id), by repeated rows>,)"
    diff = shop.diff(1, 2)
    assert repr(diff["orders"]).startswith("<TableDiff: rows 4 → 5; keys gained 0, lost 1; ")
    assert repr(shop.keys("customers")) == "[<Key customers: key(id)>, <Key customers: key(name)>]"
    (fd,) = shop.functional_dependencies("orders")
    assert repr(fd) == "<FunctionalDependency orders: id -> customer_id>"
    assert repr(shop.functional_dependencies("orders")) == f"<Dependencies, 1 in all: [{fd!r}]>"
    (non_key,) = shop.non_keys("orders")
    assert repr(non_key) == "<NonKey customer_id>"
    assert repr(shop.foreign_keys()[0]).startswith(
        "<ForeignKey orders(customer_id) in customers(id), "
    )
    partly = [each for each in shop.inclusion_dependencies() if (each.coverage or 0) < 1]
    told = "<InclusionDependency orders(customer_id) in customers(id), coverage 0.666667>"
    assert told in map(repr, partly)
    assert ", values " in repr(shop.clusters()[0])
    assert repr(Key("t", ("a", "first name"), 0.25)) == "<Key t: key(a, `first name`), error 0.25>"
    shorter = Superseded(Key("t", ("a", "b")), Key("t", ("a",)))
    assert repr(shorter) == "<Superseded t: key(a, b), by key(a)>"


def test_a_profile_that_is_gone_can_be_looked_at(shop: Profile) -> None:
    shutil.rmtree(shop.path)
    assert repr(Profile(Store(shop.path))) == f"<Profile {shop.path!r}>"


def test_nothing_that_is_returned_prints_the_whole_profile(shop: Profile) -> None:
    for value in (shop, shop.snapshot(), *shop.snapshot().tables.values(), *shop.history()):
        assert len(repr(value)) < 250
        assert "\n" not in repr(value)


# Arguments


def test_missing_values_takes_what_foreign_keys_gives(shop: Profile) -> None:
    key = shop.foreign_keys()[0]
    assert shop.missing_values(key.dependent[0], key.referenced[0]) == ["9"]
    assert shop.missing_values("orders.customer_id", "customers.id") == ["9"]
    with pytest.raises(InputError, match=r"give an Attribute, such as foreign_key.dependent\[0\]"):
        shop.missing_values(key.dependent, key.referenced)  # type: ignore[arg-type]


def test_kinds_can_be_text() -> None:
    assert Options(kinds="keys").kinds == ("keys",)
    assert Options(kinds="keys, inds") == Options(kinds=["keys", "inds"])
    assert Options(kinds="keys,fds").named == ("keys", "fds")


@pytest.mark.parametrize(("kinds", "unknown"), [("keys,dreams", "dreams"), ("", ""), (["x"], "x")])
def test_kinds_that_there_are_not(tmp_path: Path, kinds: Any, unknown: str) -> None:
    with pytest.raises(InputError, match=f"unknown kind '{unknown}'; there are: keys, fds, inds"):
        Profile.create(tmp_path / "p", {"t": "a.csv"}, options=Options(kinds=kinds))
    assert not (tmp_path / "p").exists()


def test_options_are_keywords(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,a\n1,2\n2,2\n")
    made = Profile.create(
        tmp_path / "p", path, engine="process", kinds=["keys"], max_columns=1, keep_rows=False
    )
    options = made.snapshot().options
    assert (options["kinds"], options["max_columns"], options["keep_rows"]) == (["keys"], 1, False)
    with pytest.raises(InputError, match=r"no option 'kind'; did you mean 'kinds'\?"):
        Profile.create(tmp_path / "q", path, engine="process", kind=["keys"])
    with pytest.raises(InputError, match="give options or nulls, not both"):
        Profile.create(tmp_path / "q", path, options=Options(), nulls="unequal")
    with pytest.raises(InputError, match="nulls can be"):
        Profile.create(tmp_path / "q", path, nulls="same")
    assert not (tmp_path / "q").exists()


def test_one_table_need_not_be_named(shop: Profile, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("id,a\n1,2\n2,2\n")
    kinds = ["keys", "fds", "dcs"]
    made = Profile.create(tmp_path / "p", path, engine="process", kinds=kinds, evidence="counted")
    for method in ("columns", "rank", "grain", "keys", "non_keys", "functional_dependencies",
                   "denial_constraints", "agree_sets", "counts_pairs"):  # fmt: skip
        ask = getattr(made, method)
        assert repr(ask()) == repr(ask("t")), method
        with pytest.raises(InputError, match="say which table: the profile has customers, orders"):
            getattr(shop, method)()
        with pytest.raises(UnknownTableError, match="no table 'u'"):
            ask("u")


def test_it_shows_what_the_command_shows(
    shop: Profile, capsys: pytest.CaptureFixture[str], run: Run
) -> None:
    for asked, words in (
        ({}, []),
        ({"part": "keys"}, ["keys"]),
        ({"part": "columns", "table": "orders"}, ["columns", "--table", "orders"]),
        ({"limit": 1}, ["--limit", "1"]),
        ({"everything": True, "version": 1}, ["--all", "--at", "1"]),
        ({"part": "inds", "min_coverage": 0.5}, ["inds", "--min-coverage", "0.5"]),
    ):
        shop.show(**asked)
        printed = capsys.readouterr().out
        assert printed
        assert run("show", shop.path, *words).out == printed
    with pytest.raises(InputError, match="no part 'kyes'; did you mean 'keys'"):
        shop.show("kyes")
    with pytest.raises(UnknownTableError):
        shop.show(table="nothing")
    with pytest.raises(InputError, match="limit cannot be negative"):
        shop.show(limit=-1)
    with pytest.raises(InputError, match="give only one"):
        shop.show(limit=1, everything=True)


def test_parallelism(shop: Profile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr("holdfast.spark.runner.SparkRunner", lambda *given: given)
    session = SimpleNamespace()
    for parallelism in (None, 1, 64):
        opened = Profile.open(shop.path, session=session, parallelism=parallelism)  # type: ignore[arg-type]
        running: object = opened._running()
        assert running == (session, parallelism)


def test_no_tasks_at_all(shop: Profile, tmp_path: Path) -> None:
    said = "parallelism must be a number of tasks, 1 or more, not 0"
    with pytest.raises(InputError, match=said):
        Profile.open(shop.path, parallelism=0)
    with pytest.raises(InputError, match=said):
        Profile.create(tmp_path / "p", {"t": "a.csv"}, parallelism=0)
    assert not (tmp_path / "p").exists()


@pytest.mark.parametrize("make", [str, Path, lambda path: Source(str(path))])
def test_one_file_is_a_table_named_after_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any
) -> None:
    path = tmp_path / "orders.csv"
    path.touch()
    row_input = text_input(["id", "customer_id"], ORDERS)
    monkeypatch.setattr(Profile, "_running", lambda _: InProcess())
    monkeypatch.setattr(Profile, "_row_input", lambda *_: row_input)
    assert Profile.create(tmp_path / "p", make(path)).tables == ("orders",)


@pytest.mark.parametrize(
    ("tables", "said"),
    [
        ({}, "at least one table"),
        ([], "expected the tables by name, as in {'orders': rows}, .*not a list"),
        (["a.csv"], "expected the tables by name"),
        (pd.DataFrame({"a": [1]}), "expected the tables by name.*not a DataFrame"),
        ({"": "a.csv"}, "a table needs a name"),
        ({1: "a.csv"}, "a table needs a name, and 1 is none"),
        ({"t": pd.DataFrame({"a": [1, "x"]})}, "table 't': this pandas.DataFrame cannot be read"),
        ({"t": pd.Series([1])}, "table 't': .*not a pandas.Series"),
        ({"t": [(1, 2)]}, "table 't': expected a Spark DataFrame, a path, a Source, or a table"),
        ({"t": None}, "table 't': expected a Spark DataFrame, a path, a Source, or a table"),
    ],
)
def test_what_cannot_be_profiled(tmp_path: Path, tables: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Profile.create(tmp_path / "p", tables)
    assert not (tmp_path / "p").exists()


class _Foreign:
    """A table of a library that hands out Arrow data, as Polars does."""

    def __init__(self, table: pa.Table) -> None:
        self._table = table

    def __arrow_c_stream__(self, requested: object = None) -> object:
        return self._table.__arrow_c_stream__(requested)


@pytest.mark.parametrize("make", [pa.Table.to_pandas, lambda table: table, _Foreign])
def test_tables_in_memory(make: Any) -> None:
    table = pa.table({"id": pa.array([5, None], pa.float64()), "name": ["a", None]})
    assert as_arrow(make(table), "the inserts").to_pydict() == table.to_pydict()


def test_types_that_spark_lacks() -> None:
    kinds = {
        pa.uint8(): pa.int16(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.string_view(): pa.string(),
        pa.dictionary(pa.int8(), pa.string()): pa.string(),
        pa.large_string(): pa.large_string(),
        pa.list_(pa.uint8()): pa.list_(pa.int16()),
        pa.decimal256(50, 2): pa.decimal128(38, 2),
        pa.decimal64(9, 2): pa.decimal128(9, 2),
    }
    values: dict[pa.DataType, list[Any]] = {
        kind: ["7"] if "str" in str(kind) else [[255], None] if "list" in str(kind) else [255]
        for kind in kinds
    }
    for kind, known in kinds.items():
        table = as_arrow(_Foreign(pa.table({"a": pa.array(values[kind], kind)})), "x")
        assert table.schema.types == [known]
        assert table.column("a").to_pylist() == values[kind]


def test_times_are_in_microseconds_or_nanoseconds() -> None:
    kinds = {
        pa.timestamp("s", "Europe/Rome"): pa.timestamp("us", "Europe/Rome"),
        pa.timestamp("ns"): pa.timestamp("ns"),
        pa.duration("ms"): pa.duration("us"),
        pa.duration("ns"): pa.duration("ns"),
        pa.time32("s"): pa.time64("us"),
        pa.time64("ns"): pa.time64("ns"),
        pa.date64(): pa.date32(),
    }
    for kind, known in kinds.items():
        (array,) = as_arrow(pa.table({"a": pa.array([0, None], kind)}), "x").columns
        assert (array.type, array.to_pylist()[1]) == (known, None)
    late = pa.table({"day": pa.array([10**15], pa.timestamp("s"))})
    with pytest.raises(InputError, match=r"x: column 'day' is timestamp\[s\], which"):
        as_arrow(late, "x")


@pytest.mark.parametrize("index", [pa.uint8(), pa.uint32(), pa.int64()])
@pytest.mark.parametrize("text", [pa.string(), pa.large_string(), pa.string_view()])
def test_categories_are_text(index: pa.DataType, text: pa.DataType) -> None:
    """Polars hands out its Categorical and Enum as dictionaries of string views."""
    indices = pa.array([1, None, 0, 1], index)
    column = pa.DictionaryArray.from_arrays(indices, pa.array(["a", "b"], text))
    lists = pa.LargeListArray.from_arrays(pa.array([0, 1, 1, 3, 4]), column)
    structs = pa.StructArray.from_arrays([column], ["s"], mask=pa.array([True] + [False] * 3))
    table = pa.table({"a": column, "b": lists, "c": structs}).slice(1)
    told = as_arrow(_Foreign(table), "x")
    assert told.to_pydict() == {
        "a": [None, "a", "b"],
        "b": [[], [None, "a"], ["b"]],
        "c": [{"s": None}, {"s": "a"}, {"s": "b"}],
    }


def test_a_decimal_that_is_too_wide_names_its_column() -> None:
    table = pa.table({"sum": pa.array([10**40], pa.decimal256(60, 2))})
    with pytest.raises(InputError, match=r"x: column 'sum' is decimal256\(60, 2\).*cast it"):
        as_arrow(table, "x")


def test_a_named_index_of_a_pandas_frame_becomes_columns() -> None:
    frame = pd.DataFrame({"id": [7, 8], "k": ["x", "y"], "a": [1, 2]})
    for names in (["id"], ["id", "k"]):
        told = as_arrow(frame.set_index(names), "x")
        assert told.select(frame.columns).to_pydict() == frame.to_dict("list")
    with pytest.raises(InputError, match=r"x: the index has a name.*id.*reset_index\(drop=True\)"):
        as_arrow(frame.set_index("id", drop=False), "x")


@pytest.mark.parametrize(
    "index", [["x", "y"], [1, 2], [0, 2], [1.0, 2.0], [[0, 0], [0, 1]], pd.RangeIndex(0, 4, 2)]
)
def test_an_index_without_a_name_counts_rows_or_is_refused(index: Any) -> None:
    frame = pd.DataFrame({"a": [1, 2]}, index=index)
    with pytest.raises(InputError, match=r"x: the index.*has no name.*reset_index\(drop=True\)"):
        as_arrow(frame, "x")
    assert as_arrow(frame.reset_index(drop=True), "x").column_names == ["a"]
    assert as_arrow(frame.iloc[:0], "x").num_rows == 0
    assert as_arrow(pd.DataFrame({"a": [1, 2]}, index=[0, 1]), "x").column_names == ["a"]


# Results as tables


def test_every_list_is_a_table(shop: Profile) -> None:
    table = shop.keys("customers").to_arrow()
    assert table.to_pylist() == [
        {"constraint": f"customers: key({name})", "table": "customers", "columns": [name],
         "error": None}
        for name in ("id", "name")
    ]  # fmt: skip
    assert shop.keys("customers").to_dict() == [{"columns": ["id"]}, {"columns": ["name"]}]
    # Without rows there are the same columns, of the same types.
    assert list(shop.keys("orders")) == []
    assert shop.keys("orders").to_arrow().schema == table.schema
    (non_key,) = shop.non_keys("orders").to_arrow().to_pylist()
    assert non_key["columns"] == ["customer_id"]
    assert json.loads(non_key["witness"])[0]["customer_id"] == "7"
    (fd,) = shop.functional_dependencies("orders").to_arrow().to_pylist()
    assert (fd["lhs"], fd["rhs"], fd["error"]) == (["id"], "customer_id", 0.0)
    (key,) = shop.foreign_keys().to_arrow().to_pylist()
    assert key["constraint"] == "orders(customer_id) in customers(id)"
    assert (key["dependent"], key["referenced"]) == (["orders.customer_id"], ["customers.id"])
    assert 0 < key["coverage"] < 1
    for found in (
        shop.inclusion_dependencies(),
        shop.agree_sets("orders"),
        shop.clusters(),
        shop.functional_dependencies("orders"),
    ):
        assert found.to_arrow().num_rows == len(found) == len(found.to_dict()) > 0
        assert list(found.to_pandas().columns) == found.to_arrow().column_names


def test_changes_are_a_table(shop: Profile) -> None:
    changes = shop.history()[1].changes
    assert changes is not None
    rows = changes.to_arrow().to_pylist()
    assert rows == changes.constraints.to_arrow().to_pylist()
    (broken,) = [row for row in rows if row["kind"] == "keys"]
    assert (broken["what"], broken["constraint"]) == ("broken", "orders: key(id)")
    assert broken["repeated"] is True
    assert len(json.loads(broken["witness"])) == 2
    listed = sum(
        len(getattr(each, what))
        for table in changes.by_table.values()
        for each in table.kinds.values()
        for what in ("gained", "broken", "superseded", "unchecked", "errors")
    )
    assert len(rows) == listed == len(changes.to_pandas())
    assert changes.to_dict()["table"] == "orders"  # its own JSON form, as before


def test_a_table_of_a_session(shop: Profile) -> None:
    session = SimpleNamespace(createDataFrame=lambda table: table.column_names)
    assert shop.keys("orders").to_spark(session) == ["constraint", "table", "columns", "error"]


def test_denial_constraints_are_a_table() -> None:
    unequal = Predicate(("t", "a"), "!=", ("s", "a"))
    found = Results(DenialConstraint, [DenialConstraint("r", (unequal,), 0.25)])
    assert found.to_arrow().to_pylist() == [
        {"constraint": "r: not (t.a != s.a)", "table": "r", "predicates": ["t.a != s.a"],
         "error": 0.25}
    ]  # fmt: skip
    assert isinstance(found, Tabular)
    assert issubclass(Denials, Tabular)
