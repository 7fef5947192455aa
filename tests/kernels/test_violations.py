"""Pairs that satisfy a set of atoms, against a comparison of all pairs in plain Python."""

from __future__ import annotations

from itertools import count, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import violations
from holdfast.model.comparisons import (
    BOTH,
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
)
from holdfast.model.limits import OutOfTime
from tests import oracle
from tests.strategies import examples

WHOSE = {BOTH: "ts", FIRST: "tt", SECOND: "ss"}

Row = tuple[int | None, ...]


def spaces(columns: int) -> st.SearchStrategy[Space]:
    """Comparisons of columns with themselves, with each other, and within a row."""

    @st.composite
    def drawn(draw: st.DrawFn) -> Space:
        found = [
            Comparison(c, c, draw(st.sampled_from([ORDER, ORDER, EQUALITY])))
            for c in range(columns)
        ]
        if columns > 1 and draw(st.booleans()):
            operators = draw(st.sampled_from([ORDER, EQUALITY]))
            found += [Comparison(0, 1, operators), Comparison(1, 0, operators)]
        if columns > 1 and draw(st.booleans()):
            operators = draw(st.sampled_from([ORDER, EQUALITY]))
            found += [Comparison(0, 1, operators, rows) for rows in (FIRST, SECOND)]
        return Space("denial", columns, tuple(found))

    return drawn()


def tables(columns: int, most: int, nulls: bool = True) -> st.SearchStrategy[list[Row]]:
    @st.composite
    def drawn(draw: st.DrawFn) -> list[Row]:
        number = st.integers(0, draw(st.sampled_from([1, 3, 9])))
        cell = st.one_of(st.none(), number, number, number) if nulls else number
        return draw(st.lists(st.tuples(*[cell] * columns), max_size=most))

    return drawn()


def codes_of(rows: list[Row], columns: int) -> Any:
    cells = [[-1 if cell is None else cell for cell in row] for row in rows]
    return np.ascontiguousarray(np.array(cells, np.int32).reshape(-1, columns).T)


def evidence_of(t: Row, s: Row, space: Space, nulls_equal: bool) -> frozenset[int]:
    comparisons = [
        (each.left, each.right, WHOSE[each.rows], each.operators == ORDER)
        for each in space.comparisons
    ]
    shown = oracle.outcomes(t, s, comparisons, "equal" if nulls_equal else "unequal")
    return frozenset(oracle.satisfied(shown, [each.operators for each in space.comparisons]))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Space, list[Row], list[int], bool]:
    columns = draw(st.integers(1, 4))
    space = draw(spaces(columns))
    rows = draw(tables(columns, 12))
    atoms = draw(st.lists(st.integers(0, space.atoms - 1), unique=True, max_size=5))
    return space, rows, atoms, draw(st.booleans())


@settings(max_examples=examples(400), deadline=None)
@given(
    case=cases(),
    most=st.integers(1, 5),
    leaf=st.sampled_from([1, 2, 16]),
    steps=st.sampled_from([1, 2, 7, 1_000]),
)
def test_pairs_are_found_iff_there_are_some(
    case: tuple[Space, list[Row], list[int], bool], most: int, leaf: int, steps: int
) -> None:
    space, rows, atoms, nulls_equal = case
    expected = {
        (i, j)
        for i, j in permutations(range(len(rows)), 2)
        if evidence_of(rows[i], rows[j], space, nulls_equal) >= set(atoms)
    }
    asked = violations.terms(space, atoms)
    if asked is None:
        assert not expected
        return
    codes = codes_of(rows, space.columns)
    form = violations.sides(codes, asked, nulls_equal)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(violations, "LEAF", leaf)
        patched.setattr(violations, "STEPS", steps)
        found = [violations.by_tree(form, most), violations.find(codes, asked, nulls_equal, most)]
        if len(form.low) <= 2 and len(form.t_value) <= 1:
            found.append(violations.by_sweep(form, most))
        else:
            with pytest.raises(ValueError, match="two inequalities"):
                violations.by_sweep(form, most)
    for pairs in found:
        assert len(pairs) <= most
        assert {(i, j) for i, j in pairs.tolist()} <= expected
        assert bool(len(pairs)) == bool(expected)


def test_sweeps_choose_pairs_from_everywhere() -> None:
    codes: Any = np.arange(1_000, dtype=np.int32)[None, :]
    space = Space("denial", 1, (Comparison(0, 0, ORDER),))
    asked = violations.terms(space, [0, 2])
    assert asked is not None
    found = violations.find(codes, asked, nulls_equal=True, most=10)
    assert 5 <= len(found) <= 10
    assert np.ptp(found[:, 0]) > 500
    assert (found[:, 0] < found[:, 1]).all()


def test_a_search_in_boxes_is_left_when_it_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """The clock is looked at after so many pairs of boxes."""
    monkeypatch.setattr(violations, "STEPS", 50)
    monkeypatch.setattr(violations, "TILE", 16)
    codes = np.random.default_rng(7).integers(0, 1_000, (3, 400), np.int32)
    codes[2] = 2_000 - codes[0] - codes[1]  # no row is below another everywhere
    space = Space("denial", 3, tuple(Comparison(c, c, ORDER) for c in range(3)))
    asked = violations.terms(space, [0, 2, 3, 5, 6, 8])
    assert asked is not None
    form = violations.sides([*codes], asked, nulls_equal=True)
    looks = count()

    def look() -> None:
        if next(looks) == 3:
            raise OutOfTime

    for search in (violations.by_tree, lambda *given: [*violations.together(given[0], 0, 1, look)]):
        looks = count()
        with pytest.raises(OutOfTime):
            search(form, 10, look)
    assert not len(violations.by_tree(form, 10))


@settings(max_examples=examples(40), deadline=None)
@given(seed=st.integers(0, 2**32 - 1), values=st.sampled_from([2, 10, 1_000]))
def test_larger_tables_in_boxes(seed: int, values: int) -> None:
    """Boxes of real size: three inequalities and a difference, beside all pairs in NumPy."""
    codes: Any = np.random.default_rng(seed).integers(0, values, (4, 120), np.int32)
    codes[2] = values - (codes[0] + codes[1]) // 2  # few rows are below others everywhere
    space = Space("denial", 4, tuple(Comparison(c, c, ORDER) for c in range(4)))
    asked = violations.terms(space, [0, 2, 3, 6, 8, 11])  # <, <=, <, !=
    assert asked is not None
    t, s = codes[:, :, None], codes[:, None, :]
    expected = (t[0] < s[0]) & (t[1] <= s[1]) & (t[2] < s[2]) & (t[3] != s[3])
    found = violations.find(codes, asked, nulls_equal=True, most=10_000)
    assert bool(len(found)) == expected.any()
    assert expected[found[:, 0], found[:, 1]].all()


@pytest.mark.parametrize("operators", [("<=", "<="), ("<", ">="), (">", "<="), ("<=", None)])
def test_sweeps_of_few_rows(operators: tuple[str, str | None]) -> None:
    """Two inequalities and a difference: in few rows often only one pair is left, so that the one
    row that a sweep remembers besides the largest matters."""
    dice = np.random.default_rng(7)
    compare = {"<=": np.less_equal, "<": np.less, ">=": np.greater_equal, ">": np.greater}
    asked = [(Comparison(c, c, ORDER), op) for c, op in enumerate(operators) if op]
    asked.append((Comparison(2, 2, EQUALITY), "!="))
    asked.append((Comparison(3, 3, EQUALITY), "="))
    both = 0
    for _ in range(examples(1_000)):
        codes: Any = dice.integers(0, [[4], [4], [2], [2]], (4, dice.integers(2, 7))).astype(
            np.int32
        )
        t, s = codes[:, :, None], codes[:, None, :]
        expected = (t[2] != s[2]) & (t[3] == s[3])
        for c, op in enumerate(operators):
            if op:
                expected &= compare[op](t[c], s[c])
        found = violations.by_sweep(violations.sides(codes, asked, nulls_equal=True), 100)
        # Every row t that has a partner is told, with one of them.
        assert sorted(found[:, 0].tolist()) == np.flatnonzero(expected.any(axis=1)).tolist()
        assert expected[found[:, 0], found[:, 1]].all()
        both += expected.any()
    assert 0 < both < examples(1_000)
