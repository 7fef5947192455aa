"""Rows that violate a rule together with another one: for each row of a batch one such row.

All pairs of the batch with some rows are compared, until a row has one: this is run only where a
rule over two rows is known to break.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from holdfast.kernels.arrays import I64, Flags
from holdfast.kernels.jit import kernel
from holdfast.kernels.ranks import NULL, Codes
from holdfast.kernels.violations import Term
from holdfast.model.comparisons import BOTH, FIRST
from holdfast.model.denial_constraints import OPERATORS

_BOTH, _FIRST = BOTH, FIRST


def partners(
    codes: Codes, ids: I64, size: int, asked: Sequence[Term], nulls_equal: bool
) -> tuple[I64, Flags]:
    """For each of the first ``size`` rows the first one, of those behind them, that together with
    it satisfies all terms, as row t or as row s; -1: there is none. And whether it is t itself. A
    row may be on both sides, by its id; ``codes`` are ``(columns, rows)``."""
    terms = np.array(
        [[pair.left, pair.right, pair.rows, OPERATORS.index(op)] for pair, op in asked], np.int64
    ).reshape(-1, 4)
    others, is_t = np.full(size, -1, np.int64), np.zeros(size, np.bool_)
    _partners(np.ascontiguousarray(codes), ids, terms, nulls_equal, others, is_t)
    return others, is_t


@kernel
def _holds(left: Any, operator: Any, right: Any, nulls_equal: bool) -> bool:
    """Whether two codes compare so; operators are numbered as in ``OPERATORS``."""
    if left == NULL or right == NULL:
        same = left == right and nulls_equal
        return not same if operator == 1 else same and operator in (0, 3, 5)
    if operator == 0:
        return left == right
    if operator == 1:
        return left != right
    if operator == 2:
        return left < right
    if operator == 3:
        return left <= right
    if operator == 4:
        return left > right
    return left >= right


@kernel
def _satisfied(codes: Any, terms: Any, nulls_equal: bool, t: int, s: int) -> bool:
    for k in range(terms.shape[0]):
        one = t if terms[k, 2] == _BOTH or terms[k, 2] == _FIRST else s
        two = t if terms[k, 2] == _FIRST else s
        left, right = codes[terms[k, 0], one], codes[terms[k, 1], two]
        if not _holds(left, terms[k, 3], right, nulls_equal):
            return False
    return True


@kernel
def _partners(codes: Any, ids: Any, terms: Any, nulls_equal: bool, out: Any, is_t: Any) -> None:
    for row in range(out.size):
        for other in range(out.size, codes.shape[1]):
            if ids[other] == ids[row]:
                continue
            is_t[row] = _satisfied(codes, terms, nulls_equal, row, other)
            if is_t[row] or _satisfied(codes, terms, nulls_equal, other, row):
                out[row] = other
                break
