"""Helpers: how many values columns share, without a profile."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from holdfast.kernels import bitsets
from holdfast.values.overlaps import Overlaps, ValueMoves


def overlaps(matrix: list[list[int]]) -> Overlaps:
    """Those of a matrix: values that every two columns share, and in the diagonal all of one."""
    places = list(combinations(range(len(matrix)), 2))
    masks = bitsets.from_columns(places, len(matrix))
    counts = np.array([matrix[a][b] for a, b in places], np.int64)
    moves = ValueMoves(np.zeros_like(masks), masks, counts, ((0, len(matrix)),))
    return Overlaps(np.diagonal(np.array(matrix)).copy(), moves=moves)
