"""Words of the pairs of rows that are equal in some columns: all pairs inside each group of rows.

Rows stand in the order of their groups, and each is compared with those before it in its group.
Large groups are tiles for :mod:`holdfast.kernels.pairs`; small ones, of which there are many, are
compared here, because a tile costs as much to set up as some hundred thousand pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels import bitsets, pairs, violations
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.comparisons import WordLayout, own_words
from holdfast.kernels.jit import allocating, kernel
from holdfast.kernels.ranks import NULL, Codes
from holdfast.model.comparisons import BOTH

LARGE = 1_024
"""Rows from which on a group is a tile."""

LARGE_AT_ONCE = 1 << 13
"""Rows of a large group that are compared with those before them at a time."""

AT_ONCE = 1 << 18
"""Rows of small groups whose codes are brought together at a time."""


class RowGroups(NamedTuple):
    """Rows in the order of their groups."""

    rows: I64
    starts: I64  # (rows,): where the group of each begins

    @property
    def pairs(self) -> int:
        """How many pairs of rows are in one group."""
        return int((np.arange(len(self.rows)) - self.starts).sum())

    def drawn(self, number: int, dice: np.random.Generator) -> I64:
        """So many random pairs of rows that are in one group; each once if there are no more."""
        earlier = np.arange(len(self.rows)) - self.starts
        before = np.cumsum(earlier)
        every = self.pairs
        pairs = np.arange(every) if every <= number else dice.integers(0, every, number)
        places = np.searchsorted(before, pairs, "right")
        others = self.starts[places] + pairs - (before[places] - earlier[places])
        return np.stack([self.rows[places], self.rows[others]], axis=1)

    def part(self, number: int, of: int) -> tuple[int, int]:
        """The first row of one of several parts with about as many pairs each, and the row after
        its last."""
        before = np.cumsum(np.arange(len(self.rows)) - self.starts)
        total = int(before[-1]) if len(before) else 0
        cuts = [int(np.searchsorted(before, total * k // of, "right")) for k in range(1, of)]
        ends = [0, *cuts, len(self.rows)]
        return ends[number], ends[number + 1]


def groups(codes: Sequence[Codes], columns: Sequence[int], nulls_equal: bool) -> RowGroups:
    """Rows with the same codes in some columns. Where nulls differ, a null's row is in no group."""
    rows = np.arange(len(codes[0]))
    if not nulls_equal:
        for column in columns:
            rows = rows[codes[column][rows] != NULL]
    planes = [codes[column][rows] for column in columns]
    key, _, _ = violations.keys([(plane, plane[:0]) for plane in planes], len(rows), 0)
    order = np.argsort(key, kind="stable")
    key = key[order]
    begins = np.flatnonzero(bitsets.begins_run(key))
    return RowGroups(rows[order], np.repeat(begins, np.diff(np.append(begins, len(key)))))


def words_inside(
    layout: WordLayout,
    codes: Sequence[Codes],
    grouped: RowGroups,
    part: tuple[int, int],
    nulls_equal: bool,
    tick: pairs.Tick = pairs.no_tick,
) -> tuple[U64, I64]:
    """The distinct words of pairs inside groups, each with one such pair of rows (t, s): the rows
    of a part with those before them in their groups. Memory follows the rows of the largest group
    and the number of distinct words. ``tick`` is called now and then."""
    begin, end = part
    table = pairs.empty_table(layout.width)
    blocks: list[tuple[U64, I64]] = []
    at = begin
    while at < end:
        tick()
        # As many groups as are small, or one that is large, some of its rows at a time.
        start = int(grouped.starts[at])
        stop = int(np.searchsorted(grouped.starts, start, "right"))
        if stop - start >= LARGE:
            stop = min(stop, end, at + LARGE_AT_ONCE)
            blocks.append(
                _of_large(layout, codes, grouped.rows[start:stop], at - start, nulls_equal, tick)
            )
            at = stop
            continue
        stop = min(_before_large(grouped, at), end, at + AT_ONCE)
        table = _of_small(layout, codes, grouped, (start, at, stop), nulls_equal, table)
        at = stop
    words, _, positions = pairs.harvest(table)
    blocks.append((words, grouped.rows[positions]))
    return first_of_each(
        np.concatenate([w for w, _ in blocks]), np.concatenate([p for _, p in blocks])
    )


def first_of_each(words: U64, witnesses: I64) -> tuple[U64, I64]:
    """Distinct words in order, each with the first pair that came with it."""
    order = np.lexsort(words.T)
    words, witnesses = words[order], witnesses[order]
    first = bitsets.begins_run(words)
    return words[first], witnesses[first]


def gathered(codes: Sequence[Codes], rows: I64) -> Codes:
    """The codes of some rows."""
    out = np.empty((len(codes), len(rows)), np.int32)
    for plane, target in zip(codes, out, strict=True):
        np.take(plane, rows, out=target, mode="clip")
    return out


def sides(
    layout: WordLayout, codes: Codes, nulls_equal: bool
) -> tuple[pairs.TileRows, pairs.TileRows]:
    """The same rows as rows t and as rows s of a tile."""
    if (layout.rows == BOTH).all():
        return pairs.TileRows(codes), pairs.TileRows(codes)
    ones, others = own_words(codes, layout, nulls_equal)
    return pairs.TileRows(codes, ones), pairs.TileRows(codes, others)


def _of_large(
    layout: WordLayout,
    codes: Sequence[Codes],
    rows: I64,
    skip: int,
    nulls_equal: bool,
    tick: pairs.Tick,
) -> tuple[U64, I64]:
    """The words of a group, or of its beginning, whose first rows are only compared as rows s."""
    ones, others = sides(layout, gathered(codes, rows), nulls_equal)
    later = pairs.TileRows(
        np.ascontiguousarray(ones.codes[:, skip:]), None if ones.own is None else ones.own[skip:]
    )
    ends = np.arange(skip, len(rows))
    tile = pairs.tile_pairs(layout, later, others, nulls_equal, ends)
    counted = pairs.count(tile, True, tick)
    t, s = counted.pairs[:, 0] + skip, counted.pairs[:, 1]
    return counted.words, np.stack([rows[t], rows[s]], axis=1)


def _before_large(grouped: RowGroups, at: int) -> int:
    """Where the next large group begins, after ``at``."""
    begins = np.flatnonzero(np.diff(grouped.starts[at:], prepend=-1)) + at
    sizes = np.diff(np.append(begins, len(grouped.rows)))
    large = begins[(sizes >= LARGE) & (begins > at)]
    return int(large[0]) if len(large) else len(grouped.rows)


class _Small(NamedTuple):
    """Rows of small groups, ready to be compared."""

    codes: Codes  # (planes, rows)
    ones: U64  # (rows, width): what a row brings by itself as t
    others: U64  # … as s
    starts: I64  # where the group of each row begins, among these rows
    left: I64  # the comparisons of two rows, as in Layout
    right: I64
    ordered: Flags
    bit: I64
    offset: int  # of these rows among all
    nulls_equal: bool


def _of_small(
    layout: WordLayout,
    codes: Sequence[Codes],
    grouped: RowGroups,
    span: tuple[int, int, int],
    nulls_equal: bool,
    table: pairs.WordTable,
) -> pairs.WordTable:
    """Add the words of rows from the second number of the span to the third; their first group
    begins at the first."""
    start, first, stop = span
    own = gathered(codes, grouped.rows[start:stop])
    if (layout.rows == BOTH).all():
        ones = others = np.zeros((stop - start, layout.width), np.uint64)
    else:
        ones, others = own_words(own, layout, nulls_equal)
    across = np.flatnonzero(layout.rows == BOTH)
    rows = _Small(
        own,
        ones,
        others,
        grouped.starts[start:stop] - start,
        layout.left[across],
        layout.right[across],
        layout.ordered[across],
        layout.bit[across],
        start,
        nulls_equal,
    )
    done = first - start
    while (done := _add_small(rows, done, table)) < stop - start:
        table = pairs.grown(table)
    return table


@allocating
def _add_small(rows: Any, done: int, table: Any) -> int:
    """Add rows from ``done`` on; stops before one that the table may have no room for."""
    width = table.entries.shape[1] - 1
    size = rows.starts.size
    longest = 0
    for i in range(done, size):
        longest = max(longest, i - rows.starts[i])
    packed = np.empty((width, longest), np.uint64)
    numbers = np.arange(rows.offset, rows.offset + size)
    for i in range(done, size):
        start = rows.starts[i]
        count = i - start
        if count == 0:
            continue
        if table.state[0] + count > table.entries.shape[0]:
            return i
        for w in range(width):
            for j in range(count):
                packed[w, j] = rows.ones[i, w] | rows.others[start + j, w]
        for c in range(rows.bit.size):
            value = rows.codes[rows.left[c], i]
            cells = rows.codes[rows.right[c], start:i]
            out = packed[rows.bit[c] >> 6, :count]
            bit = np.uint64(1) << np.uint64(rows.bit[c] & 63)
            if rows.ordered[c] and value != NULL:
                _compare(cells, value, bit, out)
            elif value != NULL or rows.nulls_equal:
                _equate(cells, value, bit * np.uint64(3) if rows.ordered[c] else bit, out)
        pairs.add_words(packed[:, :count], rows.offset + i, numbers[start:i], table)
    return size


@kernel
def _compare(cells: Any, value: Any, bit: Any, out: Any) -> None:
    """``value <= cell``, and ``value >= cell`` one bit higher; neither where the cell is null."""
    none = bit ^ bit
    for j in range(out.size):
        cell = cells[j]
        upward = bit if cell >= value else none
        downward = bit << np.uint64(1) if cell <= value and cell != NULL else none
        out[j] |= upward | downward


@kernel
def _equate(cells: Any, value: Any, bits: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] |= bits if cells[j] == value else bits ^ bits
