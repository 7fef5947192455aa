"""Cells to codes: small integers that compare like the values, so that pairs are compared in bulk.

A *rank* has the order of the values, a *number* only their equality; both are dense and start at 0,
and a null is -1. Columns that are compared with each other are coded together. Numbers of different
types compare by their exact value: 1 equals 1.0, and 2^53 + 1 differs from the double 2^53.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import F64, I32, I64, U64, Flags
from holdfast.kernels.hashing import slot
from holdfast.kernels.jit import allocating
from holdfast.kernels.values import FLOAT, HASHED, WIDE

Codes = I32

NULL = -1
"""The code of a null."""

_LOW63 = np.int64(0x7FFFFFFFFFFFFFFF)


class ColumnCells(NamedTuple):
    """The cells of one column."""

    words: U64  # (rows, 1 or 2)
    nulls: Flags  # (rows,)
    kind: int  # how words hold values: one of the kinds of holdfast.kernels.values
    scale: int = 0  # a number is its integer divided by 10 to this power


def cells(rows: U64, first: I64, column: int, kind: int = HASHED, scale: int = 0) -> ColumnCells:
    """A column of row-major words; ``first`` is the first value word of each column, and one past
    the last, where the words of the null mask begin."""
    mask = rows[:, int(first[-1]) + column // 64]
    nulls = (mask >> np.uint64(column % 64) & np.uint64(1)).astype(np.bool_)
    words = np.ascontiguousarray(rows[:, int(first[column]) : int(first[column + 1])])
    return ColumnCells(words, nulls, kind, scale)


def numbers(columns: Sequence[ColumnCells]) -> Codes:
    """Codes ``(columns, rows)`` that are equal iff the values are."""
    if len({(column.kind, column.scale, column.words.shape[1]) for column in columns}) > 1:
        return ranks(columns)
    codes, _ = _numbered(columns)
    return codes


def ranks(columns: Sequence[ColumnCells]) -> Codes:
    """Codes ``(columns, rows)`` that have the order of the values."""
    if any(column.kind == HASHED for column in columns):
        raise ValueError("hashes have no order: number them instead")
    if len({(column.kind, column.scale) for column in columns}) == 1:
        codes, distinct = _numbered(columns)
        keys = distinct.view(np.int64)
        # A wide number is ordered by its upper word, which is signed, then by its lower.
        order = np.lexsort((distinct[:, 0], keys[:, 1]) if keys.shape[1] == 2 else (keys[:, 0],))
        rank = np.empty(len(order), np.int32)
        rank[order] = np.arange(len(order), dtype=np.int32)
        return _translated(codes, rank)
    codes, distinct = zip(*(_numbered([column]) for column in columns), strict=True)
    kinds = [(column.kind, column.scale) for column in columns]
    values = _exact(distinct, kinds)
    rank = {value: k for k, value in enumerate(sorted({v for column in values for v in column}))}
    ranks_ = [np.array([rank[value] for value in column], np.int32) for column in values]
    return np.concatenate(list(map(_translated, codes, ranks_)))


def _translated(codes: Codes, to: Codes) -> Codes:
    """Every code but a null's replaced by another."""
    return np.append(to, np.int32(NULL))[codes]


def _numbered(columns: Sequence[ColumnCells]) -> tuple[Codes, U64]:
    """Numbers of the cells in the order in which they come, and the words of each number."""
    words = np.concatenate([column.words for column in columns])
    nulls = np.concatenate([column.nulls for column in columns])
    codes = np.empty(len(words), np.int32)
    firsts = np.empty(len(words), np.int32)
    with np.errstate(over="ignore"):
        size = _number(words, nulls, codes, firsts)
    return codes.reshape(len(columns), -1), words[firsts[:size]]


@allocating
def _number(words: Any, nulls: Any, out: Any, firsts: Any) -> int:
    """Number the cells, and note where each number comes first; how many numbers there are."""
    size = 16
    while size < 2 * words.shape[0]:
        size *= 2
    slots = np.full(size, -1, np.int32)
    count = 0
    for row in range(words.shape[0]):
        if nulls[row]:
            out[row] = NULL
            continue
        at = slot(words[row], words, slots)
        if slots[at] >= 0:
            out[row] = out[slots[at]]
        else:
            slots[at] = row
            firsts[count] = row
            out[row] = count
            count += 1
    return count


def _exact(columns: Sequence[U64], kinds: list[tuple[int, int]]) -> list[list[int]]:
    """Numbers of several kinds and scales, all multiplied by one factor that makes each of them an
    integer."""
    scale = max([0, *(scale for kind, scale in kinds if kind != FLOAT)])
    doubles = [
        _doubles(words).tolist()
        for words, (kind, _) in zip(columns, kinds, strict=True)
        if kind == FLOAT
    ]
    finite = [x for column in doubles for x in column if abs(x) < np.inf]
    twos = max([1, *(x.as_integer_ratio()[1] for x in finite)])
    # Above every double and every wide decimal.
    infinite = (1 << 1100) * twos * 10**scale
    ends = {"inf": infinite, "-inf": -infinite, "nan": 2 * infinite}
    out = []
    for words, (kind, own) in zip(columns, kinds, strict=True):
        if kind == FLOAT:
            ratios = [(x, str(x)) for x in _doubles(words).tolist()]
            out.append([ends[s] if s in ends else _times(x, twos) * 10**scale for x, s in ratios])
        else:
            factor = twos * 10 ** (scale - own)
            low = words[:, 0].tolist() if kind == WIDE else words[:, 0].view(np.int64).tolist()
            high = words[:, 1].view(np.int64).tolist() if kind == WIDE else [0] * len(low)
            out.append([((h << 64) + v) * factor for h, v in zip(high, low, strict=True)])
    return out


def _doubles(words: U64) -> F64:
    """The doubles behind their order-preserving words."""
    ordered = np.ascontiguousarray(words[:, 0]).view(np.int64)
    return (ordered ^ ((ordered >> 63) & _LOW63)).view(np.float64)


def _times(x: float, power: int) -> int:
    above, below = x.as_integer_ratio()
    return above * (power // below)
