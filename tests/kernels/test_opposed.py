"""Rows that go with others, counted and paired off, against all pairs."""

from __future__ import annotations

from itertools import product

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import opposed
from holdfast.kernels.violations import Sides
from tests.strategies import examples

NUMBERS = st.integers(0, 3)
ROWS = st.lists(st.tuples(NUMBERS, NUMBERS, NUMBERS), max_size=7)


def sides(rows: list[tuple[int, int, int]]) -> Sides:
    """Pairs of different rows of one group, t at most s in one number, and unequal in another."""
    cells = np.array(rows, np.int32).reshape(-1, 3)
    numbers = np.arange(len(rows))
    differ = np.stack([cells[:, 2], numbers.astype(np.int32)])
    group, low = cells[:, 0].astype(np.int64), cells[:, 1][None]
    return Sides(numbers, numbers, group, group, 4, low, low, differ, differ)


def meets(t: tuple[int, int, int], s: tuple[int, int, int]) -> bool:
    return t[0] == s[0] and t[1] <= s[1] and t[2] != s[2]


@given(ROWS)
@settings(max_examples=examples(40))
def test_all_pairs(rows: list[tuple[int, int, int]]) -> None:
    form = opposed.form(sides(rows))
    pairs = [(t, s) for t, s in product(range(len(rows)), repeat=2) if meets(rows[t], rows[s])]
    counted = opposed.partners(form.t_side, form.s_side, len(rows))
    assert dict(zip(form.t.tolist(), counted.tolist(), strict=True)) == {
        row: sum(t == row for t, _ in pairs) for row in range(len(rows))
    }
    back = opposed.partners(form.s_side, form.t_side, 1)
    assert dict(zip(form.s.tolist(), back.tolist(), strict=True)) == {
        row: min(1, sum(s == row for _, s in pairs)) for row in range(len(rows))
    }
    assert form.work == sum(a[0] == b[0] for a, b in product(rows, repeat=2))
    free = np.ones(len(rows), np.bool_)
    matched = opposed.match(form.t_side, form.s_side, free)
    assert 2 * matched == int((~free).sum())
    assert not any(free[t] and free[s] for t, s in pairs)
    cover = ~free
    assert matched <= opposed.pruned(form, cover) == int(cover.sum())
    assert all(cover[t] or cover[s] for t, s in pairs)
    for row in np.flatnonzero(cover):
        assert any(row in pair and not all(cover[[*pair]]) for pair in pairs)
