"""Candidates: left sides by right side on the driver, and joined by left side for tasks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.dependencies import KEY
from holdfast.kernels import bitsets
from holdfast.kernels.evidence import Candidates

U64 = NDArray[np.uint64]

Lefts = dict[int, U64]
"""Left sides of every right side."""


def none(sides: Iterable[int], atoms: int) -> Lefts:
    """No left sides for some right sides."""
    return {side: bitsets.empty(atoms) for side in sides}


def count(lefts: Lefts) -> int:
    """How many candidates there are."""
    return sum(map(len, lefts.values()))


def joined(one: Lefts, two: Lefts) -> Lefts:
    """The left sides of both."""
    return {side: np.concatenate([masks, two[side]]) for side, masks in one.items()}


def implied(lefts: Lefts, by: Lefts) -> dict[int, NDArray[np.bool_]]:
    """Which left sides contain one of ``by`` for the same right side, or one that is a key."""
    keys = by.get(KEY)
    out = {}
    for side, masks in lefts.items():
        family = by[side]
        if keys is not None and side != KEY:
            family = np.concatenate([family, keys])
        out[side] = bitsets.any_subset(masks, family)
    return out


def inside(lefts: Lefts, by: Lefts) -> Lefts:
    """Those that are :func:`implied`."""
    flags = implied(lefts, by)
    return {side: masks[flags[side]] for side, masks in lefts.items()}


def outside(lefts: Lefts, by: Lefts) -> Lefts:
    """Those that are not :func:`implied`."""
    flags = implied(lefts, by)
    return {side: masks[~flags[side]] for side, masks in lefts.items()}


def shortest(lefts: Lefts, most: int) -> Lefts:
    """At most so many of them, the shortest; of a right side the first where not all have room."""
    if count(lefts) <= most:
        return lefts
    sizes = {side: bitsets.popcount(masks) for side, masks in lefts.items()}
    limit = np.partition(np.concatenate([*sizes.values()]), most)[most]
    room = most - sum(int((mine < limit).sum()) for mine in sizes.values())
    out = {}
    for side, masks in lefts.items():
        equal = sizes[side] == limit
        taken = equal & (np.cumsum(equal) <= room)
        room -= int(taken.sum())
        out[side] = masks[(sizes[side] < limit) | taken]
    return out


def together(lefts: Lefts, atoms: int) -> Candidates:
    """Candidates by left side, each with its right sides as bits."""
    words = bitsets.words_for(atoms)
    masks = np.concatenate([bitsets.empty(atoms), *lefts.values()])
    sides = np.zeros((len(masks), words + 1), np.uint64)
    start = 0
    for side, mine in lefts.items():
        word, bit = (words, 0) if side == KEY else (side // 64, side % 64)
        sides[start : start + len(mine), word] = np.uint64(1) << np.uint64(bit)
        start += len(mine)
    order = np.lexsort(masks.T)
    masks, sides = masks[order], sides[order]
    fresh = np.ones(len(masks), np.bool_)
    fresh[1:] = (masks[1:] != masks[:-1]).any(axis=1)
    starts = np.flatnonzero(fresh)
    if not len(starts):
        return Candidates(masks, sides)
    return Candidates(masks[starts], np.bitwise_or.reduceat(sides, starts, axis=0))


def chosen(candidates: Candidates, which: NDArray[np.bool_]) -> Candidates:
    """Some of the candidates."""
    return Candidates(candidates.left[which], candidates.sides[which])


def apart(candidates: Candidates, sides: U64, lefts: Lefts) -> Lefts:
    """The left sides by right side again, of those right sides whose bits are set in ``sides``."""
    words = candidates.left.shape[1]
    out = {}
    for side in lefts:
        word, bit = (words, 0) if side == KEY else (side // 64, side % 64)
        has = candidates.sides[:, word] & sides[:, word] & (np.uint64(1) << np.uint64(bit))
        out[side] = candidates.left[has != 0]
    return out
