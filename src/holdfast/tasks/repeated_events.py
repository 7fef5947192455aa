"""Events that a connector sent again after a crash: with other offsets, and the old place in the
source.

PostgreSQL sends transactions in the order of their commits, whose log sequence numbers (LSN) are
not that of their events: a long transaction commits late what it wrote early. So the *place* of an
event is the LSN of the last commit before it with its own one, and places never become smaller in
the events of one partition, unless a connector starts again at an earlier one. Rows of one
statement may share a place, and so do the two events of a changed key.

The highest place that was applied is kept with the position of a feed, because a repeated event may
come much later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.model.errors import SourceError
from holdfast.model.records import JsonObject
from holdfast.tasks.change_events import Events

_NO_PLACE = (-1, -1)


@dataclass
class Applied:
    """How far the events of one partition were applied, as the position of a feed keeps it."""

    place: tuple[int, int] = _NO_PLACE
    there: tuple[str, ...] = ()  # the events at this place: all of them may come again
    snapshot: int | None = None  # the LSN of the snapshot that was read

    @staticmethod
    def of(form: Mapping[str, Any]) -> Applied:
        """As a position has it."""
        place = form.get("place")
        return Applied(
            (int(place[0]), int(place[1])) if place else _NO_PLACE,
            tuple(form.get("events", ())),
            form.get("snapshot"),
        )

    @property
    def form(self) -> JsonObject:
        """As a position has it."""
        form: JsonObject = {}
        if self.place != _NO_PLACE:
            form |= {"place": list(self.place), "events": list(self.there)}
        if self.snapshot is not None:
            form["snapshot"] = self.snapshot
        return form

    def new(self, events: Events, where: str) -> NDArray[np.bool_]:
        """Which events were not applied before; from now on all of them were. Those of a snapshot,
        and those whose place is not known, always are new."""
        kept = np.ones(len(events), np.bool_)
        streamed = pc.and_(
            pc.is_valid(events.lsn),
            pc.or_(pc.is_null(events.snapshot), pc.is_in(events.snapshot, _STREAMED)),
        )
        rows = np.flatnonzero(streamed.to_numpy(zero_copy_only=False))
        if not rows.size:
            return kept
        commits = [_commit(events.sequence[int(row)].as_py()) for row in rows]
        lsns = events.lsn.to_numpy(zero_copy_only=False)[rows].astype(np.int64)
        highest, there = self.place, dict.fromkeys(self.there)
        for row, commit, lsn in zip(rows.tolist(), commits, lsns.tolist(), strict=True):
            place = (commit, lsn)
            if commit < 0 or place < highest:
                kept[row] = commit < 0
                continue
            if place > highest:
                highest, there = place, {}
            known = _known(events, row)
            if known in there:
                kept[row] = False
                if not known.endswith(_TOLD):
                    raise _untold(events, row, where)
            there[known] = None
        self.place, self.there = highest, tuple(there)
        return kept

    def take_snapshot(self, events: Events, table: str, where: str) -> None:
        """Note which snapshot the events read. Without a row key a second one would add all rows
        again, so it is an error."""
        lsns = pc.filter(events.lsn, pc.equal(events.ops, "r")).drop_null().unique().to_pylist()
        for lsn in lsns:
            streamed = self.snapshot is None and self.place != _NO_PLACE
            if streamed or (self.snapshot is not None and lsn != self.snapshot):
                raise SourceError(
                    f"{where}: the connector has read all rows of the source again; table "
                    f"{table!r} has no row key, so they cannot be told from those that are there. "
                    "Give the rows as they are now as --snapshot, and follow the feed from there"
                )
            self.snapshot = lsn


_TOLD = "+"
"""The end of what an event is known by if that tells it from all others."""

_STREAMED = pa.array(["false"])


def _commit(sequence: str | None) -> int:
    """The LSN of the last commit before an event; 0 before the first, -1 where it is not told."""
    if sequence is None:
        return -1
    last, *_ = json.loads(sequence)
    return int(last or 0)


def _known(events: Events, row: int) -> str:
    """What an event is known by at its place: operation, key and order in the transaction; without
    both its row, which does not tell it from an equal one."""
    key, order = events.keys[row].as_py(), events.order[row].as_py()
    told = key is not None or order is not None
    of_row = "" if told else f"{events.before[row].as_py()}{events.after[row].as_py()}"
    text = f"{events.transaction[row].as_py()} {events.ops[row].as_py()} {order} {key} {of_row}"
    digest = hashlib.blake2b(text.encode(), digest_size=9).hexdigest()
    return digest + (_TOLD if told else "-")


def _untold(events: Events, row: int, where: str) -> SourceError:
    return SourceError(
        f"{where}, offset {events.offsets[row]}: this event is the same as one before it, and as "
        "the table has no key it is not clear whether it was sent again or is of an equal row; "
        "let the connector number the events of a transaction (provide.transaction.metadata=true)"
    )
