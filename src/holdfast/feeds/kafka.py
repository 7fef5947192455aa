"""Topics of Kafka: ``kafka:orders``, or one for each of several tables, ``kafka:orders,items``.

A position has the offset of the next record of each partition, and, of events of Debezium, how far
those were applied, because a connector may send them again. Records are read in tasks, by a client
of its own in each, between two offsets of a partition.

With a topic of transactions, too, a step ends where a transaction of the source does, in all
topics; else it ends in each where it happens to.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import TypeAlias

from holdfast.feeds import events
from holdfast.feeds import transactions as of_source
from holdfast.feeds.contract import Bounds, EventForm, Given, Position, Run, Step
from holdfast.input.change_rows import CHANGE_TYPE, DELETE, USUAL, ChangeRows
from holdfast.input.row_input import RowInput
from holdfast.input.sources import Source
from holdfast.input.text_inputs import json_input
from holdfast.model.errors import InputError, SourceError
from holdfast.model.records import JsonObject
from holdfast.runtime.runner import Parts, Runner
from holdfast.tasks import text_files
from holdfast.tasks.envelope_cells import Encoding
from holdfast.tasks.event_rows import EventTable
from holdfast.tasks.topic_events import EventRange, event_rows, fields, look, truncated_among_others
from holdfast.tasks.topic_rows import RowRange, json_rows, lines
from holdfast.tasks.topics import Access, Range, partitions, removed
from holdfast.tasks.transactions import NOTHING

log = logging.getLogger("holdfast")

MOST_RECORDS = 200_000
"""Records of a step, unless another bound is given."""

VARIABLES = "HOLDFAST_KAFKA_"
"""What the variables of the environment begin with whose values are settings of the client:
``HOLDFAST_KAFKA_SASL_PASSWORD`` is ``sasl.password``."""

_FILE = "HOLDFAST_KAFKA_CONFIG"
_OPTIONS = ("bootstrap", "config", "start", "transactions")
_BEGINNING, _END = "beginning", "end"
_LAST_ENDS = 1_000
"""Of so many records of the topic of transactions, one at least is looked for that tells an end."""

_TOPIC = re.compile(r"[\w.-]{1,249}", re.ASCII)

Offsets: TypeAlias = dict[int, int]
"""Of the next record, by partition."""


def opened(address: str, given: Given) -> Kafka:
    """The feed of one topic, or of several."""
    topics = tuple(address.partition(":")[2].split(","))
    for topic in topics:
        if not _TOPIC.fullmatch(topic):
            raise InputError(
                f"{address}: {topic!r} is no name of a topic; give one, such as kafka:orders, and "
                "the brokers as --bootstrap HOST:PORT"
            )
    tables = (given, *given.others)
    if len(topics) != len(tables):
        raise InputError(
            f"{address}: {len(topics)} topics for {len(tables)} tables; give one for each, such as "
            "kafka:orders,items"
        )
    for name in given.options.keys() - {*_OPTIONS}:
        raise InputError(
            f"{address}: a topic has no option {name!r}; it has {', '.join(_OPTIONS)}. Settings of "
            f"the client are given in the environment, as {VARIABLES}SASL_PASSWORD, or in a file "
            "that the option config names"
        )
    if given.order:
        raise InputError(f"{address}: the order of records is that of their offsets; leave it out")
    start = given.options.get("start", _BEGINNING)
    if start not in (_BEGINNING, _END):
        raise InputError(
            f"{address}: start is {start!r}; expected beginning (the first records that there "
            "are), or end (the profile has the rows as they are now)"
        )
    for table in tables:
        _encodings(table)
    transactions = given.options.get("transactions")
    if transactions is not None and not _TOPIC.fullmatch(transactions):
        raise InputError(
            f"{address}: transactions is {transactions!r}, which is no name of a topic"
        )
    if transactions is not None and given.events is None:
        raise InputError(
            f"{address}: the topic {transactions!r} tells of transactions of Debezium, so the "
            "records must be its events: give --debezium"
        )
    return Kafka(
        address, dict(zip(topics, tables, strict=True)), start, _access(address, given),
        transactions,
    )  # fmt: skip


def _encodings(given: Given) -> dict[str, Encoding]:
    """How values are written that no schema block explains."""
    told = given.events.encodings if given.events else {}
    return {name: Encoding.parsed(name, text) for name, text in told.items()}


def _access(address: str, given: Given) -> Access:
    """How the brokers are reached: by what stands in a file, in the environment, and in the
    options."""
    settings: dict[str, str] = {}
    if file := given.options.get("config") or os.environ.get(_FILE):
        settings |= _of_file(file)
    for name, value in os.environ.items():
        if name.startswith(VARIABLES) and name != _FILE:
            settings[name.removeprefix(VARIABLES).lower().replace("_", ".")] = value
    if bootstrap := given.options.get("bootstrap"):
        settings["bootstrap.servers"] = bootstrap
    if not settings.get("bootstrap.servers"):
        raise InputError(f"{address}: say where the brokers are with --bootstrap HOST:PORT")
    return Access(settings)


def _of_file(file: str) -> dict[str, str]:
    """Settings in lines such as ``sasl.password=…``."""
    try:
        lines = Path(file).read_text("utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not in UTF-8"
        raise InputError(f"{file}: the settings of Kafka cannot be read ({reason})") from None
    settings = {}
    for number, line in enumerate(lines, 1):
        name, is_one, value = line.strip().partition("=")
        if name and not name.startswith("#"):
            if not is_one:
                raise InputError(f"{file}, line {number}: expected NAME=VALUE")
            settings[name.strip()] = value.strip()
    return settings


@dataclass(frozen=True)
class _Topic:
    """A topic with its partitions, as a step finds it."""

    name: str
    given: Given
    access: Access
    at: Offsets  # before the step
    head: Offsets

    @property
    def number(self) -> int:
        """How many records there are at most."""
        return sum(self.head[number] - offset for number, offset in self.at.items())

    @cached_property
    def columns(self) -> EventTable:
        """The table, as its events are read."""
        given = self.given
        types = tuple(field.type for field in given.columns.given)
        return EventTable(
            self.name, given.table, given.columns.names, types, given.row_key, _encodings(given),
            (given.events or EventForm()).placeholder, len(self.at) > 1,
        )  # fmt: skip


@dataclass(frozen=True)
class Kafka:
    """A feed of the records of topics."""

    address: str
    tables: Mapping[str, Given]  # by topic
    start: str
    access: Access = field(repr=False)
    transactions: str | None = None  # the topic that tells of them

    @property
    def identity(self) -> JsonObject:
        """The topics, and what their records mean."""
        return {"topics": {topic: _meaning(given) for topic, given in self.tables.items()}}

    @property
    def apart(self) -> bool:
        """Whether a transaction may be divided between versions."""
        return len(self.tables) > 1 and self.transactions is None

    def head(self) -> Position:
        """The offsets of the next records."""
        topics = [*self.tables, *([self.transactions] if self.transactions else [])]
        return _position({topic: _ends(partitions(self.access, topic)) for topic in topics}, {})

    def read(self, after: Position | None, bounds: Bounds) -> Step | None:
        """The next records of all partitions; whole transactions, if it is told which these are."""
        topics = [self._found(topic, after) for topic in self.tables]
        if after is None and self.start == _END:
            return Step(self._at_end(topics), "the end", None)
        records = bounds.rows or MOST_RECORDS
        busy = sum(end > topic.at[n] for topic in topics for n, end in topic.head.items())
        if not busy:
            return None
        most: int | None = max(1, records // busy)
        applied = _applied(after)
        reach = self._reach(topics, after, applied, records)
        if reach is not None:
            most = None
            topics = [replace(topic, head={**reach.ends[topic.name]}) for topic in topics]
            if reach.waits:
                log.info("%s: %s", self.address, reach.waits)
            if all(topic.at == topic.head for topic in topics):
                return None
        ends: dict[str, Offsets] = {}
        changes: dict[str, ChangeRows | None] = {}
        for topic in topics:
            before = applied.get(topic.name, {})
            read = _event_changes if topic.given.events else _row_changes
            changes[topic.name], ends[topic.name], then = read(topic, before, most, self._run)
            applied[topic.name] = {**before, **then}
        first, *others = self.tables
        further = {
            self.tables[name].table: rows for name in others if (rows := changes[name]) is not None
        }
        position = _position(ends, applied)
        if reach is not None:
            ended = of_source.begun_anew(reach.ended, _applied(after), applied)
            position = self._with_transactions(position, reach.next, ended)
        return Step(position, _span(topics, ends), changes[first], further)

    def behind(self, after: Position | None) -> str:
        """The number of records to read, and what a transaction waits for."""
        topics = [self._found(topic, after) for topic in self.tables]
        number = sum(topic.number for topic in topics)
        if after is None and self.start == _END:
            number = 0
        if not number:
            return ""
        reach = self._reach(topics, after, _applied(after), 1)
        waits = f" ({reach.waits})" if reach is not None and reach.waits else ""
        return f"{number:,} record{'s' * (number > 1)}{waits}"

    @property
    def _run(self) -> Run | None:
        return next(iter(self.tables.values())).run

    def _reach(
        self,
        topics: list[_Topic],
        after: Position | None,
        applied: Mapping[str, Mapping[str, JsonObject]],
        most: int,
    ) -> of_source.Reach | None:
        """How far a step goes so that it divides no transaction; None if nothing tells these."""
        if self.transactions is None:
            return None
        told = self._ends_told(after)
        ended = int(str((after or {}).get("ended", NOTHING)))
        ranges = [
            Range(topic.name, number, offset, topic.head[number])
            for topic in topics for number, offset in topic.at.items()
        ]  # fmt: skip
        assert self._run is not None
        return of_source.reach(self._run, self.access, told, ended, ranges, applied, most)

    def _ends_told(self, after: Position | None) -> Range:
        """The records of the topic of transactions that are new."""
        assert self.transactions is not None
        known = after is not None and self.transactions in _topics(after)
        topic = self._found(self.transactions, after if known else None)
        of_source.expect_one(topic.name, len(topic.at))
        ((number, first),) = topic.at.items()
        return Range(topic.name, number, first, topic.head[number])

    def _at_end(self, topics: list[_Topic]) -> Position:
        """The position at the end of all topics: what ended until then is not waited for."""
        position = _position({topic.name: topic.head for topic in topics}, {})
        if self.transactions is None:
            return position
        told = self._ends_told(None)
        first = max(told.first, told.end - _LAST_ENDS)
        assert self._run is not None
        last = of_source.last_place(self._run, self.access, replace(told, first=first))
        return self._with_transactions(position, told.end, last)

    def _with_transactions(self, position: Position, offset: int, ended: int) -> Position:
        """A position with one in the topic of transactions."""
        assert self.transactions is not None
        return {
            **position,
            "offsets": {**_topics(position), self.transactions: {"0": offset}},
            "ended": ended,
        }

    def _found(self, name: str, after: Position | None) -> _Topic:
        """A topic, with the offsets between which is read."""
        there = partitions(self.access, name)
        if after is None:
            at = {number: first for number, (first, _) in there.items()}
        else:
            at = _offsets(after, name)
            self._expect(name, at, there)
        given = self.tables.get(name) or next(iter(self.tables.values()))
        return _Topic(name, given, self.access, at, _ends(there))

    def _expect(self, name: str, at: Offsets, there: Mapping[int, tuple[int, int]]) -> None:
        """Raise an error if reading cannot go on."""
        if at.keys() != there.keys():
            raise SourceError(
                f"topic {name!r} has {len(there)} partitions, and had {len(at)}: the records of a "
                "key may be in another one now, so it is not known which was the last. Give the "
                "rows as they are now as --snapshot, and follow the feed anew with "
                "--reset-position and --feed-option start=end"
            )
        for number, (first, end) in there.items():
            given = Range(name, number, at[number], end)
            if at[number] < first:
                raise removed(given, first)
            if at[number] > end:
                raise SourceError(
                    f"{given}: the profile has the records up to offset {at[number]}, but the next "
                    f"one gets offset {end}: the topic was made anew. Follow it anew with "
                    "--reset-position"
                )


def _event_changes(
    topic: _Topic, applied: Mapping[str, JsonObject], most: int | None, run: Run | None
) -> tuple[ChangeRows | None, Offsets, dict[str, JsonObject]]:
    """What events of Debezium change, up to where, and how far they were applied then. They are
    looked at first: events that were sent again, that empty the table, or that belong to one
    transaction decide what a step has."""
    items = [
        EventRange(
            topic.access, Range(topic.name, number, first, topic.head[number]), topic.columns,
            applied.get(str(number), {}), most,
        )
        for number, first in topic.at.items() if first < topic.head[number]
    ]  # fmt: skip
    assert run is not None
    seen = [results[0].facts for results in run([(look, item) for item in items])]
    truncated = any(facts["truncated"] >= 0 for facts in seen)
    if truncated and len(topic.at) > 1:
        raise truncated_among_others(f"topic {topic.name!r}", topic.given.table, len(topic.at))
    ends, then, parts = dict(topic.at), {}, []
    for item, facts in zip(items, seen, strict=True):
        given = item.range
        ends[given.partition] = end = facts["end"]
        then[str(given.partition)] = facts["applied"]
        if facts["rows"]:
            read = Range(given.topic, given.partition, given.first, end)
            parts.append(
                EventRange(
                    item.access, read, item.table, item.applied, truncated=facts["truncated"]
                )
            )
    if not parts and not truncated:
        return None, ends, then
    rows = Parts(topic.columns.schema, tuple(parts), event_rows)
    as_given = partial(events.as_given, fields, tuple(parts), topic.given)
    return ChangeRows(rows, replaces=truncated, given=as_given), ends, then


def _row_changes(
    topic: _Topic, _applied: Mapping[str, JsonObject], most: int | None, _run: Run | None
) -> tuple[ChangeRows | None, Offsets, dict[str, JsonObject]]:
    """What records change that are rows, up to where."""
    given = topic.given
    assert most is not None
    ends = {number: min(topic.head[number], first + most) for number, first in topic.at.items()}
    ops, column = given.ops or USUAL, given.op_column or CHANGE_TYPE
    if DELETE not in ops.values():  # a record without a value is one all the same
        ops = {**ops, "delete": DELETE}
    went = next(word for word, what in ops.items() if what == DELETE)
    parts = [
        RowRange(
            topic.access, Range(topic.name, number, first, ends[number]), given.table,
            topic.columns.columns, given.row_key, column, bool(given.op_column or given.ops), went,
        )
        for number, first in topic.at.items() if first < ends[number]
    ]  # fmt: skip
    if not parts:
        return None, ends, {}
    rows = Parts(parts[0].schema, tuple(parts), json_rows)
    return ChangeRows(rows, column, ops, given=partial(_as_given, tuple(parts))), ends, {}


def _as_given(parts: tuple[RowRange, ...], runner: Runner) -> RowInput:
    """Records with all the fields that they have."""
    read = Parts(text_files.SCHEMA, parts, lines)
    return json_input(
        runner, Source(f"topic {parts[0].range.topic!r}", "json"), read, _no_file, False
    )


def _no_file(_origin: int) -> str | None:
    return None


def _meaning(given: Given) -> JsonObject:
    """What the records of a topic mean, as far as they do not say it themselves."""
    if given.events is None:
        return {"table": given.table, "op_column": given.op_column, "ops": dict(given.ops)}
    encodings = dict(sorted(given.events.encodings.items()))
    return {
        "table": given.table,
        "debezium": {"encodings": encodings, "placeholder": given.events.placeholder},
    }


def _ends(there: Mapping[int, tuple[int, int]]) -> Offsets:
    return {number: end for number, (_, end) in there.items()}


def _position(
    offsets: Mapping[str, Offsets], applied: Mapping[str, Mapping[str, JsonObject]]
) -> Position:
    position: Position = {
        "offsets": {
            t: {str(n): at for n, at in of_topic.items()} for t, of_topic in offsets.items()
        }
    }
    if any(form for of_topic in applied.values() for form in of_topic.values()):
        position["applied"] = {topic: {**of_topic} for topic, of_topic in applied.items()}
    return position


def _topics(position: Position) -> JsonObject:
    """The offsets of a position, by topic."""
    offsets = position["offsets"]
    assert isinstance(offsets, dict)
    return offsets


def _offsets(position: Position, topic: str) -> Offsets:
    of_topic = _topics(position)[topic]
    assert isinstance(of_topic, dict)
    return {int(number): int(str(offset)) for number, offset in of_topic.items()}


def _applied(position: Position | None) -> dict[str, dict[str, JsonObject]]:
    applied = (position or {}).get("applied", {})
    assert isinstance(applied, dict)
    return {t: dict(of_topic) for t, of_topic in applied.items()}


def _span(topics: list[_Topic], ends: Mapping[str, Offsets]) -> str:
    """The ranges of offsets: ``offsets 3 to 17``, or by partition."""
    ranges = []
    for topic in topics:
        for number, end in ends[topic.name].items():
            if end > (first := topic.at[number]):
                where = f"{topic.name}/{number} " if len(ends) > 1 or len(topic.at) > 1 else ""
                ranges.append(f"{where}{first}" + (f" to {end - 1}" if end - 1 > first else ""))
    further = f" and of {len(ranges) - 8} more partitions" if len(ranges) > 8 else ""
    return f"offsets {', '.join(ranges[:8])}{further}"
