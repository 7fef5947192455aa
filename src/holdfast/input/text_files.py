"""Text files on disk as row inputs, whose parts tasks read themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice, pairwise
from pathlib import Path

from holdfast.input import headers
from holdfast.input.file_parts import packed, part_bytes
from holdfast.input.row_input import RowInput
from holdfast.input.sources import Source, local_file, named_file
from holdfast.input.text_inputs import csv_input, json_input
from holdfast.runtime.runner import Parts, Runner
from holdfast.tasks import text_files
from holdfast.tasks.text_files import COMPRESSED, FilePart

_HADOOPS = (".snappy", ".lz4", ".deflate")
"""Compressed files that Hadoop has a form of its own for."""


def is_readable(file: Path) -> bool:
    """Whether tasks can read a file themselves."""
    return file.suffix not in _HADOOPS


def text_input(runner: Runner, source: Source, files: Sequence[Path], first: bool) -> RowInput:
    """Rows of CSV or JSON in some files, which may be the ``first`` ones of their table."""
    by_origin = {2 * number: file for number, file in enumerate(files, start=1)}

    def lines(whole: bool) -> Parts:
        return _lines(by_origin, runner.tasks, whole)

    def named(origin: int) -> str | None:
        return named_file(source.path, str(by_origin[origin])) if origin in by_origin else None

    if source.kind == "json":
        return json_input(runner, source, lines(source.multi_line), named, first)
    return csv_input(source, _first_lines(source, files), lines, named, first)


def _first_lines(source: Source, files: Sequence[Path]) -> list[tuple[str, str]]:
    """Those of all files in a folder; of files that match a pattern, tasks compare the others with
    the first."""
    lines = ((file, headers.first_line(file, source)) for file in files)
    given = ((named_file(source.path, str(file)), line) for file, line in lines if line is not None)
    return list(given if local_file(source.path).exists() else islice(given, 1))


def _lines(files: Mapping[int, Path], tasks: int, whole: bool) -> Parts:
    """The lines of text files, or whole files."""
    sizes = {origin: file.stat().st_size for origin, file in files.items()}
    most = part_bytes(sum(sizes.values()), tasks)
    parts: list[tuple[FilePart, int]] = []
    for origin, file in files.items():
        size = sizes[origin]
        if whole or file.suffix in COMPRESSED:
            parts.append((FilePart(str(file), origin), size))
            continue
        count = max(1, -(-size // most))
        cuts = [size * k // count for k in range(count + 1)]
        parts += [
            (FilePart(str(file), origin, start, end), end - start) for start, end in pairwise(cuts)
        ]
    fetch = text_files.files if whole else text_files.lines
    return Parts(text_files.SCHEMA, packed(parts, most), fetch)
