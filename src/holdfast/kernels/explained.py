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

FRACTION = 32
"""Fractions of rows are counted in units of two to the power of minus this."""


def explained(starts: I64, right: U64, most: float) -> tuple[int, int, int] | None:
    """The explained rows, whole and in fractions, and the rows that have the most frequent value on
    the right of their group; None: more than ``most`` rows are not explained.

    ``starts`` are where groups start, and the number of rows at the end; ``right`` the codes on the
    right ``(n, 2)``, group by group.

    >>> explained(np.array([0, 3]), np.array([[7, 7], [7, 7], [9, 9]], np.uint64), 3.0)
    (1, 2863311530, 2)
    """
    largest = int(np.diff(starts).max(initial=1))
    slots = 4
    while slots < 2 * largest:
        slots *= 2
    table = np.empty((slots, 2), np.uint64)
    numbers = np.zeros((slots, 2), np.int64)  # the group that used a slot last, and its rows there
    out = np.zeros(3, np.int64)
    complete = _explained(starts, right, most, table, numbers, out)
    return (int(out[0]), int(out[1]), int(out[2])) if complete else None


@kernel
def _explained(starts: Any, right: Any, most: float, table: Any, numbers: Any, out: Any) -> bool:
    last = table.shape[0] - 1
    unexplained = 0.0
    for group in range(starts.size - 1):
        low, high = starts[group], starts[group + 1]
        size = high - low
        first, second = right[low, 0], right[low, 1]
        alike = low + 1
        while alike < high and right[alike, 0] == first and right[alike, 1] == second:
            alike += 1
        if alike == high:
            out[0] += size
            out[2] += size
            continue
        largest, squares = np.int64(0), np.int64(0)
        for row in range(low, high):
            first, second = right[row, 0], right[row, 1]
            slot = np.int64((first ^ (first >> np.uint64(32))) & np.uint64(last))
            while numbers[slot, 0] == group + 1 and (
                table[slot, 0] != first or table[slot, 1] != second
            ):
                slot = (slot + 1) & last
            if numbers[slot, 0] != group + 1:
                numbers[slot, 0], numbers[slot, 1] = group + 1, 0
                table[slot, 0], table[slot, 1] = first, second
            # (k + 1)² - k² more for one more row of a value.
            squares += 2 * numbers[slot, 1] + 1
            numbers[slot, 1] += 1
            largest = max(largest, numbers[slot, 1])
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
