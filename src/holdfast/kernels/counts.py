"""Tables of counted evidence: added up, and summed over sets of atoms.

A table is a matrix of masks in order, by their words, with a number of pairs for each.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.bitsets import copy_row
from holdfast.kernels.jit import kernel


def total(masks: list[U64], counts: list[I64], words: int) -> tuple[U64, I64]:
    """The counts of several tables added up, without masks whose counts cancel. The tables and
    their sum are in mask order."""
    sum_masks, sums = np.empty((0, words), np.uint64), np.empty(0, np.int64)
    for others, numbers in zip(masks, counts, strict=True):
        sum_masks, sums, _, _ = added(sum_masks, sums, others, numbers)
    return sum_masks, sums


def added(masks: U64, counts: I64, more: U64, numbers: I64) -> tuple[U64, I64, U64, U64]:
    """The sum of two tables, then the masks that are new in it, and those of the first table that
    it lacks. All are in mask order."""
    room = len(masks) + len(more)
    out, sums = np.empty((room, masks.shape[1]), np.uint64), np.empty(room, np.int64)
    new, gone = np.zeros(room, np.bool_), np.zeros(len(masks), np.bool_)
    tables = (bitsets.plain(masks), _plain(counts))
    others = (bitsets.plain(more), _plain(numbers))
    size = _added(*tables, *others, out, sums, new, gone)
    return out[:size], sums[:size], out[:size][new[:size]], masks[gone]


def grouped(masks: U64, counts: I64, pairs: I64) -> tuple[U64, I64, I64]:
    """Sort a table by mask, with each mask once, the sum of its counts and one of its pairs."""
    order = np.lexsort(masks.T[::-1])
    masks, counts, pairs = masks[order], counts[order], pairs[order]
    if not len(masks):
        return masks, counts, pairs
    first = bitsets.begins_run(masks)
    starts = np.flatnonzero(first)
    return masks[first], np.add.reduceat(counts, starts), pairs[first]


def pairs_showing(wanted: U64, masks: list[U64], pairs: list[I64]) -> I64:
    """For each wanted mask one of the pairs of rows that the masks of several tables come with; -1
    where none does. All are in mask order."""
    out = np.full((len(wanted), 2), -1, np.int64)
    for known, rows in zip(masks, pairs, strict=True):
        _pairs_showing(bitsets.plain(wanted), bitsets.plain(known), _plain(rows), out)
    return out


def _plain(counts: I64) -> I64:
    return np.require(counts, np.int64, ["C", "W"])


@kernel
def _compared(masks: Any, i: int, others: Any, j: int) -> int:
    """Which of two masks comes first. Slices of one mask would be counted as references, which
    takes longer than comparing them."""
    for w in range(masks.shape[1]):
        if masks[i, w] != others[j, w]:
            return -1 if masks[i, w] < others[j, w] else 1
    return 0


@kernel
def _pairs_showing(wanted: Any, masks: Any, pairs: Any, out: Any) -> None:
    j = 0
    for i in range(wanted.shape[0]):
        while j < masks.shape[0] and _compared(masks, j, wanted, i) < 0:
            j += 1
        if j == masks.shape[0]:
            break
        if pairs[j, 0] >= 0 and _compared(masks, j, wanted, i) == 0:
            out[i, 0], out[i, 1] = pairs[j, 0], pairs[j, 1]


@kernel
def _added(
    masks: Any, counts: Any, more: Any, numbers: Any, out: Any, sums: Any, new: Any, gone: Any
) -> int:
    i = j = size = 0
    while i < masks.shape[0] or j < more.shape[0]:
        if i == masks.shape[0]:
            order = 1
        elif j == more.shape[0]:
            order = -1
        else:
            order = _compared(masks, i, more, j)
        number = 0
        if order <= 0:
            copy_row(masks[i], out[size])
            number += counts[i]
            i += 1
        if order >= 0:
            copy_row(more[j], out[size])
            number += numbers[j]
            j += 1
        if number:
            sums[size] = number
            new[size] = order > 0
            size += 1
        elif order <= 0:
            gone[i - 1] = True
    return size
