"""Inclusion dependencies: the paper's examples, and the law over several tables."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from datetime import date, datetime
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.kinds.inclusion_dependencies.reading import Inclusions, clusters
from holdfast.model import limits
from holdfast.model.changes import SHOWN, Changes
from holdfast.model.commits import InclusionRecord
from holdfast.model.constraints import Constraint
from holdfast.model.errors import BatchError, SchemaError, UnknownTableError
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report import forms
from holdfast.report.snapshot import snapshot
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.tasks import segments
from holdfast.values import n_ary as tuples
from tests import oracle
from tests.flow.tables import folder, rewrite, small_limits
from tests.flow.test_law import law
from tests.limits import varied

Cells = list[tuple[Any, ...]]
TYPES = {
    "bigint": pa.int64(),
    "double": pa.float64(),
    "decimal(38,4)": pa.decimal128(38, 4),
    "decimal(6,1)": pa.decimal128(6, 1),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp_ntz(9)": pa.timestamp("ns"),
}


def inclusions(constraints: Iterable[Constraint]) -> list[InclusionDependency]:
    return [each for each in constraints if isinstance(each, InclusionDependency)]


class Shops:
    """A profile of several tables, in process; a table is its columns' types and its rows."""

    def __init__(
        self,
        path: Path,
        tables: dict[str, tuple[list[str], Cells]],
        options: Options | None = None,
        tasks: int = 2,
    ) -> None:
        self.types = {name: types for name, (types, _) in tables.items()}
        self.options = options or Options(kinds=("inds",), within_tables=True)
        self.runner = InProcess(tasks)
        self.store = Store.create(path)
        row_inputs = {name: self.row_input(name, rows) for name, (_, rows) in tables.items()}
        flow.profile(self.runner, self.store, row_inputs, self.options, no_progress)

    def row_input(self, table: str, rows: Cells, names: list[str] | None = None) -> RowInput:
        types = self.types[table]
        told = Columns.of(
            names or list("ABCDEFGH"[: len(types)]), types, [TYPES[each] for each in types]
        )
        cells = [pa.array([row[c] for row in rows], TYPES[each]) for c, each in enumerate(types)]
        return RowInput(table, told, pa.table(cells, names=list(told.schema.names)))

    @property
    def inclusion(self) -> InclusionRecord:
        record = self.store.read().inclusion
        assert record is not None
        return record

    def apply(self, table: str, dry_run: bool = False, **batch: Any) -> Changes:
        row_key = batch.pop("row_key", ())
        row_inputs: dict[str, Any] = {
            name: self.row_input(table, rows) for name, rows in batch.items() if rows is not None
        }
        given_ = flow.Batch(**row_inputs, row_key=row_key)
        return flow.apply(self.runner, self.store, table, given_, no_progress, dry_run)

    @property
    def now(self) -> Inclusions:
        found = snapshot(self.store).inclusions
        assert found is not None
        return found

    def dependencies(self, min_coverage: float | None = None) -> set[tuple[str, str]]:
        found = self.now.dependencies(min_coverage)
        return {
            (str(each.dependent[0]), str(each.referenced[0]))
            for each in found
            if len(each.dependent) == 1
        }

    def wide(self) -> set[tuple[str, tuple[int, ...], str, tuple[int, ...]]]:
        return {
            (
                each.dependent[0].table,
                tuple("ABCDEFGH".index(a.column) for a in each.dependent),
                each.referenced[0].table,
                tuple("ABCDEFGH".index(a.column) for a in each.referenced),
            )
            for each in self.now.dependencies()
            if len(each.dependent) > 1
        }

    def clusters(self) -> dict[str, int]:
        found = clusters(self.store)
        return {"".join(a.column for a in each.attributes): each.values for each in found}

    def missing(self, one: str, two: str, most: int | None = None) -> list[Any]:
        pair = Attribute.parse(one), Attribute.parse(two)
        return flow.missing_values(self.runner, self.store, *pair, most, no_progress)

    def assert_exact(self, tables: dict[str, Cells]) -> None:
        """What is kept is what brute force finds in the rows."""
        sets = oracle.value_sets(
            {
                str(Attribute(table, "ABCDEFGH"[c])): (family(kind), [row[c] for row in rows])
                for table, rows in tables.items()
                for c, kind in enumerate(self.types[table])
            },
            self.options.inclusion_nulls == "values",
        )
        expected = {
            (one, two): share
            for (one, two), share in oracle.inclusions(sets, self.options.empty_columns).items()
            if self.options.within_tables
            or Attribute.parse(one).table != Attribute.parse(two).table
        }
        assert {
            (str(each.dependent[0]), str(each.referenced[0])): each.coverage
            for each in self.now.dependencies(1e-9)
            if len(each.dependent) == 1
        } == {pair: pytest.approx(share) for pair, share in expected.items() if share}
        assert self.dependencies(1.0) == {pair for pair, share in expected.items() if share == 1}
        if self.options.max_arity is not None:
            self.assert_wide(tables, {pair for pair, share in expected.items() if share == 1})
        kept = clusters(self.store)
        assert {
            frozenset(map(str, each.attributes)): each.values for each in kept
        } == oracle.clusters(sets)

    def assert_wide(self, tables: dict[str, Cells], exact: set[tuple[str, str]]) -> None:
        pairs = [tuple(map(Attribute.parse, pair)) for pair in exact]
        unary = {
            (a.table, "ABCDEFGH".index(a.column), b.table, "ABCDEFGH".index(b.column))
            for a, b in pairs
        }
        # A table without rows has columns all the same.
        rows = {name: each or [(None,) * len(self.types[name])] for name, each in tables.items()}
        nulls = self.options.inclusion_nulls == "values"
        assert not nulls or all(tables.values())
        assert self.wide() == oracle.wide_inclusions(
            rows, unary, self.options.arity, nulls, self.options.empty_columns
        )


def family(kind: str) -> str:
    if kind.startswith("timestamp"):
        return "timestamp"
    return "number" if kind in ("bigint", "double") or kind.startswith("decimal") else kind


TABLE_1 = [("a", "a", "f", "a"), ("b", "b", "e", "a"), ("b", "c", "f", "c"), ("d", "d", "f", "c")]


@pytest.fixture
def paper(tmp_path: Path) -> Shops:
    """The paper's table 1."""
    return Shops(tmp_path / "p", {"r": (["string"] * 4, TABLE_1)})


def test_example_1_1(paper: Shops) -> None:
    assert paper.dependencies() == {("r.A", "r.B"), ("r.D", "r.B")}
    told = paper.apply("r", deletes=[("b", "b", "e", "a")], dry_run=True)
    assert [str(each) for each in told["inclusion_dependencies"].lost] == ["r(A) in r(B)"]
    assert told["inclusion_dependencies"].gained == ()
    told = paper.apply("r", inserts=[("c", "c", "e", "e")])
    assert [str(each) for each in told["inclusion_dependencies"].lost] == ["r(D) in r(B)"]
    assert [str(each) for each in told["inclusion_dependencies"].gained] == ["r(B) in r(A)"]
    assert paper.dependencies() == {("r.A", "r.B"), ("r.B", "r.A")}


def test_table_2_as_it_should_be_printed(paper: Shops) -> None:
    assert paper.clusters() == {"ABD": 1, "AB": 2, "BD": 1, "C": 2}


def test_example_4_3_a_tuple_alone(tmp_path: Path) -> None:
    alone = Shops(tmp_path / "p", {"r": (["string"] * 4, [("c", "c", "e", "e")])})
    assert alone.clusters() == {"AB": 1, "CD": 1}


def test_example_4_6_merge(paper: Shops) -> None:
    paper.apply("r", inserts=[("c", "c", "e", "e")])
    assert paper.clusters() == {"ABD": 2, "AB": 2, "CD": 1, "C": 1}


def test_example_4_10_extract(paper: Shops) -> None:
    paper.apply("r", deletes=[("b", "b", "e", "a")])
    assert paper.clusters() == {"ABD": 1, "AB": 1, "BD": 1, "A": 1, "C": 1}
    assert paper.dependencies() == {("r.D", "r.B")}


def test_example_4_11_an_update_touches_the_changed_cells(paper: Shops) -> None:
    told = paper.inclusion.runs
    # The third row is named by its first and third cells, which stay.
    paper.apply("r", updates=[("b", "g", "f", "g")], row_key=("A", "C"))
    assert paper.clusters() == {"ABD": 1, "AB": 2, "BD": 1, "D": 1, "C": 2}
    (added,) = paper.inclusion.runs[len(told) :]
    assert added.entries == 4  # c goes from B and from D, g comes to both


def test_numbers_compare_across_types(tmp_path: Path) -> None:
    shop = Shops(
        tmp_path / "p",
        {
            "a": (["bigint", "string"], [(1, "1"), (2, "2")]),
            "b": (["double", "date"], [(1.0, date(1970, 1, 2)), (2.0, None), (0.5, None)]),
            "c": (["decimal(6,1)"], [(Decimal("1.0"),), (Decimal("2.0"),), (Decimal("0.5"),)]),
        },
    )
    assert shop.dependencies() == {
        ("a.A", "b.A"), ("a.A", "c.A"), ("b.A", "c.A"), ("c.A", "b.A"),
    }  # fmt: skip


def test_nulls_are_ignored_or_values(tmp_path: Path) -> None:
    tables: dict[str, Any] = {"a": (["bigint"], [(1,), (None,)]), "b": (["bigint"], [(1,), (2,)])}
    assert Shops(tmp_path / "p", tables).dependencies() == {("a.A", "b.A")}
    options = Options(kinds=("inds",), inclusion_nulls="values", within_tables=True)
    shop = Shops(tmp_path / "q", tables, options)
    assert shop.dependencies() == set()
    assert shop.missing("a.A", "b.A") == [None]
    shop.apply("b", inserts=[(None,)])
    assert shop.dependencies() == {("a.A", "b.A")}


def test_columns_of_one_table_are_told_when_asked_for(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "r": (["bigint"] * 3, [(1, 1, 2), (2, 2, 1)]),
        "s": (["bigint"], [(1,)]),
    }
    found = {}
    for asked in (False, True):
        options = Options(max_arity=2, within_tables=asked)
        shop = Shops(tmp_path / str(asked), tables, options)
        found[asked] = {str(each) for each in shop.now.dependencies()}
        assert flow.verify(shop.runner, shop.store, no_progress).equal
        told = shop.apply("r", inserts=[(3, 4, 4)])["inclusion_dependencies"]
        assert bool(told.lost) == asked
    assert found[False] == {"s(A) in r(A)", "s(A) in r(B)", "s(A) in r(C)"}
    assert found[True] > found[False]
    assert {"r(A) in r(B)", "r(A, C) in r(C, A)"} <= found[True]


def test_empty_columns_are_told_when_asked_for(tmp_path: Path) -> None:
    tables: dict[str, Any] = {"a": (["bigint"], [(None,)]), "b": (["bigint", "string"], [(1, "x")])}
    assert Shops(tmp_path / "p", tables).dependencies() == set()
    asked = Options(kinds=("inds",), empty_columns=True, within_tables=True)
    assert Shops(tmp_path / "q", tables, asked).dependencies() == {("a.A", "b.A")}


def test_missing_values(tmp_path: Path) -> None:
    tables: dict[str, Any] = {
        "orders": (["bigint", "string"], [(i, f"c{i % 7}") for i in range(20)]),
        "customers": (["string"], [("c0",), ("c2",), ("c3",), ("c6",)]),
    }
    shop = Shops(tmp_path / "p", tables, tasks=3)
    assert sorted(shop.missing("orders.B", "customers.A")) == ["c1", "c4", "c5"]
    assert len(shop.missing("orders.B", "customers.A", 2)) == 2
    assert shop.missing("customers.A", "orders.B") == []
    shop.apply("customers", inserts=[("c4",)])
    shop.apply("orders", deletes=[(1, "c1"), (8, "c1"), (15, "c1")])
    assert shop.missing("orders.B", "customers.A") == ["c5"]
    with pytest.raises(UnknownTableError, match="no table 'x'"):
        shop.missing("x.A", "customers.A")
    with pytest.raises(SchemaError, match="table 'orders' has no column 'Z'; it has A, B"):
        shop.missing("orders.Z", "customers.A")
    with pytest.raises(SchemaError, match="never equal"):
        shop.missing("orders.A", "customers.A")


def test_insert_only_counts_nothing_and_refuses_deletes(tmp_path: Path) -> None:
    options = Options(kinds=("inds",), insert_only=True, within_tables=True)
    rows = [(i % 5, i % 3) for i in range(30)]
    shop = Shops(tmp_path / "p", {"t": (["bigint"] * 2, rows)}, options)
    more = [(7, 7), (1, 2)]
    shop.apply("t", inserts=more)
    shop.assert_exact({"t": rows + more})
    runs = shop.inclusion.runs
    assert [run.entries for run in runs] == [8, 2]
    for run in runs:
        for part in filter(None, run.parts):
            arrays, _ = segments.map_arrays(tmp_path / "p" / part)
            assert "count" not in arrays
    before = shop.store.head()
    for batch in ({"deletes": more[:1]}, {"updates": more[:1], "row_key": ("A",)}):
        with pytest.raises(BatchError, match="--insert-only"):
            shop.apply("t", **batch)
    assert shop.store.head() == before


def test_earlier_versions_stay_readable(paper: Shops) -> None:
    paper.apply("r", inserts=[("c", "c", "e", "e")])
    paper.apply("r", inserts=[("x", "y", "z", "e")])
    first = snapshot(paper.store, 1).inclusions
    assert first is not None
    assert {str(each) for each in first.dependencies()} == {"r(A) in r(B)", "r(D) in r(B)"}


def test_verify_tells_what_differs(paper: Shops) -> None:
    assert flow.verify(paper.runner, paper.store, no_progress).equal
    part = paper.inclusion.runs[0].parts[0]
    assert part is not None

    def one_more(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        arrays["count"][3] += 1

    rewrite(paper.store, part, one_more)
    found = flow.verify(paper.runner, paper.store, no_progress)
    assert "wrongly" in found.differences["r"][0]


def test_composite_foreign_key(tmp_path: Path) -> None:
    options = Options(max_arity=3, within_tables=True)
    parts = [(1, 10), (1, 20), (2, 10)]
    tables: dict[str, Any] = {
        "supply": (["bigint"] * 2, parts),
        "items": (["bigint"] * 3, [(i, *parts[i % 3]) for i in range(9)]),
    }
    shop = Shops(tmp_path / "p", tables, options)
    assert ("items", (1, 2), "supply", (0, 1)) in shop.wide()
    assert "items(B, C) in supply(A, B)" in map(str, shop.now.foreign_keys())
    told = shop.apply("items", inserts=[(9, 2, 20)])
    assert "items(B, C) in supply(A, B)" in map(str, told["inclusion_dependencies"].lost)
    told = shop.apply("supply", inserts=[(2, 20)])
    assert "items(B, C) in supply(A, B)" in map(str, told["inclusion_dependencies"].gained)
    shop.apply("supply", deletes=[(1, 20)])
    assert ("items", (1, 2), "supply", (0, 1)) not in shop.wide()
    shop.apply("items", deletes=[row for row in tables["items"][1] if row[1:] == (1, 20)])
    assert ("items", (1, 2), "supply", (0, 1)) in shop.wide()


@pytest.fixture
def tested(monkeypatch: pytest.MonkeyPatch) -> list[tuples.Candidate]:
    """Candidates whose sets of tuples are compared in full."""
    seen: list[tuples.Candidate] = []
    compare = tuples._tested

    def noted(search: tuples.TupleSearch, candidates: list[tuples.Candidate]) -> tuples.Verdicts:
        seen.extend(candidates)
        return compare(search, candidates)

    monkeypatch.setattr(tuples, "_tested", noted)
    return seen


@pytest.mark.slow
def test_tuples_are_compared_in_full_only_when_a_refutation_ends(
    tmp_path: Path, tested: list[tuples.Candidate]
) -> None:
    supply = [("p1", "s1"), ("p1", "s2"), ("p2", "s1"), ("p2", "s2"), ("p3", "s1")]
    items = [(str(i), *supply[i % 4]) for i in range(8)]
    strings = ["string"] * 3
    tables: dict[str, Any] = {"supply": (strings[1:], supply), "items": (strings, items)}
    shop = Shops(tmp_path / "p", tables, Options(kinds=("inds",), max_arity=2))
    wanted = ("items", (1, 2), "supply", (0, 1))

    def after(table: str, holds: bool, **batch: Any) -> bool:
        """Whether the batch, after which it holds or not, made a full test necessary."""
        tested.clear()
        shop.apply(table, **batch)
        full = tuples.Candidate(*wanted) in tested
        assert (wanted in shop.wide()) == holds
        assert flow.verify(shop.runner, shop.store, no_progress).equal
        return full

    assert wanted in shop.wide()
    # What the left gains and what the right loses is looked up.
    assert not after("items", True, inserts=[("8", "p1", "s1")])
    assert not after("supply", True, deletes=[("p3", "s1")], inserts=[("p3", "s2")])
    # A tuple that the left uses goes from the right; then of its rows on the left one, and all.
    assert not after("supply", False, deletes=[("p2", "s2")])
    assert not after("items", False, deletes=[items[3]])
    assert after("items", True, deletes=[items[7]])
    # A missing tuple comes twice, goes once, and is supplied.
    assert not after("items", False, inserts=[("9", "p3", "s1"), ("10", "p3", "s1")])
    assert not after("items", False, deletes=[("9", "p3", "s1")], inserts=[("11", "p3", "s1")])
    assert not after("items", False, deletes=[("10", "p3", "s1")])
    assert after("supply", True, inserts=[("p3", "s1")])


# The law

CELLS: dict[str, list[Any]] = {
    "bigint": [0, 1, 2, 3, 1 << 53, (1 << 53) + 1],
    "double": [0.0, -0.0, 1.0, 2.0, 0.5, float(1 << 53), math.nan],
    "decimal(38,4)": [Decimal("0"), Decimal("1.0000"), Decimal("0.5"), Decimal((1 << 53) + 1)],
    "decimal(6,1)": [Decimal("0"), Decimal("1.0"), Decimal("2.0"), Decimal("0.5")],
    "string": ["", "a", "b", "1"],
    "binary": [b"", b"a"],
    "date": [date(1970, 1, 1), date(1970, 1, 2)],
    "timestamp_ntz": [datetime(1970, 1, 1), datetime(2026, 1, 1), datetime(9999, 1, 1)],
    "timestamp_ntz(9)": [datetime(1970, 1, 1), datetime(2026, 1, 1), pd.Timestamp(1)],
}


def rows_of(types: list[str], most: int) -> st.SearchStrategy[Cells]:
    cells = [st.sampled_from([None, *CELLS[kind]]) for kind in types]
    return st.lists(st.tuples(*cells), max_size=most)


@st.composite
def batch_of(draw: st.DrawFn, types: list[str], rows: Cells) -> tuple[dict[str, Any], Cells]:
    """Whole rows that go and come, or an update of one row by all but one of its cells."""
    inserts = draw(rows_of(types, 5))
    chosen = draw(st.lists(st.sampled_from(range(len(rows))), unique=True)) if rows else []
    places = list(range(len(types)))
    changed = draw(st.sampled_from(places))
    key = [c for c in places if c != changed]
    marked = [tuple(oracle.exact(row[c]) for c in key) for row in rows]
    told = [i for i, mark in enumerate(marked) if key and marked.count(mark) == 1]
    if bool(told) and draw(st.booleans()):
        i = draw(st.sampled_from(told))
        new = list(rows[i])
        new[changed] = draw(st.sampled_from([None, *CELLS[types[changed]]]))
        after = [row for j, row in enumerate(rows) if j != i] + [tuple(new), *inserts]
        names = tuple("ABCDEFGH"[c] for c in key)
        return {"updates": [tuple(new)], "inserts": inserts, "row_key": names}, after
    after = [row for i, row in enumerate(rows) if i not in set(chosen)] + inserts
    return {"deletes": [rows[i] for i in chosen], "inserts": inserts}, after


@pytest.mark.slow
@law(40)
@given(
    data=st.data(),
    nulls=st.sampled_from(["ignored", "values"]),
    empty=st.booleans(),
    kinds=st.sampled_from([("inds",), ("keys", "inds")]),
    tasks=st.integers(1, 3),
)
def test_kept_equals_fresh(
    data: st.DataObject, nulls: str, empty: bool, kinds: tuple[str, ...], tasks: int
) -> None:
    options = Options(kinds=kinds, inclusion_nulls=nulls, empty_columns=empty)
    wide = data.draw(st.sampled_from([False, False, True]))
    keep(data, options, tasks, wide, sorted(TYPES))


@pytest.mark.slow
@law(40)
@given(data=st.data(), empty=st.booleans(), arity=st.integers(2, 3), tasks=st.integers(1, 3))
def test_several_columns(data: st.DataObject, empty: bool, arity: int, tasks: int) -> None:
    options = Options(kinds=("inds",), empty_columns=empty, max_arity=arity)
    keep(data, options, tasks, False, ["bigint", "decimal(6,1)"])


@pytest.mark.slow
@law(10)
@given(data=st.data(), tasks=st.integers(1, 3))
def test_inserts_only(data: st.DataObject, tasks: int) -> None:
    options = Options(kinds=("inds",), insert_only=True, max_arity=2)
    keep(data, options, tasks, False, ["bigint", "string"])


def keep(data: st.DataObject, options: Options, tasks: int, wide: bool, kinds: list[str]) -> None:
    """Profile some tables, apply batches, and look after each that all is as it should be."""
    options = replace(options, within_tables=data.draw(st.booleans()))
    tables: dict[str, tuple[list[str], Cells]] = {}
    for name in ("t", "a.b")[: data.draw(st.integers(1, 2))]:
        types = data.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=4))
        tables[name] = (types, data.draw(rows_of(types, 10)))
    with (
        folder() as path,
        small_limits(segment_rows=data.draw(st.sampled_from([5, 1 << 20]))) as patch,
    ):
        if data.draw(st.booleans()):
            varied(
                patch,
                task_cells=0,
                task_entries=data.draw(st.sampled_from([2, 7])),
                looked_up_rows=data.draw(st.sampled_from([0, 3, 1 << 17])),
                small_run=2,
            )
        varied(
            patch,
            merged_runs=data.draw(st.sampled_from([2, 3])),
            overlap_cells=data.draw(st.sampled_from([9, 1 << 20, 1 << 20])),
        )
        if wide:
            types = ["bigint"] * 8
            for i in range(8):
                tables[f"w{i}"] = (types, data.draw(rows_of(types, 2)))
        shop = Shops(Path(path) / "p", tables, options, tasks)
        rows = {name: each for name, (_, each) in tables.items()}
        shop.assert_exact(rows)
        for _ in range(data.draw(st.integers(1, 4))):
            name = data.draw(st.sampled_from(sorted(tables)))
            batch: dict[str, Any]
            if options.insert_only:
                inserts = data.draw(rows_of(tables[name][0], 5))
                batch, after = {"inserts": inserts}, rows[name] + inserts
            else:
                batch, after = data.draw(batch_of(tables[name][0], rows[name]))
            before = shop.dependencies(1.0)
            told = shop.apply(name, **batch)
            rows[name] = after
            shop.assert_exact(rows)
            now = shop.dependencies(1.0)
            changes = told["inclusion_dependencies"]
            lists = inclusions(changes.gained), inclusions(changes.lost)
            narrow = [
                {tuple(str(a[0]) for a in each.sides) for each in some if len(each.dependent) == 1}
                for some in lists
            ]
            for listed, expected, number in zip(
                narrow,
                (now - before, before - now),
                (changes.counts["gained"], changes.counts["broken"]),
                strict=True,
            ):
                assert listed <= expected
                assert listed == expected or number > SHOWN
        assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_a_time_budget_ends_at_a_number_of_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is listed is complete up to there, and stays so; single columns are always compared."""
    rows = [(i, i % 4, i % 3, i % 2) for i in range(12)]
    tables = {name: (["bigint"] * 4, rows) for name in ("a", "b")}
    depths = set()

    def arity_of(shop: Shops) -> int:
        record = shop.store.read().inclusion
        assert record is not None
        return record.arity or 4

    for seconds in (1e-9, 150, 1e6):
        monkeypatch.setattr(limits, "clock", count().__next__)
        options = Options(("inds",), max_arity=4, time_budget=seconds)
        shop = Shops(tmp_path / f"{seconds}", tables, options)
        now = {"a": rows, "b": rows}
        before = arity_of(shop)
        depths.add(before)
        batches: tuple[dict[str, Any], ...] = (
            {},
            {"inserts": [(77, 1, 1, 1)]},
            {"deletes": rows[:2]},
            {"deletes": rows[2:5]},
        )
        for batch in batches:
            told = shop.apply("a", **batch) if batch else None
            gone = batch.get("deletes", [])
            now["a"] = [*(r for r in now["a"] if r not in gone), *batch.get("inserts", [])]
            arity = arity_of(shop)
            assert arity <= before
            if told and arity < before:
                for rule in told["inclusion_dependencies"].unchecked:
                    assert isinstance(rule, InclusionDependency)
                    assert len(rule.dependent) > arity
            before = arity
            assert max((len(each[1]) for each in shop.wide()), default=1) <= arity
            monkeypatch.setattr(limits, "clock", lambda: 0.0)
            exact = Shops(
                tmp_path / f"{seconds} {shop.store.head()}",
                {name: (["bigint"] * 4, some) for name, some in now.items()},
                Options(("inds",), max_arity=arity),
            )
            assert shop.wide() == exact.wide()
            assert flow.verify(shop.runner, shop.store, no_progress).equal
            monkeypatch.setattr(limits, "clock", count().__next__)
        form = forms.show(snapshot(shop.store), ["inds"])
        assert form.get("inclusions_complete_up_to", 4) == before
    assert {1, 4} <= depths
    assert depths & {2, 3}
