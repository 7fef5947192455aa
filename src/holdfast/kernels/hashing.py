"""Hash tables of rows of words: the one kind that kernels have.

A table is a matrix whose rows stand in the order in which they came, and *slots*, which find them:
the number of a row by its hash, -1 where a slot is free. There are more slots than rows, a power
of two of them, and a row that finds its slot taken goes into the next free one (open addressing,
linear probing). Whoever adds a row writes its number into the free slot.

One kernel keeps a table of its own, tuned to what it counts: :mod:`holdfast.kernels.pairs` hashes
blocks of comparison words at once and has half of each hash beside its entry.

>>> rows = np.array([[3, 4], [5, 6]], np.uint64)
>>> slots = np.full(8, -1, np.int32)
>>> for number in range(2):
...     slots[slot(rows[number], rows, slots)] = number
>>> int(slots[slot(np.array([5, 6], np.uint64), rows, slots)])
1
>>> int(slots[slot(np.array([6, 5], np.uint64), rows, slots)])
-1
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels.jit import inlined

_SEED = np.uint64(0x9E3779B97F4A7C15)
_FACTOR = np.uint64(0xFF51AFD7ED558CCD)
_HALF = np.uint64(32)


@inlined
def mix(h: np.uint64) -> np.uint64:
    """A word whose every bit depends on every bit of another."""
    h ^= h >> np.uint64(30)
    h *= np.uint64(0xBF58476D1CE4E5B9)
    h ^= h >> np.uint64(27)
    h *= np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


@inlined
def row_hash(row: Any) -> np.uint64:
    """The hash of a row ``(w,)`` of ``uint64`` words: for tables in memory, never stored."""
    h = _SEED
    for w in range(row.size):
        h = (h ^ row[w]) * _FACTOR
        h ^= h >> _HALF
    # A product's bits depend on those below them alone. Words that differ in their upper bits only,
    # as doubles often do, would share their slots without another step.
    h *= _FACTOR
    return h ^ (h >> _HALF)


@inlined
def slot(row: Any, rows: Any, slots: Any) -> int:
    """The slot of a row: its own, or the free one where it belongs.

    ``row`` is ``(w,)``, ``rows`` a matrix of at least ``w`` columns, of which the first ``w``
    count, both ``uint64``; ``slots`` are signed integers.
    """
    last = slots.size - 1
    at = np.int64(row_hash(row) & np.uint64(last))
    while True:
        entry = slots[at]
        if entry < 0:
            return at
        same = True
        for w in range(row.size):
            if rows[entry, w] != row[w]:
                same = False
                break
        if same:
            return at
        at = (at + 1) & last
