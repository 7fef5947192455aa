"""What is kept of a space of comparisons so that a batch costs little."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.cover.candidates import ByRhs
from holdfast.cover.counts import SampledPairs
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.model import thresholds
from holdfast.model.batch_indexes import LookUp

_NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class FormerSets:
    """Sets that are violated now and held once, each with the number of a segment: among living
    rows of segments before that one no pair violates the set, or only pairs whose evidence is
    known. Rows that are merged get into segments of higher numbers, which does no harm."""

    masks: U64
    before: I64
    rhs: I64  # of each set

    @staticmethod
    def none(atoms: int) -> FormerSets:
        """No sets."""
        return FormerSets.of(bitsets.empty(atoms), _NOTHING)

    @staticmethod
    def of(masks: U64, before: I64) -> FormerSets:
        """Sets without an rhs."""
        return FormerSets(masks, before, np.full(len(masks), KEY, np.int64))

    def after(self, minimal_before: ByRhs, number: int, covers: Covers) -> FormerSets:
        """After a batch whose rows lie in segments from a number on: with the minimal sets of
        before that are violated now, and without those that hold again. The latest ones where there
        are too many."""
        counts = {rhs: len(masks) for rhs, masks in minimal_before.items() if rhs in covers.by_rhs}
        masks = np.concatenate([self.masks, *(minimal_before[rhs] for rhs in counts)])
        before = np.concatenate([self.before, np.full(sum(counts.values()), number, np.int64)])
        right = np.concatenate([self.rhs, *(np.full(n, rhs) for rhs, n in counts.items())])
        violated = np.zeros(len(masks), np.bool_)
        for rhs, minimal in covers.minimal.items():
            places = np.flatnonzero(right == rhs)
            violated[places] = ~bitsets.any_subset(masks[places], minimal)
        latest = np.flatnonzero(violated)[-thresholds.current.past_sets :]
        return FormerSets(masks[latest], before[latest], right[latest].astype(np.int64))

    def joined(self, *others: FormerSets) -> FormerSets:
        """These, and others."""
        parts = ((sets.masks, sets.before, sets.rhs) for sets in (self, *others))
        return FormerSets(*map(np.concatenate, zip(*parts, strict=True)))

    def inside(self, sets: U64, rhs: int = KEY) -> FormerSets:
        """For each of some sets the latest one, of the same rhs or a key, that it contains."""
        places = np.flatnonzero((self.rhs == rhs) | (self.rhs == KEY))
        latest = places[np.argsort(-self.before[places], kind="stable")]
        first = bitsets.first_subset(sets, self.masks[latest])
        return self.chosen(latest[np.unique(first[first >= 0])])

    def of_candidates(self, candidates: ByRhs) -> FormerSets:
        """The same for every rhs."""
        parts = [self.inside(sets, rhs) for rhs, sets in candidates.items()]
        return self.chosen(_NOTHING).joined(*parts)

    def by_rhs(self, wanted: ByRhs) -> ByRhs:
        """The sets, by their rhs."""
        return {rhs: self.masks[self.rhs == rhs] for rhs in wanted}

    def chosen(self, places: I64) -> FormerSets:
        """Some of the sets."""
        return FormerSets(self.masks[places], self.before[places], self.rhs[places])


@dataclass(frozen=True)
class Upkeep:
    """What is kept of a space of comparisons."""

    lookups: tuple[LookUp, ...]
    chosen_at: int  # the number of rows when look-ups were chosen
    former: FormerSets
    hidden: Evidence  # that was maximal once and is not, because other evidence contains it
    drawn: tuple[SampledPairs, ...] = ()  # a few random pairs; none: those that are stored
    drawn_at: int = 0  # the number of rows when pairs were drawn

    @staticmethod
    def none(atoms: int) -> Upkeep:
        """Nothing yet."""
        return Upkeep((), 0, FormerSets.none(atoms), Evidence.none(atoms))
