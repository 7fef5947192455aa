"""How nearly one column rises, or falls, with another, perhaps among rows that agree in a third.

Rows violate such a rule in pairs. The most rows that do not are a *chain*: with the rows in the
order of the one column, a longest stretch of them, not necessarily neighbours, in which the other
one never falls. So the rows that would have to go are counted exactly, in n log n steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64
from holdfast.kernels.jit import kernel


class OrderCounts(NamedTuple):
    """Sums over groups of rows."""

    removal: int  # rows that would have to go
    with_order: int  # pairs of rows that differ in both columns, as the rule wants it
    against: int  # … and the other way round
    varied: int  # rows that differ from most of their group; in the column where these are fewer


def order_counts(group: I32, lhs: I32, rhs: I32) -> OrderCounts:
    """The counts of a rule: within each group, the rhs never falls when the lhs rises.

    >>> order_counts(*np.array([[0, 0, 0, 0], [1, 2, 3, 4], [5, 6, 2, 6]], np.int32))
    OrderCounts(removal=1, with_order=3, against=2, varied=2)
    """
    group, lhs, rhs = (each.astype(np.int64) for each in (group, lhs, rhs))
    one = _sorted(group, lhs, rhs)
    two = _sorted(group, rhs, lhs)
    size = int(rhs.max(initial=0)) + 1
    with np.errstate(over="ignore"):
        removal, rising, falling, lhs_varied, rhs_varied = _order_counts(
            *one, two[1], np.zeros(size + 1, np.int64), np.empty(len(rhs), np.int64)
        )
    return OrderCounts(removal, rising, falling, min(lhs_varied, rhs_varied))


def _sorted(first: I64, second: I64, third: I64) -> tuple[I64, I64, I64]:
    """Triples of small numbers in order."""
    sizes = [int(each.max(initial=0)) + 1 for each in (first, second, third)]
    if sizes[0] * sizes[1] * sizes[2] >= 1 << 63:
        order = np.lexsort((third, second, first))
        return first[order], second[order], third[order]
    keys = np.sort((first * sizes[1] + second) * sizes[2] + third)
    rest, last = np.divmod(keys, sizes[2])
    return *np.divmod(rest, sizes[1]), last


@kernel
def _order_counts(group: Any, lhs: Any, rhs: Any, sorted_rhs: Any, tree: Any, tails: Any) -> Any:
    """Rows by group, lhs and rhs; and the rhs of rows by group and rhs. ``tree`` has the number
    of rows of a group by their rhs, so that those up to one are added up quickly."""
    removal, rising, falling, lhs_varied, rhs_varied = 0, 0, 0, 0, 0
    start = 0
    while start < group.size:
        stop = start
        while stop < group.size and group[stop] == group[start]:
            stop += 1
        length, low, lhs_most, rhs_most, same = 0, start, 0, 0, 0
        while low < stop:
            high = low
            while high < stop and lhs[high] == lhs[low]:
                below, up_to = _up_to(tree, rhs[high]), _up_to(tree, rhs[high] + 1)
                rising += below
                falling += low - start - up_to
                at, end = 0, length
                while at < end:
                    middle = (at + end) // 2
                    if tails[middle] <= rhs[high]:
                        at = middle + 1
                    else:
                        end = middle
                tails[at] = rhs[high]
                length = max(length, at + 1)
                high += 1
            for row in range(low, high):
                _add(tree, rhs[row], 1)
            lhs_most = max(lhs_most, high - low)
            low = high
        for row in range(start, stop):
            _add(tree, rhs[row], -1)
            same = same + 1 if row > start and sorted_rhs[row] == sorted_rhs[row - 1] else 1
            rhs_most = max(rhs_most, same)
        removal += stop - start - length
        lhs_varied += stop - start - lhs_most
        rhs_varied += stop - start - rhs_most
        start = stop
    return removal, rising, falling, lhs_varied, rhs_varied


@kernel
def _up_to(tree: Any, value: int) -> int:
    """How many rows have less than a value."""
    total = 0
    while value > 0:
        total += tree[value]
        value -= value & -value
    return total


@kernel
def _add(tree: Any, value: int, number: int) -> None:
    value += 1
    while value < tree.size:
        tree[value] += number
        value += value & -value
