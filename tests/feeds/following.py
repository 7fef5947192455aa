"""Profiles that follow folders, in process."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from holdfast import flow
from holdfast.feeds.contract import Bounds
from holdfast.feeds.followed import FeedTable, Followed
from holdfast.input.change_reading import ChangeInput
from holdfast.input.change_rows import ChangeRows
from holdfast.input.row_input import Columns
from holdfast.input.sources import Source
from holdfast.model.commits import TableRecord
from holdfast.model.following import Course, Failed, Stepped
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess, Parts
from holdfast.store import Store

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


def follower(store: Store, files: int | None = None, **settings: Any) -> flow.Follower:
    """What takes steps."""
    return flow.Follower(
        InProcess(1), store, as_input, no_progress, Bounds(files=files), **settings
    )


def follow(store: Store, *feeds: Followed, files: int | None = None, **settings: Any) -> Course:
    """Follow feeds to their heads; the steps are all told."""
    told: list[Stepped | Failed] = []
    reset = settings.pop("reset", False)
    course = flow.follow(follower(store, files, **settings), feeds, told.append, reset=reset)
    assert len(told) == course.steps + len(course.refused) + len(course.failed)
    return course
