"""The difference of two bags of rows: which rows of each have no equal in the other."""

from __future__ import annotations

from typing import Any

from holdfast.kernels.jit import inlined, kernel


@kernel
def unmatched(
    codes: Any, rows: Any, others: Any, other_rows: Any, left: Any, other_left: Any
) -> None:
    """Pair equal rows of two bags, each row with at most one, and mark those without a partner.

    Both are in the order of their codes, which are equal wherever rows are; ``left`` and
    ``other_left`` are true at first, and at the end where a row has no partner.
    """
    i = j = 0
    while i < codes.size and j < others.size:
        if codes[i] < others[j]:
            i += 1
        elif codes[i] > others[j]:
            j += 1
        else:
            code = codes[i]
            end = j
            while end < others.size and others[end] == code:
                end += 1
            while i < codes.size and codes[i] == code:
                # Equal rows are paired in their order, so the first that is free is mostly it.
                while j < end and not other_left[j]:
                    j += 1
                for k in range(j, end):
                    if other_left[k] and _are_equal(rows, i, other_rows, k):
                        left[i] = other_left[k] = False
                        break
                i += 1
            j = end


@inlined
def _are_equal(rows: Any, i: int, other_rows: Any, k: int) -> bool:
    for word in range(rows.shape[1]):
        if rows[i, word] != other_rows[k, word]:
            return False
    return True
