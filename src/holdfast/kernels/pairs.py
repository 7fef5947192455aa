"""Words of pairs of rows, counted: all comparisons of the pairs in a tile of rows × rows.

A row t is compared with a block of rows s at a time. One plain loop per comparison over a slice of
16-bit codes adds the comparison's part to 16-bit *pieces* of the words, which vectorises; then the
words are counted. Where there are few possible words each has a counter: the pieces are then
numbers in a mixed base, with three values for an ordered comparison without nulls, so that counters
lie closer than words would. Other words are counted in a hash table. Where only equality counts and
few pairs are equal anywhere, only those are enumerated; the others share the empty word.

Comparisons within one row depend on one row alone: their bits come with the rows, and are put into
the words of all their pairs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I64, U8, U16, U32, U64
from holdfast.kernels.comparisons import WordLayout, equalities
from holdfast.kernels.jit import allocating, kernel
from holdfast.kernels.ranks import NULL, Codes
from holdfast.model.comparisons import BOTH

BLOCK = 4_096
"""Rows compared at once: their codes and words stay in a near cache."""

DIRECT = 1 << 22
"""Possible words up to which each has its own counter, of a byte."""

SPREAD = 4
"""Pairs per possible word below which a hash table costs less than so many counters."""

SPARSE = 16
"""Pairs that a block compares in the time in which a pair that agrees somewhere is looked up."""

SORTED = 16
"""Pairs that a block compares in the time in which a cell is sorted."""

ROOM = 4_096
"""Words that a hash table has room for at first; a power of two."""

PIECE = 1 << 16
"""Values of a piece."""

ABSENT = np.uint16(PIECE - 1)
"""A null among 16-bit codes."""


class TileRows(NamedTuple):
    """Rows of one side of a tile."""

    codes: Codes  # (planes, rows)
    own: U64 | None = None  # (rows, width): what comparisons within one row put into the words


Tick = Callable[[], None]
"""Called now and then; may end the work by raising an error."""


def no_tick() -> None:
    """Nothing ends the work."""


class TilePairs(NamedTuple):
    """Pairs (t, s) of rows: each row t with the first rows s, as many as its end says."""

    layout: WordLayout
    ones: TileRows
    others: TileRows
    nulls_equal: bool
    ends: I64

    @property
    def number(self) -> int:
        """How many pairs there are."""
        return int(self.ends.sum())

    @property
    def across(self) -> I64:
        """The comparisons of t with s."""
        return np.flatnonzero(self.layout.rows == BOTH)


def tile_pairs(
    layout: WordLayout,
    ones: TileRows,
    others: TileRows,
    nulls_equal: bool,
    ends: I64 | None = None,
) -> TilePairs:
    """Pairs of rows to be counted; without ``ends``, each row t with all rows s.

    So the pairs of a table, each once, are those of its rows with themselves where row i ends at i.
    """
    if ends is None:
        ends = np.full(ones.codes.shape[1], others.codes.shape[1])
    elif len(ends) != ones.codes.shape[1] or ends.max(initial=0) > others.codes.shape[1]:
        raise ValueError("every row needs an end, within the rows that it is compared with")
    if (layout.rows != BOTH).any() and (ones.own is None or others.own is None):
        raise ValueError("comparisons within a row need the rows' own words")
    return TilePairs(layout, ones, others, nulls_equal, np.require(ends, np.int64, ["C", "W"]))


class WordCounts(NamedTuple):
    """Distinct words in order, their numbers of pairs, and where asked for a pair of each."""

    words: U64  # (words, width)
    counts: I64
    pairs: I64  # (words, 2): a row of each side


def count(tile: TilePairs, with_pairs: bool = False, tick: Tick = no_tick) -> WordCounts:
    """The words of pairs of rows, and how many pairs show each.

    Memory follows the rows of the tile and the number of distinct words. ``tick`` is called now and
    then.
    """
    groups = _groups(tile)
    digits = _digits(tile) if groups is None else None
    if groups is not None:
        counted = _count_agreeing(tile, groups, with_pairs)
    elif digits is not None:
        counted = _count_direct(tile, digits, tick)
    else:
        counted = _count_hashed(tile, tick)
    order = np.lexsort(counted.words.T[::-1])
    pairs = counted.pairs[order] if with_pairs else np.empty((0, 2), np.int64)
    return WordCounts(counted.words[order], counted.counts[order], pairs)


def agree_sets(codes: Codes, ones: I64, nulls_equal: bool) -> tuple[U64, I64]:
    """Agree-sets of each of these rows with all rows before it, and how many pairs show each.

    All rows give every pair of a table once; rows that stand last give their pairs with the others
    and among themselves.
    """
    layout = equalities(len(codes))
    counted = count(
        tile_pairs(layout, TileRows(codes[:, ones]), TileRows(codes), nulls_equal, ones)
    )
    return counted.words, counted.counts


# Words in pieces of 16 bits.


class _Pieces(NamedTuple):
    """How comparisons add to pieces. They are ordered by piece, and in each piece those of equality
    come first."""

    comparisons: I64
    spans: I64  # (pieces + 1,): the first one of each piece, and one past the last
    ordered: I64  # (pieces,): the first ordered one of each piece
    step: U16  # what the lower bit of each adds; the higher one adds twice as much
    ones: U16  # (pieces, rows t): what a row adds by itself
    others: U16  # (pieces, rows s)


class _Block(NamedTuple):
    """Rows t beside a block of rows s, ready to be compared."""

    left: U16  # (rows t, comparisons): codes
    right: U16  # (comparisons, rows s)
    spans: I64  # this and what follows as in _Pieces
    ordered: I64
    step: U16
    ones: U16
    others: U16
    first: int  # the number of the first row s
    ends: I64
    nulls_equal: bool


def _pieces(tile: TilePairs, piece: I64, step: I64, ones: U16, others: U16) -> _Pieces:
    ordered = tile.layout.ordered[tile.across]
    order = np.lexsort((ordered, piece))
    spans = np.searchsorted(piece[order], np.arange(len(ones) + 1))
    plain = np.bincount(piece[~ordered], minlength=len(ones))
    steps = step[order].astype(np.uint16)
    return _Pieces(tile.across[order], spans, spans[:-1] + plain, steps, ones, others)


def _blocks(tile: TilePairs, pieces: _Pieces) -> Iterator[_Block]:
    """The pairs of a tile in blocks of rows s, with 16-bit codes."""
    lefts = tile.layout.left[pieces.comparisons]
    rights = tile.layout.right[pieces.comparisons]
    largest = [side.codes.max(axis=1, initial=NULL) for side in (tile.ones, tile.others)]
    fits = np.maximum(largest[0][lefts], largest[1][rights]) < ABSENT
    left = np.empty((len(tile.ends), len(lefts)), np.uint16)
    for k in np.flatnonzero(fits):
        left[:, k] = tile.ones.codes[lefts[k]].astype(np.uint16)
    for first in range(0, int(tile.ends.max(initial=0)), BLOCK):
        right = tile.others.codes[rights, first : first + BLOCK]
        for k in np.flatnonzero(~fits):
            left[:, k], right[k] = _ranked_within(tile.ones.codes[lefts[k]], right[k])
        yield _Block(
            left,
            right.astype(np.uint16),
            *pieces[1:5],
            np.ascontiguousarray(pieces.others[:, first : first + BLOCK]),
            first,
            tile.ends,
            tile.nulls_equal,
        )


def _ranked_within(ones: Codes, others: Codes) -> tuple[I64, I64]:
    """Small codes that compare like those of some rows with those of a block. The block's are odd,
    so that there is room between any two of them."""
    values = np.unique(others[others != NULL])
    at = np.searchsorted(values, ones)
    met = np.append(values, NULL)[at] == ones
    left = np.where(ones == NULL, ABSENT, 2 * at + met)
    return left, np.where(others == NULL, ABSENT, 2 * np.searchsorted(values, others) + 1)


@kernel
def _pack(block: Any, i: int, piece: int, out: Any) -> None:
    """One piece of the words of row ``i`` with the first rows of the block.

    The inner loops vectorise: a row's number is unsigned, so that no loop asks whether it is
    negative, and arrays are taken out of the tuple once. A slice per comparison would do too, and
    cost a third of the time for counting references.
    """
    left, right, steps, others = block.left, block.right, block.step, block.others
    start, this = block.ones[piece, i], np.uint64(piece)
    for j in range(out.size):
        out[j] = start + others[this, j]
    for c in range(block.spans[piece], block.spans[piece + 1]):
        value, step, row = left[i, c], steps[c], np.uint64(c)
        ordered = c >= block.ordered[piece]
        if ordered and value != ABSENT:
            # A null, the largest code, is neither: out of reach above the value, and not below it.
            reach, twice = np.uint16(ABSENT - np.uint16(1) - value), np.uint16(2 * step)
            for j in range(out.size):
                cell = right[row, j]
                upward = step if np.uint16(cell - value) <= reach else step ^ step
                downward = twice if cell <= value else twice ^ twice
                out[j] += upward + downward
        elif value != ABSENT or block.nulls_equal:
            if ordered:
                step = np.uint16(3 * step)
            for j in range(out.size):
                out[j] += step if right[row, j] == value else step ^ step


# Few possible words: a counter for each.


class _Digits(NamedTuple):
    """Words as numbers in a mixed base. Digits are the comparisons of t with s, then one for what a
    row t brings by itself, and one for a row s."""

    sizes: list[int]  # values of the one or two pieces
    piece: I64  # of each digit
    step: I64
    words: list[U64]  # (base, width): what the values of each digit stand for
    own: list[I64]  # the last two digits of the rows


class _Counters(NamedTuple):
    """A byte for each possible word. It starts at 255, and each time that it overflows a carry is
    counted: the first time too, which is when a word is noted as seen."""

    bytes: U8
    carries: I64
    seen: U32  # words in the order in which they came
    pairs: I64  # (words, 2): where each was seen first
    state: I64  # state[0]: how many were seen


def _digits(tile: TilePairs) -> _Digits | None:
    """Digits for the words, unless there are too many possible ones."""
    layout = tile.layout
    nulls = [(side.codes == NULL).any(axis=1) for side in (tile.ones, tile.others)]
    words, own = [], []
    for k in tile.across.tolist():
        outcomes = np.arange(4 if layout.ordered[k] else 2, dtype=np.uint64)
        if layout.ordered[k] and not nulls[0][layout.left[k]] and not nulls[1][layout.right[k]]:
            outcomes = outcomes[1:]  # unordered does not occur
        words.append(np.zeros((len(outcomes), layout.width), np.uint64))
        words[-1][:, layout.bit[k] >> 6] = outcomes << np.uint64(layout.bit[k] & 63)
    for side in (tile.ones, tile.others):
        distinct = np.zeros((1, layout.width), np.uint64)
        numbers = np.zeros(side.codes.shape[1], np.int64)
        if side.own is not None:
            distinct, numbers = np.unique(side.own, axis=0, return_inverse=True)
        words.append(distinct)
        own.append(numbers.reshape(-1))
    sizes, piece, step = [1], [], []
    for values in map(len, words):
        if sizes[-1] * values > PIECE:
            sizes.append(1)
        piece.append(len(sizes) - 1)
        step.append(sizes[-1])
        sizes[-1] *= max(1, values)
    most = min(DIRECT, max(PIECE, tile.number // SPREAD))
    if len(sizes) > 2 or max(sizes) > PIECE or sizes[0] * sizes[-1] ** (len(sizes) - 1) > most:
        return None
    return _Digits(sizes, np.array(piece), np.array(step), words, own)


def _count_direct(tile: TilePairs, digits: _Digits, tick: Tick) -> WordCounts:
    size = int(np.prod(digits.sizes))
    counters = _Counters(
        np.full(size, 255, np.uint8),
        np.zeros(size, np.int64),
        np.empty(size, np.uint32),
        np.empty((size, 2), np.int64),
        np.zeros(1, np.int64),
    )
    starts = []
    for numbers, piece, step in zip(digits.own, digits.piece[-2:], digits.step[-2:], strict=True):
        starts.append(np.zeros((len(digits.sizes), len(numbers)), np.uint16))
        starts[-1][piece] = (numbers * step).astype(np.uint16)
    for words, piece, step in zip(digits.words[:-2], digits.piece, digits.step, strict=False):
        if len(words) == 3:
            # The lower bit alone, one step, is the first value.
            starts[0][piece] -= np.uint16(step)
    pieces = _pieces(tile, digits.piece[:-2], digits.step[:-2], *starts)
    for block in _blocks(tile, pieces):
        tick()
        _add_direct(block, digits.sizes[0], counters)
    seen = counters.seen[: int(counters.state[0])]
    counts = 256 * counters.carries[seen] + counters.bytes[seen] - 255
    out = np.zeros((len(seen), tile.layout.width), np.uint64)
    parts = np.divmod(seen.astype(np.int64), digits.sizes[0])[::-1]
    for words, piece, step in zip(digits.words, digits.piece, digits.step, strict=True):
        out |= words[parts[piece] // step % len(words)]
    return WordCounts(out, counts, counters.pairs[seen])


@allocating
def _add_direct(block: Any, size: int, counters: Any) -> None:
    low = np.empty(block.right.shape[1], np.uint16)
    high = np.empty(block.right.shape[1], np.uint16)
    both = np.empty(block.right.shape[1], np.uint32)
    for i in range(block.ends.size):
        rows = min(block.right.shape[1], block.ends[i] - block.first)
        if rows <= 0:
            continue
        _pack(block, i, 0, low[:rows])
        if block.ordered.size == 1:
            _tally(low[:rows], i, block.first, counters)
        else:
            _pack(block, i, 1, high[:rows])
            _combine(low[:rows], high[:rows], np.uint32(size), both[:rows])
            _tally(both[:rows], i, block.first, counters)


@kernel
def _combine(low: Any, high: Any, size: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] = np.uint32(low[j]) + np.uint32(high[j]) * size


@kernel
def _tally(words: Any, i: int, first: int, counters: Any) -> None:
    # Arrays taken out of a tuple inside a loop would be counted as references each time.
    numbers, carries = counters.bytes, counters.carries
    seen, pairs, state = counters.seen, counters.pairs, counters.state
    for j in range(words.size):
        word = words[j]
        number = np.uint8(numbers[word] + np.uint8(1))
        numbers[word] = number
        if number == 0:
            if carries[word] == 0:
                seen[state[0]] = word
                state[0] += 1
                pairs[word, 0] = i
                pairs[word, 1] = first + j
            carries[word] += 1


# Many possible words: a hash table.


class WordTable(NamedTuple):
    """Words in the order in which they came, found by open addressing."""

    entries: U64  # (capacity, width + 1): a word and its number of pairs
    pairs: I64  # (capacity, 2): where each was seen first
    slots: U64  # the upper half of a word's hash, and the number of its entry + 1; 0: free
    state: I64  # state[0]: how many were seen


def _count_hashed(tile: TilePairs, tick: Tick) -> WordCounts:
    layout = tile.layout
    number = 4 * layout.width
    starts = []
    for side in (tile.ones, tile.others):
        own = np.zeros((side.codes.shape[1], layout.width), np.uint64)
        if side.own is not None:
            own |= side.own
        shifts = np.arange(0, 64, 16, dtype=np.uint64)
        quarters = (own[:, :, None] >> shifts).astype(np.uint16).reshape(len(own), number)
        starts.append(np.ascontiguousarray(quarters.T))
    bit = layout.bit[tile.across]
    pieces = _pieces(tile, bit >> 4, 1 << (bit & 15), *starts)
    table = empty_table(layout.width)
    for block in _blocks(tile, pieces):
        tick()
        done = 0
        while (done := _add_hashed(block, done, table)) < len(tile.ends):
            table = grown(table)
    return harvest(table)


def empty_table(width: int, capacity: int = ROOM) -> WordTable:
    """A table without words."""
    return WordTable(
        np.empty((capacity, width + 1), np.uint64),
        np.empty((capacity, 2), np.int64),
        np.zeros(2 * capacity, np.uint64),
        np.zeros(1, np.int64),
    )


def grown(table: WordTable) -> WordTable:
    """A table with the same words, and room for more."""
    size = int(table.state[0])
    bigger = empty_table(table.entries.shape[1] - 1, 4 * len(table.entries))
    bigger.entries[:size], bigger.pairs[:size] = table.entries[:size], table.pairs[:size]
    bigger.state[0] = size
    _refill(bigger)
    return bigger


def harvest(table: WordTable) -> WordCounts:
    """What a table holds."""
    size = int(table.state[0])
    entries = table.entries[:size]
    return WordCounts(entries[:, :-1], entries[:, -1].astype(np.int64), table.pairs[:size])


@allocating
def _add_hashed(block: Any, done: int, table: Any) -> int:
    """Count rows from ``done`` on; stops before a row that the table may have no room for. Returns
    how many rows are done."""
    width, size = table.entries.shape[1] - 1, block.right.shape[1]
    piece = np.empty(size, np.uint16)
    packed = np.empty((width, size), np.uint64)
    numbers = np.arange(block.first, block.first + size)
    for i in range(done, block.ends.size):
        rows = min(size, block.ends[i] - block.first)
        if rows <= 0:
            continue
        if table.state[0] + rows > table.entries.shape[0]:
            return i
        for w in range(width):
            packed[w] = 0
            for p in range(4 * w, 4 * w + 4):
                _pack(block, i, p, piece[:rows])
                _shift_in(piece[:rows], np.uint64(16 * (p & 3)), packed[w, :rows])
        add_words(packed[:, :rows], i, numbers[:rows], table)
    return block.ends.size


@kernel
def _shift_in(piece: Any, shift: Any, out: Any) -> None:
    for j in range(out.size):
        out[j] |= np.uint64(piece[j]) << shift


_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)
_ENTRY = np.uint64(0xFFFFFFFF)


@kernel
def _absorb(words: Any, hashes: Any) -> None:
    for j in range(words.size):
        h = (hashes[j] ^ words[j]) * _FACTOR
        hashes[j] = h ^ (h >> _HALF)


@allocating
def _hashed(words: Any) -> Any:
    """The hash of every column of a matrix."""
    hashes = np.full(words.shape[1], _SEED)
    for w in range(words.shape[0]):
        _absorb(words[w], hashes)
    return hashes


@allocating
def add_words(packed: Any, one: int, others: Any, table: Any) -> None:
    """Count the words of one row with some others, all at once: a call for each would cost more
    than the look-up."""
    hashes = _hashed(packed)
    # Arrays taken out of a tuple inside a loop would be counted as references each time.
    slots, entries, state = table.slots, table.entries, table.state
    width = packed.shape[0]
    last = np.uint64(slots.size - 1)
    for j in range(others.size):
        h = hashes[j]
        at = h & last
        while True:
            slot = slots[at]
            if slot == 0:
                entry = state[0]
                slots[at] = (h & ~_ENTRY) | np.uint64(entry + 1)
                for w in range(width):
                    entries[entry, w] = packed[w, j]
                entries[entry, width] = 1
                table.pairs[entry, 0] = one
                table.pairs[entry, 1] = others[j]
                state[0] += 1
                break
            if slot >> _HALF == h >> _HALF:
                known = (slot & _ENTRY) - np.uint64(1)
                same = True
                for w in range(width):
                    same = same and entries[known, w] == packed[w, j]
                if same:
                    entries[known, width] += np.uint64(1)
                    break
            at = (at + np.uint64(1)) & last


@allocating
def _refill(table: Any) -> None:
    """Fill the slots for the entries, which are distinct."""
    last = np.uint64(table.slots.size - 1)
    hashes = _hashed(table.entries[: table.state[0], :-1].T)
    for entry in range(hashes.size):
        at = hashes[entry] & last
        while table.slots[at] != 0:
            at = (at + np.uint64(1)) & last
        table.slots[at] = (hashes[entry] & ~_ENTRY) | np.uint64(entry + 1)


# Few pairs that agree anywhere: only those.


class _EqualRows(NamedTuple):
    """Rows s by their codes, and for each row t those that agree with it, by comparison."""

    left: Codes  # (rows t, comparisons)
    right: Codes  # (rows s, comparisons)
    order: I64  # (comparisons, rows s): by code, equal ones in row order
    starts: I64  # (comparisons, rows t): where in that order its equals are
    stops: I64
    bit: I64  # of each comparison
    ends: I64
    nulls_equal: bool


def _groups(tile: TilePairs) -> _EqualRows | None:
    """Rows with equal cells, where comparisons are of equality alone and few pairs have any."""
    layout, pairs = tile.layout, tile.number
    rows, width, number = len(tile.ends), tile.others.codes.shape[1], len(layout.left)
    if layout.ordered.any() or (layout.rows != BOTH).any() or SORTED * number * width >= pairs:
        return None
    order = np.empty((number, width), np.int64)
    starts, stops = np.empty((2, number, rows), np.int64)
    near = 0
    for k in range(number):
        left, right = tile.ones.codes[layout.left[k]], tile.others.codes[layout.right[k]]
        order[k] = np.argsort(right, kind="stable")
        starts[k] = np.searchsorted(right, left, "left", sorter=order[k])
        stops[k] = np.searchsorted(right, left, "right", sorter=order[k])
        if not tile.nulls_equal:
            stops[k, left == NULL] = starts[k, left == NULL]
        near += int((stops[k] - starts[k]).sum())
        if SPARSE * near >= pairs:
            return None
    left = np.ascontiguousarray(tile.ones.codes[layout.left].T)
    right = np.ascontiguousarray(tile.others.codes[layout.right].T)
    bit = layout.bit
    return _EqualRows(left, right, order, starts, stops, bit, tile.ends, tile.nulls_equal)


def _count_agreeing(tile: TilePairs, groups: _EqualRows, with_pairs: bool) -> WordCounts:
    """Count the pairs that agree somewhere; all others show the empty word."""
    table = empty_table(tile.layout.width)
    done = 0
    while (done := _add_agreeing(groups, done, table)) < len(tile.ends):
        table = grown(table)
    words, counts, pairs = harvest(table)
    nowhere = tile.number - int(counts.sum())
    if nowhere:
        pair = _agree_nowhere(groups) if with_pairs else (-1, -1)
        words = np.concatenate([words, np.zeros((1, words.shape[1]), np.uint64)])
        counts = np.append(counts, nowhere)
        pairs = np.concatenate([pairs, [pair]])
    return WordCounts(words, counts, pairs)


@kernel
def _agree(one: int, other: int, nulls_equal: bool) -> bool:
    return one == other and (one != NULL or nulls_equal)


@allocating
def _add_agreeing(groups: Any, done: int, table: Any) -> int:
    """Count the pairs of rows from ``done`` on, each at the first comparison in which it agrees;
    stops before a row that the table may have no room for."""
    width = table.entries.shape[1] - 1
    for i in range(done, groups.ends.size):
        near = 0
        for c in range(groups.bit.size):
            near += groups.stops[c, i] - groups.starts[c, i]
        if table.state[0] + near > table.entries.shape[0]:
            return i
        packed = np.zeros((width, near), np.uint64)
        others = np.empty(near, np.int64)
        left = groups.left[i]
        size = 0
        for c in range(groups.bit.size):
            for at in range(groups.starts[c, i], groups.stops[c, i]):
                j = groups.order[c, at]
                if j >= groups.ends[i]:
                    break
                right = groups.right[j]
                seen = False
                for k in range(c):
                    seen = seen or _agree(left[k], right[k], groups.nulls_equal)
                if seen:
                    continue
                others[size] = j
                for k in range(c, groups.bit.size):
                    if _agree(left[k], right[k], groups.nulls_equal):
                        bit = groups.bit[k]
                        packed[bit >> 6, size] |= np.uint64(1) << np.uint64(bit & 63)
                size += 1
        add_words(packed[:, :size], i, others[:size], table)
    return groups.ends.size


@kernel
def _agree_nowhere(groups: Any) -> tuple[int, int]:
    """A pair that agrees in no comparison; there is one."""
    for i in range(groups.ends.size):
        for j in range(groups.ends[i]):
            agrees = False
            for c in range(groups.bit.size):
                agrees = agrees or _agree(groups.left[i, c], groups.right[j, c], groups.nulls_equal)
            if not agrees:
                return i, j
    return -1, -1
