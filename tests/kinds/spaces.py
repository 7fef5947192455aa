"""Spaces of comparisons to try, in the words of the code and of the oracle."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import strategies as st

from holdfast.kernels import bitsets, comparisons, pairs
from holdfast.kernels.ranks import Codes
from holdfast.model.comparisons import BOTH, EQUALITY, FIRST, ORDER, SECOND, Comparison, Space
from tests import oracle

WHOSE = {BOTH: "ts", FIRST: "tt", SECOND: "ss"}


@st.composite
def spaces(draw: st.DrawFn, columns: int = 2) -> Space:
    """Columns that are compared with themselves or not, with each other, or within a row."""
    ways = st.sampled_from([ORDER, ORDER, EQUALITY])
    alone = [Comparison(c, c, draw(ways)) for c in range(columns) if draw(st.integers(0, 5))]
    across = []
    for a, b in combinations(range(columns), 2):
        operators = draw(ways)
        if draw(st.booleans()):
            across += [Comparison(a, b, operators), Comparison(b, a, operators)]
        if draw(st.booleans()):
            across += [Comparison(a, b, operators, rows) for rows in (FIRST, SECOND)]
    return Space("drawn", columns, (*alone, *across))


def told(space: Space) -> tuple[oracle.Comparison, ...]:
    """The comparisons as the oracle has them."""
    return tuple(
        (each.left, each.right, WHOSE[each.rows], each.operators == ORDER)
        for each in space.comparisons
    )


def evidence_of(space: Space, codes: Codes, nulls_equal: bool = True) -> bitsets.Masks:
    """What all pairs of rows show, each seen from both sides."""
    layout = comparisons.layout_of(space.comparisons)
    t, s = comparisons.own_words(codes, layout, nulls_equal)
    ends = np.arange(codes.shape[1])
    sides = pairs.TileRows(codes, t), pairs.TileRows(codes, s)
    words = pairs.count(pairs.tile_pairs(layout, *sides, nulls_equal, ends)).words
    both = np.concatenate([words, comparisons.mirror(words, layout)])
    return bitsets.distinct(comparisons.evidence(both, layout, space))
