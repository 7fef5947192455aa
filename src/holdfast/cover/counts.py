"""Counted evidence: how many pairs of rows show each evidence, and what is read from the counts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels import counts as kernels
from holdfast.kernels.arrays import I64, U64


@dataclass(frozen=True)
class EvidenceCounts:
    """How many pairs of a table's rows show each evidence: masks in order, and their counts. In the
    space of agreements that is the multiset of agree-sets (DynASt, definition 2.2)."""

    masks: U64
    counts: I64

    @staticmethod
    def none(atoms: int) -> EvidenceCounts:
        """No pairs at all."""
        return EvidenceCounts(bitsets.empty(atoms), np.empty(0, np.int64))

    def changed(self, masks: list[U64], counts: list[I64]) -> tuple[EvidenceCounts, U64, U64]:
        """After tables of changed counts, each in mask order; and the evidence that appeared and
        that vanished."""
        change = kernels.total(masks, counts, self.masks.shape[1])
        after, sums, appeared, vanished = kernels.added(self.masks, self.counts, *change)
        if (sums < 0).any():
            raise AssertionError("evidence with a negative number of pairs")
        return EvidenceCounts(after, sums), appeared, vanished

    @cached_property
    def pairs(self) -> int:
        """The number of pairs of rows."""
        return int(self.counts.sum())

    def satisfying(self, atoms: Iterable[int]) -> int:
        """The number of pairs of rows that satisfy all of these atoms."""
        mask = bitsets.from_columns([atoms], 64 * self.masks.shape[1])[0]
        inside = ((mask[None, :] & ~self.masks) == 0).all(axis=1)
        return int(self.counts[inside].sum())


@dataclass(frozen=True)
class SampledPairs:
    """The evidence of ordered pairs of rows that stand for more: for all, or for those whose cells
    are equal in one comparison."""

    sets: EvidenceCounts
    of_pairs: int  # that they stand for
    equal: int | None = None  # the comparison; None: they stand for all pairs

    def estimated(self, shown: float) -> float:
        """About how many pairs there are of a sort that so many of these are of."""
        return shown * self.of_pairs / self.sets.pairs if self.sets.pairs else 0.0
