"""Files of change rows, which a task reads whole, in their order, as typed rows."""

from __future__ import annotations

import bz2
import gzip
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from io import FileIO
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.types as at
from pyarrow import orc
from pyarrow import parquet as pq

from holdfast.model.errors import HoldfastError, SchemaError, SourceError
from holdfast.model.names import to_alter
from holdfast.runtime.result import TaskResult
from holdfast.tasks import text
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.ingest import Ingest, Tally, fitted, parsed_lines
from holdfast.tasks.json_records import split
from holdfast.tasks.json_rows import Reader
from holdfast.tasks.text import Trouble

_OPENED: dict[str, Callable[[str], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".zst": lambda path: pa.CompressedInputStream(path, "zstd"),
}
"""How compressed files are opened; all others are read as they are."""

_PLAIN = Dialect()

_CHUNK = 1 << 23


@dataclass(frozen=True)
class ChangeFiles:
    """Reads files of change rows: ``schema`` are the columns that are wanted, by name. Those of
    ``ignored`` are passed over, and any others are an error."""

    kind: str  # csv, json, parquet or orc
    schema: pa.Schema
    ignored: frozenset[str]
    dialect: Dialect = _PLAIN
    header: bool = True
    whole: bool = False  # a record may go over several lines
    flatten: bool = False  # the fields of structs are columns
    rounds: bool = False  # nanoseconds become whole microseconds

    def __call__(self, path: str) -> Iterator[pa.RecordBatch]:
        """The rows of a file."""
        try:
            read = {"csv": self._csv, "json": self._json, "parquet": self._parquet}
            yield from read.get(self.kind, self._orc)(path)
        except (OSError, EOFError, pa.ArrowException) as error:
            raise SourceError(f"{path}: cannot be read as {self.kind} ({error})") from error

    def _csv(self, path: str) -> Iterator[pa.RecordBatch]:
        names = self.schema.names
        if self.header:
            with opened(path) as file:
                first = file.read(_CHUNK).partition(b"\n")[0]
            names = self._header(path, first)
        fields = [
            self.schema.field(name) if name in self.schema.names else pa.field(name, pa.string())
            for name in names
        ]
        spec = Ingest(
            root="", prefix="", schema=pa.schema(fields), names=tuple(names),
            lines=self.dialect, header=self.header, whole=self.whole,
        )  # fmt: skip
        for item in parsed_lines(self._lines(path), spec, Tally()):
            if isinstance(item, TaskResult):
                raise _error(path, item.facts["trouble"])
            yield item.select(self.schema.names)

    def _header(self, path: str, line: bytes) -> list[str]:
        decoded = line.decode(self.dialect.encoding, "replace").removeprefix("\ufeff")
        names = text.header(decoded.rstrip("\r\n"), self.dialect)
        if isinstance(names, Trouble):
            raise SourceError(
                f"{path}: the header is malformed, expected {names.expected}: {names.line!r}"
            )
        self._expect(path, names)
        return names

    def _expect(self, path: str, names: list[str]) -> None:
        """Raise an error if a file has other columns than the table."""
        wanted = self.schema.names
        missing = [name for name in wanted if name not in names]
        added = [name for name in names if name not in wanted and name not in self.ignored]
        if missing or added:
            lacks = f"lacks the column {missing[0]!r}" if missing else ""
            has = f"has the column {added[0]!r}, which is not expected" if added else ""
            raise SchemaError(
                f"{path} {' and '.join(filter(None, [lacks, has]))}; expected {', '.join(wanted)}"
                f"{to_alter(missing, added)}"
            )

    def _lines(self, path: str) -> Iterator[pa.RecordBatch]:
        """The lines of a file, each with its end, as all of the first block of one file; or, with
        ``whole``, the file as one of them."""
        with opened(path) as file:
            if self.whole:
                yield _batch([file.read()])
                return
            rest = b""
            while chunk := file.read(_CHUNK):
                *lines, rest = (rest + chunk).split(b"\n")  # a long line is rare
                if lines:
                    yield _batch([line + b"\n" for line in lines])
            if rest:
                yield _batch([rest + b"\n"])

    def _json(self, path: str) -> Iterator[pa.RecordBatch]:
        names = self.schema.names
        paths = [tuple(name.split(".")) if self.flatten else (name,) for name in names]
        reader = Reader(self.schema, paths, others=lambda name: name in self.ignored)
        before = 0
        for batch in self._lines(path):
            records = split(batch.column(0), self.whole)
            parsed = reader.parse(records)
            if isinstance(parsed, Trouble):
                raise self._json_error(path, parsed, before + int(records.lines[parsed.row]) + 1)
            yield parsed
            before += batch.num_rows

    def _json_error(self, path: str, trouble: Trouble, line: int) -> HoldfastError:
        number = trouble.number or line
        if trouble.kind == "field":
            return SchemaError(
                f"{path}, line {number}: has the column {trouble.expected!r}, which is not "
                f"expected; expected {', '.join(self.schema.names)}"
                f"{to_alter([], [trouble.expected])}"
            )
        name = None if trouble.column is None else self.schema.names[trouble.column]
        facts = {"kind": trouble.kind, "line": trouble.line, "column": name}
        return _error(path, {**facts, "expected": trouble.expected, "number": number})

    def _parquet(self, path: str) -> Iterator[pa.RecordBatch]:
        file = pq.ParquetFile(path)
        self._expect(path, file.schema_arrow.names)
        for batch in file.iter_batches(columns=self.schema.names):
            yield self._typed(path, batch)

    def _orc(self, path: str) -> Iterator[pa.RecordBatch]:
        file = orc.ORCFile(path)
        self._expect(path, file.schema.names)
        for stripe in range(file.nstripes):
            yield self._typed(path, file.read_stripe(stripe, columns=self.schema.names))

    def _typed(self, path: str, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Rows in the types that are expected, of which only the width of numbers may differ."""
        columns = []
        for field in self.schema:
            given = batch.column(field.name)
            if not _is_like(given.type, field.type):
                raise SchemaError(
                    f"{path}: column {field.name!r} is {given.type}, but {field.type} is expected; "
                    "cast it"
                )
            cells = fitted(given, given.type, field.type, self.rounds)
            if isinstance(cells, Trouble):
                wider = given.type != field.type
                raise (SchemaError if wider else SourceError)(
                    f"{path}, column {field.name!r}: unfit value, expected {cells.expected}: "
                    f"{cells.line!r}{'; --evolve takes a wider type' if wider else ''}"
                )
            columns.append(cells)
        return pa.record_batch(columns, schema=self.schema)


def opened(path: str) -> IO[bytes]:
    """A file to read, whether it is compressed or not."""
    file: IO[bytes] = _OPENED.get(Path(path).suffix, FileIO)(path)
    return file


def _batch(lines: list[bytes]) -> pa.RecordBatch:
    origins = pa.array([1], pa.int64()).take(pa.array([0] * len(lines), pa.int64()))
    return pa.record_batch([pa.array(lines, pa.binary()), origins], names=["line", "origin"])


def _is_like(one: pa.DataType, two: pa.DataType) -> bool:
    """Whether values of one type may be values of another that is stored."""
    alike: list[Callable[[Any], bool]] = [
        lambda kind: at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind),
        lambda kind: at.is_binary(kind) or at.is_large_binary(kind) or at.is_binary_view(kind),
        at.is_integer,
        at.is_floating,
        at.is_date,
        at.is_time,
    ]
    if at.is_dictionary(one):
        one = one.value_type
    if at.is_timestamp(one) and at.is_timestamp(two):
        return (one.tz is None) == (two.tz is None)
    if at.is_null(one) or (at.is_integer(one) and at.is_decimal(two)):
        return True
    if at.is_decimal(one) and at.is_decimal(two):
        return bool(one.scale <= two.scale)
    return one == two or any(kind(one) and kind(two) for kind in alike) or at.is_nested(two)


def _error(path: str, trouble: Mapping[str, Any]) -> SourceError:
    """The error about what a file has in a line."""
    number = trouble["number"] or _line_number(path, trouble["line"])
    where = f"{path}, line {number}" if number else path
    column = f", column {trouble['column']!r}" if trouble["column"] else ""
    what = "malformed line" if trouble["kind"] == "line" else "unfit cell"
    return SourceError(
        f"{where}{column}: {what}, expected {trouble['expected']}: {trouble['line']!r}"
    )


def _line_number(path: str, shown: str) -> int | None:
    with opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.decode("utf-8", "replace").removeprefix("\ufeff").rstrip("\r\n")[:200] == shown:
                return number
    return None


def columns_in(files: ChangeFiles, path: str) -> list[str]:
    """The columns of a file, as far as its beginning tells."""
    try:
        if files.kind == "parquet":
            return list(pq.read_schema(path).names)
        if files.kind == "orc":
            return list(orc.ORCFile(path).schema.names)
        with opened(path) as file:
            first = file.readline(_CHUNK)
    except (OSError, EOFError, pa.ArrowException) as error:
        raise SourceError(f"{path}: cannot be read as {files.kind} ({error})") from error
    if files.kind == "json":
        return _fields_of(first)
    decoded = first.decode(files.dialect.encoding, "replace").removeprefix("\ufeff")
    names = text.header(decoded.rstrip("\r\n"), files.dialect)
    return names if files.header and isinstance(names, list) else []


def _fields_of(line: bytes) -> list[str]:
    try:
        record = json.loads(line)
    except ValueError:
        return []
    return list(record) if isinstance(record, dict) else []


def read_part(part: tuple[ChangeFiles, str]) -> Iterator[pa.RecordBatch]:
    """The rows of one file, as a task fetches them."""
    files, path = part
    yield from files(path)
