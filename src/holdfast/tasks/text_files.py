"""Text files as tasks read them: lines of a part of a file, or whole files, with their origins.

A part of a file has the lines that begin in it, so parts divide its lines wherever they are cut.
What is compressed is not divided. The rows are those in which Spark hands lines to
:mod:`holdfast.tasks.ingest`: a line with its line break, and the origin of its file, which is odd
in the first part of it.
"""

from __future__ import annotations

import bz2
import gzip
import zlib
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.model.errors import SourceError

SCHEMA = pa.schema([("line", pa.large_binary()), ("origin", pa.int64())])
"""The columns of lines."""

COMPRESSED: dict[str, Callable[[Path], Any]] = {
    ".gz": gzip.open,
    ".bz2": bz2.open,
    ".zst": lambda path: pa.CompressedInputStream(str(path), "zstd"),
}
"""How compressed files are opened."""

_PIECE = 4 << 20
"""Bytes that are read at once."""


class FilePart(NamedTuple):
    """A part of a file; one that has no end is the whole file."""

    path: str
    origin: int  # an even number, other than that of any other file
    start: int = 0
    end: int | None = None


def opened(path: Path) -> Any:
    """A file whose bytes are those that were compressed."""
    return COMPRESSED.get(path.suffix, _plain)(path)


def _plain(path: Path) -> IO[bytes]:
    return path.open("rb", buffering=0)


def lines(parts: tuple[FilePart, ...]) -> Iterator[pa.RecordBatch]:
    """The lines of some parts of files, in order."""
    for part in parts:
        is_first = part.start == 0
        origin = part.origin + is_first
        for data in _said(part, _whole_lines(part)):
            breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
            starts = np.zeros(len(breaks) + 1, np.int64)
            starts[1:] = breaks + 1
            if is_first and data.startswith(BOM_UTF8):
                starts[0] = len(BOM_UTF8)
            is_first = False
            yield _batch(starts, data, origin)


def files(parts: tuple[FilePart, ...]) -> Iterator[pa.RecordBatch]:
    """Whole files, each as one line."""
    for part in parts:
        for data in _said(part, _whole(part)):
            yield _batch(np.array([0, len(data)], np.int64), data, part.origin + 1)


def _batch(starts: np.ndarray[Any, Any], data: bytes, origin: int) -> pa.RecordBatch:
    rows = len(starts) - 1
    texts = pa.Array.from_buffers(
        pa.large_binary(), rows, [None, pa.py_buffer(starts), pa.py_buffer(data)]
    )
    return pa.RecordBatch.from_arrays([texts, np.full(rows, origin, np.int64)], schema=SCHEMA)


def _said(part: FilePart, pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The same; what goes wrong names the file."""
    try:
        yield from pieces
    except (OSError, EOFError, zlib.error) as error:
        said = getattr(error, "strerror", None) or error
        raise SourceError(f"{part.path}: cannot be read ({said})") from error


def _whole(part: FilePart) -> Iterator[bytes]:
    with opened(Path(part.path)) as file:
        pieces = list(iter(lambda: file.read(_PIECE), b""))
    if data := b"".join(pieces):
        yield data


def _whole_lines(part: FilePart) -> Iterator[bytes]:
    """The bytes of the lines that begin in a part, in pieces that end with a line break."""
    with opened(Path(part.path)) as file:
        begin, data = part.start, b""
        if part.start:
            # The line that goes on here belongs to the part before, unless it ends right there.
            file.seek(part.start - 1)
            begin, data = _behind_break(file, part.start - 1)
        while part.end is None or begin < part.end:
            if size := _of_part(data, None if part.end is None else part.end - begin):
                yield data[:size]
                begin, data = begin + size, data[size:]
            elif piece := file.read(_PIECE):
                data += piece
            else:
                if data:
                    yield data + b"\n"
                return


def _of_part(data: bytes, end: int | None) -> int:
    """How many of the bytes are whole lines that begin before an end."""
    if end is not None and len(data) >= end and (found := data.find(b"\n", end - 1)) >= 0:
        return found + 1
    return data.rfind(b"\n") + 1


def _behind_break(file: Any, place: int) -> tuple[int, bytes]:
    """Where in the file the next line begins, and what was read of it and those behind it."""
    while piece := file.read(_PIECE):
        if (found := piece.find(b"\n")) >= 0:
            return place + found + 1, piece[found + 1 :]
        place += len(piece)
    return place, b""
