"""Propose, plan, search, learn: the loop that makes candidates exact.

A candidate is an lhs with an rhs: a dependency, or, with the rhs that no two rows agree in, a key.
The covers *propose* the minimal candidates that no known evidence refutes. A round *plans* how to
search the rows for evidence against them (:mod:`evidence.agreement.planning`), *executes* these
searches in one job, and *learns* the pairs of rows that refute some; then the covers propose again,
until all that they propose is validated.

A candidate is *validated* when all evidence against it is known. An lhs that contains a validated
one therefore holds without a search: every pair that refutes an extension refutes the set itself,
and what refutes no key refutes no dependency. So one search for each candidate is enough wherever
the search was complete.

A search that ends before that is exact up to a number of columns: see :mod:`cover.deepening`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

import numpy as np

from holdfast.cover import candidates as cands
from holdfast.cover.candidates import ByRhs
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.agreement import listed_pairs, planning
from holdfast.evidence.agreement.knowledge import KeptFiles, Known, RepeatedRows, evidence_of
from holdfast.evidence.agreement.listed_pairs import ListedPairs, Listing
from holdfast.evidence.agreement.planning import Agenda, Planner, Premises
from holdfast.evidence.agreement.search_plans import BatchProbe, BatchRepeats, SearchPlan
from holdfast.evidence.scope import Scope
from holdfast.evidence.witnessed import Witnessed
from holdfast.kernels import bitsets
from holdfast.model import thresholds
from holdfast.model.comparisons import agreements
from holdfast.model.limits import OutOfTime
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.table.indexing import with_indexes
from holdfast.table.state import Table

Results = list[list[TaskResult]]
"""What the tasks of each search plan sent back."""


@dataclass
class Validation:
    """A table while its candidates are validated: what is asked, what is known, what is next."""

    run: Run
    depth: Deepening  # how far the covers go in the time that there is
    premises: Premises
    table: Table  # its living rows, and what is sorted
    known: Known
    agenda: Agenda  # of the next round
    files: KeptFiles = field(default_factory=KeptFiles)
    repeats: RepeatedRows = field(default_factory=RepeatedRows)
    round: int = 0

    @staticmethod
    def of(
        run: Run,
        depth: Deepening,
        table: Table,
        witnessed: Witnessed,
        premises: Premises,
        listing: Listing = Listing.NONE,
    ) -> Validation:
        """Before the first round."""
        covers = witnessed.covers
        # With a batch, what held outside it is still to be looked up.
        none = cands.none(covers.by_rhs, covers.atoms)
        validated = none if premises.batch else premises.minimal_before
        known = Known.of(witnessed.evidence, covers, validated)
        agenda = Agenda.first(premises.batch, table, covers, listing)
        return Validation(run, depth, premises, table, known, agenda)

    @property
    def scope(self) -> Scope:
        """All living rows, and the evidence that counts for the covers."""
        space = agreements(len(self.table.columns.names))
        scope = Scope.of(self.run, self.table, space, self.depth.time)
        return replace(scope, every_rhs=bool(self.known.covers.columns))

    def propose(self) -> ByRhs | None:
        """The candidates of the next round; None once all is validated that was wanted, or that
        there is time for. A new batch is looked up whatever the time, and whatever is proposed."""
        while True:
            covers = self.known.covers
            proposed = cands.outside(covers.minimal, self.known.validated)
            if self.agenda.batch_is_new:
                break
            if not cands.count(proposed):
                deeper = self.depth.deeper(covers)
                if deeper is None:
                    return None
                self._go_on_with(deeper)
            elif self.depth.late:
                self._go_on_with(self.depth.retreat(covers, proposed))
            else:
                break
        if self.depth.bounded:
            return cands.shortest(proposed, thresholds.current.round_candidates)
        return proposed

    def plan(self, candidates: ByRhs) -> list[SearchPlan]:
        """The searches of a round. What needs none is validated at once."""
        unchanged = planning.unchanged_since(self.premises, self.table, candidates)
        tasks, prefix = self.run.runner.tasks, self.run.destination.prefix
        planner = Planner(
            self.premises, self.agenda, self.known, self.files, self.table, tasks, prefix
        )
        plans = planner.plans(candidates, unchanged)
        self.known = self.known.with_validated(unchanged)
        return plans

    def execute(self, candidates: ByRhs, plans: Sequence[SearchPlan]) -> Results:
        """Search the rows in one job, and one before that if a column is still to be sorted for it,
        and for each further column by which heavy values are divided."""
        self.round += 1
        self._sort([name for plan in plans for name in plan.sorted_by])
        while names := [name for plan in plans for name in plan.lacking(self.scope)]:
            self._sort(names)
        is_probe = all(isinstance(plan, BatchProbe | BatchRepeats) for plan in plans)
        stage = "probe" if is_probe else "search"
        self.run.progress(stage, round=self.round, candidates=cands.count(candidates))
        scope = self.scope
        calls = [plan.calls(scope) for plan in plans]
        results = iter(scope.runner.run([*chain.from_iterable(calls)]))
        return [[*chain.from_iterable(islice(results, len(of_plan)))] for of_plan in calls]

    def give_up(self) -> None:
        """A round was late: the covers become as short as what is validated. Nothing is listed any
        more, which takes time too."""
        covers = self.known.covers
        unsure = cands.outside(covers.minimal, self.known.validated)
        self._go_on_with(self.depth.retreat(covers, unsure))
        self.agenda = self.agenda.without_lists()

    def learn(self, candidates: ByRhs, plans: Sequence[SearchPlan], results: Results) -> None:
        """Take in what a round brought: evidence, and what is validated by that."""
        before = cands.count(self.known.covers.minimal)
        self.add_evidence(
            [
                evidence_of(result)
                for plan, of_plan in zip(plans, results, strict=True)
                for result in of_plan
                if not isinstance(plan, BatchRepeats)
            ]
        )
        for plan, of_plan in zip(plans, results, strict=True):
            if isinstance(plan, BatchRepeats):
                self.repeats = self.repeats.after(of_plan)
            else:
                self.known = self.known.after(plan, of_plan)
                self.files = self.files.after(plan, of_plan)
        self.agenda = self.agenda.after(plans, lists_are_written=bool(self.files.lists))
        refuted = _refuted(candidates, self.known.covers)
        self.run.progress("learn", round=self.round, candidates=before, refuted=refuted)

    def add_evidence(self, evidence: list[Evidence]) -> None:
        """Take in evidence; the covers may have to become shorter for that."""
        self.known = self.known.with_evidence(evidence, self.depth)

    def merged_lists(self) -> ListedPairs | None:
        """The pairs that searches have listed, some of which are further witnesses of the evidence.
        A set that turned out to be a key has none."""
        if not self.files.lists:
            return None
        sets = bitsets.distinct(np.concatenate(self.files.listed_sets))
        sets = sets[~bitsets.any_subset(sets, self.known.covers.minimal[KEY])]
        number = 1 + max(segment.number for segment in self.table.segments)
        runner = self.run.within(self.run.upkeep_time)
        try:
            lists = listed_pairs.merged(runner, self.run.store.path, self.files.lists, sets, number)
        except OutOfTime:
            return None  # what goes by them is searched for
        evidence = self.known.evidence
        with_more = evidence.joined([lists.evidence]).only(evidence.masks)
        self.known = replace(self.known, evidence=with_more)
        return lists

    def remove_files(self) -> None:
        """Remove the files of rows that were kept, and of pairs that were listed."""
        self.files.remove(self.run.store.path)
        self.files = KeptFiles()

    def _go_on_with(self, covers: Covers) -> None:
        self.known = replace(self.known, covers=covers)

    def _sort(self, names: list[str]) -> None:
        scope = self.scope
        view = with_indexes(scope.runner, scope.view, scope.prefix, dict.fromkeys(names))
        self.table = replace(self.table, segments=view.segments)


def validate(state: Validation) -> ListedPairs | None:
    """Go round until every minimal candidate of the covers holds on all living rows, as far as
    ``state.depth`` lets the covers go. The pairs that were listed, if any were."""
    try:
        while (candidates := state.propose()) is not None:
            plans = state.plan(candidates)
            try:
                results = state.execute(candidates, plans)
            except OutOfTime:
                state.give_up()
            else:
                state.learn(candidates, plans, results)
        return state.merged_lists()
    finally:
        state.remove_files()


def _refuted(candidates: ByRhs, covers: Covers) -> int:
    """How many of the candidates are not minimal any more."""
    minimal = covers.minimal
    left = sum(int(bitsets.is_member(lhs, minimal[rhs]).sum()) for rhs, lhs in candidates.items())
    return cands.count(candidates) - left
