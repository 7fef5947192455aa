"""Sorted columns: building them, looking rows up in them, and gathering rows from segments.

A segment's words are a row-major ``uint64`` matrix ``(rows, words)``, because a look-up needs whole
rows: three cache lines instead of one per word. An index of a column is its first word in sorted
order with the positions of the rows; equal first words are a superset of equal cells, so whatever a
look-up returns is compared in full before it counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64, U8, U64, Flags
from holdfast.kernels.bitsets import contains
from holdfast.kernels.checksums import check
from holdfast.kernels.evidence import (
    differing_rhs,
    is_null,
    known,
    pair_mask,
    record,
)
from holdfast.kernels.hashing import mix, slot
from holdfast.kernels.jit import allocating, inlined, kernel

SKETCH = 512
"""Smallest hashes kept per column to estimate its number of distinct values (about 4 % off)."""

_SIGN = np.uint64(1 << 63)

_SOME = 2_048
"""Codes that are looked at first, to choose how all are sorted."""

_INTERVALS = 16
"""Into so many intervals per code a span is cut where codes are counted."""

SPREAD = 512
"""Sums kept per column to estimate how many pairs of rows agree in it (about 6 % off)."""


class Ranges(NamedTuple):
    """What a look-up returned: those for row ``i`` are ``positions[lo[i] : hi[i]]``, ascending
    where they come from an index."""

    lo: I64  # (n,)
    hi: I64  # (n,)
    positions: I32  # of rows in a segment


class SegmentRows(NamedTuple):
    """The rows of a segment."""

    words: U64  # (rows, words)
    base: int  # the row id of position 0
    dead: U8  # a bitmap of the deleted rows, empty where none are


def sort(codes: U64) -> tuple[I64, I32]:
    """Codes in signed order (which is the order of the values), and where they came from; equal
    ones in the order that they came in."""
    # NumPy's own stable sort takes up to four times as long as either of these.
    sample = codes[:: 1 + len(codes) // _SOME]
    if len(np.unique(sample)) < len(sample) * 7 // 8:
        return _by_bytes(codes)
    signed = codes.view(np.int64)
    order = np.argsort(signed)
    ascending = signed[order]
    same = ascending[1:] == ascending[:-1]
    members = np.flatnonzero(np.append(same, False) | np.append(False, same))
    if members.size > codes.size // 8:
        return _by_bytes(codes)
    order[members] = order[members][np.lexsort((order[members], ascending[members]))]
    return ascending, order.astype(np.int32)


def _by_bytes(codes: U64) -> tuple[I64, I32]:
    """The same, for codes that repeat often and differ in few bytes."""
    ordered, positions = _sort(codes.copy(), np.arange(len(codes), dtype=np.int32))
    return ordered.view(np.int64), positions


@allocating
def _sort(source: Any, places: Any) -> Any:
    """Sort by one byte after the other, from the lowest on (radix sort); a byte that is the same in
    all codes is passed over. The arguments are overwritten."""
    n = source.size
    counts = np.zeros((8, 256), np.int64)
    for i in range(n):
        code = source[i] ^ _SIGN
        for byte in range(8):
            counts[byte, (code >> np.uint64(8 * byte)) & np.uint64(255)] += 1
    target, others = np.empty_like(source), np.empty_like(places)
    for byte in range(8):
        ends = counts[byte]
        if ends.max() == n:
            continue
        start = 0
        for value in range(256):
            start, ends[value] = start + ends[value], start
        for i in range(n):
            value = ((source[i] ^ _SIGN) >> np.uint64(8 * byte)) & np.uint64(255)
            at = ends[value]
            ends[value] = at + 1
            target[at] = source[i]
            others[at] = places[i]
        source, target = target, source
        places, others = others, places
    return source, places


@allocating
def shared(one: Any, two: Any) -> Any:
    """The positions that two look-ups (:class:`Ranges`) have in common, for each row of a batch,
    as :class:`Ranges`."""
    lo, hi, positions = one.lo, one.hi, one.positions
    lo2, hi2, positions2 = two.lo, two.hi, two.positions
    most = 0
    for i in range(lo.size):
        most += min(hi[i] - lo[i], hi2[i] - lo2[i])
    out = np.empty(most + 1, np.int32)
    ends = np.zeros((2, lo.size), np.int64)
    size = 0
    for i in range(lo.size):
        ends[0, i] = size
        a, b = lo[i], lo2[i]
        while a < hi[i] and b < hi2[i]:
            first, second = positions[a], positions2[b]
            out[size] = first
            size += first == second
            a += first <= second
            b += second <= first
        ends[1, i] = size
    return Ranges(ends[0], ends[1], out[:size])


@allocating
def sketch(words: Any, column: int, shape: Any, out: Any, size: int, spread: Any) -> int:
    """Take cells of a column into its sketch: the smallest distinct hashes, ascending, of which
    ``out`` holds ``size`` so far. ``words`` is column-major here. Returns the new size.

    And add them to ``spread`` ``(SPREAD,)``, each with the sign and in the place that its hash
    says: the squares of those sums add up to the pairs of rows that agree, both orders and a row
    with itself among them, as far as they can be estimated (Charikar, Chen and Farach-Colton,
    *Finding Frequent Items in Data Streams*, 2002).
    """
    nulls = words[shape.owner.size + (column >> 6)]
    for row in range(words.shape[1]):
        null = (nulls[row] >> np.uint64(column & 63)) & np.uint64(1)
        h = null * np.uint64(0xA0761D6478BD642F)
        for v in range(shape.first[column], shape.first[column + 1]):
            h = mix(h ^ words[v, row]) + np.uint64(0x9E3779B97F4A7C15)
        place = np.int64(h >> np.uint64(1)) & np.int64(spread.size - 1)
        spread[place] += 1 if h & np.uint64(1) else -1
        if size == out.size and h >= out[size - 1]:
            continue
        at = np.searchsorted(out[:size], h)
        if at < size and out[at] == h:
            continue
        if size < out.size:
            size += 1
        for i in range(size - 1, at, -1):
            out[i] = out[i - 1]
        out[at] = h
    return size


def distinct(sketches: list[U64]) -> float:
    """Estimate how many distinct values a column has over all its segments' sketches."""
    merged = np.unique(np.concatenate(sketches)) if sketches else np.empty(0, np.uint64)
    if merged.size < SKETCH:
        return float(merged.size)
    return (SKETCH - 1) / (float(merged[SKETCH - 1]) / 2.0**64)


def agreeing(spreads: list[I64], rows: int) -> float:
    """Estimate the share of the pairs of so many rows that agree in a column, over all its
    segments' spreads: what look-ups return on average, as a share of the rows."""
    if rows < 2 or not spreads:
        return 0.0
    sums = np.sum(spreads, axis=0).astype(np.float64)
    return max(0.0, (float(sums @ sums) - rows) / (rows * (rows - 1.0)))


def repeated(parts: Sequence[I64]) -> list[Flags]:
    """Which codes of some ascending parts may occur more than once: all that do, and a few that
    only lie close to another one.

    The span of the codes is cut into a few intervals per code, and the codes in each are counted.
    Parts are read in order, so memory is read sequentially."""
    ends = [(int(codes[0]), int(codes[-1])) for codes in parts if codes.size]
    low = min((first for first, _ in ends), default=0)
    span = max((last for _, last in ends), default=0) - low
    room = _INTERVALS * max(1, sum(codes.size for codes in parts))
    shift = max(0, (span // room).bit_length())
    counts = np.zeros((span >> shift) + 1, np.uint8)
    how = (np.uint64(low % (1 << 64)), np.uint64(shift), counts)
    with np.errstate(over="ignore"):
        for codes in parts:
            _count_codes(codes.view(np.uint64), *how)
        return [_counted_twice(codes.view(np.uint64), *how) for codes in parts]


@kernel
def _count_codes(codes: Any, low: np.uint64, shift: np.uint64, counts: Any) -> None:
    for i in range(codes.size):
        at = (codes[i] - low) >> shift
        counts[at] = min(counts[at] + 1, 2)


@allocating
def _counted_twice(codes: Any, low: np.uint64, shift: np.uint64, counts: Any) -> Any:
    twice = np.empty(codes.size, np.bool_)
    for i in range(codes.size):
        twice[i] = counts[(codes[i] - low) >> shift] > 1
    return twice


@kernel
def scatter(words: Any, positions: Any, targets: Any, out: Any) -> None:
    """Copy rows from their positions to their targets."""
    for i in range(positions.size):
        for w in range(words.shape[1]):
            out[targets[i], w] = words[positions[i], w]


@inlined
def is_dead(dead: Any, row: int) -> bool:
    """Whether the bitmap of deleted rows (empty: none) has this row."""
    return dead.size > 0 and (dead[row >> 3] >> np.uint8(row & 7)) & np.uint8(1) == np.uint8(1)


@allocating
def probe(
    batch: Any,
    ranges: Any,
    stored: Any,
    column: int,
    filters: Any,
    shape: Any,
    candidates: Any,
    findings: Any,
) -> None:
    """Compare each row of a batch with the rows that its look-up in ``column`` returned, and record
    what violates.

    ``batch`` are :class:`NumberedRows`, ``ranges`` the :class:`Ranges` of each in ``stored``, the
    :class:`SegmentRows`.
    ``filters`` ``(f,)`` are columns of which every candidate with ``column`` has at least one: a
    row that agrees in none of them cannot violate anything. Pairs are taken once, the row with the
    smaller id being the stored one.
    """
    arrived, ids = batch.words, batch.ids
    lo, hi, positions = ranges.lo, ranges.hi, ranges.positions
    words, base, dead = stored.words, stored.base, stored.dead
    recent, used, firsts = findings.recent, findings.used, shape.first[filters]
    mask = np.empty(shape.full.size, np.uint64)
    for i in range(arrived.shape[0]):
        row = arrived[i]
        if not shape.nulls_equal and is_null(row, column, shape):
            continue
        for at in range(lo[i], hi[i]):
            position = np.int64(positions[at])
            near = firsts.size == 0
            for k in range(firsts.size):
                near |= words[position, firsts[k]] == row[firsts[k]]
            near &= base + position < ids[i]
            if near and not is_dead(dead, position):
                pair_mask(row, words[position], shape, mask)
                if not known(mask, recent, used):
                    record(mask, base + position, ids[i], candidates, shape.full, findings)


@allocating
def probe_group(
    batch: Any,
    ranges: Any,
    stored: Any,
    entries: Any,
    rows: Any,
    shape: Any,
    candidates: Any,
    k: int,
    most: int,
    findings: Any,
    partial: Any,
) -> None:
    """Compare each row of a batch with one row of those that agree with it on lhs ``k``: on
    the right they have one value. If it is another than the batch row's, then with more of them, at
    most so many; the right-hand sides are set in ``partial`` (of the shape of ``candidates.rhs``),
    as there may be further evidence.

    ``batch`` are :class:`NumberedRows`, ``ranges`` the :class:`Ranges` of each in ``stored``, the
    :class:`SegmentRows`.
    ``entries`` and ``rows`` are the :class:`Place` of the positions and of the stored rows in their
    files: what is read is checked here, and where it is damaged nothing more is read.
    """
    arrived, ids = batch.words, batch.ids
    lo, hi, positions = ranges.lo, ranges.hi, ranges.positions
    words, base, dead = stored.words, stored.base, stored.dead
    recent, used, full = findings.recent, findings.used, shape.full
    lhs, rhs, differing = candidates.lhs[k], candidates.rhs[k], partial[k]
    mask = np.empty(full.size, np.uint64)
    values = shape.owner.size
    for i in range(arrived.shape[0]):
        row = arrived[i]
        null = False
        for w in range(lhs.size):
            null = null or (row[values + w] & lhs[w]) != np.uint64(0)
        if null and not shape.nulls_equal:
            continue
        refuting = 0
        compared = 0
        for at in range(lo[i], hi[i]):
            if not check(entries, at, at + 1):
                return
            position = np.int64(positions[at])
            if base + position >= ids[i] or is_dead(dead, position):
                continue
            if not check(rows, position, position + 1):
                return
            pair_mask(row, words[position], shape, mask)
            if not contains(mask, lhs):
                continue
            compared += 1
            if differing_rhs(mask, full, rhs, differing):
                refuting += 1
                if not known(mask, recent, used):
                    record(mask, base + position, ids[i], candidates, full, findings)
            if refuting == 0 or compared == most:
                break


@kernel
def combine(words: Any, columns: Any, shape: Any, seed: Any, out: Any) -> None:
    """One code for the cells of several columns; equal cells have equal codes."""
    for row in range(words.shape[0]):
        h = seed
        for c in range(columns.size):
            h = mix(h ^ np.uint64(is_null(words[row], columns[c], shape)))
            for v in range(shape.first[columns[c]], shape.first[columns[c] + 1]):
                h = mix(h ^ words[row, v]) + np.uint64(0x9E3779B97F4A7C15)
        out[row] = h


@inlined
def same_cells(row: Any, words: Any, position: int, columns: Any, shape: Any) -> bool:
    """Whether a row equals the one at ``position`` in ``columns``, a null equalling a null."""
    values = shape.owner.size
    for k in range(columns.size):
        column = columns[k]
        bit = np.uint64(column & 63)
        other_null = words[position, values + (column >> 6)] >> bit
        if (row[values + (column >> 6)] >> bit ^ other_null) & np.uint64(1):
            return False
        for v in range(shape.first[column], shape.first[column + 1]):
            if row[v] != words[position, v]:
                return False
    return True


@kernel
def match(
    wanted: Any,
    need: Any,
    ranges: Any,
    stored: Any,
    columns: Any,
    shape: Any,
    counts: Any,
    out: Any,
) -> int:
    """Count the living rows that equal a wanted row ``(n, words)`` in ``columns``, and keep
    ``need[i]`` of their positions, one wanted row after the other, in ``out``; returns how many are
    in ``out``.

    ``ranges`` are the :class:`Ranges` of each wanted row in ``stored``, the :class:`SegmentRows`;
    ``counts`` ``(n,)`` are added to.
    """
    lo, hi, positions = ranges.lo, ranges.hi, ranges.positions
    words, dead = stored.words, stored.dead
    size = 0
    for i in range(wanted.shape[0]):
        row = wanted[i]
        for at in range(lo[i], hi[i]):
            position = np.int64(positions[at])
            if is_dead(dead, position):
                continue
            if same_cells(row, words, position, columns, shape):
                if counts[i] < need[i]:
                    out[size] = position
                    size += 1
                counts[i] += 1
    return size


@kernel
def duplicates(batch: Any, ranges: Any, stored: Any, columns: Any, shape: Any, out: Any) -> None:
    """For each row of a batch the id of one living row before it that agrees everywhere, or -1.

    ``batch`` are :class:`NumberedRows`, ``ranges`` the :class:`Ranges` of each in ``stored``, the
    :class:`SegmentRows`; ``columns`` are all of them; ``out`` is ``(n,)``.
    """
    arrived, ids = batch.words, batch.ids
    lo, hi, positions = ranges.lo, ranges.hi, ranges.positions
    words, base, dead = stored.words, stored.base, stored.dead
    values = shape.owner.size
    for i in range(arrived.shape[0]):
        row = arrived[i]
        out[i] = -1
        if not shape.nulls_equal:
            null = False
            for w in range(values, row.size):
                if row[w]:
                    null = True
            if null:
                continue
        for at in range(lo[i], hi[i]):
            position = np.int64(positions[at])
            if base + position < ids[i] and not is_dead(dead, position):
                if same_cells(row, words, position, columns, shape):
                    out[i] = base + position
                    break


@allocating
def members(codes: Any, wanted: Any) -> Any:
    """The positions of the wanted codes, by a scan: for a column without an index."""
    size = 4
    while size < 8 * wanted.size:
        size *= 2
    slots = np.full(size, -1, np.int32)
    rows = wanted.reshape((-1, 1))
    for i in range(wanted.size):
        slots[slot(rows[i], rows, slots)] = i
    out = np.empty(codes.size, np.int32)
    code = np.empty(1, np.uint64)
    count = 0
    for row in range(codes.size):
        code[0] = codes[row]
        if slots[slot(code, rows, slots)] >= 0:
            out[count] = row
            count += 1
    return out[:count]


@allocating
def fingerprint(hashes: Any) -> Any:
    """Two sums that identify the content of a batch, whatever the order of its rows."""
    out = np.zeros(2, np.uint64)
    for i in range(hashes.size):
        out[0] += mix(hashes[i])
        out[1] += mix(hashes[i] ^ np.uint64(0xA0761D6478BD642F))
    return out
