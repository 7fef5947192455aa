"""Which cells have one of some values."""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels.arrays import U64, Flags
from holdfast.kernels.hashing import slot
from holdfast.kernels.jit import allocating


def among(words: U64, domain: U64) -> Flags:
    """Which rows of words ``(rows, w)`` are in a domain ``(values, w)``."""
    flags = np.zeros(len(words), np.bool_)
    with np.errstate(over="ignore"):
        _mark(words, domain, flags)
    return flags


@allocating
def _mark(words: Any, domain: Any, flags: Any) -> None:
    size = 16
    while size < 2 * domain.shape[0]:
        size *= 2
    slots = np.full(size, -1, np.int32)
    for value in range(domain.shape[0]):
        slots[slot(domain[value], domain, slots)] = value
    for row in range(words.shape[0]):
        flags[row] = slots[slot(words[row], domain, slots)] >= 0
