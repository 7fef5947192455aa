"""For which right sides an evidence is maximal: those that all larger evidences share beyond it.

Larger evidences are found in the transposed matrix, 64 at a time, as :mod:`bitsets` does; each one
found narrows the right sides, and most evidences are settled by the first few.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.bitsets import (
    ONE,
    SIEVE,
    ZERO,
    Indices,
    Masks,
    contains,
    hold,
    lowest,
    select,
    sieve,
)
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
        family, order = bitsets.plain(family), bitsets.rarest_first(family)
        held = bitsets.transpose(family)
        _opened(bitsets.plain(masks), family, held, order, bitsets.plain(rights), out)
    return out


@kernel
def _narrow(mask: Any, left: Any, chosen: Any, size: int, family: Any, held: Any, members: int) -> Any:
    """Take from ``left`` what a larger member lacks, until nothing is left; returns what is."""
    some = ZERO
    for v in range(left.size):
        some |= left[v]
    for w in range((members + 63) // 64):
        if some == ZERO:
            break
        word = sieve(chosen, size, members, held, w)
        while word != ZERO and some != ZERO:
            larger = family[64 * w + lowest(word)]
            word &= word - ONE
            if contains(larger, mask) and not contains(mask, larger):
                some = ZERO
                for v in range(left.size):
                    left[v] &= larger[v]
                    some |= left[v]
    return some


@kernel
def _maximal_for(masks: Any, full: Any, order: Any, kept: Any, rights: Any) -> int:
    held = np.zeros((order.size, (masks.shape[0] + 63) // 64), np.uint64)
    family = np.empty_like(masks)
    chosen = np.empty(SIEVE, np.int64)
    count = 0
    for i in range(masks.shape[0]):
        for v in range(masks.shape[1]):
            rights[count, v] = full[v] & ~masks[i, v]
        size = select(masks[i], order, chosen)
        if _narrow(masks[i], rights[count], chosen, size, family, held, count) != ZERO:
            hold(masks[i], count, held)
            family[count] = masks[i]
            kept[count] = i
            count += 1
    return count


@kernel
def _narrowed(masks: Any, family: Any, held: Any, order: Any, out: Any) -> None:
    chosen = np.empty(SIEVE, np.int64)
    for i in range(masks.shape[0]):
        size = select(masks[i], order, chosen)
        _narrow(masks[i], out[i], chosen, size, family, held, family.shape[0])


@kernel
def _opened(masks: Any, family: Any, held: Any, order: Any, rights: Any, out: Any) -> None:
    chosen = np.empty(SIEVE, np.int64)
    members = family.shape[0]
    for i in range(masks.shape[0]):
        size = select(masks[i], order, chosen)
        for w in range((members + 63) // 64):
            word = sieve(chosen, size, members, held, w)
            while word != ZERO:
                at = 64 * w + lowest(word)
                word &= word - ONE
                if contains(family[at], masks[i]):
                    for v in range(out.shape[1]):
                        out[i, v] |= rights[at, v]
