"""The hash table of rows against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import hashing
from tests.strategies import examples

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

WORD = st.integers(0, 3) | st.integers(0, 2**64 - 1)


@given(st.integers(1, 3).flatmap(lambda width: st.lists(st.tuples(*[WORD] * width), max_size=40)))
@settings(deadline=None, max_examples=examples(60))
def test_every_row_has_one_slot(rows: list[tuple[int, ...]]) -> None:
    """Also when there is but one slot more than there are rows, so that most of them collide."""
    width = len(rows[0]) if rows else 1
    numbers: dict[tuple[int, ...], int] = {}
    # A last column that is none of the table's business.
    kept = np.full((len(rows), width + 1), 77, np.uint64)
    slots = np.full(1 << (len({*rows}) + 1).bit_length(), -1, np.int32)
    for row in rows:
        words = np.array(row, np.uint64)
        at = hashing.slot(words, kept, slots)
        assert slots[at] == numbers.get(row, -1)
        if row not in numbers:
            kept[len(numbers), :width] = words
            slots[at] = numbers[row] = len(numbers)
    for row, number in numbers.items():
        assert slots[hashing.slot(np.array(row, np.uint64), kept, slots)] == number


@pytest.mark.parametrize("step", [1, 1 << 20, 1 << 32, 1 << 44, 1 << 52])
def test_rows_that_differ_in_few_bits_spread(step: int) -> None:
    """Wherever the bits are: a table is no slower for regular data than for random data."""
    rows = np.arange(1 << 12, dtype=np.uint64) * np.uint64(step)
    for block in (rows[:, None], np.stack([np.zeros_like(rows), rows], axis=1)):
        slots = {int(hashing.row_hash(row)) % (1 << 14) for row in block}
        assert len(slots) > 2_800, "random hashes take about 3,600 of the slots"
