"""Families of sets as bit matrices: one row per set, bit ``c`` of the row says "holds column c".

Containment questions are answered over the transposed matrix, where one machine word holds one
column of 64 members: "and" over a query's rarest columns, and most of 64 members are refuted after
a few steps; the others are compared whole. That is what makes hundreds of thousands of sets
affordable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from math import isqrt
from typing import Any

import numpy as np
from numba import types
from numba.extending import intrinsic, overload
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.jit import allocating, kernel

Masks = U64
"""Sets as rows of bits."""

ZERO = np.uint64(0)
ONE = np.uint64(1)
FULL = np.uint64(0xFFFFFFFFFFFFFFFF)

SIEVE = 12
"""Columns of a query that members are sieved by, before they are compared whole."""


WORK = 100_000_000
"""Pairs of sets that a kernel compares before it returns to Python, which looks at the clock."""

Tick = Callable[[int], None]
"""Called now and then with the number of new sets; may end the work by raising an error."""


# One word: NumPy when interpreted, one machine instruction when compiled.


def count_ones(word: np.uint64) -> int:
    """How many bits of a word are set."""
    return int(word).bit_count()


def lowest(word: np.uint64) -> int:
    """Position of the lowest set bit of a nonzero word."""
    number = int(word)
    return (number & -number).bit_length() - 1


def _count_ones(context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.ctpop(args[0])

    return types.int64(types.uint64), generate


def _lowest(context: Any, word: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], context.get_constant(types.boolean, True))

    return types.int64(types.uint64), generate


_ctpop: Any = intrinsic(_count_ones)
_cttz: Any = intrinsic(_lowest)


@overload(count_ones, strict=False)
def _compiled_count_ones(word: Any) -> Any:
    return lambda word: _ctpop(word)


@overload(lowest, strict=False)
def _compiled_lowest(word: Any) -> Any:
    return lambda word: _cttz(word)


# Making and reading families.


def plain(matrix: Masks) -> Masks:
    """The matrix as a contiguous, writable array: kernels are compiled for these alone, because
    views and memory-mapped files would each cost a compilation of their own."""
    return np.require(matrix, np.uint64, ["C", "W"])


def words_for(atoms: int) -> int:
    """Words in a row that holds ``atoms`` bits: at least one."""
    return max(1, (atoms + 63) // 64)


def empty(atoms: int) -> Masks:
    """A family without members."""
    return np.zeros((0, words_for(atoms)), np.uint64)


def from_columns(sets: Sequence[Iterable[int]], atoms: int) -> Masks:
    """One row per set of column numbers below ``atoms``.

    >>> from_columns([(0, 2), ()], 3).tolist()
    [[5], [0]]
    """
    members = [list(member) for member in sets]
    columns = np.array([column for member in members for column in member], np.int64)
    if columns.size and (columns.min() < 0 or columns.max() >= atoms):
        raise ValueError(f"column numbers must lie in 0 … {atoms - 1}")
    row = np.repeat(np.arange(len(members)), [len(member) for member in members])
    matrix = np.zeros((len(members), words_for(atoms)), np.uint64)
    np.bitwise_or.at(matrix, (row, columns >> 6), ONE << (columns & 63).astype(np.uint64))
    return matrix


def to_columns(matrix: Masks) -> list[tuple[int, ...]]:
    """The column numbers of every row, ascending."""
    ends = np.cumsum(popcount(matrix))
    flat: list[int] = _columns(plain(matrix), int(ends[-1]) if ends.size else 0).tolist()
    return [tuple(flat[lo:hi]) for lo, hi in pairwise([0, *ends.tolist()])]


def to_flags(matrix: Masks, atoms: int) -> Flags:
    """Each set as a row of flags, one per column."""
    octets = np.ascontiguousarray(matrix).astype("<u8").view(np.uint8)
    bits = np.unpackbits(
        octets.reshape(len(matrix), 8 * matrix.shape[1]), axis=1, bitorder="little"
    )
    flags: Flags = bits[:, :atoms].astype(np.bool_)
    return flags


def from_flags(flags: Flags) -> Masks:
    """The inverse of :func:`to_flags`."""
    words = words_for(flags.shape[1])
    octets = np.zeros((len(flags), 8 * words), np.uint8)
    packed = np.packbits(flags, axis=1, bitorder="little")
    octets[:, : packed.shape[1]] = packed
    return octets.view("<u8").astype(np.uint64)


def universe(atoms: int) -> Masks:
    """The one row that holds all atoms."""
    row = np.zeros((1, words_for(atoms)), np.uint64)
    whole, rest = divmod(atoms, 64)
    row[0, :whole] = FULL
    if rest:
        row[0, whole] = (ONE << np.uint64(rest)) - ONE
    return row


def complement(matrix: Masks, atoms: int) -> Masks:
    """The atoms that each row lacks."""
    return np.asarray(~matrix & universe(atoms), np.uint64)


def popcount(matrix: Masks) -> I64:
    """The size of every row."""
    sizes: I64 = np.bitwise_count(matrix).sum(axis=1, dtype=np.int64)
    return sizes


def occupied(matrix: Masks) -> Flags:
    """Which rows hold anything."""
    return _occupied(plain(matrix))


def transpose(matrix: Masks) -> Masks:
    """One row per column number: the members that hold it (bit ``i``: member ``i``)."""
    return _transpose(plain(matrix))


# Order and equality of rows.


def canonical_order(matrix: Masks) -> I64:
    """The order that sorts rows by size, then by their columns lexicographically."""
    if len(matrix) < 2:
        return np.arange(len(matrix))
    # Of two sets of one size, the one that holds the lowest column in which they differ
    # comes first: words read from their lowest bit, ones before zeros.
    keys = ~_reversed(plain(matrix))
    return np.lexsort((*keys.T[::-1], popcount(matrix)))


def begins_run(ordered: NDArray[Any]) -> Flags:
    """Which entries or rows are unequal to the one before them; the first one counts.

    >>> begins_run(np.array([3, 3, 5])).tolist()
    [True, False, True]
    """
    flags = np.ones(len(ordered), np.bool_)
    unequal = ordered[1:] != ordered[:-1]
    flags[1:] = unequal if ordered.ndim == 1 else unequal.any(axis=1)
    return flags


def distinct(matrix: Masks) -> Masks:
    """Each row once, in canonical order."""
    ordered = matrix[canonical_order(matrix)]
    return ordered[begins_run(ordered)]


def is_member(rows: Masks, family: Masks) -> Flags:
    """Which rows also are rows of ``family``."""
    return positions(rows, family) >= 0


def positions(rows: Masks, family: Masks) -> I64:
    """Where each row is in ``family``, or -1."""
    if not len(rows) or not len(family):
        return np.full(len(rows), -1)
    both = np.concatenate([family, rows])
    order = np.lexsort(both.T)
    group = np.cumsum(begins_run(both[order])) - 1
    first = np.full(int(group[-1]) + 1, -1)
    in_family = order < len(family)
    first[group[in_family]] = order[in_family]
    members = np.empty(len(both), np.int64)
    members[order] = first[group]
    return members[len(family) :]


def find(rows: Masks, family: Masks) -> I64:
    """Where each row is in ``family``, which is in canonical order, or -1."""
    return _find(plain(rows), plain(family))


# Containment.


def any_superset(queries: Masks, family: Masks, tick: Tick | None = None) -> Flags:
    """Which queries lie inside some member of ``family``."""
    if not len(queries) or not len(family):
        return np.zeros(len(queries), np.bool_)
    family = plain(family)
    queries, columns, order = plain(queries), _transpose(family), rarest_first(family)
    flags = np.empty(len(queries), np.bool_)
    stretches = Stretches(len(queries), tick)
    while (stretch := stretches.next(len(family))) is not None:
        flags[stretch] = _inside(queries[stretch], family, columns, order)
    return flags


class Stretches:
    """Divides queries of a family into stretches, so that the clock is looked at in between;
    without a clock there is one."""

    def __init__(self, number: int, tick: Tick | None) -> None:
        self._number, self._tick = number, tick
        self._start = 0

    def next(self, family: int) -> slice | None:
        """The next stretch, or None. The family has so many members now, and the whole stretch may
        be added to them."""
        start = self._start
        if start == self._number:
            return None
        if self._tick is None:
            self._start = self._number
        else:
            self._tick(0)
            most = isqrt(family * family // 4 + WORK) - family // 2
            self._start = min(self._number, start + max(1, most))
        return slice(start, self._start)


def any_subset(queries: Masks, family: Masks) -> Flags:
    """Which queries contain some member of ``family``."""
    return any_superset(~queries, ~family)


def first_subset(queries: Masks, family: Masks) -> I64:
    """The first member of ``family`` that each query contains, or -1."""
    return _first_subset(plain(queries), plain(family))


def maximal(matrix: Masks, tick: Tick | None = None) -> Masks:
    """The rows that no other row strictly contains, each once, in canonical order."""
    rows = distinct(matrix)
    if len(rows) < 2:
        return rows
    # A row's supersets are larger, so they are decided before it when the largest come first.
    ordered, order = plain(rows[::-1]), rarest_first(rows)
    is_maximal = np.zeros(len(rows), np.bool_)
    family = np.empty_like(ordered)
    columns = np.zeros((order.size, (len(rows) + 63) // 64), np.uint64)
    members = 0
    stretches = Stretches(len(rows), tick)
    while (stretch := stretches.next(members)) is not None:
        members = _maximal(ordered[stretch], order, family, columns, members, is_maximal[stretch])
    return rows[is_maximal[::-1]]


def minimal(matrix: Masks) -> Masks:
    """The rows that strictly contain no other row, each once, in canonical order."""
    rows = ~maximal(~matrix)
    return rows[canonical_order(rows)]


def frequency(family: Masks) -> I64:
    """How many members hold each column."""
    return _frequency(plain(family))


def rarest_first(family: Masks) -> I64:
    """The columns in the order that a sieve tries them."""
    return np.argsort(frequency(family), kind="stable")


@allocating
def _columns(matrix: Masks, total: int) -> I64:
    flat = np.empty(total, np.int64)
    at = 0
    for i in range(matrix.shape[0]):
        for w in range(matrix.shape[1]):
            word = matrix[i, w]
            while word != ZERO:
                flat[at] = 64 * w + lowest(word)
                at += 1
                word &= word - ONE
    return flat


@allocating
def _frequency(matrix: Masks) -> I64:
    count = np.zeros(64 * matrix.shape[1], np.int64)
    for i in range(matrix.shape[0]):
        for w in range(matrix.shape[1]):
            word = matrix[i, w]
            while word != ZERO:
                count[64 * w + lowest(word)] += 1
                word &= word - ONE
    return count


@allocating
def _occupied(matrix: Masks) -> Flags:
    flags = np.empty(matrix.shape[0], np.bool_)
    for i in range(matrix.shape[0]):
        union = ZERO
        for w in range(matrix.shape[1]):
            union |= matrix[i, w]
        flags[i] = union != ZERO
    return flags


@kernel
def compared(one: Masks, two: Masks) -> int:
    """Below zero where ``one`` comes first in canonical order, above where ``two`` does."""
    sizes = 0
    for w in range(one.size):
        sizes += count_ones(one[w]) - count_ones(two[w])
    if sizes:
        return sizes
    for w in range(one.size):
        differ = one[w] ^ two[w]
        if differ != ZERO:
            return -1 if one[w] & differ & (ZERO - differ) != ZERO else 1
    return 0


@allocating
def _find(rows: Masks, family: Masks) -> I64:
    members = np.empty(rows.shape[0], np.int64)
    for i in range(rows.shape[0]):
        low, high = 0, family.shape[0]
        while low < high:
            middle = (low + high) // 2
            if compared(family[middle], rows[i]) < 0:
                low = middle + 1
            else:
                high = middle
        here = low < family.shape[0] and compared(family[low], rows[i]) == 0
        members[i] = low if here else -1
    return members


@allocating
def _transpose(matrix: Masks) -> Masks:
    members, words = matrix.shape
    columns = np.empty((64 * words, max(1, (members + 63) // 64)), np.uint64)
    block = np.empty(64, np.uint64)
    for j in range(columns.shape[1]):
        for w in range(words):
            for i in range(64):
                block[i] = matrix[64 * j + i, w] if 64 * j + i < members else ZERO
            _turn(block)
            for i in range(64):
                columns[64 * w + i, j] = block[i]
    return columns


@kernel
def _turn(block: Masks) -> None:
    """Transpose 64 words of 64 bits: in squares of half the size, the upper right one and the
    lower left one change places."""
    half, mask = 32, FULL >> np.uint64(32)
    while half:
        shift = np.uint64(half)
        for base in range(0, 64, 2 * half):
            for i in range(base, base + half):
                swap = ((block[i] >> shift) ^ block[i + half]) & mask
                block[i] ^= swap << shift
                block[i + half] ^= swap
        half >>= 1
        mask ^= mask << np.uint64(half)


@allocating
def _reversed(matrix: Masks) -> Masks:
    swapped = np.empty_like(matrix)
    for i in range(matrix.shape[0]):
        for w in range(matrix.shape[1]):
            word = matrix[i, w]
            turned = ZERO
            while word != ZERO:
                turned |= ONE << np.uint64(63 - lowest(word))
                word &= word - ONE
            swapped[i, w] = turned
    return swapped


@kernel
def select(row: Masks, order: I64, chosen: I64) -> int:
    """Write the first columns of ``row`` in the given order to ``chosen``, as many as fit; return
    their number."""
    size = 0
    for k in range(order.size):
        if size == chosen.size:
            break
        c = order[k]
        if (row[c >> 6] >> np.uint64(c & 63)) & ONE != ZERO:
            chosen[size] = c
            size += 1
    return size


@kernel
def sieve(chosen: I64, size: int, members: int, columns: Masks, w: int) -> np.uint64:
    """Which of the ``w``-th 64 members hold the chosen columns."""
    word = FULL
    if members - 64 * w < 64:
        word = (ONE << np.uint64(members - 64 * w)) - ONE
    for k in range(size):
        word &= columns[chosen[k], w]
        if word == ZERO:
            break
    return word


@kernel
def contains(mask: Masks, subset: Masks) -> bool:
    """Whether ``subset`` lies inside ``mask``."""
    for w in range(mask.size):
        if subset[w] & ~mask[w] != ZERO:
            return False
    return True


@kernel
def copy_row(row: Any, out: Any) -> None:
    """Copy a row cell by cell: for an assignment of rows Numba also compiles the message about
    shapes that do not match, which takes seconds in every kernel that has one."""
    for w in range(row.size):
        out[w] = row[w]


@kernel
def add_member(row: Masks, member: int, columns: Masks) -> None:
    """Enter a member into the transposed matrix."""
    bit = ONE << np.uint64(member & 63)
    for w in range(row.size):
        word = row[w]
        while word != ZERO:
            columns[64 * w + lowest(word), member >> 6] |= bit
            word &= word - ONE


@kernel
def _is_inside(
    row: Masks, chosen: I64, size: int, members: int, family: Masks, columns: Masks
) -> bool:
    """Whether one of the first ``members`` members contains the row, of whose columns some are
    chosen for the sieve."""
    for w in range((members + 63) // 64):
        word = sieve(chosen, size, members, columns, w)
        while word != ZERO:
            if contains(family[64 * w + lowest(word)], row):
                return True
            word &= word - ONE
    return False


@allocating
def _inside(queries: Masks, family: Masks, columns: Masks, order: I64) -> Flags:
    inside = np.zeros(queries.shape[0], np.bool_)
    chosen = np.empty(SIEVE, np.int64)
    for i in range(queries.shape[0]):
        size = select(queries[i], order, chosen)
        inside[i] = _is_inside(queries[i], chosen, size, family.shape[0], family, columns)
    return inside


@allocating
def _first_subset(queries: Masks, family: Masks) -> I64:
    first = np.full(queries.shape[0], -1, np.int64)
    for i in range(queries.shape[0]):
        for j in range(family.shape[0]):
            if contains(queries[i], family[j]):
                first[i] = j
                break
    return first


@allocating
def _maximal(
    rows: Masks, order: I64, family: Masks, columns: Masks, members: int, is_maximal: Flags
) -> int:
    """Add the maximal ones of ``rows``, which are distinct and come after their supersets, to the
    family. Returns how many members that has then."""
    chosen = np.empty(SIEVE, np.int64)
    for i in range(rows.shape[0]):
        size = select(rows[i], order, chosen)
        if not _is_inside(rows[i], chosen, size, members, family, columns):
            is_maximal[i] = True
            add_member(rows[i], members, columns)
            copy_row(rows[i], family[members])
            members += 1
    return members
