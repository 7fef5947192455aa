"""Two bags of rows: which rows of each have no equal in the other."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels.unmatched import unmatched
from tests.strategies import examples

CELLS = st.integers(0, 2)
BAGS = st.lists(st.tuples(CELLS, CELLS), max_size=12)


@settings(max_examples=examples(200), deadline=None)
@given(one=BAGS, two=BAGS, same_codes=st.sampled_from([1, 2, 9]))
def test_equals_a_difference_of_bags(
    one: list[tuple[int, int]], two: list[tuple[int, int]], same_codes: int
) -> None:
    # Different rows may have one code, as hashes do.
    def sides(rows: list[tuple[int, int]]) -> tuple[np.ndarray, np.ndarray]:
        rows = sorted(rows, key=lambda row: (3 * row[0] + row[1]) // same_codes)
        words = np.array(rows, np.uint64).reshape(-1, 2)
        return ((3 * words[:, 0] + words[:, 1]) // same_codes).astype(np.int64), words

    (codes, rows), (others, other_rows) = sides(one), sides(two)
    left, other_left = np.ones(len(one), np.bool_), np.ones(len(two), np.bool_)
    unmatched(codes, rows, others, other_rows, left, other_left)
    assert Counter(map(tuple, rows[left].tolist())) == Counter(one) - Counter(two)
    assert Counter(map(tuple, other_rows[other_left].tolist())) == Counter(two) - Counter(one)
