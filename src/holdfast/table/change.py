"""Some rows of a table, and what a batch does to them, before anything follows from it."""

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
    """Some rows of a table: those that live in some segments; with ``later``, the same segments as
    they were afterwards, those of them that had been deleted by then; with ``ids``, those that have
    one of these, deleted or not."""

    table: Table
    segments: tuple[Segment, ...]
    ids: I64 | None = None
    later: tuple[Segment, ...] | None = None

    @staticmethod
    def living(table: Table) -> TableRows:
        """All of them."""
        return TableRows(table, table.segments)

    @staticmethod
    def at(table: Table, ids: I64) -> TableRows:
        """Those with these ids."""
        numbers = set((ids >> 32).tolist())
        return TableRows(table, tuple(s for s in table.segments if s.number in numbers), ids)

    @staticmethod
    def deleted(before: Table, after: Table) -> TableRows:
        """Those that a table has lost."""
        now = {segment.number: segment for segment in after.segments}
        live = {number: segment.live for number, segment in now.items()}
        fewer = tuple(s for s in before.segments if s.live > live.get(s.number, 0))
        later = tuple(now[s.number] for s in fewer if s.number in now)
        return TableRows(before, fewer, later=later)

    @property
    def count(self) -> int:
        """How many."""
        if self.ids is not None:
            return self.ids.size
        return sum(s.live for s in self.segments) - sum(s.live for s in self.later or ())

    @property
    def weight(self) -> int:
        """What each counts: less than nothing where they are gone."""
        return 1 if self.later is None else -1


@dataclass(frozen=True)
class RowCounts:
    """How many rows a batch inserts, deletes and updates; how many of its updates and upserts are
    rows of the table as they are, and how many rows it need not delete, because they are not
    there."""

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
        """The rows that it brings."""
        return TableRows(self.after, self.added)

    @cached_property
    def departed(self) -> TableRows:
        """The rows that it takes away."""
        return TableRows.deleted(self.before, self.after)

    def took(self, root: str, ids: I64) -> Flags:
        """Which of some rows of the table it takes away; those that are negative are none."""
        took = np.zeros(ids.shape, np.bool_)
        now = {segment.number: segment for segment in self.after.segments}
        for segment in self.departed.segments:
            inside = ids >> 32 == segment.number
            if inside.any():
                later = now.get(segment.number)
                positions = ids[inside] - segment.base
                took[inside] = True if later is None else are_dead(Path(root), later, positions)
        return took
