"""Events that a connector sent again after a crash: with other offsets, and the old place in the
source.

PostgreSQL sends transactions in the order of their commits, whose log sequence numbers (LSN) are
not that of their events: a long transaction commits late what it wrote early. So the *place* of an
event is the LSN of the last commit before it with its own one, and places never become smaller in
the events of one partition, unless a connector starts again at an earlier one. Rows of one
statement may share a place, and so do the two events of a changed key.

A tombstone has no place. It follows a delete that says the same, so it tells nothing: if both are
sent again, the row may have come again since. Only where rows have no envelopes does it tell that
one went.

The highest place that was applied is kept with the position of a feed, because a repeated event may
come much later.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.model.errors import SourceError
from holdfast.model.records import JsonObject
from holdfast.tasks.change_events import TOMBSTONE, Events

_NO_PLACE = (-1, -1)


@dataclass
class Applied:
    """How far the events of one partition were applied, as the position of a feed keeps it."""

    place: tuple[int, int] = _NO_PLACE
    there: dict[str, None] = field(default_factory=dict)  # events at this place: all may come again
    snapshot: int | None = None  # the LSN of the snapshot that was read
    enveloped: bool = False  # whether the last event had an envelope

    @staticmethod
    def of(form: Mapping[str, Any]) -> Applied:
        """As a position has it."""
        place = form.get("place")
        return Applied(
            (int(place[0]), int(place[1])) if place else _NO_PLACE,
            dict.fromkeys(form.get("events", ())),
            form.get("snapshot"),
            form.get("enveloped", False),
        )

    @property
    def form(self) -> JsonObject:
        """As a position has it."""
        form: JsonObject = {}
        if self.place != _NO_PLACE:
            form |= {"place": list(self.place), "events": list(self.there)}
        if self.snapshot is not None:
            form["snapshot"] = self.snapshot
        if self.enveloped:
            form["enveloped"] = True
        return form

    def new(self, events: Events, where: str) -> NDArray[np.bool_]:
        """Which events are to be applied, because they were not before; from now on all of them
        were. Those of a snapshot, and those whose place is not known, always are new."""
        kept = self._tell(events)
        streamed = pc.and_(
            pc.is_valid(events.lsn),
            pc.or_(pc.is_null(events.snapshot), pc.is_in(events.snapshot, _STREAMED)),
        )
        rows = np.flatnonzero(streamed.to_numpy(zero_copy_only=False))
        starts = self._snapshots(events)
        lsns = pc.fill_null(events.lsn, -1).to_numpy().astype(np.int64)
        for row in np.union1d(rows, [*starts]).astype(np.int64).tolist():
            if row in starts:
                self.snapshot, self.place, self.there = starts[row], _NO_PLACE, {}
            elif kept[row]:
                kept[row] = self._is_new(events, row, int(lsns[row]), where)
        return kept

    def _is_new(self, events: Events, row: int, lsn: int, where: str) -> bool:
        """Whether a streamed event was not applied before."""
        sequence = events.sequence[row].as_py()
        if sequence is None:
            return True
        commit, *_ = json.loads(sequence)
        if commit is not None:
            place = (int(commit), lsn)
        elif lsn > max(self.place):
            # The first transaction of a connector that does not know how far it was: everything
            # that was applied was written before.
            place = (max(*self.place, 0), lsn)
        else:
            place = (self.place[0] if lsn == self.place[1] else -1, lsn)
        if place < self.place:
            return False
        if place > self.place:
            self.place, self.there = place, {}
        known = _known(events, row)
        if known in self.there:
            if not known.endswith(_TOLD):
                raise _untold(events, row, where)
            return False
        self.there[known] = None
        return True

    def _snapshots(self, events: Events) -> dict[int, int]:
        """Where other snapshots begin than the one that is known, with their LSNs. A connector that
        reads all rows again does not know how far it was, and places begin anew."""
        read = pc.and_kleene(pc.equal(events.ops, "r"), pc.is_valid(events.lsn))
        read = pc.and_not(read, pc.fill_null(pc.is_in(events.snapshot, _PASSING), False))
        rows = np.flatnonzero(pc.fill_null(read, False).to_numpy(zero_copy_only=False))
        lsns = events.lsn.take(pa.array(rows)).to_numpy().astype(np.int64)
        before = np.concatenate(([-1 if self.snapshot is None else self.snapshot], lsns[:-1]))
        new = lsns != before[: lsns.size]
        return dict(zip(rows[new].tolist(), lsns[new].tolist(), strict=True))

    def _tell(self, events: Events) -> NDArray[np.bool_]:
        """All events but the tombstones of deletes that have envelopes."""
        tombstones = pc.equal(events.ops, TOMBSTONE)
        before = pc.fill_null_forward(pc.if_else(tombstones, None, events.enveloped))
        before = pc.fill_null(before, self.enveloped)
        if len(events):
            self.enveloped = before[-1].as_py()
        kept: NDArray[np.bool_] = pc.invert(pc.and_(tombstones, before)).to_numpy(
            zero_copy_only=False
        )
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
_PASSING = pa.array(["false", "incremental"])
"""Reads of a connector that goes on."""


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
