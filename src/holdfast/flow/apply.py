"""Applying a batch to one or several tables, or checking what it would do: the same steps, up to
the commit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from holdfast.flow.commits import commit
from holdfast.flow.near import with_near
from holdfast.flow.near_kept import NearKept, kept
from holdfast.flow.profile import tables_and_keys
from holdfast.input.row_input import Columns, expect_batch, expect_changes
from holdfast.kinds import registry
from holdfast.kinds.table_state import Step, TableState
from holdfast.model import concealment
from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.commits import BatchRecord, Commit, FeedRecord, Header, LastStep
from holdfast.model.errors import OvertakenError
from holdfast.model.expectations import ExpectationChange
from holdfast.model.lazily import Lazily
from holdfast.model.progress import Progress
from holdfast.rules.expectations import Expected
from holdfast.rules.quarantine import Sifted, expect_possible, sifted, written
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.runtime.together import Work, side_by_side
from holdfast.store import Store
from holdfast.store.quarantine import finish
from holdfast.table.batch import Batch, BatchIntake, change_rows, read_batch
from holdfast.table.change import RowChange, RowCounts
from holdfast.table.state import Table
from holdfast.tasks.shown import rows_as_text
from holdfast.values.state import ValueState


@dataclass(frozen=True)
class Moved:
    """A feed that a batch moves on, with its positions before and after."""

    before: FeedRecord | None  # None: it was not followed yet
    after: FeedRecord
    span: str  # of the source, between the two
    started: float  # when, by the clock of time.monotonic

    def committed(self, changes: BatchChanges) -> FeedRecord:
        """The position after it, with what the step came to."""
        seconds = round(time.monotonic() - self.started, 3)
        return replace(self.after, last=LastStep(self.span, changes.changed, seconds))


NO_FEEDS: Mapping[str, Moved] = {}


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
    feeds: Mapping[str, Moved] = NO_FEEDS,
) -> BatchChanges:
    """Apply a batch of several tables, which all have its id, as one version, or not at all. With
    ``strict`` it is not applied if it breaks what it should not. With a ``quarantine`` folder the
    rows that break expected rules are written there, and the others applied; if a rule about a
    whole table breaks, which no row does by itself, the batch is not applied. A profile without
    values needs its secret.

    The batch of ``feeds`` is known by their positions, and its id is only shown: it is an
    :class:`OvertakenError` if these are not where the batch begins."""
    batches = dict(sorted(batches.items()))
    with (
        store.trying() if dry_run else store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        # What this builds on is the version that the lease names, not one that was read before.
        version = store.read(lease.version)
        _expect(version, batches)
        _expect_positions(store, version, feeds)
        key = concealment.opened(version.secret, secret, store.path) if version.secret else None
        seconds: dict[str, float] = {}

        def run_with(progress: Progress) -> Run:
            return Run(runner, store, version.options, lease, progress, seconds, device, key)

        application = _Application.opened(run_with, progress, version, batches, quarantine)
        intakes = application.read()
        first, *others = batches
        batch_id = batches[first].batch_id
        record = BatchRecord(first, batch_id, _digest(intakes), tuple(others))
        if not feeds and (then := _applied_before(store, record)):
            return then
        rows, after, row_changes = application.change_tables(application.change_rows(intakes))
        while True:
            steps = application.change_values(after, row_changes)
            rows, near = application.change_near(rows, steps, dry_run)
            changes = near.told_in(application.changes(near.steps, rows, batch_id, dry_run))
            if (strict and registry.breaks(changes)) or (quarantine and _stops_whole(changes)):
                changes = _with_outcome(changes, applied=False, refused=True)
            if dry_run or changes.refused:
                return changes
            try:
                changes = application.commit(record, near, rows, changes, feeds)
                break
            except OvertakenError:
                if quarantine is not None or not _are_apart(store.overtaken(lease), record):
                    raise
                # The others changed other tables: what was found of ours still holds, and what
                # depends on all tables is found again.
                version = store.read(lease.version)
                _expect_positions(store, version, feeds)
                application.rebase(version)
                rows = application.change_expectations(rows, application.run.runner)
    store.clean()
    return changes


def _expect(version: Commit, batches: Mapping[str, Batch]) -> None:
    """Raise an error for a batch that makes no sense, whatever its rows are."""
    for name, batch in batches.items():
        columns, insert_only = version.table(name).columns, version.options.insert_only
        if batch.changed is not None:
            expect_changes(name, Columns.stored(columns), batch.row_key, batch.batch_id)
            continue
        expect_batch(
            name, Columns.stored(columns), batch.changes, batch.row_key, batch.batch_id,
            insert_only, batch.if_exists, batch.allow_shrink,
        )  # fmt: skip


def _expect_positions(store: Store, version: Commit, feeds: Mapping[str, Moved]) -> None:
    """Raise an error if a feed is not where the batch begins any more: another follower was
    first."""
    for name, moved in feeds.items():
        if version.feeds.get(name) != moved.before:
            raise OvertakenError(
                f"{store.path}: another follower of {name} committed first; nothing of this step "
                "was applied. The next one goes on from the new position."
            )


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
            return _with_outcome(then, applied=False, applied_before=True)
    return None


def _with_outcome(changes: BatchChanges, **outcome: Any) -> BatchChanges:
    """The changes of all tables, with the outcome of the whole batch."""
    tables = {name: replace(of_table, **outcome) for name, of_table in changes.tables.items()}
    return replace(changes, tables=tables)


def _stops_whole(changes: BatchChanges) -> bool:
    """Whether a rule about a whole table breaks, which leaving rows out does not help."""
    return any(
        each.stops and each.is_whole
        for of_table in changes.tables.values()
        for each in of_table.expectations or ()
    )


def _are_apart(others: Sequence[Header], batch: BatchRecord) -> bool:
    """Whether all these versions are batches of other tables."""
    return all(
        other.batch is not None and not {*other.batch.tables}.intersection(batch.tables)
        for other in others
    )


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


@dataclass
class _Application:
    """A batch that is being applied: its runs, and what it builds on."""

    batches: Mapping[str, Batch]
    quarantine: str | None
    run: Run  # over all tables
    runs: dict[str, Run]  # over each table, since a time budget is per table
    before: dict[str, TableState]
    base: _Base
    saved: dict[str, TableState] = field(default_factory=dict)  # as a first attempt wrote them

    @staticmethod
    def opened(
        run_with: Callable[[Progress], Run],
        progress: Progress,
        version: Commit,
        batches: Mapping[str, Batch],
        quarantine: str | None,
    ) -> _Application:
        """With what is known of the tables before the batch."""
        runs = {name: run_with(about(progress, name)) for name in batches}
        run = run_with(progress) if len(runs) > 1 else next(iter(runs.values()))
        with run.stage("open"):
            before = {name: TableState.load(run.store, version, name) for name in batches}
            base = _Base.load(run.store, version)
        if quarantine is not None:
            expect_possible(base.expected, [base.tables[name] for name in batches], quarantine)
            # Of a run that was killed after its commit.
            finish(quarantine, run.store.committed_by)
        return _Application(batches, quarantine, run, runs, before, base)

    def read(self) -> dict[str, BatchIntake]:
        """The rows of the batch, written beside those of the tables."""
        keep_rows = self.quarantine is not None
        with self.run.stage("read"):
            return {
                name: read_batch(self.runs[name], self.before[name].table, batch, keep_rows)
                for name, batch in self.batches.items()
            }

    def change_rows(self, intakes: Mapping[str, BatchIntake]) -> Sifted:
        """Change the rows; with a quarantine without those that break expectations, which change
        with them."""
        tables = self.base.tables
        if self.quarantine is not None:
            return sifted(self.run, self.base.expected, intakes, tables)
        changes = change_rows(self.run, [(tables[name], each) for name, each in intakes.items()])
        return Sifted(changes, self.base.expected)

    def change_tables(self, rows: Sifted) -> tuple[Sifted, dict[str, TableState], list[RowChange]]:
        """Change the expectations and the evidence of each table, side by side; the changes of rows
        come back with new indexes and counts of duplicates."""
        works: list[Work[Any]] = [lambda runner: self.change_evidence(rows, runner)]
        if self.quarantine is None and rows.expected.is_counted:
            works.append(lambda runner: self.change_expectations(rows, runner))
        (states, changes), *others = side_by_side(self.run.runner, works, len(works))
        return (others[0] if others else rows), states, changes

    def change_expectations(self, rows: Sifted, runner: Runner) -> Sifted:
        """The same changes of rows, with what they mean for the expectations."""
        expected, run = self.base.expected, self.run.with_runner(runner)
        if expected.is_counted:
            now = self.base.tables | {change.after.name: change.after for change in rows.changes}
            with run.stage("expectations"):
                expected = expected.change(run, rows.changes, now)
        return replace(rows, expected=expected)

    def change_evidence(
        self, rows: Sifted, runner: Runner
    ) -> tuple[dict[str, TableState], list[RowChange]]:
        """Change the evidence of each table."""
        after: dict[str, TableState] = {}
        indexed = []
        for change in rows.changes:
            name = change.before.name
            run = self.runs[name].with_runner(runner)
            after[name], with_indexes = self.before[name].change(run, change)
            indexed.append(with_indexes)
        return after, indexed

    def rebase(self, version: Commit) -> None:
        """Build on a version in which others changed other tables, and with them, perhaps, the near
        rules of these."""
        self.base = _Base.load(self.run.store, version)
        self.before = {
            name: replace(state, near=version.table(name).near)
            for name, state in self.before.items()
        }

    def change_near(
        self, rows: Sifted, steps: Mapping[str, Step], dry_run: bool
    ) -> tuple[Sifted, NearKept]:
        """Change the rules that nearly hold, by the counts of their tuples."""
        expected, version = rows.expected, self.base.version
        tables = self.base.tables | {name: step.after.table for name, step in steps.items()}
        with self.run.stage("near"):
            near = kept(
                self.runs, self.run, version, steps, rows.changes, tables, expected.counts, dry_run
            )
        return replace(rows, expected=replace(expected, counts=near.counts)), near

    def change_values(
        self, after: Mapping[str, TableState], changes: Sequence[RowChange]
    ) -> dict[str, Step]:
        """Change the values of all tables; for each changed table its state before and after."""
        values = self.base.values
        if values is not None:
            tables = self.base.tables | {name: state.table for name, state in after.items()}
            _, keys = tables_and_keys(self.run.options, after)
            values = values.change(self.run, changes, tables, keys)
        names = frozenset(after)
        return {
            name: Step(self.before[name], state, self.base.values, values, names - {name})
            for name, state in after.items()
        }

    def changes(
        self, steps: Mapping[str, Step], rows: Sifted, batch_id: str | None, dry_run: bool
    ) -> BatchChanges:
        """What the batch did to each table, for the caller."""
        version = self.base.version.version
        counts = {change.before.name: change.counts for change in rows.changes}
        with self.run.stage("witnesses"):
            by_table = {
                name: _changes(self.runs[name], step, batch_id, counts[name], version, dry_run)
                for name, step in steps.items()
            }
            if self.base.expected:
                rules = self._expectations(rows, steps)
                by_table = {n: replace(each, expectations=rules[n]) for n, each in by_table.items()}
        return BatchChanges(by_table, self.run.seconds)

    def _expectations(
        self, rows: Sifted, steps: Mapping[str, Step]
    ) -> dict[str, tuple[ExpectationChange, ...]]:
        """How the expectations of changed tables stand now, with examples for broken ones. Each is
        reported once, with the first of its tables that changed."""
        tables = self.base.tables | {name: step.after.table for name, step in steps.items()}
        new = {change.after.name: change.added for change in rows.changes}
        question = rows.expected.question(self.run, tables, new)
        by_table: dict[str, list[ExpectationChange]] = {name: [] for name in new}
        for place, standing in enumerate(rows.expected.standings):
            changed = [name for name in standing.expectation.tables if name in by_table]
            if changed:
                change = ExpectationChange(self.base.expected.standings[place], standing)
                if change.breaks:
                    violating = rows.expected.groups(question, place)
                    change = replace(change, groups=tuple(violating))
                by_table[changed[0]].append(change)
        return {name: tuple(changes) for name, changes in by_table.items()}

    def commit(
        self,
        record: BatchRecord,
        near: NearKept,
        rows: Sifted,
        changes: BatchChanges,
        feeds: Mapping[str, Moved],
    ) -> BatchChanges:
        """Compact and save what changed, and commit it; the changes with their version."""
        run, runs, version, steps = self.run, self.runs, self.base.version, near.steps
        compacted = self.saved or {n: step.after.compact(runs[n]) for n, step in steps.items()}
        values = steps[record.table].values_after
        values = values and values.compact(run)
        expected = rows.expected.compact(run)
        with (
            run.stage("commit"),
            written(run, self.quarantine, rows.left_out, self.base.expected, self.batches) as left,
        ):
            run.progress("commit")
            saved = self.saved or {
                name: state.save(runs[name], self.before[name]) for name, state in compacted.items()
            }
            self.saved = {n: replace(each, near=steps[n].after.near) for n, each in saved.items()}
            values = values and values.save(run, self.base.values)
            tables = {
                name: replace(each, quarantined=left.get(name), version=version.version + 1)
                for name, each in changes.tables.items()
            }
            changes = replace(changes, tables=tables)
            said = Commit(
                tables=with_near(version.tables, near.elsewhere),
                batch=record,
                changes=changes.stored,
                expectations=expected.standings,
                tuples=expected.counts.stored,
                secret=version.secret,
                feeds={name: moved.committed(changes) for name, moved in feeds.items()},
            )
            commit(run, self.saved, values, said)
        return changes


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
