"""Parquet files with columns that Spark refuses: what their footers say of them.

Spark has no type for nanoseconds and, in most settings, none for a time of day. It reads the
integers that such columns are, if it is told to.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pyarrow.types as at

from holdfast.input.row_input import Columns
from holdfast.input.type_names import beyond_spark, exact_type
from holdfast.model.errors import SchemaError
from holdfast.tasks import leaves
from holdfast.tasks.arrow_types import known_type
from holdfast.tasks.nanoseconds import in_microseconds, is_nano

log = logging.getLogger("holdfast")

_ONLY_SPARKS = re.compile(rb'"type":"(interval[^"]*|variant|geometry[^"]*|geography[^"]*|udt)"')
"""Types in the schema that Spark leaves in the files that it writes."""


def schema_of(files: Sequence[Path]) -> pa.Schema | None:
    """The columns of some files, if that helps: there are some that Spark refuses. They are as in
    the first file, which is how Spark sees a folder, too; those that it refuses must be alike in
    all files, because the integers do not tell what they count."""
    schemas = {file: _schema(file) for file in files}
    first, schema = next(iter(schemas.items()), (None, None))
    refused = [field for field in schema or () if leaves.has(field.type, beyond_spark)]
    for file, other in schemas.items():
        for column in refused:
            place = other.get_field_index(column.name) if other else -1
            if other and place >= 0 and other.field(place).type != column.type:
                raise SchemaError(
                    f"{file}: column {column.name!r} is {other.field(place).type}, but "
                    f"{column.type} in {first}; write all files with one type"
                )
    return schema if refused else None


def _schema(file: Path) -> pa.Schema | None:
    try:
        read = pq.read_schema(file)
    except (pa.ArrowException, OSError):
        return None  # what is wrong with it is Spark's to say
    for column in read:
        if leaves.has(column.type, _too_wide):
            raise SchemaError(
                f"{file}: column {column.name!r} is {column.type}, and Spark's decimals have at "
                "most 38 digits; write it as one of these, or as text"
            )
    return pa.schema([column.with_type(leaves.replaced(column.type, _seen)) for column in read])


def _too_wide(leaf: pa.DataType) -> bool:
    return bool(at.is_decimal(leaf) and leaf.precision > 38)


def _seen(leaf: pa.DataType) -> pa.DataType:
    """What Spark takes a type for: a duration is an integer in Parquet. Times stay as they are."""
    if at.is_duration(leaf):
        return pa.int64()
    return leaf if at.is_time(leaf) else known_type(leaf)


def seen(file: Path) -> pa.Schema:
    """The columns of a file with the types that Spark has for them, or in place of those that it
    refuses the ones that these are stored as."""
    with pq.ParquetFile(file, coerce_int96_timestamp_unit="us") as opened:
        schema, footer = opened.schema_arrow, opened.metadata
    written = (footer.metadata or {}).get(b"org.apache.spark.sql.parquet.row.metadata", b"")
    if only_sparks := _ONLY_SPARKS.search(written):
        raise SchemaError(
            f"{file}: has a column of Spark's type {only_sparks[1].decode()}, which only Spark "
            "reads; leave out --engine process (or HOLDFAST_ENGINE)"
        )
    places = (footer.schema.column(place) for place in range(footer.num_columns))
    instants = {leaf.path.split(".")[0] for leaf in places if leaf.physical_type == "INT96"}

    def type_of(field: pa.Field) -> pa.DataType:
        def changed(leaf: pa.DataType) -> pa.DataType:
            if field.name in instants and leaf == pa.timestamp("us"):
                return pa.timestamp("us", "UTC")
            return known_type(_seen(leaf))

        return leaves.replaced(field.type, changed)

    return pa.schema([pa.field(field.name, type_of(field)) for field in schema])


def is_of_old_calendar(file: Path) -> bool:
    """Whether old dates of a file are in a calendar that Spark converts from."""
    try:
        written = pq.read_metadata(file).metadata or {}
    except (pa.ArrowException, OSError):
        return False
    version = written.get(b"org.apache.spark.version", b"3")
    return version < b"3" or any(key.startswith(b"org.apache.spark.legacy") for key in written)


def warn_of_cut_columns(path: str, files: Sequence[Path]) -> None:
    """Name the columns of the first file whose timestamps lose nanoseconds."""
    for name in [name for file in files[:1] for name in _cut_columns(file)]:
        log.warning(
            "%s: column %r, in INT96, is read to the microsecond; nanoseconds are kept if it is "
            "written as TIMESTAMP(NANOS)",
            path,
            name,
        )


def _cut_columns(file: Path) -> list[str]:
    """The columns of a file whose timestamps lose nanoseconds, if they have any: those in INT96.
    What Spark wrote has none."""
    try:
        read = pq.read_metadata(file)
    except (pa.ArrowException, OSError):
        return []
    if b"org.apache.spark.version" in (read.metadata or {}):
        return []
    leaves_ = (read.schema.column(place) for place in range(read.num_columns))
    return sorted({leaf.path for leaf in leaves_ if leaf.physical_type == "INT96"})


def exactly(
    columns: Columns, paths: Sequence[Sequence[str]], refused: pa.Schema, rounds: bool
) -> tuple[Columns, pa.Schema]:
    """The columns that Spark reads, with the types that it refuses in place of integers; and what
    those integers are."""
    types, given_types = list(columns.types), [field.type for field in columns.given]
    given = list(given_types)
    for place, path in enumerate(paths):
        kind = _type_at(refused, path)
        if kind is not None:
            given[place] = kind
            kind = in_microseconds(kind) if rounds and is_nano(kind) else kind
            kind = leaves.replaced(kind, known_type)
            types[place], given_types[place] = exact_type(columns.names[place], kind)
    seen = pa.schema(list(zip(columns.given.names, given, strict=True)))
    return Columns.of(list(columns.names), types, given_types), seen


def _type_at(schema: pa.Schema, path: Sequence[str]) -> pa.DataType | None:
    """The type of a column, or of a field inside it, that Spark refuses; None: it does not."""
    kind: pa.DataType = pa.struct(list(schema))
    for name in path:
        place = kind.get_field_index(name)
        if place < 0:
            return None  # a column that is in the names of folders
        kind = kind.field(place).type
    return kind if leaves.has(kind, beyond_spark) else None
