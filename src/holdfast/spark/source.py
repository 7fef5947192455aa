"""Anything that Spark reads, as a row_input.

CSV and JSON are read as lines of text and parsed by our own tasks, so that they mean the same
whatever the session's settings. Columns go by position everywhere: names are ours, Spark sees c0,
c1, …
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t
from pyspark.sql.pandas.types import from_arrow_schema

from holdfast.input import footers, headers, parquet
from holdfast.input.row_input import Columns, RowInput
from holdfast.input.sources import (
    FORMATS,
    PARQUET,
    Source,
    files_in,
    is_local,
    local_file,
    named_file,
)
from holdfast.input.text_files import is_readable, text_input
from holdfast.input.text_inputs import csv_input, expect_names, json_input, typed_columns
from holdfast.model import thresholds
from holdfast.model.commits import SourceRecord
from holdfast.model.errors import HoldfastError, SchemaError, SourceError
from holdfast.spark import jobs
from holdfast.spark.runner import SparkRunner, is_on_this_machine
from holdfast.spark.types import arrow_type, carried, through_spark
from holdfast.tasks.text_files import COMPRESSED

_PACKAGES = {
    "avro": ("org.apache.spark:spark-avro_2.13:VERSION",),
    "delta": (
        "io.delta:delta-spark_2.13:VERSION",
        "spark.sql.extensions=io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog=org.apache.spark.sql.delta.catalog.DeltaCatalog",
    ),
    "iceberg": ("org.apache.iceberg:iceberg-spark-runtime-4.0_2.13:VERSION",),
}
"""Packages of formats that Spark comes without, and the settings that go with them."""


def from_frame(frame: DataFrame, label: str, size: int | None = None) -> RowInput:
    """The caller's DataFrame, as it is; ``size`` are its bytes, if they are known."""
    kinds = [field.dataType for field in frame.schema.fields]
    columns = _columns(list(frame.columns), kinds)
    return RowInput(label, columns, _joined(_positional(frame, kinds), size), SourceRecord())


def from_arrow(session: SparkSession, table: pa.Table, label: str) -> RowInput:
    """A table that is in memory here. Timestamps without a zone stay without one, whatever the
    session's settings."""
    try:
        columns = typed_columns(table.schema.names, table.schema.types)
        rows = table.cast(through_spark(table.schema))
        schema = from_arrow_schema(rows.schema, prefer_timestamp_ntz=True)
        # Of no rows Arrow makes arrays that Spark refuses, if there are types inside others.
        frame = session.createDataFrame(rows if table.num_rows else [], schema)
    except (PySparkException, pa.ArrowException) as failure:
        raise SchemaError(
            f"{label}: Spark cannot take it over ({jobs.cause(failure)}); cast the column or leave "
            "it out"
        ) from failure
    except SchemaError as wrong:
        raise SchemaError(f"{label}: {wrong}") from wrong
    kinds = [field.dataType for field in schema.fields]
    return RowInput(label, columns, _joined(_positional(frame, kinds), table.nbytes))


def from_source(
    session: SparkSession, source: Source, stored: SourceRecord | None = None
) -> RowInput:
    """A file, folder or table. ``stored`` says how the table's first rows were read."""
    if stored:
        source = source.like(stored)
    source.expect(stored)
    files = _of_tasks(session, source)
    if source.kind in ("csv", "json") and files and all(map(is_readable, files)):
        return text_input(SparkRunner(session), source, files, first=stored is None)
    if source.kind == PARQUET and files and (rows := _parquet(session, source, files)):
        return rows
    if source.kind == "csv":
        return _csv(session, source, first=stored is None)
    if source.kind == "json":
        return _json(session, source, first=stored is None)
    return _other(session, source)


def _of_tasks(session: SparkSession, source: Source) -> list[Path]:
    """The files that tasks can read themselves, without a detour through the JVM: on this machine
    they see what we see. Patterns are for Spark to understand."""
    path = local_file(source.path).absolute()
    if not is_on_this_machine(session) or not is_local(source.path) or not path.exists():
        return []
    return files_in(path)


def _parquet(session: SparkSession, source: Source, files: list[Path]) -> RowInput | None:
    """The row groups of files; None where only Spark knows what they mean, or what is wrong."""
    is_merged = session.conf.get("spark.sql.parquet.mergeSchema") == "true"
    if is_merged or source.options or any(map(footers.is_of_old_calendar, files)):
        return None
    try:
        return parquet.row_input(SparkRunner(session), source, files)
    except HoldfastError:
        return None


def _columns(names: list[str], kinds: list[t.DataType]) -> Columns:
    expect_names(names)
    arrow = [arrow_type(name, kind) for name, kind in zip(names, kinds, strict=True)]
    return Columns.of(names, [kind.simpleString() for kind in kinds], arrow)


def _positional(frame: DataFrame, kinds: list[t.DataType]) -> DataFrame:
    named = frame.toDF(*[f"c{i}" for i in range(len(kinds))])
    carry = [carried(f.col(f"c{i}"), kind).alias(f"c{i}") for i, kind in enumerate(kinds)]
    return named.select(*carry)


def _joined(rows: DataFrame, size: int | None) -> DataFrame:
    """Rows in no more partitions than are worth a task each, as far as their size is known. Spark
    gives every core a part, and every small file."""
    if size is None:
        return rows
    return rows.coalesce(max(1, -(-size // max(1, thresholds.current.joined_bytes))))


def _size(source: Source) -> int | None:
    """The bytes of a file, or of all in a folder, that can be seen here."""
    path = local_file(source.path)
    if source.kind == "table" or not is_local(source.path) or not path.exists():
        return None
    return sum(file.stat().st_size for file in files_in(path))


def _for_spark(path: str) -> str:
    """A path that Spark takes literally, even with characters that its patterns use."""
    if is_local(path) and local_file(path).exists():
        return re.sub(r"([\\\[\]{}*?])", r"\\\1", str(local_file(path).absolute()))
    if is_local(path):
        return str(local_file(path).absolute())  # Spark may have been started in another folder
    return path


# CSV


def _csv(session: SparkSession, source: Source, first: bool) -> RowInput:
    return csv_input(
        source,
        _first_lines(session, source),
        lambda whole: _lines(session, source, whole),
        lambda origin: _file(session, source, origin),
        first,
    )


def _lines(session: SparkSession, source: Source, whole: bool) -> DataFrame:
    """The lines of text files, or whole files, and where each comes from."""
    # Folders are looked through and lines end as where headers are looked for.
    reader = session.read.option("recursiveFileLookup", "true").option("lineSep", "\n")
    read = reader.text(_for_spark(source.path), wholetext=whole)
    # In SQL, one call to Spark and not one for every operator: batches feel the difference.
    # The bytes as they are, whatever they encode.
    line = "cast(value AS binary)" if whole else "concat(cast(value AS binary), X'0A')"
    # What ``_origin`` tells, plus one in the first block of a file, which begins with its header.
    first = "CASE WHEN _metadata.file_block_start = 0 THEN 1L ELSE 0L END"
    origin = f"xxhash64(_metadata.file_path) & -2L | {first}"
    return _joined(read.selectExpr(f"{line} AS line", f"{origin} AS origin"), _size(source))


def _origin(path: Column) -> Column:
    """An even number for a file: its name would cost more than many a line."""
    return f.xxhash64(path).bitwiseAND(f.lit(-2))


def _file(session: SparkSession, source: Source, origin: int) -> str | None:
    """The file that an origin stands for. Asked when something is wrong; no file is opened."""
    if not origin:
        return None
    if is_local(source.path) and local_file(source.path).is_file():
        return source.path
    files = session.read.format("binaryFile").option("recursiveFileLookup", "true")
    path = f.col("_metadata.file_path")
    rows = jobs.collect(
        session,
        lambda: (
            files.load(_for_spark(source.path))
            .where(_origin(path) == origin)
            .select(path.alias("path"))
            .limit(1)
        ),
    )
    if not rows:
        return None
    return named_file(source.path, unquote(rows[0]["path"]))


def _first_lines(session: SparkSession, source: Source) -> list[tuple[str, str]]:
    path = local_file(source.path)
    if is_local(source.path) and path.exists():
        files = files_in(path)
        if all(file.suffix in ("", ".csv", ".tsv", ".txt", *COMPRESSED) for file in files):
            lines = [(str(file), headers.first_line(file, source)) for file in files]
            return [(label, line) for label, line in lines if line is not None]
    reader = session.read.option("lineSep", "\n")
    whole = not source.dialect.by_lines
    start = f.substring(f.col("value").cast("binary"), 1, headers.LONGEST)
    rows = jobs.collect(
        session,
        lambda: (
            reader.text(_for_spark(source.path), wholetext=whole)
            .select(start.alias("line"))
            .limit(1)
        ),
    )
    first = [headers.first_text(io.BytesIO(bytes(row["line"])), source) for row in rows]
    return [(source.path, line) for line in first if line is not None]


def _ddl(session: SparkSession, ddl: str) -> t.StructType:
    try:
        return session.createDataFrame([], ddl).schema
    except PySparkException as failure:
        raise SchemaError(
            f"the schema {ddl!r} cannot be read ({str(failure).splitlines()[0]}); "
            'write it as "id bigint, name string"'
        ) from failure


# JSON


def _json(session: SparkSession, source: Source, first: bool) -> RowInput:
    return json_input(
        SparkRunner(session),
        source,
        _readable(source, lambda: _lines(session, source, source.multi_line)),
        lambda origin: _file(session, source, origin),
        first,
    )


# Everything else


def _parquet_files(source: Source) -> list[Path]:
    """The Parquet files that can be seen here."""
    if source.kind != PARQUET or not is_local(source.path):
        return []
    path = local_file(source.path).absolute()
    top = Path(path.anchor)
    places = [path] if path.exists() else sorted(top.glob(str(path.relative_to(top))))
    return [file for place in places for file in files_in(place)]


def _readable(source: Source, read: Callable[[], DataFrame]) -> DataFrame:
    """What Spark reads; an error that says what it cannot."""
    try:
        return read()
    except HoldfastError:
        raise
    except Exception as failure:
        if "Failed to find" in str(failure) and "data source" in str(failure):
            raise SourceError(
                f"{source.path}: Spark has no reader of the format {source.kind!r}; "
                f"{_remedy(source.kind)}"
            ) from failure
        raise SourceError(
            f"{source.path}: Spark cannot read it as {source.kind}: {jobs.cause(failure)}"
            f"{_setting_for(failure)}"
        ) from failure


def _remedy(kind: str) -> str:
    """What to do where Spark lacks a format."""
    if kind not in _PACKAGES:
        known = ", ".join(sorted({*FORMATS.values(), "table", *_PACKAGES}))
        return (
            f"check the name (well-known ones are {known}), or start Spark with the package that "
            "has it: --conf spark.jars.packages=GROUP:NAME:VERSION"
        )
    package, *settings = _PACKAGES[kind]
    needed = " ".join(
        f"--conf {setting}" for setting in (f"spark.jars.packages={package}", *settings)
    )
    return (
        f"the package {package.rpartition(':')[0]} has it. Start Spark with it: {needed} (with the "
        "version of the package that is made for your Spark; a session of your own or a Connect "
        "server needs the same settings when it is started)"
    )


def _paths(
    fields: list[t.StructField], flatten: bool, outer: tuple[str, ...] = ()
) -> Iterator[tuple[str, ...]]:
    """The path of every column; of those inside structs where these are flattened."""
    for field in fields:
        path = (*outer, field.name)
        if flatten and isinstance(field.dataType, t.StructType):
            yield from _paths(field.dataType.fields, True, path)
        else:
            yield path


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _flattened(frame: DataFrame) -> DataFrame:
    """With the fields of structs, whose names say where they were, in place of these."""
    return frame.select(
        *[
            f.col(".".join(map(_quoted, path))).alias(".".join(path))
            for path in _paths(frame.schema.fields, True)
        ]
    )


def _other(session: SparkSession, source: Source) -> RowInput:
    schema = _ddl(session, source.schema) if source.schema else None
    refused: pa.Schema | None = None

    def read() -> DataFrame:
        nonlocal refused
        if source.kind == "table":
            return session.read.table(source.path)
        reader = session.read.format(source.kind).options(**source.options)
        path = _for_spark(source.path)
        try:
            frame = (reader.schema(schema) if schema else reader).load(path)
            jobs.run(session, lambda: frame.schema)
        except Exception:
            # Spark refuses nanoseconds, and takes them as integers.
            refused = None if schema else footers.schema_of(_parquet_files(source))
            if refused is None:
                raise
            integers = from_arrow_schema(through_spark(refused), prefer_timestamp_ntz=True)
            frame = reader.schema(integers).load(path)
        return frame

    frame = _readable(source, read)
    footers.warn_of_cut_columns(source.path, _parquet_files(source))
    paths = [*_paths(frame.schema.fields, source.flatten)]
    if source.flatten:
        frame = _flattened(frame)
    kinds = [field.dataType for field in frame.schema.fields]
    columns, given = _columns(list(frame.columns), kinds), None
    if refused is not None:
        columns, given = footers.exactly(columns, paths, refused, source.round_nanoseconds)
    return RowInput(
        source.path,
        columns,
        _joined(_positional(frame, kinds), _size(source)),
        source.stored(),
        given=given,
        rounds=source.round_nanoseconds,
        file=lambda origin: _file(session, source, origin),
    )


def _setting_for(failure: Exception) -> str:
    """The setting of Spark that helps where footers cannot be seen."""
    settings = {
        "TIMESTAMP(NANOS": "spark.sql.legacy.parquet.nanosAsLong=true makes it read nanoseconds as "
        "integers",
        "UNSUPPORTED_TIME_TYPE": "spark.sql.timeType.enabled=true makes it read times",
    }
    return "".join(
        f"; the setting {advice}" for sign, advice in settings.items() if sign in str(failure)
    )
