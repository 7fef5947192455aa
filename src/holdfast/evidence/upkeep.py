"""What is kept of a table so that a batch costs little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.cover.candidates import ByRhs
from holdfast.cover.counts import EvidenceCounts
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.model import thresholds
from holdfast.model.batch_indexes import LookUp


@dataclass(frozen=True)
class FormerSets:
    """Sets that are violated, and held once: no two living rows of segments before some number
    violate them, or only such as are known to. Rows that are merged get into segments of higher
    numbers, which is not wrong."""

    masks: U64
    before: I64
    rhs: I64  # of each set

    @staticmethod
    def none(atoms: int) -> FormerSets:
        """Nothing that is over."""
        return FormerSets.of(bitsets.empty(atoms), np.empty(0, np.int64))

    @staticmethod
    def of(masks: U64, before: I64) -> FormerSets:
        """Of sets that have no rhs."""
        return FormerSets(masks, before, np.full(len(masks), KEY, np.int64))

    def after(self, held: ByRhs, before: int, covers: Covers) -> FormerSets:
        """With the sets that held before a batch, and are violated now; without those that hold
        again. The latest ones where there are too many."""
        counts = {rhs: len(masks) for rhs, masks in held.items() if rhs in covers.by_rhs}
        masks = np.concatenate([self.masks, *(held[rhs] for rhs in counts)])
        numbers = np.concatenate([self.before, np.full(sum(counts.values()), before, np.int64)])
        right = np.concatenate([self.rhs, *(np.full(n, rhs) for rhs, n in counts.items())])
        violated = np.zeros(len(masks), np.bool_)
        for rhs, minimal in covers.minimal.items():
            mine = np.flatnonzero(right == rhs)
            violated[mine] = ~bitsets.any_subset(masks[mine], minimal)
        kept = np.flatnonzero(violated)[-thresholds.current.past_sets :]
        return FormerSets(masks[kept], numbers[kept], right[kept].astype(np.int64))

    def joined(self, other: FormerSets) -> FormerSets:
        """These, and others."""
        mine, others = (self.masks, self.before, self.rhs), (other.masks, other.before, other.rhs)
        return FormerSets(*(np.concatenate(each) for each in zip(mine, others, strict=True)))

    def inside(self, sets: U64, rhs: int = KEY) -> FormerSets:
        """For each of some sets that contain one of an rhs, or of keys, the latest that it
        contains."""
        mine = np.flatnonzero((self.rhs == rhs) | (self.rhs == KEY))
        latest = mine[np.argsort(-self.before[mine], kind="stable")]
        first = bitsets.first_subset(sets, self.masks[latest])
        return self.chosen(latest[np.unique(first[first >= 0])])

    def of_candidates(self, candidates: ByRhs) -> FormerSets:
        """The same for every rhs."""
        found = [self.inside(sets, rhs) for rhs, sets in candidates.items()]
        parts = zip(*((each.masks, each.before, each.rhs) for each in found), strict=True)
        return (
            FormerSets(*(np.concatenate(each) for each in parts))
            if found
            else self.chosen(_NOTHING)
        )

    def by_rhs(self, every: ByRhs) -> ByRhs:
        """The sets, by their rhs."""
        return {rhs: self.masks[self.rhs == rhs] for rhs in every}

    def chosen(self, places: I64) -> FormerSets:
        """Some of the sets."""
        return FormerSets(self.masks[places], self.before[places], self.rhs[places])


_NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class Upkeep:
    """What is kept of a space of comparisons."""

    lookups: tuple[LookUp, ...]
    chosen_at: int  # the number of rows when look-ups were chosen
    past: FormerSets
    hidden: Evidence  # that was maximal once and is not, because other evidence contains it
    drawn: EvidenceCounts | None = None  # a few random pairs; None: those that are stored
    drawn_at: int = 0  # the number of rows when pairs were drawn

    @staticmethod
    def none(atoms: int) -> Upkeep:
        """Nothing yet."""
        return Upkeep((), 0, FormerSets.none(atoms), Evidence.none(atoms))
