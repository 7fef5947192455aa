"""Some rows of a table, and what a batch does to them, before anything follows from it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.table.state import Table
from holdfast.tasks.segments import Segment

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Rows:
    """Some rows of a table: those that live in some segments or, with ``ids``, those of them that
    have one of these, deleted or not."""

    table: Table
    segments: tuple[Segment, ...]
    ids: I64 | None = None

    @staticmethod
    def living(table: Table) -> Rows:
        """All of them."""
        return Rows(table, table.segments)

    @staticmethod
    def at(table: Table, ids: I64) -> Rows:
        """Those with these ids."""
        numbers = set((ids >> 32).tolist())
        return Rows(table, tuple(s for s in table.segments if s.number in numbers), ids)

    @property
    def count(self) -> int:
        """How many."""
        return sum(s.live for s in self.segments) if self.ids is None else self.ids.size


@dataclass(frozen=True)
class RowCounts:
    """How many rows a batch inserts, deletes and updates, and how many it need not delete, because
    they are not there."""

    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class RowChange:
    """A table before and after a batch. Its deleted rows still have their words in ``before``."""

    before: Table
    after: Table
    added: tuple[Segment, ...]
    gone: I64  # ids of the deleted rows
    counts: RowCounts = RowCounts()

    @property
    def arrived(self) -> Rows:
        """The rows that it brings."""
        return Rows(self.after, self.added)

    @property
    def departed(self) -> Rows:
        """The rows that it takes away."""
        return Rows.at(self.before, self.gone)
