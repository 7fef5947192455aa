"""Signatures against plain Python: no row is dismissed that agrees on what is wanted."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import evidence, signatures
from holdfast.kernels.checksums import in_memory
from holdfast.kernels.index import Ranges
from holdfast.kernels.signatures import agreeing, cell_bits, wanted
from tests.kernels.blocks import Cells, agree, block, tables
from tests.strategies import examples

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")


def narrowed(
    rows: Cells, batch: Cells, widths: list[int], nulls_equal: bool, sets: list[set[int]]
) -> list[list[int]]:
    """Of all rows those that are left for each row of a batch."""
    columns = len(widths)
    shape = evidence.shape(widths, nulls_equal)
    stored, own = (signatures.signatures(block(each, widths), shape) for each in (rows, batch))
    stored.setflags(write=False)  # as maps are
    lhs = np.array([[c in each for c in range(columns)] for each in sets], np.bool_)
    lhs = lhs.reshape(-1, columns)
    lo = np.zeros(len(batch), np.int64)
    every = Ranges(lo, lo + len(rows), np.arange(len(rows), dtype=np.int32))
    order = range(columns - 1, -1, -1)
    left = agreeing(every, own, stored, in_memory(), wanted(lhs, order))
    return [left.positions[a:b].tolist() for a, b in zip(left.lo, left.hi, strict=True)]


@given(table=tables(), data=st.data())
@settings(deadline=None, max_examples=examples(100))
def test_rows_that_agree_are_left(
    table: tuple[Cells, list[int], bool], data: st.DataObject
) -> None:
    cells, widths, nulls_equal = table
    rows, batch = cells[: len(cells) // 2], cells[len(cells) // 2 :]
    column = st.integers(0, len(widths) - 1)
    sets = data.draw(st.lists(st.sets(column, min_size=1, max_size=4), max_size=4))
    left = narrowed(rows, batch, widths, nulls_equal, sets)
    for row, found in zip(batch, left, strict=True):
        assert found == sorted({*found})
        for position, other in enumerate(rows):
            mask = agree(row, other, nulls_equal)
            if any(all(mask >> c & 1 for c in each) for each in sets):
                assert position in found


def test_others_are_dismissed() -> None:
    """Nearly all of those that differ in a wanted column, and of more than are looked at."""
    dice = np.random.default_rng(5)
    for columns in (2, 9, 16, 30):
        rows: Cells = [tuple(map(int, row)) for row in dice.integers(0, 1 << 60, (2_000, columns))]
        batch = [(rows[7][0], *rows[8][1:])]
        (left,) = narrowed(rows, batch, [1] * columns, True, [{0, 1}, {0, columns - 1}])
        assert len(left) <= 2 * len(rows) >> cell_bits(columns)
        (left,) = narrowed(
            rows, batch, [1] * columns, True, [{*range(columns)}, {*range(1, columns)}]
        )
        assert 8 in left
        assert len(left) < 20


def test_a_signature_has_room_for_all_columns_or_the_first_ones() -> None:
    assert [cell_bits(columns) for columns in (0, 1, 8, 16, 17, 33, 64, 65, 2_000)] == [
        *(8, 8, 8, 4, 3, 1, 1, 1, 1)
    ]
