"""Pairs inside groups of equal rows, against a comparison of all pairs in plain Python."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import bitsets, comparisons, groups
from holdfast.model.comparisons import Space
from tests.kernels.test_violations import Row, codes_of, evidence_of, spaces, tables
from tests.strategies import examples


@st.composite
def cases(draw: st.DrawFn) -> tuple[Space, list[Row], list[int], bool]:
    columns = draw(st.integers(1, 4))
    equal = draw(st.lists(st.integers(0, columns - 1), unique=True))
    return draw(spaces(columns)), draw(tables(columns, 14)), equal, draw(st.booleans())


@settings(max_examples=examples(300), deadline=None)
@given(
    case=cases(),
    parts=st.integers(1, 4),
    large=st.sampled_from([1, 2, 4, 1_024]),
    at_once=st.sampled_from([1, 3, 1 << 18]),
)
def test_all_pairs_inside_groups(
    case: tuple[Space, list[Row], list[int], bool], parts: int, large: int, at_once: int
) -> None:
    space, rows, equal, nulls_equal = case
    codes = codes_of(rows, space.columns)
    layout = comparisons.layout_of(space.comparisons)
    alike = [
        (i, j)
        for i, j in combinations(range(len(rows)), 2)
        if all(rows[i][c] == rows[j][c] and (rows[i][c] is not None or nulls_equal) for c in equal)
    ]
    grouped = groups.groups(codes, equal, nulls_equal)
    assert grouped.pairs == len(alike)
    shown: set[frozenset[int]] = set()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(groups, "LARGE", large)
        patched.setattr(groups, "AT_ONCE", at_once)
        for number in range(parts):
            part = grouped.part(number, parts)
            words, pairs = groups.words_inside(layout, codes, grouped, part, nulls_equal)
            masks = comparisons.evidence(words, layout, space)
            for mask, (i, j) in zip(bitsets.to_columns(masks), pairs.tolist(), strict=True):
                assert (min(i, j), max(i, j)) in alike
                assert set(mask) == evidence_of(rows[i], rows[j], space, nulls_equal)
                shown |= {frozenset(mask), frozenset(space.mirrored(mask))}
    expected = {evidence_of(rows[i], rows[j], space, nulls_equal) for i, j in alike}
    expected |= {evidence_of(rows[j], rows[i], space, nulls_equal) for i, j in alike}
    assert shown == expected


def test_parts_have_about_as_many_pairs() -> None:
    codes: Any = np.repeat(np.arange(10, dtype=np.int32), 100)[None, :]
    grouped = groups.groups(codes, [0], nulls_equal=True)
    cuts = [grouped.part(number, 4) for number in range(4)]
    assert [start for start, _ in cuts] == [0, *(stop for _, stop in cuts[:-1])]
    assert cuts[-1][1] == 1_000
    assert all(200 < stop - start < 300 for start, stop in cuts)
