"""Files of rows that are quarantined, each with the rule that it breaks and a row that it clashes
with."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.types as at

from holdfast.kernels.arrays import I64
from holdfast.model.commits import Segment
from holdfast.model.date_forms import DateForm
from holdfast.model.errors import InputError
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import flush
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.segments import read_raw
from holdfast.tasks.shown import cells, plain, rows_as_text

RULE, CLASH = "_holdfast_rule", "_holdfast_clash"
"""The columns of a file of quarantined rows besides those of the rows."""


@dataclass(frozen=True)
class Shelf:
    """Where rows lie that others clash with: the segments of a table, and its columns."""

    segments: tuple[Segment, ...]
    names: tuple[str, ...]


@dataclass(frozen=True)
class Layout:
    """How a file of rows is written, and its columns."""

    format: str  # csv, json, parquet or orc
    names: tuple[str, ...]
    dialect: Dialect
    header: bool


@dataclass(frozen=True)
class Write:
    """Write rows of a segment that are quarantined, with the rule and the row they clash with."""

    root: str
    segment: Segment
    positions: I64
    rules: I64  # the place of each one's rule
    clashes: I64  # the id of a row; -1: there is none
    texts: tuple[str, ...]  # of the rules
    shelves: tuple[Shelf, ...]  # of each rule
    layout: Layout
    path: str  # which it keeps until a version is committed


def write(item: Write) -> Iterator[TaskResult]:
    """Write a file, whole, flushed or not at all, and again where a task is tried again."""
    root = Path(item.root)
    rows = read_raw(root, item.segment, item.positions)
    text: dict[tuple[int, int], str] = {}
    for rule, shelf in enumerate(item.shelves):
        wanted = item.clashes[(item.rules == rule) & (item.clashes >= 0)]
        shown = rows_as_text(item.root, shelf.segments, shelf.names, wanted)
        text |= {(rule, id_): each for id_, each in shown.items()}
    rules = [item.texts[rule] for rule in item.rules.tolist()]
    pairs = zip(item.rules.tolist(), item.clashes.tolist(), strict=True)
    clashes = [text.get(pair) for pair in pairs]
    names = [*item.layout.names, RULE, CLASH]
    extra = [pa.array(column, pa.string()) for column in (rules, clashes)]
    table = pa.Table.from_arrays([*rows.columns, *extra], names=names)
    target = Path(item.path)
    temporary = target.with_name(f"{target.name}.{uuid.uuid4().hex}")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _written(table, temporary, item.layout)
        with temporary.open("rb") as file:
            flush(file.fileno())
        temporary.replace(target)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise InputError(
            f"{target}: the quarantined rows cannot be written ({error.strerror or error}); "
            "name a folder that every worker can write to"
        ) from error
    yield TaskResult({"rows": table.num_rows})


def _written(table: pa.Table, path: Path, layout: Layout) -> None:
    if layout.format == "csv":
        lines = [(*layout.names, RULE, CLASH)] if layout.header else []
        content = [_line(names, layout.dialect) for names in lines]
        content += [_line(cells, layout.dialect) for cells in _cells(table, layout.dialect.dates)]
        path.write_bytes("".join(content).encode(layout.dialect.encoding, "backslashreplace"))
    elif layout.format == "json":
        with path.open("w", encoding="utf-8") as file:
            for cells in _cells(table):
                row = dict(zip(table.column_names, cells, strict=True))
                file.write(json.dumps(row, ensure_ascii=False) + "\n")
    elif layout.format == "orc":
        from pyarrow import orc

        orc.write_table(table, path)
    else:
        from pyarrow import parquet

        parquet.write_table(table, path)


def _cells(table: pa.Table, dates: DateForm | None = None) -> Iterator[tuple[Any, ...]]:
    columns = [[plain(cell) for cell in cells(column)] for column in table.columns]
    for place, kind in enumerate(table.schema.types):
        if dates and at.is_date32(kind):
            columns[place] = [day and dates.written(day) for day in table.column(place).to_pylist()]
    return zip(*columns, strict=True)


def _line(cells: Sequence[Any], dialect: Dialect) -> str:
    return dialect.delimiter.join(_cell(cell, dialect) for cell in cells) + "\n"


def _cell(cell: Any, dialect: Dialect) -> str:
    """A cell as the reader of lines takes it back."""
    if cell is None:
        return ""
    if isinstance(cell, bool):
        return "true" if cell else "false"
    text = cell if isinstance(cell, str) else json.dumps(cell)
    special = {dialect.delimiter, '"', "\r", "\n", dialect.escape}
    if not any(each in text for each in special if each):
        return text
    if dialect.escape:
        text = text.replace(dialect.escape, dialect.escape * 2)
    return '"' + text.replace('"', '""') + '"'
