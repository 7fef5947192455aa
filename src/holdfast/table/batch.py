"""A batch on its way in: read beside the table, and applied to its rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.input.reading import read
from holdfast.input.row_input import Columns, RowInput, fitted
from holdfast.model import thresholds
from holdfast.model.commits import ColumnRecord
from holdfast.model.records import from_form
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table import columns
from holdfast.table.change import RowChange, RowCounts
from holdfast.table.indexing import with_indexes
from holdfast.table.matching import Found, Requests, Sought, find_rows, indexed, with_deleted
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.columns import Facts, Whole
from holdfast.tasks.columns import facts as column_facts
from holdfast.tasks.encode import layout
from holdfast.tasks.segments import ROWS, Segment, moved_index, with_dead
from holdfast.tasks.view import View

Ids = Mapping[int, NDArray[np.int64]]
"""Positions of rows by the numbers of their segments."""


@dataclass(frozen=True)
class Batch:
    """Changes to one table, as row inputs."""

    inserts: RowInput | None = None
    deletes: RowInput | None = None
    updates: RowInput | None = None
    upserts: RowInput | None = None
    row_key: tuple[str, ...] = ()
    batch_id: str | None = None
    if_exists: bool = False  # deletes of rows that are not there are skipped

    @property
    def given(self) -> list[str]:
        """The kinds of changes that it has."""
        kinds = ("inserts", "deletes", "updates", "upserts")
        return [kind for kind in kinds if getattr(self, kind) is not None]


@dataclass(frozen=True)
class BatchIntake:
    """The batch as segments."""

    added: tuple[Segment, ...]
    requests: tuple[Requests, ...]
    digest: str
    facts: tuple[Facts, ...]  # of the columns of the added rows
    numbers: int  # of segments that it may have, whatever is left of them

    def counts(self, found: Found | None) -> RowCounts:
        """How many rows change in which way, when these were found."""
        matched = found.matched if found else ()
        unchanged = sum(found.unchanged) if found else 0
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
    """Write the batch's rows beside the table's; nothing refers to them before the commit. Raw rows
    are kept where the profile keeps them, or where they are needed until then."""
    run.progress("read")
    place = replace(run.destination, keep_rows=keep_rows or run.destination.keep_rows)
    number = table.next_number
    key_names = dict.fromkeys(batch.row_key)
    key = tuple(table.columns.position(name, table.name) for name in key_names)
    index = _look_up_by(table, key)
    everything = tuple(range(len(table.columns.names)))
    added: tuple[Segment, ...] = ()
    requests: list[Requests] = []
    digests: list[str] = []
    written: list[TaskResult] = []
    if batch.inserts is not None:
        row_input = fitted(batch.inserts, table.name, table.columns)
        intake = read(run.runner, row_input, place, number, run.progress, table.index_names)
        added = intake.segments
        written += intake.task_results
        digests.append(f"inserts={intake.fingerprint}")
    for what, given in (("update", batch.updates), ("upsert", batch.upserts)):
        if given is None:
            continue
        row_input = fitted(given, table.name, table.columns)
        names = tuple(dict.fromkeys([*table.index_names, *([] if index == ROWS else [index])]))
        intake = read(run.runner, row_input, place, number + len(added), run.progress, names)
        added += tuple(_with_indexes_of(table, segment) for segment in intake.segments)
        written += intake.task_results
        optional = what == "upsert"
        own = table.columns
        requests.append(
            Requests(what, row_input.label, own, intake.segments, key, key, index, optional)
        )
        digests.append(f"{what}s={intake.fingerprint}")
    if batch.deletes is not None:
        whole = set(table.columns.names) <= set(batch.deletes.columns.names)
        wanted = table.columns if whole or not key else table.columns.pick(list(key))
        row_input = fitted(batch.deletes, table.name, wanted)
        destination = replace(run.destination, keep_rows=True)
        matched = key or everything
        places = matched if wanted is table.columns else tuple(range(len(matched)))
        names = () if index == ROWS else (moved_index(index, matched, places),)
        first = number + len(added)
        intake = read(run.runner, row_input, destination, first, run.progress, names)
        label, optional = row_input.label, batch.if_exists
        requests.append(
            Requests("delete", label, wanted, intake.segments, matched, places, index, optional)
        )
        digests.append(f"deletes={intake.fingerprint}")
    if batch.row_key:
        digests.append(f"key={json.dumps(batch.row_key)}")
    facts = columns.collected(table.columns, written, run.options.keep_rows)
    numbers = len(added) + sum(len(each.segments) for each in requests)
    return BatchIntake(added, tuple(requests), " ".join(digests), facts, numbers)


def _look_up_by(table: Table, key: tuple[int, ...]) -> str:
    """The index to find rows by: that of all cells without a row key, else that of the column which
    tells most rows apart, among those that have one, if any."""
    if not key or key == tuple(range(len(table.columns.names))):
        return ROWS
    by_name = {table.column_index(column): table.effective[column] for column in key}
    return max(by_name, key=lambda name: (name in table.index_names, by_name[name]))


def _with_indexes_of(table: Table, segment: Segment) -> Segment:
    """A segment that has the indexes of the table's others, and no more."""
    names = {ROWS, *table.index_names}
    return replace(segment, indexes={n: path for n, path in segment.indexes.items() if n in names})


def change_rows(run: Run, intakes: Sequence[tuple[Table, BatchIntake]]) -> list[RowChange]:
    """The rows of tables after the batch: the deleted ones marked, the new ones beside the
    others."""
    asked = [(before, intake.requests) for before, intake in intakes if intake.requests]
    deleted: dict[str, Found] = {}
    if asked:
        with run.stage("locate"):
            run.progress("locate", rows=sum(each.rows for _, some in asked for each in some))
            sought = [
                Sought(
                    before.name,
                    _searched(run, before, requests),
                    requests,
                    before.columns.schema,
                    columns.end_words(before),
                    run.destination.prefix,
                )
                for before, requests in asked
            ]
            matches = find_rows(run.runner, sought)
            deleted = {each.table: rows for each, rows in zip(sought, matches, strict=True)}
    left = []
    for before, intake in intakes:
        table, gone = before, deleted.get(before.name)
        if gone is not None:
            with run.stage("locate"):
                table = with_deleted(run.store, run.lease, before, gone)
        left.append(columns.left(before, table, gone, intake.facts))
    facts = columns.settled(run, left)
    return [
        _changed(*each, rest.table, deleted.get(each[0].name), known)
        for each, rest, known in zip(intakes, left, facts, strict=True)
    ]


def _searched(run: Run, table: Table, requests: Sequence[Requests]) -> View:
    """The table's rows, with the indexes that requests are looked up by where that is better than
    to look at all rows; what is sorted for that is not kept."""
    view = table.view(run.store.path, run.options)
    names = {request.index for request in requests if request.rows}
    if table.rows <= thresholds.current.undivided_rows or all(indexed(view, n) for n in names):
        return view
    return with_indexes(run.runner, view, run.destination.prefix, sorted(names))


def _changed(
    before: Table,
    intake: BatchIntake,
    after: Table,
    deleted: Found | None,
    facts: tuple[ColumnRecord, ...],
) -> RowChange:
    after = replace(
        after,
        facts=facts,
        segments=after.segments + intake.added,
        next_number=after.next_number + intake.numbers,
    )
    return RowChange(before, after, intake.added, intake.counts(deleted))


def without(run: Run, table: Table, intake: BatchIntake, left_out: Ids) -> BatchIntake:
    """The batch without some of its rows, by the numbers of their segments and their positions:
    the segments are written anew, under the same numbers."""
    if not left_out:
        return intake
    calls: list[Call] = []
    numbers = []
    for own, segment in _segments(table, intake).values():
        positions = left_out.get(segment.number)
        if positions is not None and len(positions) < segment.rows:
            path = run.lease.new_path("dead", "arrow")
            fewer = with_dead(Path(run.store.path), segment, positions, path)
            view = View(run.store.path, (fewer,), layout(own.schema).widths, True)
            names = tuple(segment.indexes)
            none = np.empty(0, np.int64)
            item = tasks.Merge(view, run.destination.prefix, segment.number, names, none)
            calls.append((tasks.merge, item))
            numbers.append(segment.number)
    results = run.runner.run(calls) if calls else []
    anew = {
        number: from_form(Segment, result[0].facts["segment"])
        for number, result in zip(numbers, results, strict=True)
    }

    def kept(segments: tuple[Segment, ...]) -> tuple[Segment, ...]:
        whole = [s for s in segments if s.number in anew or s.number not in left_out]
        return tuple(anew.get(s.number, s) for s in whole)

    added = tuple(_with_indexes_of(table, each) for each in kept(intake.added))
    requests = tuple(replace(each, segments=kept(each.segments)) for each in intake.requests)
    view = table.view(run.store.path, run.options, added)
    schema = table.columns.schema
    described = run.runner.run(
        [(column_facts, Whole(share, schema)) for share in shares(view, run.runner.tasks)]
    )
    task_results = [each for result in described for each in result]
    facts = columns.collected(table.columns, task_results, run.options.keep_rows)
    return replace(intake, added=added, requests=requests, facts=facts)


def _segments(table: Table, intake: BatchIntake) -> dict[int, tuple[Columns, Segment]]:
    """Every segment of a batch by its number, with its columns, and with the index that requests
    are looked up by."""
    by_number = {segment.number: (table.columns, segment) for segment in intake.added}
    for request in intake.requests:
        by_number |= {segment.number: (request.own, segment) for segment in request.segments}
    return by_number


def estimated(run: Run, table: Table) -> Table:
    """With estimates about columns anew, where the table has become another size."""
    if table.estimated_at / 2 <= table.rows <= 2 * table.estimated_at or not table.rows:
        return table
    view = table.view(run.store.path, run.options)
    calls = [(tasks.describe, tasks.Describe(share)) for share in shares(view, run.runner.tasks)]
    task_results = [task_result for result in run.runner.run(calls) for task_result in result]
    known = tasks.estimates(task_results, len(table.columns.names))
    return replace(table, distinct=known.distinct, agreeing=known.agreeing, estimated_at=table.rows)
