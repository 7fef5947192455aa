"""Rows numbered by what they agree on: hashes of cells, and numbers for those that are equal.

The hash of a cell depends on its column, so the sum of the hashes of some columns is one of the
tuple. Where nulls differ, the hash of a null depends on its row. One hash of 64 bits does for
estimates; what has to be exact takes two, and counts with the numbers that they get.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64, U64
from holdfast.kernels.bitsets import copy_row
from holdfast.kernels.hashing import mix
from holdfast.kernels.jit import allocating, kernel

_ODD = np.uint64(0x9E3779B97F4A7C15)

_DIRECT = 4
"""Pairs of numbers for each row up to which each has a place of its own in a table."""

_SLOTS = 1 << 15
"""Rows of words that are counted at a time."""


class Numbers(NamedTuple):
    """Rows with numbers from zero on, in the order in which the first of each comes; equal ones
    where rows agree."""

    of_rows: I32
    count: int  # of different ones


class Grouped(NamedTuple):
    """Rows in the order of their groups."""

    order: I32
    starts: I64  # where each group starts, and the number of rows at the end
    sizes: I64  # of groups, in rows, or in what rows stand for


@kernel
def cell_hashes(words: Any, positions: Any, ids: Any, columns: Any, shape: Any, out: Any) -> None:
    """The hashes ``(n, columns, rows)`` of the cells of the rows at some positions, of each so
    many."""
    values = shape.owner.size
    for i in range(positions.size):
        row = words[positions[i]]
        for k in range(columns.size):
            column = columns[k]
            is_null = row[values + (column >> 6)] >> np.uint64(column & 63) & np.uint64(1)
            for seed in range(out.shape[0]):
                h = np.uint64((seed << 32) + column + 1) * _ODD
                if is_null:
                    h = mix(mix(mix(~h)))  # of no natural value
                    if not shape.nulls_equal:
                        h = mix(h ^ mix(np.uint64(ids[i]) * _ODD))
                else:
                    for v in range(shape.first[column], shape.first[column + 1]):
                        h = mix(h ^ row[v])
                out[seed, k, i] = h


def numbered(first: U64, second: U64) -> Numbers:
    """Rows by two hashes of each.

    >>> codes = np.array([5, 3, 5], np.uint64)
    >>> numbered(codes, codes)
    Numbers(of_rows=array([0, 1, 0], dtype=int32), count=2)
    """
    numbers = np.empty(len(first), np.int32)
    slots, marks = _slots(len(first)), np.empty(_size(len(first)), np.uint64)
    return Numbers(numbers, int(_number(first, second, slots, marks, numbers)))


def numbered_pairs(one: Numbers, two: Numbers) -> Numbers:
    """Rows by two numbers of each.

    >>> one, two = Numbers(np.array([0, 1, 0]), 2), Numbers(np.array([0, 0, 0]), 1)
    >>> numbered_pairs(one, two)
    Numbers(of_rows=array([0, 1, 0], dtype=int32), count=2)
    """
    rows = len(one.of_rows)
    numbers = np.empty(rows, np.int32)
    if one.count * two.count <= _DIRECT * rows:
        slots = np.full(one.count * two.count, -1, np.int32)
        count = _number_directly(one.of_rows, two.of_rows, two.count, slots, numbers)
    else:
        slots, marks = _slots(rows), np.empty(_size(rows), np.int64)
        count = _number_pairs(one.of_rows, two.of_rows, two.count, slots, marks, numbers)
    return Numbers(numbers, int(count))


def grouped(numbers: Numbers, weights: I64 | None = None) -> Grouped:
    """Rows by group; each stands for one row, or for as many as its weight says.

    >>> grouped(Numbers(np.array([0, 1, 0]), 2)).order
    array([0, 2, 1], dtype=int32)
    """
    order = np.empty(len(numbers.of_rows), np.int32)
    ends = np.zeros(numbers.count + 1, np.int64)
    _group(numbers.of_rows, ends, order)
    if weights is None:
        return Grouped(order, ends, np.diff(ends))
    sizes = np.zeros(numbers.count, np.int64)
    _add_up(numbers.of_rows, weights, sizes)
    return Grouped(order, ends, sizes)


def tallied(words: U64) -> U64:
    """Rows of words ``(n, w)``, with how many of them each stands for as one word more. Those that
    recur soon are counted together; others come out more than once.

    >>> tallied(np.array([[5, 6], [5, 6]], np.uint64))
    array([[5, 6, 2]], dtype=uint64)
    """
    out = np.empty((len(words), words.shape[1] + 1), np.uint64)
    return out[: _tally(words, np.zeros((_SLOTS, out.shape[1]), np.uint64), out)]


def divided(words: U64, cuts: U64) -> U64:
    """Rows of words ``(n, w)`` column by column, those first whose first word is below the first
    cut, then those up to the next.

    >>> divided(np.array([[9, 1], [2, 2], [8, 3]], np.uint64), np.array([5], np.uint64))
    array([[2, 9, 8],
           [2, 1, 3]], dtype=uint64)
    """
    out = np.empty(words.shape[::-1], np.uint64)
    _divide(words, cuts, np.zeros(len(cuts) + 1, np.int64), out)
    return out


def _size(rows: int) -> int:
    return 1 << max(4, (2 * rows - 1).bit_length())


def _slots(rows: int) -> Any:
    return np.full(_size(rows), -1, np.int32)


@allocating
def _number(first: Any, second: Any, slots: Any, marks: Any, numbers: Any) -> int:
    """``marks`` has the first hash of what is in a slot, which saves a look at its row."""
    last = np.uint64(slots.size - 1)
    rows = np.empty(first.size, np.int32)
    count = 0
    for i in range(first.size):
        if i and first[i] == first[i - 1] and second[i] == second[i - 1]:
            numbers[i] = numbers[i - 1]
            continue
        at = first[i] & last
        while slots[at] >= 0 and (marks[at] != first[i] or second[rows[slots[at]]] != second[i]):
            at = (at + np.uint64(1)) & last
        if slots[at] < 0:
            slots[at], marks[at], rows[count] = count, first[i], i
            count += 1
        numbers[i] = slots[at]
    return count


@kernel
def _number_directly(one: Any, two: Any, width: int, slots: Any, numbers: Any) -> int:
    count = 0
    for i in range(one.size):
        at = one[i] * width + two[i]
        if slots[at] < 0:
            slots[at] = count
            count += 1
        numbers[i] = slots[at]
    return count


@kernel
def _number_pairs(one: Any, two: Any, width: int, slots: Any, marks: Any, numbers: Any) -> int:
    last = np.uint64(slots.size - 1)
    count = 0
    for i in range(one.size):
        pair = one[i] * width + two[i]
        at = mix(np.uint64(pair)) & last
        while slots[at] >= 0 and marks[at] != pair:
            at = (at + np.uint64(1)) & last
        if slots[at] < 0:
            slots[at], marks[at] = count, pair
            count += 1
        numbers[i] = slots[at]
    return count


@kernel
def _group(numbers: Any, ends: Any, order: Any) -> None:
    """Sort by counting; ``ends`` become the starts of groups."""
    for i in range(numbers.size):
        ends[numbers[i]] += 1
    total = 0
    for group in range(ends.size):
        total, ends[group] = total + ends[group], total
    for i in range(numbers.size):
        order[ends[numbers[i]]] = i
        ends[numbers[i]] += 1
    for group in range(ends.size - 1, 0, -1):
        ends[group] = ends[group - 1]
    ends[0] = 0


@kernel
def _add_up(numbers: Any, weights: Any, sums: Any) -> None:
    for i in range(numbers.size):
        sums[numbers[i]] += weights[i]


@kernel
def _tally(words: Any, cache: Any, out: Any) -> int:
    width = words.shape[1]
    size = 0
    for i in range(words.shape[0]):
        h = np.uint64(0)
        for w in range(width):
            h = (h ^ words[i, w]) * _ODD
        at = np.int64(mix(h) & np.uint64(cache.shape[0] - 1))
        same = cache[at, width] > 0
        w = 0
        while same and w < width:
            same = cache[at, w] == words[i, w]
            w += 1
        if not same:
            if cache[at, width] > 0:
                copy_row(cache[at], out[size])
                size += 1
            copy_row(words[i], cache[at, :width])
            cache[at, width] = np.uint64(0)
        cache[at, width] += np.uint64(1)
    for at in range(cache.shape[0]):
        if cache[at, width] > 0:
            copy_row(cache[at], out[size])
            size += 1
    return size


@allocating
def _divide(words: Any, cuts: Any, starts: Any, out: Any) -> None:
    parts = np.uint64(starts.size)
    numbers = np.empty(words.shape[0], np.int32)
    for i in range(words.shape[0]):
        # Nearly all cuts are at even distances from each other.
        part = np.int64((words[i, 0] >> np.uint64(32)) * parts >> np.uint64(32))
        while part and words[i, 0] < cuts[part - 1]:
            part -= 1
        while part < cuts.size and words[i, 0] >= cuts[part]:
            part += 1
        numbers[i] = part
        starts[part] += 1
    total = 0
    for part in range(starts.size):
        total, starts[part] = total + starts[part], total
    for i in range(words.shape[0]):
        at = starts[numbers[i]]
        starts[numbers[i]] += 1
        for w in range(words.shape[1]):
            out[w, at] = words[i, w]
