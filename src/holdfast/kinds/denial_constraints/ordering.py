"""The order in which denial constraints are shown, of sets of atoms: there may be a million, of
which a few are ever made into constraints. The same as that of
:func:`~holdfast.model.denial_constraints.rules_first`."""

from __future__ import annotations

import numpy as np

from holdfast.kernels.arrays import I64, U8
from holdfast.kernels.bitsets import Masks
from holdfast.model.comparisons import BOTH, ORDER, Comparison, Space
from holdfast.model.denial_constraints import FORMS, OPERATORS, WEAK

_ABSENT = len(OPERATORS)
"""Stands for no predicate, after all operators."""

_DIGITS = 20
"""So many of them fit into a word, with three bits each."""


def forms(sets: Masks, space: Space) -> U8:
    """The form of every set, as its place in ``FORMS``. No set holds all atoms of a comparison."""
    equal, differing, inequalities = (np.zeros(len(sets), np.int64) for _ in range(3))
    others = np.zeros(len(sets), np.bool_)
    for k, each in enumerate(space.comparisons):
        operators = _operators(sets, space, k)
        if each.left != each.right or each.rows != BOTH:
            others |= operators != _ABSENT
            continue
        equal += operators == OPERATORS.index("=")
        differing += operators == OPERATORS.index("!=")
        inequalities += (operators != _ABSENT) & (operators > OPERATORS.index("!="))
    names = np.select(
        [
            others,
            (inequalities == 0) & (differing == 0),
            (inequalities == 0) & (differing == 1),
            (inequalities == 2) & (differing == 0) & (equal == 0),
            (inequalities == 2) & (differing == 0),
        ],
        [FORMS.index(form) for form in ("other", "key", "fd", "order", "conditional")],
        FORMS.index("other"),
    )
    return names.astype(np.uint8)


def rules_first(sets: Masks, space: Space) -> I64:
    """The order that puts order rules first, then conditional ones, then the others; in each the
    shorter first, and those alike in column order."""
    length = np.zeros(len(sets), np.int64)
    words = []
    for place, k in enumerate(column_order(space)):
        operators = _operators(sets, space, k)
        length += operators != _ABSENT
        if place % _DIGITS == 0:
            words.append(np.zeros(len(sets), np.uint64))
        shift = np.uint64(3 * (_DIGITS - 1 - place % _DIGITS))
        words[-1] |= operators.astype(np.uint64) << shift
    rank = np.minimum(forms(sets, space), FORMS.index("conditional") + 1)
    order: I64 = np.lexsort((*words[::-1], length, rank))
    return order


def column_order(space: Space) -> list[int]:
    """The comparisons in the order in which a constraint has their predicates."""

    def key(k: int) -> tuple[int, int, int]:
        each: Comparison = space.comparisons[k]
        return each.left, each.right, each.rows

    return sorted(range(len(space.comparisons)), key=key)


def _operators(sets: Masks, space: Space, number: int) -> U8:
    """The strong operator of a comparison in every set, as its place in ``OPERATORS``."""
    comparison, first = space.comparisons[number], space.first[number]
    meaning = np.full(1 << len(comparison.operators), _ABSENT, np.uint8)
    for place, operator in enumerate(OPERATORS):
        weak = WEAK[operator] if comparison.operators == ORDER else (operator,)
        if set(weak) <= set(comparison.operators):
            meaning[sum(1 << comparison.operators.index(each) for each in weak)] = place
    bits = np.zeros(len(sets), np.uint8)
    for k in range(len(comparison.operators)):
        word, bit = divmod(first + k, 64)
        bits |= (sets[:, word] >> np.uint64(bit) & np.uint64(1)).astype(np.uint8) << np.uint8(k)
    return meaning[bits]
