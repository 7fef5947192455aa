"""What is left of many changes: of each row key the last one, or, without a row key, how many more
rows came than went, of equal rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.model.errors import BatchError, SourceError
from holdfast.runtime.result import TaskResult
from holdfast.tasks.change_segments import POSTIMAGE, PREIMAGE, Happened
from holdfast.tasks.ingest import Ingest, SegmentWriter
from holdfast.tasks.rows import Locate, stored_rows
from holdfast.tasks.segments import combined, open_arrays, open_raw, row_codes
from holdfast.tasks.shown import rows_as_text
from holdfast.tasks.view import View

CAME, WENT = "came", "went"
"""What is left of the changes of a row."""


@dataclass(frozen=True)
class Net:
    """Net the changes of the rows whose codes are in a range."""

    label: str
    table: str
    names: tuple[str, ...]
    view: View  # the change rows
    beside: tuple[str, ...]  # what happened to them, segment by segment
    key: tuple[int, ...]  # the row key; nothing: whole rows are added up
    ordered: bool  # whether the rows are in the order of the changes
    came: Ingest  # how what came is written
    went: Ingest
    stored: Locate | None  # where unavailable cells are; None: nowhere
    low: int | None = None
    high: int | None = None

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live


@dataclass(frozen=True)
class _Changes:
    """The changes in a range."""

    ids: I64  # in their order
    words: U64
    ops: I64
    came: Flags
    times: Sequence[I64]
    missing: U64 | None
    former: U64

    @staticmethod
    def of(item: Net) -> _Changes:
        """Those that a task is given."""
        view = item.view
        parts: list[_Changes] = []
        for segment, path in zip(view.segments, item.beside, strict=True):
            words = view.rows(segment, np.arange(segment.rows))
            rows = _inside(item, words)
            here = Happened.read(view.path, path)
            missing = here.missing
            parts.append(
                _Changes(
                    rows + segment.base,
                    words[rows],
                    here.ops[rows],
                    here.came[rows],
                    [times[rows] for times in here.times],
                    None if missing is None else missing[rows],
                    np.empty((0, 0), np.uint64) if missing is None else here.former[rows],
                )
            )
        return _Changes(
            np.concatenate([part.ids for part in parts]),
            np.concatenate([part.words for part in parts]),
            np.concatenate([part.ops for part in parts]),
            np.concatenate([part.came for part in parts]),
            [np.concatenate(times) for times in zip(*(p.times for p in parts), strict=True)],
            _joined([part.missing for part in parts]),
            np.concatenate([part.former for part in parts]),
        )


def _inside(item: Net, words: U64) -> I64:
    """The places of the rows whose codes are in the range."""
    inside = np.ones(len(words), np.bool_)
    if item.low is not None or item.high is not None:
        codes = _codes(item, words)
        if item.low is not None:
            inside &= codes >= item.low
        if item.high is not None:
            inside &= codes < item.high
    return np.flatnonzero(inside)


def _joined(parts: Sequence[U64 | None]) -> U64 | None:
    there = [part for part in parts if part is not None]
    return np.concatenate(there) if there else None


def net(item: Net) -> Iterator[TaskResult]:
    """Write the rows that came and those that went, each as segments."""
    changes = _Changes.of(item)
    if not changes.ids.size:
        return
    came, went = (_last if item.key else _summed)(item, changes)
    yield from _written(item, changes, came, CAME)
    yield from _written(item, changes, went, WENT)


def _codes(item: Net, words: U64) -> I64:
    codes = combined(words, item.key, item.view.shape) if item.key else row_codes(words)
    return codes.view(np.int64)


def _groups(item: Net, words: U64) -> I64:
    """The number of the group of each row: rows with equal keys, or equal rows."""
    _, first, groups = np.unique(_codes(item, words), return_index=True, return_inverse=True)
    cells = _key_words(item, words)
    if (cells != cells[first][groups]).any():  # two keys with one hash: compare them in full
        groups = np.unique(cells, axis=0, return_inverse=True)[1]
    return groups.reshape(-1).astype(np.int64)


def _key_words(item: Net, words: U64) -> U64:
    if not item.key:
        return words
    shape = item.view.shape
    places = [
        place
        for column in item.key
        for place in range(shape.first[column], shape.first[column + 1])
    ]
    nulls = [
        words[:, shape.owner.size + column // 64] >> np.uint64(column % 64) & np.uint64(1)
        for column in item.key
    ]
    return np.column_stack([words[:, places], *nulls])


def _last(item: Net, changes: _Changes) -> tuple[I64, I64]:
    """The changes that are the last ones of their keys: where rows came, and where they went."""
    groups = _groups(item, changes.words)
    times = changes.times
    place = np.arange(len(groups))
    # Of one moment, what went was there before what came.
    by = [groups, *times, changes.came, place] if times else [groups, place]
    if not times and not item.ordered:
        by = [groups, changes.came, place]
    order = np.lexsort(by[::-1])
    if not item.ordered:
        _expect_order(item, changes, groups, order)
    last = order[np.append(groups[order][1:] != groups[order][:-1], True)]
    came = changes.came[last]
    return np.sort(last[came]), np.sort(last[~came])


def _expect_order(item: Net, changes: _Changes, groups: I64, order: I64) -> None:
    """Raise an error where it is not told which of several changes of a key is the last one."""
    one, two = order[:-1], order[1:]
    same = groups[one] == groups[two]
    for times in changes.times:
        same &= times[one] == times[two]
    wrong = same & (changes.came[one] == changes.came[two])
    if changes.times:
        wrong &= changes.came[one]  # a row that went twice is gone
        wrong &= (changes.words[one] != changes.words[two]).any(axis=1)
    else:
        wrong |= same & ~((changes.ops[one] == PREIMAGE) & (changes.ops[two] == POSTIMAGE))
    if wrong.any():
        row = int(order[int(np.argmax(wrong)) + 1])
        why = (
            "at the same place in their order"
            if changes.times
            else "and nothing tells in which order"
        )
        raise BatchError(
            f"{item.label}: table {item.table!r}: a row changes several times, {why}: "
            f"{_shown(item, changes, row)}; name the columns that give the order with --order"
        )


def _summed(item: Net, changes: _Changes) -> tuple[I64, I64]:
    """The rows that came more often than they went, as often as that; and the others."""
    groups = _groups(item, changes.words)
    number = int(groups.max()) + 1
    sums = np.bincount(groups, np.where(changes.came, 1.0, -1.0), number).astype(np.int64)
    first = np.full(number, len(groups), np.int64)
    np.minimum.at(first, groups, np.arange(len(groups)))
    came, went = sums > 0, sums < 0
    return np.repeat(first[came], sums[came]), np.repeat(first[went], -sums[went])


def _written(item: Net, changes: _Changes, rows: I64, what: str) -> Iterator[TaskResult]:
    """Write some of the changed rows."""
    if not rows.size:
        return
    cells = _rows_at(item.view, changes.ids[rows])
    if what == CAME and changes.missing is not None:
        cells = _completed(item, changes, rows, cells)
    writer = SegmentWriter(item.came if what == CAME else item.went)
    for batch in cells.combine_chunks().to_batches():
        for written in writer.add(batch):
            yield replace(written, facts={**written.facts, "what": what})
    for written in writer.close():
        yield replace(written, facts={**written.facts, "what": what})


def _rows_at(view: View, ids: I64) -> pa.Table:
    """The raw rows with these ids, in this order."""
    parts, places = [], []
    for segment in view.segments:
        of_segment = np.flatnonzero(ids >> 32 == segment.number)
        if not of_segment.size:
            continue
        positions = ids[of_segment] - segment.base
        sizes = open_arrays(view.path / segment.words).facts["raw_batches"]
        ends = np.cumsum(sizes)
        reader = open_raw(view.path, segment)
        which = np.searchsorted(ends, positions, "right")
        for number in np.unique(which).tolist():
            inside = which == number
            start = int(ends[number]) - sizes[number]
            batch = reader.get_batch(number)
            parts.append(batch.take(pa.array(positions[inside] - start)))
            places.append(of_segment[inside])
    order = np.argsort(np.concatenate(places), kind="stable")
    return pa.Table.from_batches(parts).take(pa.array(order))


def _completed(item: Net, changes: _Changes, rows: I64, cells: pa.Table) -> pa.Table:
    """The rows with the cells that were not given, which are those of stored rows."""
    assert changes.missing is not None
    missing = changes.missing[rows]
    asked = np.flatnonzero(missing.any(axis=1))
    if not asked.size:
        return cells
    found = np.full(len(asked), -1, np.int64)
    if item.stored is not None:
        found = stored_rows(item.stored, changes.former[rows[asked]])
    if (found < 0).any():
        at = int(asked[int(np.argmax(found < 0))])
        column = next(
            c for c in range(len(item.names)) if missing[at, c // 64] >> np.uint64(c % 64) & 1
        )
        raise SourceError(
            f"{item.label}: table {item.table!r}: the value of column {item.names[column]!r} did "
            "not change and was not sent, and the profile has no such row to take it from: "
            f"{_shown(item, changes, int(rows[at]))}; run ALTER TABLE {item.table} REPLICA "
            "IDENTITY FULL in the source, so that it sends whole rows, and give the rows as they "
            "are now as --snapshot"
        )
    assert item.stored is not None
    stored = _rows_at(item.stored.view, found)
    columns = []
    for column, own in enumerate(cells.columns):
        lacks = missing[asked, column // 64] >> np.uint64(column % 64) & np.uint64(1) != 0
        if lacks.any():
            sources = np.arange(cells.num_rows)
            sources[asked[lacks]] = cells.num_rows + np.flatnonzero(lacks)
            both = pa.chunked_array([*own.chunks, *stored.column(column).chunks], own.type)
            own = both.take(pa.array(sources))
        columns.append(own)
    return pa.table(columns, schema=cells.schema)


def _shown(item: Net, changes: _Changes, row: int) -> str:
    """A change row as messages show it."""
    id_ = changes.ids[row : row + 1]
    return rows_as_text(item.view.root, item.view.segments, item.names, id_)[int(id_[0])]
