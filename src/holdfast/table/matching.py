"""Deletes and updates: each request is matched with the row that it means, or refused."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from holdfast.input.row_input import Columns
from holdfast.kernels.arrays import I64
from holdfast.model.errors import BatchError
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, Runner
from holdfast.runtime.sealed import discard
from holdfast.store import Lease, Store
from holdfast.table.change import RowChange
from holdfast.table.placement import ranges
from holdfast.table.state import Table
from holdfast.tasks.columns import Ends, EndWords, ends_of
from holdfast.tasks.encode import layout
from holdfast.tasks.rows import (
    AMBIGUOUS,
    MISSING,
    REPEATED,
    TOO_FEW,
    Locate,
    even_ranges,
    locate,
)
from holdfast.tasks.segments import ROWS, Segment, map_passing, moved_index, with_dead
from holdfast.tasks.shown import rows_as_text
from holdfast.tasks.view import View, bounds


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
    prefix: str = ""  # of files that tasks write


@dataclass(frozen=True)
class Located:
    """The rows that a task has located, by segment: the positions of each up to its end, in memory
    or, where they are many, in a file."""

    segments: tuple[int, ...]
    ends: tuple[int, ...]
    sent: I64
    file: str | None

    def positions(self, root: Path, number: int) -> I64:
        """Those of a segment."""
        if number not in self.segments:
            return np.empty(0, np.int64)
        place = self.segments.index(number)
        held = self.sent if self.file is None else map_passing(root / self.file)["positions"]
        return held[(0, *self.ends)[place] : self.ends[place]].astype(np.int64)


@dataclass(frozen=True)
class Found:
    """The rows that go, and how many repeated rows go with them; how many each request found."""

    sought: Sought
    located: tuple[Located, ...]
    fewer_duplicates: int
    matched: tuple[int, ...]
    unchanged: tuple[int, ...]  # how many of these come as they were
    nulls: I64  # how many of the rows are null in each column
    had: dict[tuple[int, int], int]  # and have its lowest and its highest value
    rest: dict[int, Ends]  # those of the rows that stay, where the tasks gave them

    @property
    def count(self) -> int:
        """How many rows go."""
        return sum(self.matched)

    def positions(self, segment: Segment) -> I64:
        """Those of a segment; an error that shows a row if several requests mean it."""
        view, requests = self.sought.view, self.sought.requests
        marked = np.zeros(segment.rows, np.bool_)
        for each in self.located:
            mine = each.positions(view.path, segment.number)
            if (twice := mine[marked[mine]]).size:
                id_ = segment.base + int(twice.min())
                row = _shown(view, requests[0].own, id_, view.segments)
                verbs = " and ".join(sorted(f"{one.what}s" for one in requests if one.rows))
                raise BatchError(
                    f"table {self.sought.table!r}: the batch {verbs} the same row: {row}"
                )
            marked[mine] = True
        return np.flatnonzero(marked)


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
    calls = [_calls(runner, sought.view, one) for one in sought.requests]
    # A task that is alone knows all rows that go, and so what is left.
    schema = sought.schema if sum(map(len, calls)) == 1 else None
    more = {"schema": schema, "ends": sought.ends, "prefix": sought.prefix}
    return [[(task, replace(item, **more)) for task, item in some] for some in calls]


def _calls(runner: Runner, view: View, request: Requests) -> list[Call]:
    """One call for each range of the codes of the requests."""
    if not request.rows:
        return []
    index = request.index if indexed(view, request.index) else None
    parts = ranges(runner, request.rows)
    between: list[tuple[int | None, int | None]] = [(None, None)]
    if index == ROWS:
        between = even_ranges(parts)
    elif index is not None and parts > 1:
        own = View(view.root, request.segments, (), True)
        cuts = bounds(own, moved_index(index, request.columns, request.places), parts)
        between = [*pairwise([None, *cuts, None])]
    widths = layout(request.own.schema).widths
    columns, places = request.columns, request.places
    replacing = request.what != "delete"
    calls = [
        Locate(view, request.segments, widths, columns, places, index, *each, replacing=replacing)
        for each in between
    ]
    return [(locate, each) for each in calls]


def indexed(view: View, name: str) -> bool:
    """Whether all segments have an index."""
    return all(name in segment.indexes for segment in view.segments)


def _rows_meant(sought: Sought, results: list[list[TaskResult]]) -> Found:
    """What tasks say about the requests of a table, one after the other."""
    view, table, requests = sought.view, sought.table, sought.requests
    matched, unchanged = [], []
    for request, mine in zip(requests, results, strict=True):
        _refuse(view, table, request, [each for result in mine for each in result.facts["refused"]])
        matched.append(sum(max([0, *result.facts["ends"]]) for result in mine))
        unchanged.append(sum(result.facts["unchanged"] for result in mine))
    fewer = sum(result.facts["fewer"] for mine in results for result in mine)
    every = [result for mine in results for result in mine]
    nulls = sum((each.arrays["nulls"] for each in every), np.zeros(view.columns, np.int64))
    had = sum((each.arrays["had"] for each in every), np.zeros(len(sought.ends), np.int64))
    return Found(
        sought,
        tuple(map(_located, every)),
        fewer,
        tuple(matched),
        tuple(unchanged),
        nulls,
        {(end.column, end.side): int(n) for end, n in zip(sought.ends, had, strict=True)},
        {column: ends_of(form) for each in every for column, *form in each.facts["rest"]},
    )


def _located(result: TaskResult) -> Located:
    """The rows that a task located."""
    facts = result.facts
    sent = result.arrays.get("positions", np.empty(0, np.int64))
    return Located(tuple(facts["segments"]), tuple(facts["ends"]), sent, facts["file"])


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
    """The table without the rows, one segment after the other."""
    root = Path(store.path)
    touched = {number for each in deleted.located for number in each.segments}
    segments = []
    for segment in table.segments:
        if segment.number in touched:
            path = lease.new_path("dead", "arrow")
            segment = with_dead(root, segment, deleted.positions(segment), path)
        segments.append(segment)
    for each in deleted.located:
        if each.file is not None:
            discard(root / each.file)
    after = replace(
        table,
        segments=tuple(segments),
        duplicates=table.duplicates - deleted.fewer_duplicates,
    )
    pairs = np.array(table.repeated, np.int64).reshape(-1, 2)
    lost = RowChange(table, after, ()).took(store.path, pairs)
    return replace(after, repeated=pairs[~lost.any(axis=1)].tolist())
