"""Parsing the arguments of commands."""

from __future__ import annotations

import csv
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from holdfast.input.sources import Source
from holdfast.kinds import registry
from holdfast.model.errors import InputError

_MAGIC = {b"\x1f\x8b": ".gz", b"\x28\xb5\x2f\xfd": ".zst", b"BZh": ".bz2"}
"""The first bytes of compressed data."""


def name_tables(arguments: Sequence[str], source_format: str | None) -> dict[str, str]:
    """Table names and their sources. A ``=`` ends a name only if no ``/`` comes before it.

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
    """The schemas of the tables that have one."""
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
    """Sources by name, with a file instead of ``-`` that has all of standard input.

    Workers read files, some of them several times. The suffix of the file names the compression
    that its first bytes indicate. It is removed at the end of the block.
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


def pairs(values: Sequence[str] | None, option: str, form: str = "KEY=VALUE") -> dict[str, str]:
    """``["a=1"]`` as a dict."""
    by_key: dict[str, str] = {}
    for value in values or ():
        name, equals, rest = value.partition("=")
        if not equals or not name:
            raise InputError(f"{option} {value!r}: expected {form}")
        by_key[name] = rest
    return by_key


def split_columns(value: str, option: str = "--row-key") -> list[str]:
    """Column names as keys are printed: with commas, unusual ones in backticks.

    >>> split_columns("id, `a,b`")
    ['id', 'a,b']
    """
    names = next(csv.reader([value], quotechar="`", skipinitialspace=True), [])
    if not names or not all(names):
        raise InputError(f"{option} {value!r}: expected column names with commas between them")
    return names


def split_names(value: str | None) -> list[str]:
    """The names of a namespace, with dots; unusual ones in backticks.

    >>> split_names("main.`my sales.eu`")
    ['main', 'my sales.eu']
    """
    if value is None:
        return []
    names = next(csv.reader([value], delimiter=".", quotechar="`"), [])
    if not names or not all(names):
        raise InputError(f"--namespace {value!r}: expected names with dots between them")
    return names


def expect_limit(limit: int | None, everything: bool) -> None:
    """Check the number of entries to show of each list."""
    if limit is not None and limit < 0:
        raise InputError(f"--limit must be a number of entries, 0 or more, not {limit}")
    if limit is not None and everything:
        raise InputError("--limit shortens lists and --all shows all of them: give only one")


def kind_fields(kinds: str | None) -> list[str] | None:
    """The JSON names of kinds that are given with commas; None: the kinds that gate."""
    if kinds is None:
        return None
    names = [name.strip() for name in kinds.split(",")]
    registry.expect(names)
    return [kind.field for kind in registry.named(names)]


def kinds_help(purpose: str, by_default: Sequence[str]) -> str:
    """The help of ``--kinds``.

    >>> kinds_help("What to look for", ["keys", "inds"])
    'What to look for: keys, fds, inds, dcs, columns, with commas; by default keys, inds.'
    """
    known = list(registry.REGISTRY)
    default = "all" if list(by_default) == known else ", ".join(by_default)
    return f"{purpose}: {', '.join(known)}, with commas; by default {default}."
