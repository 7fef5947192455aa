"""Propose → validate → learn: the loop that makes candidates exact.

A candidate is an lhs with an rhs: a dependency, or, with the rhs that no two
rows agree in, a key. The covers *propose* the minimal candidates that no known evidence refutes.
A round *plans* looks at the rows for them (:mod:`evidence.looks`), *runs* these in one job, and
*learns* the pairs of rows that refute some; then the covers propose again, until all that they
propose is validated.

A candidate is *validated* when all evidence against it is known. An lhs that contains a
validated one therefore holds, without being looked at: every pair that refutes an extension refutes
the set itself, and what refutes no key refutes no dependency. So one look at each candidate is
enough wherever the look was complete.

A candidate that contains one which was minimal before the batch holds on the old rows, so a probe
for pairs with a new row is enough. One that contains what was minimal once, before earlier batches,
is probed with the rows that have come since. Any other is checked on all pairs.

A search that ends before that is exact up to a number of columns: see :mod:`cover.deepening`.
"""

from __future__ import annotations

from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path

import numpy as np

from holdfast.cover import candidates as cands
from holdfast.cover.candidates import ByRhs
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.agreement import listed_pairs, search_plans
from holdfast.evidence.agreement.listed_pairs import ListedPairs, Listing
from holdfast.evidence.agreement.search_plans import (
    BatchProbe,
    BatchRepeats,
    IndexSearch,
    Scope,
    SearchPlan,
    SurveyedRows,
)
from holdfast.evidence.upkeep import FormerSets
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.kernels.bitsets import Tick
from holdfast.kernels.evidence import Candidates
from holdfast.model import thresholds
from holdfast.model.limits import Limits, OutOfTime
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.sealed import discard
from holdfast.table.indexing import with_indexes
from holdfast.table.state import Table
from holdfast.tasks.segments import Segment

_NEVER = 1 << 62

_AT_ONCE = 16
"""Files that are removed at once."""

Results = list[list[TaskResult]]
"""What the tasks of each look sent back."""


@dataclass
class Validation:
    """What is known of a table while its covers are validated."""

    run: Run
    depth: Deepening  # how far the covers go in the time that there is
    table: Table  # its living rows, and what is sorted
    evidence: Evidence
    covers: Covers  # of the right-hand sides that are looked for
    batch: tuple[Segment, ...]  # of the table's segments
    held: ByRhs  # candidates that hold on all pairs of rows outside the batch
    validated: ByRhs  # candidates against which all evidence is known
    underestimated: U64  # left-hand sides with more combinations of values than expected
    undivided: U64  # and those with more of heavy values
    batch_is_new: bool  # it has not been looked up yet
    part_first: bool  # the next search of many candidates goes through a part of the rows
    past: FormerSets  # candidates that held once, and on which rows they do
    duplicates: int = 0  # rows of the batch that repeat an earlier one
    repeated: list[list[int]] = field(default_factory=list)  # a few of them, each after that one
    kept: list[SurveyedRows] = field(default_factory=list)  # rows that are still to be merged
    listing: Listing = Listing.NONE  # what the next search of all rows lists
    lists: list[str] = field(default_factory=list)  # files of pairs
    near: list[U64] = field(default_factory=list)  # sets, all pairs that agree in which are there
    round: int = 0

    @staticmethod
    def begun(
        run: Run,
        depth: Deepening,
        table: Table,
        evidence: Evidence,
        covers: Covers,
        *,
        held: ByRhs | None = None,
        batch: tuple[Segment, ...] = (),
        past: FormerSets | None = None,
        listing: Listing = Listing.NONE,
    ) -> Validation:
        """Before the first round. ``held`` are candidates that hold on all pairs of rows outside
        the batch: by default none; ``past`` held once. Pairs are listed for keys where there are
        many rows."""
        none = cands.none(covers.by_rhs, covers.atoms)
        many = table.rows >= thresholds.current.part_from_rows
        held = none if held is None else held
        return Validation(
            run, depth, table, evidence, covers, batch, held,
            validated=none if batch else held,
            underestimated=bitsets.empty(covers.atoms),
            undivided=bitsets.empty(covers.atoms),
            batch_is_new=bool(batch),
            part_first=many,
            past=past or FormerSets.none(covers.atoms),
            listing=listing if many and KEY in covers.by_rhs else Listing.NONE,
        )  # fmt: skip

    @property
    def scope(self) -> Scope:
        """All living rows, and the evidence that counts for the covers."""
        view = self.table.view(self.run.store.path, self.run.options)
        runner = self.run.within(self.depth.time)
        return Scope(runner, view, every_rhs=bool(self.covers.columns))

    def propose(self) -> ByRhs | None:
        """The candidates of the next round; None once all is validated that was wanted, or that
        there is time for. A new batch is looked up whatever the time, and whatever is proposed."""
        while True:
            proposed = cands.outside(self.covers.minimal, self.validated)
            if self.batch_is_new:
                break
            if not cands.count(proposed):
                deeper = self.depth.deeper(self.covers)
                if deeper is None:
                    return None
                self.covers = deeper
            elif self.depth.late:
                self.covers = self.depth.retreat(self.covers, proposed)
            else:
                break
        if self.depth.bounded:
            return cands.shortest(proposed, thresholds.current.round_candidates)
        return proposed

    def plan(self, candidates: ByRhs) -> list[SearchPlan]:
        """The looks of a round: a probe where that is enough and not too dear, representatives for
        left-hand sides with few combinations of values, searches for all others. Rows that parts of
        the last round kept are merged."""
        repeats = search_plans.repeats(self.batch, self.covers.atoms)
        probe = self._probe(candidates)
        left = cands.outside(_beyond(probe, candidates), self._back_again(candidates))
        recent = self._probe_recent(left)
        rest = cands.together(_beyond(recent, left), self.covers.atoms)
        few = search_plans.has_few_combinations(rest, self.table)
        few &= ~bitsets.is_member(rest.lhs, self.underestimated)
        searched, surveyed = cands.chosen(rest, ~few), cands.chosen(rest, few)
        in_part = self.part_first and len(searched.lhs) > thresholds.current.part_from_candidates
        prefix = self.run.destination.prefix
        listing = self.listing if not in_part and searched.rhs[:, -1].any() else Listing.NONE
        if listing is Listing.AROUND:
            searched = cands.united(searched, self._near())
        lists = prefix if listing is not Listing.NONE else ""
        whole = bitsets.is_member(searched.lhs, self.undivided)
        tasks = self.run.runner.tasks
        merges = search_plans.merges(surveyed, self.kept, tasks)
        merged = bitsets.is_member(surveyed.lhs, _lhs(merges, self.covers.atoms))
        unmerged = cands.chosen(surveyed, ~merged)
        return [
            *([repeats] if self.batch_is_new else []),
            *(look for look in (probe, recent) if look.is_needed),
            *search_plans.searches(searched, self.table, some=in_part, whole=whole, lists=lists),
            *merges,
            *search_plans.representatives(unmerged, self.table.rows, tasks, prefix),
        ]

    def _near(self) -> Candidates:
        """The near keys of all candidates, which are searched for along with these."""
        table = self.table
        minimal = np.concatenate([*self.covers.minimal.values()])  # keys first
        near = listed_pairs.around(minimal, table.effective, table.rows)
        together = cands.together({cands.NEAR: near}, self.covers.atoms)
        return cands.chosen(together, ~search_plans.has_few_combinations(together, table))

    def _probe(self, candidates: ByRhs) -> BatchProbe:
        """For what held before a new batch, all of it; later for candidates that contain some."""
        held = cands.up_to(self.held, self.covers.limits)
        if not self.batch_is_new:
            held = cands.inside(candidates, held)
        together = cands.together(held, self.covers.atoms)
        return search_plans.probe(together, self.table, self.batch)

    def _probe_recent(self, candidates: ByRhs) -> BatchProbe:
        """For what held once, and no longer did: the rows that have come since, if these are few.
        Deleting the rows that broke it brings it back without a look at all others."""
        past = self.past.of_candidates(candidates)
        recent = self._since(int(past.before.min(initial=_NEVER)))
        once = cands.inside(candidates, past.by_rhs(candidates))
        together = cands.together(once, self.covers.atoms)
        if sum(s.live for s in recent) > thresholds.current.recent_share * self.table.rows:
            together = cands.chosen(together, np.zeros(len(together.lhs), np.bool_))
        return search_plans.probe(together, self.table, recent)

    def _back_again(self, candidates: ByRhs) -> ByRhs:
        """What held once and holds again, because no row is left that has come since: validated
        without a look."""
        past = self.past.of_candidates(candidates)
        latest = max((s.number for s in self.table.segments if s.live), default=-1)
        again = past.chosen(np.flatnonzero(past.before > latest)).by_rhs(candidates)
        self.validated = cands.joined(self.validated, again)
        return again

    def _since(self, number: int) -> tuple[Segment, ...]:
        """The segments that have rows, from a number on."""
        return tuple(s for s in self.table.segments if s.number >= number and s.live)

    def execute(self, candidates: ByRhs, planned: list[SearchPlan]) -> Results:
        """Search the rows in one job, and one before that if a column is still to be sorted for it,
        and for each further column by which heavy values are divided."""
        self.round += 1
        self._sort([name for look in planned for name in look.sorted_by])
        while names := [name for look in planned for name in look.lacking(self.scope)]:
            self._sort(names)
        is_probe = all(isinstance(look, BatchProbe | BatchRepeats) for look in planned)
        stage = "probe" if is_probe else "search"
        self.run.progress(stage, round=self.round, candidates=cands.count(candidates))
        scope = self.scope
        calls = [look.calls(scope) for look in planned]
        results = iter(scope.runner.run([*chain.from_iterable(calls)]))
        return [[*chain.from_iterable(islice(results, len(mine)))] for mine in calls]

    def _sort(self, names: list[str]) -> None:
        prefix = self.run.destination.prefix
        scope = self.scope
        view = with_indexes(scope.runner, scope.view, prefix, dict.fromkeys(names))
        self.table = replace(self.table, segments=view.segments)

    def give_up(self) -> None:
        """A round was late: the covers become as short as what is validated. Nothing is listed any
        more, which takes time too."""
        unsure = cands.outside(self.covers.minimal, self.validated)
        self.covers = self.depth.retreat(self.covers, unsure)
        self.listing = Listing.NONE

    def learn(self, candidates: ByRhs, planned: list[SearchPlan], results: Results) -> None:
        """Take in what a round brought: evidence, and what is validated by that."""
        before = cands.count(self.covers.minimal)
        seen = [*zip(planned, results, strict=True)]
        showing = [(look, mine) for look, mine in seen if not isinstance(look, BatchRepeats)]
        self.add_evidence([evidence_of(each) for _, mine in showing for each in mine])
        for look, mine in showing:
            self._learn_of(look, mine)
        if self.lists and self.listing is Listing.AROUND:
            self.listing = Listing.NONE
        for look, mine in seen:
            for counted in mine if isinstance(look, BatchRepeats) else ():
                self.duplicates += counted.facts["duplicates"]
                self.repeated += counted.facts["pairs"]
        self.batch_is_new = False
        self.part_first = self.part_first and not any(look.in_part for look in planned)
        refuted = _refuted(candidates, self.covers)
        self.run.progress("learn", round=self.round, candidates=before, refuted=refuted)

    def add_evidence(self, evidence: list[Evidence]) -> None:
        """Take in evidence; the covers may have to become shorter for that."""
        none = self.evidence.masks[:0]
        masks = bitsets.distinct(np.concatenate([none, *(each.masks for each in evidence)]))
        if not len(masks):
            return
        new = masks[~bitsets.is_member(masks, self.evidence.masks)]
        before = self.covers

        def change(limits: Limits, tick: Tick) -> Covers:
            return before.to(limits).changed(new, none, none, tick)

        self.covers = self.depth.attempt(before.limits, change)
        self.evidence = self.evidence.joined(evidence).only(self.covers.evidence)

    def _learn_of(self, look: SearchPlan, results: list[TaskResult]) -> None:
        """Which candidates of a look are validated, and which had more combinations of values than
        expected."""
        rhs = _validated_rhs(look, results)
        validated = cands.apart(look.candidates, rhs, self.validated)
        self.validated = cands.joined(self.validated, validated)
        for result in results:
            if "full" in result.arrays:
                more = look.candidates.lhs[result.arrays["full"]]
                if isinstance(look, IndexSearch):
                    self.undivided = np.concatenate([self.undivided, more])
                else:
                    self.underestimated = np.concatenate([self.underestimated, more])
        listed = [result.facts["listed"] for result in results if "listed" in result.facts]
        if listed:
            self.lists += listed
            self.near.append(look.candidates.lhs[rhs[:, -1] != 0])
        files = tuple(result.facts["kept"] for result in results if "kept" in result.facts)
        if files:
            self.kept.append(SurveyedRows(_seen(look, results), files))

    def listed_pairs(self) -> ListedPairs | None:
        """The sets with the pairs that searches have listed, some of which are further witnesses of
        the evidence. What turned out to be a key has none."""
        if not self.lists:
            return None
        near = bitsets.distinct(np.concatenate(self.near))
        near = near[~bitsets.any_subset(near, self.covers.minimal[KEY])]
        number = 1 + max(segment.number for segment in self.table.segments)
        where = self.run.store.path
        try:
            runner = self.run.within(self.run.upkeep_time)
            listed = listed_pairs.merged(runner, where, tuple(self.lists), near, number)
        except OutOfTime:
            return None  # what goes by them is searched for
        shown, _ = listed.shown()
        self.evidence = self.evidence.joined([shown]).only(self.evidence.masks)
        return listed

    def forget(self) -> None:
        """Remove the files of rows that were kept, and of pairs that were listed."""
        files = [*(file for kept in self.kept for file in kept.files), *self.lists]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda file: discard(Path(self.run.store.path) / file), files))
        self.kept, self.lists = [], []


def evidence_of(result: TaskResult) -> Evidence:
    """The evidence that a task found."""
    return Evidence.found(*(result.arrays[name] for name in ("masks", "witnesses", "seen")))


def validate(state: Validation) -> ListedPairs | None:
    """Go round until every minimal candidate of the covers holds on all living rows, as far as
    ``state.depth`` lets the covers go. The near keys with their pairs, if these were listed."""
    try:
        while (candidates := state.propose()) is not None:
            planned = state.plan(candidates)
            try:
                results = state.execute(candidates, planned)
            except OutOfTime:
                state.give_up()
            else:
                state.learn(candidates, planned, results)
        return state.listed_pairs()
    finally:
        state.forget()


def _validated_rhs(look: SearchPlan, results: list[TaskResult]) -> U64:
    """The right-hand sides against which all evidence is known now, as bits per candidate."""
    rhs = _seen(look, results).rhs
    if not look.validates:
        rhs[:] = 0
    return rhs


def _seen(look: SearchPlan, results: list[TaskResult]) -> Candidates:
    """The candidates of a look with the right-hand sides against which all evidence is known that
    it could find."""
    rhs = look.candidates.rhs.copy()
    if not all(result.facts["complete"] for result in results):
        rhs[:] = 0
    for result in results:
        rhs[result.arrays["refuted"]] &= ~result.arrays["partial"]
    return Candidates(look.candidates.lhs, rhs)


def _lhs(planned: Iterable[SearchPlan], atoms: int) -> U64:
    return np.concatenate([bitsets.empty(atoms), *(look.candidates.lhs for look in planned)])


def _beyond(probe: BatchProbe, candidates: ByRhs) -> ByRhs:
    """The candidates that a probe does not validate."""
    probed = cands.apart(probe.candidates, probe.candidates.rhs, candidates)
    return cands.outside(candidates, probed)


def _refuted(candidates: ByRhs, covers: Covers) -> int:
    """How many of the candidates are not minimal any more."""
    minimal = covers.minimal
    kept = [bitsets.is_member(masks, minimal[rhs]).sum() for rhs, masks in candidates.items()]
    return cands.count(candidates) - int(sum(kept))
