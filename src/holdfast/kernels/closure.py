"""What follows from sets of atoms because ``<=`` is transitive and antisymmetric.

An atom says of two cells that the first is at most, at least, equal to or different from the
second. ``a <= b`` follows iff a path of ``<=`` leads from a to b. ``a != b`` follows iff the set
together with ``a = b`` would make two cells equal that it says are different: where both
a <= c <= b and a <= d <= b, and c != d, a and b cannot be equal, although no step is strict.

Nothing else follows. The classes of cells that are equal can be put into one row in any order that
the paths allow, and given values in that order: so whatever has no path, or does not clash, is
false for some values. Nulls add nothing and take nothing away. Where two nulls are equal, a null is
one more value, beside the others: ``<=`` stays transitive and antisymmetric. Where they are not, a
cell in a ``<=`` or ``=`` that holds has a value, and ``!=`` is what is left if ``=`` cannot hold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64
from holdfast.kernels.bitsets import ONE, ZERO, Flags, Masks
from holdfast.kernels.jit import allocating, kernel

LESS, MORE, SAME, DIFFER = range(4)
"""What an atom says of its two cells: at most, at least, equal, not equal."""


def closed(sets: Masks, ends: I64, meaning: I64) -> tuple[Masks, Flags]:
    """All atoms that follow from each set, and whether any values satisfy it; of an unsatisfiable
    set the atoms mean nothing. ``ends`` has the numbers of every atom's two cells, ``meaning`` what
    it says of them."""
    cells = int(ends.max()) + 1 if ends.size else 0
    out = np.zeros_like(sets)
    satisfiable = np.ones(len(sets), np.bool_)
    _close(bitsets.plain(sets), ends, meaning, cells, out, satisfiable)
    return out, satisfiable


def is_smallest(sets: Masks, family: Masks) -> Flags:
    """Which sets strictly contain no member of ``family``.

    A member that lies inside a set has its rarest atom there, so that only those are looked at
    whose rarest atom the set holds: sets of some ten atoms out of hundreds meet few of them.
    """
    rank = np.empty(64 * family.shape[1], np.int64)
    rank[bitsets.rarest_first(family)] = np.arange(rank.size)
    rarest = _rarest(bitsets.plain(family), rank)
    order = np.argsort(rarest, kind="stable")
    starts = np.searchsorted(rarest[order], np.arange(rank.size + 2))
    return _smallest(bitsets.plain(sets), bitsets.plain(family[order]), starts)


@allocating
def _rarest(family: Any, rank: Any) -> Any:
    """The atom of each member that the fewest members hold; that of an empty one is beyond all."""
    out = np.empty(family.shape[0], np.int64)
    for k in range(family.shape[0]):
        best = rank.size
        for w in range(family.shape[1]):
            word = family[k, w]
            while word != ZERO:
                atom = 64 * w + bitsets.lowest(word)
                word &= word - ONE
                if best == rank.size or rank[atom] < rank[best]:
                    best = atom
        out[k] = best
    return out


@allocating
def _smallest(sets: Any, family: Any, starts: Any) -> Any:
    """``family`` is in groups by rarest atom, whose ``starts`` are given; the last are empty."""
    out = np.ones(sets.shape[0], np.bool_)
    empty = starts[starts.size - 1] > starts[starts.size - 2]
    for k in range(sets.shape[0]):
        size = 0
        for w in range(sets.shape[1]):
            size += bitsets.count_ones(sets[k, w])
        out[k] = not (empty and size)
        for w in range(sets.shape[1]):
            word = sets[k, w]
            while word != ZERO and out[k]:
                atom = 64 * w + bitsets.lowest(word)
                word &= word - ONE
                for member in range(starts[atom], starts[atom + 1]):
                    if _strictly_inside(family, member, sets, k):
                        out[k] = False
                        break
    return out


@kernel
def _strictly_inside(family: Any, member: int, sets: Any, k: int) -> bool:
    equal = True
    for w in range(sets.shape[1]):
        if family[member, w] & ~sets[k, w] != ZERO:
            return False
        equal &= family[member, w] == sets[k, w]
    return not equal


@allocating
def _close(sets: Any, ends: Any, meaning: Any, cells: int, out: Any, satisfiable: Any) -> None:
    number = np.full(cells, -1, np.int64)  # of each cell among those that a set touches
    touched = np.empty(cells, np.int64)
    least = np.empty((cells, cells), np.bool_)
    one, two = np.empty(meaning.size, np.int64), np.empty(meaning.size, np.int64)
    for k in range(sets.shape[0]):
        size = 0
        for w in range(sets.shape[1]):
            word = sets[k, w]
            while word != ZERO:
                atom = 64 * w + bitsets.lowest(word)
                word &= word - ONE
                for side in range(2):
                    cell = ends[atom, side]
                    if number[cell] < 0:
                        number[cell] = size
                        touched[size] = cell
                        size += 1
        for a in range(size):
            for b in range(size):
                least[a, b] = a == b
        differing = 0
        for w in range(sets.shape[1]):
            word = sets[k, w]
            while word != ZERO:
                atom = 64 * w + bitsets.lowest(word)
                word &= word - ONE
                a, b = number[ends[atom, 0]], number[ends[atom, 1]]
                if meaning[atom] == DIFFER:
                    one[differing], two[differing] = a, b
                    differing += 1
                if meaning[atom] == LESS or meaning[atom] == SAME:
                    least[a, b] = True
                if meaning[atom] == MORE or meaning[atom] == SAME:
                    least[b, a] = True
        for via in range(size):
            for a in range(size):
                if least[a, via]:
                    for b in range(size):
                        least[a, b] |= least[via, b]
        for pair in range(differing):
            if least[one[pair], two[pair]] and least[two[pair], one[pair]]:
                satisfiable[k] = False
        for atom in range(meaning.size):
            a, b = number[ends[atom, 0]], number[ends[atom, 1]]
            if a < 0 or b < 0:
                continue  # nothing is said of one of the cells
            if meaning[atom] == LESS:
                follows = least[a, b]
            elif meaning[atom] == MORE:
                follows = least[b, a]
            elif meaning[atom] == SAME:
                follows = least[a, b] and least[b, a]
            else:
                follows = False
                for pair in range(differing):
                    c, d = one[pair], two[pair]
                    if _at_most(least, c, d, a, b) and _at_most(least, d, c, a, b):
                        follows = True
                        break
            if follows:
                out[k, atom >> 6] |= ONE << np.uint64(atom & 63)
        for a in range(size):
            number[touched[a]] = -1


@kernel
def _at_most(least: Any, c: int, d: int, a: int, b: int) -> bool:
    """Whether c <= d would follow if a and b were equal."""
    return bool(least[c, d] or (least[c, a] and least[b, d]) or (least[c, b] and least[a, d]))
