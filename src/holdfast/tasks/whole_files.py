"""Files with events of several tables and the ends of their transactions: how many files have whole
transactions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.kernels.arrays import I64
from holdfast.runtime.result import TaskResult
from holdfast.tasks.change_events import RECORDS, events_of
from holdfast.tasks.event_files import EventFiles, records
from holdfast.tasks.transactions import End, commits, ends_of, in_transactions, is_of


@dataclass(frozen=True)
class WholeFiles:
    """Files in their order, and what a step may have of them."""

    tables: tuple[EventFiles, ...]  # each with all the files
    transactions: str  # the topic that tells of them
    ended: int  # the place of the last end before the files
    most: int  # files, if transactions do not go on in further ones


def whole(item: WholeFiles) -> Iterator[TaskResult]:
    """How many files a step has: as many as it may, or the fewest beyond that divide no
    transaction; none if transactions are not whole yet. Also the last place in them."""
    files, told = item.tables[0].files, replace(item.tables[0], topic=item.transactions)
    open_ = _Open(item)
    fitting, last = 0, item.ended
    for number, path in enumerate(files, 1):
        open_.add_ends([end for _, end in ends_of(records(path, told), path, item.ended)])
        for place, table in enumerate(item.tables):
            open_.add_events(place, records(path, table), path)
        if open_.is_none:
            fitting, last = number, open_.last
        if fitting and number >= item.most:
            break
    yield TaskResult({"files": fitting, "ended": last})


@dataclass
class _Open:
    """The transactions of some files."""

    item: WholeFiles
    counts: dict[int, list[int]] = field(default_factory=dict)  # of each table, by place
    events: list[I64] = field(default_factory=list)  # table, last commit, order

    @property
    def last(self) -> int:
        return max(self.counts, default=self.item.ended)

    def add_ends(self, ends: list[End]) -> None:
        for end in ends:
            self.counts[end["place"]] = [
                sum(n for name, n in end["counts"].items() if _is_of(table, name))
                for table in self.item.tables
            ]

    def add_events(self, table: int, rows: pa.RecordBatch, path: str) -> None:
        for number in pc.unique(rows.column("partition")).to_pylist():
            of = rows.filter(pc.equal(rows.column("partition"), number))
            events = events_of(pa.record_batch(of.columns, RECORDS), path)
            which = np.flatnonzero(in_transactions(events, path))
            order = pc.fill_null(events.order, -1).to_numpy().astype(np.int64)[which]
            before = commits(events)[which]
            kept = before >= self.item.ended
            of_table = np.full(which.size, table, np.int64)
            self.events.append(np.stack([of_table, before, order])[:, kept])

    @property
    def is_none(self) -> bool:
        """Whether all transactions have ended, and all of their events are there."""
        places = np.array([self.item.ended, *sorted(self.counts)], np.int64)
        self.events = [np.concatenate([np.empty((3, 0), np.int64), *self.events], axis=1)]
        table, before, order = np.unique(self.events[0], axis=1)
        of = np.searchsorted(places, before, "right")
        if (of == len(places)).any():
            return False
        there = Counter(zip(of[order >= 0].tolist(), table[order >= 0].tolist(), strict=True))
        for number, place in enumerate(places[1:].tolist(), 1):
            for each, count in enumerate(self.counts[place]):
                if there[number, each] < count:
                    return False
        return True


def _is_of(table: EventFiles, collection: str) -> bool:
    """Whether a table of the source is this one."""
    if table.topic is not None:
        return is_of(table.topic, collection)
    return is_of(collection, table.table.table)
