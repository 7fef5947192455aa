"""Profiles that follow feeds, in process."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from holdfast import flow
from holdfast.feeds.contract import Bounds
from holdfast.feeds.followed import FeedTable, Followed
from holdfast.input.change_reading import ChangeInput
from holdfast.input.change_rows import ChangeRows
from holdfast.input.row_input import Columns, RowInput
from holdfast.input.sources import Source
from holdfast.model.commits import TableRecord
from holdfast.model.following import FeedFailure, FeedRun, FeedStep
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.process.source import from_rows
from holdfast.runtime.runner import InProcess, Parts
from holdfast.store import Store
from holdfast.tasks.segments import live_positions, read_raw

Change = tuple[str, Sequence[int | None]]


def write(folder: Path, name: str, changes: Sequence[Change]) -> None:
    """A file of changes, which gets its name when it is whole."""
    lines = [
        json.dumps({"_change_type": what, **{f"c{c}": cell for c, cell in enumerate(row)}})
        for what, row in changes
    ]
    folder.mkdir(exist_ok=True)
    (folder / f".{name}").write_text("\n".join(lines))
    (folder / f".{name}").rename(folder / name)


def feed(folder: Path, *row_key: str, name: str = "changes", **settings: Any) -> Followed:
    """A folder as a feed."""
    settings = {"reading": Source(".", "json"), "op_column": "_change_type", **settings}
    return Followed(name, str(folder), (FeedTable("t", row_key),), **settings)


def as_input(changes: ChangeRows, table: str, record: TableRecord) -> ChangeInput:
    """Change rows that are read in process."""
    columns = Columns.stored(record.columns)
    if isinstance(changes.rows, Parts):
        return ChangeInput.of_parts(changes, changes.rows, f"changes of {table}", columns)
    assert isinstance(changes.rows, tuple)
    return ChangeInput.of_files(changes, changes.rows, record.source, columns)


def as_given(changes: ChangeRows, table: str, record: TableRecord) -> list[RowInput]:
    """Change rows with all the columns that they have."""
    if changes.given is not None:
        return [changes.given(InProcess(1))]
    if isinstance(changes.rows, Parts):
        columns = Columns.stored(record.columns)
        return [ChangeInput.as_given(changes, changes.rows, f"changes of {table}", columns)]
    assert isinstance(changes.rows, tuple)
    stored = replace(record.source, schema=None)
    return [from_rows(InProcess(1), each, each.path, stored) for each in changes.rows]


def profiled(path: Path, tables: Mapping[str, Mapping[str, pa.DataType]]) -> Store:
    """A profile of tables without rows."""
    store = Store.create(path)
    inputs = {}
    for table, columns in tables.items():
        told = Columns.of([*columns], [_NAMES.get(k, str(k)) for k in columns.values()],
                          [*columns.values()])  # fmt: skip
        inputs[table] = RowInput(table, told, pa.schema([*columns.items()]).empty_table())
    flow.profile(InProcess(1), store, inputs, Options(kinds=("keys",)), no_progress)
    return store


_NAMES = {
    pa.int32(): "int", pa.int64(): "bigint", pa.bool_(): "boolean", pa.date32(): "date",
    pa.timestamp("us", "UTC"): "timestamp", pa.float64(): "double",
    pa.decimal128(10, 2): "decimal(10,2)",
}  # fmt: skip


def stored(store: Store, table: str = "t") -> list[tuple[Any, ...]]:
    """The rows that a profile has, in no order."""
    path, found = Path(store.path), []
    for segment in store.read().table(table).segments:
        live = live_positions(path, segment)
        found += [tuple(row.values()) for row in read_raw(path, segment, live).to_pylist()]
    return found


def follower(store: Store, files: int | None = None, **settings: Any) -> flow.Follower:
    """What takes steps."""
    bounds = Bounds(settings.pop("rows", None), files, settings.pop("versions", None))
    return flow.Follower(InProcess(1), store, as_input, no_progress, bounds, **settings)


def follow(store: Store, *feeds: Followed, files: int | None = None, **settings: Any) -> FeedRun:
    """Follow feeds to their heads; the steps are all told."""
    told: list[FeedStep | FeedFailure] = []
    reset = settings.pop("reset", False)
    course = flow.follow(follower(store, files, **settings), feeds, told.append, reset=reset)
    assert len(told) == course.steps + len(course.refused) + len(course.failed)
    return course
