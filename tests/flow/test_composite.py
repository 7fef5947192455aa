"""Foreign keys of two columns into keys of other tables, which are looked for by default."""

from __future__ import annotations

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.flow.alter import Alteration
from holdfast.input.row_input import RowInput
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.model.limits import OutOfTime
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report import forms
from holdfast.report.snapshot import snapshot
from holdfast.values import composite
from holdfast.values.tuples import TupleCounts
from tests import oracle
from tests.flow.tables import folder, small_limits
from tests.flow.test_inclusion import Cells, Shops, family
from tests.flow.test_law import law
from tests.limits import varied

KINDS = ("keys", "inds")
Wide = set[tuple[str, tuple[int, ...], str, tuple[int, ...]]]


class NamedShops(Shops):
    """A profile of several tables whose columns have names of their own."""

    def __init__(
        self,
        path: Path,
        tables: Mapping[str, tuple[list[str], Cells]],
        options: Options | None = None,
        tasks: int = 2,
        types: Mapping[str, list[str]] | None = None,
    ) -> None:
        self.columns = {name: columns for name, (columns, _) in tables.items()}
        of = types or {}
        typed = {
            name: (of.get(name, ["bigint"] * len(columns)), rows)
            for name, (columns, rows) in tables.items()
        }
        super().__init__(path, typed, options or Options(kinds=KINDS), tasks)

    def row_input(self, table: str, rows: Cells, names: list[str] | None = None) -> RowInput:
        return super().row_input(table, rows, names or self.columns[table])

    def wide(self) -> Wide:
        return {
            (
                each.dependent[0].table,
                tuple(
                    self.columns[each.dependent[0].table].index(a.column) for a in each.dependent
                ),
                each.referenced[0].table,
                tuple(
                    self.columns[each.referenced[0].table].index(a.column) for a in each.referenced
                ),
            )
            for each in self.now.dependencies()
            if len(each.dependent) > 1
        }

    def expected(self, tables: Mapping[str, Cells]) -> Wide:
        """What brute force finds."""
        options = self.options
        nulls = options.inclusion_nulls == "values"
        sets = oracle.value_sets(
            {
                f"{table}.{c}": (family(kind), [row[c] for row in rows])
                for table, rows in tables.items()
                for c, kind in enumerate(self.types[table])
            },
            nulls,
        )
        sides = [
            (*one.split("."), *two.split("."))
            for (one, two), share in oracle.inclusions(sets, options.empty_columns).items()
            if share == 1
        ]
        unary = {(one, int(a), two, int(b)) for one, a, two, b in sides}
        known = {name: (self.columns[name], self.types[name], tables[name]) for name in tables}
        return oracle.references_of_two(
            known, unary, options.nulls, nulls, options.empty_columns, composite.MOST
        )


PARTS = [(1, 10), (1, 20), (2, 10)]
SHOP: dict[str, tuple[list[str], Cells]] = {
    "partsupp": (["ps_partkey", "ps_suppkey"], PARTS),
    "lineitem": (["id", "l_partkey", "l_suppkey"], [(i, *PARTS[i % 3]) for i in range(9)]),
}
WANTED = "lineitem(l_partkey, l_suppkey) in partsupp(ps_partkey, ps_suppkey)"


def foreign_keys(shop: Shops) -> list[str]:
    return [str(each) for each in shop.now.foreign_keys() if len(each.dependent) > 1]


def wide_of(constraints: Any) -> list[str]:
    return [
        str(each)
        for each in constraints
        if isinstance(each, InclusionDependency) and len(each.dependent) > 1
    ]


def test_a_foreign_key_of_two_columns_is_found_by_default(tmp_path: Path) -> None:
    shop = NamedShops(tmp_path / "p", SHOP)
    assert foreign_keys(shop) == [WANTED]
    for arity, names in ((1, []), (2, [WANTED])):
        shop = NamedShops(tmp_path / str(arity), SHOP, Options(kinds=KINDS, max_arity=arity))
        assert foreign_keys(shop) == names


def test_what_is_no_key_is_not_referred_to(tmp_path: Path) -> None:
    """The pairs are contained, but one is there twice, or one column is a key by itself."""
    twice = SHOP | {"partsupp": (["ps_partkey", "ps_suppkey"], [*PARTS, PARTS[0]])}
    assert NamedShops(tmp_path / "p", twice).wide() == set()
    alone = SHOP | {"partsupp": (["ps_partkey", "ps_suppkey"], [(1, 10), (2, 20)])}
    alone["lineitem"] = (["id", "l_partkey", "l_suppkey"], [(i, 1, 10) for i in range(4)])
    assert NamedShops(tmp_path / "q", alone).wide() == set()


def test_names_have_to_be_about_alike(tmp_path: Path) -> None:
    for name, found in (("weight", False), ("old_part", True), ("part", True)):
        other = SHOP | {"lineitem": (["id", name, "l_suppkey"], SHOP["lineitem"][1])}
        assert bool(NamedShops(tmp_path / name, other).wide()) == found


def test_without_keys_there_is_none(tmp_path: Path) -> None:
    shop = NamedShops(tmp_path / "p", SHOP, Options(kinds=("inds",)))
    assert shop.wide() == set()
    flow.extend(shop.runner, shop.store, ["keys"], {}, no_progress)
    assert foreign_keys(shop) == [WANTED]
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_batches_break_it_and_its_key(tmp_path: Path) -> None:
    shop = NamedShops(tmp_path / "p", SHOP)

    def after(table: str, **batch: Any) -> tuple[list[str], list[str], list[str]]:
        """What is found after a batch, and what the batch told."""
        told = shop.apply(table, **batch)["inclusion_dependencies"]
        assert flow.verify(shop.runner, shop.store, no_progress).equal
        return foreign_keys(shop), wide_of(told.gained), wide_of(told.lost)

    assert after("lineitem", inserts=[(9, 2, 20)]) == ([], [], [WANTED])
    assert after("partsupp", inserts=[(2, 20)]) == ([WANTED], [WANTED], [])
    # Nothing is missing while the key is broken, so the inclusion is not told as broken.
    assert after("partsupp", inserts=[(1, 10)]) == ([], [], [])
    assert after("partsupp", deletes=[(1, 10)]) == ([WANTED], [WANTED], [])
    # One column becomes a key by itself, and none again.
    assert after("lineitem", deletes=[(9, 2, 20), *SHOP["lineitem"][1]]) == ([], [], [WANTED])
    assert after("lineitem", inserts=[(1, 1, 10)]) == ([WANTED], [WANTED], [])
    assert after("partsupp", deletes=[(1, 20), (2, 10)]) == ([], [], [])
    assert after("partsupp", inserts=[(2, 10)]) == ([WANTED], [WANTED], [])


def test_names_that_change(tmp_path: Path) -> None:
    shop = NamedShops(tmp_path / "p", SHOP)
    for name, found in (("weight", True), ("l_partkey", True)):
        old = shop.columns["lineitem"][1]
        renamed = Alteration(rename={old: name, "l_suppkey": "size"})
        if name == "l_partkey":
            renamed = Alteration(rename={old: name, "size": "l_suppkey"})
        flow.alter(shop.runner, shop.store, "lineitem", renamed, no_progress)
        shop.columns["lineitem"][1] = name
        assert bool(foreign_keys(shop)) == (name == "l_partkey") == (found and name != "weight")
        assert flow.verify(shop.runner, shop.store, no_progress).equal


# The law

NAMES = ["item_no", "line_no", "line", "a_item_no", "size"]


@pytest.mark.slow
@law(60)
@given(
    data=st.data(),
    nulls=st.sampled_from(["ignored", "ignored", "values"]),
    key_nulls=st.sampled_from(["equal", "unequal"]),
    empty=st.booleans(),
    kinds=st.sampled_from([("keys", "inds"), ("fds", "inds", "keys")]),
    evidence=st.sampled_from(["witnessed", "counted"]),
    tasks=st.integers(1, 3),
)
def test_kept_equals_fresh(
    data: st.DataObject,
    nulls: str,
    key_nulls: str,
    empty: bool,
    kinds: tuple[str, ...],
    evidence: str,
    tasks: int,
) -> None:
    """The rows of one table are mostly pairs of another's, so that batches break what is found,
    and the keys, and bring them back."""
    options = Options(
        kinds=kinds,
        inclusion_nulls=nulls,
        nulls=key_nulls,
        empty_columns=empty,
        evidence=evidence,
        within_tables=data.draw(st.booleans()),
    )
    cells = st.sampled_from([0, 1, 2, 3, None])
    some = st.integers(0, 2)
    tables: dict[str, tuple[list[str], Cells]] = {}
    types: dict[str, list[str]] = {}
    strategies: dict[str, st.SearchStrategy[tuple[Any, ...]]] = {}
    for name in ("items", "lines", "sizes")[: data.draw(st.integers(2, 3))]:
        columns = data.draw(st.permutations(NAMES))[: data.draw(st.integers(2, 4))]
        types[name] = [data.draw(st.sampled_from(["bigint", "double"])) for _ in columns]
        strategies[name] = st.tuples(*(st.one_of(some, some, cells) for _ in columns))
        tables[name] = (columns, data.draw(st.lists(strategies[name], max_size=7)))
    with (
        folder() as path,
        small_limits(segment_rows=data.draw(st.sampled_from([3, 1 << 20]))) as patch,
    ):
        if data.draw(st.booleans()):
            varied(
                patch,
                task_cells=0,
                task_entries=data.draw(st.sampled_from([2, 7])),
                looked_up_rows=data.draw(st.sampled_from([0, 3, 1 << 17])),
            )
        patch.setattr(composite, "MOST", data.draw(st.sampled_from([1, 2, 200, 200])))
        patch.setattr(composite, "_UNUSED", data.draw(st.sampled_from([0, 1, 32])))
        shop = NamedShops(Path(path) / "p", tables, options, tasks, types)
        rows = {name: each for name, (_, each) in tables.items()}
        assert shop.wide() == shop.expected(rows)
        for _ in range(data.draw(st.integers(1, 5))):
            name = data.draw(st.sampled_from(sorted(tables)))
            here = rows[name]
            gone = (
                data.draw(st.lists(st.sampled_from(range(len(here))), unique=True)) if here else []
            )
            come = data.draw(st.lists(strategies[name], max_size=3))
            before = shop.wide()
            told = shop.apply(name, deletes=[here[i] for i in gone], inserts=come)
            rows[name] = [row for i, row in enumerate(here) if i not in {*gone}] + come
            now = shop.wide()
            assert now == shop.expected(rows)
            changes = told["inclusion_dependencies"]
            assert len(wide_of(changes.gained)) == len(now - before)
            assert len(wide_of(changes.lost)) <= len(before - now)
        assert flow.verify(shop.runner, shop.store, no_progress).equal


def references_of_two_tables(path: Path, seed: int) -> None:
    """A law on two tables that one of the other refers to, mostly; for planted bugs."""
    draw = random.Random(seed)
    columns = {"items": ["item_no", "line_no"], "lines": ["id", "item_no", "line_no"]}

    def some(name: str, most: int) -> Cells:
        width = len(columns[name])
        return [tuple(draw.randrange(3) for _ in range(width)) for _ in range(draw.randrange(most))]

    rows = {name: [*dict.fromkeys(some(name, 9))] for name in columns}
    shop = NamedShops(path / "p", {name: (columns[name], rows[name]) for name in columns})
    assert shop.wide() == shop.expected(rows)
    for _ in range(8):
        name = draw.choice(["items", "lines"])
        gone = [row for row in rows[name] if draw.random() < 0.3]
        kept = rows[name].copy()
        for row in gone:
            kept.remove(row)
        come = some(name, 4)
        shop.apply(name, deletes=gone, inserts=come)
        rows[name] = kept + come
        assert shop.wide() == shop.expected(rows)


@pytest.mark.parametrize("seed", range(3))
def test_references_of_two_tables(tmp_path: Path, seed: int) -> None:
    references_of_two_tables(tmp_path, seed)


def test_one_that_a_few_rows_break_nearly_holds(tmp_path: Path) -> None:
    parts = [(part, supplier) for part in range(20) for supplier in range(5)]
    items = [(i, *parts[1 + i % 99]) for i in range(500)]
    tables: dict[str, tuple[list[str], Cells]] = {
        "partsupp": (["ps_partkey", "ps_suppkey"], [row for row in parts if row != (0, 0)]),
        "lineitem": (["id", "l_partkey", "l_suppkey"], items),
    }
    shop = NamedShops(tmp_path / "p", tables, Options(kinds=KINDS, near="on"))
    assert foreign_keys(shop) == [WANTED]
    shop.apply("lineitem", inserts=[(500, 0, 0)])
    assert foreign_keys(shop) == []
    near = {str(each.rule): each for each in snapshot(shop.store).tables["lineitem"].near_rules}
    assert near[WANTED].removal == 1
    assert flow.verify(shop.runner, shop.store, no_progress).equal


def test_a_time_that_ends_before_tuples_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of two columns is listed then, and the version says so; neither are there later."""

    def ended(*_given: Any) -> Any:
        raise OutOfTime

    with monkeypatch.context() as patch:
        patch.setattr(TupleCounts, "also", ended)
        shop = NamedShops(tmp_path / "p", SHOP, Options(kinds=KINDS, time_budget=1e6))
    for rows in ([(9, 1, 10)], [(10, 2, 20)]):
        assert shop.wide() == set()
        assert forms.show(snapshot(shop.store), ["inds"])["inclusions_complete_up_to"] == 1
        assert flow.verify(shop.runner, shop.store, no_progress).equal
        shop.apply("lineitem", inserts=rows)
