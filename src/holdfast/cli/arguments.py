"""What the arguments of a command mean."""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypedDict

from holdfast.input.batch_files import TableFiles, table_files
from holdfast.input.sources import Source
from holdfast.kinds import registry
from holdfast.model.errors import InputError

_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2"}
"""How compressed data begins."""

OUTPUTS = ("text", "json")
"""The ways to print, which are told apart from the formats of sources."""


def split_formats(values: Sequence[str] | None, forced: str | None) -> tuple[str, str | None]:
    """How to print and what to read: ``json`` and ``text`` are ways to print, the rest sources.

    >>> split_formats(["delta", "json"], None)
    ('json', 'delta')
    """
    outputs = [value for value in values or () if value in OUTPUTS]
    sources = [value for value in values or () if value not in OUTPUTS]
    if forced is not None:
        sources.append(forced)
    if len(outputs) > 1 or len(sources) > 1:
        raise InputError(
            "--format was given twice for the same thing: "
            f"{' and '.join(outputs if len(outputs) > 1 else sources)}; keep one of them"
        )
    return outputs[0] if outputs else "text", sources[0] if sources else None


def name_tables(arguments: Sequence[str], source_format: str | None) -> dict[str, str]:
    """Table names and where each comes from. Only a ``=`` before any ``/`` ends a name.

    >>> name_tables(["day=1/x.csv", "./day=2/y.csv"], None)
    {'day': '1/x.csv', 'y': './day=2/y.csv'}
    """
    tables: dict[str, str] = {}
    for argument in arguments:
        name, equals, path = argument.partition("=")
        if not equals or "/" in name:
            path = argument
            name = "stdin" if path == "-" else Source(path, source_format).name
        if not name or not path:
            raise InputError(f"{argument!r}: a table needs a name and a path, as in NAME=PATH")
        if name in tables:
            raise InputError(
                f"two tables are called {name!r}: {tables[name]} and {path}; "
                f"give one another name, as in NAME={path}"
            )
        tables[name] = path
    return tables


def split_schemas(values: Sequence[str] | None, tables: Sequence[str]) -> dict[str, str]:
    """The schema of each table that has one."""
    schemas: dict[str, str] = {}
    for value in values or ():
        name, equals, ddl = value.partition("=")
        if not equals or name not in tables:
            if len(tables) != 1:
                raise InputError(
                    f"--schema {value!r}: there are several tables, so say which one, "
                    f"as in '{tables[0]}=id bigint, name string'"
                )
            name, ddl = tables[0], value
        if name in schemas:
            raise InputError(f"--schema was given twice for table {name}")
        schemas[name] = ddl
    return schemas


@contextmanager
def spooled(given: Mapping[str, str | None]) -> Iterator[dict[str, str | None]]:
    """Sources by name, with a file in place of ``-``: what standard input has, read to its end.

    Workers read files, and several times if need be. The file has the suffix of the compression
    that its first bytes tell, and goes when the block ends.
    """
    names = [name for name, path in given.items() if path == "-"]
    if len(names) > 1:
        raise InputError(
            f"standard input (-) can be read once, but is given for {' and for '.join(names)}"
        )
    if not names:
        yield dict(given)
        return
    with tempfile.TemporaryDirectory(prefix="holdfast-") as folder:
        start = sys.stdin.buffer.read(4)
        suffix = next((end for magic, end in _MAGIC.items() if start.startswith(magic)), "")
        path = Path(folder) / f"standard-input{suffix}"
        with path.open("wb") as file:
            file.write(start)
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield {**given, names[0]: str(path)}


def pairs(values: Sequence[str] | None, option: str) -> dict[str, str]:
    """``["a=1"]`` as a dict."""
    by_key: dict[str, str] = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {value!r}: expected KEY=VALUE")
        by_key[name] = rest
    return by_key


def split_columns(value: str | None, option: str = "--row-key") -> list[str] | None:
    """Column names as keys are printed: with commas, unclear ones in backticks.

    >>> split_columns("id, `a,b`")
    ['id', 'a,b']
    """
    if value is None:
        return None
    names = next(csv.reader([value], quotechar="`", skipinitialspace=True), [])
    if not names or not all(names):
        raise InputError(f"{option} {value!r}: expected column names with commas between them")
    return names


def split_names(value: str | None) -> list[str]:
    """The names of a namespace, with dots; unclear ones in backticks.

    >>> split_names("main.`my sales.eu`")
    ['main', 'my sales.eu']
    """
    if value is None:
        return []
    names = next(csv.reader([value], delimiter=".", quotechar="`"), [])
    if not names or not all(names):
        raise InputError(f"--namespace {value!r}: expected names with dots between them")
    return names


class CellOptions(TypedDict, total=False):
    """How the cells of CSV are written, as far as that was given."""

    delimiter: str
    escape: str
    encoding: str
    null_values: tuple[str, ...]


def cell_options(
    delimiter: str | None, escape: str | None, encoding: str | None, nulls: Sequence[str] | None
) -> CellOptions:
    """Those that were given."""
    given: CellOptions = {}
    if delimiter is not None:
        given["delimiter"] = delimiter
    if escape is not None:
        given["escape"] = escape
    if encoding is not None:
        given["encoding"] = encoding
    if nulls:
        given["null_values"] = tuple(nulls)
    return given


def for_csv(
    cells: CellOptions, path: str, paths: Sequence[str], source_format: str | None
) -> CellOptions:
    """What was given of cells, for the sources that are CSV; if none is, that is refused."""
    maybe = [each for each in paths if Source(each, source_format).may_be_csv]
    return cells if path in maybe or not maybe else {}


def batch_sources(
    given: Mapping[str, str | None],
    source_format: str | None,
    options: dict[str, str],
    cells: CellOptions,
) -> dict[str, Source | None]:
    """The changes of a batch, read like the table's own rows unless a format is given."""
    if not any(given.values()):
        raise InputError("there is no change: give --inserts, --deletes, --updates or --upserts")
    paths = [path for path in given.values() if path is not None]
    return {
        kind: None
        if path is None
        else Source(path, source_format, options, **for_csv(cells, path, paths, source_format))
        for kind, path in given.items()
    }


def rounding(batch: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """The same batch, with nanoseconds rounded in the Parquet among its sources; if there is none,
    that is refused."""
    sources = [each for part in batch.values() for each in part.values() if type(each) is Source]
    maybe = [each for each in sources if each.may_be_parquet] or sources
    return {
        table: {
            key: replace(each, round_nanoseconds=True) if each in maybe else each
            for key, each in part.items()
        }
        for table, part in batch.items()
    }


@dataclass(frozen=True)
class Changed:
    """What ``apply`` and ``check`` are asked to change: one table (``changes`` are its rows, by
    what is done with them), or the tables of a batch that lies in files."""

    table: str | None
    changes: Mapping[str, str | None]
    batch: str | None
    row_keys: Sequence[str] | None
    if_exists: bool

    def __post_init__(self) -> None:
        rows = any(path is not None for path in self.changes.values())
        if self.table is None and self.batch is None:
            raise InputError(
                "say what changes: --table NAME and its rows, or --batch PATH for several tables"
            )
        if self.batch is not None and (self.table is not None or rows):
            raise InputError(
                "--batch names the tables and their rows: leave out --table, --inserts, --deletes, "
                "--updates and --upserts, or --batch"
            )

    def batch_of(
        self,
        paths: Mapping[str, str | None],
        source_format: str | None,
        options: dict[str, str],
        cells: CellOptions,
        tables: Callable[[], Sequence[str]],
    ) -> dict[str, dict[str, Any]]:
        """What happens to each table, with ``paths`` in place of standard input; ``tables`` reads
        which ones the profile has."""
        if self.table is not None:
            if self.row_keys is not None and len(self.row_keys) > 1:
                raise InputError("--row-key was given twice; a table has one, as in --row-key a,b")
            key = split_columns(self.row_keys[0]) if self.row_keys else None
            sources = batch_sources(paths, source_format, options, cells)
            return {self.table: {**sources, "row_key": key, "if_exists": self.if_exists}}
        files = table_files(self.batch or "")
        files |= {
            name: replace(files[name], row_key=key) for name, key in self._keys(files, tables)
        }
        files = {
            name: replace(
                each, format=each.format or source_format, options={**options, **each.options}
            )
            for name, each in files.items()
        }
        having = [name for name, each in files.items() if each.may_be_csv] or list(files)
        batch: dict[str, dict[str, Any]] = {}
        for name, each in files.items():
            new: dict[str, Any] = {c: v for c, v in cells.items() if getattr(each, c) is None}
            batch[name] = replace(each, **new if name in having else {}).batch()
            if self.if_exists and "deletes" in each.paths:
                batch[name]["if_exists"] = True
        if self.if_exists and not any("deletes" in each.paths for each in files.values()):
            raise InputError(f"--if-exists is about deletes, and {self.batch} has none")
        return batch

    def _keys(
        self, files: Mapping[str, TableFiles], tables: Callable[[], Sequence[str]]
    ) -> Iterator[tuple[str, tuple[str, ...]]]:
        """Row keys, for tables whose rows are looked for by one: one table's as TABLE=COLUMNS, or
        those of all that have none yet. So one command fits batches with and without updates."""
        looked_for = {name for name, its in files.items() if set(its.paths) != {"inserts"}}
        for value in self.row_keys or ():
            name, equals, columns = value.partition("=")
            if equals and name in tables():
                key = tuple(split_columns(columns) or ())
                yield from [(name, key)] if name in looked_for else []
                continue
            key = tuple(split_columns(value) or ())
            yield from [(each, key) for each in looked_for if not files[each].row_key]


def share_or_off(text: str, flag: str) -> float | None:
    """A share, or None where it is off.

    >>> share_or_off("0.5", "--cross-columns"), share_or_off("off", "--cross-columns")
    (0.5, None)
    """
    if text.strip().lower() == "off":
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{flag} must be a share from 0 to 1, or off, not {text!r}") from None


class ComparedOptions(TypedDict, total=False):
    """What denial constraints compare, as far as that was given."""

    max_predicates: int
    cross_columns: float | None
    columns: tuple[str, ...]


def compared(
    max_predicates: int | None, cross_columns: str | None, columns: str | None
) -> ComparedOptions:
    """Those that were given."""
    given: ComparedOptions = {}
    if max_predicates is not None:
        given["max_predicates"] = max_predicates
    if cross_columns is not None:
        given["cross_columns"] = share_or_off(cross_columns, "--cross-columns")
    if columns is not None:
        given["columns"] = tuple(split_columns(columns, "--columns") or ())
    return given


def expect_limit(limit: int | None, everything: bool) -> None:
    """See that the number of entries to show of each list is one."""
    if limit is not None and limit < 0:
        raise InputError(f"--limit must be a number of entries, 0 or more, not {limit}")
    if limit is not None and everything:
        raise InputError("--limit shows some of each list and --all shows all: give one of them")


class PageOptions(TypedDict, total=False):
    """How many entries of each list a page has, as far as that was given; None: all."""

    limit: int | None


def page_limit(limit: int | None, everything: bool) -> PageOptions:
    """That of ``--limit`` or ``--all``."""
    return {"limit": limit} if everything or limit is not None else {}


def kind_fields(kinds: str | None) -> list[str] | None:
    """The JSON names of kinds that are given with commas; None: those that gate."""
    if kinds is None:
        return None
    names = [name.strip() for name in kinds.split(",")]
    registry.expect(names)
    return [kind.field for kind in registry.named(names)]


def kinds_help(purpose: str, by_default: Sequence[str]) -> str:
    """What ``--kinds`` can be.

    >>> kinds_help("What to look for", ["keys", "inds"])
    'What to look for: keys, fds, inds, dcs, with commas; by default keys, inds.'
    """
    known = list(registry.REGISTRY)
    default = "all" if list(by_default) == known else ", ".join(by_default)
    return f"{purpose}: {', '.join(known)}, with commas; by default {default}."


AGREE_SETS = "agree-sets"
"""What ``show`` can be asked for that is no list of a kind: what pairs of rows show."""

COLUMNS = "columns"
"""The same: what is known of each column."""


def part_names() -> list[str]:
    """What ``show`` can be asked for.

    >>> part_names()
    ['columns', 'keys', 'non-keys', 'fds', 'dcs', 'agree-sets', 'inds', 'foreign-keys']
    """
    of_tables = [part.name for parts in registry.table_parts().values() for part in parts]
    of_profile = [part.name for parts in registry.profile_parts().values() for part in parts]
    return [COLUMNS, *of_tables, AGREE_SETS, *of_profile]
