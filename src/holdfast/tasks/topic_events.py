"""Change events in a range of a partition: what a step may take of them, and their change rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.model.errors import SourceError
from holdfast.model.records import JsonObject
from holdfast.runtime.result import TaskResult
from holdfast.tasks.change_events import RECORDS, Events, block_of, events_of
from holdfast.tasks.event_rows import EventTable, change_rows, flags_of
from holdfast.tasks.repeated_events import Applied
from holdfast.tasks.topics import Range

_STREAMED = pa.array(["false"])


class RecordSource(Protocol):
    """What has the records of a partition."""

    def records(self, given: Range, /) -> Iterator[pa.RecordBatch]:
        """Those of a range, in the order of their offsets, some at a time."""


@dataclass(frozen=True)
class EventRange:
    """A range of a partition, and what a position says of the events before it."""

    access: RecordSource
    range: Range
    table: EventTable
    applied: Mapping[str, Any]
    most: int | None = None  # records, if no transaction has more
    truncated: int = -1  # the offset of the last event that empties the table


def look(item: EventRange) -> Iterator[TaskResult]:
    """How far a step goes in this range, and what a position says of the events after it."""
    batch, end = _within(item)
    applied, rows, truncated = Applied.of(item.applied), 0, -1
    if batch.num_rows:
        events = _new(events_of(batch, item.range.topic), applied, item)
        empties = events.offsets[flags_of(pc.equal(events.ops, "t"))]
        if empties.size:
            truncated = int(empties[-1])
        rows = int(np.count_nonzero(events.offsets > truncated))
    facts = {"end": end, "applied": applied.form, "rows": rows, "truncated": truncated}
    yield TaskResult(facts)


def fields(item: EventRange) -> Iterator[TaskResult]:
    """What the schema blocks of a range say of the fields of rows; the last one counts."""
    batch = _together([*item.access.records(item.range)])
    found: JsonObject = {}
    if batch.num_rows:
        for schema in pc.unique(events_of(batch, item.range.topic).schemas).drop_null().to_pylist():
            block = block_of(schema, "after") or block_of(schema, None)
            found |= {str(each.get("field")): dict(each) for each in block.get("fields", ())}
    yield TaskResult({"fields": found})


def event_rows(item: EventRange) -> Iterator[pa.RecordBatch]:
    """The change rows of a range."""
    batch = _together([*item.access.records(item.range)])
    if batch.num_rows:
        events = _new(events_of(batch, item.range.topic), Applied.of(item.applied), item)
        events = events.taken(events.offsets > item.truncated)
        yield from change_rows(events, item.table).to_batches()


def _new(events: Events, applied: Applied, item: EventRange) -> Events:
    """The events that were not applied before."""
    table, where = item.table, str(item.range)
    if not table.row_key:
        applied.take_snapshot(events, table.table, where)
    return events.taken(applied.new(events, where))


def _within(item: EventRange) -> tuple[pa.RecordBatch, int]:
    """The records of a step, and the offset of the next one: as many as a step may have, or all of
    the first transaction, if that has more."""
    read: list[pa.RecordBatch] = []
    for batch in item.access.records(item.range):
        read.append(batch)
        together = _together(read)
        read = [together]
        if item.most is not None and together.num_rows > item.most:
            cut = _last_cut(together, item)
            if cut:
                return together.slice(0, cut), int(together.column("offset")[cut].as_py())
    return _together(read), item.range.end


def _last_cut(batch: pa.RecordBatch, item: EventRange) -> int:
    """How many records a step takes, if there are more of them than it may have; 0 if the first
    transaction may go on after all of them."""
    assert item.most is not None
    ids = transactions(events_of(batch, item.range.topic))
    # Between two records whose transactions differ a step may end. What belongs to none stands
    # for itself.
    may_end = 1 + np.flatnonzero((ids[1:] != ids[:-1]) | (ids[1:] == 0))
    fitting = may_end[may_end <= item.most]
    beyond = may_end[may_end > item.most]
    return int(fitting[-1] if fitting.size else beyond[0] if beyond.size else 0)


def transactions(events: Events) -> NDArray[np.int64]:
    """A number for the transaction of each event; 0 for one that was not streamed, or does not say.
    A tombstone belongs to the delete before it."""
    ids = pc.if_else(pa.array(is_streamed(events)), events.transaction, None)
    ids = pc.if_else(pc.equal(events.ops, "tombstone"), None, pc.fill_null(ids, ""))
    ids = pc.fill_null(pc.fill_null_forward(ids), "")
    codes = ids.dictionary_encode()
    numbers: NDArray[np.int64] = codes.indices.to_numpy().astype(np.int64) + 1
    nothing = pc.index(codes.dictionary, "").as_py()
    numbers[numbers == nothing + 1] = 0
    return numbers


def is_streamed(events: Events) -> NDArray[np.bool_]:
    """Which events tell of a change, and not of a row that was read."""
    streamed = pc.or_(pc.is_null(events.snapshot), pc.is_in(events.snapshot, _STREAMED))
    return flags_of(pc.and_(streamed, events.enveloped))


def _together(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    if len(batches) == 1:
        return batches[0]
    table = pa.Table.from_batches(batches, RECORDS).combine_chunks()
    return next(iter(table.to_batches()), pa.RecordBatch.from_pylist([], RECORDS))


def truncated_among_others(where: str, table: str, partitions: int) -> SourceError:
    """The error about a truncated table whose events are in several partitions."""
    return SourceError(
        f"{where}: table {table!r} was truncated in the source, but the topic has {partitions} "
        "partitions, so it is not known what was there before; give the rows as they are now as "
        "--snapshot, and follow the feed anew with --reset-position and --feed-option start=end"
    )
