"""A batch of several tables, as files say it: a folder with one for each table, or a YAML file.

    monday/orders/inserts.csv          version: 1
    monday/lines/deletes.parquet       tables:
                                         orders: {inserts: new/orders.csv}
                                         lines: {deletes: gone.parquet, row_key: [id, line]}

Nothing is passed by: a file or a key that means nothing here is an error, because a batch that lost
one of its files would still look whole.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from holdfast.input.sources import Source, is_local
from holdfast.input.yaml_file import described, expect_keys, read_versioned
from holdfast.model.errors import InputError

CHANGES = ("inserts", "deletes", "updates", "upserts", "snapshot")
"""What a batch can do to a table."""


@dataclass(frozen=True)
class TableFiles:
    """The files of a batch for one table, and how they are read and applied."""

    paths: dict[str, str]  # by what is done with them
    row_key: tuple[str, ...] = ()
    if_exists: bool = False
    allow_shrink: bool = False
    format: str | None = None
    options: dict[str, str] = field(default_factory=dict)  # Spark's own reader options
    delimiter: str | None = None
    escape: str | None = None
    encoding: str | None = None
    null_values: tuple[str, ...] | None = None
    date_format: str | None = None
    round_nanoseconds: bool = False

    @property
    def may_be_csv(self) -> bool:
        """Whether some of the rows are CSV, or may be."""
        return any(Source(path, self.format).may_be_csv for path in self.paths.values())

    def sources(self) -> dict[str, Source]:
        """The files as sources. What concerns cells is for the CSV files among them."""
        cells = {
            "delimiter": self.delimiter,
            "escape": self.escape,
            "encoding": self.encoding,
            "null_values": self.null_values,
            "date_format": self.date_format,
        }
        given: dict[str, Any] = {name: value for name, value in cells.items() if value is not None}
        maybe = {what for what, path in self.paths.items() if Source(path, self.format).may_be_csv}
        return {
            # Where none is CSV that is refused.
            what: Source(
                path,
                self.format,
                self.options,
                round_nanoseconds=self.round_nanoseconds,
                **(given if what in maybe or not maybe else {}),
            )
            for what, path in self.paths.items()
        }

    def batch(self) -> dict[str, object]:
        """The form that :meth:`holdfast.Profile.apply` takes."""
        return {
            **self.sources(),
            "row_key": self.row_key,
            "if_exists": self.if_exists,
            "allow_shrink": self.allow_shrink,
        }


def batch_files(path: str | os.PathLike[str]) -> dict[str, dict[str, object]]:
    """The batch of a folder or YAML file, in the form that :meth:`holdfast.Profile.apply` takes."""
    return {name: files.batch() for name, files in table_files(path).items()}


def table_files(path: str | os.PathLike[str]) -> dict[str, TableFiles]:
    """The files of a batch for each table."""
    place = Path(path)
    if place.is_dir():
        return _in_folder(place)
    if place.is_file():
        return _in_file(place)
    raise InputError(
        f"{place}: there is no such batch; give a folder such as {place}/orders/inserts.csv, or a "
        "YAML file that names the files"
    )


# A folder


_FLAT = re.compile(rf"(.+)-({'|'.join(CHANGES)})(\..*)?")
"""A table and what is done to it in one name: orders-inserts.csv."""


def _in_folder(folder: Path) -> dict[str, TableFiles]:
    by_table: dict[str, dict[str, str]] = {}
    for entry in _entries(folder):
        for table, what, file in _named(entry):
            paths = by_table.setdefault(table, {})
            if what in paths:
                raise InputError(f"{file}: there is {paths[what]}, too; keep one of them")
            paths[what] = str(file)
    if not by_table:
        raise InputError(
            f"{folder}: this batch has no tables; expected files such as orders/inserts.csv in it"
        )
    return {table: TableFiles(paths) for table, paths in by_table.items()}


def _named(entry: Path) -> Iterator[tuple[str, str, Path]]:
    """The table, the kind of change and the file of each of the rows in an entry of a folder."""
    if flat := _FLAT.fullmatch(entry.name):
        yield flat[1], flat[2], entry
        return
    if not entry.is_dir():
        raise InputError(
            f"{entry}: expected a folder called after a table, with files such as inserts.csv in "
            "it, or a file called after both, such as orders-inserts.csv"
        )
    files = _entries(entry)
    if not files:
        raise InputError(f"{entry}: this folder has no rows; expected files called {_either()}")
    for file in files:
        what = file.name.partition(".")[0]
        if what not in CHANGES:
            raise InputError(f"{file}: expected a file or folder called {_either()}")
        yield entry.name, what, file


def _entries(folder: Path) -> list[Path]:
    """The files in a folder, except those that file systems and writers leave there, such as .crc
    and _SUCCESS."""
    try:
        return sorted(path for path in folder.iterdir() if not path.name.startswith((".", "_")))
    except OSError as error:
        raise InputError(f"{folder}: cannot be read ({error.strerror})") from error


def _either() -> str:
    return f"{', '.join(CHANGES[:-1])} or {CHANGES[-1]}"


# A YAML file

_SETTINGS = tuple(field.name for field in fields(TableFiles) if field.name != "paths")


def _in_file(file: Path) -> dict[str, TableFiles]:
    tables = read_versioned(file, "tables")
    if not isinstance(tables, dict) or not tables:
        raise InputError(
            f"{file}: expected under 'tables' at least one table with its rows, as in "
            "'orders: {inserts: orders.csv}'"
        )
    return {_text(f"{file}: a table", name): _table(file, name, tables[name]) for name in tables}


def _table(file: Path, name: str, form: Any) -> TableFiles:
    where = f"{file}: table {name!r}"
    if not isinstance(form, dict):
        raise InputError(
            f"{where}: expected rows, as in 'inserts: orders.csv', not {described(form)}"
        )
    expect_keys(where, form, (*CHANGES, *_SETTINGS))
    paths = {
        what: _path(file, _text(f"{where}: {what}", form[what])) for what in CHANGES if what in form
    }
    if not paths:
        raise InputError(f"{where}: there are no rows; expected {_either()}")
    settings: dict[str, Any] = {}
    for key in form:
        at = f"{where}: {key}"
        if key in ("row_key", "null_values"):
            settings[key] = _texts(at, form[key])
        elif key in ("if_exists", "allow_shrink", "round_nanoseconds"):
            if not isinstance(form[key], bool):
                raise InputError(f"{at}: expected true or false, not {described(form[key])}")
            settings[key] = form[key]
        elif key == "options":
            settings[key] = _options(at, form[key])
        elif key not in CHANGES:
            settings[key] = _text(at, form[key])
    return TableFiles(paths, **settings)


def _path(file: Path, path: str) -> str:
    """A path is relative to the file that names it."""
    if not is_local(path) or path.startswith("file:"):
        return path
    return str(file.parent / path)


def _options(where: str, form: Any) -> dict[str, str]:
    if not isinstance(form, dict):
        raise InputError(f"{where}: expected names and values, not {described(form)}")
    return {_text(where, name): _option(f"{where}: {name}", value) for name, value in form.items()}


def _option(where: str, value: Any) -> str:
    """An option as text, which YAML may have read as a boolean or a number."""
    if isinstance(value, bool):
        return str(value).lower()
    return str(value) if isinstance(value, int | float) else _text(where, value)


def _texts(where: str, form: Any) -> tuple[str, ...]:
    if isinstance(form, str):
        return (_text(where, form),)
    if not isinstance(form, list):
        raise InputError(f"{where}: expected text or a list of texts, not {described(form)}")
    return tuple(_text(where, text) for text in form)


def _text(where: str, form: Any) -> str:
    if not isinstance(form, str):
        raise InputError(f"{where}: expected text, not {described(form)} (quotes make text of it)")
    return form
