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
        """After tables of changed counts, each in mask order; and the agree-sets that appeared and
        that vanished."""
        change = agree.total(masks, counts, self.masks.shape[1])
        after, sums, appeared, vanished = agree.added(self.masks, self.counts, *change)
        if (sums < 0).any():
            raise AssertionError("an agree-set with a negative number of pairs")
        return AgreeSets(after, sums), appeared, vanished

    @property
    def pairs(self) -> int:
        """The number of pairs of rows."""
        return int(self.counts.sum())

    def agreeing(self, columns: Iterable[int]) -> int:
        """Pairs of rows that agree on all of these columns."""
        left = bitsets.from_columns([columns], 64 * self.masks.shape[1])[0]
        inside = ((left[None, :] & ~self.masks) == 0).all(axis=1)
        return int(self.counts[inside].sum())
