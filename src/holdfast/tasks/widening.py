"""The words of cells that become of a wider type of the same family."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from holdfast.kernels.arrays import I64, U64
from holdfast.tasks.encode import layout, words_of

_MOST_SHORT = 18
"""Digits of a decimal that fit one word."""


def keeps_words(old: pa.DataType, new: pa.DataType) -> bool:
    """Whether cells of a type have the same words in a wider one, so that all that was found of
    them stays as it is."""
    if at.is_decimal128(old) and at.is_decimal128(new):
        both = [kind.precision <= _MOST_SHORT for kind in (old, new)]
        return bool(old.scale == new.scale and both[0] == both[1])
    return True


def widened(words: U64, nulls: U64, old: pa.DataType, new: pa.DataType) -> U64:
    """The words of cells in a wider type, a row for each cell."""
    if keeps_words(old, new):
        return words
    # Only decimals have other words: those of the number that they are of the smallest unit.
    content = np.zeros((len(words), 2), np.int64)
    content[:, : words.shape[1]] = words.view(np.int64)
    if words.shape[1] == 1:
        content[:, 1] = content[:, 0] >> 63
    there = pa.py_buffer(np.packbits(nulls == 0, bitorder="little"))
    cells = pa.Array.from_buffers(old, len(words), [there, pa.py_buffer(content)])
    after: I64 = words_of(cells.cast(new))[0]
    width = layout(pa.schema([("c0", new)])).total - 1
    return np.ascontiguousarray(after.T).view(np.uint64).reshape(-1, width)
