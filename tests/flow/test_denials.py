"""Denial constraints of any table after any changes, against brute force; and known results."""

from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count, permutations
from pathlib import Path
from typing import Any, cast

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.api import Profile
from holdfast.evidence import strategy
from holdfast.input.row_input import Columns, RowInput
from holdfast.kernels import bitsets
from holdfast.kernels import cover as kernels
from holdfast.kinds import registry
from holdfast.kinds.denial_constraints.predicates import atoms_of, denial_of
from holdfast.kinds.table_state import TableState
from holdfast.model import limits
from holdfast.model.comparisons import BOTH, EQUALITY, FIRST, ORDER, SECOND, Space
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.errors import InputError
from holdfast.model.grammar import parse
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import snapshot
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.tasks import agree
from tests import oracle
from tests.data import MISSING, data_dir, read_table
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.limits import LOOKED_UP, varied
from tests.strategies import Rows, rows_of

Sets = set[tuple[int, ...]]

HOLDS: dict[str, Callable[[str], bool]] = {
    "<": lambda outcome: outcome == "<",
    "<=": lambda outcome: outcome in "<=",
    ">": lambda outcome: outcome == ">",
    ">=": lambda outcome: outcome in ">=",
    "=": lambda outcome: outcome == "=",
    "!=": lambda outcome: outcome != "=",
}


def space_of(shop: Shop) -> Space:
    known = TableState.load(shop.store, shop.store.read(), "t")
    return known.evidence["denial"].space


def as_oracle(space: Space) -> list[oracle.Comparison]:
    whose = {BOTH: "ts", FIRST: "tt", SECOND: "ss"}
    return [(e.left, e.right, whose[e.rows], e.operators == ORDER) for e in space.comparisons]


def cells(shop: Shop, rows: Rows) -> list[tuple[object, ...]]:
    return [
        tuple(kind.cell(cell, 0) for kind, cell in zip(shop.kinds, row, strict=True))
        for row in rows
    ]


def told(shop: Shop, space: Space, exact: bool = True) -> dict[tuple[int, ...], float]:
    found = shop.now.found["dcs"]
    names = [f"c{c}" for c in range(shop.columns)]
    return {atoms_of(e, space, names): e.error for e in found if bool(e.error) != exact}


def expected(shop: Shop, rows: Rows, space: Space) -> Sets:
    asked = as_oracle(space)
    options = shop.options
    limits = (options.nulls, options.max_predicates)
    return {*oracle.denial_constraints(cells(shop, rows), shop.columns, asked, *limits)}


def satisfies(shop: Shop, witness: Any, constraint: DenialConstraint) -> bool:
    """Whether two shown rows satisfy all predicates, as row t and row s."""
    one, two = (cells(shop, [shop.row(row)])[0] for row in witness)

    def holds(predicate: Predicate) -> bool:
        (row, left), (other, right) = predicate.left, predicate.right
        pair = {"t": one, "s": two}
        values = pair[row][int(left[1:])], pair[other][int(right[1:])]
        [outcome] = oracle.outcomes((values[0],), (values[1],), [(0, 0, "ts", True)], nulls)
        return HOLDS[predicate.op](outcome)

    nulls = shop.options.nulls
    return all(map(holds, constraint.predicates))


def error(shop: Shop, rows: Rows, space: Space, atoms: tuple[int, ...]) -> float:
    asked = as_oracle(space)
    pairs = list(permutations(cells(shop, rows), 2))
    shown = [oracle.evidence(t, s, asked, shop.options.nulls) for t, s in pairs]
    return sum(set(atoms) <= each for each in shown) / len(pairs)


OPTIONS = st.builds(
    Options,
    kinds=st.sampled_from([("dcs",), ("keys", "fds", "dcs"), ("keys", "dcs")]),
    evidence=st.sampled_from(["counted", "witnessed", "auto"]),
    nulls=st.sampled_from(["equal", "unequal"]),
    max_predicates=st.sampled_from([None, None, 1, 2]),
    cross_columns=st.sampled_from([None, 0.3, 0.0]),
)


@given(st.data(), OPTIONS)
@law(40)
def test_kept_equals_fresh(data: st.DataObject, options: Options) -> None:
    columns = data.draw(st.lists(st.sampled_from([BIGINT, *KINDS]), min_size=1, max_size=2))
    rows = data.draw(rows_of(len(columns), 6))
    with folder() as path, small_limits(**data.draw(LIMITS)) as patch:
        # Without it all pairs of so small a table are compared.
        varied(patch, all_pairs=data.draw(st.sampled_from([-1, 1 << 31])))
        varied(patch, **data.draw(st.sampled_from([{}, LOOKED_UP])))
        # Where nobody asks for a way, a table moves between them as it grows and shrinks.
        patch.setattr(strategy, "expected_seconds", lambda rows, *_: float(rows))
        patch.setattr(strategy, "_QUICK", 3.0)
        shop = Shop(Path(path) / "p", columns, rows, options, data.draw(st.sampled_from([1, 3])))
        space = space_of(shop)
        old = expected(shop, rows, space)
        assert {*told(shop, space)} == old
        for _ in range(data.draw(st.integers(0, 3))):
            change = data.draw(batches(len(columns), rows))
            changes = shop.apply(**change.batch)["denial_constraints"]
            rows = change.after
            new = expected(shop, rows, space)
            assert {*told(shop, space)} == new
            names = [f"c{c}" for c in range(shop.columns)]

            def atoms(constraint: Any, names: list[str] = names) -> tuple[int, ...]:
                return atoms_of(constraint, space, names)

            assert {atoms(each) for each in changes.gained} == new - old
            assert {atoms(each) for each in changes.lost} == old - new
            for broken in changes.broken:
                assert isinstance(broken.constraint, DenialConstraint)
                assert satisfies(shop, broken.witness, broken.constraint)
            for shorter in changes.superseded:
                assert atoms(shorter.by) in new
            old = new
        if "fds" in options.kinds:
            shop.assert_exact(rows)
        assert shop.verify().equal


@given(st.data(), st.sampled_from([0.0, 0.1, 0.4, 1.0]))
@law(15)
def test_errors_are_exact(data: st.DataObject, bound: float) -> None:
    rows = data.draw(rows_of(2, 6))
    options = Options(kinds=("fds", "dcs"), max_error=bound, cross_columns=None)
    with folder() as path:
        shop = Shop(Path(path) / "p", 2, rows, options)
        space = space_of(shop)
        for _ in range(2):
            near = told(shop, space, exact=False)
            for atoms, share in near.items():
                assert 0 < share <= bound
                assert share == pytest.approx(error(shop, rows, space, atoms))
                fewer = [tuple(a for a in atoms if a != each) for each in atoms]
                assert all(error(shop, rows, space, each) > bound for each in fewer)
            change = data.draw(batches(2, rows))
            shop.apply(**change.batch)
            rows = change.after


def profiled(folder: Path, name: str, path: Path, **options: Any) -> Store:
    header, rows = read_table(folder / f"{name}.csv")
    store = Store.create(path)
    settings = registry.completed(Options(kinds=("dcs",), cross_columns=None, **options))
    cells, types = [], []
    for column in zip(*rows, strict=True):
        number = all(cell.replace(".", "", 1).lstrip("-").isdigit() for cell in column)
        type_ = pa.float64() if number else pa.string()
        cells.append(pa.array([float(cell) if number else cell for cell in column], type_))
        types.append(type_)
    columns = Columns.of(
        header, ["double" if t == pa.float64() else "string" for t in types], types
    )
    rows_in = RowInput(name, columns, pa.table(cells, names=columns.schema.names))
    flow.profile(InProcess(2), store, {name: rows_in}, settings, no_progress)
    return store


ABALONE = pytest.param("abalone", marks=pytest.mark.slow)


@pytest.mark.skipif(data_dir() is None, reason=MISSING)
@pytest.mark.parametrize("name", ["iris", "bridges", ABALONE])
def test_known_results(name: str, tmp_path: Path) -> None:
    folder = data_dir()
    assert folder is not None
    store = profiled(folder, name, tmp_path / "p")
    known = json.loads((folder / "known-results.json").read_text())[name]
    count = known.get("denial_constraint_count") or len(known["denial_constraints"])
    assert len(snapshot(store).tables[name].found["dcs"]) == count


RULES = (
    "t: key(c0)",
    "t: key()",
    "t: c0 -> c1",
    "t: not (t.c0 < s.c0 and t.c1 >= s.c1)",
    "t: not (t.c0 = s.c1)",
    "t: not (t.c0 < t.c1 and s.c0 > s.c1)",
    "t: not (s.c0 != t.c0 and t.c1 <= s.c1)",
)


@given(rows_of(2, 8), st.sampled_from(RULES), st.sampled_from(["equal", "unequal"]))
@law(40)
def test_pairs_that_violate_a_rule(rows: Rows, rule: str, nulls: str) -> None:
    with folder() as path:
        shop = Shop(Path(path) / "p", 2, rows, Options(kinds=("keys",), nulls=nulls))
        profile = Profile(shop.store)
        profile._runner = shop.runner
        denied = denial_of(cast(DenialConstraint, parse(rule)))
        bad = [
            (i, j)
            for i, j in permutations(range(len(rows)), 2)
            if satisfies(shop, [shown(rows[i]), shown(rows[j])], denied)
        ]
        found = profile.violations(rule, limit=1_000)
        assert all(satisfies(shop, pair, denied) for pair in found)
        assert bool(found) == bool(bad)
        assert len(profile.violations(rule, limit=1)) == min(1, len(bad))
        pairs = len(rows) * (len(rows) - 1)
        assert profile.error(rule) == pytest.approx(len(bad) / pairs if pairs else 0.0)


def shown(row: tuple[int | None, ...]) -> dict[str, int | None]:
    return {f"c{c}": cell for c, cell in enumerate(row)}


def test_a_rule_that_cannot_be_asked(tmp_path: Path) -> None:
    profile = Profile(Shop(tmp_path / "p", [BIGINT, KINDS[2]], [(1, 1), (2, 2)]).store)
    with pytest.raises(InputError, match="column c1 is of type string, which has no order"):
        profile.error("t: not (t.c1 < s.c1)")
    with pytest.raises(InputError, match="kind number and c1 of the kind text"):
        profile.error("t: not (t.c0 = s.c1)")
    with pytest.raises(InputError, match="no column 'c7'"):
        profile.error("t: not (t.c7 = s.c7)")


def test_a_kind_is_added_from_the_rows_that_are_held(tmp_path: Path) -> None:
    rows: Rows = [(1, 10, 3), (2, 20, 3), (3, 30, 4), (3, 30, 4)]
    shop = Shop(tmp_path / "p", 3, rows, Options(kinds=("inds",)))
    shop.apply(inserts=[(4, 5, 9)], deletes=rows[-1:])
    profile = Profile(shop.store)
    profile._runner = shop.runner
    with pytest.raises(InputError, match="profile it with --kinds inds,dcs"):
        profile.denial_constraints("t")
    with pytest.raises(InputError, match="min_coverage does not concern keys, dcs"):
        profile.add_kinds("keys,dcs", min_coverage=0.5)
    profile.add_kinds("keys,dcs", cross_columns=None)
    left = [*rows[:-1], (4, 5, 9)]
    options = Options(kinds=("keys", "inds", "dcs"), cross_columns=None)
    fresh = Shop(tmp_path / "fresh", 3, left, options)
    assert shop.store.read().options.kinds == ("keys", "inds", "dcs")
    assert list(shop.now.found["dcs"]) == list(fresh.now.found["dcs"])
    assert shop.now.keys == fresh.now.keys
    assert [entry.version for entry in profile.history()] == [1, 2, 3]
    shop.apply(inserts=[(0, 0, 0)])
    fresh.apply(inserts=[(0, 0, 0)])
    assert list(shop.now.found["dcs"]) == list(fresh.now.found["dcs"])
    assert shop.verify().equal
    profile.add_kinds("keys")
    assert shop.store.head() == 4


def test_columns_that_are_named(tmp_path: Path) -> None:
    rows: Rows = [(1, 1), (2, 1)]
    with pytest.raises(InputError, match="no table has the column 'c7'"):
        Shop(tmp_path / "a", 2, rows, Options(kinds=("dcs",), columns="c0,c7"))
    options = Options(kinds=("dcs",), columns="t.c1=equality", cross_columns=None)
    shop = Shop(tmp_path / "b", 2, rows, options)
    assert [e.operators for e in space_of(shop).comparisons] == [ORDER, EQUALITY]
    shop = Shop(tmp_path / "c", 2, rows, Options(kinds=("dcs",), columns="c1"))
    assert [e.left for e in space_of(shop).comparisons] == [1]


def test_too_many_evidences_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows: Rows = [(1, 4), (2, 3), (3, 1), (4, 2)]
    monkeypatch.setattr(agree, "MOST_WORDS", 2)
    shop = Shop(tmp_path / "p", 2, rows, Options(kinds=("fds", "dcs"), cross_columns=None))
    now = shop.now
    assert now.evidence["denial"].choice.strategy == "witnessed"
    assert "too many" in now.evidence["denial"].choice.reason
    assert now.evidence["agreement"].choice.strategy == "counted"
    assert {*told(shop, space_of(shop))} == expected(shop, rows, space_of(shop))
    shop.apply(inserts=[(0, 9)])
    rows = [*rows, (0, 9)]
    assert {*told(shop, space_of(shop))} == expected(shop, rows, space_of(shop))


@pytest.mark.slow
def test_more_constraints_than_anybody_can_hold(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("holdfast.kernels.cover.MOST", 5)
    rows: Rows = [tuple(row) for row in np.random.default_rng(7).integers(0, 4, (9, 4)).tolist()]
    options = Options(kinds=("dcs",), evidence="witnessed")
    with small_limits(**LOOKED_UP), pytest.raises(InputError, match="search only for short ones"):
        Shop(tmp_path / "p", 4, rows, options)


def test_a_time_budget_that_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whenever it ends, what is listed is complete up to a number of comparisons, and batches keep
    to that, or to less."""
    monkeypatch.setattr(kernels, "STEPS", 3)
    monkeypatch.setattr(bitsets, "WORK", 1)
    table = np.random.default_rng(7).integers(0, 4, (9, 3)).tolist()
    inserted: dict[str, Rows] = {"inserts": [(9, 9, 0)]}
    depths = set()
    for seconds in (0.5, 16, 48, 96, 128, 1e6):
        ticks = count()
        monkeypatch.setattr(limits, "clock", ticks.__next__)
        rows: Rows = [tuple(row) for row in table]
        options = Options(
            kinds=("dcs",), cross_columns=None, evidence="witnessed", time_budget=seconds
        )
        with small_limits(**LOOKED_UP):
            shop = Shop(tmp_path / f"{seconds}", 3, rows, options)
            before = shop.now.evidence["denial"].limits
            depths.add(before.keys)
            changes: list[dict[str, Any]]
            changes = [{}, inserted, {"deletes": rows[:3]}, {"deletes": rows[3:]}]
            for batch in changes:
                if batch:
                    shop.apply(**batch)
                gone = batch.get("deletes", [])
                rows = [*(row for row in rows if row not in gone), *batch.get("inserts", [])]
                now = shop.now.evidence["denial"].limits
                assert now.within(before) == now
                before = now
                asked = as_oracle(space_of(shop))
                whole = oracle.denial_constraints(cells(shop, rows), 3, asked, "equal", now.keys)
                assert {*told(shop, space_of(shop))} == {*whole}
                monkeypatch.setattr(limits, "clock", lambda: 0.0)
                assert not any(shop.verify().differences.values())
                monkeypatch.setattr(limits, "clock", ticks.__next__)
    assert {0, None} < depths
