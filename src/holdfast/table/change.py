"""Rows of a table, and which of them a batch adds and removes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np

from holdfast.kernels.arrays import I64, Flags
from holdfast.table.state import Table
from holdfast.tasks.segments import Segment, are_dead


@dataclass(frozen=True)
class TableRows:
    """Some rows of a table: the living ones of some segments; with ``later`` (the same segments in
    a later version) those of them that were deleted in between; with ``ids`` the rows with these
    ids, whether deleted or not."""

    table: Table
    segments: tuple[Segment, ...]
    ids: I64 | None = None
    later: tuple[Segment, ...] | None = None

    @staticmethod
    def living(table: Table) -> TableRows:
        """All living rows of a table."""
        return TableRows(table, table.segments)

    @staticmethod
    def at(table: Table, ids: I64) -> TableRows:
        """The rows with these ids."""
        numbers = set((ids >> 32).tolist())
        return TableRows(table, tuple(s for s in table.segments if s.number in numbers), ids)

    @staticmethod
    def deleted(before: Table, after: Table) -> TableRows:
        """The rows that a table lost between two versions."""
        now = {segment.number: segment for segment in after.segments}
        live = {number: segment.live for number, segment in now.items()}
        fewer = tuple(s for s in before.segments if s.live > live.get(s.number, 0))
        later = tuple(now[s.number] for s in fewer if s.number in now)
        return TableRows(before, fewer, later=later)

    @property
    def count(self) -> int:
        """The number of rows."""
        if self.ids is not None:
            return self.ids.size
        return sum(s.live for s in self.segments) - sum(s.live for s in self.later or ())

    @property
    def weight(self) -> int:
        """What a row counts: 1, or -1 if it was deleted."""
        return 1 if self.later is None else -1


@dataclass(frozen=True)
class RowCounts:
    """How many rows a batch inserts, deletes and updates; how many updates and upserts equal the
    row that is there; and how many deletes are skipped because there is no such row."""

    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    unchanged: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class RowChange:
    """A table before and after a batch. Its deleted rows still have their words in ``before``."""

    before: Table
    after: Table
    added: tuple[Segment, ...]
    counts: RowCounts = RowCounts()

    @cached_property
    def arrived(self) -> TableRows:
        """The rows that the batch adds."""
        return TableRows(self.after, self.added)

    @cached_property
    def departed(self) -> TableRows:
        """The rows that the batch removes."""
        return TableRows.deleted(self.before, self.after)

    def took(self, root: str, ids: I64) -> Flags:
        """Which of some rows of the table the batch removes; negative ids are none."""
        took = np.zeros(ids.shape, np.bool_)
        now = {segment.number: segment for segment in self.after.segments}
        for segment in self.departed.segments:
            inside = ids >> 32 == segment.number
            if inside.any():
                later = now.get(segment.number)
                positions = ids[inside] - segment.base
                took[inside] = True if later is None else are_dead(Path(root), later, positions)
        return took
