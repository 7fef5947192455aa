"""The lowest and the highest of texts, by their bytes."""

from __future__ import annotations

from typing import Any

from holdfast.kernels.jit import inlined, kernel


@kernel
def text_ends(data: Any, ends: Any, hashes: Any, out: Any) -> None:
    """Which text is the lowest and how many are equal to it, and the same for the highest.

    Text k is ``data[ends[k]:ends[k + 1]]``, and there is at least one. Hashes, ``(2, texts)``, tell
    which are equal, so bytes are compared up to where they differ.
    """
    low = high = 0
    lows = highs = 1
    for row in range(1, ends.size - 1):
        if hashes[0, row] == hashes[0, low] and hashes[1, row] == hashes[1, low]:
            lows += 1
        elif _is_less(data, ends, row, low):
            low, lows = row, 1
        if hashes[0, row] == hashes[0, high] and hashes[1, row] == hashes[1, high]:
            highs += 1
        elif _is_less(data, ends, high, row):
            high, highs = row, 1
    out[0], out[1], out[2], out[3] = low, lows, high, highs


@inlined
def _is_less(data: Any, ends: Any, one: int, two: int) -> bool:
    a, b = ends[one], ends[two]
    size, other = ends[one + 1] - a, ends[two + 1] - b
    for k in range(min(size, other)):
        if data[a + k] != data[b + k]:
            return bool(data[a + k] < data[b + k])
    return bool(size < other)
