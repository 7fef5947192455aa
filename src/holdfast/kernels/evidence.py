"""Evidence of pairs of rows: which columns two rows agree in, and the search for such pairs.

Rows come as a row-major ``uint64`` block: the value words of every column, then the null-mask
words. A :class:`Shape` says which column a value word belongs to. Masks are rows of a ``uint64``
matrix, bit ``c`` for column ``c``.

Candidates are left sides with right sides. Two rows refute one if they agree on the left and differ
on a right side; a key is a left side whose right side no two rows agree in.

What is found goes into a :class:`Findings` table: distinct masks, each with a few witness pairs.
A mask is *wanted* when it refutes a candidate and is not the full one (rows that agree everywhere
are duplicates, not evidence).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.jit import kernel

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

WITNESSES = 4
"""Pairs kept per distinct mask: enough that a random delete seldom takes them all."""

_RECENT = 4_096
"""Masks that a pair is first compared with; a power of two."""

_SMALL = 24
"""Groups up to this size have all their pairs compared; larger ones are split further."""

_SHOWN_PER_CANDIDATE = 2_000
"""Pairs reported for a candidate that large groups refute, before it is left alone."""

_SPREAD = 32
"""Places in a group that refutes a candidate from which further pairs are taken."""


class Shape(NamedTuple):
    """Where the words of a row are."""

    owner: I64  # column of each value word
    bits: U64  # its bit in the mask word of that column
    spans: I64  # first value word of every 64 columns, and one past the last
    first: I64  # first value word of each column, and one past the last
    full: U64  # the mask of all columns
    nulls_equal: bool


class Findings(NamedTuple):
    """An open-addressing table of distinct masks. ``state[0]`` is the number of entries,
    ``state[1]`` is 1 once something wanted was left out."""

    masks: U64  # (capacity, W)
    wanted: NDArray[np.bool_]
    seen: I64  # witnesses stored
    witnesses: I64  # (capacity, WITNESSES, 2) row ids
    slots: NDArray[np.int32]
    state: I64
    recent: U64  # (_RECENT, W) masks that need no further witness, by hash: most pairs end here
    settled: NDArray[np.bool_]


class Candidates(NamedTuple):
    """Left sides, and the right sides of each: a bit per column, and one word more that is not 0
    where the left side is to be a key."""

    left: U64  # (n, W)
    sides: U64  # (n, W + 1)


class Trie(NamedTuple):
    """Candidates as paths of columns, most selective first; node 0 is the root."""

    column: I64
    child: I64
    sibling: I64
    candidate: I64  # candidate that ends here, or -1


def shape(widths: list[int], nulls_equal: bool) -> Shape:
    """The shape of rows whose column ``c`` has ``widths[c]`` value words."""
    columns = len(widths)
    full = np.zeros(max(1, -(-columns // 64)), np.uint64)
    for column in range(columns):
        full[column // 64] |= np.uint64(1) << np.uint64(column % 64)
    first = np.concatenate([[0], np.cumsum(widths, dtype=np.int64)]).astype(np.int64)
    owner = np.repeat(np.arange(columns, dtype=np.int64), widths)
    bits = np.uint64(1) << (owner % 64).astype(np.uint64)
    spans = first[[*range(0, columns, 64), columns]]
    return Shape(owner, bits, spans, first, full, nulls_equal)


def findings(words: int, capacity: int = 1 << 15) -> Findings:
    """An empty table for masks of ``words`` words."""
    return Findings(
        np.empty((capacity, words), np.uint64),
        np.zeros(capacity, np.bool_),
        np.zeros(capacity, np.int64),
        np.empty((capacity, WITNESSES, 2), np.int64),
        np.full(4 * capacity, -1, np.int32),
        np.zeros(2, np.int64),
        np.empty((_RECENT, words), np.uint64),
        np.zeros(_RECENT, np.bool_),
    )


def harvest(found: Findings) -> tuple[U64, I64, I64, bool]:
    """Wanted masks, their witness pairs ``(n, WITNESSES, 2)``, how many of those are set, and
    whether everything wanted was kept."""
    count = int(found.state[0])
    keep = np.flatnonzero(found.wanted[:count])
    return found.masks[keep], found.witnesses[keep], found.seen[keep], not found.state[1]


@kernel
def _differing(a: Any, b: Any, bits: Any) -> np.uint64:
    """The bits of the value words in which two rows differ. Vectorises; keep it this plain."""
    differ = np.uint64(0)
    for v in range(bits.size):
        differ |= bits[v] if a[v] != b[v] else np.uint64(0)
    return differ


@kernel
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
def contains(mask: Any, subset: Any) -> bool:
    """Whether ``subset`` lies inside ``mask``."""
    for w in range(mask.size):
        if subset[w] & ~mask[w]:
            return False
    return True


@kernel
def refuted(mask: Any, candidates: Any, k: int) -> bool:
    """Whether a pair of rows with this agree-set (not the full one) refutes a candidate."""
    if not contains(mask, candidates.left[k]):
        return False
    sides = candidates.sides[k]
    differ = sides[mask.size]
    for w in range(mask.size):
        differ |= sides[w] & ~mask[w]
    return differ != np.uint64(0)


@kernel
def _hash(mask: Any) -> np.uint64:
    h = np.uint64(0x9E3779B97F4A7C15)
    for w in range(mask.size):
        h = (h ^ mask[w]) * np.uint64(0xFF51AFD7ED558CCD)
        h ^= h >> np.uint64(32)
    return h


@kernel
def _slot(masks: Any, slots: Any, mask: Any) -> int:
    """The slot of a mask: its own, or the empty one where it would go."""
    h = _hash(mask)
    size = slots.size
    at = np.int64(h & np.uint64(size - 1))
    while True:
        entry = slots[at]
        if entry < 0:
            return at
        same = True
        for w in range(mask.size):
            if masks[entry, w] != mask[w]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & (size - 1)


@kernel
def _forget_unwanted(found: Any) -> None:
    """Make room: drop the masks that are only remembered to be skipped."""
    found.slots[:] = -1
    kept = 0
    for entry in range(found.state[0]):
        if found.wanted[entry]:
            found.masks[kept] = found.masks[entry]
            found.wanted[kept] = True
            found.seen[kept] = found.seen[entry]
            found.witnesses[kept] = found.witnesses[entry]
            found.slots[_slot(found.masks, found.slots, found.masks[kept])] = kept
            kept += 1
    found.state[0] = kept


@kernel
def known(mask: Any, recent: Any, settled: Any) -> bool:
    """Whether a mask needs no further witness. Most pairs end here, before anything that costs a
    call with the whole table: with it in the way comparing a pair took five times as long."""
    at = np.int64(_hash(mask) & np.uint64(_RECENT - 1))
    if not settled[at]:
        return False
    for w in range(mask.size):
        if recent[at, w] != mask[w]:
            return False
    return True


@kernel
def record(mask: Any, one: int, two: int, candidates: Any, full: Any, found: Any) -> None:
    """Remember a mask that is not :func:`known`, with this pair as a witness."""
    at = _slot(found.masks, found.slots, mask)
    entry = np.int64(found.slots[at])
    if entry < 0:
        wanted = False
        if not contains(mask, full):
            for k in range(candidates.left.shape[0]):
                if refuted(mask, candidates, k):
                    wanted = True
                    break
        capacity = found.masks.shape[0]
        if found.state[0] == capacity:
            if found.state[1]:
                return  # Full of wanted masks: there is nothing to forget.
            _forget_unwanted(found)
            if found.state[0] > capacity // 2 and not wanted:
                return
            if found.state[0] == capacity:
                found.state[1] = 1
                return
            at = _slot(found.masks, found.slots, mask)
        entry = found.state[0]
        found.state[0] += 1
        found.slots[at] = entry
        found.masks[entry] = mask
        found.wanted[entry] = wanted
        found.seen[entry] = 0
    if found.wanted[entry] and found.seen[entry] < found.witnesses.shape[1]:
        found.witnesses[entry, found.seen[entry], 0] = min(one, two)
        found.witnesses[entry, found.seen[entry], 1] = max(one, two)
        found.seen[entry] += 1
    if not found.wanted[entry] or found.seen[entry] == found.witnesses.shape[1]:
        at = np.int64(_hash(mask) & np.uint64(_RECENT - 1))
        found.settled[at] = True
        found.recent[at] = mask


@kernel
def is_null(row: Any, column: int, shape: Any) -> bool:
    """Whether a cell is null."""
    return (row[shape.owner.size + (column >> 6)] >> np.uint64(column & 63)) & np.uint64(
        1
    ) == np.uint64(1)


@kernel
def column_key(row: Any, column: int, shape: Any) -> np.int64:
    """One word that is equal for equal cells, in the order of the column's index. Unequal cells
    may share it too (a null and one value, say), so rows grouped by it are compared in full."""
    if is_null(row, column, shape):
        return np.int64(-0x61C8864680B583EB)
    return np.int64(row[shape.first[column]])


@kernel
def neighbours(rows: Any, ids: Any, shape: Any, reach: int, candidates: Any, found: Any) -> None:
    """Compare each row with the next few in the order of every column, and across columns."""
    n = rows.shape[0]
    columns = shape.first.size - 1
    mask = np.empty(shape.full.size, np.uint64)
    keys = np.empty(n, np.int64)
    previous = np.arange(n)
    for column in range(columns):
        # Ties keep the order of the column before, so neighbours tend to agree in both.
        for i in range(n):
            keys[i] = column_key(rows[previous[i]], column, shape)
        order = previous[np.argsort(keys, kind="mergesort")]
        for i in range(n):
            for step in range(1, reach + 1):
                if i + step >= n:
                    break
                one, two = order[i], order[i + step]
                pair_mask(rows[one], rows[two], shape, mask)
                if not known(mask, found.recent, found.settled):
                    record(mask, ids[one], ids[two], candidates, shape.full, found)
        previous = order


@kernel
def _all_pairs(
    rows: Any, ids: Any, group: Any, shape: Any, candidates: Any, mask: Any, found: Any
) -> None:
    for i in range(group.size):
        for j in range(i + 1, group.size):
            pair_mask(rows[group[i]], rows[group[j]], shape, mask)
            if not known(mask, found.recent, found.settled):
                record(mask, ids[group[i]], ids[group[j]], candidates, shape.full, found)


@kernel
def _representatives(rows: Any, group: Any, shape: Any) -> Any:
    """One row for each distinct row of a group. Rows with a null stand for themselves when a
    null differs from every null, because then even equal rows are evidence."""
    keys = np.empty(group.size, np.uint64)
    for i in range(group.size):
        h = np.uint64(0x2545F4914F6CDD1D)
        row = rows[group[i]]
        for v in range(row.size):
            h = (h ^ row[v]) * np.uint64(0x9E3779B97F4A7C15)
            h ^= h >> np.uint64(29)
        keys[i] = h
    order = np.argsort(keys)
    kept = np.empty(group.size, np.int64)
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
            kept[count] = group[order[i]]
            count += 1
    return kept[:count]


@kernel
def _open(candidates: Any, partial: Any, k: int) -> bool:
    """Whether a candidate has a right side that nothing refuted yet."""
    for w in range(partial.shape[1]):
        if candidates.sides[k, w] & ~partial[k, w]:
            return True
    return False


@kernel
def differing_sides(mask: Any, full: Any, sides: Any, out: Any) -> bool:
    """Add the right sides that a pair with this agree-set differs in; whether there are any."""
    key = sides[mask.size] if not contains(mask, full) else np.uint64(0)
    differ = key
    out[mask.size] |= key
    for w in range(mask.size):
        out[w] |= sides[w] & ~mask[w]
        differ |= sides[w] & ~mask[w]
    return differ != np.uint64(0)


@kernel
def _one_value(
    rows: Any,
    ids: Any,
    group: Any,
    shape: Any,
    candidates: Any,
    k: int,
    mask: Any,
    found: Any,
    partial: Any,
) -> int:
    """Whether the rows of a large group that agree on a left side have one value on the right:
    each is compared with one of them. If not, some more pairs are looked at. Sets the right sides
    that are refuted in ``partial`` and returns how many pairs refuted any."""
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
            pair_mask(rows[one], rows[two], shape, mask)
            if not contains(mask, candidates.left[k]):
                rest[strays] = two
                strays += 1
            elif differing_sides(mask, shape.full, candidates.sides[k], partial[k]):
                refuting += 1
                if not known(mask, found.recent, found.settled):
                    record(mask, ids[one], ids[two], candidates, shape.full, found)
        size = strays
    if refuting:
        distinct = _representatives(rows, group, shape)
        size = distinct.size
        for i in range(min(_SPREAD, size)):
            one = distinct[i * (size - 1) // _SPREAD]
            for other in ((i * (size - 1) // _SPREAD + 1) % size, (size - 1 - i) % size):
                two = distinct[other]
                if one != two:
                    pair_mask(rows[one], rows[two], shape, mask)
                    if not known(mask, found.recent, found.settled):
                        record(mask, ids[one], ids[two], candidates, shape.full, found)
    return refuting


@kernel
def _sort(keys: Any, values: Any, lo: int, hi: int) -> None:
    """Sort a slice of keys, and values with them."""
    if hi - lo > 48:
        ordered = True
        for i in range(lo + 1, hi):
            if keys[i - 1] > keys[i]:
                ordered = False
                break
        if ordered:  # rows that came through an index
            return
        order = np.argsort(keys[lo:hi])
        values[lo:hi] = values[lo:hi][order]
        keys[lo:hi] = keys[lo:hi][order]
        return
    for i in range(lo + 1, hi):
        key, value = keys[i], values[i]
        at = i
        while at > lo and keys[at - 1] > key:
            keys[at], values[at] = keys[at - 1], values[at - 1]
            at -= 1
        keys[at], values[at] = key, value


@kernel
def _is_done(k: int, shown: Any, candidates: Any, partial: Any) -> bool:
    """Whether a candidate needs no further look: refuted often enough, on all its right sides."""
    return shown[k] > _SHOWN_PER_CANDIDATE and not _open(candidates, partial, k)


@kernel
def search(
    rows: Any, ids: Any, shape: Any, trie: Any, candidates: Any, found: Any, partial: Any
) -> None:
    """Find pairs of rows that refute a candidate, for all candidates of the trie at once.

    Rows are split by the columns along the trie's paths. Groups that have become small have all
    their pairs compared, which settles every candidate below at once. A large group at the end of
    a path is tested for one value of every right side; where it has more, only some of its pairs
    are looked at, and the right side is set in ``partial``, because there may be more evidence
    than was found.
    """
    n = rows.shape[0]
    levels = trie.column.size + 1
    arena = np.empty(3 * n + 2, np.int64)
    keys = np.empty(3 * n + 2, np.int64)
    for i in range(n):
        arena[i] = i
    mask = np.empty(shape.full.size, np.uint64)
    shown = np.zeros(candidates.left.shape[0], np.int64)
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
                trie.candidate[node[depth]], shown, candidates, partial
            ):
                node[depth] = trie.sibling[node[depth]]
                continue
            lo, hi = source[depth]
            if base + (hi - lo) > arena.size:
                larger = np.empty(2 * (base + hi - lo), np.int64)
                larger[:base] = arena[:base]
                arena = larger
                wider = np.empty(2 * (base + hi - lo), np.int64)
                wider[:base] = keys[:base]
                keys = wider
            column = trie.column[node[depth]]
            top = base
            for i in range(lo, hi):
                row = rows[arena[i]]
                if shape.nulls_equal or not is_null(row, column, shape):
                    arena[top] = arena[i]
                    keys[top] = column_key(row, column, shape)
                    top += 1
            _sort(keys, arena, base, top)
            groups[depth, 0] = base
            groups[depth, 1] = top
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
        if end - at <= _SMALL:
            _all_pairs(rows, ids, arena[at:end], shape, candidates, mask, found)
            continue
        if ends >= 0 and not _is_done(ends, shown, candidates, partial):
            shown[ends] += _one_value(
                rows, ids, arena[at:end], shape, candidates, ends, mask, found, partial
            )
        if trie.child[node[depth]] >= 0:
            depth += 1
            node[depth] = trie.child[node[depth - 1]]
            source[depth, 0] = at
            source[depth, 1] = end
            fresh = True


class Survey(NamedTuple):
    """One row for every combination of values on each left side: ``slots[k]`` is an
    open-addressing table of places in ``rows[k]``; ``used[k]`` is how many are taken, and
    ``full[k]`` is set once a left side has more combinations than there is room for."""

    rows: U64  # (n, room, words)
    ids: I64
    slots: NDArray[np.int32]
    used: I64
    full: NDArray[np.bool_]
    shown: I64


def surveyed(candidates: int, width: int, room: int) -> Survey:
    """Room for so many combinations (a power of two) on each left side."""
    return Survey(
        np.empty((candidates, room, width), np.uint64),
        np.empty((candidates, room), np.int64),
        np.full((candidates, 2 * room), -1, np.int32),
        np.zeros(candidates, np.int64),
        np.zeros(candidates, np.bool_),
        np.zeros(candidates, np.int64),
    )


@kernel
def survey(
    words: Any, live: Any, base: int, shape: Any, candidates: Any, kept: Any, found: Any,
    partial: Any,
) -> None:  # fmt: skip
    """Compare each living row with the one that was kept for its values on a left side: for left
    sides of few combinations, whose groups would be too large to bring together."""
    mask = np.empty(shape.full.size, np.uint64)
    values = shape.owner.size
    last = kept.slots.shape[1] - 1
    for i in range(live.size):
        row = words[live[i]]
        for k in range(candidates.left.shape[0]):
            if kept.full[k] or _is_done(k, kept.shown, candidates, partial):
                continue
            left = candidates.left[k]
            null = False
            h = np.uint64(0x2545F4914F6CDD1D)
            for w in range(left.size):
                null = null or (row[values + w] & left[w]) != np.uint64(0)
                h = (h ^ (row[values + w] & left[w])) * np.uint64(0x9E3779B97F4A7C15)
            if null and not shape.nulls_equal:
                continue
            for v in range(values):
                column = shape.owner[v]
                if left[column >> 6] >> np.uint64(column & 63) & np.uint64(1):
                    h = (h ^ row[v]) * np.uint64(0xFF51AFD7ED558CCD)
                    h ^= h >> np.uint64(32)
            at = np.int64(h ^ (h >> np.uint64(29))) & last
            while True:
                entry = kept.slots[k, at]
                if entry < 0:
                    if kept.used[k] == kept.rows.shape[1]:
                        kept.full[k] = True
                        break
                    entry = kept.used[k]
                    kept.used[k] += 1
                    kept.slots[k, at] = entry
                    kept.rows[k, entry] = row
                    kept.ids[k, entry] = base + live[i]
                    break
                pair_mask(kept.rows[k, entry], row, shape, mask)
                if contains(mask, left):
                    if differing_sides(mask, shape.full, candidates.sides[k], partial[k]):
                        kept.shown[k] += 1
                        if not known(mask, found.recent, found.settled):
                            record(
                                mask,
                                kept.ids[k, entry],
                                base + live[i],
                                candidates,
                                shape.full,
                                found,
                            )
                    break
                at = (at + 1) & last
