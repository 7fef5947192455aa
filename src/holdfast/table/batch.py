"""Reading a batch beside the table, and applying it to its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.input.change_reading import ChangeInput
from holdfast.input.reading import read
from holdfast.input.row_input import Columns, RowInput, fitted
from holdfast.model import thresholds
from holdfast.model.commits import ColumnRecord
from holdfast.model.errors import BatchError
from holdfast.model.records import from_form
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table import columns
from holdfast.table.change import RowChange, RowCounts
from holdfast.table.indexing import with_indexes
from holdfast.table.matching import (
    DeletedRows,
    Requests,
    TableRequests,
    find_rows,
    indexed,
    with_deleted,
)
from holdfast.table.netting import netted
from holdfast.table.placement import shares
from holdfast.table.snapshot import difference, expect_size
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.columns import ColumnSummary, Whole
from holdfast.tasks.columns import facts as column_facts
from holdfast.tasks.encode import layout
from holdfast.tasks.segments import ROWS, Segment, moved_index, with_dead
from holdfast.tasks.view import View

Ids = Mapping[int, NDArray[np.int64]]
"""Positions of rows by the numbers of their segments."""


@dataclass(frozen=True)
class Batch:
    """The rows of a batch for one table, by what is done with them."""

    inserts: RowInput | None = None
    deletes: RowInput | None = None
    updates: RowInput | None = None
    upserts: RowInput | None = None
    snapshot: RowInput | None = None  # all rows as they are now, in place of any of these
    changed: ChangeInput | None = None  # in place of all of these
    row_key: tuple[str, ...] = ()
    batch_id: str | None = None
    if_exists: bool = False  # deletes of rows that are not there are skipped
    allow_shrink: bool = False  # the snapshot may have less than half of the rows

    @property
    def changes(self) -> dict[str, RowInput]:
        """The rows of each kind of change that the batch has, in the order in which they are
        read."""
        kinds = ("inserts", "updates", "upserts", "deletes", "snapshot")
        given = {kind: getattr(self, kind) for kind in kinds}
        return {kind: rows for kind, rows in given.items() if rows is not None}

    def source(self, kind: str) -> RowInput:
        """Where the rows of a kind of change come from."""
        if self.changed is not None:
            return self.changed.rows
        rows: RowInput = self.snapshot or getattr(self, kind)
        return rows


@dataclass(frozen=True)
class BatchIntake:
    """A batch that was read: its rows as segments."""

    added: tuple[Segment, ...]
    requests: tuple[Requests, ...]
    digest: str
    facts: tuple[ColumnSummary, ...]  # of the columns of the added rows
    numbers: int  # of segments that it may have, whatever is left of them
    replaces: bool = False  # all rows that were there before go

    def counts(self, before: Table, deleted: DeletedRows | None) -> RowCounts:
        """How many rows are inserted, deleted and updated, given the rows that the requests
        found."""
        if self.replaces:
            return RowCounts(sum(segment.rows for segment in self.added), before.rows)
        matched = deleted.matched if deleted else ()
        unchanged = sum(deleted.unchanged) if deleted else 0
        rows = dict.fromkeys(("delete", "update", "upsert"), 0)
        matched_rows = dict(rows)
        for request, number in zip(self.requests, matched, strict=True):
            rows[request.what] += request.rows
            matched_rows[request.what] += number
        replaced = matched_rows["update"] + matched_rows["upsert"]
        return RowCounts(
            inserted=sum(segment.rows for segment in self.added) - replaced,
            deleted=matched_rows["delete"],
            updated=replaced - unchanged,
            unchanged=unchanged,
            skipped=rows["delete"] - matched_rows["delete"],
        )


def read_batch(run: Run, table: Table, batch: Batch, keep_rows: bool = False) -> BatchIntake:
    """Write the rows of the batch into the profile; nothing refers to them before the commit. Raw
    rows are kept where the profile keeps them, or, with ``keep_rows``, until then."""
    run.progress("read")
    if batch.snapshot is not None:
        return _compared(run, table, batch.snapshot, batch.allow_shrink, keep_rows)
    key = tuple(table.columns.position(name, table.name) for name in dict.fromkeys(batch.row_key))
    index = _look_up_by(table, key)
    if batch.changed is not None:
        return _read_changes(run, table, batch.changed, key, index, keep_rows)
    number = table.next_number
    added: tuple[Segment, ...] = ()
    requests: list[Requests] = []
    written: list[TaskResult] = []
    digests: list[str] = []
    for kind, rows in batch.changes.items():
        match = None if kind == "inserts" else _match(table, kind, rows, key, index)
        own = match.own if match else table.columns
        # A request that matches no row is shown.
        keep_raw = run.options.keep_rows or keep_rows or kind == "deletes"
        intake = read(
            run.runner, fitted(rows, table.name, own), replace(run.destination, keep_rows=keep_raw),
            number, run.progress, _indexes(table, kind, match),
        )  # fmt: skip
        number += len(intake.segments)
        digests.append(f"{kind}={intake.fingerprint}")
        if kind != "deletes":
            added += tuple(_with_indexes_of(table, segment) for segment in intake.segments)
            written += intake.task_results
        if match:
            optional = batch.if_exists if kind == "deletes" else kind == "upserts"
            requests.append(replace(match, segments=intake.segments, optional=optional))
    if batch.row_key:
        digests.append(f"key={json.dumps(batch.row_key)}")
    facts = columns.collected(table.columns, written, run.options.keep_rows)
    numbers = len(added) + sum(len(request.segments) for request in requests)
    return BatchIntake(added, tuple(requests), " ".join(digests), facts, numbers)


def _compared(
    run: Run, table: Table, rows: RowInput, may_shrink: bool, keep_rows: bool
) -> BatchIntake:
    """The batch that makes the table equal to a snapshot: inserts, and deletes of whole rows."""
    if keep_rows and not run.options.keep_rows:
        raise BatchError(
            f"{rows.label}: table {table.name!r}: rows that are not in a snapshot can be "
            "quarantined only if the profile has them, and it keeps no rows (--no-rows); leave "
            "--quarantine out"
        )
    destination = replace(run.destination, keep_rows=run.options.keep_rows or keep_rows)
    number = table.next_number
    snapshot = read(
        run.runner, fitted(rows, table.name, table.columns), destination, number, run.progress
    )
    if not may_shrink:
        expect_size(table, rows.label, snapshot.rows)
    number += len(snapshot.segments)
    found = difference(run, table, snapshot.segments, number, keep_rows)
    number += len(found.gone) + len(found.new)
    gone = _match(table, "deletes", rows, (), ROWS)
    return BatchIntake(
        found.new,
        (replace(gone, segments=found.gone),) if found.gone else (),
        f"snapshot={snapshot.fingerprint}",
        columns_of(run, table, found.new),
        number - table.next_number,
    )


def _read_changes(
    run: Run, table: Table, given: ChangeInput, key: tuple[int, ...], index: str, keep_rows: bool
) -> BatchIntake:
    """What is left of changes, as a batch: with a row key upserts and deletes of rows that may be
    there, else inserts and deletes of whole rows."""
    of_rows = key or tuple(range(len(table.columns.names)))
    replaces = given.changes.replaces
    kinds = ("upsert", "delete") if key and not replaces else ("insert", "delete")
    matches = [
        Requests(kind, given.label, table.columns, (), of_rows, of_rows, index, bool(key))
        for kind in kinds
    ]
    upserts, deletes = matches
    matched = upserts if upserts.what == "upsert" else None
    indexes = _indexes(table, f"{upserts.what}s", matched), _indexes(table, "deletes", deletes)
    came, went, digests, written = netted(run, table, given, key, index, indexes, keep_rows)
    added = tuple(_with_indexes_of(table, segment) for segment in came)
    requests = [replace(matched, segments=came)] if matched and came else []
    requests += [replace(deletes, segments=went)] if went else []
    if key:
        digests.append(f"key={json.dumps([table.columns.names[column] for column in key])}")
    if replaces:
        digests.append("all before")
    facts = columns.collected(table.columns, written, run.options.keep_rows)
    numbers = len(came) + len(went)
    return BatchIntake(added, tuple(requests), " ".join(digests), facts, numbers, replaces)


def _match(table: Table, kind: str, rows: RowInput, key: tuple[int, ...], index: str) -> Requests:
    """How the rows of a delete, update or upsert will be matched with rows of the table. Deletes
    may have only the columns of the row key."""
    own, columns, places = table.columns, key, key
    if kind == "deletes":
        columns = places = key or tuple(range(len(own.names)))
        if key and not set(own.names) <= set(rows.columns.names):
            own, places = own.pick(list(key)), tuple(range(len(key)))
    return Requests(kind.removesuffix("s"), rows.label, own, (), columns, places, index)


def _indexes(table: Table, kind: str, match: Requests | None) -> tuple[str, ...]:
    """The indexes to build: those of the table for rows that are added to it, and the one by which
    rows are matched."""
    names = [] if kind == "deletes" else list(table.index_names)
    if match and match.index != ROWS:
        names.append(moved_index(match.index, match.columns, match.places))
    return tuple(dict.fromkeys(names))


def _look_up_by(table: Table, key: tuple[int, ...]) -> str:
    """The index by which rows are found: without a row key that of whole rows, else that of the
    most selective column of the key, preferably one that is there already."""
    if not key or key == tuple(range(len(table.columns.names))):
        return ROWS
    by_name = {table.column_index(column): table.effective[column] for column in key}
    return max(by_name, key=lambda name: (name in table.index_names, by_name[name]))


def _with_indexes_of(table: Table, segment: Segment) -> Segment:
    """The segment with the indexes that the other segments of the table have, and no others."""
    names = {ROWS, *table.index_names}
    return replace(segment, indexes={n: path for n, path in segment.indexes.items() if n in names})


def change_rows(run: Run, intakes: Sequence[tuple[Table, BatchIntake]]) -> list[RowChange]:
    """Apply batches to the rows of their tables: mark deleted rows, and add the new ones."""
    deleted = _find_deleted(run, intakes)
    remaining = []
    for before, intake in intakes:
        gone = deleted.get(before.name)
        after = before
        if intake.replaces:
            empty = replace(before, segments=(), duplicates=0, repeated=[])
            nothing = tuple(ColumnSummary() for _ in before.facts)
            remaining.append(columns.Remaining(empty, nothing, intake.facts))
            continue
        if gone is not None:
            with run.stage("locate"):
                after = with_deleted(run.store, run.lease, before, gone)
        remaining.append(columns.remaining(before, after, gone, intake.facts))
    facts = columns.settled(run, remaining)
    return [
        _changed(run, before, intake, rest.table, deleted.get(before.name), records)
        for (before, intake), rest, records in zip(intakes, remaining, facts, strict=True)
    ]


def _find_deleted(run: Run, intakes: Sequence[tuple[Table, BatchIntake]]) -> dict[str, DeletedRows]:
    """The rows to delete, for each table that has requests."""
    asked = [(table, intake.requests) for table, intake in intakes if intake.requests]
    if not asked:
        return {}
    with run.stage("locate"):
        run.progress("locate", rows=sum(one.rows for _, requests in asked for one in requests))
        wanted = [
            TableRequests(
                table.name,
                _searched(run, table, requests),
                requests,
                table.columns.schema,
                columns.end_words(table),
                columns.samples_of(table),
                run.destination.prefix,
            )
            for table, requests in asked
        ]
        rows = find_rows(run.runner, wanted)
    return {one.table: gone for one, gone in zip(wanted, rows, strict=True)}


def _searched(run: Run, table: Table, requests: Sequence[Requests]) -> View:
    """The rows of the table, with the indexes that the requests need where that is quicker than to
    scan all rows. Indexes that are built for this are not kept."""
    view = table.view(run.store.path, run.options)
    names = {request.index for request in requests if request.rows}
    if table.rows <= thresholds.current.undivided_rows or all(indexed(view, n) for n in names):
        return view
    return with_indexes(run.runner, view, run.destination.prefix, sorted(names))


def _changed(
    run: Run,
    before: Table,
    intake: BatchIntake,
    after: Table,
    deleted: DeletedRows | None,
    facts: tuple[ColumnRecord, ...],
) -> RowChange:
    after = replace(
        after,
        facts=facts,
        segments=after.segments + intake.added,
        next_number=after.next_number + intake.numbers,
        changed=run.lease.moment,
    )
    return RowChange(before, after, intake.added, intake.counts(before, deleted))


def without(run: Run, table: Table, intake: BatchIntake, left_out: Ids) -> BatchIntake:
    """The batch without some of its rows, which are given by segment number and position. The
    segments are written again under the same numbers."""
    if not left_out:
        return intake
    numbers: list[int] = []
    calls: list[Call] = []
    for own, segment in _segments(table, intake).values():
        positions = left_out.get(segment.number)
        if positions is not None and len(positions) < segment.rows:
            path = run.lease.new_path("dead", "arrow")
            fewer = with_dead(Path(run.store.path), segment, positions, path)
            view = View(run.store.path, (fewer,), layout(own.schema).widths, True)
            names, no_ids = tuple(segment.indexes), np.empty(0, np.int64)
            item = tasks.MergeSegments(view, run.destination.prefix, segment.number, names, no_ids)
            calls.append((tasks.merge, item))
            numbers.append(segment.number)
    rewritten = {
        number: from_form(Segment, task_result.facts["segment"])
        for number, task_result in zip(numbers, run_all(run.runner, calls), strict=True)
    }

    def left(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        some_left = [s for s in segments if s.number in rewritten or s.number not in left_out]
        return tuple(rewritten.get(s.number, s) for s in some_left)

    added = tuple(_with_indexes_of(table, segment) for segment in left(intake.added))
    requests = tuple(replace(one, segments=left(one.segments)) for one in intake.requests)
    return replace(intake, added=added, requests=requests, facts=columns_of(run, table, added))


def columns_of(run: Run, table: Table, added: tuple[Segment, ...]) -> tuple[ColumnSummary, ...]:
    """The facts of the columns of added rows that were not just read."""
    view, schema = table.view(run.store.path, run.options, added), table.columns.schema
    facts_of = [(column_facts, Whole(share, schema)) for share in shares(view, run.runner.tasks)]
    task_results = run_all(run.runner, facts_of)
    return columns.collected(table.columns, task_results, run.options.keep_rows)


def _segments(table: Table, intake: BatchIntake) -> dict[int, tuple[Columns, Segment]]:
    """All segments of a batch by number, with their columns."""
    by_number = {segment.number: (table.columns, segment) for segment in intake.added}
    for request in intake.requests:
        by_number |= {segment.number: (request.own, segment) for segment in request.segments}
    return by_number


def estimated(run: Run, table: Table) -> Table:
    """The table with new estimates of its columns if its number of rows has doubled or halved."""
    if table.estimated_at / 2 <= table.rows <= 2 * table.estimated_at or not table.rows:
        return table
    view = table.view(run.store.path, run.options)
    calls = [(tasks.describe, tasks.Describe(share)) for share in shares(view, run.runner.tasks)]
    known = tasks.estimates(run_all(run.runner, calls), len(table.columns.names))
    return replace(table, distinct=known.distinct, agreeing=known.agreeing, estimated_at=table.rows)
