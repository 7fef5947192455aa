"""Transactions of the source, whose ends a topic of Debezium tells: which have ended, and up to
where a partition has their events.

The *place* of an end is the number at the end of its id, the LSN of the commit. Of every event it
is known which commit was the last before it. So an event belongs to the first transaction that
ends at a later place, and an end that was sent again after a crash is one that is not beyond those
before it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.kernels.arrays import I64
from holdfast.model.errors import SourceError
from holdfast.model.records import JsonObject
from holdfast.runtime.result import TaskResult
from holdfast.tasks.change_events import ROW, TOMBSTONE, Events, events_of
from holdfast.tasks.event_rows import Flags, flags_of
from holdfast.tasks.repeated_events import Applied
from holdfast.tasks.topic_events import RecordSource, is_streamed
from holdfast.tasks.topics import Range

MOST_ENDS = 10_000
"""Transactions of a step."""

NOTHING = -1
"""The place of an end before all others."""

_ID = re.compile(r"\d+:(\d+)", re.ASCII)
_COMMIT = r'^\s*\[\s*"?(?P<commit>\d+)'


class End(TypedDict):
    """The end of a transaction, with its events by the table of the source."""

    place: int
    id: str
    counts: dict[str, int]


@dataclass(frozen=True)
class EndRange:
    """A range of the topic that tells of transactions."""

    access: RecordSource
    range: Range
    ended: int  # the place of the last end before it
    topics: tuple[str, ...]  # whose events are counted
    most: int  # events, if no transaction has more


@dataclass(frozen=True)
class ReachRange:
    """A range of a partition, whose events belong to transactions."""

    access: RecordSource
    range: Range
    places: tuple[int, ...]  # of the last end that was applied, and of those that are to be
    applied: Mapping[str, Any]  # what a position says of the events before the range
    most: int  # records that belong to no transaction


def ended(item: EndRange) -> Iterator[TaskResult]:
    """The transactions that ended, of which a step takes some: their places, ids and numbers of
    events by topic; where the range has been read to, and the last place there."""
    ends: list[JsonObject] = []
    rows, last = 0, item.ended
    for batch in item.access.records(item.range):
        for offset, end in ends_of(batch, str(item.range), last):
            counts = [_count(end["counts"], topic) for topic in item.topics]
            if any(counts):
                if ends and (rows + sum(counts) > item.most or len(ends) == MOST_ENDS):
                    yield TaskResult({"ends": ends, "next": offset, "last": last})
                    return
                rows += sum(counts)
                ends.append(
                    {"place": end["place"], "id": end["id"], "counts": counts, "next": offset + 1}
                )
            last = end["place"]
    yield TaskResult({"ends": ends, "next": item.range.end, "last": last})


def ends_of(records: pa.RecordBatch, where: str, last: int) -> Iterator[tuple[int, End]]:
    """The ends of transactions beyond the last one, and the offsets of their records."""
    offsets = records.column("offset").to_pylist()
    for offset, value in zip(offsets, records.column("value").to_pylist(), strict=True):
        end = _end(value, f"{where}, offset {offset}")
        if end is not None and end["place"] > last:
            last = end["place"]
            yield offset, end


def _end(value: bytes | None, where: str) -> End | None:
    """The end of a transaction that a record tells: its place, its id and the numbers of events of
    its tables; None if it tells of a beginning."""
    try:
        form = json.loads(value or b"{}")
        form = form.get("payload", form)
        if form.get("status") != "END":
            return None
        id_ = form["id"]
        counts = {
            each["data_collection"]: int(each["event_count"])
            for each in form.get("data_collections") or ()
        }
    except (ValueError, AttributeError, KeyError, TypeError):
        raise SourceError(
            f"{where}: this does not tell of a transaction, as the topic of Debezium's transaction "
            f"metadata does: {(value or b'')[:80].decode('utf-8', 'replace')!r}"
        ) from None
    match = _ID.fullmatch(str(id_))
    if match is None:
        raise SourceError(
            f"{where}: the transaction {id_!r} has no place in the log of PostgreSQL; ends of "
            "transactions of other databases are not read, so leave the option transactions out"
        )
    return {"place": int(match[1]), "id": id_, "counts": counts}


def _count(counts: Mapping[str, int], topic: str) -> int:
    return sum(number for name, number in counts.items() if is_of(topic, name))


def is_of(topic: str, collection: str) -> bool:
    """Whether a topic has the events of a table of the source."""
    return topic == collection or topic.endswith(f".{collection}")


def reached(item: ReachRange) -> Iterator[TaskResult]:
    """Up to where a partition has the events of transactions. ``free`` is where the records end
    that stand before all of them and belong to none; if there are any, nothing else is said.
    ``ends`` has, for each place, the offset of the first event beyond it, ``numbers`` how many
    events each transaction has, and ``past`` says up to which of them, counted from 1, the
    partition has all events, however many it has."""
    places = np.array(item.places, np.int64)
    ends = np.full(len(places), item.range.end, np.int64)
    at, free, seen = 0, item.range.first, False
    orders = [np.empty((0, 2), np.int64)]
    before = Applied.of(item.applied).place[0]
    past = int(np.searchsorted(places, before, "right")) if before > 0 else 0
    for batch in item.access.records(item.range):
        events = events_of(batch, item.range.topic)
        streamed = in_transactions(events, str(item.range))
        _expect_of(item.range, events.collection.filter(pa.array(streamed)))
        if not seen:
            first = int(np.argmax(streamed)) if streamed.any() else len(streamed)
            free = int(events.offsets[first - 1]) + 1 if first else free
            seen = bool(streamed.any())
            if free > item.range.first and (seen or free - item.range.first >= item.most):
                break
        which = np.flatnonzero(streamed)
        if not which.size:
            continue
        # How many places are not beyond an event: 0 if it was applied or comes late, else the
        # number of its transaction.
        of = np.searchsorted(places, commits(events)[which], "right")
        furthest = np.maximum(at, np.maximum.accumulate(of))
        for number in range(at, int(furthest[-1])):
            ends[number] = events.offsets[which[int(np.argmax(furthest > number))]]
        numbered = pc.is_valid(events.order).to_numpy(zero_copy_only=False)[which]
        counted = numbered & (of == furthest) & (of > 0)
        order = pc.fill_null(events.order, 0).to_numpy().astype(np.int64)[which]
        orders.append(np.stack((of[counted], order[counted]), axis=1))
        at = int(furthest[-1])
        if at == len(places):
            break
    free = min(free, item.range.first + item.most)
    told = np.unique(np.concatenate(orders), axis=0)[:, 0]
    numbers = np.bincount(told, minlength=len(places) + 1)[1 : len(places)]
    facts = {"free": free, "past": max(past, at - 1)}
    yield TaskResult(facts, {"ends": ends, "numbers": numbers.astype(np.int64)})


def in_transactions(events: Events, where: str) -> Flags:
    """Which events belong to transactions; an error for one that does not tell to which."""
    streamed = is_streamed(events)
    rows = flags_of(pc.equal(events.ops, ROW))
    told = pc.and_(pc.is_valid(events.lsn), pc.is_valid(events.sequence))
    untold = rows | (streamed & ~flags_of(told))
    if untold.any():
        at = events.offsets[int(np.argmax(untold))]
        raise SourceError(
            f"{where}, offset {at}: the event does not tell where in the log of PostgreSQL it was, "
            "so it is not known to which transaction it belongs; leave the option transactions out"
        )
    return streamed & flags_of(pc.not_equal(events.ops, TOMBSTONE))


def _expect_of(where: Range, collections: pa.Array) -> None:
    """Raise an error if a topic has events of another table than its name says."""
    for name in pc.unique(collections).drop_null().to_pylist():
        if not is_of(where.topic, name):
            raise SourceError(
                f"{where}: the topic has events of {name!r}, and not its name, so it is not known "
                "which events of a transaction are still to come; leave the option transactions out"
            )


def commits(events: Events) -> I64:
    """The place of the last commit before each event. The first transaction of a connector knows
    none; it ends at a later place than that of its events."""
    found = pc.struct_field(pc.extract_regex(events.sequence, _COMMIT), "commit")
    places = pc.fill_null(pc.coalesce(found.cast(pa.int64()), events.lsn), NOTHING)
    numbers: I64 = places.to_numpy(zero_copy_only=False).astype(np.int64)
    return numbers
