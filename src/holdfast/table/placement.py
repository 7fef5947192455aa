"""Dealing work out: segments to tasks, and the sorted columns that tasks need."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from holdfast.tasks import compaction as tasks
from holdfast.tasks.ingest import SEGMENT_ROWS
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View

_SMALL = 10_000
"""Rows that are not worth dividing among tasks."""


def living(view: View) -> int:
    """The living rows of a view."""
    return sum(segment.live for segment in view.segments)


def shares(view: View, tasks: int) -> list[View]:
    """The segments of a view dealt out to tasks, about as many rows to each."""
    piles: list[list[Segment]] = [[] for _ in range(max(1, min(tasks, len(view.segments))))]
    for segment in sorted(view.segments, key=lambda s: -s.rows):
        min(piles, key=lambda pile: sum(s.rows for s in pile)).append(segment)
    return [replace(view, segments=tuple(pile)) for pile in piles if pile]


def parts(runner: Runner, view: View) -> int:
    """Into how many parts to divide a view's rows: each fits a task, and no task is idle."""
    rows = living(view)
    return max(runner.tasks if rows > _SMALL else 1, -(-rows // SEGMENT_ROWS))


def with_indexes(runner: Runner, view: View, prefix: str, names: Iterable[str]) -> View:
    """The view with these columns sorted in every segment; one job if any is not yet."""
    names = tuple(names)
    lacking = tuple(s for s in view.segments if any(n not in s.indexes for n in names))
    if not lacking:
        return view
    calls: list[Call] = [
        (tasks.build, tasks.Build(share, prefix, names))
        for share in shares(replace(view, segments=lacking), runner.tasks)
    ]
    built: dict[int, dict[str, str]] = {}
    for result in runner.run(calls):
        for parcel in result:
            built[parcel.facts["number"]] = parcel.facts["indexes"]
    segments = [replace(s, indexes={**s.indexes, **built.get(s.number, {})}) for s in view.segments]
    return replace(view, segments=tuple(segments))
