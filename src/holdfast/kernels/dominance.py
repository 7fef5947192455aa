"""Pairs of rows that at most two inequalities ask for, counted without comparing them, and the
largest set of rows of which no two go with each other.

What is asked is in the form of :class:`holdfast.kernels.violations.Sides`. A row t goes with the
rows s of its group that are at least as large in both numbers: those are counted by going through
the rows in the order of the first number, with a tree of sums over the second. Where rows have to
differ in something, those that agree in it are subtracted.

Rows of which no two go with each other are, in the order of the first number, a sequence that never
rises in the second: the longest one is found by bisection, so that the fewest rows that have to go
for an order rule are known.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np

from holdfast.kernels.arrays import I32, I64
from holdfast.kernels.jit import kernel
from holdfast.kernels.violations import Sides

INEQUALITIES = 2
DIFFERENCES = 2
"""So many can be counted: every difference doubles the work."""


def is_countable(sides: Sides) -> bool:
    """Whether pairs can be counted here."""
    return len(sides.low) <= INEQUALITIES and len(sides.t_value) <= DIFFERENCES


def partners(sides: Sides) -> tuple[I64, I64]:
    """How many rows s go with each row t, and how many rows t with each row s."""
    low, high = _two(sides.low, len(sides.t)), _two(sides.high, len(sides.s))
    of_t, of_s = np.zeros(len(sides.t), np.int64), np.zeros(len(sides.s), np.int64)
    for size in range(len(sides.t_value) + 1):
        for same in combinations(range(len(sides.t_value)), size):
            keys = _joined(sides, same)
            sign = -1 if size % 2 else 1
            of_t += sign * _dominating(keys[0], low, keys[1], high)
            of_s += sign * _dominating(keys[1], -high, keys[0], -low)
    return of_t, of_s


def _two(numbers: I32, rows: int) -> I64:
    """Two numbers of each row; those that are not asked for are all the same."""
    both = np.zeros((INEQUALITIES, rows), np.int64)
    both[: len(numbers)] = numbers
    return both


def _joined(sides: Sides, same: tuple[int, ...]) -> tuple[I64, I64]:
    """Groups of rows that agree in some of what has to differ, too."""
    keys = np.concatenate([sides.t_key, sides.s_key])
    for place in same:
        values = np.concatenate([sides.t_value[place], sides.s_value[place]])
        both = np.stack([keys, values.astype(np.int64)], axis=1)
        keys = np.unique(both, axis=0, return_inverse=True)[1].reshape(-1).astype(np.int64)
    return keys[: len(sides.t)], keys[len(sides.t) :]


def _dominating(key: I64, low: I64, other_key: I64, high: I64) -> I64:
    """How many others of its group are at least as large as each row, in both numbers."""
    order = np.lexsort((-low[0], key))
    other_order = np.lexsort((-high[0], other_key))
    values, place = np.unique(high[1], return_inverse=True)
    out = np.zeros(len(key), np.int64)
    _sweep(
        (order, key, low[0], np.searchsorted(values, low[1])),
        (other_order, other_key, high[0], place.reshape(-1)),
        np.zeros(len(values) + 1, np.int64),
        out,
    )
    return out


@kernel
def _sweep(rows: Any, others: Any, tree: Any, out: Any) -> None:
    """Rows in the order of their groups, the largest in the first number first."""
    order, key, first, second = rows
    other_order, other_key, other_first, other_second = others
    start = j = 0
    for i in range(order.size):
        row = order[i]
        if i > 0 and key[row] != key[order[i - 1]]:
            while start < j:
                _add(tree, other_second[other_order[start]], -1)
                start += 1
        while j < other_order.size and other_key[other_order[j]] < key[row]:
            j += 1
            start = j
        while j < other_order.size:
            other = other_order[j]
            if other_key[other] != key[row] or other_first[other] < first[row]:
                break
            _add(tree, other_second[other], 1)
            j += 1
        # All so far, less those that are smaller in the second number.
        out[row] = (j - start) - _sum(tree, second[row])


@kernel
def _add(tree: Any, place: int, number: int) -> None:
    at = place + 1
    while at < tree.size:
        tree[at] += number
        at += at & -at


@kernel
def _sum(tree: Any, places: int) -> int:
    """Of the first so many places."""
    total = 0
    at = places
    while at > 0:
        total += tree[at]
        at -= at & -at
    return total


def most_compatible(sides: Sides) -> int | None:
    """The most rows of which no two go with each other, of those that may be t or s; None where the
    rows t are not the rows s, or more is asked than that both numbers rise."""
    strict = _strict(sides)
    if strict is None:
        return None
    one, two = _two(sides.low, len(sides.t))
    if strict == (True, False):
        one, two, strict = two, one, (False, True)
    # Where ties of the first number are none of the second, at most one of them, or equal ones.
    within = -two if strict[0] else two
    order = np.lexsort((within, one, sides.t_key))
    tails = np.empty(len(order), np.int64)
    return int(_longest(sides.t_key[order], -two[order], strict[1], tails))


def _strict(sides: Sides) -> tuple[bool, bool] | None:
    """Whether the numbers of s have to be larger, or as large; None: something else is asked."""
    if not 1 <= len(sides.low) <= INEQUALITIES:
        return None
    if not (np.array_equal(sides.t, sides.s) and np.array_equal(sides.t_key, sides.s_key)):
        return None
    identity = sides.t.astype(np.int32)
    if not all(
        np.array_equal(t, identity) and np.array_equal(s, identity)
        for t, s in zip(sides.t_value, sides.s_value, strict=True)
    ):
        return None
    strict = [False, False]
    for place, (low, high) in enumerate(zip(sides.low, sides.high, strict=True)):
        if not len(low):
            continue
        steps = np.unique(low - high)
        if len(steps) > 1 or steps[0] not in (0, 1):
            return None
        strict[place] = bool(steps[0])
    return strict[0], strict[1]


@kernel
def _longest(key: Any, values: Any, with_ties: bool, tails: Any) -> int:
    """The longest rising subsequences of all groups together, with ties or without."""
    total = length = 0
    for i in range(key.size):
        if i > 0 and key[i] != key[i - 1]:
            total += length
            length = 0
        low, high = 0, length
        while low < high:
            middle = (low + high) // 2
            before = tails[middle] <= values[i] if with_ties else tails[middle] < values[i]
            if before:
                low = middle + 1
            else:
                high = middle
        tails[low] = values[i]
        length = max(length, low + 1)
    return total + length
