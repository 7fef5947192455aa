"""Applying a batch to one or several tables, or checking what it would do: the same steps, up to
the commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.expectations import state
from holdfast.expectations.quarantine import Sifted, expect_possible, sifted, written
from holdfast.expectations.state import Expected
from holdfast.expectations.violating import groups
from holdfast.flow.commits import commit
from holdfast.input.row_input import Columns, expect_batch
from holdfast.kinds import registry
from holdfast.kinds.table_state import Step, TableState
from holdfast.model import concealment
from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.commits import BatchRecord, Commit, Header
from holdfast.model.errors import OvertakenError
from holdfast.model.expectations import ExpectationChange
from holdfast.model.lazily import Lazily
from holdfast.model.progress import Progress
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.store.quarantine import finish
from holdfast.table.batch import Batch, BatchIntake, change_rows, read_batch
from holdfast.table.change import RowChange, RowCounts
from holdfast.table.state import Table
from holdfast.tasks.shown import rows_as_text
from holdfast.values import state as values
from holdfast.values import storage
from holdfast.values.clusters import ValueState


def apply(
    runner: Runner,
    store: Store,
    name: str,
    batch: Batch,
    progress: Progress,
    dry_run: bool = False,
    device: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    secret: bytes | None = None,
) -> Changes:
    """Apply a batch to a table whole, or not at all; or only say what it would do. Pairs are
    counted with the device that the options name unless one is given, which is not remembered."""
    changes = apply_together(
        runner, store, {name: batch}, progress, dry_run, device, strict, quarantine, secret
    )
    return changes.alone(name)


def apply_together(
    runner: Runner,
    store: Store,
    batches: Mapping[str, Batch],
    progress: Progress,
    dry_run: bool = False,
    device: str | None = None,
    strict: bool = False,
    quarantine: str | None = None,
    secret: bytes | None = None,
) -> BatchChanges:
    """Apply a batch of several tables, which all have its id, as one version, or not at all.
    Strict, it is not applied if it breaks what it should not. With a folder for a quarantine it is
    applied without the rows that break expected rules, which are written there. A profile that
    keeps no values needs the secret that it was made with."""
    (batch_id,) = {batch.batch_id for batch in batches.values()}
    batches = dict(sorted(batches.items()))
    with (
        store.trying() if dry_run else store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        # What this builds on is the version that the lease names, not one that was read before.
        version = store.read(lease.version)
        options = version.options
        key = concealment.opened(version.secret, secret, store.path) if version.secret else None
        for name, batch in batches.items():
            columns = Columns.stored(version.table(name).columns)
            expect_batch(
                name, columns, batch.given, batch.row_key, batch_id, options.insert_only,
                batch.if_exists,
            )  # fmt: skip
        seconds: dict[str, float] = {}
        # A time budget is that of a table, so each has a run of its own.
        runs = {
            name: Run(runner, store, options, lease, about(progress, name), seconds, device, key)
            for name in batches
        }
        run = next(iter(runs.values()))
        if len(runs) > 1:
            run = Run(runner, store, options, lease, progress, seconds, device, key)
        with run.stage("open"):
            before = {name: TableState.load(store, version, name) for name in batches}
            base = _Base.of(store, version)
        if quarantine is not None:
            expect_possible(base.expected, [base.tables[name] for name in batches], quarantine)
            # Of a run that was killed after its commit.
            finish(quarantine, store.committed_by)
        with run.stage("read"):
            intakes = {
                name: read_batch(runs[name], before[name].table, batch, quarantine is not None)
                for name, batch in batches.items()
            }
        digest = _digest(intakes)
        for name in batches if batch_id else ():
            done = store.find_batch(name, batch_id or "", digest)
            if done is not None and done.changes is not None:
                # A check says the same as the batch itself: there is nothing left to be done.
                return _applied_before(BatchChanges.from_stored(done.changes, registry.makers()))

        left = _sifted(run, base, intakes, quarantine)
        after, changed = _changed(runs, before, left.changes)
        saved: dict[str, TableState] = {}
        while True:
            steps = _steps(run, before, after, base, changed)
            by_table = _told(run, runs, steps, base, left, batch_id, dry_run)
            if strict and registry.breaks(BatchChanges(by_table)):
                by_table = {
                    n: replace(each, applied=False, refused=True) for n, each in by_table.items()
                }
            if dry_run or next(iter(by_table.values())).refused:
                return BatchChanges(by_table, seconds)
            compacted = {} if saved else {n: e.compacted(runs[n]) for n, e in after.items()}
            inclusion = next(iter(steps.values())).values_after
            if inclusion is not None:
                inclusion = values.compacted(run, inclusion)
            rules = state.compacted(run, left.expected)
            try:
                with (
                    run.stage("commit"),
                    written(run, quarantine, left.left_out, base.expected, batches) as quarantined,
                ):
                    run.progress("commit")
                    saved = saved or {n: e.saved(runs[n], before[n]) for n, e in compacted.items()}
                    if inclusion is not None:
                        inclusion = values.saved(run, inclusion, base.values)
                    number = base.version.version + 1
                    by_table = {
                        n: replace(each, quarantined=quarantined.get(n), version=number)
                        for n, each in by_table.items()
                    }
                    changes = BatchChanges(by_table, seconds)
                    first, *rest = batches
                    said = Commit(
                        tables=base.version.tables,
                        batch=BatchRecord(first, batch_id, digest, tuple(rest)),
                        changes=changes.stored,
                        expectations=rules.standings,
                        tuples=rules.record,
                        secret=base.version.secret,
                    )
                    commit(run, saved, inclusion, said)
                break
            except OvertakenError:
                if quarantine is not None or not _apart(store.overtaken(lease), batches):
                    raise
                # The others changed other tables: what was found of ours still holds, and what
                # depends on all tables is found again.
                base = _Base.of(store, store.read(lease.version))
                left = _counted(run, base, left)
    store.clean()
    return changes


@dataclass(frozen=True)
class _Base:
    """The version that a batch builds on: what depends on more than the tables that it changes."""

    version: Commit
    tables: Lazily[Table]
    values: ValueState | None
    expected: Expected

    @staticmethod
    def of(store: Store, version: Commit) -> _Base:
        tables = Lazily(version.tables, lambda name: Table.stored(name, version.tables[name]))
        values = storage.load(store, version.inclusion) if version.inclusion else None
        return _Base(version, tables, values, Expected.stored(version, tables))


def _apart(others: Sequence[Header], batches: Mapping[str, Batch]) -> bool:
    """Whether versions are batches of other tables, each of them."""
    return all(
        each.batch is not None and not {*each.batch.tables}.intersection(batches) for each in others
    )


def _changed(
    runs: Mapping[str, Run], before: Mapping[str, TableState], changes: Sequence[RowChange]
) -> tuple[dict[str, TableState], list[RowChange]]:
    """What is known of the changed tables afterwards, from pairs of their rows."""
    after: dict[str, TableState] = {}
    changed = []
    for change in changes:
        name = change.before.name
        after[name], with_indexes = before[name].changed(runs[name], change)
        changed.append(with_indexes)
    return after, changed


def _steps(
    run: Run,
    before: Mapping[str, TableState],
    after: Mapping[str, TableState],
    base: _Base,
    changed: Sequence[RowChange],
) -> dict[str, Step]:
    """The changed tables with the values of all tables, which are all as they are afterwards."""
    inclusion = base.values
    if inclusion is not None:
        now = base.tables | {name: each.table for name, each in after.items()}
        inclusion = values.changed(run, inclusion, changed, now)
    names = frozenset(after)
    return {
        name: Step(before[name], each, base.values, inclusion, names - {name})
        for name, each in after.items()
    }


def _sifted(
    run: Run, base: _Base, intakes: Mapping[str, BatchIntake], quarantine: str | None
) -> Sifted:
    """What the batch does to the rows and to the expectations; with a quarantine, without the rows
    that break these."""
    if quarantine is not None:
        return sifted(run, base.expected, intakes, base.tables)
    changes = change_rows(run, [(base.tables[name], each) for name, each in intakes.items()])
    return _counted(run, base, Sifted(changes, base.expected))


def _counted(run: Run, base: _Base, left: Sifted) -> Sifted:
    """The same rows, with what they do to the expectations of a version."""
    if not base.expected:
        return replace(left, expected=base.expected)
    now = base.tables | {each.after.name: each.after for each in left.changes}
    with run.stage("expectations"):
        expected = state.changed(run, base.expected, left.changes, now)
    return replace(left, expected=expected)


def _told(
    run: Run,
    runs: Mapping[str, Run],
    steps: Mapping[str, Step],
    base: _Base,
    left: Sifted,
    batch_id: str | None,
    dry_run: bool,
) -> dict[str, Changes]:
    """What the batch did to each table."""
    version = base.version.version
    counts = {each.before.name: each.counts for each in left.changes}
    with run.stage("witnesses"):
        by_table = {
            name: _changes(runs[name], step, batch_id, counts[name], version, dry_run)
            for name, step in steps.items()
        }
        if base.expected:
            rules = _expectations(run, base, left, {n: step.after for n, step in steps.items()})
            by_table = {n: replace(each, expectations=rules[n]) for n, each in by_table.items()}
    return by_table


def _expectations(
    run: Run, base: _Base, left: Sifted, after: Mapping[str, TableState]
) -> dict[str, tuple[ExpectationChange, ...]]:
    """What becomes of the expectations that changed tables can break, with rows that do: each is
    reported once, with the first of its tables that changed."""
    tables = base.tables | {name: each.table for name, each in after.items()}
    new = {each.after.name: each.added for each in left.changes}
    by_table: dict[str, list[ExpectationChange]] = {name: [] for name in new}
    for place, standing in enumerate(left.expected.standings):
        changed = [name for name in standing.expectation.tables if name in by_table]
        if changed:
            each = ExpectationChange(base.expected.standings[place], standing)
            if each.breaks:
                rows = groups(run, left.expected, place, tables, new)
                each = replace(each, groups=tuple(rows))
            by_table[changed[0]].append(each)
    return {name: tuple(each) for name, each in by_table.items()}


def _digest(intakes: Mapping[str, BatchIntake]) -> str:
    """What tells the content of a batch from another one's."""
    if len(intakes) == 1:
        return next(iter(intakes.values())).digest
    return json.dumps({name: each.digest for name, each in sorted(intakes.items())})


def _applied_before(then: BatchChanges) -> BatchChanges:
    again = {
        name: replace(each, applied=False, applied_before=True)
        for name, each in then.tables.items()
    }
    return replace(then, tables=again)


def _changes(
    run: Run, step: Step, batch_id: str | None, counts: RowCounts, version: int, dry_run: bool
) -> Changes:
    """What the batch did to a table, kind by kind."""
    before, after = step.before.table, step.after.table
    changes = {kind.field: kind.changes(run, step) for kind in registry.named(run.options.kinds)}
    twice = after.repeated[0][:1] if after.duplicates > before.duplicates else []
    names = after.columns.names
    text = rows_as_text(run.store.path, after.segments, names, np.array(twice, np.int64))
    return Changes(
        table=before.name,
        version=version,
        batch_id=batch_id,
        applied=not dry_run,
        inserted=counts.inserted,
        deleted=counts.deleted,
        updated=counts.updated,
        unchanged=counts.unchanged,
        skipped=counts.skipped,
        rows=after.rows,
        duplicates=after.duplicates,
        duplicates_before=before.duplicates,
        duplicated=tuple(json.loads(each) for each in text.values()),
        kinds={field: each for field, each in changes.items() if each is not None},
    )
