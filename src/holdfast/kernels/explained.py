"""How much of a column the groups of rows explain that agree on other columns.

In a group of c rows of which c(a) have the value a on the right, two rows that are drawn with
replacement agree with probability Σ c(a)²/c². The sum over all groups of Σ c(a)²/c is the number of
*explained* rows: it is n · pdep (Parciak et al., "Measuring Approximate Functional Dependencies",
ICDE 2024). It is summed as integers, whole rows and fractions of 2⁻³² rows per group, so that it
does not depend on the order of the groups or on who counts which of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.jit import kernel
from holdfast.kernels.numbering import Grouped, Numbers

FRACTION = 32
"""Fractions of rows are counted in units of two to the power of minus this."""


def explained(
    groups: Grouped, right: Numbers, weights: I64 | None, most: float
) -> tuple[int, int, int] | None:
    """The explained rows, whole and in fractions, and the rows that have the most frequent value on
    the right of their group; None: more than ``most`` rows are not explained. Each row stands for
    one, or for as many as its weight says.

    >>> one_group = Grouped(np.array([0, 1, 2]), np.array([0, 3]), np.array([3]))
    >>> explained(one_group, Numbers(np.array([0, 0, 1]), 2), None, 3.0)
    (1, 2863311530, 2)
    """
    counts = np.zeros(right.count, np.int64)
    out = np.zeros(3, np.int64)
    none = np.empty(0, np.int64)
    complete = _explained(
        groups, right.of_rows, none if weights is None else weights, most, counts, out
    )
    return (int(out[0]), int(out[1]), int(out[2])) if complete else None


@kernel
def _explained(groups: Any, right: Any, weights: Any, most: float, counts: Any, out: Any) -> bool:
    """``counts`` are zero, by number on the right, between groups."""
    order, starts, sizes = groups
    unexplained = 0.0
    for group in range(sizes.size):
        low, high, size = starts[group], starts[group + 1], sizes[group]
        first = right[order[low]]
        alike = low + 1
        while alike < high and right[order[alike]] == first:
            alike += 1
        if alike == high:
            out[0] += size
            out[2] += size
            continue
        for at in range(low, high):
            counts[right[order[at]]] += weights[order[at]] if weights.size else np.int64(1)
        largest, squares = np.int64(0), np.int64(0)
        for at in range(low, high):
            number = right[order[at]]
            count = counts[number]
            squares += count * count
            largest = max(largest, count)
            counts[number] = 0
        rest = squares % size
        out[0] += squares // size
        out[1] += (rest << np.int64(32)) // size
        out[2] += largest
        unexplained += size - squares / size
        if unexplained > most:
            return False
    return True


def disagreeing(starts: I64, right: U64) -> tuple[I64, I64, I64]:
    """The rows that differ from most of their group, where more than half of it, and two rows at
    least, agree on the right; of each a row of that majority, and how many rows that has.

    >>> disagreeing(np.array([0, 3]), np.array([[7, 7], [9, 9], [7, 7]], np.uint64))
    (array([1]), array([2]), array([2]))
    """
    majority = np.full(len(right), -1, np.int64)
    counts = np.zeros(len(right), np.int64)
    _disagreeing(starts, right, majority, counts)
    rows = np.flatnonzero(majority >= 0)
    return rows, majority[rows], counts[rows]


@kernel
def _disagreeing(starts: Any, right: Any, majority: Any, counts: Any) -> None:
    for group in range(starts.size - 1):
        low, high = starts[group], starts[group + 1]
        # What has the majority is what is left when rows that differ are paired off.
        leading, lead = low, 0
        for row in range(low, high):
            if lead == 0:
                leading, lead = row, 1
            elif right[row, 0] == right[leading, 0] and right[row, 1] == right[leading, 1]:
                lead += 1
            else:
                lead -= 1
        count = 0
        for row in range(low, high):
            count += right[row, 0] == right[leading, 0] and right[row, 1] == right[leading, 1]
        if count < 2 or 2 * count <= high - low or count == high - low:
            continue
        for row in range(low, high):
            if right[row, 0] != right[leading, 0] or right[row, 1] != right[leading, 1]:
                majority[row] = leading
                counts[row] = count
