"""A random partner for each of some rows: another row of the table that agrees with it on a lhs.

Of all rows that agree with a wanted one the partner is that whose id has the least hash, so tasks
that see different rows can each offer one, and the least of these is drawn from all.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.hashing import mix
from holdfast.kernels.jit import kernel

_BITS = 20
"""A bit for each of so many last bits of a code says whether any wanted row may have it."""

NONE = np.uint64((1 << 64) - 1)
"""The hash of no partner."""


class DrawnCodes(NamedTuple):
    """Rows that a partner is wanted for, each with a code of its own."""

    codes: U64
    ids: I64
    slots: Any  # where a code is in ``codes``, by its hash; -1: free
    bits: Any


class Partners(NamedTuple):
    """The partners so far."""

    hashes: U64
    rows: I64  # where they are in the last block that had one; -1: in none
    counts: I64  # all rows that agree


def wanted(codes: U64, ids: I64) -> DrawnCodes:
    """Rows by their codes, which differ."""
    size = 16
    while size < 2 * len(codes):
        size *= 2
    slots = np.full(size, -1, np.int32)
    bits = np.zeros(1 << (_BITS - 3), np.uint8)
    _enter(codes, slots, bits)
    return DrawnCodes(codes, ids, slots, bits)


def no_partners(count: int) -> Partners:
    """Of so many rows."""
    return Partners(np.full(count, NONE), np.full(count, -1), np.zeros(count, np.int64))


@kernel
def _enter(codes: Any, slots: Any, bits: Any) -> None:
    last = np.uint64(slots.size - 1)
    for k in range(codes.size):
        code = codes[k]
        slot = code >> np.uint64(40) & last
        while slots[slot] >= 0:
            slot = (slot + np.uint64(1)) & last
        slots[slot] = k
        bit = code & np.uint64((1 << _BITS) - 1)
        bits[bit >> np.uint64(3)] |= np.uint8(1 << (bit & np.uint64(7)))


@kernel
def offer(codes: Any, ids: Any, wanted_rows: Any, partners: Any) -> None:
    """Offer the rows of a block, with their codes and ids, as partners."""
    slots, bits = wanted_rows.slots, wanted_rows.bits
    last = np.uint64(slots.size - 1)
    for row in range(codes.size):
        code = codes[row]
        bit = code & np.uint64((1 << _BITS) - 1)
        if not bits[bit >> np.uint64(3)] >> np.uint8(bit & np.uint64(7)) & 1:
            continue
        slot = code >> np.uint64(40) & last
        while slots[slot] >= 0 and wanted_rows.codes[slots[slot]] != code:
            slot = (slot + np.uint64(1)) & last
        at = slots[slot]
        if at < 0 or wanted_rows.ids[at] == ids[row]:
            continue
        partners.counts[at] += 1
        hashed = mix(np.uint64(ids[row]) ^ code)
        if hashed < partners.hashes[at]:
            partners.hashes[at] = hashed
            partners.rows[at] = row
