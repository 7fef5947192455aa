"""A batch on its way in: read beside the table, and applied to its rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import KEY, Covers
from holdfast.evidence import counted as counting
from holdfast.evidence.strategy import COUNTED, WITNESSED
from holdfast.families.inclusion_dependencies import changes as inclusion_changes
from holdfast.families.inclusion_dependencies.changes import Change
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.families.inclusion_dependencies.n_ary import Batch as TupleBatch
from holdfast.families.inclusion_dependencies.n_ary import Rows
from holdfast.flow.discovery import (
    chosen,
    counted_anew,
    discover_rows,
    estimated,
    tuples_of,
    validated,
    with_counted,
    witnessed_depth,
)
from holdfast.input.reading import read
from holdfast.input.row_input import Feed, fitted
from holdfast.kernels.cover import Tick
from holdfast.model.errors import BatchError
from holdfast.model.limits import Limits
from holdfast.store.run import Run
from holdfast.table import compaction as upkeep
from holdfast.table.matching import Requests, find_rows, with_deleted
from holdfast.table.state import Table
from holdfast.tasks.segments import Segment

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Batch:
    """Changes to one table, as feeds."""

    inserts: Feed | None = None
    deletes: Feed | None = None
    updates: Feed | None = None
    row_key: tuple[str, ...] = ()
    batch_id: str | None = None


@dataclass(frozen=True)
class BatchIntake:
    """The batch as segments."""

    added: tuple[Segment, ...]
    inserted: int
    updated: int
    requests: tuple[Requests, ...]
    digest: str

    @property
    def deleted(self) -> int:
        return sum(r.rows for r in self.requests) - self.updated


def read_batch(run: Run, table: Table, batch: Batch) -> BatchIntake:
    """Write the batch's rows beside the table's; nothing refers to them before the commit."""
    run.progress("read")
    number = table.next_number
    names = dict.fromkeys(batch.row_key)
    key = tuple(table.columns.place(name, table.name) for name in names)
    everything = tuple(range(len(table.columns.names)))
    added: tuple[Segment, ...] = ()
    requests: list[Requests] = []
    digests: list[str] = []
    inserted = updated = 0
    if batch.inserts is not None:
        feed = fitted(batch.inserts, table.name, table.columns)
        intake = read(run.runner, feed, run.place, number, run.progress, table.indexed)
        added, inserted = intake.segments, intake.rows
        digests.append(f"inserts={intake.fingerprint}")
    if batch.updates is not None:
        if not key:
            raise BatchError("updates need --row-key: the columns that tell which row is meant")
        feed = fitted(batch.updates, table.name, table.columns)
        intake = read(run.runner, feed, run.place, number + len(added), run.progress, table.indexed)
        added += intake.segments
        updated = intake.rows
        requests.append(Requests("update", feed.label, table.columns, intake.segments, key, key))
        digests.append(f"updates={intake.fingerprint}")
    if batch.deletes is not None:
        whole = set(table.columns.names) <= set(batch.deletes.columns.names)
        wanted = table.columns if whole or not key else table.columns.pick(list(key))
        feed = fitted(batch.deletes, table.name, wanted)
        place = replace(run.place, keep_rows=True)
        intake = read(run.runner, feed, place, number + len(added), run.progress)
        columns = key or everything
        places = columns if wanted is table.columns else tuple(range(len(columns)))
        requests.append(Requests("delete", feed.label, wanted, intake.segments, columns, places))
        digests.append(f"deletes={intake.fingerprint}")
    if not digests:
        raise BatchError("an empty batch: give inserts, deletes or updates")
    if batch.row_key:
        digests.append(f"key={json.dumps(batch.row_key)}")
    return BatchIntake(added, inserted, updated, tuple(requests), " ".join(digests))


def changed(run: Run, before: Table, intake: BatchIntake) -> tuple[Table, I64]:
    """The table after the batch, deletes first, then what the new rows bring; and which rows it
    lost."""
    table = before
    depth = witnessed_depth(run, table)
    gone = np.empty(0, np.int64)
    if intake.requests:
        with run.stage("locate"):
            run.progress("locate", rows=sum(r.rows for r in intake.requests))
            view = table.view(run.store.path, run.options)
            found = find_rows(run.runner, view, table.name, intake.requests)
            table = with_deleted(run.store, run.lease, table, found, depth)
            gone = found.ids
    table = replace(
        table,
        segments=table.segments + intake.added,
        next_number=table.next_number
        + sum(len(r.segments) for r in intake.requests)
        + len(intake.added),
    )
    if not run.options.seeks_keys:
        return replace(table, duplicates=0), gone
    table = estimated(run, replace(table, choice=chosen(run, table)))
    if table.way == WITNESSED != before.way:
        table = discover_rows(run, replace(table, counted=None))
    else:
        table = _kept(run, table, before, intake, gone, depth)
    with run.stage("index"):
        return upkeep.index(run.runner, table, run.place, run.options, run.progress), gone


def _kept(
    run: Run, table: Table, before: Table, intake: BatchIntake, gone: I64, depth: Deepening
) -> Table:
    """The table with everything made exact again, at a cost that follows the batch."""
    if table.way == COUNTED != before.way:
        # Only what keys need stays witnessed.
        covers = table.covers.only([KEY])
        evidence = table.evidence.only(covers.evidence)
        table = replace(table, evidence=evidence, covers=covers)
    table = validated(run, table, before.covers, intake.added, depth)
    if table.way != COUNTED:
        return table
    if table.counted is None:
        return counted_anew(run, table)
    with run.stage("count"):
        counted, appeared, vanished = counting.count_batch(
            run.runner, table.counted, table.view(run.store.path, run.options),
            intake.added, before.segments, gone, run.progress,
        )  # fmt: skip
    with run.stage("cover"):
        known, masks = table.covers.only(table.covers.columns), counted.sets.masks

        def change(limits: Limits, tick: Tick) -> Covers:
            return known.to(limits).changed(appeared, vanished, masks, tick)

        return with_counted(run, replace(table, counted=counted), change)


def changed_values(
    run: Run,
    values: Inclusion | None,
    before: Table,
    after: Table,
    others: dict[str, Any],
    intake: BatchIntake,
    gone: I64,
) -> Inclusion | None:
    """The values after the batch: merged with those of the new rows, the deleted ones extracted."""
    if values is None:
        return None
    with run.stage("values"):
        rows = [Change(after, intake.added), inclusion_changes.gone(before, gone)]
        found = inclusion_changes.changed(
            run.runner, values, rows, run.place, run.options, run.progress
        )
        came, went = (Rows(each.table.columns, each.segments, each.ids) for each in rows)
        return inclusion_changes.with_tuples(
            tuples_of(run, {after.name: after}, others), found, values.tuples,
            TupleBatch(after.name, came, went), run.progress,
        )  # fmt: skip
