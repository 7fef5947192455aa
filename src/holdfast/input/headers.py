"""The first lines of text files: what their columns are called, and what stands between cells."""

from __future__ import annotations

import io
import logging
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from holdfast.input.sources import Source
from holdfast.model.errors import SchemaError, SourceError
from holdfast.tasks import text
from holdfast.tasks.dialect import UTF_8
from holdfast.tasks.text_files import opened

LONGEST = 1 << 20
"""Characters of a header."""

_DELIMITERS = (",", ";", "\t", "|")

log = logging.getLogger("holdfast")


def first_line(path: Path, source: Source) -> str | None:
    """The first record of a file; None if it is empty."""
    encoding = source.dialect.encoding
    try:
        with opened(path) as file:
            return first_text(file, source)
    except (OSError, EOFError, UnicodeError) as failure:
        name = encoding.upper() if encoding == UTF_8 else encoding
        hint = "; --encoding says how it is encoded" if isinstance(failure, UnicodeError) else ""
        raise SourceError(f"{path}: cannot be read as {name} text ({failure}){hint}") from failure


def first_text(file: Any, source: Source) -> str | None:
    """The first record, decoded by itself: what is wrong behind it has a line of its own."""
    dialect = source.dialect
    escaped = re.escape(dialect.escape) + "." if dialect.escape else '""'
    # Bytes that are no text stay recognisable, where a line cannot be found without decoding.
    encoding = "latin-1" if dialect.by_lines else dialect.encoding
    with io.TextIOWrapper(file, encoding, "replace", newline="\n") as lines:
        line = lines.readline(LONGEST)
        while source.multi_line and re.sub(escaped, "", line).count('"') % 2:
            more = lines.readline(LONGEST)
            if not more:
                break
            line += more
    if dialect.by_lines:
        line = line.encode("latin-1").decode(dialect.encoding)
    elif "\ufffd" in line:
        raise UnicodeError("the first line is not text in this encoding")
    return line.removeprefix("\ufeff").rstrip("\r\n") if line else None


def with_delimiter(source: Source, lines: Sequence[tuple[str, str]]) -> Source:
    """The source with another usual delimiter, if the header is one column without it."""
    if source.delimiter is not None or not source.header or not lines:
        return source
    _, line = lines[0]

    def columns(delimiter: str) -> int:
        names = text.header(line, replace(source, delimiter=delimiter).dialect)
        return 0 if isinstance(names, text.Trouble) else len(names)

    delimiter = max([source.separator, *_DELIMITERS], key=columns)  # the first of the best
    if columns(source.separator) > 1 or columns(delimiter) < 2:
        return source
    separator = "tabs" if delimiter == "\t" else repr(delimiter)
    log.warning("%s: cells are separated by %s", source.path, separator)
    return replace(source, delimiter=delimiter)


def names_of(source: Source, lines: Sequence[tuple[str, str]]) -> list[str]:
    """The column names: every file's own header, which must all be alike."""
    first: list[str] | None = None
    for label, line in lines:
        names = text.header(line, source.dialect)
        if isinstance(names, text.Trouble):
            if source.header:
                open_quote = names.expected.startswith("a closing quote")
                hint = " (a name with a line break in it needs --multi-line)"
                raise SourceError(
                    f"{label}: the header is malformed, expected {names.expected}"
                    f"{hint if open_quote and not source.multi_line else ''}: {line!r}"
                )
            names = [f"_{i}" for i in range(line.count(source.separator) + 1)]
        if not source.header:
            names = [f"_{i + 1}" for i in range(len(names))]
        if first is not None and names != first:
            raise SchemaError(
                f"{label}: has the columns {', '.join(names)}, unlike the files beside it "
                f"({', '.join(first)})"
            )
        first = names
    if first is None:
        raise SourceError(f"{source.path}: is empty; expected a header line with column names")
    return first


def note_names(source: Source, lines: Sequence[tuple[str, str]], names: list[str]) -> None:
    """Say which columns have other names than the header says."""
    written = text.written_header(lines[0][1], source.dialect)
    assert not isinstance(written, text.Trouble)
    for place, (old, name) in enumerate(zip(written, names, strict=True), start=1):
        if old != name:
            why = f"the name {old!r} of another one" if old else "no name"
            log.warning("%s: column %d has %s; it is called %r", source.path, place, why, name)
