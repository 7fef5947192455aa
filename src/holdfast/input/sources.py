"""Where rows come from, as a caller says it: a file, a folder, or a table of the catalog."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlparse

from holdfast.model.errors import InputError, SourceError

FORMATS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
    ".parquet": "parquet",
    ".orc": "orc",
}
"""Formats that a file's name tells."""

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

    @property
    def name(self) -> str:
        """The table's name: that of the file without what follows its first dot-suffixes."""
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
        if self.format:
            return self.format
        for suffix in reversed(Path(self.path).suffixes):
            if suffix in FORMATS:
                return FORMATS[suffix]
            if suffix not in _COMPRESSED:
                break
        known = ", ".join(sorted(set(FORMATS.values())))
        raise InputError(
            f"{self.path}: cannot tell the format from the name; say --input-format ({known}, "
            "table, or any other that Spark reads)"
        )

    @property
    def separator(self) -> str:
        """What stands between the cells of a line."""
        if self.delimiter is not None:
            return self.delimiter
        return "\t" if ".tsv" in Path(self.path).suffixes else ","

    def expect(self, stored: dict[str, Any] | None = None) -> None:
        """An error for what is wrong with it and can be told without Spark.

        ``stored`` says how the table's first rows were read, if this is a batch.
        """
        as_before = (stored or {}).get("format")
        if as_before in (None, "dataframe"):
            _ = self.kind  # later batches may leave it to the stored one
        if "table" in (self.format, as_before) or not is_local(self.path):
            return
        path = local_file(self.path)
        if any(c in self.path for c in "*?[{") and not path.exists():
            # Python's patterns mean what Spark's do as long as they have nothing but * and ?.
            top = Path(path.anchor)
            found = top.glob(str(path.relative_to(top)))
            if not re.search(r"[\[{\\]", self.path) and not any(found):
                raise SourceError(f"{self.path}: no file or folder matches")
            return
        if not path.exists():
            raise SourceError(f"{self.path}: no such file or folder")
        if not os.access(path, os.R_OK):
            raise SourceError(f"{self.path}: cannot be read (permission denied)")

    def stored(self) -> dict[str, Any]:
        """How it was read, for later batches."""
        return {
            "format": self.kind,
            "options": self.options,
            "schema": self.schema,
            "all_text": self.all_text,
            "multi_line": self.multi_line,
            "delimiter": self.separator,
            "header": self.header,
        }


def is_local(path: str) -> bool:
    """Whether a path is one of this machine's, or of what is mounted on it."""
    return urlparse(path).scheme in ("", "file") or not re.match(r"^[a-z][a-z0-9+.-]+:", path)


def local_file(path: str) -> Path:
    """A local path without its scheme."""
    return Path(re.sub(r"^file:/+", "/", path))
