"""Evidence of pairs of rows: which columns two rows agree in, and what of that is kept.

Rows come as a row-major ``uint64`` block: the value words of every column, then the null-mask
words. A :class:`RowShape` says which column a value word belongs to. Masks are rows of a ``uint64``
matrix, bit ``c`` for column ``c``.

Candidates are left-hand sides with right-hand sides. Two rows refute one if they agree on the left
and differ on an rhs; a key is an lhs whose rhs no two rows agree in.

What is found goes into a :class:`Findings` table: distinct masks, each with a few witness pairs.
A mask is *wanted* when it refutes a candidate and is not the full one (rows that agree everywhere
are duplicates, not evidence).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64, U64, Flags
from holdfast.kernels.bitsets import contains, copy_row
from holdfast.kernels.hashing import mix, row_hash, slot
from holdfast.kernels.jit import allocating, inlined, kernel

WITNESSES = 4
"""Pairs kept per distinct mask: enough that a random delete seldom takes them all."""

LISTED = np.uint64(2)
"""The bit of an rhs evidence against which is listed, and does not count otherwise."""

_RECENT = 4_096
"""Masks that a pair is first compared with; a power of two."""

_NULL_KEY = np.uint64(0x9E3779B97F4A7C15)
"""The key of nulls, and of values that happen to have it."""


class RowShape(NamedTuple):
    """Where the words of a row are."""

    owner: I64  # column of each value word
    bits: U64  # its bit in the mask word of that column
    spans: I64  # first value word of every 64 columns, and one past the last
    first: I64  # first value word of each column, and one past the last
    full: U64  # the mask of all columns
    nulls_equal: bool


class NumberedRows(NamedTuple):
    """Rows to compare, and the ids by which witnesses name them."""

    words: U64  # (n, words)
    ids: I64  # (n,)


class Findings(NamedTuple):
    """A hash table of distinct masks. ``state[0]`` is the number of entries,
    ``state[1]`` is 1 once something wanted was left out."""

    masks: U64  # (capacity, W)
    wanted: Flags  # (capacity,)
    seen: I64  # (capacity,) witnesses stored
    witnesses: I64  # (capacity, most, 2) row ids, distinct pairs
    slots: I32  # (4 · capacity,) as in :mod:`holdfast.kernels.hashing`
    state: I64  # (2,)
    recent: U64  # (_RECENT, W) masks that need no further witness, by hash: most pairs end here
    used: Flags  # (_RECENT,) which of those are set


class Candidates(NamedTuple):
    """Left-hand sides, and the right-hand sides of each: a bit per column, and one word more for
    those that no two rows agree in: bit 0 where the lhs is to be a key, bit 1 (:data:`LISTED`)
    where all pairs that agree in it are to be listed."""

    lhs: U64  # (n, W)
    rhs: U64  # (n, W + 1)


def shape(widths: list[int], nulls_equal: bool) -> RowShape:
    """The shape of rows whose column ``c`` has ``widths[c]`` value words."""
    columns = len(widths)
    full = np.zeros(max(1, -(-columns // 64)), np.uint64)
    for column in range(columns):
        full[column // 64] |= np.uint64(1) << np.uint64(column % 64)
    first = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]).astype(np.int64)
    owner = np.repeat(np.arange(columns, dtype=np.int64), widths)
    bits = np.uint64(1) << (owner % 64).astype(np.uint64)
    spans = first[[*range(0, columns, 64), columns]]
    return RowShape(owner, bits, spans, first, full, nulls_equal)


def findings(words: int, capacity: int = 1 << 15, witnesses: int = WITNESSES) -> Findings:
    """An empty table for masks of ``words`` words, with so many witnesses each."""
    return Findings(
        np.empty((capacity, words), np.uint64),
        np.zeros(capacity, np.bool_),
        np.zeros(capacity, np.int64),
        np.empty((capacity, witnesses, 2), np.int64),
        np.full(4 * capacity, -1, np.int32),
        np.zeros(2, np.int64),
        np.empty((_RECENT, words), np.uint64),
        np.zeros(_RECENT, np.bool_),
    )


def harvest(findings: Findings) -> tuple[U64, I64, I64, bool]:
    """Wanted masks, their witness pairs ``(n, most, 2)``, how many of those are set, and
    whether everything wanted was kept."""
    count = int(findings.state[0])
    keep = np.flatnonzero(findings.wanted[:count])
    return (
        findings.masks[keep],
        findings.witnesses[keep],
        findings.seen[keep],
        not findings.state[1],
    )


@inlined
def _differing(a: Any, b: Any, bits: Any) -> np.uint64:
    """The bits of the value words in which two rows differ. Vectorises; keep it this plain."""
    differ = np.uint64(0)
    for v in range(bits.size):
        differ |= bits[v] if a[v] != b[v] else np.uint64(0)
    return differ


@inlined
def pair_mask(a: Any, b: Any, shape: Any, out: Any) -> None:
    """The agree-set of two rows."""
    values = shape.owner.size
    for w in range(out.size):
        if shape.nulls_equal:
            out[w] = shape.full[w] & ~(a[values + w] ^ b[values + w])
        else:
            out[w] = shape.full[w] & ~(a[values + w] | b[values + w])
        # The value words of 64 columns lie together, so each word of the mask has its own.
        lo, hi = shape.spans[w], shape.spans[w + 1]
        out[w] &= ~_differing(a[lo:hi], b[lo:hi], shape.bits[lo:hi])


@kernel
def refuted(mask: Any, candidates: Any, k: int) -> bool:
    """Whether a pair of rows with this agree-set (not the full one) refutes a candidate."""
    if not contains(mask, candidates.lhs[k]):
        return False
    rhs = candidates.rhs[k]
    differ = rhs[mask.size]
    for w in range(mask.size):
        differ |= rhs[w] & ~mask[w]
    return differ != np.uint64(0)


@allocating
def refuting(masks: Any, candidates: Any) -> Any:
    """Which agree-sets (not the full one) refute a candidate."""
    flags = np.empty(masks.shape[0], np.bool_)
    for row in range(masks.shape[0]):
        flags[row] = _refutes(masks[row], candidates)
    return flags


@kernel
def _refutes(mask: Any, candidates: Any) -> bool:
    for k in range(candidates.lhs.shape[0]):
        if refuted(mask, candidates, k):
            return True
    return False


@kernel
def _forget_unwanted(findings: Any) -> None:
    """Make room: drop the masks that are only remembered to be skipped."""
    findings.slots[:] = -1
    target = 0
    for entry in range(findings.state[0]):
        if findings.wanted[entry]:
            copy_row(findings.masks[entry], findings.masks[target])
            findings.wanted[target] = True
            findings.seen[target] = findings.seen[entry]
            for k in range(findings.witnesses.shape[1]):
                findings.witnesses[target, k, 0] = findings.witnesses[entry, k, 0]
                findings.witnesses[target, k, 1] = findings.witnesses[entry, k, 1]
            findings.slots[slot(findings.masks[target], findings.masks, findings.slots)] = target
            target += 1
    findings.state[0] = target


@inlined
def known(mask: Any, recent: Any, used: Any) -> bool:
    """Whether a mask needs no further witness. Most pairs end here, before a call with the whole
    table: with such a call for every pair, comparing took five times as long."""
    at = np.int64(row_hash(mask) & np.uint64(_RECENT - 1))
    if not used[at]:
        return False
    for w in range(mask.size):
        if recent[at, w] != mask[w]:
            return False
    return True


@inlined
def _add_witness(witnesses: Any, seen: Any, entry: int, one: int, two: int) -> None:
    """Add a pair if there is room for it. The same pair comes up wherever its rows meet again."""
    count = seen[entry]
    for k in range(count):
        if witnesses[k, 0] == one and witnesses[k, 1] == two:
            return
    if count < witnesses.shape[0]:
        witnesses[count, 0], witnesses[count, 1] = one, two
        seen[entry] += 1


@kernel
def record(mask: Any, one: int, two: int, candidates: Any, full: Any, findings: Any) -> None:
    """Remember a mask that is not :func:`known`, with this pair as a witness."""
    at = slot(mask, findings.masks, findings.slots)
    entry = np.int64(findings.slots[at])
    if entry < 0:
        wanted = not contains(mask, full) and _refutes(mask, candidates)
        capacity = findings.masks.shape[0]
        if findings.state[0] == capacity:
            if findings.state[1]:
                return  # Full of wanted masks: there is nothing to forget.
            _forget_unwanted(findings)
            if findings.state[0] > capacity // 2 and not wanted:
                return
            if findings.state[0] == capacity:
                findings.state[1] = 1
                return
            at = slot(mask, findings.masks, findings.slots)
        entry = findings.state[0]
        findings.state[0] += 1
        findings.slots[at] = entry
        copy_row(mask, findings.masks[entry])
        findings.wanted[entry] = wanted
        findings.seen[entry] = 0
    if findings.wanted[entry]:
        _add_witness(findings.witnesses[entry], findings.seen, entry, min(one, two), max(one, two))
    if not findings.wanted[entry] or findings.seen[entry] == findings.witnesses.shape[1]:
        at = np.int64(row_hash(mask) & np.uint64(_RECENT - 1))
        findings.used[at] = True
        copy_row(mask, findings.recent[at])


@inlined
def is_null(row: Any, column: int, shape: Any) -> bool:
    """Whether a cell is null."""
    return (row[shape.owner.size + (column >> 6)] >> np.uint64(column & 63)) & np.uint64(
        1
    ) == np.uint64(1)


@kernel
def column_keys(
    words: Any, chosen: Any, column: int, shape: Any, nulls: bool, rows: Any, keys: Any
) -> int:
    """Write the chosen rows, with or without those that have a null, and a key for each; returns
    how many rows that is. Equal cells have equal keys; keys of cells of one word have the order of
    the column's index. Unequal cells may share a key (a null and one value, say), so rows that are
    grouped by it are compared in full."""
    # Of all rows at once: what is looked up in the shape for each would take ten times as long.
    null_word, null_bit = shape.owner.size + (column >> 6), np.uint64(column & 63)
    first, last = shape.first[column], shape.first[column + 1]
    count = 0
    for row in chosen:
        key = words[row, first]
        # All numbers that are multiples of 2^64 have the same lower word.
        for v in range(first + 1, last):
            key ^= mix(words[row, v])
        if (words[row, null_word] >> null_bit) & np.uint64(1):
            if not nulls:
                continue
            key = _NULL_KEY
        rows[count], keys[count] = row, np.int64(key)
        count += 1
    return count


@allocating
def neighbours(rows: Any, shape: Any, reach: int, candidates: Any, findings: Any) -> None:
    """Compare each row with the next few in the order of every column, and across columns.

    ``rows`` are :class:`NumberedRows`; ``findings``, the :class:`Findings`, take what they show.
    """
    words, ids = rows.words, rows.ids
    recent, used = findings.recent, findings.used
    n = words.shape[0]
    columns = shape.first.size - 1
    mask = np.empty(shape.full.size, np.uint64)
    keys = np.empty(n, np.int64)
    order = np.arange(n)
    for column in range(columns):
        # Ties keep the order of the column before, so neighbours tend to agree in both.
        column_keys(words, order, column, shape, True, order, keys)
        order = order[np.argsort(keys, kind="mergesort")]
        for i in range(n):
            for step in range(1, reach + 1):
                if i + step >= n:
                    break
                one, two = order[i], order[i + step]
                pair_mask(words[one], words[two], shape, mask)
                if not known(mask, recent, used):
                    record(mask, ids[one], ids[two], candidates, shape.full, findings)


@inlined
def differing_rhs(mask: Any, full: Any, rhs: Any, out: Any) -> bool:
    """Add every rhs in which a pair with this agree-set differs to ``out``; whether there are
    any."""
    key = rhs[mask.size] if not contains(mask, full) else np.uint64(0)
    differ = key
    out[mask.size] |= key
    for w in range(mask.size):
        out[w] |= rhs[w] & ~mask[w]
        differ |= rhs[w] & ~mask[w]
    return differ != np.uint64(0)
