"""Agree-sets of all pairs, counted: one row against a block of rows at a time.

Columns come as 32-bit codes that are equal iff the cells agree. For each column one plain loop over
a slice sets a bit where the codes are equal, which vectorises; then the packed words are counted,
by direct address where there are few enough possible masks, in a hash table otherwise. Where few
pairs agree anywhere, only those are enumerated, through the sorted columns; the others share the
empty agree-set, which is counted as what is left of all pairs.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.kernels.jit import kernel

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Codes = NDArray[np.int32]

DIRECT = 16
"""Columns up to which every possible mask has its own counter: 512 KB, which a cache holds."""

BLOCK = 2_048
"""Rows compared at once: their codes and masks stay in a near cache."""


SPARSE = 16
"""Pairs that a block compares in the time in which a pair that agrees somewhere is looked up."""


class Counts(NamedTuple):
    """An open-addressing table of masks with their numbers of pairs; ``state[0]`` is its size."""

    masks: U64  # (capacity, W)
    counts: I64
    slots: NDArray[np.int64]
    state: I64


def codes(words: U64, first: I64, values: int, column: int, nulls_equal: bool) -> Codes:
    """One column's cells as codes. Where nulls differ, every null has a code of its own."""
    out = np.empty(len(words), np.int32)
    width = int(first[column + 1] - first[column])
    _number(words, int(first[column]), width, values, column, nulls_equal, out)
    return out


@kernel
def _number(
    words: Any, first: int, width: int, values: int, column: int, nulls_equal: bool, out: Any
) -> None:
    """Number the distinct cells in the order in which they come."""
    size = 16
    while size < 2 * words.shape[0]:
        size *= 2
    slots = np.full(size, -1, np.int64)  # the first row with a cell
    count = 0
    for row in range(words.shape[0]):
        null = (words[row, values + (column >> 6)] >> np.uint64(column & 63)) & np.uint64(1)
        if null and not nulls_equal:
            out[row] = count
            count += 1
            continue
        h = null
        for k in range(width):
            h = (h ^ words[row, first + k]) * np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
        at = np.int64(h & np.uint64(size - 1))
        while True:
            other = slots[at]
            if other < 0:
                slots[at] = row
                out[row] = count
                count += 1
                break
            theirs = words[other, values + (column >> 6)] >> np.uint64(column & 63)
            same = theirs & np.uint64(1) == null
            for k in range(width):
                same = same and words[other, first + k] == words[row, first + k]
            if same:
                out[row] = out[other]
                break
            at = (at + 1) & (size - 1)


def count(columns: Codes, ones: I64) -> tuple[U64, I64]:
    """Agree-sets of each of these rows with all rows before it, and how many pairs show each.

    ``columns`` is ``(columns, rows)``, and the chosen rows ascend. All rows give every pair of a
    table once; rows that stand last give their pairs with the others and among themselves. The
    masks come in order, by their words.
    """
    number = len(columns)
    pairs = int(ones.sum())  # every row before a row makes a pair with it
    if SPARSE * sum(_near(codes, ones) for codes in columns) < pairs:
        return _agreeing(columns, ones, pairs)
    if number <= DIRECT:
        counters = np.zeros((2, 1 << number), np.int64)
        _count_direct(narrow(columns), ones, counters)
        sums = counters.sum(axis=0)
        seen = np.flatnonzero(sums)
        return seen.astype(np.uint64)[:, None], sums[seen]
    table = _empty(max(1, -(-number // 64)), 1 << 14)
    done = 0
    while done < len(ones):
        done = _count_hashed(columns, ones, done, table)
        if done < len(ones):
            table = _grown(table)
    size = int(table.state[0])
    return _in_order(table.masks[:size], table.counts[:size])


def _near(codes: Codes, ones: I64) -> int:
    """At most how many pairs of some rows with others agree in a column."""
    if not len(ones):
        return 0
    numbers = codes - codes.min()
    sizes = np.bincount(numbers)
    return int(sizes[numbers[ones]].sum()) - len(ones)


def _grouped(columns: Codes) -> tuple[I64, I64]:
    """Rows by each column's code, equal ones in row order; and how many rows of the same code
    stand before each row."""
    order = np.argsort(columns, axis=1, kind="stable")
    ordered = np.take_along_axis(columns, order, axis=1)
    at = np.arange(columns.shape[1])
    fresh = np.ones(columns.shape, np.bool_)
    fresh[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    starts = np.maximum.accumulate(np.where(fresh, at, 0), axis=1)
    before = np.empty_like(order)
    np.put_along_axis(before, order, at - starts, axis=1)
    return order, before


def _agreeing(columns: Codes, ones: I64, pairs: int) -> tuple[U64, I64]:
    """The same counts, from the pairs that agree somewhere alone."""
    order, before = _grouped(columns)
    rank = np.empty_like(order)
    np.put_along_axis(rank, order, np.arange(order.shape[1])[None, :], axis=1)
    words = max(1, -(-len(columns) // 64))
    table = _empty(words, 1 << 10)
    done = 0
    while done < len(ones):
        done = _count_agreeing(columns, order, rank, before, ones, done, table)
        if done < len(ones):
            table = _grown(table)
    size = int(table.state[0])
    nowhere = pairs - int(table.counts[:size].sum())
    masks, counts = table.masks[:size], table.counts[:size]
    if nowhere:
        masks = np.concatenate([np.zeros((1, words), np.uint64), masks])
        counts = np.concatenate([[nowhere], counts])
    return _in_order(masks, counts)


def total(masks: list[U64], counts: list[I64], words: int) -> tuple[U64, I64]:
    """Counts of several tables added up; masks whose counts cancel are dropped. In mask order, as
    each of the tables is."""
    sum_masks, sums = np.empty((0, words), np.uint64), np.empty(0, np.int64)
    for more, numbers in zip(masks, counts, strict=True):
        sum_masks, sums, _, _ = added(sum_masks, sums, more, numbers)
    return sum_masks, sums


def added(masks: U64, counts: I64, more: U64, numbers: I64) -> tuple[U64, I64, U64, U64]:
    """One table with another added, both and the sum in mask order; then the masks that are new in
    it, and those that it lacks."""
    room = len(masks) + len(more)
    out, sums = np.empty((room, masks.shape[1]), np.uint64), np.empty(room, np.int64)
    new, gone = np.zeros(room, np.bool_), np.zeros(len(masks), np.bool_)
    tables = (bitsets.plain(masks), _plain(counts))
    others = (bitsets.plain(more), _plain(numbers))
    size = _added(*tables, *others, out, sums, new, gone)
    return out[:size], sums[:size], out[:size][new[:size]], masks[gone]


def _plain(counts: I64) -> I64:
    return np.require(counts, np.int64, ["C", "W"])


def _in_order(masks: U64, counts: I64) -> tuple[U64, I64]:
    order = np.lexsort(masks.T[::-1])
    return masks[order], counts[order]


def _empty(words: int, capacity: int) -> Counts:
    return Counts(
        np.empty((capacity, words), np.uint64),
        np.zeros(capacity, np.int64),
        np.full(4 * capacity, -1, np.int64),
        np.zeros(1, np.int64),
    )


def _grown(table: Counts) -> Counts:
    size = int(table.state[0])
    bigger = _empty(table.masks.shape[1], 4 * len(table.masks))
    _refill(table.masks[:size], table.counts[:size], bigger)
    return bigger


def narrow(columns: Codes) -> NDArray[Any]:
    """The codes in 16 bits where they fit: twice as many are compared at once."""
    if columns.size and int(columns.max()) - int(columns.min()) < 1 << 16:
        return columns.astype(np.uint16)
    return columns


@kernel
def _pack(cells: Any, value: Any, bit: Any, out: Any) -> None:
    """Set a bit where cells equal a value. A plain loop over slices: only that vectorises."""
    for j in range(out.size):
        out[j] |= bit if cells[j] == value else bit ^ bit


@kernel
def pack(columns: Any, row: int, lo: int, out: Any) -> None:
    """The masks of one row with the rows from ``lo`` on, of at most 16 columns."""
    hi = lo + out.size
    out[:] = 0
    for column in range(columns.shape[0]):
        _pack(columns[column, lo:hi], columns[column, row], np.uint16(1 << column), out)


@kernel
def _count_direct(columns: Any, ones: Any, counters: Any) -> None:
    packed = np.empty(BLOCK, np.uint16)
    first = 0
    for lo in range(0, columns.shape[1], BLOCK):
        # Rows come in order: those that have a pair with this block are the last ones.
        while first < ones.size and ones[first] <= lo:
            first += 1
        for i in range(first, ones.size):
            block = packed[: min(BLOCK, ones[i] - lo)]
            pack(columns, ones[i], lo, block)
            # Two sets of counters, so that equal neighbours do not wait for each other.
            for j in range(0, block.size - 1, 2):
                counters[0, block[j]] += 1
                counters[1, block[j + 1]] += 1
            if block.size & 1:
                counters[0, block[block.size - 1]] += 1


@kernel
def _count_hashed(columns: Any, ones: Any, done: int, table: Any) -> int:
    """Count rows from ``ones[done]`` on; stops before a row that the table may have no room for.
    Returns how many rows are done."""
    words = table.masks.shape[1]
    packed = np.empty((words, BLOCK), np.uint64)
    mask = np.empty(words, np.uint64)
    for i in range(done, ones.size):
        row = ones[i]
        if table.state[0] + row > table.masks.shape[0]:
            return i
        for lo in range(0, row, BLOCK):
            hi = min(lo + BLOCK, row)
            packed[:, : hi - lo] = 0
            for column in range(columns.shape[0]):
                bit = np.uint64(1) << np.uint64(column & 63)
                block = packed[column >> 6, : hi - lo]
                _pack(columns[column, lo:hi], columns[column, row], bit, block)
            for j in range(hi - lo):
                for w in range(words):
                    mask[w] = packed[w, j]
                _add(table, mask, 1)
    return ones.size


@kernel
def _count_agreeing(
    columns: Any, order: Any, rank: Any, before: Any, ones: Any, done: int, table: Any
) -> int:
    """Count the pairs of rows from ``ones[done]`` on that agree somewhere, each at the first column
    in which it does; stops before a row that the table may have no room for."""
    mask = np.empty(table.masks.shape[1], np.uint64)
    for i in range(done, ones.size):
        row = ones[i]
        near = 0
        for column in range(columns.shape[0]):
            near += before[column, row]
        if table.state[0] + near > table.masks.shape[0]:
            return i
        for column in range(columns.shape[0]):
            for k in range(1, before[column, row] + 1):
                other = order[column, rank[column, row] - k]
                seen = False
                for c in range(column):
                    seen = seen or columns[c, other] == columns[c, row]
                if seen:
                    continue
                mask[:] = 0
                for c in range(column, columns.shape[0]):
                    if columns[c, other] == columns[c, row]:
                        mask[c >> 6] |= np.uint64(1) << np.uint64(c & 63)
                _add(table, mask, 1)
    return ones.size


@kernel
def _add(table: Any, mask: Any, number: int) -> None:
    h = np.uint64(0x9E3779B97F4A7C15)
    for w in range(mask.size):
        h = (h ^ mask[w]) * np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(32)
    last = table.slots.size - 1
    at = np.int64(h) & last
    while True:
        entry = table.slots[at]
        if entry < 0:
            entry = table.state[0]
            table.state[0] += 1
            table.slots[at] = entry
            table.masks[entry] = mask
            table.counts[entry] = number
            return
        same = True
        for w in range(mask.size):
            if table.masks[entry, w] != mask[w]:
                same = False
                break
        if same:
            table.counts[entry] += number
            return
        at = (at + 1) & last


@kernel
def _refill(masks: Any, counts: Any, table: Any) -> None:
    for i in range(masks.shape[0]):
        _add(table, masks[i], counts[i])


@kernel
def _compared(one: Any, two: Any) -> int:
    for w in range(one.size):
        if one[w] != two[w]:
            return -1 if one[w] < two[w] else 1
    return 0


@kernel
def _added(
    masks: Any, counts: Any, more: Any, numbers: Any, out: Any, sums: Any, new: Any, gone: Any
) -> int:
    i = j = size = 0
    while i < masks.shape[0] or j < more.shape[0]:
        if i == masks.shape[0]:
            side = 1
        elif j == more.shape[0]:
            side = -1
        else:
            side = _compared(masks[i], more[j])
        number = 0
        if side <= 0:
            out[size] = masks[i]
            number += counts[i]
            i += 1
        if side >= 0:
            out[size] = more[j]
            number += numbers[j]
            j += 1
        if number:
            sums[size] = number
            new[size] = side > 0
            size += 1
        elif side <= 0:
            gone[i - 1] = True
    return size
