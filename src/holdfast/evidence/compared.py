"""Witnessed evidence of any space of comparisons: completed instead of counted.

What a batch brings is compared with all rows; what it takes away loses its witnesses, and the sets
that this brings into question are searched for again.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.cover import Cover
from holdfast.cover.deepening import OutOfTime
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence import completion
from holdfast.evidence.completion import Completed, Scope
from holdfast.evidence.counted import groups_of
from holdfast.kernels import bitsets
from holdfast.kernels.cover import TooMany
from holdfast.model.comparisons import Space
from holdfast.model.limits import Limits, Time
from holdfast.store.run import Run
from holdfast.table.change import RowChange
from holdfast.table.state import Table

U64 = NDArray[np.uint64]

Found = tuple[Evidence, Covers]


def discovered(run: Run, table: Table, space: Space, limits: Limits) -> Found:
    """From nothing but the rows."""
    with run.stage("search"):
        return _completed(run, table, space, limits, None, None)


def changed(
    run: Run, change: RowChange, space: Space, limits: Limits, before: Evidence, covers: Covers
) -> Found:
    """After a batch. A set that held before it holds on all pairs without a new row, and all pairs
    with one are compared; so only sets that contain none which held are looked for in the rows."""
    held = covers.keys.minimal
    known, vanished = before.without(change.gone)
    with run.stage("validate"):
        if change.added:
            scope = _scope(run, change.after, space)
            known = known.joined([completion.beside(scope, change.added)])
        appeared = known.masks[~bitsets.is_member(known.masks, before.masks)]
        # What deleted rows showed a new row may show again.
        vanished = vanished[~bitsets.is_member(vanished, known.masks)]
        after = covers.changed(appeared, vanished, known.masks)
        minimal = after.keys.minimal
        unsure = minimal[~bitsets.any_subset(minimal, held)]
        if not bitsets.any_subset(unsure, completion.unsatisfiable(space)).all():
            return _completed(run, change.after, space, limits, known, held)
        return known.only(after.evidence), after


def _completed(
    run: Run, table: Table, space: Space, limits: Limits, known: Evidence | None, held: U64 | None
) -> Found:
    """Complete evidence; where the time is bounded, complete up to a number of comparisons."""
    if table.rows < 2:
        none = Cover.build(space.atoms, bitsets.empty(space.atoms), limits.keys, groups_of(space))
        nothing = Completed(Evidence.none(space.atoms), none, 0)
        return nothing.evidence, _covers(space, nothing, limits.keys)
    done: tuple[Completed, int | None] | None = None
    for most, time in _depths(run.time, limits.keys, len(space.comparisons)):
        try:
            found = completion.complete(_scope(run, table, space, time), known, held, most)
        except (OutOfTime, TooMany):
            if time.end is None:
                raise
            if done is not None:
                break
            continue
        done, known = (found, most), found.evidence
        if most == limits.keys:
            break
    assert done is not None
    return done[0].evidence, _covers(space, *done)


def _depths(time: Time, wanted: int | None, comparisons: int) -> Iterator[tuple[int | None, Time]]:
    """How many comparisons to look for, and in which time: all that is wanted in the first half of
    it; then one more at a time, the first whatever the time."""
    yield wanted, time.first(0.5)
    yield 1, Time()
    for most in range(2, min(comparisons, wanted or comparisons) + 1):
        yield most, time


def _scope(run: Run, table: Table, space: Space, time: Time | None = None) -> Scope:
    def progress(stage: str, **facts: object) -> None:
        if time is not None and time.left <= 0:
            raise OutOfTime
        run.progress(stage, **facts)

    view = table.view(run.store.path, run.options)
    prefix, schema = run.destination.prefix, table.columns.schema
    return Scope(run.runner, view, schema, space, prefix, progress)


def _covers(space: Space, done: Completed, most: int | None) -> Covers:
    """The covers of completed evidence."""
    masks = done.cover.evidence
    maximal_for = np.zeros((len(masks), bitsets.words_for(space.atoms + 1)), np.uint64)
    maximal_for |= bitsets.from_columns([[space.atoms]], space.atoms + 1)
    minimal = {KEY: done.cover.minimal}
    limits = Limits(keys=most)
    return Covers.restored(space.atoms, masks, maximal_for, minimal, limits, groups_of(space))
