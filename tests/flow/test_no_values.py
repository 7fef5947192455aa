"""Profiles without values: the same constraints, and no value in any file of the directory."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Options, Profile, flow, sample
from holdfast.input.batch_files import CHANGES
from holdfast.input.row_input import Columns, RowInput
from holdfast.kernels import values
from holdfast.kinds import registry
from holdfast.model import concealment
from holdfast.model.errors import BatchError, InputError, SchemaError
from holdfast.model.expectations import Expectation
from holdfast.model.grammar import parse
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.tasks.encode import encode, layout
from holdfast.tasks.values import RowValues, ValueColumns
from holdfast.tasks.view import View
from tests.flow.batches import batches
from tests.flow.tables import KINDS, SECRET, Kind, folder, picked, row_input, small_limits
from tests.flow.test_law import LIMITS, law
from tests.flow.test_no_rows import contents
from tests.strategies import Rows, rows_of

EVERYTHING = "keys,fds,inds,dcs"


# --- the same constraints --------------------------------------------------------------------


def found(store: Store) -> dict[str, Any]:
    """All that a version says of constraints, without the rows that show it."""
    now = snapshot(store)
    assert now.inclusions is not None
    return {
        "inclusions": [(str(each), each.coverage) for each in now.inclusions.dependencies(1e-9)],
        "foreign keys": [(str(each), each.score) for each in now.inclusions.foreign_keys()],
        **{
            name: {
                "rows": (table.rows, table.duplicates),
                "nulls": [facts.nulls for facts in table.facts],
                "keys": [str(each) for each in table.keys],
                "near": [(str(each), each.error) for each in table.approximate_keys],
                "non-keys": [each.columns for each in table.non_keys],
                "fds": [(str(e), e.error) for e in table.functional_dependencies or ()],
                "dcs": [(str(each), each.error) for each in table.found["dcs"]],
            }
            for name, table in now.tables.items()
        },
    }


OPTIONS = st.builds(
    Options,
    kinds=st.just(EVERYTHING),
    evidence=st.sampled_from(["counted", "witnessed", "auto"]),
    nulls=st.sampled_from(["equal", "unequal"]),
    inclusion_nulls=st.sampled_from(["ignored", "values"]),
    max_arity=st.sampled_from([1, 2]),
    max_predicates=st.just(2),
    empty_columns=st.booleans(),
    within_tables=st.booleans(),
    start=st.sampled_from(["full", "sample"]),
)


@pytest.mark.slow
@given(data=st.data(), options=OPTIONS)
@law(12)
def test_the_same_with_and_without_values(data: st.DataObject, options: Options) -> None:
    """Denial constraints are those of columns that are compared by equality."""
    kinds = {
        name: data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=2)) for name in "tu"
    }
    rows = {name: data.draw(rows_of(len(each), 7)) for name, each in kinds.items()}
    compared = [f"{t}.c{c}=equality" for t, each in kinds.items() for c in range(len(each))]
    plain = registry.completed(replace(options, columns=compared))
    hidden = registry.completed(replace(options, keep_values=False))
    runner = InProcess(data.draw(st.sampled_from([1, 3])))
    with folder() as path, small_limits(**data.draw(LIMITS)):
        given_ = {name: row_input(kinds[name], each) for name, each in rows.items()}
        stores = [Store.create(Path(path) / each) for each in ("plain", "hidden")]
        for store, of_store in zip(stores, (plain, hidden), strict=True):
            flow.profile(runner, store, given_, of_store, no_progress, SECRET)
        assert found(stores[1]) == found(stores[0])
        for _ in range(2):
            change = data.draw(batches(len(kinds["t"]), rows["t"]))
            changes = [
                flow.apply(runner, store, "t", batch_of(kinds["t"], change.batch), no_progress,
                           secret=SECRET)
                for store in stores
            ]  # fmt: skip
            rows["t"] = change.after
            assert found(stores[1]) == found(stores[0])
            for kind in ("keys", "functional_dependencies", "inclusion_dependencies"):
                one, two = (each[kind] for each in changes)
                assert [str(e) for e in one.gained] == [str(e) for e in two.gained]
                assert [str(e) for e in one.lost] == [str(e) for e in two.lost]
        assert flow.verify(runner, stores[1], no_progress).equal


def batch_of(kinds: list[Kind], batch: dict[str, Any]) -> flow.Batch:
    """What ``Shop.apply`` takes, as a batch."""
    given_ = dict(batch)
    key_only = given_.pop("key_only", False)
    row_inputs: dict[str, Any] = {
        what: row_input(kinds, given_.pop(what), what)
        for what in CHANGES
        if given_.get(what) is not None
    }
    if key_only and "deletes" in row_inputs:
        row_inputs["deletes"] = picked(row_inputs["deletes"], given_["row_key"])
    return flow.Batch(**row_inputs, **{n: each for n, each in given_.items() if each is not None})


# --- no value in any file --------------------------------------------------------------------

TYPES = {
    "id": ("bigint", pa.int64()),
    "name": ("string", pa.string()),
    "weight": ("double", pa.float64()),
    "born": ("date", pa.date32()),
    "seen": ("timestamp", pa.timestamp("us", "UTC")),
    "price": ("decimal(30,4)", pa.decimal128(30, 4)),
    "tags": ("array<string>", pa.list_(pa.string())),
}
"""Of what the values are, none of which is likely to be in a file by chance."""


def planted(number: int, name: str) -> tuple[Any, ...]:
    text = f"zq{name}_{number:05}"
    return (
        7_368_812_345_678_901 + number * 1_000_003,
        text,
        number + 0.123456789 * (number + 1),
        date(9876, 5, 4 + number % 20),
        datetime(2026, 11, 15, 8, 30, 17, 123_457 + number, UTC),
        Decimal(f"91827364556473829105{number:03}.1357"),
        [text, f"{text}!"],
    )


def rows_in(label: str, rows: list[tuple[Any, ...]]) -> RowInput:
    columns = Columns.of([*TYPES], [name for name, _ in TYPES.values()],
                         [kind for _, kind in TYPES.values()])  # fmt: skip
    cells = zip(*rows, strict=True)
    arrays = [pa.array(each, kind) for each, (_, kind) in zip(cells, TYPES.values(), strict=True)]
    return RowInput(label, columns, pa.table(arrays, names=columns.schema.names))


def forms_of(table: pa.Table, types: list[str]) -> dict[str, set[bytes]]:
    """What would tell a value, by column: as text, as numbers in both orders of bytes, as words
    and hashes without a key, and each of these in hexadecimal digits."""
    out: dict[str, set[bytes]] = {}
    for name, column, type_ in zip(table.column_names, table.columns, types, strict=True):
        forms: set[bytes] = set()
        for value in column.to_pylist():
            forms |= {*_texts(value)}
        batch = pa.record_batch([column.combine_chunks()], names=["c0"])
        where = layout(batch.schema)
        words = np.ascontiguousarray(encode(batch, where).view(np.uint64).T)
        codes = _codes(words, batch.schema, type_)
        for word in {*words[:, : where.value_words].ravel().tolist(), *codes.ravel().tolist()}:
            # Small numbers are everywhere.
            if min(word, (1 << 64) - word) >= 1 << 20:
                forms |= {struct.pack(order, word) for order in ("<Q", ">Q")}
                forms |= {f"{(word + (1 << 63)) % (1 << 64):016x}".encode(), str(word).encode()}
        out[name] = forms | {each.hex().encode() for each in forms}
    return out


def _texts(value: Any) -> Iterator[bytes]:
    if isinstance(value, list):
        for each in value:
            yield from _texts(each)
    elif isinstance(value, str):
        yield from (value.encode(code) for code in ("utf-8", "utf-16-le", "utf-16-be"))
    elif isinstance(value, float):
        yield from (struct.pack(order, value) for order in ("<d", ">d"))
        yield repr(value).encode()
    elif isinstance(value, date | datetime):
        yield value.isoformat().encode()
    elif value is not None:
        yield str(value).encode()


def _codes(words: Any, schema: pa.Schema, type_: str) -> Any:
    """The codes of values that a profile with values has in its runs."""
    from holdfast.tasks.values import family

    kind = family(type_, schema.field(0).type)
    [[column]] = RowValues(View("", (), layout(schema).widths, True), schema,
                       (ValueColumns(0, (0,), (kind,)),), False).columns  # fmt: skip
    codes = np.empty((len(words), 2), np.uint64)
    with np.errstate(over="ignore"):
        values.codes(words, np.arange(len(words)), column, codes, np.empty(len(words), np.bool_))
    return codes


def told_by(
    path: Path, forms: dict[str, set[bytes]], known: set[Path] | None = None
) -> dict[str, set[str]]:
    """The columns whose values are somewhere in a directory, with the kinds of the files; not in
    those that are known already, because files never change."""
    found_in: dict[str, set[str]] = {}
    for name, content in contents(path, known):
        for column, of_column in forms.items():
            if any(form in content for form in of_column):
                found_in.setdefault(column, set()).add(name.partition("-")[0])
    return found_in


class Watching(InProcess):
    """Runs tasks, and looks after each job for values in the directory: they may be there for a
    while."""

    def __init__(self, path: Path, forms: dict[str, set[bytes]]) -> None:
        super().__init__(2)
        self.path, self.forms = path, forms
        self.known: set[Path] = set()
        self.seen: dict[str, set[str]] = {}

    def look(self) -> None:
        for column, files in told_by(self.path, self.forms, self.known).items():
            self.seen.setdefault(column, set()).update(files)

    def run(self, calls: Any) -> Any:
        results = super().run(calls)
        self.look()
        return results

    def read(self, task: Any, rows: Any, spec: Any) -> Any:
        results = super().read(task, rows, spec)
        self.look()
        return results


@pytest.mark.slow
@pytest.mark.parametrize("keep_values", [False, True])
def test_no_value_is_in_any_file(tmp_path: Path, keep_values: bool) -> None:
    path = tmp_path / "p"
    store = Store.create(path)
    first = [planted(number, f"n{number % 5}") for number in range(9)]
    new = [planted(3, "broken"), planted(30, "new"), planted(31, "n1")]
    more = [planted(4, "n4"), planted(40, "extra")]
    changed = [planted(7, "changed")]
    every = rows_in("all", [*first, *new, *more, *changed])
    forms = forms_of(every.rows.rename_columns([*TYPES]), [name for name, _ in TYPES.values()])
    runner = Watching(path, forms)
    options = registry.completed(Options(kinds=EVERYTHING, keep_values=keep_values))
    tables = {name: rows_in(name, first) for name in "tu"}
    flow.profile(runner, store, tables, options, no_progress, SECRET)
    rules = ["t: key(id)", "t: key(name)", "t: name -> id", "t(name) in u(name)",
             "t: born not null", "t: not (t.price = s.price and t.seen != s.seen)"]  # fmt: skip
    flow.expect(runner, store, [Expectation(rule) for rule in rules], no_progress)

    def apply(batch: flow.Batch, *, dry_run: bool = False) -> None:
        flow.apply(runner, store, "t", batch, no_progress, dry_run=dry_run, secret=SECRET)

    apply(flow.Batch(inserts=rows_in("inserts", new)), dry_run=True)
    apply(flow.Batch(inserts=rows_in("inserts", new), batch_id="strange"))
    apply(flow.Batch(inserts=rows_in("inserts", new), batch_id="strange"))
    apply(flow.Batch(upserts=rows_in("upserts", more), row_key=("id",)))
    apply(flow.Batch(deletes=rows_in("deletes", first[:2])))
    apply(flow.Batch(updates=rows_in("updates", changed), row_key=("id",)))
    with pytest.raises(BatchError, match="matches no row"):
        apply(flow.Batch(deletes=rows_in("deletes", [first[5], first[0]])))
    for rule in ("t: key(name)", "t: name -> id", "t(name) in u(name)"):
        flow.explain(lambda: runner, store, parse(rule), 3, no_progress)
    assert flow.verify(runner, store, no_progress).equal
    runner.known.clear()
    runner.look()
    if keep_values:  # the same search finds all columns where their values are kept
        assert {*runner.seen} == {*TYPES}
        assert all("data/words" in files for files in runner.seen.values())
        assert "data/raw" in runner.seen["name"]
    else:
        assert runner.seen == {}
        record = store.read().secret
        assert record is not None
        key = concealment.opened(record, SECRET, "p")
        secrets = {"secret": {SECRET, SECRET.hex().encode(), key, key.hex().encode()}}
        assert told_by(path, secrets) == {}


def test_no_value_of_the_shop_is_in_any_file(tmp_path: Path) -> None:
    """Texts that are long enough to be no chance: its numbers are small, and its dates may be that
    of today."""
    place = Path(sample.__file__).with_name("shop")
    tables = {}
    texts: set[bytes] = set()
    types = {pa.int64(): "bigint", pa.float64(): "double", pa.date32(): "date"}
    for name in ("customers", "products", "orders"):
        rows = pa.csv.read_csv(place / f"{name}.csv")
        told = [types.get(each, "string") for each in rows.schema.types]
        columns = Columns.of(rows.column_names, told, rows.schema.types)
        tables[name] = RowInput(name, columns, rows.rename_columns(columns.schema.names))
        cells = [cell for column in rows.itercolumns() for cell in column.to_pylist()]
        long = [cell for cell in cells if isinstance(cell, str) and len(cell) > 8]
        texts |= {form for cell in long for form in _texts(cell)}
    assert len(texts) > 500
    store = Store.create(tmp_path / "p")
    options = registry.completed(Options(keep_values=False))
    flow.profile(InProcess(), store, tables, options, no_progress, SECRET)
    one = {name: each.rows.slice(0, 3) for name, each in tables.items()}
    batch = {n: flow.Batch(deletes=replace(tables[n], rows=each)) for n, each in one.items()}
    flow.apply_together(InProcess(), store, batch, no_progress, secret=SECRET)
    assert told_by(tmp_path / "p", {"texts": texts}) == {}
    assert [str(key) for key in snapshot(store).tables["customers"].keys] == [
        "customers: key(customer_id)",
        "customers: key(email)",
    ]


# --- what it refuses -------------------------------------------------------------------------

ROWS: Rows = [(1, 2), (2, 2), (3, None)]


@pytest.fixture
def hidden(tmp_path: Path) -> Store:
    store = Store.create(tmp_path / "p")
    options = registry.completed(Options(kinds=EVERYTHING, keep_values=False))
    flow.profile(InProcess(), store, {"t": row_input(2, ROWS)}, options, no_progress, SECRET)
    return store


def files_of(store: Store) -> set[str]:
    return {str(each) for each in Path(store.path).rglob("*") if each.is_file()}


@pytest.mark.parametrize("secret", [None, b"another one, as long"])
def test_another_secret_is_an_error_before_anything_is_written(
    hidden: Store, secret: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = files_of(hidden)
    batch = flow.Batch(inserts=row_input(2, [(4, 4)]))
    for dry_run in (False, True):
        with pytest.raises(InputError, match="secret"):
            flow.apply(InProcess(), hidden, "t", batch, no_progress, dry_run, secret=secret)
    for name in (concealment.SECRET, concealment.SECRET_FILE):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="secret"):  # without a session, so before Spark starts
        Profile.open(hidden.path, secret=secret).apply("t", inserts=pa.table({"c0": [1]}))
    assert files_of(hidden) == before
    assert hidden.head() == 1


def test_rules_about_order_are_refused(hidden: Store) -> None:
    why = "c0 has no order, because the profile keeps no values; rules can compare by = and !="
    rule = "t: not (t.c0 < s.c0 and t.c1 > s.c1)"
    with pytest.raises(InputError, match=why):
        flow.expect(InProcess(), hidden, [Expectation(rule)], no_progress)
    with pytest.raises(InputError, match=why):
        flow.explain(InProcess, hidden, parse(rule), 3, no_progress)
    [change] = flow.expect(
        InProcess(), hidden, [Expectation("t: not (t.c0 != s.c0 and t.c1 = s.c1)")], no_progress
    )
    assert not change.after.holds


def test_an_order_that_is_asked_for_is_refused(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    options = registry.completed(Options(kinds="dcs", columns="c0=ordered", keep_values=False))
    store = Store.create(tmp_path / "p")
    with pytest.raises(InputError, match="'c0' of table 't' has no order, because the profile"):
        flow.profile(InProcess(), store, {"t": row_input(2, ROWS)}, options, no_progress, SECRET)
    equal = replace(options, columns="c0=equality")
    flow.profile(InProcess(), store, {"t": row_input(2, ROWS)}, equal, no_progress, SECRET)
    assert "denial constraints compare by = and != alone" in caplog.text


def test_rows_are_not_put_aside(hidden: Store, tmp_path: Path) -> None:
    flow.expect(InProcess(), hidden, [Expectation("t: key(c0)")], no_progress)
    batch = flow.Batch(inserts=row_input(2, [(1, 4)]))
    with pytest.raises(InputError, match=r"--quarantine keeps the rows .* keeps no values"):
        flow.apply(
            InProcess(), hidden, "t", batch, no_progress, quarantine=str(tmp_path / "aside"),
            secret=SECRET,
        )  # fmt: skip


def test_a_request_that_cannot_be_met_is_named_by_its_place(hidden: Store) -> None:
    batch = flow.Batch(deletes=row_input(2, [(1, 2), (7, 7)]))
    with pytest.raises(BatchError, match=r"this delete matches no row: row 2 of 2$"):
        flow.apply(InProcess(), hidden, "t", batch, no_progress, secret=SECRET)


def test_rows_are_shown_by_their_numbers(hidden: Store) -> None:
    batch = flow.Batch(inserts=row_input(2, [(1, 5)]), batch_id="again")
    changes = flow.apply(InProcess(), hidden, "t", batch, no_progress, secret=SECRET)
    [broken] = [each for each in changes["keys"].broken if str(each.constraint) == "t: key(c0)"]
    assert [{*row} for row in broken.witness] == [{"row"}, {"row"}]
    again = flow.apply(InProcess(), hidden, "t", batch, no_progress, secret=SECRET)
    assert again.applied_before


def test_kinds_are_added_and_looked_at_without_the_secret(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "p")
    options = registry.completed(Options(kinds="keys", keep_values=False))
    flow.profile(InProcess(), store, {"t": row_input(2, ROWS)}, options, no_progress, SECRET)
    with pytest.raises(InputError, match="'c1' of table 't' has no order, because the profile"):
        flow.extend(InProcess(), store, ["dcs"], {"columns": ("c1=ordered",)}, no_progress)
    flow.extend(InProcess(), store, ["fds", "dcs"], {}, no_progress)
    plain = Store.create(tmp_path / "plain")
    whole = registry.completed(Options(kinds="keys,fds,dcs", columns="c0=equality,c1=equality"))
    flow.profile(InProcess(), plain, {"t": row_input(2, ROWS)}, whole, no_progress)
    batch = flow.Batch(inserts=row_input(2, [(1, 5), (4, 5)]))
    for each in (store, plain):
        flow.apply(InProcess(), each, "t", batch, no_progress, secret=SECRET)
    tables = [snapshot(each).tables["t"] for each in (store, plain)]
    for kind in ("fds", "dcs"):
        one, two = ([str(e) for e in table.found[kind]] for table in tables)
        assert one == two
    # A report and an export need no secret either.
    hidden = Profile(store)
    assert all(text in json.dumps(hidden.document()) for text in tables[0].columns)
    assert [str(e) for e in hidden.rank("t")["keys"]] == [
        str(e) for e in Profile(plain).rank("t")["keys"]
    ]


def test_who_does_not_know_such_profiles_does_not_open_them(hidden: Store) -> None:
    marker = json.loads((Path(hidden.path) / "holdfast.json").read_text())
    assert marker["format"] == 5


def test_types_of_a_batch_are_those_that_were_given(hidden: Store) -> None:
    batch = flow.Batch(inserts=row_input([KINDS[2], KINDS[0]], [(1, 1)]))
    with pytest.raises(SchemaError, match="column 'c0' is string, but bigint in table 't'"):
        flow.apply(InProcess(), hidden, "t", batch, no_progress, secret=SECRET)
    shown = {each.name: each for each in snapshot(hidden).tables["t"].facts}
    assert (shown["c0"].type, shown["c0"].minimum, shown["c1"].nulls) == ("bigint", None, 1)
