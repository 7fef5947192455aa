"""Witnessed evidence of any space of comparisons: completed instead of counted.

What a batch brings is looked up in indexes, or compared with all rows where that is cheaper. What
it takes away loses its witnesses, and the sets that this brings into question are searched for
again: those that held once among the rows that have come since, and all others in all rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property

import numpy as np

from holdfast.cover.cover import Cover
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.comparison import batch_indexes, completion
from holdfast.evidence.comparison.completion import Completed, Late, Scope
from holdfast.evidence.comparison.regions import Sampled
from holdfast.evidence.counted import groups_of
from holdfast.evidence.upkeep import Upkeep
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


def discovered(
    run: Run, table: Table, space: Space, limits: Limits, *, for_batches: bool
) -> tuple[Evidence, Covers, Upkeep, Table]:
    """From nothing but the rows; ready for batches, the table then has the indexes that these are
    looked up in."""
    with run.stage("search"):
        evidence, covers, sampled = _completed(run, table, space, limits, None, None)
    upkeep = Upkeep.none(space.atoms)
    if for_batches:
        upkeep = _with_pairs(run, table, space, upkeep, sampled)
        upkeep, table = _indexed(run, table, space, covers, upkeep, sampled)
    return evidence, covers, upkeep, table


def changed(
    run: Run,
    change: RowChange,
    space: Space,
    limits: Limits,
    before: Evidence,
    covers: Covers,
    upkeep: Upkeep,
) -> tuple[Evidence, Covers, Upkeep, Table]:
    """After a batch. A set that held before it holds on all pairs without a new row, and all pairs
    with one that violate it are found; so only sets that contain none which held are looked for in
    the rows."""
    table, minimal = change.after, covers.keys.minimal
    sampled: Sampled | None = None
    with run.stage("validate"):
        state = _Batch(run, change, space, before, covers, upkeep)
        living = state.known
        try:
            unsure = state.looked_at()
        except (OutOfTime, TooMany):
            if run.time.end is None:
                raise
            evidence, after, sampled = _completed(run, table, space, limits, living, None)
        else:
            if len(unsure):
                evidence, after, sampled = _completed(
                    run, table, space, limits, state.known, state.held
                )
            else:
                evidence, after = state.known.only(state.covers.evidence), state.covers
    past = upkeep.past.after({KEY: minimal}, change.before.next_number, after)
    upkeep = _with_pairs(run, table, space, replace(upkeep, past=past), sampled)
    upkeep, table = _indexed(run, table, space, after, upkeep, sampled)
    return evidence, after, upkeep, table


class _Batch:
    """What is known while a batch is taken in."""

    def __init__(
        self,
        run: Run,
        change: RowChange,
        space: Space,
        before: Evidence,
        covers: Covers,
        upkeep: Upkeep,
    ) -> None:
        self._run, self._change, self._space = run, change, space
        self._before, self._covers_before, self._upkeep = before, covers, upkeep
        self._time = run.time.first(_HALF)
        self.held = covers.keys.minimal  # sets that are violated by nothing but what is known
        deleted = change.took(run.store.path, before.witnesses)
        self.known, self._vanished = before.without(deleted)

    @cached_property
    def covers(self) -> Covers:
        """The covers of what is known."""
        known = self.known.masks
        appeared = known[~bitsets.is_member(known, self._before.masks)]
        # What deleted rows showed a new row may show again.
        vanished = self._vanished[~bitsets.is_member(self._vanished, known)]
        return self._covers_before.changed(appeared, vanished, known, self._time.look)

    @property
    def unsure(self) -> U64:
        """The minimal sets that pairs may violate which nobody has looked at."""
        minimal = self.covers.keys.minimal
        unsure = minimal[~bitsets.any_subset(minimal, self.held)]
        return unsure[~bitsets.any_subset(unsure, completion.unsatisfiable(self._space))]

    def looked_at(self) -> U64:
        """Look at the rows that came; the sets that are unsure all the same. :class:`OutOfTime` if
        that takes too long."""
        if self._change.added:
            self.look_at_added()
        if len(unsure := self.unsure):
            self.look_at_recent(unsure)
        return self.unsure

    def look_at_added(self) -> None:
        """All pairs with a new row that violate what held. Where deleted rows were the last to show
        something, all pairs with a new row, which may show it again, unless these are many."""
        costs = thresholds.current.costs
        rows = sum(segment.live for segment in self._change.added)
        few = rows < costs.completion_seconds_a_row * costs.pairs_a_second
        used = None if len(self._vanished) and few else self._lookups(self.held)
        self._look_at(self._change.added, used)

    def _look_at(self, segments: tuple[Segment, ...], used: tuple[LookUp, ...] | None) -> None:
        table = self._change.after
        scope = _scope(self._run, table, self._space, self._time)
        if used is not None and self._seconds(used) < self._seconds(None):
            evidence = completion.looked_up(scope, segments, used)
        else:
            evidence = completion.beside(scope, segments)
        self.known = self.known.joined([evidence])
        self.__dict__.pop("covers", None)

    def look_at_recent(self, unsure: U64) -> None:
        """Where sets held once: all pairs with a row that has come since, if these are few."""
        past = self._upkeep.past.inside(unsure)
        if not len(past.masks):
            return
        table = self._change.after
        first = int(past.before.min())
        recent = tuple(s for s in table.segments if s.number >= first and s.live)
        rows = sum(segment.live for segment in recent)
        used = self._lookups(past.masks)
        each = min(self._seconds(used), self._seconds(None))
        if rows * each > thresholds.current.costs.completion_seconds_a_row * table.rows:
            return
        if recent:
            self._look_at(recent, used)
        self.held = np.concatenate([self.held, past.masks])

    def _seconds(self, used: tuple[LookUp, ...] | None) -> float:
        """What a row costs that is looked up, or compared with all rows."""
        table = self._change.after
        if used is None:
            return table.rows / thresholds.current.costs.pairs_a_second
        return batch_indexes.seconds(used, [segment.live for segment in table.segments])

    def _lookups(self, sets: U64) -> tuple[LookUp, ...] | None:
        """Look-ups that serve some sets, by the indexes that there are."""
        indexed = {"", *self._change.after.index_names}
        there = [each for each in self._upkeep.lookups if each.index in indexed]
        return batch_indexes.plan(sets, self._space, there) if there else None


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
            drawn = completion.drawn(_scope(run, table, space, run.upkeep_time))
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
    there = [each for each in upkeep.lookups if each.index in {"", *table.index_names}]
    same_size = upkeep.chosen_at / 2 <= rows <= 2 * upkeep.chosen_at
    if same_size and (sampled is None or batch_indexes.plan(minimal, space, there) is not None):
        return upkeep, table
    with run.stage("index"):
        if sampled is None or not len(sampled.masks):
            sampled = completion.sampled(_scope(run, table, space, run.upkeep_time))
        schema, distinct = table.columns.schema, table.distinct
        kept = tuple(there) if same_size else ()
        sets = np.concatenate([minimal, upkeep.past.masks])  # those may hold again
        chosen = batch_indexes.choose(sets, space, schema, sampled, distinct, kept)
        mine = {each.index for each in upkeep.lookups}
        names = [name for name in table.looked_up if name not in mine]
        names += [each.index for each in chosen if each.index]
        table = indexing.look_up_by(run, table, names)
    at = upkeep.chosen_at if same_size else rows
    return replace(upkeep, lookups=chosen, chosen_at=at), table


def _completed(
    run: Run, table: Table, space: Space, limits: Limits, known: Evidence | None, held: U64 | None
) -> tuple[Evidence, Covers, Sampled | None]:
    """Complete evidence; where the time is bounded, complete up to a number of comparisons. With
    the pairs that were sampled."""
    if table.rows < 2:
        nothing = Evidence.none(space.atoms)
        return nothing, _covers(space, _cover(space, nothing, limits.keys), limits.keys), None
    done: tuple[Completed, int | None] | None = None
    for most, time in _depths(run.time, limits.keys, len(space.comparisons)):
        try:
            completed = completion.complete(_scope(run, table, space, time), known, held, most)
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
        known, _ = completion.validate(_scope(run, table, space), anything)
    return Evidence(known.masks[:1], known.witnesses[:1])


def _cover(space: Space, evidence: Evidence, most: int | None) -> Cover:
    return Cover.build(space.atoms, evidence.masks, most, groups_of(space))


def _scope(run: Run, table: Table, space: Space, time: Time | None = None) -> Scope:
    time = time or Time()
    view = table.view(run.store.path, run.options)
    prefix, schema = run.destination.prefix, table.columns.schema
    return Scope(run.within(time), view, schema, space, prefix, run.progress, time)


def _covers(space: Space, cover: Cover, most: int | None) -> Covers:
    """The covers of completed evidence."""
    masks = cover.evidence
    maximal_for = np.zeros((len(masks), bitsets.words_for(space.atoms + 1)), np.uint64)
    maximal_for |= bitsets.from_columns([[space.atoms]], space.atoms + 1)
    minimal = {KEY: cover.minimal}
    limits = Limits(keys=most)
    return Covers.restored(space.atoms, masks, maximal_for, minimal, limits, groups_of(space))
