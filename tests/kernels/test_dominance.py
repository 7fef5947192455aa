"""Pairs counted without comparing them, and rows that do not go together, against all pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import dominance, opposed
from holdfast.kernels.violations import Sides
from tests.strategies import examples

NUMBERS = st.integers(0, 3)
ROWS = st.lists(st.tuples(*[NUMBERS] * 5), max_size=8)


@st.composite
def sides(draw: st.DrawFn) -> Sides:
    """Two different sides, with some inequalities and differences."""
    t, s = (np.array(draw(ROWS), np.int32).reshape(-1, 5) for _ in range(2))
    inequalities, differences = draw(st.integers(0, 2)), draw(st.integers(0, 2))
    return Sides(
        np.arange(len(t)), np.arange(len(s)),
        t[:, 0].astype(np.int64), s[:, 0].astype(np.int64), 4,
        t[:, 1 : 1 + inequalities].T, s[:, 1 : 1 + inequalities].T,
        t[:, 3 : 3 + differences].T, s[:, 3 : 3 + differences].T,
    )  # fmt: skip


@given(sides())
@settings(max_examples=examples(60))
def test_as_many_partners_as_comparing_finds(asked: Sides) -> None:
    form = opposed.form(asked)
    of_t, of_s = dominance.partners(asked)
    slow_t = opposed.partners(form.t_side, form.s_side, 1_000)
    slow_s = opposed.partners(form.s_side, form.t_side, 1_000)
    assert of_t[form.t].tolist() == slow_t.tolist()
    assert of_s[form.s].tolist() == slow_s.tolist()


@given(
    st.lists(st.tuples(st.integers(0, 1), NUMBERS, NUMBERS), max_size=7),
    st.tuples(st.booleans(), st.booleans()),
    st.integers(1, 2),
)
@settings(max_examples=examples(80))
def test_rows_of_which_no_two_go_together(
    rows: list[tuple[int, int, int]], strict: tuple[bool, bool], inequalities: int
) -> None:
    cells = np.array(rows, np.int32).reshape(-1, 3)
    numbers = np.arange(len(rows))
    low = cells[:, 1 : 1 + inequalities].T
    steps = np.array(strict[:inequalities], np.int32)[:, None]
    # Without a strict one, a row would go with itself.
    apart = np.empty((0, len(rows)), np.int32) if any(strict[:inequalities]) else numbers[None]
    group = cells[:, 0].astype(np.int64)
    differ = apart.astype(np.int32)
    asked = Sides(numbers, numbers, group, group, 2, low, low - steps, differ, differ)

    def meet(t: int, s: int) -> bool:
        return (
            t != s
            and rows[t][0] == rows[s][0]
            and all(low[k, t] + strict[k] <= low[k, s] for k in range(inequalities))
        )

    most = max(
        size
        for size in range(len(rows) + 1)
        for some in combinations(range(len(rows)), size)
        if not any(meet(t, s) or meet(s, t) for t, s in combinations(some, 2))
    )
    assert dominance.most_compatible(asked) == most
