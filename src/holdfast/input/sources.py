"""The sources of rows that a caller can name: a file, a folder, or a table of the catalog."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from urllib.parse import urlparse

from holdfast.model.commits import SourceRecord
from holdfast.model.date_forms import DateForm
from holdfast.model.errors import InputError, SourceError
from holdfast.tasks.dialect import UTF_8, Dialect, canonical

PARQUET = "parquet"
"""The format of files that have nanoseconds."""

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": PARQUET,
    ".orc": "orc",
}
"""Formats that a file's name tells."""

_OPTIONS = {
    "csv": "--delimiter, --escape, --encoding, --null-value, --date-format, --schema, --all-text, "
    "--multi-line or --no-header",
    "json": "--schema, --all-text, --multi-line or --flatten",
}
"""What says how files are read, of formats that Holdfast itself reads."""

_COMPRESSED = {".gz", ".bz2", ".zst", ".snappy", ".lz4", ".deflate"}


@dataclass(frozen=True)
class Source:
    """Rows in a file or folder, or (``format="table"``) a table of the catalog.

    >>> Source("orders.csv.gz").kind, Source("orders.csv.gz").name
    ('csv', 'orders')
    """

    path: str
    format: str | None = None
    options: dict[str, str] = field(default_factory=dict)  # Spark's own reader options
    schema: str | None = None  # "id bigint, name string": Spark's DDL
    all_text: bool = False
    multi_line: bool = False
    delimiter: str | None = None
    header: bool = True
    escape: str | None = None  # before a quote inside quotes; '"' or nothing: quotes are doubled
    encoding: str | None = None  # UTF-8 by default
    null_values: tuple[str, ...] | None = None  # cells that mean null, besides the empty one
    date_format: str | None = None  # of dates in CSV that are not as ISO 8601 has them: "%d/%m/%Y"
    flatten: bool = False  # the fields of structs become columns: "address.city"
    round_nanoseconds: bool = False  # down to microseconds; else kept, or refused where not

    def __post_init__(self) -> None:
        csv_only = {
            "escape": self.escape,
            "encoding": self.encoding,
            "null value": self.null_values,
            "date format": self.date_format,
        }
        given = [name for name, value in csv_only.items() if value is not None]
        if given and not self.may_be_csv:
            raise InputError(f"{self.path}: {self.kind} has no {given[0]}; that is for CSV")
        if self.flatten and self._is_csv(None):
            raise InputError(f"{self.path}: CSV has nothing nested to flatten; leave --flatten out")
        if self.round_nanoseconds and not self.may_be_parquet:
            raise InputError(
                f"{self.path}: {self.kind} has no nanoseconds to round; that is for Parquet, so "
                "leave --round-nanoseconds out"
            )
        try:
            self.dialect  # noqa: B018  refused before anything is read
        except ValueError as wrong:
            raise InputError(f"{self.path}: {wrong}") from None

    @property
    def name(self) -> str:
        """The name of the table: that of the file without its suffixes."""
        if self.format == "table":
            return self.path.rsplit(".", 1)[-1].strip("`")
        path = Path(self.path)
        name = path.name
        for suffix in reversed(path.suffixes):
            if suffix in _COMPRESSED or suffix in FORMATS:
                name = name.removesuffix(suffix)
            else:
                break
        return name

    @property
    def kind(self) -> str:
        """The format, as given or as the file's name tells."""
        if kind := self.format or self._named_kind:
            return kind
        known = ", ".join(sorted(set(FORMATS.values())))
        raise InputError(
            f"{self.path}: cannot tell the format from the name; say --input-format ({known}, "
            "table, or any other that Spark reads)"
        )

    @property
    def may_be_csv(self) -> bool:
        """Whether the format is CSV, or not known yet."""
        return (self.format or self._named_kind or "csv") == "csv"

    @property
    def may_be_parquet(self) -> bool:
        """Whether the format is Parquet, or not known yet."""
        return (self.format or self._named_kind or PARQUET) == PARQUET

    @property
    def _named_kind(self) -> str | None:
        for suffix in reversed(Path(self.path).suffixes):
            if suffix in FORMATS:
                return FORMATS[suffix]
            if suffix not in _COMPRESSED:
                break
        return None

    def _is_csv(self, as_before: str | None) -> bool:
        return (self.format or self._named_kind or as_before) == "csv"

    @property
    def separator(self) -> str:
        """The character between the cells of a line."""
        if self.delimiter is not None:
            return "\t" if self.delimiter == r"\t" else self.delimiter
        return "\t" if ".tsv" in Path(self.path).suffixes else ","

    def expect(self, stored: SourceRecord | None = None) -> None:
        """Raise an error for what is wrong and can be seen without Spark.

        ``stored`` says how the first rows of the table were read, if this is a batch.
        """
        as_before = stored.format if stored else None
        if as_before in (None, "dataframe"):
            _ = self.kind  # later batches may leave it to the stored one
        kind = self.format or self._named_kind or as_before or ""
        for name in self.options if kind in _OPTIONS else ():
            raise InputError(
                f"{self.path}: {kind.upper()} takes no Spark option ({name!r} was given); "
                f"use {_OPTIONS[kind]}"
            )
        if "table" in (self.format, as_before) or not is_local(self.path):
            return
        path = local_file(self.path)
        if any(c in self.path for c in "*?[{") and not path.exists():
            # Python's patterns mean what Spark's do as long as they have nothing but * and ?.
            top = Path(path.anchor)
            matches = top.glob(str(path.relative_to(top)))
            if not re.search(r"[\[{\\]", self.path) and not any(matches):
                raise SourceError(f"{self.path}: no file or folder matches")
            return
        if not path.exists():
            raise SourceError(f"{self.path}: no such file or folder")
        if not os.access(path, os.R_OK):
            raise SourceError(f"{self.path}: cannot be read (permission denied)")

    @property
    def dialect(self) -> Dialect:
        """How the lines of a text file are written."""
        return Dialect(
            self.separator,
            None if self.escape == '"' else self.escape,
            canonical(self.encoding or UTF_8),
            tuple(filter(None, self.null_values or ())),
            DateForm(self.date_format) if self.date_format else None,
        )

    def like(self, stored: SourceRecord) -> Source:
        """The source with the settings of the first rows of its table, except those that were given
        with it."""
        kind = self.format or self._named_kind or stored.format
        if kind == "dataframe":
            return self
        if kind != stored.format:
            return replace(self, format=kind, flatten=stored.flatten and kind != "csv")
        source = replace(
            self,
            format=kind,
            options={**stored.options, **self.options},
            all_text=stored.all_text,
            multi_line=stored.multi_line or self.multi_line,
            header=stored.header,
            schema=stored.schema,
            flatten=stored.flatten,
            round_nanoseconds=stored.round_nanoseconds or self.round_nanoseconds,
        )
        if kind != "csv":
            return source
        nulls = stored.null_values
        return replace(
            source,
            delimiter=self.delimiter or stored.delimiter,
            escape=self.escape or stored.escape,
            encoding=self.encoding or stored.encoding,
            null_values=nulls if self.null_values is None and nulls else self.null_values,
            date_format=stored.date_format if self.date_format is None else self.date_format,
        )

    def stored(self) -> SourceRecord:
        """The settings that later batches are read with."""
        return SourceRecord(
            self.kind,
            self.options,
            self.schema,
            self.all_text,
            self.multi_line,
            self.separator,
            self.header,
            self.dialect.escape,
            self.dialect.encoding,
            self.dialect.nulls,
            self.flatten,
            self.round_nanoseconds,
            self.date_format or None,
        )


def is_local(path: str) -> bool:
    """Whether a path is on this machine or mounted there."""
    return urlparse(path).scheme in ("", "file") or not re.match(r"^[a-z][a-z0-9+.-]+:", path)


def local_file(path: str) -> Path:
    """A local path without its scheme."""
    return Path(re.sub(r"^file:/+", "/", path))


def files_in(path: Path) -> list[Path]:
    """A file, or all in a folder but what Spark passes over, too: its own notes, and what systems
    hide."""
    if path.is_file():
        return [path]
    return sorted(
        entry
        for entry in path.rglob("*")
        if entry.is_file() and not is_hidden(entry.relative_to(path))
    )


def is_hidden(path: Path) -> bool:
    """Whether a file is passed over where a folder or a pattern has it."""
    return any(part.startswith(("_", ".")) for part in path.parts)


def named_file(path: str, file: str) -> str:
    """What messages call a file of a source: as its folder was given, or by its whole path.

    >>> named_file("new", str(Path("new/a.csv").absolute())), named_file("s3://b", "s3://b/a.csv")
    ('new/a.csv', 's3://b/a.csv')
    """
    if not is_local(file):
        return file
    found, folder = local_file(file), local_file(path).absolute()
    if is_local(path) and found == folder:
        return path
    if is_local(path) and folder in found.parents:
        return str(Path(path) / found.relative_to(folder))
    return str(found)
