"""A snapshot as a batch: the rows that a table lost, and those that it got."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from holdfast.model import thresholds
from holdfast.model.errors import BatchError
from holdfast.model.records import from_form
from holdfast.runtime.run import Run
from holdfast.runtime.runner import run_all
from holdfast.table.placement import ranges
from holdfast.table.state import Table
from holdfast.tasks import snapshots as tasks
from holdfast.tasks.rows import even_ranges
from holdfast.tasks.segments import ROWS, Segment


@dataclass(frozen=True)
class Difference:
    """What makes a table equal to a snapshot: copies of the rows to delete, and new rows."""

    gone: tuple[Segment, ...]
    new: tuple[Segment, ...]


def expect_size(table: Table, label: str, rows: int) -> None:
    """Refuse a snapshot that has less than half of the rows: it may be part of one."""
    if 2 * rows < table.rows:
        raise BatchError(
            f"{label}: table {table.name!r}: the snapshot has {rows:,} rows, but the table "
            f"{table.rows:,}, so more than half of them would be deleted; if it has all rows, give "
            "--allow-shrink"
        )


def difference(
    run: Run, table: Table, segments: tuple[Segment, ...], number: int, keep_gone: bool
) -> Difference:
    """Compare a snapshot with the living rows of its table, whole rows with whole rows, in one job.
    New segments are numbered from ``number``."""
    root, options = run.store.path, run.options
    before, after = table.view(root, options), table.view(root, options, segments)
    rows = before.live + after.live
    if not rows:
        return Difference((), ())
    worth = ranges(run.runner, rows)
    parts = max(worth, 8 * before.words * rows // thresholds.current.piece_bytes)
    every, names = even_ranges(parts), (ROWS, *table.index_names)
    calls = [
        (
            tasks.compare,
            tasks.Compare(before, after, tuple(share), run.destination.prefix, names, keep_gone),
        )
        for share in _shares(every, min(parts, run.runner.tasks))
    ]
    results = run_all(run.runner, calls)
    found: dict[str, list[Segment]] = {"gone": [], "new": []}
    for result in results:
        for what, forms in result.facts.items():
            for form in forms:
                segment = from_form(Segment, form)
                found[what].append(replace(segment, number=number))
                number += 1
    return Difference(tuple(found["gone"]), tuple(found["new"]))


def _shares(ranges: Sequence[tasks.Between], count: int) -> list[Sequence[tasks.Between]]:
    """Ranges dealt out to so many tasks."""
    return [ranges[len(ranges) * k // count : len(ranges) * (k + 1) // count] for k in range(count)]
