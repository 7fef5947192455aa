"""Helpers: rows as feeds for the in-process runner, and what a profile says of them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from holdfast import pipeline
from holdfast.changes import Changes
from holdfast.feed import Columns, Feed
from holdfast.options import Options
from holdfast.placement import no_progress
from holdfast.runner import InProcess
from holdfast.snapshot import TableSnapshot, snapshot
from holdfast.store import Store
from tests.strategies import Rows


def feed(columns: int, rows: Rows, label: str = "rows") -> Feed:
    """Rows of integers as a feed."""
    names = [f"c{c}" for c in range(columns)]
    cells = [pa.array([row[c] for row in rows], pa.int64()) for c in range(columns)]
    table = pa.table(dict(zip(names, cells, strict=True)))
    return Feed(label, Columns.of(names, ["bigint"] * columns, [pa.int64()] * columns), table)


class Shop:
    """A profile of one table, in process."""

    def __init__(self, path: Path, columns: int, rows: Rows, options: Options, tasks: int) -> None:
        self.columns = columns
        self.runner = InProcess(tasks)
        self.store = Store.create(path)
        feeds = {"t": feed(columns, rows)}
        pipeline.discover(self.runner, self.store, feeds, options, no_progress)

    def apply(
        self,
        inserts: Rows | None = None,
        deletes: Rows | None = None,
        updates: Rows | None = None,
        row_key: tuple[str, ...] = (),
        batch_id: str | None = None,
        dry_run: bool = False,
    ) -> Changes:
        feeds = [
            None if rows is None else feed(self.columns, rows, label)
            for rows, label in ((inserts, "inserts"), (deletes, "deletes"), (updates, "updates"))
        ]
        batch = pipeline.Batch(*feeds, row_key=row_key, batch_id=batch_id)
        return pipeline.apply(self.runner, self.store, "t", batch, no_progress, dry_run)

    @property
    def now(self) -> TableSnapshot:
        return snapshot(self.store).tables["t"]

    def places(self, sets: tuple[object, ...]) -> list[tuple[int, ...]]:
        """Keys or non-keys as column numbers."""
        return sorted(
            (tuple(int(name[1:]) for name in each.columns) for each in sets),  # type: ignore[attr-defined]
            key=lambda one: (len(one), one),
        )
