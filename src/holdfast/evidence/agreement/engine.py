"""Witnessed evidence of keys and functional dependencies: found in a table, changed by a batch.

Discovery samples pairs, then goes round until every minimal set holds
(:mod:`evidence.agreement.validation`). A batch takes away the evidence whose witnesses are all
gone, and validates again what that, and the new rows, put in doubt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from holdfast.cover import deepening
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.agreement.knowledge import evidence_of
from holdfast.evidence.agreement.listed_pairs import ListedPairs, Listing, are_living
from holdfast.evidence.agreement.planning import Premises
from holdfast.evidence.agreement.search_plans import sample_calls
from holdfast.evidence.agreement.validation import Validation, validate
from holdfast.evidence.scope import Scope
from holdfast.evidence.upkeep import FormerSets, Upkeep
from holdfast.evidence.witnessed import Goal, Witnessed
from holdfast.kernels.bitsets import Tick
from holdfast.model import thresholds
from holdfast.model.limits import Limits, OutOfTime, Time
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table import indexing
from holdfast.table.change import RowChange
from holdfast.table.placement import parts
from holdfast.table.state import Table
from holdfast.tasks import rows as tasks

_SAMPLED = 0.25
"""The share of its time that a search samples pairs for, at most."""


def discover(
    run: Run, table: Table, goal: Goal, *, for_batches: bool = True
) -> tuple[Witnessed, Table]:
    """From nothing but the rows; the table then has its duplicates counted, too. From a sample it
    is SWAN's holistic mode: the first segment is profiled, the others are applied as inserts."""
    depth = _depth(goal)
    first = table.segments[:1] if goal.from_sample else table.segments
    rest = table.segments[len(first) :]
    witnessed, table = _discovered(
        run, replace(table, segments=first), goal, depth, for_batches=for_batches and not rest
    )
    for segment in rest:
        with run.stage("index"):
            table = _indexed(run, replace(table, segments=(*table.segments, segment)), witnessed)
        minimal = witnessed.covers.minimal
        premises = Premises.of_batch(table.segments[-1:], minimal, witnessed.covers)
        state = Validation.of(run, depth, table, witnessed, premises)
        witnessed, table = _validated(state)
    with run.stage("index"):
        return witnessed, _indexed(run, table, witnessed)


def changed(run: Run, change: RowChange, before: Witnessed, goal: Goal) -> tuple[Witnessed, Table]:
    """After a batch: deletes first, then what the new rows bring."""
    depth, upkeep = _depth(goal), before.upkeep or Upkeep.none(goal.space.atoms)
    left = _after_deletes(run, change, before, upkeep, depth)
    known = left.witnessed.only(goal.rhs)
    premises = Premises.of_batch(change.added, before.covers.minimal, known.covers, left.former)
    state = Validation.of(run, depth, change.after, known, premises, left.listing)
    with run.stage("validate"):
        state.add_evidence([left.exposed])
    witnessed, table = _validated(state)
    new_lists = witnessed.new_lists
    if left.lists is not None and new_lists is not None:
        new_lists = left.lists.joined(new_lists)
    number = change.before.next_number
    former = upkeep.former.after(before.covers.minimal, number, witnessed.covers)
    hidden = left.witnessed.evidence.followed(left.hidden).outside(witnessed.evidence.masks)
    witnessed = replace(
        witnessed,
        upkeep=replace(upkeep, former=former, hidden=hidden.first(thresholds.current.past_sets)),
        stored_lists=before.stored_lists,
        new_lists=new_lists,
    )
    with run.stage("index"):
        return witnessed, _indexed(run, table, witnessed)


@dataclass(frozen=True)
class _Remaining:
    """What is known once rows are deleted, before anything is searched."""

    witnessed: Witnessed  # without the evidence that only deleted rows showed
    hidden: Evidence  # that other evidence contains, or contained
    exposed: Evidence  # that may be maximal now: hidden evidence, and what lists of pairs show
    former: FormerSets
    listing: Listing = Listing.NONE  # the pairs that are worth listing
    lists: ListedPairs | None = None  # those that tell of most rows


def _after_deletes(
    run: Run, change: RowChange, before: Witnessed, upkeep: Upkeep, depth: Deepening
) -> _Remaining:
    root, table, former = run.store.path, change.after, upkeep.former
    nothing = Evidence.none(before.covers.atoms)
    if not change.departed.count:
        return _Remaining(before, upkeep.hidden, nothing, former)
    evidence, vanished = before.evidence.without(change.took(root, before.evidence.witnesses))

    def change_covers(limits: Limits, tick: Tick) -> Covers:
        covers = before.covers.to(limits)
        return covers.changed(vanished[:0], vanished, evidence.masks, tick)

    left = Witnessed(evidence, depth.attempt(before.covers.limits, change_covers))
    hidden, _ = upkeep.hidden.without(~are_living(root, table, upkeep.hidden.witnesses))
    if not len(vanished):
        return _Remaining(left, hidden, nothing, former)
    lists = before.stored_lists() if before.stored_lists else None
    if lists is None or lists.is_stale(table):
        return _Remaining(left, hidden, hidden, former, Listing.SUBKEYS)
    lists = lists.living(root, table)
    exposed = hidden.joined([lists.evidence])
    return _Remaining(left, hidden, exposed, former.joined(lists.former), Listing.SEARCHED, lists)


def _discovered(
    run: Run, table: Table, goal: Goal, depth: Deepening, *, for_batches: bool
) -> tuple[Witnessed, Table]:
    """From nothing but the rows, with few indexes."""
    nothing = Witnessed.none(len(table.columns.names), goal.rhs, goal.limits)
    premises = Premises.none(nothing.covers)
    listing = Listing.SUBKEYS if for_batches else Listing.NONE
    state = Validation.of(run, depth, table, nothing, premises, listing)
    with run.stage("sample"):
        run.progress("sample")
        samples = sample_calls(state.scope)
        counts = _duplicate_calls(state.scope)
        results = run.within(depth.time.first(_SAMPLED)).run([*samples, *counts])
        sampled = [evidence_of(p) for result in results[: len(samples)] for p in result]
        state.add_evidence(_as_time_allows(sampled, depth.time, len(goal.rhs)))
        counted = [p.facts for result in results[len(samples) :] for p in result]
    with run.stage("search"):
        lists = validate(state)
    table = replace(
        state.table,
        duplicates=sum(facts["duplicates"] for facts in counted),
        repeated=[pair for facts in counted for pair in facts["pairs"]][: tasks.REPEATED_PAIRS],
    )
    return Witnessed(state.known.evidence, state.known.covers, new_lists=lists), table


def _validated(state: Validation) -> tuple[Witnessed, Table]:
    """Exact again on all living rows after a batch, with their duplicates counted."""
    run = state.run
    with run.stage("validate"):
        lists = validate(state)
    table = state.table
    duplicates = table.duplicates + state.repeats.count
    # The batch's own first: they are what is shown of it.
    pairs = sorted(state.repeats.pairs, key=lambda pair: pair[1])
    repeated = [*pairs, *table.repeated]
    if duplicates and not repeated:
        with run.stage("duplicates"):
            results = run.runner.run(_duplicate_calls(state.scope))
            repeated = [pair for result in results for p in result for pair in p.facts["pairs"]]
    table = replace(table, duplicates=duplicates, repeated=repeated[: tasks.REPEATED_PAIRS])
    return Witnessed(state.known.evidence, state.known.covers, new_lists=lists), table


def _indexed(run: Run, table: Table, witnessed: Witnessed) -> Table:
    """The table with the indexes that look-ups for the minimal sets need. Where there is no time to
    build those, batches search for what they would be looked up for."""
    covers = witnessed.covers
    try:
        return indexing.index(run, table, np.concatenate([*covers.minimal.values()]), covers.atoms)
    except OutOfTime:
        return indexing.as_it_is(table)


def _depth(goal: Goal) -> Deepening:
    return Deepening(goal.limits, goal.time, deepening.WITNESSED)


def _as_time_allows(sampled: list[Evidence], time: Time, covers: int) -> list[Evidence]:
    """As much sampled evidence as there is time to take in, for so many covers."""
    if time.end is None:
        return sampled
    compared = thresholds.current.evidences_compared * max(0.0, time.left) / max(1, covers)
    most = int(math.sqrt(compared)) // max(1, len(sampled))
    return [evidence.first(most) for evidence in sampled]


def _duplicate_calls(scope: Scope) -> list[Call]:
    """Calls that count the rows which repeat another one."""
    ranges = tasks.even_ranges(parts(scope.runner, scope.view))
    return [(tasks.duplicates, tasks.Duplicates(scope.view, low, high)) for low, high in ranges]
