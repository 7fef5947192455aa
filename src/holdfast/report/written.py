"""Files of results: there whole, or not at all; long lists are written as they come."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from holdfast.model.errors import InputError
from holdfast.model.results import Results, columns_of

_AT_ONCE = 10_000
"""Results that are held while they are written."""


def write_list(path: str | os.PathLike[str], kind: type, values: Iterable[Any]) -> int:
    """Write a list of results as CSV, JSON lines or Parquet, as the path ends; how many they were.

    CSV and Parquet have the columns of a table of results, and JSON lines their JSON forms.
    """
    target = Path(path)
    write = writer_of(target)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with whole(target) as place:
            return write(place, kind, _chunks(kind, values))
    except OSError as error:
        raise InputError(f"{target} cannot be written: {error.strerror or error}") from error


Chunks = Iterator[Results[Any]]


def writer_of(path: Path) -> Callable[[Path, type, Chunks], int]:
    """What writes a file of that name."""
    writers = {".csv": _csv, ".jsonl": _json_lines, ".ndjson": _json_lines, ".parquet": _parquet}
    if path.suffix.lower() not in writers:
        raise InputError(
            f"{path}: end its name in {', '.join(writers)}, which says how to write it"
        )
    return writers[path.suffix.lower()]


@contextmanager
def whole(target: Path) -> Iterator[Path]:
    """A file to write, which takes the name and the place of another one at the end of the block;
    if the block fails, it is removed."""
    descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    os.close(descriptor)
    temporary = Path(name)
    try:
        yield temporary
        # A temporary file is its owner's alone; this one is for whoever may read the folder.
        umask = os.umask(0o077)
        os.umask(umask)
        temporary.chmod(0o666 & ~umask)
        temporary.replace(target)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _chunks(kind: type, values: Iterable[Any]) -> Chunks:
    rest = iter(values)
    while chunk := Results(kind, islice(rest, _AT_ONCE)):
        yield chunk


def _csv(path: Path, kind: type, chunks: Chunks) -> int:
    columns, number = columns_of(kind), 0
    with path.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow([column.name for column in columns])
        for chunk in chunks:
            number += len(chunk)
            lines.writerows([_cell(column.cell(each)) for column in columns] for each in chunk)
    return number


def _cell(cell: str | float | Sequence[str] | None) -> str | float | None:
    return cell if cell is None or isinstance(cell, str | float | int) else ", ".join(cell)


def _json_lines(path: Path, _kind: type, chunks: Chunks) -> int:
    number = 0
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for chunk in chunks:
            number += len(chunk)
            file.writelines(json.dumps(each.to_dict(), ensure_ascii=False) + "\n" for each in chunk)
    return number


def _parquet(path: Path, kind: type, chunks: Chunks) -> int:
    from pyarrow import parquet

    number = 0
    with parquet.ParquetWriter(path, Results(kind).to_arrow().schema) as file:
        for chunk in chunks:
            number += len(chunk)
            file.write_table(chunk.to_arrow())
    return number
