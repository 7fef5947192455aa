"""For which rhs an evidence is maximal: those that all larger evidences share beyond it.

Larger evidences are found in the transposed matrix, 64 at a time, as :mod:`bitsets` does; each one
found narrows the right-hand sides, and most evidences are decided by the first few.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64
from holdfast.kernels.bitsets import (
    FULL,
    ONE,
    ZERO,
    Masks,
    Stretches,
    Tick,
    add_member,
    compared,
    contains,
    copy_row,
    lowest,
    select,
)
from holdfast.kernels.jit import allocating, kernel

_SIEVE = 32
"""Columns, rarest first, that members are sieved by before they are compared whole: real evidence
holds most columns, and a few alone let too many through."""

_SHARE = 10_000
"""Masks that are worth a thread of their own."""

_CHUNK = 32
"""Words of members sieved at once."""


def maximal_for(masks: Masks, full: Masks, tick: Tick | None = None) -> tuple[I64, Masks]:
    """Of distinct evidences, largest first: which are maximal for some rhs, and for which.

    An evidence that is maximal for none stands below one that is, so later ones need not meet it.
    ``tick`` is called now and then, and may end it by an error of its own.
    """
    masks = bitsets.plain(masks)
    sizes = bitsets.popcount(masks)
    if len(masks) and sizes[0] == sizes[-1]:
        # None contains another: each is maximal for all that it lacks, if that is anything.
        rhs = full & ~masks
        occupied = np.flatnonzero(bitsets.occupied(rhs))
        return occupied, rhs[occupied]
    positions, rhs = np.empty(len(masks), np.int64), np.empty_like(masks)
    columns = np.zeros((64 * masks.shape[1], (len(masks) + 63) // 64), np.uint64)
    family = _Family(np.empty_like(masks), columns, bitsets.rarest_first(masks))
    count = 0
    stretches = Stretches(len(masks), tick)
    while (stretch := stretches.next(count)) is not None:
        count = _maximal_for(masks[stretch], stretch.start, full, family, positions, rhs, count)
    return positions[:count], rhs[:count].copy()


def maximal_evidence(masks: Masks, atoms: int) -> Masks:
    """The evidences that are maximal for some rhs. One that no other contains is maximal for all
    that it lacks."""
    ordered = bitsets.distinct(masks)[::-1]
    positions, _ = maximal_for(ordered, bitsets.universe(atoms)[0])
    return ordered[positions]


class _Family(NamedTuple):
    """Evidences, largest first, and how to find those that are larger than a mask."""

    masks: Masks
    columns: Masks
    order: I64  # columns, rarest first


def narrowed(masks: Masks, rhs: Masks, family: Masks, tick: Tick | None = None) -> Masks:
    """Which right-hand sides of each mask are left when the larger ones in ``family`` are known,
    too."""
    out = rhs.copy()
    if len(masks) and len(family):
        index, _, larger = _index(masks, family)
        masks = bitsets.plain(masks)
        stretches = Stretches(len(masks), tick)
        while (stretch := stretches.next(len(family))) is not None:
            _spread(stretch, lambda part: _narrowed(masks[part], larger[part], index, out[part]))
    return out


def opened(masks: Masks, family: Masks, rhs: Masks, tick: Tick | None = None) -> Masks:
    """The union of the right-hand sides of all larger masks in ``family``."""
    out = np.zeros_like(masks)
    if len(masks) and len(family):
        index, order, larger = _index(masks, family)
        masks, rhs = bitsets.plain(masks), bitsets.plain(rhs[order])
        stretches = Stretches(len(masks), tick)
        while (stretch := stretches.next(len(family))) is not None:
            _spread(stretch, lambda part: _opened(masks[part], larger[part], index, rhs, out[part]))
    return out


def by_rhs(maximal_for: Masks) -> tuple[I64, I64]:
    """The rows of each rhs, one rhs after the other, and where each one's begin."""
    starts = np.append(0, np.cumsum(bitsets.frequency(maximal_for)))
    return _by_rhs(bitsets.plain(maximal_for), starts.copy(), int(starts[-1])), starts


def united(one: Masks, one_for: Masks, two: Masks, two_for: Masks) -> tuple[Masks, Masks]:
    """Two families in canonical order as one, with the right-hand sides of both; members without
    any are left out."""
    out = np.empty((len(one) + len(two), one.shape[1]), np.uint64)
    rhs = np.empty_like(out)
    plain = bitsets.plain
    size = _united(plain(one), plain(one_for), plain(two), plain(two_for), out, rhs)
    return out[:size], rhs[:size]


def _spread(stretch: slice, work: Callable[[slice], None]) -> None:
    """Do the work in parts, one for each core, where there is much of it."""
    count = stretch.stop - stretch.start
    parts = min(os.cpu_count() or 1, count // _SHARE + 1)
    bounds = [stretch.start + count * k // parts for k in range(parts + 1)]
    with ThreadPoolExecutor(parts) as pool:
        list(pool.map(work, map(slice, bounds, bounds[1:])))


def _index(masks: Masks, family: Masks) -> tuple[_Family, I64, I64]:
    """The family to look up, the order that it stands in, and how many have more columns than each
    of the masks."""
    sizes = bitsets.popcount(family)
    order = np.argsort(-sizes, kind="stable")
    larger = np.searchsorted(-sizes[order], -bitsets.popcount(masks))
    family = bitsets.plain(family[order])
    index = _Family(family, bitsets.transpose(family), bitsets.rarest_first(family))
    return index, order, larger


@allocating
def _by_rhs(maximal_for: Any, ends: Any, total: int) -> Any:
    """Write the rows of each rhs from where ``ends`` says, which become the ends of what is
    written."""
    rows = np.empty(total, np.int64)
    for i in range(maximal_for.shape[0]):
        for w in range(maximal_for.shape[1]):
            word = maximal_for[i, w]
            while word != ZERO:
                rhs = 64 * w + lowest(word)
                word &= word - ONE
                rows[ends[rhs]] = i
                ends[rhs] += 1
    return rows


@kernel
def _united(one: Any, one_for: Any, two: Any, two_for: Any, out: Any, rhs: Any) -> int:
    i = j = size = 0
    while i < one.shape[0] or j < two.shape[0]:
        order = 0
        if i == one.shape[0]:
            order = 1
        elif j == two.shape[0]:
            order = -1
        else:
            order = compared(one[i], two[j])
        union = ZERO
        for w in range(out.shape[1]):
            bits = ZERO
            if order <= 0:
                out[size, w] = one[i, w]
                bits |= one_for[i, w]
            if order >= 0:
                out[size, w] = two[j, w]
                bits |= two_for[j, w]
            rhs[size, w] = bits
            union |= bits
        i += order <= 0
        j += order >= 0
        size += union != ZERO
    return size


@kernel
def _and(row: Any, out: Any) -> None:
    """A plain loop over slices: only that vectorises."""
    for j in range(out.size):
        out[j] &= row[j]


@kernel
def _any(words: Any) -> bool:
    union = ZERO
    for j in range(words.size):
        union |= words[j]
    return bool(union != ZERO)


@kernel
def _sieve(chosen: Any, size: int, columns: Any, lo: int, members: int, out: Any) -> int:
    """Which members from word ``lo`` on hold the chosen columns; returns how many words that is."""
    words = min(_CHUNK, (members + 63) // 64 - lo)
    for j in range(words):
        left = members - 64 * (lo + j)
        out[j] = FULL if left >= 64 else (ONE << np.uint64(left)) - ONE
    for k in range(size):
        _and(columns[chosen[k], lo : lo + words], out[:words])
        if k & 7 == 7 and not _any(out[:words]):
            return 0
    return words


@allocating
def _narrow(mask: Any, rhs: Any, family: Any, members: int) -> Any:
    """Take from ``rhs`` what a larger one of the first members lacks, until nothing is left;
    returns what is."""
    chosen, sieved = np.empty(_SIEVE, np.int64), np.empty(_CHUNK, np.uint64)
    size = select(mask, family.order, chosen)
    rest = ZERO
    for v in range(rhs.size):
        rest |= rhs[v]
    for lo in range(0, (members + 63) // 64, _CHUNK):
        if rest == ZERO:
            break
        for j in range(_sieve(chosen, size, family.columns, lo, members, sieved)):
            word = sieved[j]
            while word != ZERO and rest != ZERO:
                larger = family.masks[64 * (lo + j) + lowest(word)]
                word &= word - ONE
                if contains(larger, mask):
                    rest = ZERO
                    for v in range(rhs.size):
                        rhs[v] &= larger[v]
                        rest |= rhs[v]
    return rest


@allocating
def _maximal_for(
    masks: Any, start: int, full: Any, family: Any, positions: Any, rhs: Any, count: int
) -> int:
    for i in range(masks.shape[0]):
        for v in range(masks.shape[1]):
            rhs[count, v] = full[v] & ~masks[i, v]
        if _narrow(masks[i], rhs[count], family, count) != ZERO:
            add_member(masks[i], count, family.columns)
            copy_row(masks[i], family.masks[count])
            positions[count] = start + i
            count += 1
    return count


@allocating
def _narrowed(masks: Any, larger: Any, family: Any, out: Any) -> None:
    for i in range(masks.shape[0]):
        _narrow(masks[i], out[i], family, larger[i])


@allocating
def _opened(masks: Any, larger: Any, family: Any, rhs: Any, out: Any) -> None:
    chosen, sieved = np.empty(_SIEVE, np.int64), np.empty(_CHUNK, np.uint64)
    for i in range(masks.shape[0]):
        size = select(masks[i], family.order, chosen)
        for lo in range(0, (larger[i] + 63) // 64, _CHUNK):
            for j in range(_sieve(chosen, size, family.columns, lo, larger[i], sieved)):
                word = sieved[j]
                while word != ZERO:
                    at = 64 * (lo + j) + lowest(word)
                    word &= word - ONE
                    if contains(family.masks[at], masks[i]):
                        for v in range(out.shape[1]):
                            out[i, v] |= rhs[at, v]
