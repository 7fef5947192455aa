"""Candidates: left-hand sides by rhs on the driver, and joined by lhs for tasks."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.dependencies import KEY
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.kernels.evidence import LISTED, Candidates
from holdfast.model.limits import Limits

SUBKEY = -2
"""The rhs of a subkey, a key without one of its columns: no two rows agree in it, as in that of a
key."""

ByRhs = dict[int, U64]
"""Left-hand sides of every rhs."""


def none(wanted: Iterable[int], atoms: int) -> ByRhs:
    """No left-hand sides for some right-hand sides."""
    return {rhs: bitsets.empty(atoms) for rhs in wanted}


def count(lhs: ByRhs) -> int:
    """How many candidates there are."""
    return sum(map(len, lhs.values()))


def joined(one: ByRhs, two: ByRhs) -> ByRhs:
    """The left-hand sides of both."""
    return {rhs: np.concatenate([masks, two[rhs]]) for rhs, masks in one.items()}


def implied(lhs: ByRhs, by: ByRhs) -> dict[int, NDArray[np.bool_]]:
    """Which left-hand sides contain one of ``by`` for the same rhs, or one that is a key."""
    keys = by.get(KEY)
    out = {}
    for rhs, masks in lhs.items():
        family = by[rhs]
        if keys is not None and rhs != KEY:
            family = np.concatenate([family, keys])
        out[rhs] = bitsets.any_subset(masks, family)
    return out


def inside(lhs: ByRhs, by: ByRhs) -> ByRhs:
    """Those that are :func:`implied`."""
    flags = implied(lhs, by)
    return {rhs: masks[flags[rhs]] for rhs, masks in lhs.items()}


def outside(lhs: ByRhs, by: ByRhs) -> ByRhs:
    """Those that are not :func:`implied`."""
    flags = implied(lhs, by)
    return {rhs: masks[~flags[rhs]] for rhs, masks in lhs.items()}


def up_to(lhs: ByRhs, limits: Limits) -> ByRhs:
    """Those that are no longer than limits say."""
    out = {}
    for rhs, masks in lhs.items():
        most = limits.keys if rhs == KEY else limits.dependencies
        out[rhs] = masks if most is None else masks[bitsets.popcount(masks) <= most]
    return out


def shortest(lhs: ByRhs, most: int) -> ByRhs:
    """At most so many of them, the shortest; of an rhs the first where not all have room."""
    if count(lhs) <= most:
        return lhs
    sizes = {rhs: bitsets.popcount(masks) for rhs, masks in lhs.items()}
    limit = np.partition(np.concatenate([*sizes.values()]), most)[most]
    room = most - sum(int((lengths < limit).sum()) for lengths in sizes.values())
    out = {}
    for rhs, masks in lhs.items():
        equal = sizes[rhs] == limit
        taken = equal & (np.cumsum(equal) <= room)
        room -= int(taken.sum())
        out[rhs] = masks[(sizes[rhs] < limit) | taken]
    return out


def together(lhs: ByRhs, atoms: int) -> Candidates:
    """Candidates by lhs, each with its right-hand sides as bits."""
    words = bitsets.words_for(atoms)
    masks = np.concatenate([bitsets.empty(atoms), *lhs.values()])
    bits = np.zeros((len(masks), words + 1), np.uint64)
    start = 0
    for rhs, masks_of_rhs in lhs.items():
        word, bit = _bit(rhs, words)
        bits[start : start + len(masks_of_rhs), word] = bit
        start += len(masks_of_rhs)
    return _united(masks, bits)


def united(one: Candidates, two: Candidates) -> Candidates:
    """Both, by lhs, each with all its right-hand sides."""
    return _united(np.concatenate([one.lhs, two.lhs]), np.concatenate([one.rhs, two.rhs]))


def _united(masks: U64, bits: U64) -> Candidates:
    order = np.lexsort(masks.T)
    masks, bits = masks[order], bits[order]
    starts = np.flatnonzero(bitsets.begins_run(masks))
    if not len(starts):
        return Candidates(masks, bits)
    return Candidates(masks[starts], np.bitwise_or.reduceat(bits, starts, axis=0))


def chosen(candidates: Candidates, which: NDArray[np.bool_]) -> Candidates:
    """Some of the candidates."""
    return Candidates(candidates.lhs[which], candidates.rhs[which])


def apart(candidates: Candidates, bits: U64, lhs: ByRhs) -> ByRhs:
    """The left-hand sides by rhs again, for every rhs that is set in ``bits``."""
    words = candidates.lhs.shape[1]
    out = {}
    for rhs in lhs:
        word, bit = _bit(rhs, words)
        has = candidates.rhs[:, word] & bits[:, word] & bit
        out[rhs] = candidates.lhs[has != 0]
    return out


def _bit(rhs: int, words: int) -> tuple[int, np.uint64]:
    """Where an rhs is among the bits of a candidate."""
    if rhs == SUBKEY:
        return words, LISTED
    word, bit = (words, 0) if rhs == KEY else (rhs // 64, rhs % 64)
    return word, np.uint64(1) << np.uint64(bit)
