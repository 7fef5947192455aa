"""Matching each delete and update with the row that it means, or refusing it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa

from holdfast.input.row_input import Columns
from holdfast.kernels.arrays import I64
from holdfast.model.errors import BatchError
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, Runner, run_all
from holdfast.runtime.sealed import discard
from holdfast.store import Lease, Store
from holdfast.table.change import RowChange
from holdfast.table.placement import ranges
from holdfast.table.state import Table
from holdfast.tasks.columns import Ends, EndWords, ends_of, samples_of
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
from holdfast.tasks.samples import Samples
from holdfast.tasks.segments import ROWS, Segment, map_passing, moved_index, with_dead
from holdfast.tasks.shown import rows_as_text
from holdfast.tasks.view import View, bounds


@dataclass(frozen=True)
class Requests:
    """Rows of a batch that each ask for a row of the table which equals them in its ``columns``.

    ``places`` are the positions of these columns among those of the requests. ``index`` is the
    index, under the table's name for it, by which requests are divided and looked up. With
    ``optional`` a request without a match is no error.
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
        """The number of requests."""
        return sum(segment.rows for segment in self.segments)


@dataclass(frozen=True)
class TableRequests:
    """All requests of a batch to one table, whose rows tasks see as ``view``."""

    table: str
    view: View
    requests: tuple[Requests, ...]
    schema: pa.Schema
    ends: tuple[EndWords, ...] = ()  # the lowest and highest values of its columns
    samples: Mapping[int, Samples] = field(default_factory=dict)  # what occurs in its columns
    prefix: str = ""  # of files that tasks write


@dataclass(frozen=True)
class LocatedRows:
    """The rows that a task located: for each segment where its positions end, and the positions, in
    memory or, if there are many, in a file."""

    segments: tuple[int, ...]
    ends: tuple[int, ...]
    sent: I64
    file: str | None

    def positions(self, root: Path, number: int) -> I64:
        """The positions in one segment."""
        if number not in self.segments:
            return np.empty(0, np.int64)
        place = self.segments.index(number)
        every = self.sent if self.file is None else map_passing(root / self.file)["positions"]
        return every[(0, *self.ends)[place] : self.ends[place]].astype(np.int64)


@dataclass(frozen=True)
class DeletedRows:
    """The rows that a batch deletes or replaces, and what was found about them."""

    wanted: TableRequests
    located: tuple[LocatedRows, ...]
    fewer_duplicates: int
    matched: tuple[int, ...]
    unchanged: tuple[int, ...]  # how many of these come as they were
    nulls: I64  # how many of the rows are null in each column
    had: dict[tuple[int, int], int]  # and have its lowest and its highest value
    rest: dict[int, Ends]  # those of the rows that stay, where the tasks gave them
    gone: dict[int, dict[int, int]]  # by columns, how many of the rows have each code in its sample
    samples: dict[int, Samples]  # what occurs in the rows that stay, where the tasks gave that

    @property
    def count(self) -> int:
        """The number of rows."""
        return sum(self.matched)

    def positions(self, segment: Segment) -> I64:
        """The positions in one segment; it is an error, with the row in it, if two requests mean
        the same row."""
        view, requests = self.wanted.view, self.wanted.requests
        marked = np.zeros(segment.rows, np.bool_)
        for located in self.located:
            positions = located.positions(view.path, segment.number)
            if (twice := positions[marked[positions]]).size:
                id_ = segment.base + int(twice.min())
                row = _row_as_text(view.root, requests[0].own, id_, view.segments)
                verbs = " and ".join(sorted(f"{one.what}s" for one in requests if one.rows))
                raise BatchError(
                    f"table {self.wanted.table!r}: the batch {verbs} the same row: {row}"
                )
            marked[positions] = True
        return np.flatnonzero(marked)


def find_rows(runner: Runner, wanted: Sequence[TableRequests]) -> list[DeletedRows]:
    """The rows that requests mean, table by table, found in one job; an error with the row in it if
    a request cannot be met."""
    items = [_items(runner, requests) for requests in wanted]
    calls: list[Call] = [
        (locate, item) for of_table in items for of_one in of_table for item in of_one
    ]
    results = iter(run_all(runner, calls))  # one of each call
    return [
        _deleted(requests, [[next(results) for _ in of_one] for of_one in of_table])
        for requests, of_table in zip(wanted, items, strict=True)
    ]


def _items(runner: Runner, wanted: TableRequests) -> list[list[Locate]]:
    """The arguments of tasks for each of the requests."""
    items = [_ranges(runner, wanted.view, request) for request in wanted.requests]
    # A task that is alone knows all rows that go, and so what is left.
    schema = wanted.schema if sum(map(len, items)) == 1 else None
    ends, samples, prefix = wanted.ends, wanted.samples, wanted.prefix
    return [
        [replace(item, schema=schema, ends=ends, samples=samples, prefix=prefix) for item in of_one]
        for of_one in items
    ]


def _ranges(runner: Runner, view: View, request: Requests) -> list[Locate]:
    """One argument for each range of codes."""
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
    first = Locate(
        view, request.segments, layout(request.own.schema).widths, request.columns, request.places,
        index, replacing=request.what != "delete",
    )  # fmt: skip
    return [replace(first, low=low, high=high) for low, high in between]


def indexed(view: View, name: str) -> bool:
    """Whether all segments have an index."""
    return all(name in segment.indexes for segment in view.segments)


def _deleted(wanted: TableRequests, results: list[list[TaskResult]]) -> DeletedRows:
    """The results of the tasks for one table, put together."""
    matched, unchanged = [], []
    for request, of_request in zip(wanted.requests, results, strict=True):
        refused = [one for result in of_request for one in result.facts["refused"]]
        _refuse(wanted, request, refused)
        matched.append(sum(max([0, *result.facts["ends"]]) for result in of_request))
        unchanged.append(sum(result.facts["unchanged"] for result in of_request))
    every = [result for of_request in results for result in of_request]
    none = np.zeros(wanted.view.columns, np.int64), np.zeros(len(wanted.ends), np.int64)
    nulls = sum((result.arrays["nulls"] for result in every), none[0])
    had = sum((result.arrays["had"] for result in every), none[1])
    gone: dict[int, dict[int, int]] = {column: {} for column in wanted.samples}
    for result in every:
        for column, *pairs in result.facts["gone"]:
            codes = wanted.samples[column].codes
            for place, number in zip(pairs[::2], pairs[1::2], strict=True):
                gone[column][codes[place]] = gone[column].get(codes[place], 0) + number
    return DeletedRows(
        wanted,
        tuple(map(_located, every)),
        sum(result.facts["fewer"] for result in every),
        tuple(matched),
        tuple(unchanged),
        nulls,
        {(end.column, end.side): int(n) for end, n in zip(wanted.ends, had, strict=True)},
        {column: ends_of(form) for result in every for column, *form in result.facts["rest"]},
        gone,
        {c: samples_of(form) for result in every for c, *form in result.facts["samples"]},
    )


def _located(result: TaskResult) -> LocatedRows:
    """The rows that a task located."""
    facts = result.facts
    sent = result.arrays.get("positions", np.empty(0, np.int64))
    return LocatedRows(tuple(facts["segments"]), tuple(facts["ends"]), sent, facts["file"])


def _refuse(wanted: TableRequests, request: Requests, refused: list[list[int]]) -> None:
    """Raise an error with the first request that cannot be met, if there is one."""
    needs_one = len(request.columns) < wanted.view.columns or request.what != "delete"
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
        requests = [tuple(one[1:]) for one in refused if one[0] == reason] if matters else []
        if requests:
            row, need, count = min(requests)
            text = _request_as_text(wanted.view.root, request, row)
            raise BatchError(
                f"{request.label}: table {wanted.table!r}: this {request.what} "
                f"{why.format(need=need, count=count)}: {text}"
            )


def _request_as_text(root: str, request: Requests, row: int) -> str:
    at = row
    segment = request.segments[0]
    for segment in request.segments:
        if at < segment.rows:
            break
        at -= segment.rows
    if segment.raw is None:  # the number of a row that is in no table would tell nothing
        return f"row {row + 1:,} of {request.rows:,}"
    return _row_as_text(root, request.own, segment.base + at, request.segments)


def _row_as_text(root: str, own: Columns, id_: int, segments: tuple[Segment, ...]) -> str:
    return rows_as_text(root, segments, own.names, np.array([id_]))[id_]


def with_deleted(store: Store, lease: Lease, table: Table, deleted: DeletedRows) -> Table:
    """The table without the deleted rows."""
    root = Path(store.path)
    touched = {number for located in deleted.located for number in located.segments}
    segments = []
    for segment in table.segments:
        if segment.number in touched:
            path = lease.new_path("dead", "arrow")
            segment = with_dead(root, segment, deleted.positions(segment), path)
        segments.append(segment)
    for located in deleted.located:
        if located.file is not None:
            discard(root / located.file)
    after = replace(
        table,
        segments=tuple(segments),
        duplicates=table.duplicates - deleted.fewer_duplicates,
    )
    pairs = np.array(table.repeated, np.int64).reshape(-1, 2)
    lost = RowChange(table, after, ()).took(store.path, pairs)
    return replace(after, repeated=pairs[~lost.any(axis=1)].tolist())
