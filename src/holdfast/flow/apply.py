"""Applying a batch to one or several tables, or checking what it would do: the same steps, up to
the commit."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from holdfast.flow.commits import commit
from holdfast.input.row_input import Columns, expect_batch
from holdfast.kinds import registry
from holdfast.kinds.table_state import Step, TableState
from holdfast.model import concealment
from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.commits import BatchRecord, Commit, Header
from holdfast.model.errors import OvertakenError
from holdfast.model.expectations import ExpectationChange, Quarantine
from holdfast.model.lazily import Lazily
from holdfast.model.progress import Progress
from holdfast.rules.expectations import Expected
from holdfast.rules.quarantine import Sifted, expect_possible, sifted, written
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.store import Lease, Store
from holdfast.store.quarantine import finish
from holdfast.table.batch import Batch, BatchIntake, change_rows, read_batch
from holdfast.table.change import RowChange, RowCounts
from holdfast.table.state import Table
from holdfast.tasks.shown import rows_as_text
from holdfast.values.state import ValueState


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
    """Apply a batch to a table whole, or not at all; or only say what it would do. ``device``, if
    given, is used to count pairs in place of the one in the options, for this batch only."""
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
    """Apply a batch of several tables, which all have its id, as one version, or not at all. With
    ``strict`` it is not applied if it breaks what it should not. With a ``quarantine`` folder the
    rows that break expected rules are written there, and the others applied. A profile without
    values needs its secret."""
    (batch_id,) = {batch.batch_id for batch in batches.values()}
    batches = dict(sorted(batches.items()))
    with (
        store.trying() if dry_run else store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        # What this builds on is the version that the lease names, not one that was read before.
        version = store.read(lease.version)
        _expect(version, batches, batch_id)
        key = concealment.opened(version.secret, secret, store.path) if version.secret else None
        run, runs = _runs(runner, store, version, lease, progress, [*batches], device, key)
        with run.stage("open"):
            before = {name: TableState.load(store, version, name) for name in batches}
            base = _Base.load(store, version)
        if quarantine is not None:
            expect_possible(base.expected, [base.tables[name] for name in batches], quarantine)
            # Of a run that was killed after its commit.
            finish(quarantine, store.committed_by)
        intakes = _read(run, runs, before, batches, quarantine is not None)
        first, *others = batches
        record = BatchRecord(first, batch_id, _digest(intakes), tuple(others))
        if then := _applied_before(store, record):
            return then

        rows = _change_rows(run, base, intakes, quarantine)
        after, row_changes = _change_evidence(runs, before, rows.changes)
        saved: dict[str, TableState] = {}
        while True:
            steps = _change_values(run, before, after, base, row_changes)
            by_table = _changes_by_table(run, runs, steps, base, rows, batch_id, dry_run)
            if strict and registry.breaks(BatchChanges(by_table)):
                by_table = _with_outcome(by_table, applied=False, refused=True)
            changes = BatchChanges(by_table, run.seconds)
            if dry_run or changes.refused:
                return changes
            compacted = saved or {name: state.compact(runs[name]) for name, state in after.items()}
            values = steps[record.table].values_after
            values = values and values.compact(run)
            expected = rows.expected.compact(run)
            try:
                with (
                    run.stage("commit"),
                    written(run, quarantine, rows.left_out, base.expected, batches) as quarantined,
                ):
                    run.progress("commit")
                    saved = saved or {n: e.save(runs[n], before[n]) for n, e in compacted.items()}
                    values = values and values.save(run, base.values)
                    changes = _committed(changes, base.version.version + 1, quarantined)
                    said = Commit(
                        tables=base.version.tables,
                        batch=record,
                        changes=changes.stored,
                        expectations=expected.standings,
                        tuples=expected.record,
                        secret=base.version.secret,
                    )
                    commit(run, saved, values, said)
                break
            except OvertakenError:
                if quarantine is not None or not _are_apart(store.overtaken(lease), record):
                    raise
                # The others changed other tables: what was found of ours still holds, and what
                # depends on all tables is found again.
                base = _Base.load(store, store.read(lease.version))
                rows = _change_expectations(run, base, rows)
    store.clean()
    return changes


@dataclass(frozen=True)
class _Base:
    """The version that a batch builds on, as far as it concerns all tables."""

    version: Commit
    tables: Lazily[Table]
    values: ValueState | None
    expected: Expected

    @staticmethod
    def load(store: Store, version: Commit) -> _Base:
        tables = Lazily(version.tables, lambda name: Table.stored(name, version.tables[name]))
        values = ValueState.load(store, version.inclusion) if version.inclusion else None
        expectations = [standing.expectation for standing in version.expectations]
        forms = registry.forms(expectations, tables, version.options)
        return _Base(version, tables, values, Expected.stored(version, forms))


def _expect(version: Commit, batches: Mapping[str, Batch], batch_id: str | None) -> None:
    """Raise an error for a batch that makes no sense, whatever its rows are."""
    for name, batch in batches.items():
        columns, insert_only = version.table(name).columns, version.options.insert_only
        expect_batch(
            name, Columns.stored(columns), batch.changes, batch.row_key, batch_id, insert_only,
            batch.if_exists,
        )  # fmt: skip


def _runs(
    runner: Runner,
    store: Store,
    version: Commit,
    lease: Lease,
    progress: Progress,
    names: Sequence[str],
    device: str | None,
    key: bytes | None,
) -> tuple[Run, dict[str, Run]]:
    """A run over all tables, and one for each table, since a time budget is per table."""
    seconds: dict[str, float] = {}

    def run_with(progress: Progress) -> Run:
        return Run(runner, store, version.options, lease, progress, seconds, device, key)

    runs = {name: run_with(about(progress, name)) for name in names}
    return (run_with(progress) if len(runs) > 1 else runs[names[0]]), runs


def _read(
    run: Run,
    runs: Mapping[str, Run],
    before: Mapping[str, TableState],
    batches: Mapping[str, Batch],
    keep_rows: bool,
) -> dict[str, BatchIntake]:
    """The rows of the batch, written beside those of the tables."""
    with run.stage("read"):
        return {
            name: read_batch(runs[name], before[name].table, batch, keep_rows)
            for name, batch in batches.items()
        }


def _digest(intakes: Mapping[str, BatchIntake]) -> str:
    """A digest of the content of a batch."""
    if len(intakes) == 1:
        return next(iter(intakes.values())).digest
    return json.dumps({name: intake.digest for name, intake in sorted(intakes.items())})


def _applied_before(store: Store, batch: BatchRecord) -> BatchChanges | None:
    """The outcome of an earlier batch with the same id and content, if there is one. It is the same
    for a check, as nothing is left to be done."""
    for name in batch.tables if batch.id else ():
        version = store.find_batch(name, batch.id or "", batch.digest)
        if version is not None and version.changes is not None:
            then = BatchChanges.from_stored(version.changes, registry.makers())
            return replace(
                then, tables=_with_outcome(then.tables, applied=False, applied_before=True)
            )
    return None


def _change_rows(
    run: Run, base: _Base, intakes: Mapping[str, BatchIntake], quarantine: str | None
) -> Sifted:
    """Change the rows and the expectations; with a quarantine without the rows that break
    expectations."""
    if quarantine is not None:
        return sifted(run, base.expected, intakes, base.tables)
    changes = change_rows(run, [(base.tables[name], intake) for name, intake in intakes.items()])
    return _change_expectations(run, base, Sifted(changes, base.expected))


def _change_expectations(run: Run, base: _Base, rows: Sifted) -> Sifted:
    """The same changes of rows, with what they mean for the expectations of a version."""
    if not base.expected:
        return replace(rows, expected=base.expected)
    now = base.tables | {change.after.name: change.after for change in rows.changes}
    with run.stage("expectations"):
        expected = base.expected.change(run, rows.changes, now)
    return replace(rows, expected=expected)


def _change_evidence(
    runs: Mapping[str, Run], before: Mapping[str, TableState], changes: Sequence[RowChange]
) -> tuple[dict[str, TableState], list[RowChange]]:
    """Change the evidence of each table; the changes of rows come back with new indexes and counts
    of duplicates."""
    after: dict[str, TableState] = {}
    indexed = []
    for change in changes:
        name = change.before.name
        after[name], with_indexes = before[name].change(runs[name], change)
        indexed.append(with_indexes)
    return after, indexed


def _change_values(
    run: Run,
    before: Mapping[str, TableState],
    after: Mapping[str, TableState],
    base: _Base,
    changes: Sequence[RowChange],
) -> dict[str, Step]:
    """Change the values of all tables; for each changed table its state before and after."""
    values = base.values
    if values is not None:
        tables = base.tables | {name: state.table for name, state in after.items()}
        values = values.change(run, changes, tables)
    names = frozenset(after)
    return {
        name: Step(before[name], state, base.values, values, names - {name})
        for name, state in after.items()
    }


def _changes_by_table(
    run: Run,
    runs: Mapping[str, Run],
    steps: Mapping[str, Step],
    base: _Base,
    rows: Sifted,
    batch_id: str | None,
    dry_run: bool,
) -> dict[str, Changes]:
    """What the batch did to each table, for the caller."""
    version = base.version.version
    counts = {change.before.name: change.counts for change in rows.changes}
    with run.stage("witnesses"):
        by_table = {
            name: _changes(runs[name], step, batch_id, counts[name], version, dry_run)
            for name, step in steps.items()
        }
        if base.expected:
            rules = _expectations(run, base, rows, {n: step.after for n, step in steps.items()})
            by_table = {n: replace(each, expectations=rules[n]) for n, each in by_table.items()}
    return by_table


def _expectations(
    run: Run, base: _Base, rows: Sifted, after: Mapping[str, TableState]
) -> dict[str, tuple[ExpectationChange, ...]]:
    """How the expectations of changed tables stand now, with examples for broken ones. Each is
    reported once, with the first of its tables that changed."""
    tables = base.tables | {name: state.table for name, state in after.items()}
    new = {change.after.name: change.added for change in rows.changes}
    question = rows.expected.question(run, tables, new)
    by_table: dict[str, list[ExpectationChange]] = {name: [] for name in new}
    for place, standing in enumerate(rows.expected.standings):
        changed = [name for name in standing.expectation.tables if name in by_table]
        if changed:
            change = ExpectationChange(base.expected.standings[place], standing)
            if change.breaks:
                violating = rows.expected.groups(question, place)
                change = replace(change, groups=tuple(violating))
            by_table[changed[0]].append(change)
    return {name: tuple(changes) for name, changes in by_table.items()}


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
        duplicated=tuple(map(json.loads, text.values())),
        kinds={field: of_kind for field, of_kind in changes.items() if of_kind is not None},
    )


def _with_outcome(by_table: Mapping[str, Changes], **outcome: Any) -> dict[str, Changes]:
    """The changes of all tables, with the outcome of the whole batch."""
    return {name: replace(changes, **outcome) for name, changes in by_table.items()}


def _committed(
    changes: BatchChanges, version: int, quarantined: Mapping[str, Quarantine]
) -> BatchChanges:
    """The changes with the number of their version and their quarantined rows."""
    tables = {
        name: replace(of_table, quarantined=quarantined.get(name), version=version)
        for name, of_table in changes.tables.items()
    }
    return replace(changes, tables=tables)


def _are_apart(others: Sequence[Header], batch: BatchRecord) -> bool:
    """Whether all these versions are batches of other tables."""
    return all(
        other.batch is not None and not {*other.batch.tables}.intersection(batch.tables)
        for other in others
    )
