"""Parquet files as a row input: their columns as Spark has them, and their row groups as parts."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as at

from holdfast.input import footers, type_names
from holdfast.input.file_parts import packed, part_bytes
from holdfast.input.row_input import RowInput
from holdfast.input.sources import Source, local_file, named_file
from holdfast.input.text_inputs import flattened, typed_columns
from holdfast.model.errors import SourceError
from holdfast.runtime.runner import Parts, Runner
from holdfast.tasks import leaves
from holdfast.tasks.nanoseconds import in_microseconds, is_nano
from holdfast.tasks.parquet_files import ParquetRows, RowGroups

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What folders call the value that is null."""


def row_input(runner: Runner, source: Source, files: Sequence[Path]) -> RowInput:
    """The rows of Parquet files, which have the columns of the first; one that another file lacks
    is null there."""
    if not files:
        raise SourceError(f"{source.path}: there are no Parquet files in it")
    footers.schema_of(files)  # refuses what no engine reads
    opened = {file: _metadata(source, file) for file in files}
    if source.schema:
        schema = type_names.parsed(source.schema)
    else:
        schema = footers.seen(files[0])
    folders, of_file = _folders(source, files, schema.names)
    fields = [*flattened(schema, source.flatten)]
    kinds = [*(field.type for _, field in fields), *(field.type for field in folders)]
    names = [*(".".join(path) for path, _ in fields), *folders.names]
    stored = [
        leaves.replaced(
            kind,
            lambda leaf: (
                in_microseconds(leaf) if source.round_nanoseconds and is_nano(leaf) else leaf
            ),
        )
        for kind in kinds
    ]
    given = pa.schema([(f"c{place}", kind) for place, kind in enumerate(kinds)])
    parts = [
        (RowGroups(str(file), (group,), of_file[file]), _size(footer, group))
        for file, footer in opened.items()
        for group in range(footer.num_row_groups)
    ]
    footers.warn_of_cut_columns(source.path, files)
    most = part_bytes(sum(size for _, size in parts), runner.tasks)
    return RowInput(
        source.path,
        typed_columns(names, stored),
        Parts(
            given,
            packed(parts, most),
            ParquetRows(tuple(path for path, _ in fields), given),
        ),
        source.stored(),
        given=given,
        rounds=source.round_nanoseconds,
    )


def _metadata(source: Source, file: Path) -> pq.FileMetaData:
    try:
        return pq.read_metadata(file)
    except (pa.ArrowException, OSError) as error:
        name = named_file(source.path, str(file))
        raise SourceError(f"{name}: cannot be read as Parquet ({error})") from error


def _size(footer: pq.FileMetaData, group: int) -> int:
    """The bytes of a row group as they lie in the file."""
    of_group = footer.row_group(group)
    return sum(of_group.column(k).total_compressed_size for k in range(of_group.num_columns))


def _folders(
    source: Source, files: Sequence[Path], names: Sequence[str]
) -> tuple[pa.Schema, dict[Path, tuple[Any, ...]]]:
    """The columns that the names of folders have, such as ``day=2026-01-31``, with types as Spark
    guesses them; and the values of each file."""
    top = local_file(source.path).absolute()
    inner = {file: file.parent.relative_to(top).parts if top.is_dir() else () for file in files}
    texts = {file: dict(part.split("=", 1) for part in parts if "=" in part)
             for file, parts in inner.items()}  # fmt: skip
    first = [*texts[files[0]]]
    for file in files:
        if [*texts[file]] != first or len(texts[file]) != len(inner[file]):
            raise SourceError(
                f"{named_file(source.path, str(file))}: is in a folder unlike the others: all "
                "files lie in one folder, or in folders that are named after the same columns, "
                "such as day=2026-01-31; name the files with a pattern"
            )
    known = {name.casefold() for name in names}
    if clash := [name for name in first if name.casefold() in known]:
        raise SourceError(
            f"{source.path}: folders are named after the column {clash[0]!r}, which the files "
            "have, too; rename one of them"
        )
    columns = [[_value(texts[file][name]) for file in files] for name in first]
    kinds = [_kind(source, column) for column in columns]
    values = [
        [_as_kind(value, kind) for value in column]
        for column, kind in zip(columns, kinds, strict=True)
    ]
    schema = pa.schema(list(zip(first, kinds, strict=True)))
    rows = zip(*values, strict=True) if values else [()] * len(files)
    return schema, dict(zip(files, map(tuple, rows), strict=True))


def _value(text: str) -> str | None:
    return None if text == _NULL else unquote(text)


def _kind(source: Source, texts: Sequence[str | None]) -> pa.DataType:
    """The type that Spark guesses for the values of a column in the names of folders."""
    given = [text for text in texts if text is not None]
    if any(re.match(r"\d{4}-\d{1,2}-\d{1,2}[ T]\d", text) for text in given):
        raise SourceError(
            f"{source.path}: folders are named after times, such as {given[0]!r}, which only Spark "
            "reads; leave out --engine process (or HOLDFAST_ENGINE)"
        )
    for kind in (pa.int32(), pa.int64(), pa.float64(), pa.date32()):
        try:
            for text in given:
                _as_kind(text, kind)
        except (ValueError, pa.ArrowInvalid, OverflowError):
            continue
        return kind if given else pa.string()
    return pa.string()


def _as_kind(text: str | None, kind: pa.DataType) -> Any:
    if text is None or at.is_string(kind):
        return text
    if at.is_integer(kind):
        return pa.scalar(int(text), kind).as_py()
    if at.is_date(kind):
        return date.fromisoformat(text)
    return float(text)
