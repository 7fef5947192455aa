"""Which look-ups serve denial constraints: chosen as IncDC's SelectIndex does (section 7)."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cover.cover import Cover
from holdfast.evidence.comparison import batch_indexes
from holdfast.evidence.comparison.regions import Sampled
from holdfast.evidence.counted import groups_of
from holdfast.kernels import bitsets, violations
from holdfast.model.batch_indexes import LookUp
from holdfast.model.comparisons import EQUALITY, ORDER, Comparison, Space
from holdfast.tasks.segments import chain_columns, index_columns, is_chained
from tests import oracle
from tests.kernels.test_chains import TAX
from tests.kinds.spaces import spaces, told
from tests.limits import varied
from tests.strategies import examples

Rows = Sequence[tuple[int, ...]]
Sets = Sequence[tuple[int, ...]]


def sampled(rows: Rows, space: Space) -> Sampled:
    """All pairs of rows, each in one order."""
    masks = [
        sorted(oracle.evidence(t, s, told(space), "equal"))
        for i, t in enumerate(rows)
        for s in rows[:i]
    ]
    found = bitsets.from_columns([tuple(each) for each in masks], space.atoms)
    counts = np.ones(len(found), np.int64)
    return Sampled(found, counts, len(rows))


def chosen(rows: Rows, space: Space, sets: Sets, **columns: pa.DataType) -> tuple[LookUp, ...]:
    """Look-ups for some sets and their mirror images."""
    both = sorted({*map(tuple, sets), *map(space.mirrored, sets)})
    schema = pa.schema([(f"c{c}", columns.get(f"c{c}", pa.int64())) for c in range(space.columns)])
    distinct = [float(len({row[c] for row in rows})) for c in range(space.columns)]
    masks = bitsets.from_columns(both, space.atoms)
    found = batch_indexes.choose(masks, space, schema, sampled(rows, space), distinct)
    assert batch_indexes.plan(masks, space, found) is not None
    return found


def own(*operators: tuple[str, ...]) -> Space:
    """Each column compared with itself."""
    compared = (Comparison(c, c, each) for c, each in enumerate(operators))
    return Space("denial", len(operators), tuple(compared))


def names(found: tuple[LookUp, ...]) -> set[str]:
    return {each.index for each in found}


def test_an_equality_that_returns_few_rows_is_enough() -> None:
    """As for φ1, φ2 and φ4 of the paper: one index, on the column that most share."""
    space = own(EQUALITY, EQUALITY, EQUALITY)
    rows = [(i, i % 5, i % 2) for i in range(40)]
    assert names(chosen(rows, space, [(0, 3), (0, 5), (0, 2, 5)])) == {"0"}


def test_two_equalities_where_one_returns_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    varied(monkeypatch, returned_rows=2, index_rows=1)
    space = own(EQUALITY, EQUALITY, EQUALITY)
    rows = [(i % 8, i // 8, i % 2) for i in range(64)]
    assert names(chosen(rows, space, [(0, 2, 5)])) == {"0+1"}


def test_example_13_the_second_number_falls_where_the_columns_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """φ4 without its equality: Date and NUM rise together, so that chains rise in both, and serve
    ``Date <, NUM >=`` in reverse."""
    varied(monkeypatch, index_rows=0)
    space = own(ORDER, ORDER)
    rows = list(zip(TAX["Date"][:7], TAX["NUM"][:7], strict=True))
    found = chosen(rows, space, [(0, 2, 4)])
    assert names(found) == {"/0+1"}
    assert {each.atoms for each in found} == {(0, 4), (1, 3)}  # <= returns as little as <
    opposite = [(date, -number) for date, number in rows]
    assert names(chosen(opposite, space, [(0, 2, 3)])) == {"/0-1"}


def test_inequalities_are_looked_up_inside_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """φ4 with an equality that returns many rows: not (t.A = s.A and t.B < s.B and t.C >= s.C)."""
    varied(monkeypatch, returned_rows=1, index_rows=1)
    space = own(EQUALITY, ORDER, ORDER)
    rows = [(i % 3, i * 7 % 60, i * 7 % 60 + (i % 3) * 100) for i in range(60)]
    assert names(chosen(rows, space, [(0, 2, 4, 6)])) == {"0/1+2"}


def test_a_dependency_is_an_inequality_in_groups(monkeypatch: pytest.MonkeyPatch) -> None:
    """φ2, where many rows share a zip code: all of a group have one state."""
    varied(monkeypatch, returned_rows=1, index_rows=1)
    space = own(EQUALITY, EQUALITY)
    rows = [(i % 4, i % 2) for i in range(60)]
    assert names(chosen(rows, space, [(0, 3)], c1=pa.string())) == {"0/1"}


def test_a_constant_column_is_looked_up_by_what_differs() -> None:
    space = own(EQUALITY)
    found = chosen([(1,)] * 9, space, [(1,)], c0=pa.string())
    assert [(each.index, each.atoms) for each in found] == [("/0", (1,))]


def test_comparisons_across_columns_have_two_indexes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fetch⁺: not (t.A > s.B and t.C < s.D) is looked up in B and D, and in A and C."""
    varied(monkeypatch, index_rows=0)
    compared = [
        Comparison(0, 1, ORDER), Comparison(1, 0, ORDER),
        Comparison(2, 3, ORDER), Comparison(3, 2, ORDER),
    ]  # fmt: skip
    space = Space("denial", 4, tuple(compared))
    rows = [(i, i + 5, i, i + 5) for i in range(30)]
    found = chosen(rows, space, [(1, 2, 6, 8)])
    assert names(found) == {"/1+3", "/0+2"}
    other_types = chosen(rows, space, [(1, 2, 6, 8)], c1=pa.float64(), c0=pa.float64())
    assert names(other_types) == {"/1+3", "/0+2"}


def test_words_that_hold_values_in_other_ways_are_not_looked_up() -> None:
    space = Space("denial", 2, (Comparison(0, 1, ORDER), Comparison(1, 0, ORDER)))
    schema = pa.schema([("c0", pa.int64()), ("c1", pa.float64())])
    masks = bitsets.from_columns([(0,), (4,)], space.atoms)
    rows = sampled([(1, 5), (2, 6)], space)
    found = batch_indexes.choose(masks, space, schema, rows, [2.0, 2.0])
    assert found == ()
    assert batch_indexes.plan(masks, space, found) is None


@given(st.data())
@settings(max_examples=examples(60), deadline=None)
def test_every_set_is_served_by_atoms_of_its_own(data: st.DataObject) -> None:
    columns = data.draw(st.integers(1, 3))
    space = data.draw(spaces(columns))
    if not space.comparisons:
        return
    number = st.integers(0, 3)
    rows = data.draw(st.lists(st.tuples(*[number] * columns), min_size=2, max_size=8))
    pairs = permutations(rows, 2)
    shown = {frozenset(oracle.evidence(t, s, told(space), "equal")) for t, s in pairs}
    evidence = bitsets.from_columns([tuple(sorted(each)) for each in shown], space.atoms)
    minimal = Cover.build(space.atoms, evidence, None, groups_of(space)).minimal
    schema = pa.schema([(f"c{c}", pa.int64()) for c in range(columns)])
    distinct = [float(len({row[c] for row in rows})) for c in range(columns)]
    found = batch_indexes.choose(minimal, space, schema, sampled(rows, space), distinct)
    # Whatever a set says, there is a look-up for it: all words hold values alike.
    assert batch_indexes.plan(minimal, space, found) is not None
    for each in found:
        asked = violations.terms(space, each.atoms)
        assert asked is not None
        if not each.index:
            continue
        chained = is_chained(each.index)
        groups = chain_columns(each.index)[0] if chained else index_columns(each.index)
        order = chain_columns(each.index)[1] if chained else ()
        rights = [comparison.right for comparison, _ in asked]
        assert len({*rights}) == len(rights)
        assert {*groups} <= {*rights} <= {*groups, *order}
