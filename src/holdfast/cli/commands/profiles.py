"""Creating a profile, adding kinds to it, and verifying it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.failures import FOUND
from holdfast.cli.opening import Spark, committing
from holdfast.cli.options import (
    ComparedOptions,
    Directory,
    Keep,
    ProfileOptions,
    Reading,
    source_flag,
)
from holdfast.cli.printing import Printing, shown_path
from holdfast.kinds import registry
from holdfast.model.errors import InputError

_SCHEMA = "Types, as in 'id bigint, name string'; for one table of several, 'TABLE=DDL'."


def profile(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="PATH, or NAME=PATH to name the table."),
    ],
    into: Annotated[
        str, flag("--into", "The profile directory, which must be new or empty.", "DIR")
    ],
    *,
    reading: Reading,
    schema: Annotated[list[str] | None, source_flag("--schema", _SCHEMA, "DDL")] = None,
    all_text: Annotated[bool, source_flag("--all-text", "Read every column as text.")] = False,
    multi_line: Annotated[bool, source_flag("--multi-line", "Cells may contain newlines.")] = False,
    flatten: Annotated[
        bool, source_flag("--flatten", "Make columns of the fields of nested records.")
    ] = False,
    no_header: Annotated[
        bool, source_flag("--no-header", "The first line is a row, not column names.")
    ] = False,
    options: ProfileOptions,
    spark: Spark,
    printing: Printing,
) -> int:
    """Find the constraints of tables, and store them in a new profile directory."""
    from holdfast.input.sources import Source

    settings = options.options()
    named = arguments.name_tables(sources, reading.input_format)
    schemas = arguments.split_schemas(schema, list(named))

    def source(name: str, path: str, paths: Sequence[str]) -> Source:
        return Source(
            path,
            reading.input_format,
            reading.reader_options(),
            schemas.get(name),
            all_text=all_text,
            multi_line=multi_line,
            header=not no_header,
            flatten=flatten,
            round_nanoseconds=reading.round_nanoseconds,
            **reading.cells_of(path, paths),
        )

    with arguments.spooled(named) as given, committing(into):
        paths = {name: path for name, path in given.items() if path is not None}
        tables = {name: source(name, path, list(paths.values())) for name, path in paths.items()}
        with printing.progress() as progress:
            from holdfast.api import Profile

            new_profile = Profile.create(
                into,
                tables,
                options=settings,
                progress=progress,
                **spark.engine_options(progress),
            )
        printing.version(new_profile, into)
    return 0


def add(
    directory: Directory,
    kinds: Annotated[
        str | None, flag("--kinds", "The kinds to look for in addition.", "KINDS")
    ] = None,
    *,
    near: Annotated[
        bool, flag("--near", "Look for rules that nearly hold, again or first.")
    ] = False,
    table: Annotated[
        str | None, flag("--table", "With --near, only in this table.", "NAME")
    ] = None,
    compared: ComparedOptions,
    spark: Spark,
    printing: Printing,
) -> int:
    """Look for more in the rows of a profile: kinds of constraints, or rules that nearly hold."""
    if not kinds and not near:
        raise InputError("say what to add: --kinds KINDS, --near, or both")
    if table is not None and not near:
        raise InputError("--table goes with --near: kinds are added for all tables")
    names = [name.strip() for name in (kinds or "").split(",") if name.strip()]
    with committing(directory):
        with spark.profile(directory, printing) as opened:
            if names:
                opened.add_kinds(names, **compared.given())
            if near:
                opened.look_for_near(table)
        parts = None if near else _brief_parts(names)
        printing.version(opened, directory, parts)
    return 0


def alter(
    directory: Directory,
    *,
    table: Annotated[str, flag("--table", "The table that changes.", "NAME")],
    add_column: Annotated[
        list[str] | None,
        flag("--add-column", "A new last column, null in all rows.", "NAME=TYPE"),
    ] = None,
    drop_column: Annotated[
        list[str] | None, flag("--drop-column", "A column that goes.", "NAME")
    ] = None,
    rename_column: Annotated[
        list[str] | None, flag("--rename-column", "A column that gets a new name.", "OLD=NEW")
    ] = None,
    spark: Spark,
    printing: Printing,
) -> int:
    """Add, drop or rename columns of a table, in a version of its own."""
    added = arguments.pairs(add_column, "--add-column", "NAME=TYPE")
    renamed = arguments.pairs(rename_column, "--rename-column", "OLD=NEW")
    with committing(directory):
        with spark.profile(directory, printing) as opened:
            opened.alter(table, add=added, drop=drop_column or (), rename=renamed)
        printing.version(opened, directory)
    return 0


def expire(
    directory: Directory,
    *,
    keep: Keep,
    printing: Printing,
) -> int:
    """Let old versions expire: remove them, and what only they need."""
    from holdfast.api import Profile

    before = Profile.open(directory)
    first = before.expire(keep.keep_versions, keep.keep_days)
    last = before.history()[-1].version
    printing.result(
        lambda: {"first": first, "last": last},
        lambda page: page.line(f"{shown_path(directory)} has versions {first:,} to {last:,}"),
    )
    return 0


def verify(
    directory: Directory,
    *,
    spark: Spark,
    printing: Printing,
) -> int:
    """Profile the current rows from scratch and compare; exit code 1 if anything differs."""
    from holdfast.report import terminal

    with spark.profile(directory, printing) as opened:
        outcome = opened.verify()
    printing.result(
        outcome.to_dict,
        lambda page: terminal.verification(page, shown_path(directory), outcome),
    )
    return 0 if outcome.equal else FOUND


def _brief_parts(kinds: Sequence[str]) -> list[str]:
    """The lists that are shown when these kinds have been found."""
    return [part.name for kind in registry.named(kinds) for part in kind.parts if part.brief]
