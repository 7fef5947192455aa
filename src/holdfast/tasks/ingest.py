"""Rows to segments: parse where they are text, encode, sort what is to be indexed, write.

One task reads its share of a source once and writes as many segments as its rows fill. Bad data is
reported as a parcel, never raised, so that it reaches the user as a sentence and not as a stack.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import evidence, index
from holdfast.tasks import encode, text
from holdfast.tasks.result import Parcel
from holdfast.tasks.segments import ROWS, build_indexes, row_codes, unique, write_words

U64 = NDArray[np.uint64]

SEGMENT_ROWS = 1 << 20
"""Rows at which a segment is closed, so that a task's memory has a bound."""

_REPORT_SECONDS = 0.5
"""How often a task says how far it is, once it has been at work for longer than that."""

_RAW_BATCH = 4_096
"""Raw rows that are decompressed to show one."""


@dataclass(frozen=True)
class Ingest:
    """What a writing task has to know."""

    root: str
    prefix: str  # "data/*-<run>-": the kind of file goes in for the star
    schema: pa.Schema  # columns are named c0, c1, …: they go by position
    names: tuple[str, ...]
    indexes: tuple[str, ...] = (ROWS,)
    keep_raw: bool = True
    sketches: bool = False
    lines: str | None = None  # the delimiter, where rows come as lines of text
    header: bool = False
    whole: bool = False  # a "line" is a whole file, whose cells may hold newlines
    corrupt: bool = False  # a last column holds the text of records that could not be read
    order: tuple[int, ...] = ()  # where the file's columns go, if not in the table's order
    guessed: bool = False  # the types were inferred from a sample: report what would fit instead


def ingest(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[Parcel]:
    """Write the rows of one partition."""
    writer = _Writer(spec)
    rows = _parsed(batches, spec) if spec.lines else _checked(batches, spec)
    for item in rows:
        if isinstance(item, Parcel):
            yield item
            if not item.facts.get("fits"):
                writer.abandon()
        elif item.num_rows:
            yield from writer.add(item)
    yield from writer.close()


def split_header(
    batches: Iterator[pa.RecordBatch], spec: Ingest
) -> Iterator[pa.Array | text.Trouble]:
    """Lines without the header lines, which must all be alike.

    ``origin`` is set for the lines of a file's first block, so the first line with a new origin is
    that file's header. With ``whole`` every "line" is a file, which is cut into records here.
    """
    last: int | None = None
    for batch in batches:
        lines, origins = batch.column(0), batch.column(1)
        if spec.whole:
            for file in lines:
                records = text.records(file.as_buffer())
                if spec.header and len(records):
                    yield from _unlike(records[0], spec)
                    records = records.slice(1)
                yield records
            continue
        if spec.header and origins.null_count < len(origins):
            keep = np.ones(len(lines), np.bool_)
            for i, origin in enumerate(origins.to_pylist()):
                if origin is not None and origin != last:
                    last = origin
                    keep[i] = False
                    yield from _unlike(lines[i], spec)
            if not keep.all():
                lines = lines.filter(pa.array(keep))
        yield lines


def _unlike(line: pa.Scalar, spec: Ingest) -> Iterator[text.Trouble]:
    """A header that would put cells into other columns than the one that was looked at."""
    names = [spec.names[c] for c in spec.order or range(len(spec.names))]
    told = line.as_buffer().to_pybytes().decode("utf-8", "replace").rstrip("\r\n")
    if text.header(told, spec.lines or ",") != names:
        expected = f"the header {', '.join(names)}"
        yield text.Trouble("line", told[:200], None, expected, 0)


def infer(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[Parcel]:
    """The narrowest type of every column in this share of the lines."""
    votes = _Votes(spec)
    for chunk in split_header(batches, spec):
        trouble = chunk if isinstance(chunk, text.Trouble) else votes.add(chunk)
        if trouble is not None:
            yield _trouble(trouble, spec)
            return
    yield votes.parcel(True)


def _parsed(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[pa.RecordBatch | Parcel]:
    """Typed rows from lines; after the first trouble only reports.

    Where the types were guessed from a sample, every line also votes, so that the result is the
    same as if all of them had been looked at first.
    """
    schema = pa.schema([spec.schema.field(c) for c in spec.order or range(len(spec.names))])
    back = [spec.order.index(c) for c in range(len(spec.order))]
    lines = split_header(batches, spec)
    votes = _Votes(spec)
    fits = True
    for chunk in lines:
        trouble = chunk if isinstance(chunk, text.Trouble) else None
        if trouble is None and spec.guessed:
            trouble = votes.add(chunk)
        if trouble is None and fits:
            parsed = text.parse(chunk, schema, spec.lines or ",")
            if not isinstance(parsed, text.Trouble):
                yield parsed.select(back) if back else parsed
                continue
            fits = False
            if not (spec.guessed and parsed.kind == "cell"):
                trouble = parsed
        if trouble is not None:
            yield _trouble(trouble, spec)
            for _ in lines:  # the rest is read, not used: leaving early would cost the worker
                pass
            return
    if spec.guessed:
        yield votes.parcel(fits)


class _Votes:
    """What types would fit the lines seen so far."""

    def __init__(self, spec: Ingest) -> None:
        self._spec = spec
        self._votes = ["null"] * len(spec.names)

    def add(self, chunk: pa.Array) -> text.Trouble | None:
        found = text.infer_lines(chunk, len(self._votes), self._spec.lines or ",")
        if isinstance(found, text.Trouble):
            return found
        self._votes = [text.join(a, b) for a, b in zip(self._votes, found, strict=True)]
        return None

    def parcel(self, fits: bool) -> Parcel:
        return Parcel({"votes": self._votes, "fits": fits})


def _checked(batches: Iterator[pa.RecordBatch], spec: Ingest) -> Iterator[pa.RecordBatch | Parcel]:
    """Rows that came typed, in the table's types; unreadable records become a report."""
    width = len(spec.names)
    for batch in batches:
        if spec.corrupt and batch.column(width).null_count < batch.num_rows:
            line = batch.column(width).drop_null()[0].as_py()
            wrong = text.Trouble("line", line[:200], None, "a record of the table's types", 0)
            yield _trouble(wrong, spec)
            for _ in batches:
                pass
            return
        columns = [batch.column(place) for place in spec.order or range(width)]
        kinds = [field.type for field in spec.schema]
        columns = [c if c.type == k else c.cast(k) for c, k in zip(columns, kinds, strict=True)]
        yield pa.record_batch(columns, schema=spec.schema)


def _trouble(trouble: text.Trouble, spec: Ingest) -> Parcel:
    name = None
    if trouble.column is not None:
        place = spec.order[trouble.column] if spec.order else trouble.column
        name = spec.names[place]
    return Parcel(
        {
            "trouble": {
                "kind": trouble.kind,
                "line": trouble.line,
                "column": name,
                "expected": trouble.expected,
            }
        }
    )


class _Writer:
    """Collects rows and closes a segment whenever it is full."""

    def __init__(self, spec: Ingest) -> None:
        self._spec = spec
        self._root = Path(spec.root)
        self._layout = encode.layout(spec.schema)
        self._shape = evidence.shape(list(self._layout.widths), True)
        self._closed = False
        self._read = 0
        self._told = time.monotonic()
        self._report = self._root / unique(spec.prefix, "progress")
        self._start()

    def _start(self) -> None:
        self._words: U64 = np.empty((0, self._layout.total), np.uint64)
        self._sizes: list[int] = []
        self._rows = 0
        self._raw: Any = None
        self._raw_path: str | None = None
        self._sketches = Sketches(self._shape) if self._spec.sketches else None

    def abandon(self) -> None:
        """Something was wrong with the data: write no more."""
        self._closed = True

    def add(self, batch: pa.RecordBatch) -> Iterator[Parcel]:
        while batch.num_rows and not self._closed:
            piece = batch.slice(0, SEGMENT_ROWS - self._rows)
            batch = batch.slice(piece.num_rows)
            words = encode.encode(piece, self._layout).view(np.uint64)
            # Fresh memory costs more than anything done with it here: one matrix grows in place.
            self._words.resize((self._rows + piece.num_rows, len(words)), refcheck=False)
            self._words[self._rows :] = words.T
            if self._sketches:
                self._sketches.add(words)
            if self._spec.keep_raw:
                self._write_raw(piece)
            self._rows += piece.num_rows
            self._tell(piece.num_rows)
            if self._rows == SEGMENT_ROWS:
                yield self._finish()

    def _tell(self, rows: int) -> None:
        """Leave the number of rows read so far where the driver may look for it."""
        self._read += rows
        if time.monotonic() - self._told > _REPORT_SECONDS:
            self._told = time.monotonic()
            self._report.write_text(str(self._read))

    def close(self) -> Iterator[Parcel]:
        if self._rows and not self._closed:
            yield self._finish()
        elif self._raw is not None:
            self._raw.close()

    def _write_raw(self, piece: pa.RecordBatch) -> None:
        if self._raw is None:
            self._raw_path = unique(self._spec.prefix, "raw")
            options = pa.ipc.IpcWriteOptions(compression="lz4")
            path = str(self._root / self._raw_path)
            self._raw = pa.ipc.new_file(path, self._spec.schema, options=options)
        for start in range(0, piece.num_rows, _RAW_BATCH):
            part = piece.slice(start, _RAW_BATCH)
            self._raw.write_batch(part)
            self._sizes.append(part.num_rows)

    def _finish(self) -> Parcel:
        if self._raw is not None:
            self._raw.close()
        words = self._words
        path = unique(self._spec.prefix, "words")
        write_words(self._root / path, words, self._sizes)
        built = build_indexes(self._root, self._spec.prefix, words, self._shape, self._spec.indexes)
        arrays: dict[str, NDArray[Any]] = {"fingerprint": index.fingerprint(row_codes(words))}
        if self._sketches:
            arrays["sketch"] = self._sketches.hashes
        facts = {"words": path, "raw": self._raw_path, "rows": self._rows, "indexes": built}
        self._start()
        return Parcel(facts, arrays)


class Sketches:
    """The sketches of all columns of some rows."""

    def __init__(self, shape: evidence.Shape) -> None:
        self._shape = shape
        self._sizes = [0] * (shape.first.size - 1)
        self._out = np.zeros((len(self._sizes), index.SKETCH), np.uint64)

    def add(self, words: U64) -> None:
        """Take in rows, whose words are column-major."""
        for column, size in enumerate(self._sizes):
            self._sizes[column] = index.sketch(words, column, self._shape, self._out[column], size)

    @property
    def hashes(self) -> U64:
        """One row per column, filled up with its largest hash."""
        out = self._out.copy()
        for column, size in enumerate(self._sizes):
            out[column, size:] = out[column, max(size - 1, 0)]
        return out
