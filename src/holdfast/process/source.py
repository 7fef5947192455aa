"""Files and tables in memory as row inputs, which tasks of this process read themselves."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pyarrow as pa

from holdfast.input import headers
from holdfast.input.row_input import RowInput
from holdfast.input.sources import (
    PARQUET,
    Source,
    files_in,
    is_hidden,
    is_local,
    local_file,
    named_file,
)
from holdfast.input.text_inputs import csv_input, json_input, typed_columns
from holdfast.model import thresholds
from holdfast.model.commits import SourceRecord
from holdfast.model.errors import InputError, SchemaError, SourceError
from holdfast.runtime.runner import Parts, Runner
from holdfast.tasks import text_files
from holdfast.tasks.text_files import COMPRESSED, FilePart

if TYPE_CHECKING:
    from holdfast.input.validation import Readable

P = TypeVar("P")

_MOST = 128 << 20
"""Bytes of files that a task reads, at most, if they can be divided."""

_SPARK = "leave out --engine process (or HOLDFAST_ENGINE), so that Spark reads it"

_UNREADABLE = (".snappy", ".lz4", ".deflate")
"""Compressed files that Hadoop has a form of its own for."""


def from_rows(
    runner: Runner, rows: Readable, label: str, stored: SourceRecord | None = None
) -> RowInput:
    """Rows from wherever they come. ``stored`` says how the table's first rows were read."""
    if isinstance(rows, Source):
        return _from_source(runner, rows, stored)
    if not isinstance(rows, pa.Table):
        raise InputError(
            f"{label}: only Spark reads a Spark DataFrame, and the engine is this process; leave "
            "the engine out, or hand over rows.toArrow()"
        )
    try:
        columns = typed_columns(rows.schema.names, rows.schema.types)
    except SchemaError as wrong:
        raise SchemaError(f"{label}: {wrong}") from wrong
    rounds = stored is not None and stored.round_nanoseconds
    return RowInput(label, columns, rows.rename_columns(columns.schema.names), rounds=rounds)


def _from_source(runner: Runner, source: Source, stored: SourceRecord | None) -> RowInput:
    if stored:
        source = source.like(stored)
    source.expect(stored)
    kind = source.kind
    if kind not in ("csv", "json", PARQUET):
        what = "a table of the catalog" if kind == "table" else f"the format {kind!r}"
        raise InputError(f"{source.path}: only Spark reads {what}; {_SPARK}")
    if not is_local(source.path):
        raise InputError(
            f"{source.path}: without Spark only files that this machine sees are read; {_SPARK}, "
            "or copy it"
        )
    for name in source.options:
        raise InputError(
            f"{source.path}: {name!r} is an option of Spark's reader; leave it out, or {_SPARK}"
        )
    files = _files(source)
    if kind == PARQUET:
        from holdfast.process import parquet

        return parquet.row_input(runner, source, files)
    for file in files:
        if file.suffix in _UNREADABLE:
            raise InputError(f"{file}: only Spark reads {file.suffix} files; {_SPARK}")
    by_origin = {2 * number: file for number, file in enumerate(files, start=1)}

    def lines(whole: bool) -> Parts:
        return _lines(by_origin, runner.tasks, whole)

    def named(origin: int) -> str | None:
        return named_file(source.path, str(by_origin[origin])) if origin in by_origin else None

    if kind == "json":
        return json_input(runner, source, lines(source.multi_line), named, stored is None)
    first_lines = _first_lines(source, files)
    return csv_input(source, first_lines, lines, named, stored is None)


def _first_lines(source: Source, files: Sequence[Path]) -> list[tuple[str, str]]:
    """Those of all files in a folder; of files that match a pattern, tasks compare the others with
    the first."""
    lines = ((file, headers.first_line(file, source)) for file in files)
    given = ((named_file(source.path, str(file)), line) for file, line in lines if line is not None)
    return list(given if local_file(source.path).exists() else islice(given, 1))


def _files(source: Source) -> list[Path]:
    """The files of a source: itself, those in a folder, or those that match a pattern."""
    path = local_file(source.path).absolute()
    if path.exists():
        return files_in(path)
    return [file for match in _matching(path) for file in files_in(match)]


def _matching(pattern: Path) -> list[Path]:
    """What matches a pattern as Hadoop understands it: with ``*``, ``?``, ``[a-c]``, ``{a,b}``."""
    found: dict[Path, None] = {}
    for plain in _alternatives(str(pattern)):
        top = Path(Path(plain).anchor)
        rest = str(Path(plain).relative_to(top)).replace("**", "*").replace("[^", "[!")
        matches = top.glob(re.sub(r"\\(.)", r"[\1]", rest))
        found |= dict.fromkeys(path for path in matches if not is_hidden(Path(path.name)))
    if not found:
        raise SourceError(f"{pattern}: no file or folder matches")
    return sorted(found)


def _alternatives(pattern: str) -> Iterator[str]:
    """The patterns that one with ``{a,b}`` in it stands for."""
    match = re.search(r"(?<!\\)\{([^{}]*)\}", pattern)
    if match is None:
        yield pattern
        return
    for part in match[1].split(","):
        yield from _alternatives(pattern[: match.start()] + part + pattern[match.end() :])


def _lines(files: dict[int, Path], tasks: int, whole: bool) -> Parts:
    """The lines of text files, or whole files."""
    sizes = {origin: file.stat().st_size for origin, file in files.items()}
    most = part_bytes(sum(sizes.values()), tasks)
    parts: list[tuple[FilePart, int]] = []
    for origin, file in files.items():
        size = sizes[origin]
        if whole or file.suffix in COMPRESSED:
            parts.append((FilePart(str(file), origin), size))
            continue
        count = max(1, -(-size // most))
        cuts = [size * k // count for k in range(count + 1)]
        parts += [
            (FilePart(str(file), origin, start, end), end - start) for start, end in pairwise(cuts)
        ]
    fetch = text_files.files if whole else text_files.lines
    return Parts(text_files.SCHEMA, packed(parts, most), fetch)


def part_bytes(total: int, tasks: int) -> int:
    """How many bytes a task reads: no fewer than are worth a task, and of much as many as all tasks
    at once read in equal shares."""
    return max(thresholds.current.joined_bytes, min(_MOST, -(-total // tasks)), 1)


def packed(parts: Iterable[tuple[P, int]], most: int) -> tuple[tuple[P, ...], ...]:
    """Parts with their sizes, one after the other in tasks that have about so many bytes."""
    tasks: list[list[P]] = []
    room = 0
    for part, size in parts:
        if not tasks or size > room:
            tasks.append([])
            room = most
        tasks[-1].append(part)
        room -= size
    return tuple(map(tuple, tasks))
