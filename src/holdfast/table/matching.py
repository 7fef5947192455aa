"""Deletes and updates: each request is matched with the row that it means, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.input.row_input import Columns
from holdfast.model.errors import BatchError
from holdfast.store import Lease, Store
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.encode import layout
from holdfast.tasks.result import TaskResult
from holdfast.tasks.rows import Locate, locate
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import Segment, with_dead
from holdfast.tasks.view import View

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Requests:
    """Rows to be found: those that equal the request in the table's ``columns``.

    ``places`` says where those columns are among the request's own; ``optional``: a row that is
    not there is no error.
    """

    what: str  # "delete", "update" or "upsert"
    label: str
    own: Columns
    segments: tuple[Segment, ...]
    columns: tuple[int, ...]
    places: tuple[int, ...]
    optional: bool = False

    @property
    def rows(self) -> int:
        """How many rows are meant."""
        return sum(segment.rows for segment in self.segments)


@dataclass(frozen=True)
class Sought:
    """The requests of a batch for one table, which tasks see as ``view``."""

    table: str
    view: View
    requests: tuple[Requests, ...]


@dataclass(frozen=True)
class Found:
    """The rows that go, and how many repeated rows go with them; how many each request found."""

    ids: I64
    fewer_duplicates: int
    matched: tuple[int, ...]


def find_rows(runner: Runner, sought: Sequence[Sought]) -> list[Found]:
    """The rows that the requests mean, table by table, in one job; an error that shows the row if
    they do not fit."""
    calls = [_calls(runner, each) for each in sought]
    together = [call for some in calls for call in some]
    results = runner.run(together) if together else []
    found = []
    for each, mine in zip(sought, calls, strict=True):
        found.append(_found(each, results[: len(mine)]))
        results = results[len(mine) :]
    return found


def _calls(runner: Runner, sought: Sought) -> list[Call]:
    return [
        (
            locate,
            Locate(
                share, request.segments, layout(request.own.schema).widths,
                request.columns, request.places,
            ),
        )
        for request in sought.requests
        if request.rows
        for share in shares(sought.view, runner.tasks) or [sought.view]
    ]  # fmt: skip


def _found(sought: Sought, results: list[list[TaskResult]]) -> Found:
    view, table, requests = sought.view, sought.table, sought.requests
    asked = [request for request in requests if request.rows]
    piles = len(results) // max(len(asked), 1)
    ids: list[I64] = [np.empty(0, np.int64)]
    fewer = 0
    matched = []
    for request in requests:
        mine = results[:piles] if request.rows else []
        results = results[len(mine) :]
        taken, repeats = _allocate(view, table, request, [p for result in mine for p in result])
        ids.append(taken)
        fewer += repeats
        matched.append(len(taken))
    together = np.concatenate(ids)
    if len(np.unique(together)) < len(together):
        values, counts = np.unique(together, return_counts=True)
        row = _shown(view, requests[0].own, int(values[counts > 1][0]), view.segments)
        verbs = " and ".join(sorted(f"{request.what}s" for request in asked))
        raise BatchError(f"table {table!r}: the batch {verbs} the same row: {row}")
    return Found(together, fewer, tuple(matched))


def _allocate(
    view: View, table: str, request: Requests, task_results: list[TaskResult]
) -> tuple[I64, int]:
    """One living row for each request, taken from wherever there are copies; and how many repeated
    rows go with them."""
    if not task_results:
        return np.empty(0, np.int64), 0
    first, need = task_results[0].arrays["first"], task_results[0].arrays["need"]
    counts = np.sum([p.arrays["counts"] for p in task_results], axis=0)
    by_key = len(request.columns) < view.columns
    if request.what == "upsert":
        for k in np.flatnonzero(need > 1)[:1]:
            why = f"is one of {need[k]} with the same row key, so it is not clear which is meant"
            raise _refusal(view, table, request, int(first[k]), why)
    if not request.optional:
        for k in np.flatnonzero(counts == 0)[:1]:
            raise _refusal(view, table, request, int(first[k]), "matches no row")
    if by_key or request.what != "delete":
        for k in np.flatnonzero(counts > 1)[:1]:
            why = f"matches {counts[k]} rows, so the row key does not tell which is meant"
            raise _refusal(view, table, request, int(first[k]), why)
    if not request.optional:
        for k in np.flatnonzero(need > counts)[:1]:
            why = f"is there {need[k]} times, but the table has {counts[k]} such rows"
            raise _refusal(view, table, request, int(first[k]), why)
    ids = np.concatenate([p.arrays["ids"] for p in task_results])
    owners = np.concatenate([p.arrays["owners"] for p in task_results])
    order = np.argsort(owners, kind="stable")
    ids, owners = ids[order], owners[order]
    rank = np.arange(len(owners)) - np.searchsorted(owners, owners)
    # Of m equal rows m - 1 repeat another one; afterwards m - d - 1 of them, or none. Rows with a
    # null never repeat another where nulls are unequal: they are not counted there either.
    fewer = np.maximum(counts - 1, 0) - np.maximum(counts - need - 1, 0)
    if not view.nulls_equal:
        fewer[task_results[0].arrays["nulls"]] = 0
    return ids[rank < need[owners]], int(fewer.sum())


def _refusal(view: View, table: str, request: Requests, row: int, why: str) -> BatchError:
    at = row
    segment = request.segments[0]
    for segment in request.segments:
        if at < segment.rows:
            break
        at -= segment.rows
    shown = _shown(view, request.own, segment.base + at, request.segments)
    return BatchError(f"{request.label}: table {table!r}: this {request.what} {why}: {shown}")


def _shown(view: View, own: Columns, id_: int, segments: tuple[Segment, ...]) -> str:
    return rows_as_text(view.root, segments, own.names, np.array([id_]))[id_]


def with_deleted(store: Store, lease: Lease, table: Table, found: Found) -> Table:
    """The table without the rows."""
    segments = []
    for segment in table.segments:
        mine = found.ids[found.ids >> 32 == segment.number] - segment.base
        if mine.size:
            path = lease.new_path("dead", "arrow")
            segment = with_dead(Path(store.path), segment, mine, path)
        segments.append(segment)
    deleted = set(found.ids.tolist())
    repeated = [pair for pair in table.repeated if not deleted & set(pair)]
    return replace(
        table,
        segments=tuple(segments),
        duplicates=table.duplicates - found.fewer_duplicates,
        repeated=repeated,
    )
