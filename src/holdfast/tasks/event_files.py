"""Files with an event of Debezium in each line: an envelope or an unwrapped row alone, or a record
of a topic, with its ``key``, its ``value`` and perhaps its ``topic`` and ``partition``."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.model.errors import HoldfastError, SourceError
from holdfast.runtime.result import TaskResult
from holdfast.tasks import topic_events
from holdfast.tasks.change_events import RECORDS, events_of
from holdfast.tasks.change_files import opened
from holdfast.tasks.event_rows import EventTable
from holdfast.tasks.json_records import split
from holdfast.tasks.json_rows import Reader
from holdfast.tasks.text import Trouble
from holdfast.tasks.topic_events import EventRange, transactions
from holdfast.tasks.topics import Range

_LINE = pa.schema(
    [
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("key", pa.string()),
        ("value", pa.string()),
        ("headers", pa.string()),
        ("op", pa.string()),
        ("payload", pa.string()),
    ]
)
_OTHER_KEY = re.compile(r'"__debezium\.(?:old|new)key"\s*[,:]\s*("(?:[^"\\]|\\.)*")')


@dataclass(frozen=True)
class EventFiles:
    """The events of one table in some files, and what a position says of those before them."""

    files: tuple[str, ...]
    table: EventTable
    topic: str | None  # None: that whose name ends with the one of the table
    applied: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by partition
    truncated: Mapping[str, int] = field(default_factory=dict)  # where the table was emptied last
    every: bool = False  # the events of all tables, whatever their topics


def records(path: str, item: EventFiles) -> pa.RecordBatch:
    """The records of a file that are of the table's topic; their offsets are lines, from 0."""
    with opened(path) as file:
        return _records(path, file.read().split(b"\n"), item, 0)


def look(item: EventFiles) -> Iterator[TaskResult]:
    """What a position says of the events after these; how many change rows there are, and where the
    table was emptied last, by partition."""
    files = _Files.read(item)
    applied, truncated, rows = dict(item.applied), {}, 0
    with files.named_lines():
        for number, given in files.ranges(item):
            (told,) = topic_events.look(given)
            applied[number] = told.facts["applied"]
            rows += told.facts["rows"]
            if told.facts["truncated"] >= 0:
                truncated[number] = told.facts["truncated"]
    partitions = len(files.partitions)
    yield TaskResult(
        {"applied": applied, "truncated": truncated, "rows": rows, "partitions": partitions}
    )


def continues(item: EventFiles) -> Iterator[TaskResult]:
    """Whether a transaction goes on in the last of some files."""
    whole = replace(item, every=True)
    one = _Files.read(replace(whole, files=item.files[:-1]))
    two = _Files.read(replace(whole, files=item.files[-1:]))
    goes_on = False
    for number, rows in one.partitions.items():
        if number in two.partitions and rows.num_rows:
            both = pa.Table.from_batches([rows, two.partitions[number]]).combine_chunks()
            ids = transactions(events_of(_one(both), item.table.topic))
            before, after = ids[rows.num_rows - 1], ids[rows.num_rows]
            goes_on |= bool(before == after != 0)
    yield TaskResult({"continues": goes_on})


def fields(item: EventFiles) -> Iterator[TaskResult]:
    """What the schema blocks of the events say of the fields of rows."""
    files = _Files.read(item)
    with files.named_lines():
        for _, given in files.ranges(item):
            yield from topic_events.fields(given)


def event_rows(item: EventFiles) -> Iterator[pa.RecordBatch]:
    """The change rows of the events, partition by partition."""
    files = _Files.read(item)
    with files.named_lines():
        for _, given in files.ranges(item):
            yield from topic_events.event_rows(given)


@dataclass(frozen=True)
class _Partition:
    """The records of a partition, which are in memory."""

    rows: pa.RecordBatch

    def records(self, _given: Range) -> Iterator[pa.RecordBatch]:
        yield self.rows


@dataclass(frozen=True)
class _Files:
    """Files that were read: their records, whose offsets are the numbers of their lines."""

    paths: tuple[str, ...]
    lines: tuple[int, ...]  # of each
    partitions: Mapping[str, pa.RecordBatch]

    @staticmethod
    def read(item: EventFiles) -> _Files:
        """All records of the table."""
        counts: list[int] = []
        parts = []
        for path in item.files:
            with opened(path) as file:
                lines = file.read().split(b"\n")
            parts.append(_records(path, lines, item, sum(counts)))
            counts.append(len(lines))
        every = pa.Table.from_batches(parts, RECORDS).combine_chunks()
        numbers = pc.unique(every.column("partition")).to_pylist()
        partitions = {
            str(number): _one(every.filter(pc.equal(every.column("partition"), number)))
            for number in sorted(numbers)
        }
        return _Files(item.files, tuple(counts), partitions)

    def ranges(self, item: EventFiles) -> Iterator[tuple[str, EventRange]]:
        """The records of each partition, as those of a topic."""
        table = replace(item.table, divided=len(self.partitions) > 1)
        for number, rows in self.partitions.items():
            yield (
                number,
                EventRange(
                    _Partition(rows),
                    Range(item.table.topic, int(number), 0, sum(self.lines)),
                    table,
                    item.applied.get(number, {}),
                    truncated=item.truncated.get(number, -1),
                ),
            )

    def named_lines(self) -> _Named:
        """Errors inside name the file and the line."""
        return _Named(self)


@dataclass
class _Named:
    files: _Files

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: Any, error: BaseException | None, _trace: Any) -> None:
        if isinstance(error, HoldfastError):
            raise type(error)(
                re.sub(r"^.*?, partition \d+, offset (\d+)", self._place, str(error), count=1)
            ) from error

    def _place(self, match: re.Match[str]) -> str:
        offset, before = int(match[1]), 0
        for path, count, end in zip(
            self.files.paths, self.files.lines, accumulate(self.files.lines), strict=True
        ):
            if offset < end:
                return f"{path}, line {offset - before + 1}"
            before += count
        return match[0]


def _one(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], RECORDS)


def _records(path: str, lines: list[bytes], item: EventFiles, first: int) -> pa.RecordBatch:
    """The records of a file that are of the table's topic."""
    numbers = np.array([k for k, line in enumerate(lines) if line.strip()], np.int64)
    texts = pa.array([lines[k] for k in numbers.tolist()], pa.binary())
    records = split(texts, whole=False)
    reader = Reader(_LINE, [(name,) for name in _LINE.names], others=lambda _: True)
    parsed = reader.parse(records)
    if isinstance(parsed, Trouble) or not np.array_equal(records.lines, np.arange(len(texts))):
        row = int(records.lines[parsed.row]) if isinstance(parsed, Trouble) else _odd(records.lines)
        shown = lines[int(numbers[row])][:80].decode("utf-8", "replace")
        raise SourceError(
            f"{path}, line {numbers[row] + 1}: this is no change event, expected a record in JSON: "
            f"{shown!r}"
        )
    wrapped = pc.or_(
        pc.is_valid(parsed.column("topic")),
        pc.and_(
            pc.or_(pc.is_valid(parsed.column("value")), pc.is_valid(parsed.column("key"))),
            pc.and_(pc.is_null(parsed.column("op")), pc.is_null(parsed.column("payload"))),
        ),
    )
    if {"key", "value"} <= {*item.table.names}:
        wrapped = pc.is_valid(parsed.column("topic"))
    batch = pa.record_batch(
        [
            pc.fill_null(pc.if_else(wrapped, parsed.column("partition"), None), 0).cast(pa.int32()),
            pa.array(numbers + first, pa.int64()),
            pc.if_else(wrapped, parsed.column("key"), None).cast(pa.binary()),
            pc.if_else(wrapped, parsed.column("value"), texts.cast(pa.string())).cast(pa.binary()),
            _other_keys(pc.if_else(wrapped, parsed.column("headers"), None)),
        ],
        schema=RECORDS,
    )
    return batch.filter(_of_topic(parsed.column("topic"), item))


def _odd(lines: Any) -> int:
    """The first line that is not one record."""
    counts = np.bincount(lines, minlength=int(lines.max(initial=0)) + 1)
    return int(np.argmax(counts != 1))


def _of_topic(topics: pa.Array, item: EventFiles) -> pa.Array:
    """Which records are of the table; those that name no topic are."""
    if item.every:
        return pa.repeat(True, len(topics))
    if item.topic is not None:
        mine = pc.equal(topics, item.topic)
    else:
        mine = pc.ends_with(topics, f".{item.table.table}")
        mine = pc.or_(mine, pc.equal(topics, item.table.table))
    return pc.fill_null(mine, True)


def _other_keys(headers: pa.Array) -> pa.Array:
    """What headers say of the key that a row had before, or has now."""
    keys = []
    for text in headers.to_pylist():
        match = _OTHER_KEY.search(text) if text and "__debezium" in text else None
        keys.append(None if match is None else str(json.loads(match[1])).encode())
    return pa.array(keys, pa.binary())
