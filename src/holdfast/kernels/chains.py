"""Rows in chains: an index for two inequalities, which finds rows without going through others.

The rows of each group are divided into *chains*: along a chain both of two numbers rise. So the
rows of a chain whose two numbers lie in two ranges stand side by side, and four binary searches
find where. A look-up costs as much as there are chains in a group, their *rank*, and the rows that
it returns; the columns of real tables rise and fall together, which makes few chains.

IncDC (Qian, Li, Tan, Ran, Ma, VLDB Journal 2023, sections 5 and 6) has this index. Chains have the
fewest number that there can be (its OptIndex): each row, in the order of the first number, goes to
the chain whose last second number is the nearest below. Here equal numbers may follow each other,
so that one index serves ``<`` and ``<=`` alike and rows with the same numbers need no place of
their own. A second number that falls along the chains is negated. Any two ranges can be asked for,
which is the paper's reverse use, too.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64
from holdfast.kernels.jit import allocating, kernel

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
"""The ends of a range that has no end."""


class Chains(NamedTuple):
    """Rows in the order of their groups, and in these of their chains."""

    codes: I64  # the group of each row
    positions: I32  # the rows
    first: I64
    second: I64
    ends: I32  # one past the last row of each row's chain

    @property
    def rank(self) -> int:
        """The most chains that a group has."""
        starts = self._starts
        if not starts.size:
            return 0
        groups = np.flatnonzero(np.diff(self.codes[starts], prepend=~self.codes[0]))
        return int(np.diff(np.append(groups, starts.size)).max())

    @property
    def _starts(self) -> I64:
        """Where chains begin."""
        starts: I64 = np.flatnonzero(np.diff(self.ends, prepend=0))
        return starts


class RangeQueries(NamedTuple):
    """Queries for the rows from ``lo`` to ``hi`` of an index, which are whole chains, whose two
    numbers lie in two ranges, both ends included."""

    lo: I64
    hi: I64
    first: I64  # (queries, 2)
    second: I64  # (queries, 2)


def build(codes: I64, first: I64, second: I64) -> Chains:
    """Chains of as small a rank as there can be, of rows with the codes of their groups and two
    numbers."""
    order = np.lexsort((second, first, codes))
    chain = np.empty(len(codes), np.int32)
    number = _chain(codes[order], second[order], chain)
    placed = np.argsort(chain, kind="stable")
    sizes = np.bincount(chain, minlength=number)
    ends = np.repeat(np.cumsum(sizes), sizes).astype(np.int32)
    order = order[placed]
    return Chains(codes[order], order.astype(np.int32), first[order], second[order], ends)


@allocating
def _chain(codes: Any, second: Any, chain: Any) -> int:
    """The chain of each row, of rows in the order of their groups and first numbers; how many
    there are."""
    last = np.empty(codes.size, np.int64)  # of each chain of the group, falling
    begun = size = 0
    for i in range(codes.size):
        if i == 0 or codes[i] != codes[i - 1]:
            begun += size
            size = 0
        low, high = 0, size
        while low < high:
            middle = (low + high) // 2
            if last[middle] <= second[i]:
                high = middle
            else:
                low = middle + 1
        last[low] = second[i]
        size = max(size, low + 1)
        chain[i] = begun + low
    return begun + size


def fetch(chains: Chains, queries: RangeQueries) -> I64:
    """All rows that answer the queries, as stretches of the index ``(query, from, to)``."""
    stretches = np.empty((_fetch(chains, queries, np.empty((0, 3), np.int64)), 3), np.int64)
    _fetch(chains, queries, stretches)
    return stretches


@allocating
def _fetch(chains: Any, queries: Any, room: Any) -> int:
    """How many stretches there are, and as many as there is room for."""
    first, second, ends = chains.first, chains.second, chains.ends
    count = 0
    touched = np.zeros(1, np.int64)
    for query in range(queries.lo.size):
        start, stop = queries.lo[query], queries.hi[query]
        low, high = queries.first[query, 0], queries.first[query, 1]
        low_second, high_second = queries.second[query, 0], queries.second[query, 1]
        touched[0] ^= _touch(first, second, ends, start, stop, low if low > LOWEST else high)
        while start < stop:
            end = np.int64(ends[start])
            a, b = start, end
            # Most chains are out of a range as a whole.
            if first[end - 1] < low or first[start] > high:
                b = a
            if a < b and (second[end - 1] < low_second or second[start] > high_second):
                b = a
            if a < b and first[a] < low:
                a = _from(first, a, b, low, _guess(first, a, b, low))
            if a < b and second[a] < low_second:
                a = _from(second, a, b, low_second, a)
            # Of two columns that go together one range ends near where the other begins.
            if a < b and first[b - 1] > high:
                b = _from(first, a, b, high + 1, _guess(first, a, b, high) if a == start else a)
            if a < b and second[b - 1] > high_second:
                b = _from(second, a, b, high_second + 1, a if a > start else b - 1)
            if a < b:
                if count < room.shape[0]:
                    room[count, 0], room[count, 1], room[count, 2] = query, a, b
                count += 1
            start = end
    return count


@kernel
def _touch(first: Any, second: Any, ends: Any, start: int, stop: int, number: int) -> int:
    """Read where a number may stand in each chain: memory delivers all of these at once, where a
    search of one chain after the other would wait for each."""
    met = 0
    while start < stop:
        end = np.int64(ends[start])
        if first[start] < number < first[end - 1]:
            near = _guess(first, start, end, number)
            met ^= first[near] ^ second[near]
        start = end
    return met


@kernel
def _guess(numbers: Any, low: int, high: int, number: int) -> int:
    """Where a number would stand if those around it rose evenly."""
    least = np.float64(numbers[low])
    share = (np.float64(number) - least) / (np.float64(numbers[high - 1]) - least)
    return low + np.int64(share * (high - 1 - low))


@kernel
def _from(numbers: Any, low: int, high: int, least: int, near: int) -> int:
    """The first place of rising numbers with at least some number: from a place on that may be
    near, in steps that double, so that most of what is read lies side by side."""
    step = 1
    if numbers[near] < least:
        low = near + 1
        while low + step < high and numbers[low + step] < least:
            low += step + 1
            step *= 2
        high = min(high, low + step)
    else:
        high = near
        while high - step > low and numbers[high - step] >= least:
            high -= step
            step *= 2
        low = max(low, high - step)
    while low < high:
        middle = (low + high) // 2
        if numbers[middle] < least:
            low = middle + 1
        else:
            high = middle
    return low
