"""A batch on its way in: read beside the table, and applied to its rows."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace

import numpy as np

from holdfast.input.reading import read
from holdfast.input.row_input import RowInput, fitted
from holdfast.store.run import Run
from holdfast.table.change import RowChange
from holdfast.table.matching import Requests, find_rows, with_deleted
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.segments import Segment


@dataclass(frozen=True)
class Batch:
    """Changes to one table, as row inputs."""

    inserts: RowInput | None = None
    deletes: RowInput | None = None
    updates: RowInput | None = None
    row_key: tuple[str, ...] = ()
    batch_id: str | None = None

    @property
    def given(self) -> list[str]:
        """The kinds of changes that it has."""
        kinds = {"inserts": self.inserts, "deletes": self.deletes, "updates": self.updates}
        return [kind for kind, row_input in kinds.items() if row_input is not None]


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
        row_input = fitted(batch.inserts, table.name, table.columns)
        intake = read(run.runner, row_input, run.place, number, run.progress, table.indexed)
        added, inserted = intake.segments, intake.rows
        digests.append(f"inserts={intake.fingerprint}")
    if batch.updates is not None:
        row_input = fitted(batch.updates, table.name, table.columns)
        intake = read(
            run.runner, row_input, run.place, number + len(added), run.progress, table.indexed
        )
        added += intake.segments
        updated = intake.rows
        requests.append(
            Requests("update", row_input.label, table.columns, intake.segments, key, key)
        )
        digests.append(f"updates={intake.fingerprint}")
    if batch.deletes is not None:
        whole = set(table.columns.names) <= set(batch.deletes.columns.names)
        wanted = table.columns if whole or not key else table.columns.pick(list(key))
        row_input = fitted(batch.deletes, table.name, wanted)
        place = replace(run.place, keep_rows=True)
        intake = read(run.runner, row_input, place, number + len(added), run.progress)
        columns = key or everything
        places = columns if wanted is table.columns else tuple(range(len(columns)))
        requests.append(
            Requests("delete", row_input.label, wanted, intake.segments, columns, places)
        )
        digests.append(f"deletes={intake.fingerprint}")
    if batch.row_key:
        digests.append(f"key={json.dumps(batch.row_key)}")
    return BatchIntake(added, inserted, updated, tuple(requests), " ".join(digests))


def change_rows(run: Run, before: Table, intake: BatchIntake) -> RowChange:
    """The rows after the batch: the deleted ones marked, the new ones beside the others."""
    after = before
    gone = np.empty(0, np.int64)
    if intake.requests:
        with run.stage("locate"):
            run.progress("locate", rows=sum(r.rows for r in intake.requests))
            view = before.view(run.store.path, run.options)
            found = find_rows(run.runner, view, before.name, intake.requests)
            after = with_deleted(run.store, run.lease, before, found)
            gone = found.ids
    after = replace(
        after,
        segments=after.segments + intake.added,
        next_number=after.next_number
        + sum(len(r.segments) for r in intake.requests)
        + len(intake.added),
    )
    return RowChange(before, after, intake.added, gone)


def estimated(run: Run, table: Table) -> Table:
    """With estimates of distinct values anew, where the table has become another size."""
    if table.estimated_at / 2 <= table.rows <= 2 * table.estimated_at or not table.rows:
        return table
    view = table.view(run.store.path, run.options)
    calls = [(tasks.describe, tasks.Describe(share)) for share in shares(view, run.runner.tasks)]
    task_results = [task_result for result in run.runner.run(calls) for task_result in result]
    return replace(table, distinct=tasks.estimate(task_results), estimated_at=table.rows)
