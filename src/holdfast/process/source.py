"""Files and tables in memory as row inputs, which tasks of this process read themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

from holdfast.input.file_parts import files_of
from holdfast.input.row_input import RowInput
from holdfast.input.sources import PARQUET, Source, is_local
from holdfast.input.text_files import is_readable, text_input
from holdfast.input.text_inputs import typed_columns
from holdfast.model.commits import SourceRecord
from holdfast.model.errors import InputError, SchemaError
from holdfast.runtime.runner import Runner

if TYPE_CHECKING:
    from holdfast.input.validation import Readable

_SPARK = "leave out --engine process (or HOLDFAST_ENGINE), so that Spark reads it"


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
    files = files_of(source)
    if kind == PARQUET:
        from holdfast.input import parquet

        return parquet.row_input(runner, source, files)
    for file in files:
        if not is_readable(file):
            raise InputError(f"{file}: only Spark reads {file.suffix} files; {_SPARK}")
    return text_input(runner, source, files, stored is None)
