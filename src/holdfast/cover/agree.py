"""Counted evidence: every agree-set with its number of pairs, and what is read from the counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import agree, bitsets

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class AgreeSets:
    """The multiset of agree-sets of a table (DynASt, definition 2.2): masks in order, counts."""

    masks: U64
    counts: I64

    @staticmethod
    def none(atoms: int) -> AgreeSets:
        """No pairs at all."""
        return AgreeSets(bitsets.empty(atoms), np.empty(0, np.int64))

    def changed(self, masks: list[U64], counts: list[I64]) -> tuple[AgreeSets, U64, U64]:
        """After some counts changed; and the agree-sets that appeared and that vanished."""
        words = self.masks.shape[1]
        after = AgreeSets(*agree.total([self.masks, *masks], [self.counts, *counts], words))
        if (after.counts < 0).any():
            raise AssertionError("an agree-set with a negative number of pairs")
        appeared = after.masks[~bitsets.is_member(after.masks, self.masks)]
        vanished = self.masks[~bitsets.is_member(self.masks, after.masks)]
        return after, appeared, vanished

    @property
    def pairs(self) -> int:
        """The number of pairs of rows."""
        return int(self.counts.sum())

    def agreeing(self, columns: Iterable[int]) -> int:
        """Pairs of rows that agree on all of these columns."""
        left = bitsets.from_columns([columns], 64 * self.masks.shape[1])[0]
        inside = ((left[None, :] & ~self.masks) == 0).all(axis=1)
        return int(self.counts[inside].sum())
