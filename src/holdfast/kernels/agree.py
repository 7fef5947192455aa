"""Agree-sets of all pairs, counted: one row against a block of rows at a time.

Columns come as 32-bit codes that are equal iff the cells agree. For each column one plain loop over
a slice sets a bit where the codes are equal, which vectorises; then the packed words are counted,
by direct address where there are few enough possible masks, in a hash table otherwise.
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

_BLOCK = 2_048
"""Rows compared at once: their codes and masks stay in the first-level cache."""


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

    ``columns`` is ``(columns, rows)``. All rows give every pair of a table once; rows that stand
    last give their pairs with the others and among themselves.
    """
    number = len(columns)
    if number <= DIRECT:
        counters = np.zeros((2, 1 << number), np.int64)
        _count_direct(columns, ones, counters)
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
    return table.masks[:size].copy(), table.counts[:size].copy()


def total(masks: list[U64], counts: list[I64], words: int) -> tuple[U64, I64]:
    """Counts of several tables added up; masks whose counts cancel are dropped. In mask order."""
    rows = np.concatenate([np.empty((0, words), np.uint64), *masks])
    numbers = np.concatenate([np.empty(0, np.int64), *counts])
    order = np.lexsort(rows.T[::-1])
    rows, numbers = rows[order], numbers[order]
    starts = np.ones(len(rows), np.bool_)
    starts[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    if not len(rows):
        return rows, numbers
    sums = np.add.reduceat(numbers, np.flatnonzero(starts))
    return rows[starts][sums != 0], sums[sums != 0]


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


@kernel
def _pack(cells: Any, value: Any, bit: Any, out: Any) -> None:
    """Set a bit where cells equal a value. A plain loop over slices: only that vectorises."""
    for j in range(out.size):
        out[j] |= bit if cells[j] == value else bit ^ bit


@kernel
def _count_direct(columns: Any, ones: Any, counters: Any) -> None:
    packed = np.empty(_BLOCK, np.uint32)
    for i in range(ones.size):
        row = ones[i]
        for lo in range(0, row, _BLOCK):
            hi = min(lo + _BLOCK, row)
            block = packed[: hi - lo]
            block[:] = 0
            for column in range(columns.shape[0]):
                bit = np.uint32(1) << np.uint32(column)
                _pack(columns[column, lo:hi], columns[column, row], bit, block)
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
    packed = np.empty((words, _BLOCK), np.uint64)
    mask = np.empty(words, np.uint64)
    for i in range(done, ones.size):
        row = ones[i]
        if table.state[0] + row > table.masks.shape[0]:
            return i
        for lo in range(0, row, _BLOCK):
            hi = min(lo + _BLOCK, row)
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


SUMMED = 20
"""Columns up to which the counts of all sets of columns are kept in one array."""


@kernel
def sum_supersets(sums: Any) -> None:
    """Replace the count of every set by the sum over it and all sets that contain it."""
    step = 1
    while step < sums.size:
        for start in range(0, sums.size, 2 * step):
            for i in range(start, start + step):
                sums[i] += sums[i + step]
        step *= 2


@kernel
def minimal_within(sums: Any, most: int, limit: int) -> Any:
    """The sets of at most ``limit`` elements whose sum is at most ``most``, and no smaller one's
    is. Sums fall as sets grow, so only sets with one element less need a look."""
    out = np.empty(64, np.int64)
    count = 0
    for place in range(sums.size):
        if sums[place] > most:
            continue
        size = 0
        minimal = True
        rest = place
        while rest:
            bit = rest & -rest
            if sums[place ^ bit] <= most:
                minimal = False
                break
            size += 1
            rest ^= bit
        if minimal and size <= limit:
            if count == out.size:
                more = np.empty(2 * out.size, np.int64)
                more[:count] = out
                out = more
            out[count] = place
            count += 1
    return out[:count]


def maximal_evidence(atoms: int, evidence: U64) -> tuple[U64, U64]:
    """The evidences that are maximal for some right side, and for which ones, as bits.

    An evidence e is maximal for A iff A is in every larger one, so the right sides of e are what
    all larger ones share beyond e. Those that are larger than all others have no such limit.
    """
    full = bitsets.universe(atoms)[0]
    # Rows that agree everywhere refute nothing, and would stand above all others.
    evidence = evidence[(evidence != full).any(axis=1)]
    masks = evidence[np.argsort(-bitsets.popcount(evidence), kind="stable")]
    kept, rights = np.empty(len(masks), np.int64), np.empty_like(masks)
    count = maximal_for(masks, full, kept, rights)
    return masks[kept[:count]], rights[:count]


@kernel
def shared_beyond(masks: Any, family: Any, full: Any, out: Any) -> None:
    """For each mask what all larger ones of a family share beyond it: its right sides."""
    words = masks.shape[1]
    for i in range(masks.shape[0]):
        for w in range(words):
            out[i, w] = full[w] & ~masks[i, w]
        for k in range(family.shape[0]):
            inside = True
            larger = False
            for w in range(words):
                inside = inside and masks[i, w] & ~family[k, w] == np.uint64(0)
                larger = larger or family[k, w] != masks[i, w]
            if inside and larger:
                left = np.uint64(0)
                for w in range(words):
                    out[i, w] &= family[k, w]
                    left |= out[i, w]
                if left == np.uint64(0):
                    break


@kernel
def maximal_for(masks: Any, full: Any, kept: Any, rights: Any) -> int:
    """The right sides for which each mask is maximal evidence: what all larger masks around it
    share beyond it. ``masks`` come largest first. Whatever is maximal for a right side is kept, in
    ``kept`` (numbers of masks) and ``rights``, so later masks are compared with the kept ones only.
    Returns how many are kept."""
    words = masks.shape[1]
    count = 0
    shared = np.empty(words, np.uint64)
    near = np.zeros(8, np.int64)  # kept masks that settled the last ones: good first guesses
    for i in range(masks.shape[0]):
        for w in range(words):
            shared[w] = full[w] & ~masks[i, w]
        left = np.uint64(1)
        for k in range(-near.size, count):
            place = near[k + near.size] if k < 0 else k
            if place >= count:
                continue
            other = kept[place]
            inside = True
            for w in range(words):
                if masks[i, w] & ~masks[other, w]:
                    inside = False
                    break
            if inside:
                changed = False
                left = np.uint64(0)
                for w in range(words):
                    now = shared[w] & masks[other, w]
                    changed = changed or now != shared[w]
                    shared[w] = now
                    left |= now
                if changed and k >= 0:
                    near[k & 7] = k
                if left == np.uint64(0):
                    break
        if left != np.uint64(0):
            kept[count] = i
            rights[count] = shared
            count += 1
    return count
