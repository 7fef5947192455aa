"""Applying a batch, or checking what it would do: the same steps, up to the commit."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np

from holdfast import families
from holdfast.families.inclusion_dependencies import storage, values
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.families.known import Known, Step
from holdfast.flow.commits import commit
from holdfast.input.row_input import Columns, expect_batch
from holdfast.model.changes import Changes
from holdfast.model.commits import BatchRecord, Commit
from holdfast.model.progress import Progress
from holdfast.store import Store
from holdfast.store.run import Run, about, watched
from holdfast.table.batch import Batch, BatchIntake, change_rows, read_batch
from holdfast.table.change import RowCounts
from holdfast.table.state import Table
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.runner import Runner


def apply(
    runner: Runner,
    store: Store,
    name: str,
    batch: Batch,
    progress: Progress,
    dry_run: bool = False,
    device: str | None = None,
) -> Changes:
    """Apply a batch to a table whole, or not at all; or only say what it would do. Pairs are
    counted with the device that the options name unless told, which is not remembered."""
    with (
        store.trying() if dry_run else store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        # What this builds on is the version that the lease names, not one that was read before.
        version = store.read(lease.version)
        options = version.options
        columns = Columns.stored(version.table(name).columns)
        expect_batch(
            name, columns, batch.given, batch.row_key, batch.batch_id, options.insert_only,
            batch.if_exists,
        )  # fmt: skip
        run = Run(runner, store, options, lease, about(progress, name), device=device)
        with run.stage("open"):
            before = Known.load(store, version, name)
            held = storage.load(store, version.inclusion) if version.inclusion else None
        with run.stage("read"):
            intake = read_batch(run, before.table, batch)
        done = store.find_batch(name, batch.batch_id, intake.digest) if batch.batch_id else None
        if done is not None and done.changes is not None:
            # A check says the same as the batch itself: there is nothing left to be done.
            then = Changes.from_dict(done.changes, families.makers())
            return replace(then, applied=False, applied_before=True)
        others = {each: Table.stored(each, record) for each, record in version.tables.items()}
        step, counts = _step(run, before, held, intake, others)
        with run.stage("witnesses"):
            changes = _changes(run, step, batch, counts, version.version, dry_run)
        if dry_run:
            return changes
        after = step.after.compacted(run)
        found = step.values_after
        if found is not None:
            found = values.compacted(run, found)
        with run.stage("commit"):
            run.progress("commit")
            after = after.saved(run, before)
            if found is not None:
                found = values.saved(run, found, held)
            changes = replace(changes, version=version.version + 1, seconds=run.seconds)
            said = Commit(
                tables=version.tables,
                batch=BatchRecord(name, batch.batch_id, intake.digest),
                changes=changes.to_dict(),
            )
            commit(run, {name: after}, found, said)
    store.clean()
    return changes


def _step(
    run: Run,
    before: Known,
    held: Inclusion | None,
    intake: BatchIntake,
    others: dict[str, Table],
) -> tuple[Step, RowCounts]:
    """Rows first, then pairs, then values; and how many rows the batch changes."""
    change = change_rows(run, before.table, intake)
    counts = change.counts
    after, change = before.changed(run, change)
    found = held
    if held is not None:
        found = values.changed(run, held, change, {**others, after.table.name: after.table})
    return Step(before, after, held, found), counts


def _changes(
    run: Run, step: Step, batch: Batch, counts: RowCounts, version: int, dry_run: bool
) -> Changes:
    """What the batch did, kind by kind."""
    before, after = step.before.table, step.after.table
    changes = {kind.field: kind.changes(run, step) for kind in families.named(run.options.kinds)}
    twice = after.repeated[0][:1] if after.duplicates > before.duplicates else []
    names = after.columns.names
    text = rows_as_text(run.store.path, after.segments, names, np.array(twice, np.int64))
    return Changes(
        table=before.name,
        version=version,
        batch_id=batch.batch_id,
        applied=not dry_run,
        inserted=counts.inserted,
        deleted=counts.deleted,
        updated=counts.updated,
        skipped=counts.skipped,
        rows=after.rows,
        duplicates=after.duplicates,
        duplicates_before=before.duplicates,
        duplicated=tuple(json.loads(each) for each in text.values()),
        kinds={field: each for field, each in changes.items() if each is not None},
        seconds=run.seconds,
    )
