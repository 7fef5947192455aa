"""Anything that Spark reads, as a feed.

CSV is read as lines of text and parsed by our own tasks, so that it means the same whatever the
session's settings. Columns go by position everywhere: names are ours, Spark sees c0, c1, …
"""

from __future__ import annotations

import gzip
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql import types as t

from holdfast.input.row_input import Columns, Feed
from holdfast.input.sources import Source, is_local, local_file
from holdfast.model.errors import InputError, SchemaError, SourceError
from holdfast.spark import jobs
from holdfast.spark.types import arrow_type, carried
from holdfast.tasks import text

_CORRUPT = "__holdfast_corrupt_record"


def from_frame(frame: DataFrame, label: str) -> Feed:
    """The caller's DataFrame, as it is."""
    kinds = [field.dataType for field in frame.schema.fields]
    columns = _columns(list(frame.columns), kinds)
    return Feed(label, columns, _positional(frame, kinds), {"format": "dataframe"})


def from_source(
    session: SparkSession, source: Source, stored: dict[str, Any] | None = None
) -> Feed:
    """A file, folder or table. ``stored`` says how the table's first rows were read."""
    if stored and stored.get("format") == source.kind:
        source = replace(
            source,
            options={**stored["options"], **source.options},
            all_text=stored["all_text"],
            multi_line=stored["multi_line"] or source.multi_line,
            delimiter=source.delimiter or stored["delimiter"],
            header=stored["header"],
            schema=stored["schema"],
        )
    source.expect(stored)
    if source.kind == "csv":
        return _csv(session, source)
    return _other(session, source, first=stored is None)


def _columns(names: list[str], kinds: list[t.DataType]) -> Columns:
    for name in names:
        if names.count(name) > 1:
            raise SchemaError(f"the column name {name!r} occurs twice; rename one of them")
    arrow = [arrow_type(name, kind) for name, kind in zip(names, kinds, strict=True)]
    return Columns.of(names, [kind.simpleString() for kind in kinds], arrow)


def _positional(frame: DataFrame, kinds: list[t.DataType]) -> DataFrame:
    named = frame.toDF(*[f"c{i}" for i in range(len(kinds))])
    carry = [carried(f.col(f"c{i}"), kind).alias(f"c{i}") for i, kind in enumerate(kinds)]
    return named.select(*carry)


def _for_spark(path: str) -> str:
    """A path that Spark takes literally, even with characters that its patterns use."""
    if is_local(path) and local_file(path).exists():
        return re.sub(r"([\\\[\]{}*?])", r"\\\1", str(local_file(path).absolute()))
    return path


# CSV


def _csv(session: SparkSession, source: Source) -> Feed:
    for name in source.options:
        raise InputError(
            f"{source.path}: CSV takes no Spark option ({name!r} was given); "
            "use --delimiter, --schema, --all-text, --multi-line or --no-header"
        )
    names = _header(session, source)
    columns, guessed = _csv_columns(session, source, names)
    # Folders are looked through and lines end as where headers are looked for.
    reader = session.read.option("recursiveFileLookup", "true").option("lineSep", "\n")
    read = reader.text(_for_spark(source.path), wholetext=source.multi_line)
    origin = f.when(f.col("_metadata.file_block_start") == 0, f.xxhash64("_metadata.file_path"))
    line: Column = f.col("value")
    if not source.multi_line:
        line = f.concat(line, f.lit("\n"))
    return Feed(
        source.path,
        columns,
        read.select(line.alias("line"), origin.alias("origin")),
        source.stored(),
        lines=source.separator,
        header=source.header,
        whole=source.multi_line,
        guessed=guessed,
    )


def _csv_columns(session: SparkSession, source: Source, names: list[str]) -> tuple[Columns, bool]:
    """The columns as they are known before reading, and whether their types are a guess."""
    if source.schema is not None:
        given = _ddl(session, source.schema)
        wanted = [field.name for field in given.fields]
        if source.header and sorted(wanted) != sorted(names):
            raise SchemaError(
                f"{source.path}: the schema names {', '.join(wanted)}, but the file has "
                f"{', '.join(names)}"
            )
        kinds = {field.name: field.dataType for field in given.fields}
        names = names if source.header else wanted
        return _columns(names, [kinds[name] for name in names]), False
    count = len(names)
    return Columns.of(names, ["string"] * count, [pa.string()] * count), not source.all_text


def _header(session: SparkSession, source: Source) -> list[str]:
    """The column names: every file's own header, which must all be alike."""
    first: list[str] | None = None
    for label, line in _first_lines(session, source):
        found = text.header(line, source.separator)
        if isinstance(found, text.Trouble):
            if source.header:
                raise SourceError(
                    f"{label}: the header is malformed, expected {found.expected}: {line!r}"
                )
            found = [f"_{i}" for i in range(line.count(source.separator) + 1)]
        if not source.header:
            found = [f"_{i + 1}" for i in range(len(found))]
        if first is not None and found != first:
            raise SchemaError(
                f"{label}: has the columns {', '.join(found)}, unlike the files beside it "
                f"({', '.join(first)})"
            )
        first = found
    if first is None:
        raise SourceError(f"{source.path}: is empty; expected a header line with column names")
    return first


def _first_lines(session: SparkSession, source: Source) -> list[tuple[str, str]]:
    path = local_file(source.path)
    if is_local(source.path) and path.exists():
        files = [path] if path.is_file() else sorted(
            each for each in path.rglob("*")
            if each.is_file() and not _hidden(each.relative_to(path))
        )  # fmt: skip
        if all(each.suffix in ("", ".csv", ".tsv", ".txt", ".gz") for each in files):
            lines = [(str(each), _first_line(each, source.multi_line)) for each in files]
            return [(label, line) for label, line in lines if line is not None]
    rows = jobs.collect(session, lambda: session.read.text(_for_spark(source.path)).limit(1))
    return [(source.path, row["value"]) for row in rows]


def _hidden(path: Path) -> bool:
    """Whether Spark passes a file over: its own notes, and what systems hide."""
    return any(part.startswith(("_", ".")) for part in path.parts)


def _first_line(path: Path, multi_line: bool) -> str | None:
    """The first record of a file; None if it is empty."""
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            line = file.readline(1 << 20)
            while multi_line and line.count(b'"') % 2 and (more := file.readline(1 << 20)):
                line += more
            return line.decode("utf-8-sig").rstrip("\r\n") if line else None
    except (OSError, EOFError, UnicodeDecodeError) as failure:
        raise SourceError(f"{path}: cannot be read as UTF-8 text ({failure})") from failure


def _ddl(session: SparkSession, ddl: str) -> t.StructType:
    try:
        return session.createDataFrame([], ddl).schema
    except PySparkException as failure:
        raise SchemaError(
            f"the schema {ddl!r} cannot be read ({str(failure).splitlines()[0]}); "
            'write it as "id bigint, name string"'
        ) from failure


# Everything else


def _no_more_than(stored: t.StructType, found: t.StructType, label: str) -> t.StructType:
    """The stored schema, if the records have no further fields. JSON leaves nulls out, so a
    field that no record has is null in all of them."""
    added = [each for each in found.names if each not in (*stored.names, "_corrupt_record")]
    if added:
        raise SchemaError(
            f"{label} has the column {added[0]!r}, which the table does not; it has "
            f"{', '.join(stored.names)}"
        )
    return stored


def _other(session: SparkSession, source: Source, first: bool) -> Feed:
    options = dict(source.options)
    corrupt = source.kind == "json"
    schema: t.StructType | None = _ddl(session, source.schema) if source.schema else None
    try:
        if source.kind == "table":
            frame = session.read.table(source.path)
        else:
            if source.kind == "json":
                # Timestamps without a zone are read in ours, not in the session's.
                options.setdefault("timeZone", "UTC")
                options.setdefault("multiLine", str(source.multi_line).lower())
                options.setdefault("primitivesAsString", str(source.all_text).lower())
            reader = session.read.format(source.kind).options(**options)
            path = _for_spark(source.path)
            if schema is None or (corrupt and not first):
                found = jobs.run(session, lambda: reader.load(path).schema)
                schema = _no_more_than(schema, found, source.path) if schema else found
            if corrupt:
                schema = t.StructType([x for x in schema.fields if x.name != "_corrupt_record"])
                reader = reader.option("columnNameOfCorruptRecord", _CORRUPT)
                schema = schema.add(_CORRUPT, t.StringType())
            frame = reader.schema(schema).load(path)
        fields = frame.schema.fields
    except SchemaError:
        raise
    except Exception as failure:
        raise SourceError(
            f"{source.path}: Spark cannot read it as {source.kind}: {jobs.cause(failure)}"
        ) from failure
    data = fields[:-1] if corrupt else fields
    columns = _columns([each.name for each in data], [each.dataType for each in data])
    stored = source.stored()
    if corrupt and first:
        stored["schema"] = ", ".join(
            f"`{each.name.replace('`', '``')}` {each.dataType.simpleString()}" for each in data
        )
    rows = _positional(frame, [each.dataType for each in fields])
    return Feed(source.path, columns, rows, stored, corrupt=corrupt)
