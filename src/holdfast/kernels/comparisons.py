"""Comparisons of two rows, as words, and what the words say.

A *comparison* puts a cell of row t beside a cell of row s, or two cells of one of them. Cells come
as codes (:mod:`holdfast.kernels.ranks`). An ordered comparison has two bits in the word of a pair,
``<=`` and ``>=``: both are set where the cells are equal, none where one of them is null. Any other
comparison has one bit, ``=``, so that the word of a space without order is the pair's agree-set.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.ranks import NULL, Codes
from holdfast.model.comparisons import BOTH, FIRST, ORDER, SECOND, Comparison, Space


class WordLayout(NamedTuple):
    """The comparisons of a space, and where their bits are in a word of ``width`` times 64 bits:
    those of one comparison always in one piece of 16."""

    left: I64  # the plane of codes of the first cell
    right: I64  # that of the second
    rows: I64  # whose cells they are: BOTH, FIRST or SECOND
    ordered: Flags
    bit: I64  # the lowest of each
    partner: I64  # the comparison that has this one's place when t and s change places
    width: int


def layout(comparisons: Sequence[tuple[int, int, int, bool]]) -> WordLayout:
    """The layout of comparisons ``(left plane, right plane, whose cells, ordered)``.

    Every comparison must come with its mirror image, the one that takes its place when the two rows
    change places: that of t.A with s.B is t.B with s.A, that of t.A with t.B is s.A with s.B.
    """
    number = {comparison: k for k, comparison in enumerate(comparisons)}
    bit, partner, end = [], [], 0
    for left, right, rows, ordered in comparisons:
        if rows == BOTH:
            image = (right, left, rows, ordered)
        else:
            image = (left, right, SECOND if rows == FIRST else FIRST, ordered)
        if image not in number:
            raise ValueError(
                f"the comparison {(left, right, rows, ordered)} lacks its mirror image"
            )
        partner.append(number[image])
        if ordered:
            end += end & 1
        bit.append(end)
        end += 2 if ordered else 1
    flat = np.array([comparison[:3] for comparison in comparisons], np.int64).reshape(-1, 3)
    return WordLayout(
        flat[:, 0].copy(),
        flat[:, 1].copy(),
        flat[:, 2].copy(),
        np.array([comparison[3] for comparison in comparisons], np.bool_),
        np.array(bit, np.int64),
        np.array(partner, np.int64),
        bitsets.words_for(end),
    )


def layout_of(comparisons: Sequence[Comparison]) -> WordLayout:
    """The layout of the comparisons of a space; the codes of column c are plane c."""
    return layout([(e.left, e.right, e.rows, e.operators == ORDER) for e in comparisons])


def equalities(columns: int) -> WordLayout:
    """The layout whose words are agree-sets: is column c equal in both rows?"""
    return layout([(column, column, BOTH, False) for column in range(columns)])


def own_words(codes: Codes, layout: WordLayout, nulls_equal: bool) -> tuple[U64, U64]:
    """What the comparisons within one row put into the words of each row's pairs: where the row is
    t, and where it is s."""
    out = np.zeros((2, codes.shape[1], layout.width), np.uint64)
    for k in np.flatnonzero(layout.rows != BOTH):
        bits = _compared(codes[layout.left[k]], codes[layout.right[k]], layout, k, nulls_equal)
        side = out[layout.rows[k] - FIRST]
        side[:, layout.bit[k] >> 6] |= bits << np.uint64(layout.bit[k] & 63)
    return out[0], out[1]


def words_of(codes: Sequence[Codes], layout: WordLayout, pairs: I64, nulls_equal: bool) -> U64:
    """The words of some pairs of rows ``(pairs, 2)``."""
    out = np.zeros((len(pairs), layout.width), np.uint64)
    whose = {BOTH: (0, 1), FIRST: (0, 0), SECOND: (1, 1)}
    for k, rows in enumerate(layout.rows.tolist()):
        one, other = whose[rows]
        left = codes[layout.left[k]][pairs[:, one]]
        right = codes[layout.right[k]][pairs[:, other]]
        bits = _compared(left, right, layout, k, nulls_equal)
        out[:, layout.bit[k] >> 6] |= bits << np.uint64(layout.bit[k] & 63)
    return out


def _compared(left: Codes, right: Codes, layout: WordLayout, k: int, nulls_equal: bool) -> U64:
    """The bits of a comparison."""
    both = (left != NULL) & (right != NULL)
    same = (left == right) & (both | nulls_equal)
    if not layout.ordered[k]:
        return same.astype(np.uint64)
    upward: U64 = (same | (both & (left < right))).astype(np.uint64)
    downward: U64 = (same | (both & (left > right))).astype(np.uint64)
    return upward | downward << np.uint64(1)


def mirror(words: U64, layout: WordLayout) -> U64:
    """The words of the same pairs with their rows in the other order."""
    out = np.zeros_like(words)
    for k, partner in enumerate(layout.partner):
        low = _bit(words, int(layout.bit[partner]))
        bits = low
        if layout.ordered[k]:
            high = _bit(words, int(layout.bit[partner]) + 1)
            # Cells of both rows change sides, so that <= becomes >=; those of one row do not.
            swapped = (high, low) if layout.rows[k] == BOTH else (low, high)
            bits = swapped[0] | swapped[1] << np.uint64(1)
        out[:, layout.bit[k] >> 6] |= bits << np.uint64(layout.bit[k] & 63)
    return out


def evidence(words: U64, layout: WordLayout, space: Space) -> U64:
    """The atoms of a space that hold in the pairs of each word. Every comparison of the space is
    one of the layout, which may have others, and order where the space asks for none."""
    cells = zip(*(array.tolist() for array in layout[:3]), strict=True)
    where = {key: k for k, key in enumerate(cells)}
    out = np.zeros((len(words), bitsets.words_for(space.atoms)), np.uint64)
    at = 0
    for comparison in space.comparisons:
        k = where[comparison.left, comparison.right, comparison.rows]
        low = _bit(words, int(layout.bit[k]))
        high = _bit(words, int(layout.bit[k]) + 1) if layout.ordered[k] else low
        same = low & high
        holds = {"=": same, "!=": same ^ np.uint64(1), "<=": low, ">=": high}
        for operator in comparison.operators:
            out[:, at >> 6] |= holds[operator] << np.uint64(at & 63)
            at += 1
    return out


def _bit(words: U64, at: int) -> U64:
    bits: U64 = words[:, at >> 6] >> np.uint64(at & 63) & np.uint64(1)
    return bits
