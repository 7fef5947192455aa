"""Comparing a table with a snapshot of it: which of its rows are gone, and which are new.

Rows are compared as wholes, with their nulls, so a row that is there three times and three times in
the snapshot stays as it is. No row key is needed: both have the sorted hashes of their whole rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from holdfast.kernels import unmatched as kernels
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.model.records import to_form
from holdfast.runtime.result import TaskResult
from holdfast.tasks.compaction import written
from holdfast.tasks.segments import ROWS, Segment, are_dead, map_between, most_rows
from holdfast.tasks.view import View

Between = tuple[int | None, int | None]
"""Codes from one to below another; None: no bound."""


@dataclass(frozen=True)
class Compare:
    """Compare the rows of a table with those of a snapshot in some ranges of row codes, one after
    the other, so that memory has a bound."""

    table: View
    snapshot: View
    ranges: tuple[Between, ...]
    prefix: str
    indexes: tuple[str, ...]  # of the segments of new rows
    keep_gone: bool  # whether the raw rows of those that are gone are kept, too

    @property
    def work(self) -> int:
        """Rows that it looks at, about."""
        return self.table.live + self.snapshot.live


def compare(item: Compare) -> Iterator[TaskResult]:
    """Segments of the rows that are gone and of those that are new; they have no numbers yet."""
    gone = _Collected(item.table, item.prefix, (ROWS,), item.keep_gone)
    new = _Collected(item.snapshot, item.prefix, item.indexes, True)
    for low, high in item.ranges:
        before, after = _Rows.of(item.table, low, high), _Rows.of(item.snapshot, low, high)
        is_gone, is_new = (np.ones(len(rows.ids), np.bool_) for rows in (before, after))
        kernels.unmatched(before.codes, before.words, after.codes, after.words, is_gone, is_new)
        gone.add(before, is_gone)
        new.add(after, is_new)
    for what, collected in (("gone", gone), ("new", new)):
        yield TaskResult({what: [to_form(segment) for segment in collected.segments()]})


@dataclass(frozen=True)
class _Rows:
    """The living rows in a range of codes, in the order of these."""

    codes: I64
    ids: I64
    words: U64

    @staticmethod
    def of(view: View, low: int | None, high: int | None) -> _Rows:
        codes, ids = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for segment in view.segments:
            every, entries = map_between(view.path / segment.indexes[ROWS], low, high)
            positions = entries.astype(np.int64)
            living = ~are_dead(view.path, segment, positions)
            codes.append(every[living])
            ids.append(positions[living] + segment.base)
        together, every_id = np.concatenate(codes), np.concatenate(ids)
        # A stable sort merges the segments' runs, which are in order already.
        order = np.argsort(together, kind="stable")
        return _Rows(together[order], every_id[order], view.rows_with(every_id[order]))


@dataclass
class _Collected:
    """Rows that are written as segments once all are known, or as many as fill one."""

    view: View
    prefix: str
    indexes: Sequence[str]
    keep_raw: bool
    ids: list[I64] = field(default_factory=list)
    full: list[Segment] = field(default_factory=list)

    def add(self, rows: _Rows, chosen: Flags) -> None:
        """Add the chosen ones."""
        self.ids.append(rows.ids[chosen])
        most = most_rows(self.view.words)
        while sum(map(len, self.ids)) >= most:
            every = np.concatenate(self.ids)
            self.full.append(self._written(every[:most]))
            self.ids = [every[most:]]

    def segments(self) -> list[Segment]:
        """All of them."""
        rest = np.concatenate([np.empty(0, np.int64), *self.ids])
        return [*self.full, *([self._written(rest)] if rest.size else [])]

    def _written(self, ids: I64) -> Segment:
        by_segment = (
            (segment, np.sort(ids[ids >> 32 == segment.number] - segment.base))
            for segment in self.view.segments
        )
        rows = [(segment, positions) for segment, positions in by_segment if positions.size]
        return written(self.view, rows, self.prefix, 0, self.indexes, self.keep_raw)
