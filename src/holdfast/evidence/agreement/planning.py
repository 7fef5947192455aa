"""What a round searches for, and in which way: planned from what is known.

A candidate that contains one which was minimal before the batch holds on the old rows, so a probe
for pairs with a new row is enough. One that contains what was minimal once, before earlier batches,
is probed with the rows that have come since. Any other is searched for in all pairs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from holdfast.cover import candidates as cands
from holdfast.cover.candidates import ByRhs
from holdfast.cover.dependencies import KEY, Covers
from holdfast.evidence.agreement import listed_pairs, search_plans
from holdfast.evidence.agreement.knowledge import KeptFiles, Known
from holdfast.evidence.agreement.listed_pairs import Listing
from holdfast.evidence.agreement.search_plans import BatchProbe, SearchPlan
from holdfast.evidence.upkeep import FormerSets
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.kernels.evidence import Candidates
from holdfast.model import thresholds
from holdfast.table.state import Table
from holdfast.tasks.segments import Segment

_NEVER = 1 << 62


@dataclass(frozen=True)
class Premises:
    """What is known of candidates before anything is searched."""

    batch: tuple[Segment, ...]  # of the table's segments
    minimal_before: ByRhs  # candidates that hold on all pairs of rows outside the batch
    former: FormerSets  # candidates that held once, and on which rows they do

    @staticmethod
    def none(covers: Covers) -> Premises:
        """Nothing."""
        nothing = cands.none(covers.by_rhs, covers.atoms)
        return Premises((), nothing, FormerSets.none(covers.atoms))

    @staticmethod
    def of_batch(
        batch: tuple[Segment, ...],
        minimal_before: ByRhs,
        covers: Covers,
        former: FormerSets | None = None,
    ) -> Premises:
        """What was minimal before a batch holds on all rows but those of the batch."""
        of_covers = {rhs: minimal_before[rhs] for rhs in covers.by_rhs}
        return Premises(batch, of_covers, former or FormerSets.none(covers.atoms))


@dataclass(frozen=True)
class Agenda:
    """What the next round has to do beside validating candidates."""

    batch_is_new: bool  # the batch has not been looked up yet
    part_first: bool  # a search of many candidates goes through a part of the rows
    listing: Listing  # what a search of all rows lists

    @staticmethod
    def first(batch: tuple[Segment, ...], table: Table, covers: Covers, listing: Listing) -> Agenda:
        """Of the first round. Pairs are listed for keys where there are many rows."""
        many = table.rows >= thresholds.current.part_from_rows
        lists = many and KEY in covers.by_rhs
        return Agenda(bool(batch), many, listing if lists else Listing.NONE)

    def after(self, plans: Iterable[SearchPlan], lists_are_written: bool) -> Agenda:
        """Of the round after one that went by some plans."""
        part_first = self.part_first and not any(plan.in_part for plan in plans)
        listing = self.listing
        if lists_are_written and listing is Listing.SUBKEYS:
            listing = Listing.NONE
        return Agenda(batch_is_new=False, part_first=part_first, listing=listing)

    def without_lists(self) -> Agenda:
        """The same, and nothing is listed any more."""
        return replace(self, listing=Listing.NONE)


def unchanged_since(premises: Premises, table: Table, candidates: ByRhs) -> ByRhs:
    """The candidates that held once and hold again, because no row is left that has come since:
    validated without a search."""
    former = premises.former.of_candidates(candidates)
    latest = max((s.number for s in table.segments if s.live), default=-1)
    return former.chosen(np.flatnonzero(former.before > latest)).by_rhs(candidates)


@dataclass(frozen=True)
class Planner:
    """All that the plans of a round depend on."""

    premises: Premises
    agenda: Agenda
    known: Known
    files: KeptFiles
    table: Table
    tasks: int  # that run at once
    prefix: str  # of the files that tasks write

    def plans(self, candidates: ByRhs, unchanged: ByRhs) -> list[SearchPlan]:
        """The searches for candidates of which some are known to hold, :func:`unchanged_since`: a
        probe where that is enough and not too dear, representatives for left-hand sides with few
        combinations of values, index searches for all others. Rows that parts of the last round
        kept are merged."""
        table, atoms, limits = self.table, self.known.covers.atoms, thresholds.current
        probe = self._probe(candidates)
        left = cands.outside(_beyond(probe, candidates), unchanged)
        recent = self._probe_recent(left)
        rest = cands.together(_beyond(recent, left), atoms)
        few = search_plans.has_few_combinations(rest, table)
        few &= ~bitsets.is_member(rest.lhs, self.known.underestimated)
        searched, surveyed = cands.chosen(rest, ~few), cands.chosen(rest, few)
        in_part = self.agenda.part_first and len(searched.lhs) > limits.part_from_candidates
        listing = self.agenda.listing if not in_part and searched.rhs[:, -1].any() else Listing.NONE
        if listing is Listing.SUBKEYS:
            searched = cands.united(searched, self._subkeys())
        lists = self.prefix if listing is not Listing.NONE else ""
        whole = bitsets.is_member(searched.lhs, self.known.undivided)
        merges = search_plans.merges(surveyed, self.files.surveyed, self.tasks)
        merged = bitsets.is_member(surveyed.lhs, _lhs(merges, atoms))
        unmerged = cands.chosen(surveyed, ~merged)
        repeats = search_plans.repeats(self.premises.batch, atoms)
        return [
            *([repeats] if self.agenda.batch_is_new else []),
            *(plan for plan in (probe, recent) if plan.is_needed),
            *search_plans.searches(searched, table, partly=in_part, whole=whole, lists=lists),
            *merges,
            *search_plans.representatives(unmerged, table.rows, self.tasks, self.prefix),
        ]

    def _subkeys(self) -> Candidates:
        """The subkeys of all candidates, which are searched for along with these."""
        covers, table = self.known.covers, self.table
        minimal = np.concatenate([*covers.minimal.values()])  # keys first
        subkeys = listed_pairs.subkeys(minimal, table.effective, table.rows)
        together = cands.together({cands.SUBKEY: subkeys}, covers.atoms)
        return cands.chosen(together, ~search_plans.has_few_combinations(together, table))

    def _probe(self, candidates: ByRhs) -> BatchProbe:
        """For what held before a new batch, all of it; later for candidates that contain some."""
        covers = self.known.covers
        before = cands.up_to(self.premises.minimal_before, covers.limits)
        if not self.agenda.batch_is_new:
            before = cands.inside(candidates, before)
        together = cands.together(before, covers.atoms)
        return search_plans.probe(together, self.table, self.premises.batch)

    def _probe_recent(self, candidates: ByRhs) -> BatchProbe:
        """For what held once, and no longer did: the rows that have come since, if these are few.
        Deleting the rows that broke it brings it back without a search of all others."""
        table = self.table
        former = self.premises.former.of_candidates(candidates)
        recent = recent_segments(table, int(former.before.min(initial=_NEVER)))
        once = cands.inside(candidates, former.by_rhs(candidates))
        together = cands.together(once, self.known.covers.atoms)
        if sum(s.live for s in recent) > thresholds.current.recent_share * table.rows:
            together = cands.chosen(together, np.zeros(len(together.lhs), np.bool_))
        return search_plans.probe(together, table, recent)


def recent_segments(table: Table, number: int) -> tuple[Segment, ...]:
    """The segments that have rows, from a number on."""
    return tuple(s for s in table.segments if s.number >= number and s.live)


def _beyond(probe: BatchProbe, candidates: ByRhs) -> ByRhs:
    """The candidates that a probe does not validate."""
    probed = cands.apart(probe.candidates, probe.candidates.rhs, candidates)
    return cands.outside(candidates, probed)


def _lhs(plans: Iterable[SearchPlan], atoms: int) -> U64:
    return np.concatenate([bitsets.empty(atoms), *(plan.candidates.lhs for plan in plans)])
