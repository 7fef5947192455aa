"""Writing rows as segments: parsing text, encoding, building indexes.

A task reads its share of a source once and writes as many segments as its rows fill. Bad data is
returned as a task result and never raised, so that the user sees a sentence and not a stack trace.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import evidence, index
from holdfast.kernels.arrays import U64
from holdfast.model import thresholds
from holdfast.model.date_forms import USUAL, DateForm
from holdfast.model.errors import SourceError
from holdfast.runtime.objects import is_remote
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.tasks import encode, text
from holdfast.tasks.columns import Collected
from holdfast.tasks.concealing import Concealing, concealed, concealed_schema
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.json_records import Records, split
from holdfast.tasks.json_rows import Reader
from holdfast.tasks.json_types import Learned
from holdfast.tasks.nanoseconds import BOUNDS, holds_nanos, is_nano, rounded_down
from holdfast.tasks.row_format import RowFormat
from holdfast.tasks.segments import ROWS, RawRows, build_indexes, most_rows, row_codes, write_words
from holdfast.tasks.shown import cells as shown_cells
from holdfast.tasks.shown import plain
from holdfast.tasks.texts import first_unfit
from holdfast.tasks.votes import fits, join, settled

_REPORT_SECONDS = 0.5
"""How often a task says how far it is, once it has been at work for longer than that."""

WHOLE_MICROSECONDS = "whole microseconds"
"""What a column of microseconds expects."""

NOWHERE = 0
"""The origin of rows that come from no file, or from one that is not known."""


@dataclass(frozen=True)
class Ingest(RowFormat):
    """What a task needs to know to write rows."""

    root: str
    prefix: str  # "data/*-<run>-": the kind of file goes in for the star
    schema: pa.Schema  # columns are named c0, c1, …: they go by position
    names: tuple[str, ...]
    indexes: tuple[str, ...] = (ROWS,)
    keep_raw: bool = True
    sketches: bool = False
    concealing: Concealing | None = None  # None: cells are kept as they are


@dataclass(frozen=True)
class Chunk:
    """Some records without the header, and the files that they come from."""

    lines: pa.Array  # one by one, in UTF-8
    records: pa.Array  # the same as RFC 4180 has them
    origins: NDArray[np.int64]  # of each record, or one for all
    whole: bool

    def pieces(self) -> Iterator[Chunk]:
        """The chunk in parts of bounded size: rows with many cells take much more memory once they
        are parsed."""
        number = len(self.records)
        rows = max(1, number * thresholds.current.piece_bytes // max(1, self.records.nbytes))
        if rows >= number:
            yield self
            return
        for start in range(0, number, rows):
            lines, records = self.lines.slice(start, rows), self.records.slice(start, rows)
            one = self.origins.size == 1
            origins = self.origins if one else self.origins[start : start + rows]
            yield Chunk(lines, records, origins, self.whole)

    def first(self, rows: int) -> Chunk:
        """The first records."""
        origins = self.origins if self.origins.size == 1 else self.origins[:rows]
        return Chunk(self.lines.slice(0, rows), self.records.slice(0, rows), origins, self.whole)

    def trouble(self, trouble: text.Trouble, spec: Ingest) -> TaskResult:
        """A report of what is wrong with a record, as it is in its file."""
        number = None
        if self.whole:
            # The records are parts of their file's one buffer: what lies before can be counted.
            _, offsets, buffer = self.lines.buffers()
            start = np.frombuffer(offsets, np.int64)[self.lines.offset + trouble.row]
            before = np.frombuffer(buffer, np.uint8)[:start]
            number = int(np.count_nonzero(before == ord("\n"))) + 1
        line = text.line_of(self.lines, trouble.row)
        origin = int(self.origins[trouble.row if self.origins.size > 1 else 0])
        return _trouble(replace(trouble, line=line, number=number), spec, origin)


class Tally:
    """Counts the records that a task was given, before anything is done with them."""

    def __init__(self) -> None:
        self.records = 0
        self.origins: set[int] = set()

    def add(self, records: int, origins: NDArray[np.int64]) -> None:
        self.records += records
        if len(self.origins) < 2:  # enough to know whether it was one file
            self.origins.update(int(origin) & ~1 for origin in origins[[0, -1]])

    def task_result(self, rows: int) -> TaskResult:
        origin = self.origins.pop() if len(self.origins) == 1 else NOWHERE
        return TaskResult({"counts": {"records": self.records, "rows": rows, "origin": origin}})


def ingest(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[TaskResult]:
    """Write the rows of one partition; finally report how many records were given and how many rows
    were written."""
    writer = SegmentWriter(spec)
    tally = Tally()
    try:
        for item in _typed(batches, spec, tally):
            if isinstance(item, TaskResult):
                yield item
                if item.facts.get("trouble") or item.facts.get("misfit"):
                    writer.abandon()
            elif item.num_rows:
                yield from writer.add(item)
    except SourceError:  # of a file that the task reads itself
        writer.abandon()
        yield from writer.close()
        raise
    yield from writer.close()
    yield tally.task_result(writer.written)


def _typed(
    batches: Iterator[pa.RecordBatch], spec: Ingest, tally: Tally
) -> Iterator[pa.RecordBatch | TaskResult]:
    """Rows with the types of the table, whatever they come as."""
    if spec.lines:
        return parsed_lines(batches, spec, tally)
    return _from_json(batches, spec, tally) if spec.json else _checked(batches, spec, tally)


def split_header(
    batches: Iterator[pa.RecordBatch], spec: Ingest, dialect: Dialect
) -> Iterator[Chunk | TaskResult]:
    """Records without the header lines, which must all be alike; or a report of what is wrong.

    ``origin`` is an even number for each file, plus one in the file's first block. So the first
    line with a new odd origin is that file's header. With ``whole`` every "line" is a file, which
    is cut into records here.
    """
    last = NOWHERE
    for batch in batches:
        lines = batch.column(0)
        origins = batch.column(1).fill_null(NOWHERE).to_numpy()
        if spec.whole:
            for row, origin in enumerate(origins):
                yield from _split_file(lines.slice(row, 1), int(origin), spec, dialect)
            continue
        decoded = text.decoded(lines, dialect.encoding)
        if isinstance(decoded, text.Trouble):
            yield _trouble(replace(decoded, number=None), spec, int(origins[decoded.row]))
            continue
        if spec.header:
            before = np.concatenate((np.array([last]), origins[:-1]))
            heads = (origins != before) & (origins % 2 == 1)
            last = int(origins[-1]) if origins.size else last
            for head in np.flatnonzero(heads).tolist():
                yield from _unlike(decoded[head], int(origins[head]), spec, dialect)
            if heads.any():
                decoded, origins = decoded.filter(pa.array(~heads)), origins[~heads]
        if len(decoded):
            yield Chunk(decoded, text.plain(decoded, dialect), origins, False)


def _split_file(
    file: pa.Array, origin: int, spec: Ingest, dialect: Dialect
) -> Iterator[Chunk | TaskResult]:
    """The records of one file."""
    whole = text.decoded(file, dialect.encoding)
    if isinstance(whole, text.Trouble):
        yield _trouble(whole, spec, origin)
        return
    # Escaped quotes would hide where a record ends; what is null is looked for in the rows alone.
    unescaped = text.plain(whole, replace(dialect, nulls=()))
    records = text.records(text.unmarked(unescaped[0].as_buffer()))
    if spec.header and len(records):
        yield from _unlike(records[0], origin, spec, replace(dialect, escape=None))
        records = records.slice(1)
    if len(records):
        plain = text.plain(records, replace(dialect, escape=None))
        yield Chunk(records, plain, np.array([origin]), True)


def _unlike(line: pa.Scalar, origin: int, spec: Ingest, dialect: Dialect) -> Iterator[TaskResult]:
    """A report if a header differs from that of the first file: cells would get into wrong
    columns."""
    names = [spec.names[c] for c in spec.order or range(len(spec.names))]
    header = line.as_buffer().to_pybytes().decode("utf-8", "replace").rstrip("\r\n")
    if text.header(header, dialect) != names:
        expected = f"the header {', '.join(names)}"
        yield _trouble(
            text.Trouble("line", header[:200], None, expected, 0, number=1), spec, origin
        )


def infer(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[TaskResult]:
    """The narrowest type of every column in these lines."""
    dialect = spec.lines or Dialect()
    votes = _Votes(spec, dialect)
    for chunk in split_header(batches, spec, dialect):
        trouble = chunk if isinstance(chunk, TaskResult) else votes.add(chunk)
        if trouble is not None:
            yield trouble
            return
    yield votes.task_result(None)


def guess(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[TaskResult]:
    """What :func:`infer` says of a few lines, and the second votes of the first of them: which
    columns would be dates of the form that was named, or of a usual one."""
    dialect = spec.lines or Dialect()
    votes = _Votes(spec, dialect)
    forms = [DateForm(text) for text in USUAL]
    usual = {
        form.text: _Votes(spec, replace(dialect, dates=form))
        for form in ([dialect.dates] if dialect.dates else []) + forms
    }
    for chunk in split_header(batches, spec, dialect):
        trouble = chunk if isinstance(chunk, TaskResult) else votes.add(chunk)
        if trouble is not None:
            yield trouble
            return
        assert isinstance(chunk, Chunk)
        for each in usual.values():
            each.add(chunk.first(thresholds.current.guess_rows))
    result = votes.task_result(None)
    dated = {text: each.dated for text, each in usual.items()}
    yield TaskResult({**result.facts, "dated": dated})


def parsed_lines(
    batches: Iterator[pa.RecordBatch], spec: Ingest, tally: Tally
) -> Iterator[pa.RecordBatch | TaskResult]:
    """Typed rows from lines; after the first trouble only its report.

    Where types were guessed from a sample, every line also votes, so that the result is as if all
    had been looked at first. A cell that does not fit its guessed type is reported with the votes:
    only if these confirm the guess is the cell wrong.
    """
    dialect = spec.lines or Dialect()
    schema = pa.schema([spec.schema.field(c) for c in spec.order or range(len(spec.names))])
    back = [spec.order.index(c) for c in range(len(spec.order))]
    chunks = _pieces(split_header(batches, spec, dialect))
    votes = _Votes(spec, dialect)
    misfit: TaskResult | None = None
    for chunk in chunks:
        trouble = chunk if isinstance(chunk, TaskResult) else None
        if isinstance(chunk, Chunk):
            tally.add(text.count(chunk.lines), chunk.origins)
            if spec.guessed:
                trouble = votes.add(chunk)
            if trouble is None and misfit is None:
                checked = spec.guessed and votes.last_fit(schema)
                written = dialect.delimiter, dialect.dates
                parsed = text.parse(chunk.records, schema, *written, checked=checked)
                if not isinstance(parsed, text.Trouble):
                    yield parsed.select(back) if back else parsed
                    continue
                report = chunk.trouble(parsed, spec)
                if spec.guessed and parsed.kind == "cell":
                    misfit = report
                else:
                    trouble = report
        if trouble is not None:
            yield trouble
            for _ in chunks:  # the rest is read, not used: leaving early would cost the worker
                pass
            return
    if spec.guessed:
        yield votes.task_result(misfit)


def _pieces(chunks: Iterator[Chunk | TaskResult]) -> Iterator[Chunk | TaskResult]:
    for chunk in chunks:
        if isinstance(chunk, Chunk):
            yield from chunk.pieces()
        else:
            yield chunk


class _Votes:
    """What types would fit the lines seen so far."""

    def __init__(self, spec: Ingest, dialect: Dialect) -> None:
        self._spec = spec
        self._dialect = dialect
        self._votes = ["null"] * (len(spec.names) * (2 if dialect.dates else 1))
        self._last = self._votes

    def add(self, chunk: Chunk) -> TaskResult | None:
        written = self._dialect.delimiter, self._dialect.dates
        types = text.infer(chunk.records, len(self._spec.names), *written)
        if isinstance(types, text.Trouble):
            return chunk.trouble(types, self._spec)
        self._votes = [join(a, b) for a, b in zip(self._votes, types, strict=True)]
        self._last = types
        return None

    def last_fit(self, schema: pa.Schema) -> bool:
        """Whether the types hold all cells of the lines that were added last."""
        return all(map(fits, settled(self._last, len(schema)), schema.types))

    @property
    def dated(self) -> list[str]:
        """The second votes."""
        return self._votes[len(self._spec.names) :]

    def task_result(self, misfit: TaskResult | None) -> TaskResult:
        trouble = misfit.facts["trouble"] if misfit else None
        return TaskResult({"votes": self._votes, "misfit": trouble})


def learn(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[TaskResult]:
    """The structure of these JSON records, or a report of the first malformed one."""
    learned = Learned()
    pieces = _records(batches, spec)
    for records, origins in pieces:
        trouble = learned.add(records)
        if trouble is not None:
            yield _trouble(trouble, spec, int(origins[records.lines[trouble.row]]))
            for _ in pieces:  # the rest is read, not used: leaving early would cost the worker
                pass
            return
    yield TaskResult({"form": learned.form.packed()})


def _from_json(
    batches: Iterator[pa.RecordBatch], spec: Ingest, tally: Tally
) -> Iterator[pa.RecordBatch | TaskResult]:
    """Typed rows from JSON records; after the first trouble only its report."""
    reader = Reader(spec.schema, spec.json)
    pieces = _records(batches, spec)
    for records, origins in pieces:
        tally.add(len(records), origins[records.lines])
        parsed = reader.parse(records)
        if isinstance(parsed, text.Trouble):
            yield _trouble(parsed, spec, int(origins[records.lines[parsed.row]]))
            for _ in pieces:
                pass
            return
        yield parsed


def _records(
    batches: Iterator[pa.RecordBatch], spec: Ingest
) -> Iterator[tuple[Records, NDArray[np.int64]]]:
    """JSON records in bounded pieces, with the origins of their lines."""
    for batch in batches:
        origins = batch.column(1).fill_null(NOWHERE).to_numpy()
        records = split(batch.column(0), spec.whole)
        for piece in records.pieces(thresholds.current.piece_bytes):
            yield piece, origins


def _checked(
    batches: Iterator[pa.RecordBatch], spec: Ingest, tally: Tally
) -> Iterator[pa.RecordBatch | TaskResult]:
    """Typed rows, converted to the types of the table."""
    width = len(spec.names)
    for batch in batches:
        tally.add(batch.num_rows, np.array([NOWHERE]))
        columns = []
        for place, position in enumerate(spec.order or range(width)):
            kind = spec.schema.field(place).type
            given = spec.given.field(position).type if spec.given else kind
            cells = fitted(batch.column(position), given, kind, spec.rounds)
            if isinstance(cells, text.Trouble):
                yield _reported(cells, spec.names[place], NOWHERE)
                for _ in batches:
                    pass
                return
            columns.append(cells)
        yield pa.record_batch(columns, schema=spec.schema)


def fitted(
    cells: pa.Array, given: pa.DataType, kind: pa.DataType, rounds: bool
) -> pa.Array | text.Trouble:
    """Cells converted to another type, or a report of the first whose value does not fit.

    Spark transports some types as others, so cells are first converted back.
    """
    if cells.type != given:
        cells = cells.cast(given)
    if given == kind:
        return cells
    if rounds and is_nano(given) and not is_nano(kind):
        cells = rounded_down(cells)
    try:
        return cells.cast(kind)
    except pa.ArrowInvalid:
        return _first_unfit(cells, kind)


def _first_unfit(cells: pa.Array, kind: pa.DataType) -> text.Trouble:
    first = first_unfit(len(cells), lambda first, last: _fits(cells[first:last], kind))
    expected = f"a value of the type {kind}"
    if holds_nanos(cells.type) and not holds_nanos(kind):
        expected = WHOLE_MICROSECONDS
    elif holds_nanos(kind):
        expected = f"a value {BOUNDS}, because the table keeps nanoseconds in 64 bits"
    try:
        value = plain(shown_cells(pa.chunked_array([cells[first : first + 1]]))[0])
    except (ValueError, OverflowError):  # a date that Python cannot tell
        value = cells[first].value
    return text.Trouble("cell", str(value), None, expected, first)


def _fits(cells: pa.Array, kind: pa.DataType) -> bool:
    try:
        cells.cast(kind)
    except pa.ArrowInvalid:
        return False
    return True


def _trouble(trouble: text.Trouble, spec: Ingest, origin: int) -> TaskResult:
    name = None
    if trouble.column is not None:
        position = spec.order[trouble.column] if spec.order else trouble.column
        name = spec.names[position]
    return _reported(trouble, name, origin)


def _reported(trouble: text.Trouble, name: str | None, origin: int) -> TaskResult:
    return TaskResult(
        {
            "trouble": {
                "kind": trouble.kind,
                "line": trouble.line,
                "column": name,
                "expected": trouble.expected,
                "origin": int(origin) & ~1,
                "number": trouble.number,
            }
        }
    )


class SegmentWriter:
    """Collects rows and closes a segment whenever it is full."""

    def __init__(self, spec: Ingest) -> None:
        self._spec = spec
        self._root = Path(spec.root)
        self._schema = concealed_schema(spec.schema) if spec.concealing else spec.schema
        self._layout = encode.layout(self._schema)
        self._shape = evidence.shape(list(self._layout.widths), True)
        self._closed = False
        self.written = 0
        self._read = 0
        self._reported = time.monotonic()
        report = self._root / unique(spec.prefix, "progress")
        self._report = None if is_remote(report) else report
        self._start()

    def _start(self) -> None:
        self._words: U64 = np.empty((0, self._layout.total), np.uint64)
        self._rows = 0
        self._raw: RawRows | None = None
        self._sketches = Sketches(self._shape) if self._spec.sketches else None
        self._columns = Collected(self._schema, self._spec.keep_raw)

    def abandon(self) -> None:
        """Something was wrong with the data: write no more."""
        self._closed = True

    def add(self, batch: pa.RecordBatch) -> Iterator[TaskResult]:
        most = most_rows(self._layout.total)
        at_once = max(1, thresholds.current.piece_bytes // (8 * self._layout.total))
        while batch.num_rows and not self._closed:
            piece = batch.slice(0, min(most - self._rows, at_once))
            batch = batch.slice(piece.num_rows)
            if self._spec.concealing:
                # From here on nothing knows the values.
                piece = concealed(piece, self._spec.concealing)
            words = encode.encode(piece, self._layout).view(np.uint64)
            # Fresh memory costs more than anything done with it here: one matrix grows in place.
            self._words.resize((self._rows + piece.num_rows, len(words)), refcheck=False)
            self._words[self._rows :] = words.T
            if self._sketches:
                self._sketches.add(words)
            self._columns.add(words, piece)
            if self._spec.keep_raw:
                self._write_raw(piece)
            self._rows += piece.num_rows
            self._note_progress(piece.num_rows)
            if self._rows == most:
                yield self._finish()

    def _note_progress(self, rows: int) -> None:
        """Leave the number of rows read so far where the driver looks for it."""
        self._read += rows
        if self._report and time.monotonic() - self._reported > _REPORT_SECONDS:
            self._reported = time.monotonic()
            self._report.write_text(str(self._read))

    def close(self) -> Iterator[TaskResult]:
        if self._rows and not self._closed:
            yield self._finish()
        elif self._raw is not None:
            self._raw.abandon()

    def _write_raw(self, piece: pa.RecordBatch) -> None:
        if self._raw is None:
            self._raw = RawRows(self._root, self._spec.prefix, self._schema)
        self._raw.add(piece)

    def _finish(self) -> TaskResult:
        raw, sizes = (self._raw.seal(), self._raw.sizes) if self._raw else (None, [])
        words = self._words
        path = write_words(self._root, unique(self._spec.prefix, "words"), words, sizes)
        built = build_indexes(self._root, self._spec.prefix, words, self._shape, self._spec.indexes)
        arrays: dict[str, NDArray[Any]] = {"fingerprint": index.fingerprint(row_codes(words))}
        if self._sketches:
            arrays |= self._sketches.arrays
        facts = {
            "words": path,
            "raw": raw,
            "rows": self._rows,
            "indexes": built,
            "columns": self._columns.forms,
        }
        self.written += self._rows
        self._start()
        return TaskResult(facts, arrays)


class Sketches:
    """The sketches of all columns of some rows."""

    def __init__(self, shape: evidence.RowShape) -> None:
        self._shape = shape
        self._sizes = [0] * (shape.first.size - 1)
        self._out = np.zeros((len(self._sizes), index.SKETCH), np.uint64)
        self._spread = np.zeros((len(self._sizes), index.SPREAD), np.int64)

    def add(self, words: U64) -> None:
        """Add rows, given as column-major words."""
        for column, size in enumerate(self._sizes):
            known = (self._out[column], size, self._spread[column])
            self._sizes[column] = index.sketch(words, column, self._shape, *known)

    @property
    def arrays(self) -> dict[str, NDArray[Any]]:
        """The form that tasks return, a row per column; missing hashes are filled with the largest
        one."""
        out = self._out.copy()
        for column, size in enumerate(self._sizes):
            out[column, size:] = out[column, max(size - 1, 0)]
        return {"sketch": out, "spread": self._spread}
