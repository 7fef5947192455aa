"""All pairs of a few thousand rows with NumPy: obvious, and quick enough to compare with."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Codes = NDArray[np.int64]


def agree_sets(codes: Codes, nulls_equal: bool = True) -> set[frozenset[int]]:
    """The agree-sets of all pairs of rows without the full one; a null is the code -1."""
    columns = codes.shape[1]
    weights = 1 << np.arange(columns, dtype=object)
    seen: set[bytes] = set()
    for i in range(len(codes) - 1):
        same = codes[i] == codes[i + 1 :]
        if not nulls_equal:
            same &= codes[i] != -1
        seen.update(map(bytes, np.unique(np.packbits(same, axis=1, bitorder="little"), axis=0)))
    numbers = {int.from_bytes(each, "little") for each in seen} - {int(weights.sum())}
    return {frozenset(c for c in range(columns) if number >> c & 1) for number in numbers}


def duplicates(codes: Codes, nulls_equal: bool = True) -> int:
    """Rows that repeat another one."""
    if not nulls_equal:
        codes = codes[(codes != -1).all(axis=1)]
    return len(codes) - len(np.unique(codes, axis=0))
