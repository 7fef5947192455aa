"""Witnessed evidence of any space of comparisons: completed instead of counted.

What a batch brings is looked up in indexes, or compared with all rows where that is cheaper. What
it takes away loses its witnesses, and the sets that this brings into question are searched for
again: those that held once among the rows that have come since, and all others in all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from holdfast.cover.cover import Cover
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.comparison import batch_indexes, completion
from holdfast.evidence.comparison.completion import Completed, Late
from holdfast.evidence.comparison.regions import Sampled
from holdfast.evidence.counted import groups_of
from holdfast.evidence.scope import Scope
from holdfast.evidence.upkeep import Upkeep
from holdfast.evidence.witnessed import Goal, Witnessed
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.kernels.cover import TooMany
from holdfast.model import thresholds
from holdfast.model.batch_indexes import LookUp
from holdfast.model.comparisons import Space
from holdfast.model.limits import Limits, OutOfTime, Time
from holdfast.runtime.run import Run
from holdfast.table import indexing
from holdfast.table.change import RowChange
from holdfast.table.state import Table
from holdfast.tasks.segments import Segment

_HALF = 0.5
"""The share of its time in which a search goes for everything that is wanted."""


def discover(
    run: Run, table: Table, goal: Goal, *, for_batches: bool = True
) -> tuple[Witnessed, Table]:
    """From nothing but the rows; ready for batches, the table then has the indexes that these are
    looked up in."""
    space = goal.space
    with run.stage("search"):
        evidence, covers, sampled = _completed(run, table, space, goal.limits, None, None)
    upkeep = Upkeep.none(space.atoms)
    if for_batches:
        upkeep = _with_pairs(run, table, space, upkeep, sampled)
        upkeep, table = _indexed(run, table, space, covers, upkeep, sampled)
    return Witnessed(evidence, covers, upkeep), table


def changed(run: Run, change: RowChange, before: Witnessed, goal: Goal) -> tuple[Witnessed, Table]:
    """After a batch. A set that held before it holds on all pairs without a new row, and all pairs
    with one that violate it are found; so only sets that contain none which held are searched for
    in all rows."""
    table, space = change.after, goal.space
    minimal, upkeep = before.covers.keys.minimal, before.upkeep or Upkeep.none(space.atoms)
    sampled: Sampled | None = None
    with run.stage("validate"):
        scope = Scope.of(run, table, space, run.time.first(_HALF))
        deleted = change.took(run.store.path, before.evidence.witnesses)
        batch = _Batch(scope, change, before, upkeep, *before.evidence.without(deleted))
        try:
            known = batch.looked_up()
        except (OutOfTime, TooMany):
            if run.time.end is None:
                raise
            evidence, covers, sampled = _completed(run, table, space, goal.limits, batch.left, None)
        else:
            evidence, covers = known.evidence.only(known.covers.evidence), known.covers
            if len(known.unsure):
                evidence, covers, sampled = _completed(
                    run, table, space, goal.limits, known.evidence, known.validated
                )
    former = upkeep.former.after({KEY: minimal}, change.before.next_number, covers)
    upkeep = _with_pairs(run, table, space, replace(upkeep, former=former), sampled)
    upkeep, table = _indexed(run, table, space, covers, upkeep, sampled)
    return Witnessed(evidence, covers, upkeep), table


@dataclass(frozen=True)
class _Known:
    """What look-ups have shown."""

    evidence: Evidence
    covers: Covers  # of that evidence
    validated: U64  # sets that are violated by nothing but what is known
    unsure: U64  # minimal sets that other pairs may violate


@dataclass(frozen=True)
class _Batch:
    """A batch that is looked up, in the first part of the time that there is."""

    scope: Scope  # all rows afterwards
    change: RowChange
    before: Witnessed
    upkeep: Upkeep
    left: Evidence  # after the deletes
    vanished: U64  # evidence that only deleted rows showed

    def looked_up(self) -> _Known:
        """What the rows that came show, and, where sets may hold again that held once, the rows
        that have come since. :class:`OutOfTime` if that takes too long."""
        validated, evidence = self.before.covers.keys.minimal, self.left
        if self.change.added:
            evidence = evidence.joined([self.of_added(validated)])
        known = self._known(evidence, validated)
        return self.with_recent(known) if len(known.unsure) else known

    def of_added(self, validated: U64) -> Evidence:
        """All pairs with a new row that violate what held. Where deleted rows were the last to show
        something, all pairs with a new row, which may show it again, unless these are many."""
        costs = thresholds.current.costs
        rows = sum(segment.live for segment in self.change.added)
        few = rows < costs.completion_seconds_a_row * costs.pairs_a_second
        used = None if len(self.vanished) and few else self._lookups(validated)
        return self._evidence(self.change.added, used)

    def with_recent(self, known: _Known) -> _Known:
        """Where sets held once: all pairs with a row that has come since, if these are few."""
        former, table = self.upkeep.former.inside(known.unsure), self.change.after
        if not len(former.masks):
            return known
        first = int(former.before.min())
        recent = tuple(s for s in table.segments if s.number >= first and s.live)
        used = self._lookups(former.masks)
        seconds = min(self._seconds(used), self._seconds(None))
        rows = sum(segment.live for segment in recent)
        if rows * seconds > thresholds.current.costs.completion_seconds_a_row * table.rows:
            return known
        evidence = known.evidence
        if recent:
            evidence = evidence.joined([self._evidence(recent, used)])
        return self._known(evidence, np.concatenate([known.validated, former.masks]))

    def _known(self, evidence: Evidence, validated: U64) -> _Known:
        """The covers of some evidence, and what is left to be looked at."""
        masks = evidence.masks
        appeared = masks[~bitsets.is_member(masks, self.before.evidence.masks)]
        # What deleted rows showed a new row may show again.
        vanished = self.vanished[~bitsets.is_member(self.vanished, masks)]
        covers = self.before.covers.changed(appeared, vanished, masks, self.scope.time.look)
        minimal = covers.keys.minimal
        unsure = minimal[~bitsets.any_subset(minimal, validated)]
        unsure = unsure[~bitsets.any_subset(unsure, completion.unsatisfiable(self.scope.space))]
        return _Known(evidence, covers, validated, unsure)

    def _evidence(self, segments: tuple[Segment, ...], used: tuple[LookUp, ...] | None) -> Evidence:
        """Pairs with a row of some segments, found by look-ups, or all where that is cheaper."""
        if used is not None and self._seconds(used) < self._seconds(None):
            return completion.looked_up(self.scope, segments, used)
        return completion.beside(self.scope, segments)

    def _seconds(self, used: tuple[LookUp, ...] | None) -> float:
        """What a row costs that is looked up, or compared with all rows."""
        table = self.change.after
        if used is None:
            return table.rows / thresholds.current.costs.pairs_a_second
        return batch_indexes.seconds(used, [segment.live for segment in table.segments])

    def _lookups(self, sets: U64) -> tuple[LookUp, ...] | None:
        """Look-ups that serve some sets, by the indexes that there are."""
        indexed = {"", *self.change.after.index_names}
        there = [lookup for lookup in self.upkeep.lookups if lookup.index in indexed]
        return batch_indexes.plan(sets, self.scope.space, there) if there else None


def _with_pairs(
    run: Run, table: Table, space: Space, upkeep: Upkeep, sampled: Sampled | None
) -> Upkeep:
    """With a few random pairs of today's rows, where some were drawn on the way, or the table has
    become another size since."""
    if sampled is not None:
        return replace(upkeep, drawn=sampled.drawn, drawn_at=table.rows)
    same_size = upkeep.drawn_at / 2 <= table.rows <= 2 * upkeep.drawn_at
    if same_size or table.rows < 2:
        return upkeep
    with run.stage("sample"):
        try:
            drawn = completion.drawn(Scope.of(run, table, space, run.upkeep_time))
        except OutOfTime:
            return upkeep
    return replace(upkeep, drawn=drawn, drawn_at=table.rows)


def _indexed(
    run: Run, table: Table, space: Space, covers: Covers, upkeep: Upkeep, sampled: Sampled | None
) -> tuple[Upkeep, Table]:
    """With look-ups for all minimal sets of a long table, and their indexes. They are chosen anew
    where the table has become another size. Without them, where there is no time to build some,
    batches are compared with all rows."""
    try:
        return _look_ups(run, table, space, covers, upkeep, sampled)
    except OutOfTime:
        return upkeep, indexing.as_it_is(table)


def _look_ups(
    run: Run, table: Table, space: Space, covers: Covers, upkeep: Upkeep, sampled: Sampled | None
) -> tuple[Upkeep, Table]:
    minimal, rows = covers.keys.minimal, table.rows
    if not len(minimal) or rows < max(2, thresholds.current.lookup_table_rows):
        return upkeep, table
    there = [lookup for lookup in upkeep.lookups if lookup.index in {"", *table.index_names}]
    same_size = upkeep.chosen_at / 2 <= rows <= 2 * upkeep.chosen_at
    if same_size and (sampled is None or batch_indexes.plan(minimal, space, there) is not None):
        return upkeep, table
    with run.stage("index"):
        if sampled is None or not len(sampled.masks):
            sampled = completion.sampled(Scope.of(run, table, space, run.upkeep_time))
        schema, distinct = table.columns.schema, table.distinct
        usable = tuple(there) if same_size else ()
        sets = np.concatenate([minimal, upkeep.former.masks])  # those may hold again
        chosen = batch_indexes.choose(sets, space, schema, sampled, distinct, usable)
        own = {lookup.index for lookup in upkeep.lookups}
        names = [name for name in table.looked_up if name not in own]
        names += [lookup.index for lookup in chosen if lookup.index]
        table = indexing.look_up_by(run, table, names)
    at = upkeep.chosen_at if same_size else rows
    return replace(upkeep, lookups=chosen, chosen_at=at), table


def _completed(
    run: Run,
    table: Table,
    space: Space,
    limits: Limits,
    known: Evidence | None,
    validated: U64 | None,
) -> tuple[Evidence, Covers, Sampled | None]:
    """Complete evidence; where the time is bounded, complete up to a number of comparisons. With
    the pairs that were sampled."""
    if table.rows < 2:
        nothing = Evidence.none(space.atoms)
        return nothing, _covers(space, _cover(space, nothing, limits.keys), limits.keys), None
    done: tuple[Completed, int | None] | None = None
    for most, time in _depths(run.time, limits.keys, len(space.comparisons)):
        try:
            completed = completion.complete(
                Scope.of(run, table, space, time), known, validated, most
            )
        except OutOfTime as late:
            if time.end is None:
                raise
            if isinstance(late, Late) and len(late.evidence.masks):
                known = late.evidence  # of pairs of rows, whatever it was found for
            if most == limits.keys:
                continue  # everything, in the first half
            break
        done, known = (completed, most), completed.evidence
        if most == limits.keys:
            break
    if done is None:
        any_pair = _any_pair(run, table, space, known)
        return any_pair, _covers(space, _cover(space, any_pair, 0), 0), None
    completed, most = done
    return completed.evidence, _covers(space, completed.cover, most), completed.sampled


def _depths(time: Time, wanted: int | None, comparisons: int) -> Iterator[tuple[int | None, Time]]:
    """How many comparisons to look for, and in which time: all that is wanted in the first half of
    it, then one more at a time."""
    yield wanted, time.first(_HALF)
    for most in range(1, min(comparisons, wanted or comparisons) + 1):
        yield most, time


def _any_pair(run: Run, table: Table, space: Space, known: Evidence | None) -> Evidence:
    """Evidence of one pair of rows: with that, no set of no comparisons holds."""
    if known is None or not len(known.masks):
        anything = np.zeros((1, bitsets.words_for(space.atoms)), np.uint64)
        known, _ = completion.validate(Scope.of(run, table, space), anything)
    return Evidence(known.masks[:1], known.witnesses[:1])


def _cover(space: Space, evidence: Evidence, most: int | None) -> Cover:
    return Cover.build(space.atoms, evidence.masks, most, groups_of(space))


def _covers(space: Space, cover: Cover, most: int | None) -> Covers:
    """The covers of completed evidence."""
    masks = cover.evidence
    maximal_for = np.zeros((len(masks), bitsets.words_for(space.atoms + 1)), np.uint64)
    maximal_for |= bitsets.from_columns([[space.atoms]], space.atoms + 1)
    minimal = {KEY: cover.minimal}
    limits = Limits(keys=most)
    return Covers.restored(space.atoms, masks, maximal_for, minimal, limits, groups_of(space))
