"""The rows that are searched or compared, and what they are searched with."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from holdfast.model.comparisons import Space
from holdfast.model.limits import Time
from holdfast.model.progress import Progress, no_progress
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Runner
from holdfast.table.state import Table
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Scope:
    """A table's living rows, the space that pairs of them are compared in, and what runs tasks."""

    runner: Runner
    view: View
    schema: pa.Schema
    space: Space
    prefix: str  # of the files that tasks write
    progress: Progress = no_progress
    time: Time = Time()  # noqa: RUF009  # a frozen value
    every_rhs: bool = False  # agree-sets that are maximal for some rhs count, not only maximal ones

    @staticmethod
    def of(run: Run, table: Table, space: Space, time: Time | None = None) -> Scope:
        """All rows of a table, in some time."""
        time = time or Time()
        view = table.view(run.store.path, run.options)
        prefix, schema = run.destination.prefix, table.columns.schema
        return Scope(run.within(time), view, schema, space, prefix, run.progress, time)

    @property
    def rows(self) -> int:
        """The number of living rows."""
        return sum(segment.live for segment in self.view.segments)

    @property
    def pairs(self) -> int:
        """The number of pairs of rows, each in one order."""
        return self.rows * (self.rows - 1) // 2
