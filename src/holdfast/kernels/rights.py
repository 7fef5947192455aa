"""For which right sides an evidence is maximal: those that all larger evidences share beyond it.

Larger evidences are found in the transposed matrix, 64 at a time, as :mod:`bitsets` does; each one
found narrows the right sides, and most evidences are settled by the first few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.bitsets import FULL, ONE, ZERO, Indices, Masks, lowest
from holdfast.kernels.jit import kernel


def maximal_for(masks: Masks, full: Masks) -> tuple[Indices, Masks]:
    """Of distinct evidences, largest first: which are maximal for some right side, and for which.

    An evidence that is maximal for none stands below one that is, so later ones need not meet it.
    """
    masks = bitsets.plain(masks)
    kept, rights = np.empty(len(masks), np.int64), np.empty_like(masks)
    count = _maximal_for(masks, full, bitsets.rarest_first(masks), kept, rights)
    return kept[:count], rights[:count].copy()


def narrowed(masks: Masks, rights: Masks, family: Masks) -> Masks:
    """The right sides that are left of ``rights`` beside the larger ones in ``family``."""
    out = rights.copy()
    if len(masks) and len(family):
        # The largest first: they stand above most.
        family = bitsets.plain(family[np.argsort(-bitsets.popcount(family), kind="stable")])
        order = bitsets.rarest_first(family)
        _narrowed(bitsets.plain(masks), family, bitsets.transpose(family), order, out)
    return out


def opened(masks: Masks, family: Masks, rights: Masks) -> Masks:
    """What the larger ones in ``family`` are maximal for, together."""
    out = np.zeros_like(masks)
    if len(masks) and len(family):
        order = bitsets.rarest_first(family)
        _opened(bitsets.plain(masks), bitsets.transpose(family), order, bitsets.plain(rights), out)
    return out


@kernel
def _larger(chosen: Any, size: int, held: Any, w: int, members: int) -> Any:
    """Those of the ``w``-th 64 members that hold all chosen columns."""
    word = FULL
    if members - 64 * w < 64:
        word = (ONE << np.uint64(members - 64 * w)) - ONE
    for k in range(size):
        word &= held[chosen[k], w]
        if word == ZERO:
            break
    return word


@kernel
def _narrow(mask: Any, left: Any, chosen: Any, size: int, family: Any, held: Any, members: int) -> bool:
    """Take from ``left`` what a larger member lacks; returns whether anything stays."""
    words = left.size
    for w in range((members + 63) // 64):
        word = _larger(chosen, size, held, w, members)
        while word != ZERO:
            at = 64 * w + lowest(word)
            word &= word - ONE
            equal, some = True, ZERO
            for v in range(words):
                equal = equal and family[at, v] == mask[v]
                some |= left[v] & family[at, v]
            if equal:
                continue
            for v in range(words):
                left[v] &= family[at, v]
            if some == ZERO:
                return False
    return True


@kernel
def _maximal_for(masks: Any, full: Any, order: Any, kept: Any, rights: Any) -> int:
    words = masks.shape[1]
    held = np.zeros((order.size, (masks.shape[0] + 63) // 64), np.uint64)
    family = np.empty_like(masks)
    chosen = np.empty(order.size, np.int64)
    count = 0
    for i in range(masks.shape[0]):
        some = ZERO
        for v in range(words):
            rights[count, v] = full[v] & ~masks[i, v]
            some |= rights[count, v]
        size = bitsets.select(masks[i], order, chosen)
        if some == ZERO or not _narrow(
            masks[i], rights[count], chosen, size, family, held, count
        ):
            continue
        for k in range(size):
            held[chosen[k], count >> 6] |= ONE << np.uint64(count & 63)
        family[count] = masks[i]
        kept[count] = i
        count += 1
    return count


@kernel
def _narrowed(masks: Any, family: Any, held: Any, order: Any, out: Any) -> None:
    chosen = np.empty(order.size, np.int64)
    for i in range(masks.shape[0]):
        size = bitsets.select(masks[i], order, chosen)
        _narrow(masks[i], out[i], chosen, size, family, held, family.shape[0])


@kernel
def _opened(masks: Any, held: Any, order: Any, rights: Any, out: Any) -> None:
    chosen = np.empty(order.size, np.int64)
    members = rights.shape[0]
    for i in range(masks.shape[0]):
        size = bitsets.select(masks[i], order, chosen)
        for w in range((members + 63) // 64):
            word = _larger(chosen, size, held, w, members)
            while word != ZERO:
                at = 64 * w + lowest(word)
                word &= word - ONE
                for v in range(out.shape[1]):
                    out[i, v] |= rights[at, v]
