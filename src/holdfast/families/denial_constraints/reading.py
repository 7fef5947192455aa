"""From minimal sets of atoms to the denial constraints that are reported.

The cover keeps every minimal set of atoms that no pair satisfies. Left out of what is reported are
sets that no values can satisfy, one of two mirror images, and sets that another one implies: ψ
implies φ iff ψ or its mirror image lies in φ's closure, all the atoms that follow from φ because
``<=`` is transitive. Of equivalent sets the first in canonical order is reported. Where columns are
compared with themselves alone nothing follows from anything, and only the trivial sets and mirror
images go.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.evidence.comparisons import BOTH, FIRST, Space
from holdfast.kernels import bitsets
from holdfast.kernels.jit import kernel

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

LESS, MORE, SAME, DIFFER = range(4)
"""What an atom says of its two cells: at most, at least, equal, not equal."""

_MEANING = {"<=": LESS, ">=": MORE, "=": SAME, "!=": DIFFER}


def reported(sets: U64, space: Space) -> U64:
    """The sets that are reported of minimal ones, in canonical order."""
    sets = sets[~is_trivial(sets, space)]
    mirrors = mirrored(sets, space)
    if not any(each.left != each.right for each in space.comparisons):
        return _in_order(sets[_first_of_mirrors(sets, mirrors)])
    closures, satisfiable = closed(sets, space)
    sets, mirrors, closures = sets[satisfiable], mirrors[satisfiable], closures[satisfiable]
    return _in_order(sets[~_is_implied(sets, mirrors, closures)])


def is_trivial(sets: U64, space: Space) -> Flags:
    """Which sets hold all atoms of a comparison: no outcome satisfies them."""
    flags = bitsets.to_flags(sets, space.atoms)
    out = np.zeros(len(sets), np.bool_)
    for first, each in zip(space.first, space.comparisons, strict=True):
        out |= flags[:, first : first + len(each.operators)].all(axis=1)
    return out


def mirrored(sets: U64, space: Space) -> U64:
    """The mirror image of every set."""
    flags = bitsets.to_flags(sets, space.atoms)
    out = np.zeros_like(flags)
    out[:, list(space.mirror)] = flags
    return bitsets.from_flags(out) if space.atoms else sets


def closed(sets: U64, space: Space) -> tuple[U64, Flags]:
    """All atoms that follow from each set, and whether any values satisfy it."""
    flags = bitsets.to_flags(sets, space.atoms)
    ends, meaning = _cells(space)
    out = np.zeros_like(flags)
    satisfiable = np.zeros(len(sets), np.bool_)
    _close(flags, ends, meaning, 2 * space.columns, out, satisfiable)
    return bitsets.from_flags(out), satisfiable


def _cells(space: Space) -> tuple[I64, I64]:
    """The two cells of every atom (column c of t is cell c, of s cell ``columns + c``), and what
    the atom says of them."""
    ends, meaning = [], []
    for each in space.comparisons:
        left = each.left + (0 if each.rows in (BOTH, FIRST) else space.columns)
        right = each.right + (0 if each.rows == FIRST else space.columns)
        for operator in each.operators:
            ends.append((left, right))
            meaning.append(_MEANING[operator])
    return np.array(ends, np.int64).reshape(-1, 2), np.array(meaning, np.int64)


@kernel
def _close(flags: Any, ends: Any, meaning: Any, cells: int, out: Any, satisfiable: Any) -> None:
    """For each set: which cells are at most which, by paths of ``<=``, and on which of those paths
    some step is strict."""
    least = np.empty((cells, cells), np.bool_)
    strict = np.empty((cells, cells), np.bool_)
    differ = np.empty((cells, cells), np.bool_)
    for k in range(flags.shape[0]):
        least[:] = False
        differ[:] = False
        for c in range(cells):
            least[c, c] = True
        for atom in range(flags.shape[1]):
            if not flags[k, atom]:
                continue
            a, b = ends[atom, 0], ends[atom, 1]
            if meaning[atom] == DIFFER:
                differ[a, b] = True
                differ[b, a] = True
            if meaning[atom] in (LESS, SAME):
                least[a, b] = True
            if meaning[atom] in (MORE, SAME):
                least[b, a] = True
        for via in range(cells):
            for a in range(cells):
                if least[a, via]:
                    for b in range(cells):
                        least[a, b] |= least[via, b]
        # Cells that are equal differ from the same ones.
        for a in range(cells):
            for b in range(cells):
                if differ[a, b]:
                    for c in range(cells):
                        if least[a, c] and least[c, a]:
                            for d in range(cells):
                                if least[b, d] and least[d, b]:
                                    differ[c, d] = True
                                    differ[d, c] = True
        for a in range(cells):
            for b in range(cells):
                strict[a, b] = least[a, b] and differ[a, b]
        for a in range(cells):
            for b in range(cells):
                if strict[a, b]:
                    for c in range(cells):
                        if least[c, a]:
                            for d in range(cells):
                                if least[b, d]:
                                    differ[c, d] = True
                                    differ[d, c] = True
        satisfiable[k] = True
        for c in range(cells):
            if differ[c, c]:
                satisfiable[k] = False
        for atom in range(flags.shape[1]):
            a, b = ends[atom, 0], ends[atom, 1]
            if meaning[atom] == LESS:
                out[k, atom] = least[a, b]
            elif meaning[atom] == MORE:
                out[k, atom] = least[b, a]
            elif meaning[atom] == SAME:
                out[k, atom] = least[a, b] and least[b, a]
            else:
                out[k, atom] = differ[a, b]


def _first_of_mirrors(sets: U64, mirrors: U64) -> Flags:
    """Which sets come before their mirror image, or are their own. A minimal set's mirror image is
    minimal too, because every pair of rows is looked at from both sides."""
    return _ranks(sets) <= _ranks_in(mirrors, sets)


def _is_implied(sets: U64, mirrors: U64, closures: U64) -> Flags:
    """Which sets follow from another one, or from an equivalent one that comes first."""
    order = bitsets.canonical_order(sets)
    rank = np.empty(len(sets), np.int64)
    rank[order] = np.arange(len(sets))
    implied = np.zeros(len(sets), np.bool_)
    _find_implied(sets, mirrors, closures, rank, implied)
    return implied


@kernel
def _within(one: Any, two: Any) -> bool:
    outside = np.uint64(0)
    for w in range(one.size):
        outside |= one[w] & ~two[w]
    return bool(outside == np.uint64(0))


@kernel
def _find_implied(sets: Any, mirrors: Any, closures: Any, rank: Any, implied: Any) -> None:
    for phi in range(sets.shape[0]):
        for psi in range(sets.shape[0]):
            if psi == phi:
                continue
            if _within(sets[psi], closures[phi]) or _within(mirrors[psi], closures[phi]):
                back = _within(sets[phi], closures[psi]) or _within(mirrors[phi], closures[psi])
                if not back or rank[psi] < rank[phi]:
                    implied[phi] = True
                    break


def _ranks(sets: U64) -> I64:
    order = bitsets.canonical_order(sets)
    rank = np.empty(len(sets), np.int64)
    rank[order] = np.arange(len(sets))
    return rank


def _ranks_in(some: U64, sets: U64) -> I64:
    """The ranks of sets that are among ``sets``."""
    order = bitsets.canonical_order(sets)
    ordered = sets[order]
    out: I64 = bitsets.find(some, ordered)
    return out


def _in_order(sets: U64) -> U64:
    return sets[bitsets.canonical_order(sets)]
