"""Sums over counted tuples, side by side (:mod:`holdfast.tasks.tuples`).

Entries are those of :mod:`holdfast.kernels.values`; their attribute is the number of a side. Some
sides are *within* another: their tuples are a tuple of that one, the *lhs*, and one more value, and
have its first word. So a group of rows that agree on a lhs is a stretch of entries with one first
word, and what it explains of a rhs follows from its entries (:mod:`holdfast.kernels.explained`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.explained import FRACTION
from holdfast.kernels.jit import kernel

TUPLES, ROWS, PAIRS, EXPLAINED, FRACTIONS, MAJORITY = range(6)
"""The sums of a side: its tuples; the rows that have one; pairs of rows that have the same; and
within a lhs the explained rows, whole and in fractions, and the rows with the most frequent value
of their group."""


def side_sums(entries: U64, lhs: I64, nulls: Flags) -> tuple[I64, bool]:
    """The sums of all sides, and whether two groups have one first word, so that what they explain
    is not told apart. ``lhs`` is by side the number of its lhs, or -1; ``nulls`` whether a null is
    a value of a side: otherwise rows without a tuple within a lhs each have a value of their own.

    >>> entries = np.array([[5, 1, 0, 3], [5, 7, 1, 2], [5, 8, 1, 1]], np.uint64)
    >>> sums, merged = side_sums(entries, np.array([-1, 0]), np.array([True, True]))
    >>> sums.tolist(), merged
    ([[1, 3, 3, 0, 0, 0], [2, 3, 1, 1, 2863311530, 2]], False)
    """
    sums = np.zeros((len(lhs), 6), np.int64)
    within = np.argsort(lhs, kind="stable")
    starts = np.searchsorted(lhs[within], np.arange(len(lhs) + 1))
    merged = _side_sums(
        entries, lhs, nulls, within, starts, np.zeros((4, len(lhs)), np.int64), sums
    )
    return sums, bool(merged)


@kernel
def _side_sums(
    entries: Any, lhs: Any, nulls: Any, within: Any, starts: Any, group: Any, sums: Any
) -> bool:
    sizes, squares, counted, most = group[0], group[1], group[2], group[3]
    merged = False
    i = 0
    while i < entries.shape[0]:
        first = i
        while i < entries.shape[0] and entries[i, 0] == entries[first, 0]:
            side, count = np.int64(entries[i, 2]), np.int64(entries[i, 3])
            sums[side, TUPLES] += 1
            sums[side, ROWS] += count
            sums[side, PAIRS] += count * (count - 1) // 2
            if lhs[side] >= 0:
                squares[side] += count * count
                counted[side] += count
                most[side] = max(most[side], count)
            elif starts[side] < starts[side + 1]:
                merged = merged or sizes[side] > 0
                sizes[side] += count
            i += 1
        for k in range(first, i):
            side = np.int64(entries[k, 2])
            size = sizes[side]
            if size == 0:
                continue
            sizes[side] = 0
            for place in range(starts[side], starts[side + 1]):
                rhs = within[place]
                alone = np.int64(0) if nulls[rhs] else size - counted[rhs]
                total = squares[rhs] + alone
                sums[rhs, EXPLAINED] += total // size
                sums[rhs, FRACTIONS] += ((total % size) << np.int64(FRACTION)) // size
                sums[rhs, MAJORITY] += max(most[rhs], min(alone, np.int64(1)))
                squares[rhs], counted[rhs], most[rhs] = 0, 0, 0
    return merged
