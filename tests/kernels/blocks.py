"""Rows for kernels, made from plain cells, and what plain Python says about them."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from holdfast.kernels import evidence
from holdfast.kernels.arrays import U64
from holdfast.kernels.evidence import Candidates

Cells = list[tuple[int | None, ...]]

WIDE = 1 << 64
"""From here on a cell's second word is set too."""

NULL_WORD = 0x9E3779B97F4A7C15
"""The word that groups nulls; a value of that word must not be taken for one."""


def block(cells: Cells, widths: list[int]) -> U64:
    """Rows as kernels see them: the value words of every column, then the null-mask words."""
    masks = max(1, -(-len(widths) // 64))
    first = np.concatenate([[0], np.cumsum(widths)])
    out = np.zeros((len(cells), int(first[-1]) + masks), np.uint64)
    for i, row in enumerate(cells):
        for c, cell in enumerate(row):
            if cell is None:
                out[i, first[-1] + c // 64] |= np.uint64(1 << (c % 64))
                continue
            out[i, first[c]] = np.uint64(cell % WIDE)
            if widths[c] == 2:
                out[i, first[c] + 1] = np.uint64(cell // WIDE)
    return out


def agree(one: tuple[int | None, ...], two: tuple[int | None, ...], nulls_equal: bool) -> int:
    """The agree-set of two rows, as a number."""
    mask = 0
    for c, (a, b) in enumerate(zip(one, two, strict=True)):
        if a is None or b is None:
            same = nulls_equal and a is None and b is None
        else:
            same = a == b
        mask |= same << c
    return mask


def to_words(mask: int, columns: int) -> U64:
    """A mask as words."""
    words = max(1, -(-columns // 64))
    return np.array([mask >> (64 * w) & (WIDE - 1) for w in range(words)], np.uint64)


def to_number(words: U64) -> int:
    """Words as a mask."""
    return sum(int(word) << (64 * w) for w, word in enumerate(words))


def masks(sets: list[int], columns: int) -> U64:
    """Masks as a matrix."""
    words = max(1, -(-columns // 64))
    return np.array([to_words(mask, columns) for mask in sets], np.uint64).reshape(-1, words)


KEY = -1

RhsOfEach = list[set[int]]


def candidates(lhs: list[int], columns: int, rhs: RhsOfEach | None = None) -> Candidates:
    """Left-hand sides with their right-hand sides; without those they are to be keys."""
    words = max(1, -(-columns // 64))
    bits = np.zeros((len(lhs), words + 1), np.uint64)
    for k in range(len(lhs)):
        for one in {KEY} if rhs is None else rhs[k]:
            word = words if one == KEY else one // 64
            bits[k, word] |= np.uint64(1) << np.uint64(one % 64 if one != KEY else 0)
    return Candidates(masks(lhs, columns), bits)


def refutes(mask: int, lhs: int, rhs: set[int], full: int) -> set[int]:
    """The right-hand sides of a candidate that a pair with this agree-set refutes."""
    if mask == full or lhs & ~mask:
        return set()
    return {one for one in rhs if one == KEY or not mask >> one & 1}


def told(bits: U64, columns: int) -> set[int]:
    """The right-hand sides in a row of bits."""
    return {c for c in range(columns) if int(bits[c // 64]) >> (c % 64) & 1} | (
        {KEY} if bits[-1] else set()
    )


@st.composite
def tables(draw: st.DrawFn, max_rows: int = 12, wide: bool = True) -> tuple[Cells, list[int], bool]:
    """Cells, the widths of their columns, and the null policy."""
    columns = draw(st.sampled_from([1, 2, 3, 5, 64, 66] if wide else [1, 2, 3, 4]))
    widths = [1 + (c % 3 == 1) for c in range(columns)]
    varied = draw(st.sets(st.sampled_from([0, 1, 2, columns - 2, columns - 1]), min_size=1))
    cell = [
        st.sampled_from([None, 0, NULL_WORD, 1] + ([WIDE, WIDE + 1] if width == 2 else [2]))
        if c in {v % columns for v in varied}
        else st.just(c % 2 or None)
        for c, width in enumerate(widths)
    ]
    rows = draw(st.lists(st.tuples(*cell), max_size=max_rows))
    return rows, widths, draw(st.booleans())


def harvested(
    found: evidence.Findings, columns: int
) -> tuple[dict[int, list[tuple[int, int]]], bool]:
    """What a table of findings holds, mask by mask with its pairs, and whether that is all."""
    kept, witnesses, seen, complete = evidence.harvest(found)
    pairs = {}
    for mask, rows, count in zip(kept, witnesses, seen, strict=True):
        number = to_number(mask)
        assert number not in pairs
        assert 0 < count <= evidence.WITNESSES
        pairs[number] = [(int(one), int(two)) for one, two in rows[:count]]
    return pairs, complete
