"""The search for pairs of rows that refute candidates, without comparing all pairs.

*Search* divides rows into groups that agree on more and more columns, along a trie of left-hand
sides; small groups are compared pair by pair, large ones tested for one value on the right.
*Representatives* are one row for each combination of values on an lhs, which all rows are compared
with, one after the other.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64, U64, Flags
from holdfast.kernels.bitsets import contains, copy_row
from holdfast.kernels.evidence import (
    Candidates,
    RowShape,
    column_keys,
    differing_rhs,
    known,
    pair_mask,
    record,
)
from holdfast.kernels.hashing import mix, row_hash, slot
from holdfast.kernels.jit import allocating, kernel

_SMALL = 32
"""Groups up to this size have all their pairs compared; larger ones are split further."""

_PAIRS_PER_CANDIDATE = 2_000
"""Pairs reported for a candidate that large groups refute, before it is left alone."""

_SPREAD = 32
"""Positions in a group that refutes a candidate from which further pairs are taken."""


class Trie(NamedTuple):
    """Candidates as paths of columns, most selective first; node 0 is the root."""

    column: I64
    child: I64
    sibling: I64
    candidate: I64  # candidate that ends here, or -1


@allocating
def _distinct_rows(rows: Any, group: Any, shape: Any) -> Any:
    """One row for each distinct row of a group. Rows with a null stand for themselves when a
    null differs from every null, because then even equal rows are evidence."""
    keys = np.empty(group.size, np.int64)  # signed, so that one sorting is compiled for all
    for i in range(group.size):
        keys[i] = np.int64(row_hash(rows[group[i]]))
    order = np.argsort(keys)
    distinct = np.empty(group.size, np.int64)
    count = 0
    for i in range(group.size):
        row = rows[group[order[i]]]
        same = i > 0 and keys[order[i]] == keys[order[i - 1]]
        if same:
            before = rows[group[order[i - 1]]]
            for v in range(row.size):
                if row[v] != before[v]:
                    same = False
        if same and not shape.nulls_equal:
            for v in range(shape.owner.size, row.size):
                if row[v]:
                    same = False
        if not same:
            distinct[count] = group[order[i]]
            count += 1
    return distinct[:count]


@kernel
def _open(candidates: Any, partial: Any, k: int) -> bool:
    """Whether a candidate has an rhs that nothing refuted yet."""
    for w in range(partial.shape[1]):
        if candidates.rhs[k, w] & ~partial[k, w]:
            return True
    return False


@allocating
def _one_value(
    rows: Any,
    group: Any,
    shape: Any,
    candidates: Any,
    k: int,
    mask: Any,
    findings: Any,
    partial: Any,
) -> int:
    """Test whether the rows of a large group that agree on an lhs have one value on the right: each
    is compared with one of them, and if that fails, some more pairs are compared. Sets the
    right-hand sides that are refuted in ``partial`` and returns how many pairs refuted any."""
    words, ids = rows.words, rows.ids
    recent, used, full = findings.recent, findings.used, shape.full
    lhs, rhs, differing = candidates.lhs[k], candidates.rhs[k], partial[k]
    refuting = 0
    rest = group.copy()
    size = rest.size
    while size:
        # Cells of a group share a word, which nearly always means that they are equal; rows that
        # are not stay for the next turn.
        strays = 0
        one = rest[0]
        for i in range(1, size):
            two = rest[i]
            pair_mask(words[one], words[two], shape, mask)
            if not contains(mask, lhs):
                rest[strays] = two
                strays += 1
            elif differing_rhs(mask, full, rhs, differing):
                refuting += 1
                if not known(mask, recent, used):
                    record(mask, ids[one], ids[two], candidates, full, findings)
        size = strays
    if refuting:
        distinct = _distinct_rows(words, group, shape)
        size = distinct.size
        for i in range(min(_SPREAD, size)):
            one = distinct[i * (size - 1) // _SPREAD]
            for other in ((i * (size - 1) // _SPREAD + 1) % size, (size - 1 - i) % size):
                two = distinct[other]
                if one != two:
                    pair_mask(words[one], words[two], shape, mask)
                    if not known(mask, recent, used):
                        record(mask, ids[one], ids[two], candidates, full, findings)
    return refuting


class _Room(NamedTuple):
    """Room for the distinct keys of a group of rows."""

    slots: I32  # a hash table of keys, by number
    keys: I64
    places: I64  # how many rows have each, then where they go
    numbers: I32  # of the key of each row
    values: I64


@kernel
def _gather(keys: Any, values: Any, room: Any) -> int:
    """Group keys, and values with them, and drop keys that occur once; keys in ascending order, as
    they come from an index, stay as they are. Returns how many are left."""
    n = keys.size
    ordered = True
    for i in range(1, n):
        if keys[i - 1] > keys[i]:
            ordered = False
            break
    if ordered:
        return n
    size, shift = 16, 60
    while size < 2 * n:
        size, shift = 2 * size, shift - 1
    for at in range(size):
        room.slots[at] = -1
    count = 0
    for i in range(n):
        key = keys[i]
        at = np.int64(mix(np.uint64(key)) >> np.uint64(shift))
        while room.slots[at] >= 0 and room.keys[room.slots[at]] != key:
            at = (at + 1) & (size - 1)
        number = room.slots[at]
        if number < 0:
            number = count
            room.slots[at] = number
            room.keys[number], room.places[number] = key, 0
            count += 1
        room.places[number] += 1
        room.numbers[i], room.values[i] = number, values[i]
    end = 0
    for number in range(count):
        members = room.places[number]
        room.places[number] = end if members > 1 else -1
        end += members if members > 1 else 0
    for i in range(n):
        number = room.numbers[i]
        at = room.places[number]
        if at >= 0:
            keys[at], values[at] = room.keys[number], room.values[i]
            room.places[number] = at + 1
    return end


@kernel
def _is_done(k: int, refuting: Any, candidates: Any, partial: Any) -> bool:
    """Whether a candidate is refuted often enough, for every rhs, to be left alone."""
    return refuting[k] > _PAIRS_PER_CANDIDATE and not _open(candidates, partial, k)


@allocating
def search(rows: Any, shape: Any, trie: Any, candidates: Any, findings: Any, partial: Any) -> None:
    """Find pairs of rows that refute a candidate, for all candidates of the trie at once.

    Rows are split by the columns along the trie's paths. Groups that have become small have all
    their pairs compared, which decides every candidate below at once. A large group at the end of
    a path is tested for one value of every rhs; where it has more, only some of its pairs
    are looked at, and the rhs is set in ``partial`` (of the shape of ``candidates.rhs``),
    because there may be more evidence than was found.
    """
    words, ids = rows.words, rows.ids
    recent, used = findings.recent, findings.used
    n = words.shape[0]
    levels = trie.column.size + 1
    arena = np.empty(3 * n + 2, np.int64)
    keys = np.empty(3 * n + 2, np.int64)
    slots, numbers = np.empty(4 * n + 16, np.int32), np.empty(n, np.int32)
    room = _Room(
        slots, np.empty(n, np.int64), np.empty(n, np.int64), numbers, np.empty(n, np.int64)
    )
    for i in range(n):
        arena[i] = i
    mask = np.empty(shape.full.size, np.uint64)
    refuting = np.zeros(candidates.lhs.shape[0], np.int64)
    # One frame per level: the trie node that splits, the slice that it splits, and the slice of
    # the groups that came out (above everything in use), of which ``groups[0]`` is next.
    node = np.zeros(levels, np.int64)
    source = np.zeros((levels, 2), np.int64)
    groups = np.zeros((levels, 2), np.int64)
    node[0] = trie.child[0]
    source[0, 1] = n
    base = n
    fresh = True
    depth = 0
    while depth >= 0:
        if fresh:
            if node[depth] < 0:
                depth -= 1
                fresh = False
                continue
            base = n if depth == 0 else groups[depth - 1, 1]
            if trie.child[node[depth]] < 0 and _is_done(
                trie.candidate[node[depth]], refuting, candidates, partial
            ):
                node[depth] = trie.sibling[node[depth]]
                continue
            lo, hi = source[depth]
            if base + (hi - lo) > arena.size:
                larger = np.empty(2 * (base + hi - lo), np.int64)
                copy_row(arena[:base], larger)
                arena = larger
                wider = np.empty(2 * (base + hi - lo), np.int64)
                copy_row(keys[:base], wider)
                keys = wider
            column, nulls = trie.column[node[depth]], shape.nulls_equal
            out, key = arena[base:], keys[base:]
            count = column_keys(words, arena[lo:hi], column, shape, nulls, out, key)
            groups[depth, 0] = base
            groups[depth, 1] = base + _gather(key[:count], out, room)
            fresh = False
        at, top = groups[depth]
        if at >= top:
            node[depth] = trie.sibling[node[depth]]
            fresh = True
            continue
        end = at + 1
        while end < top and keys[end] == keys[at]:
            end += 1
        groups[depth, 0] = end
        ends = trie.candidate[node[depth]]
        if end - at == 1:
            continue
        if end - at <= _SMALL:
            # In place: a call would take as long as the pairs of five rows do.
            for i in range(at, end):
                one = arena[i]
                for j in range(i + 1, end):
                    two = arena[j]
                    pair_mask(words[one], words[two], shape, mask)
                    if not known(mask, recent, used):
                        record(mask, ids[one], ids[two], candidates, shape.full, findings)
            continue
        if ends >= 0 and not _is_done(ends, refuting, candidates, partial):
            refuting[ends] += _one_value(
                rows, arena[at:end], shape, candidates, ends, mask, findings, partial
            )
        if trie.child[node[depth]] >= 0:
            depth += 1
            node[depth] = trie.child[node[depth - 1]]
            source[depth, 0] = at
            source[depth, 1] = end
            fresh = True


class RepresentativeRows(NamedTuple):
    """One row for every combination of values on each lhs: for lhs ``k``, ``keys[k]``
    and ``slots[k]`` are a hash table (:mod:`holdfast.kernels.hashing`) of combinations, and
    ``rows[k]`` and ``ids[k]`` the row that stands for each. A key is the row's nulls and its values
    in the columns of the lhs."""

    parts: I64  # (n, most) value words that a key has, as many as ``widths[k]``
    widths: I64  # (n,)
    keys: U64  # (n, room, W + most)
    slots: I32  # (n, 2 · room)
    rows: U64  # (n, room, words)
    ids: I64  # (n, room)
    used: I64  # (n,) combinations that were met
    full: Flags  # (n,) set once there are more combinations than there is room for
    refuting: I64  # (n,) pairs that refuted a candidate

    def of(self, k: int) -> RepresentativeRows:
        """The representatives on one lhs."""
        return RepresentativeRows(*(array[k : k + 1] for array in self))


def representatives(candidates: Candidates, shape: RowShape, room: int) -> RepresentativeRows:
    """Room for so many combinations (a power of two) on each lhs."""
    owners, words = shape.owner, shape.full.size
    bit = np.uint64(1) << (owners & 63).astype(np.uint64)
    has = (candidates.lhs[:, owners >> 6] & bit) != 0
    widths = has.sum(axis=1)
    most = int(widths.max(initial=0))
    count = len(has)
    return RepresentativeRows(
        np.argsort(~has, axis=1, kind="stable")[:, :most].copy(),
        widths,
        np.empty((count, room, words + most), np.uint64),
        np.full((count, 2 * room), -1, np.int32),
        np.empty((count, room, owners.size + words), np.uint64),
        np.empty((count, room), np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.bool_),
        np.zeros(count, np.int64),
    )


@allocating
def compare_with_representatives(
    stored: Any,
    positions: Any,
    shape: Any,
    candidates: Any,
    table: Any,
    findings: Any,
    partial: Any,
) -> None:
    """Compare each of some rows with the representative of its values on an lhs. This is for
    left-hand sides with few combinations of values, whose groups would be too large to bring
    together.

    ``stored`` are :class:`SegmentRows`, of which the living ones at ``positions`` count, ``table``
    the :class:`RepresentativeRows` so far; right-hand sides that are refuted are set in ``partial``
    (of the shape of ``candidates.rhs``).
    """
    words, base = stored.words, stored.base
    recent, used, full = findings.recent, findings.used, shape.full
    values, size = shape.owner.size, shape.full.size
    mask = np.empty(size, np.uint64)
    for k in range(candidates.lhs.shape[0]):
        lhs, rhs, differing = candidates.lhs[k], candidates.rhs[k], partial[k]
        parts = table.parts[k, : table.widths[k]]
        keys, slots, rows, ids = (
            table.keys[k],
            table.slots[k],
            table.rows[k],
            table.ids[k],
        )
        key = np.empty(size + parts.size, np.uint64)
        done = table.full[k] or _is_done(k, table.refuting, candidates, partial)
        for i in range(positions.size):
            if done:
                break
            position = positions[i]
            null = np.uint64(0)
            for w in range(size):
                key[w] = words[position, values + w] & lhs[w]
                null |= key[w]
            if null and not shape.nulls_equal:
                continue
            for v in range(parts.size):
                key[size + v] = words[position, parts[v]]
            at = slot(key, keys, slots)
            entry = np.int64(slots[at])
            if entry >= 0:
                pair_mask(rows[entry], words[position], shape, mask)
                if differing_rhs(mask, full, rhs, differing):
                    table.refuting[k] += 1
                    if not known(mask, recent, used):
                        record(mask, ids[entry], base + position, candidates, full, findings)
                    done = _is_done(k, table.refuting, candidates, partial)
            elif table.used[k] == ids.size:
                table.full[k] = done = True
            else:
                entry = table.used[k]
                table.used[k] += 1
                slots[at] = entry
                copy_row(key, keys[entry, : key.size])
                copy_row(words[position], rows[entry])
                ids[entry] = base + position
