"""Witnessed evidence: what is maximal, with pairs of rows that show it, found by searching.

Discovery samples pairs, then goes round propose → validate → learn until every minimal set holds. A
batch takes away the evidence whose witnesses are all gone, and validates again what that, and the
new rows, put in doubt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.agreement.listed_pairs import ListedPairs, Listing, Stored, living
from holdfast.evidence.agreement.search_plans import Scope, sample_calls
from holdfast.evidence.agreement.validation import Validation, evidence_of, validate
from holdfast.evidence.comparison import engine as comparison
from holdfast.evidence.upkeep import FormerSets, Upkeep
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.bitsets import Tick
from holdfast.model import thresholds
from holdfast.model.comparisons import Space
from holdfast.model.limits import Limits, OutOfTime, Time
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table import indexing
from holdfast.table.change import RowChange
from holdfast.table.compaction import Moves
from holdfast.table.placement import parts
from holdfast.table.state import Table
from holdfast.tasks import rows as tasks
from holdfast.tasks.segments import Segment

_SAMPLED = 0.25
"""The share of its time that a search samples pairs for, at most."""


@dataclass(frozen=True)
class Witnessed:
    """Maximal evidences of a table, each with witnesses, and the covers of some rhs."""

    evidence: Evidence
    covers: Covers
    upkeep: Upkeep | None = None  # None: nothing is kept for batches
    near: Stored | None = None  # near keys, of an earlier version
    listed: ListedPairs | None = None  # and those that were listed since

    @staticmethod
    def none(atoms: int, rhs: tuple[int, ...], limits: Limits) -> Witnessed:
        """Of no rows."""
        none = Evidence.none(atoms)
        return Witnessed(none, Covers.build(atoms, rhs, none.masks, limits))

    @staticmethod
    def discover(
        run: Run,
        table: Table,
        rhs: tuple[int, ...],
        limits: Limits,
        depth: Deepening,
        *,
        for_batches: bool = True,
    ) -> tuple[Witnessed, Table]:
        """From nothing but the rows; the table then has its duplicates, and the indexes that the
        search built, and those that look-ups for the minimal sets need."""
        none = Witnessed.none(len(table.columns.names), rhs, limits)
        listing = Listing.AROUND if for_batches else Listing.NONE
        state = Validation.begun(run, depth, table, none.evidence, none.covers, listing=listing)
        with run.stage("sample"):
            run.progress("sample")
            samples = sample_calls(state.scope)
            counts = _duplicate_calls(state.scope)
            results = run.within(depth.time.first(_SAMPLED)).run([*samples, *counts])
            found = [evidence_of(p) for result in results[: len(samples)] for p in result]
            state.add_evidence(_some(found, depth.time, len(rhs)))
            counted = [p.facts for result in results[len(samples) :] for p in result]
        with run.stage("search"):
            listed = validate(state)
        witnessed = Witnessed(state.evidence, state.covers, listed=listed)
        table = replace(
            state.table,
            duplicates=sum(facts["duplicates"] for facts in counted),
            repeated=[pair for facts in counted for pair in facts["pairs"]][: tasks.REPEATED_PAIRS],
        )
        with run.stage("index"):
            return witnessed, witnessed.indexed(run, table)

    @staticmethod
    def discover_from_sample(
        run: Run,
        table: Table,
        rhs: tuple[int, ...],
        limits: Limits,
        depth: Deepening,
        *,
        for_batches: bool = True,
    ) -> tuple[Witnessed, Table]:
        """SWAN's holistic mode: profile the first segment, then apply the others as inserts."""
        first, rest = table.segments[:1], table.segments[1:]
        witnessed, table = Witnessed.discover(
            run, replace(table, segments=first), rhs, limits, depth,
            for_batches=for_batches and not rest,
        )  # fmt: skip
        for segment in rest:
            with run.stage("index"):
                table = replace(table, segments=(*table.segments, segment))
                table = witnessed.indexed(run, table)
            witnessed, table = witnessed.validated(
                run, table, witnessed.covers, table.segments[-1:], depth
            )
        with run.stage("index"):
            return witnessed, witnessed.indexed(run, table)

    @staticmethod
    def compared(
        run: Run, table: Table, space: Space, limits: Limits, *, for_batches: bool
    ) -> tuple[Witnessed, Table]:
        """From nothing but the rows, in any space of comparisons."""
        evidence, covers, upkeep, table = comparison.discovered(
            run, table, space, limits, for_batches=for_batches
        )
        return Witnessed(evidence, covers, upkeep), table

    def after(
        self, run: Run, change: RowChange, space: Space, rhs: tuple[int, ...], depth: Deepening
    ) -> tuple[Witnessed, Table]:
        """After a batch: deletes first, then what the new rows bring."""
        if not space.agreement:
            kept = (self.evidence, self.covers, self.upkeep or Upkeep.none(space.atoms))
            evidence, covers, upkeep, table = comparison.changed(
                run, change, space, depth.wanted, *kept
            )
            return Witnessed(evidence, covers, upkeep), table
        left, upkeep = self, self.upkeep or Upkeep.none(space.atoms)
        hidden, past, shown = upkeep.hidden, upkeep.past, Evidence.none(space.atoms)
        listing, near = Listing.NONE, None
        if change.departed.count:
            took = change.took(run.store.path, self.evidence.witnesses)
            left, gone = self.without(took, depth)
            alive = living(run.store.path, change.after, hidden.witnesses)
            hidden, _ = hidden.without(~alive)
            if len(gone):
                shown = hidden
                near = self._fresh(run.store.path, change.after)
                listing = Listing.AROUND if near is None else Listing.SEARCHED
            if near is not None:
                listed_evidence, known = near.shown()
                shown, past = shown.joined([listed_evidence]), past.joined(known)
        witnessed, table = left.only(rhs).validated(
            run, change.after, self.covers, change.added, depth, past, shown, listing
        )
        number = change.before.next_number
        past = upkeep.past.after(self.covers.minimal, number, witnessed.covers)
        listed = witnessed.listed
        if near is not None and listed is not None:
            listed = near.joined(listed)
        hidden = left.evidence.followed(hidden).outside(witnessed.evidence.masks)
        upkeep = replace(upkeep, past=past, hidden=hidden.first(thresholds.current.past_sets))
        witnessed = replace(witnessed, upkeep=upkeep, near=self.near, listed=listed)
        with run.stage("index"):
            return witnessed, witnessed.indexed(run, table)

    def _fresh(self, root: str, table: Table) -> ListedPairs | None:
        """The near keys that still tell of most rows of a table."""
        near = self.near() if self.near else None
        return None if near is None or near.is_stale(table) else near.living(root, table)

    def without(self, deleted: Flags, depth: Deepening) -> tuple[Witnessed, U64]:
        """Without the evidence that only deleted rows showed, by witnesses; and that evidence."""
        evidence, gone = self.evidence.without(deleted)
        before = self.covers

        def change(limits: Limits, tick: Tick) -> Covers:
            return before.to(limits).changed(gone[:0], gone, evidence.masks, tick)

        return Witnessed(evidence, depth.attempt(before.limits, change)), gone

    def validated(
        self,
        run: Run,
        table: Table,
        old: Covers,
        added: tuple[Segment, ...],
        depth: Deepening,
        past: FormerSets | None = None,
        hidden: Evidence | None = None,
        listing: Listing = Listing.NONE,
    ) -> tuple[Witnessed, Table]:
        """Exact again on all living rows, with their duplicates counted; ``old`` is what held
        before the rows were added, ``past`` what held once, ``hidden`` evidence that other evidence
        had hidden which is gone."""
        state = Validation.begun(
            run, depth, table, self.evidence, self.covers,
            held=old.only(self.covers.by_rhs).minimal, batch=added, past=past, listing=listing,
        )  # fmt: skip
        with run.stage("validate"):
            state.add_evidence([hidden] if hidden is not None else [])
            listed = validate(state)
        duplicates = table.duplicates + state.duplicates
        # The batch's own first: they are what is shown of it.
        pairs = sorted(state.repeated, key=lambda pair: pair[1])
        repeated = [*pairs, *table.repeated][: tasks.REPEATED_PAIRS]
        if duplicates and not repeated:
            with run.stage("duplicates"):
                results = run.runner.run(_duplicate_calls(state.scope))
                shown = [pair for r in results for p in r for pair in p.facts["pairs"]]
                repeated = shown[: tasks.REPEATED_PAIRS]
        return Witnessed(state.evidence, state.covers, listed=listed), replace(
            state.table, duplicates=duplicates, repeated=repeated
        )

    @property
    def ids(self) -> I64:
        """Every row that is a witness."""
        hidden = self.upkeep.hidden.ids if self.upkeep else np.empty(0, np.int64)
        return np.union1d(self.evidence.ids, hidden)

    def renumbered(self, moves: Moves) -> Witnessed:
        """The same after rows got other ids."""
        upkeep = self.upkeep
        if upkeep is not None:
            upkeep = replace(upkeep, hidden=upkeep.hidden.renumbered(moves.old, moves.new))
        evidence = self.evidence.renumbered(moves.old, moves.new)
        return replace(self, evidence=evidence, upkeep=upkeep)

    def only(self, rhs: tuple[int, ...]) -> Witnessed:
        """What some right-hand sides need."""
        covers = self.covers.only(rhs)
        return Witnessed(self.evidence.only(covers.evidence), covers)

    def indexed(self, run: Run, table: Table) -> Table:
        """The table with the indexes that look-ups for the minimal sets need. Where there is no
        time to build those, batches search for what they would be looked up for."""
        minimal = np.concatenate([*self.covers.minimal.values()])
        try:
            return indexing.index(run, table, minimal, self.covers.atoms)
        except OutOfTime:
            return indexing.as_it_is(table)


def _some(found: list[Evidence], time: Time, covers: int) -> list[Evidence]:
    """As much sampled evidence as there is time to take in, for so many covers."""
    if time.end is None:
        return found
    most = thresholds.current.evidences_compared * max(0.0, time.left) / max(1, covers)
    each = int(math.sqrt(most)) // max(1, len(found))
    return [some.first(each) for some in found]


def _duplicate_calls(scope: Scope) -> list[Call]:
    """Calls that count the rows which repeat another one."""
    count = parts(scope.runner, scope.view)
    ranges = tasks.even_ranges(count)
    return [(tasks.duplicates, tasks.Duplicates(scope.view, *each)) for each in ranges]
