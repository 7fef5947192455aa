"""Signatures: a few bits of each cell of a row in one word, which tell most rows apart that differ.

A look-up in a column with few values returns many rows, each in a block of its own. Most of them
agree with a new row in nothing else that matters, and their signatures show it: those of a
segment stand side by side, in a twentieth of the space of the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.checksums import check
from holdfast.kernels.evidence import RowShape, is_null
from holdfast.kernels.hashing import mix
from holdfast.kernels.index import Ranges
from holdfast.kernels.jit import allocating, kernel

_WORD = 64
_MOST_BITS = 8
"""Of a cell: two that differ have equal ones once in 256 times."""

_MOST_COLUMNS = 16
"""Columns that are looked at, so that a table tells of each set of them whether it is wanted."""


class Wanted(NamedTuple):
    """In which columns two rows have to agree, by their signatures."""

    columns: I64
    bits: int  # of a cell
    sets: Flags  # (2 ** columns,): by columns in which they agree, whether that is enough


def cell_bits(columns: int) -> int:
    """How many bits of each cell a signature has. Of more than 64 columns it has the first 64."""
    return max(1, min(_MOST_BITS, _WORD // max(1, columns)))


def signatures(words: U64, shape: RowShape) -> U64:
    """The signature of each row; rows that agree in a column have the same bits for it."""
    out = np.zeros(len(words), np.uint64)
    columns = len(shape.first) - 1
    _sign(words, shape, min(columns, _WORD), cell_bits(columns), out)
    return out


@kernel
def _sign(words: Any, shape: Any, columns: int, bits: int, out: Any) -> None:
    for row in range(words.shape[0]):
        for column in range(columns):
            h = np.uint64(is_null(words[row], column, shape))
            for v in range(shape.first[column], shape.first[column + 1]):
                h = mix(h ^ words[row, v]) + np.uint64(0x9E3779B97F4A7C15)
            out[row] |= (mix(h) >> np.uint64(64 - bits)) << np.uint64(column * bits)


def wanted(lhs: Flags, order: Sequence[int]) -> Wanted:
    """What rows have to agree in to agree on one of some left-hand sides, flags ``(n, columns)``,
    as far as that shows in the columns that come first in the ``order``."""
    asked = [column for column in order if column < _WORD and lhs[:, column].any()]
    chosen = np.array(asked[:_MOST_COLUMNS], np.int64)
    sets = np.zeros(1 << len(chosen), np.bool_)
    sets[lhs[:, chosen] @ (1 << np.arange(len(chosen)))] = True
    for k in range(len(chosen)):
        halves = sets.reshape(-1, 2, 1 << k)
        halves[:, 1] |= halves[:, 0]
    return Wanted(chosen, cell_bits(lhs.shape[1]), sets)


@allocating
def agreeing(ranges: Any, own: Any, stored: Any, place: Any, wanted: Any) -> Any:
    """Of the rows that look-ups returned those that may agree with the row that was looked up on a
    wanted set, as :class:`~holdfast.kernels.index.Ranges`.

    ``own`` are the signatures of the rows that were looked up, ``stored`` those of a segment, and
    ``place`` their :class:`~holdfast.kernels.checksums.Place`: what is read is checked here, and
    where it is damaged nothing more is read.
    """
    lo, hi, positions = ranges.lo, ranges.hi, ranges.positions
    columns, bits = wanted.columns, wanted.bits
    cell = (np.uint64(1) << np.uint64(bits)) - np.uint64(1)
    most = 0
    for i in range(lo.size):
        most += hi[i] - lo[i]
    out = np.empty(most, np.int32)
    ends = np.zeros((2, lo.size), np.int64)
    size = 0
    for i in range(lo.size):
        ends[0, i] = size
        for at in range(lo[i], hi[i]):
            position = np.int64(positions[at])
            if not check(place, position, position + 1):
                return Ranges(ends[0], ends[0], out[:0])
            differing = own[i] ^ stored[position]
            agreed = 0
            for k in range(columns.size):
                if (differing >> np.uint64(columns[k] * bits)) & cell == np.uint64(0):
                    agreed |= 1 << k
            if wanted.sets[agreed]:
                out[size] = positions[at]
                size += 1
        ends[1, i] = size
    return Ranges(ends[0], ends[1], out[:size])
