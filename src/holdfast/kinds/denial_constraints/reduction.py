"""From minimal sets of atoms to the denial constraints that are reported.

The cover keeps every minimal set of atoms that no pair satisfies. Left out of what is reported are
sets that no values can satisfy, one of two mirror images, and sets that another one implies: ψ
implies φ iff ψ or its mirror image lies in φ's closure, all the atoms that follow from φ
(:mod:`holdfast.kernels.closure`). Of equivalent sets the first in canonical order is reported.

ψ lies in the closure of φ iff the closure of ψ does. So equivalent sets are those with one closure,
up to mirror image, and reported are those whose closure contains no other. Where columns are
compared with themselves alone nothing follows from anything: only sets with all atoms of a
comparison and mirror images go.
"""

from __future__ import annotations

import numpy as np

from holdfast.evidence.mirrors import first_of_two, mirrored, one_of_mirrors
from holdfast.kernels import bitsets, closure
from holdfast.kernels.arrays import I64, Flags
from holdfast.kernels.bitsets import Masks
from holdfast.model.comparisons import FIRST, SECOND, Space

_MEANING = {
    "<=": closure.LESS,
    ">=": closure.MORE,
    "=": closure.SAME,
    "!=": closure.DIFFER,
}


def reported(sets: Masks, space: Space) -> Masks:
    """The sets that are reported of minimal ones, in canonical order.

    >>> from holdfast.model.comparisons import ORDER, Comparison
    >>> space = Space("order", 2, (Comparison(0, 0, ORDER), Comparison(1, 1, ORDER)))
    >>> sets = bitsets.from_columns([(0, 4), (1, 3), (0, 1, 2)], space.atoms)
    >>> bitsets.to_columns(reported(sets, space))
    [(0, 4)]
    """
    sets = sets[~is_trivial(sets, space)]
    sets = one_of_mirrors(sets, space)
    if all(each.left == each.right for each in space.comparisons):
        return sets
    closures, satisfiable = closed(sets, space)
    sets, closures = sets[satisfiable], closures[satisfiable]
    closures = first_of_two(closures, mirrored(closures, space))
    kept = bitsets.distinct(closures)
    kept = kept[closure.is_smallest(kept, np.concatenate([kept, mirrored(kept, space)]))]
    where = bitsets.find(closures, kept)
    # Sets are in canonical order, so that the first with a closure is the one to report.
    _, first = np.unique(where, return_index=True)
    return sets[np.sort(first[where[first] >= 0])]


def is_trivial(sets: Masks, space: Space) -> Flags:
    """Which sets hold all atoms of a comparison, so that no outcome satisfies them."""
    out = np.zeros(len(sets), np.bool_)
    if not len(sets):
        return out
    for first, each in zip(space.first, space.comparisons, strict=True):
        if "!=" in each.operators:
            atoms = range(first, first + len(each.operators))
            [whole] = bitsets.from_columns([atoms], space.atoms)
            words = np.flatnonzero(whole)
            out |= np.logical_and.reduce([sets[:, w] & whole[w] == whole[w] for w in words])
    return out


def closed(sets: Masks, space: Space) -> tuple[Masks, Flags]:
    """All atoms that follow from each set, and whether any values satisfy it."""
    return closure.closed(sets, *_cells(space))


def _cells(space: Space) -> tuple[I64, I64]:
    """The two cells of every atom (column c of t is cell c, of s cell ``columns + c``), and what
    the atom says of them."""
    ends, meaning = [], []
    for each in space.comparisons:
        left = each.left + (space.columns if each.rows == SECOND else 0)
        right = each.right + (0 if each.rows == FIRST else space.columns)
        for operator in each.operators:
            ends.append((left, right))
            meaning.append(_MEANING[operator])
    return np.array(ends, np.int64).reshape(-1, 2), np.array(meaning, np.int64)
