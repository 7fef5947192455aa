"""Deletes and updates: each request is matched with the row that it means, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.input.row_input import Columns
from holdfast.model import thresholds
from holdfast.model.errors import BatchError
from holdfast.store import Lease, Store
from holdfast.table.state import Table
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.columns import Ends, EndWords, ends_of
from holdfast.tasks.encode import layout
from holdfast.tasks.result import TaskResult
from holdfast.tasks.rows import (
    AMBIGUOUS,
    MISSING,
    REPEATED,
    TOO_FEW,
    Locate,
    even_ranges,
    locate,
)
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import ROWS, Segment, moved_index, with_dead
from holdfast.tasks.view import View, bounds

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Requests:
    """Rows to be found: those that equal the request in the table's ``columns``.

    ``places`` says where those columns are among the request's own, ``index`` which index the
    segments have to be divided and looked up by, as the table names it; ``optional``: a row that is
    not there is no error.
    """

    what: str  # "delete", "update" or "upsert"
    label: str
    own: Columns
    segments: tuple[Segment, ...]
    columns: tuple[int, ...]
    places: tuple[int, ...]
    index: str
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
    schema: pa.Schema
    ends: tuple[EndWords, ...] = ()  # the lowest and highest values of its columns


@dataclass(frozen=True)
class Found:
    """The rows that go, and how many repeated rows go with them; how many each request found."""

    ids: I64  # in order
    fewer_duplicates: int
    matched: tuple[int, ...]
    nulls: I64  # how many of the rows are null in each column
    had: dict[tuple[int, int], int]  # and have its lowest and its highest value
    rest: dict[int, Ends]  # those of the rows that stay, where the tasks gave them


def find_rows(runner: Runner, sought: Sequence[Sought]) -> list[Found]:
    """The rows that the requests mean, table by table, in one job; an error that shows the row if
    they do not fit."""
    calls = [_table_calls(runner, each) for each in sought]
    together = [call for table in calls for some in table for call in some]
    results = iter(runner.run(together) if together else [])
    return [
        _rows_meant(each, [[result for _ in some for result in next(results)] for some in table])
        for each, table in zip(sought, calls, strict=True)
    ]


def _table_calls(runner: Runner, sought: Sought) -> list[list[Call]]:
    """For each of the requests."""
    calls = [_calls(runner, sought.view, one, sought.ends) for one in sought.requests]
    # A task that is alone knows all rows that go, and so what is left.
    schema = sought.schema if sum(map(len, calls)) == 1 else None
    return [[(task, replace(item, schema=schema)) for task, item in some] for some in calls]


def _calls(runner: Runner, view: View, request: Requests, ends: tuple[EndWords, ...]) -> list[Call]:
    """One call for each range of the codes of the requests."""
    if not request.rows:
        return []
    index = request.index if indexed(view, request.index) else None
    parts = min(runner.tasks, -(-request.rows // thresholds.current.located_rows))
    ranges: list[tuple[int | None, int | None]] = [(None, None)]
    if index == ROWS:
        ranges = even_ranges(parts)
    elif index is not None and parts > 1:
        own = View(view.root, request.segments, (), True)
        cuts = bounds(own, moved_index(index, request.columns, request.places), parts)
        ranges = [*pairwise([None, *cuts, None])]
    widths = layout(request.own.schema).widths
    columns, places = request.columns, request.places
    return [
        (locate, Locate(view, request.segments, widths, columns, places, index, *each, ends=ends))
        for each in ranges
    ]


def indexed(view: View, name: str) -> bool:
    """Whether all segments have an index."""
    return all(name in segment.indexes for segment in view.segments)


def _rows_meant(sought: Sought, results: list[list[TaskResult]]) -> Found:
    """What tasks say about the requests of a table, one after the other."""
    view, table, requests = sought.view, sought.table, sought.requests
    ids: list[I64] = []
    for request, mine in zip(requests, results, strict=True):
        _refuse(view, table, request, [each for result in mine for each in result.facts["refused"]])
        ids.append(_ids(mine))
    together = np.sort(np.concatenate([*ids, np.empty(0, np.int64)]))
    twice = together[1:][together[1:] == together[:-1]]
    if twice.size:
        row = _shown(view, requests[0].own, int(twice[0]), view.segments)
        verbs = " and ".join(sorted(f"{request.what}s" for request in requests if request.rows))
        raise BatchError(f"table {table!r}: the batch {verbs} the same row: {row}")
    fewer = sum(result.facts["fewer"] for mine in results for result in mine)
    every = [result for mine in results for result in mine]
    nulls = sum((each.arrays["nulls"] for each in every), np.zeros(view.columns, np.int64))
    had = sum((each.arrays["had"] for each in every), np.zeros(len(sought.ends), np.int64))
    return Found(
        together,
        fewer,
        tuple(map(len, ids)),
        nulls,
        {(end.column, end.side): int(n) for end, n in zip(sought.ends, had, strict=True)},
        {column: ends_of(form) for each in every for column, *form in each.facts["rest"]},
    )


def _ids(results: list[TaskResult]) -> I64:
    """The rows that tasks located."""
    parts = [np.empty(0, np.int64)]
    for result in results:
        stretches = pairwise([0, *result.facts["ends"]])
        for number, (start, end) in zip(result.facts["segments"], stretches, strict=True):
            parts.append(result.arrays["positions"][start:end] + (np.int64(number) << 32))
    return np.concatenate(parts)


def _refuse(view: View, table: str, request: Requests, refused: list[list[int]]) -> None:
    """An error that shows the first request that cannot be met, if there is one."""
    needs_one = len(request.columns) < view.columns or request.what != "delete"
    wrong = (
        (REPEATED, request.what == "upsert",
         "is one of {need} with the same row key, so it is not clear which is meant"),
        (MISSING, not request.optional, "matches no row"),
        (AMBIGUOUS, needs_one,
         "matches {count} rows, so the row key does not tell which is meant"),
        (TOO_FEW, not request.optional,
         "is there {need} times, but the table has {count} such rows"),
    )  # fmt: skip
    for reason, matters, why in wrong:
        first = sorted(each[1:] for each in refused if each[0] == reason) if matters else []
        for row, need, count in first:
            raise _refusal(view, table, request, row, why.format(need=need, count=count))


def _refusal(view: View, table: str, request: Requests, row: int, why: str) -> BatchError:
    at = row
    segment = request.segments[0]
    for segment in request.segments:
        if at < segment.rows:
            break
        at -= segment.rows
    shown = _shown(view, request.own, segment.base + at, request.segments)
    if segment.raw is None:  # the number of a row that is in no table would tell nothing
        shown = f"row {row + 1:,} of {request.rows:,}"
    return BatchError(f"{request.label}: table {table!r}: this {request.what} {why}: {shown}")


def _shown(view: View, own: Columns, id_: int, segments: tuple[Segment, ...]) -> str:
    return rows_as_text(view.root, segments, own.names, np.array([id_]))[id_]


def with_deleted(store: Store, lease: Lease, table: Table, deleted: Found) -> Table:
    """The table without the rows."""
    segments = []
    for segment in table.segments:
        start, end = np.searchsorted(deleted.ids, [segment.base, segment.base + segment.rows])
        if start < end:
            path = lease.new_path("dead", "arrow")
            positions = deleted.ids[start:end] - segment.base
            segment = with_dead(Path(store.path), segment, positions, path)
        segments.append(segment)
    repeated = [pair for pair in table.repeated if not np.isin(pair, deleted.ids).any()]
    return replace(
        table,
        segments=tuple(segments),
        duplicates=table.duplicates - deleted.fewer_duplicates,
        repeated=repeated,
    )
