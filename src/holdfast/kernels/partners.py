"""A random partner for each of some drawn rows: another row that agrees with it on a lhs.

Drawn rows that agree with each other are partners in a ring. Of all rows that agree with another
drawn row its partner is that whose id has the least hash, so tasks that see different rows can each
offer one, and the least of these is drawn from all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64, U8, U64
from holdfast.kernels.hashing import mix
from holdfast.kernels.jit import allocating, inlined, kernel

_BITS = 32
"""Bits for each code, or more, that say whether any wanted row may have one, by its last bits."""

_TILE = 1 << 11
"""Rows whose codes are held at a time."""

NONE = np.uint64((1 << 64) - 1)
"""The hash of no partner."""


class Rings(NamedTuple):
    """Drawn rows in rings of those that agree."""

    members: I32  # how many there are in the ring that a row is the first of; 0: it is not
    following: I32


class Wanted(NamedTuple):
    """Drawn rows that agree with no other drawn one, each with a code of its own; and their
    partners so far."""

    rows: I64  # among the drawn ones
    slots: I32  # where a code is, by its hash; -1: free
    bits: U8
    found: U64  # (n, 4): the code, the id, the least hash of a partner, how many rows agree
    agreeing: U64  # (n, words): the columns in which the partner agrees, as bits


_CODE, _ID, _HASH, _COUNT = range(4)


class Offers(NamedTuple):
    """What one task has found for wanted rows."""

    rows: I64  # among the wanted ones
    hashes: U64
    counts: U64
    agreeing: U64


def paired_off(codes: U64, ids: I64, columns: int) -> tuple[Rings, Wanted]:
    """Drawn rows of so many columns, with a code of each for a lhs."""
    size = len(codes)
    rings = Rings(np.zeros(size, np.int32), np.empty(size, np.int32))
    _link(codes, np.full(_slots(size), -1, np.int32), rings)
    alone = np.flatnonzero(rings.members == 1)
    found = np.empty((len(alone), 4), np.uint64)
    found[:, _CODE], found[:, _ID] = codes[alone], ids[alone]
    found[:, _HASH], found[:, _COUNT] = NONE, 0
    slots = _slots(len(alone))
    wanted = Wanted(
        alone,
        np.full(slots, -1, np.int32),
        bits_of(found[:, _CODE]),
        found,
        np.zeros((len(alone), -(-columns // 64)), np.uint64),
    )
    _enter(wanted)
    return rings, wanted


def bits_of(codes: U64) -> U8:
    """Bits by which :func:`marked` finds rows that have any of these codes."""
    bits = np.zeros(_slots(len(codes)) * _BITS // 16, np.uint8)
    _mark(codes, bits)
    return bits


def marked(codes: U64, rows: I32, bits: U8) -> I32:
    """Those of some rows whose code is among those that there are bits of, and a few others.

    >>> rows = np.arange(3, dtype=np.int32)
    >>> marked(np.array([7, 8, 7], np.uint64), rows, bits_of(np.array([7], np.uint64)))
    array([0, 2], dtype=int32)
    """
    out = np.empty(len(rows), np.int32)
    return out[: _marked(codes, rows, bits, out)]


def halved(ids: I64, rows: I32, times: int) -> I32:
    """Those of some rows that are chosen at random by their ids: about half of them, or half of
    these, so many times; all that more times choose are among them."""
    out = np.empty(len(rows), np.int32)
    return out[: _halved(ids, rows, np.uint64((1 << times) - 1), out)]


def offers(wanted: Wanted) -> Offers:
    """What was found for wanted rows."""
    rows = np.flatnonzero(wanted.found[:, _COUNT])
    found = wanted.found[rows]
    return Offers(rows, found[:, _HASH], found[:, _COUNT], wanted.agreeing[rows])


@kernel
def add_rings(rings: Any, cells: Any, differing: Any) -> Any:
    """Of drawn rows in rings of two and more, with the hashes of their cells ``(n, columns)``: how
    many there are, and the shares of their groups that other rows are, added up: at least so much.
    Adds to ``differing``, by column, that share of each row whose partner differs. A partner is one
    of the other rows, which differ more often than any two of the group."""
    rows, least = 0, 0.0
    for first in range(rings.members.size):
        members = rings.members[first]
        if members < 2:
            continue
        share = 1 - 1 / members
        rows += members
        least += share * members
        row = first
        for _ in range(members):
            partner = rings.following[row]
            for column in range(differing.size):
                if cells[row, column] != cells[partner, column]:
                    differing[column] += share
            row = partner
    return rows, least


@kernel
def add_partners(wanted: Any, differing: Any) -> float:
    """The same of rows with a partner outside of rings, whose groups are known."""
    total = 0.0
    for at in range(wanted.rows.size):
        if wanted.found[at, _COUNT] == 0:
            continue
        share = 1 - 1 / (wanted.found[at, _COUNT] + 1)
        total += share
        for column in range(differing.size):
            if not wanted.agreeing[at, column >> 6] >> np.uint64(column & 63) & np.uint64(1):
                differing[column] += share
    return total


def _slots(size: int) -> int:
    return 1 << max(4, (2 * size - 1).bit_length())


@allocating
def _link(codes: Any, slots: Any, rings: Any) -> None:
    members, following = rings
    last = np.uint64(slots.size - 1)
    latest = np.empty(codes.size, np.int32)
    for row in range(codes.size):
        slot = codes[row] >> np.uint64(40) & last
        while slots[slot] >= 0 and codes[slots[slot]] != codes[row]:
            slot = (slot + np.uint64(1)) & last
        if slots[slot] < 0:
            slots[slot] = row
        first = slots[slot]
        if members[first]:
            following[latest[first]] = row
        following[row] = first
        latest[first] = row
        members[first] += 1


@kernel
def _enter(wanted: Any) -> None:
    slots = wanted.slots
    last = np.uint64(slots.size - 1)
    for k in range(wanted.rows.size):
        slot = wanted.found[k, _CODE] >> np.uint64(40) & last
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = k


@kernel
def _mark(codes: Any, bits: Any) -> None:
    for k in range(codes.size):
        bit = codes[k] & np.uint64(8 * bits.size - 1)
        bits[bit >> np.uint64(3)] |= np.uint8(1 << (bit & np.uint64(7)))


@kernel
def _marked(codes: Any, rows: Any, bits: Any, out: Any) -> int:
    # Without a branch for each row, most of which would be mispredicted.
    last = np.uint64(8 * bits.size - 1)
    size = 0
    for row in rows:
        bit = codes[row] & last
        out[size] = row
        size += bits[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7)) & 1
    return size


@kernel
def _halved(ids: Any, rows: Any, mask: Any, out: Any) -> int:
    size = 0
    for row in rows:
        out[size] = row
        size += mix(np.uint64(ids[row])) & mask == np.uint64(0)
    return size


@allocating
def offer(hashes: Any, by_row: Any, ids: Any, rows: Any, lhs: Any, drawn: Any, wanted: Any) -> None:
    """Offer some of the rows of a block as partners on a lhs: with the hashes of their cells
    ``(columns, rows)``, and ``(rows, columns)`` what their cells are compared by; ``drawn`` is that
    of the drawn rows."""
    slots, bits, found, agreeing = wanted.slots, wanted.bits, wanted.found, wanted.agreeing
    last = np.uint64(slots.size - 1)
    last_bit = np.uint64(8 * bits.size - 1)
    codes = np.empty(_TILE, np.uint64)
    hits = np.empty(_TILE, np.int32)
    for start in range(0, rows.size, _TILE):
        some = rows[start : start + _TILE]
        codes[:] = np.uint64(0)
        for k in range(lhs.size):
            of_column = hashes[lhs[k]]
            for i in range(some.size):
                codes[i] += of_column[some[i]]
        # Without a branch for each row, most of which would be mispredicted.
        size = 0
        for i in range(some.size):
            bit = codes[i] & last_bit
            hits[size] = i
            size += bits[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7)) & 1
        for hit in hits[:size]:
            code, row = codes[hit], some[hit]
            slot = code >> np.uint64(40) & last
            while slots[slot] >= 0 and found[slots[slot], _CODE] != code:
                slot = (slot + np.uint64(1)) & last
            at = slots[slot]
            own = np.uint64(ids[row])
            if at < 0 or found[at, _ID] == own:
                continue
            found[at, _COUNT] += np.uint64(1)
            hashed = mix(own ^ code)
            if hashed < found[at, _HASH]:
                found[at, _HASH] = hashed
                _compare(drawn, wanted.rows[at], by_row, row, agreeing, at)


@inlined
def _compare(ones: Any, one: int, others: Any, other: int, agreeing: Any, at: int) -> None:
    # Rows are told by their numbers: one that is handed over is counted as referred to.
    columns = ones.shape[1]
    for word in range(agreeing.shape[1]):
        same = np.uint64(0)
        for column in range(64 * word, min(columns, 64 * word + 64)):
            is_same = np.uint64(ones[one, column] == others[other, column])
            same |= is_same << np.uint64(column & 63)
        agreeing[at, word] = same


@kernel
def merge(offers: Any, wanted: Any) -> None:
    """Add what one more task has found."""
    for k in range(offers.rows.size):
        at = offers.rows[k]
        wanted.found[at, _COUNT] += offers.counts[k]
        if offers.hashes[k] < wanted.found[at, _HASH]:
            wanted.found[at, _HASH] = offers.hashes[k]
            for word in range(wanted.agreeing.shape[1]):
                wanted.agreeing[at, word] = offers.agreeing[k, word]
