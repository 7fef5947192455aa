"""Making a profile, looking for more in it, and seeing that it is right."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

import typer

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.failures import FOUND
from holdfast.cli.opening import Spark, committing
from holdfast.cli.options import Cells, Compared, Directory, Sources, kinds_flag, source_flag
from holdfast.cli.printing import Output, OutputFormat, Printing, shown_path
from holdfast.kinds import registry

_SCHEMA = "Types, as in 'id bigint, name string'; for one table of several, 'TABLE=DDL'."
_DEVICE = "What counts pairs of rows; auto: a GPU where it is quicker."


def profile(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="PATH or NAME=PATH; else named after the file."),
    ],
    into: Annotated[str, flag("--into", "A new directory.", "DIR")],
    *,
    reading: Sources,
    schema: Annotated[list[str] | None, source_flag("--schema", _SCHEMA, "DDL")] = None,
    all_text: Annotated[bool, source_flag("--all-text", "Read every column as text.")] = False,
    multi_line: Annotated[bool, source_flag("--multi-line", "Cells may hold newlines.")] = False,
    flatten: Annotated[
        bool, source_flag("--flatten", "Fields of nested records become columns.")
    ] = False,
    cells: Cells,
    no_header: Annotated[bool, source_flag("--no-header", "The first line is a row.")] = False,
    kinds: Annotated[str | None, kinds_flag("What to look for", lambda kind: kind.default)] = None,
    nulls: Annotated[str, flag("--nulls", "How two nulls compare.", "equal|unequal")] = "equal",
    max_columns: Annotated[
        int | None, flag("--max-columns", "The longest key or left side to look for.", "N")
    ] = None,
    time_budget: Annotated[
        float | None, flag("--time-budget", "Search a table no longer than this.", "SECONDS")
    ] = None,
    evidence: Annotated[
        str,
        flag("--evidence", "How functional dependencies are known.", "auto|counted|witnessed"),
    ] = "auto",
    device: Annotated[str, flag("--device", _DEVICE, "auto|cpu|gpu")] = "auto",
    max_error: Annotated[
        float | None, flag("--max-error", "Also what this share of row pairs violates.", "SHARE")
    ] = None,
    compared: Compared,
    min_coverage: Annotated[
        float, flag("--min-coverage", "Also inclusions of this share of the values.", "SHARE")
    ] = 1.0,
    max_arity: Annotated[
        int, flag("--max-arity", "Columns on each side of an inclusion.", "N")
    ] = 1,
    inclusion_nulls: Annotated[
        str, flag("--inclusion-nulls", "Nulls on the left of an inclusion.", "ignored|values")
    ] = "ignored",
    empty_columns: Annotated[
        bool, flag("--empty-columns", "A column without values is in all others.")
    ] = False,
    within_tables: Annotated[
        bool, flag("--within-tables", "Also inclusions between columns of one table.")
    ] = False,
    insert_only: Annotated[
        bool, flag("--insert-only", "Count no values, and refuse deletes and updates.")
    ] = False,
    index_quota: Annotated[int, flag("--index-quota", "How many columns to index.", "N")] = 8,
    start: Annotated[
        str, flag("--start", "sample: a sample, then the rest as inserts.", "full|sample")
    ] = "full",
    no_rows: Annotated[bool, flag("--no-rows", "Keep no raw rows, so show none.")] = False,
    no_values: Annotated[
        bool, flag("--no-values", "Keep no values either, but keyed hashes.")
    ] = False,
    spark: Spark,
    printing: Printing,
) -> int:
    """Find the constraints of some tables, and keep them in a new profile directory."""
    from holdfast.input.sources import Source
    from holdfast.model.options import Options

    output, source_format, reader_options = reading.split()
    options = Options(
        kinds=() if kinds is None else kinds,
        nulls=nulls,
        max_columns=max_columns,
        time_budget=time_budget,
        evidence=evidence,
        device=device,
        max_error=max_error,
        **compared.given(),
        min_coverage=min_coverage,
        max_arity=max_arity,
        inclusion_nulls=inclusion_nulls,
        empty_columns=empty_columns,
        within_tables=within_tables,
        insert_only=insert_only,
        index_quota=index_quota,
        start=start,
        keep_rows=not no_rows,
        keep_values=not no_values,
    )
    named = arguments.name_tables(sources, source_format)
    schemas = arguments.split_schemas(schema, list(named))

    def source(name: str, path: str, paths: Sequence[str]) -> Source:
        return Source(
            path,
            source_format,
            reader_options,
            schemas.get(name),
            all_text=all_text,
            multi_line=multi_line,
            header=not no_header,
            flatten=flatten,
            round_nanoseconds=reading.round_nanoseconds,
            **arguments.for_csv(cells.given(), path, paths, source_format),
        )

    with arguments.spooled(named) as given, committing(into):
        paths = {name: path for name, path in given.items() if path is not None}
        tables = {name: source(name, path, list(paths.values())) for name, path in paths.items()}
        with printing.progress() as progress:
            from holdfast.api import Profile

            new_profile = Profile.create(
                into,
                tables,
                options=options,
                session=spark.session(progress),
                progress=progress,
                parallelism=spark.parallelism,
            )
        brief = _brief_parts(list(registry.REGISTRY))
        printing.profile(output, new_profile, into, new_profile.snapshot(), brief)
    return 0


def add(
    directory: Directory,
    kinds: Annotated[str, flag("--kinds", "What to look for from now on, too.", "KINDS")],
    *,
    compared: Compared,
    output: OutputFormat = Output.TEXT,
    spark: Spark,
    printing: Printing,
) -> int:
    """Look for further kinds of constraints in the rows that a profile holds, and keep them."""
    asked = [name.strip() for name in kinds.split(",")]
    options = compared.given()
    with committing(directory):
        with printing.progress() as progress:
            opened = spark.open(directory, progress)
            opened.add_kinds(asked, **options)
        printing.profile(output, opened, directory, opened.snapshot(), _brief_parts(asked))
    return 0


def verify(
    directory: Directory,
    *,
    output: OutputFormat = Output.TEXT,
    spark: Spark,
    printing: Printing,
) -> int:
    """Profile the current rows from scratch and compare; exit code 1 if anything differs."""
    from holdfast.report import terminal

    with printing.progress() as progress:
        outcome = spark.open(directory, progress).verify()
    printing.result(
        output,
        outcome.to_dict,
        lambda page: terminal.verification(page, shown_path(directory), outcome),
    )
    return 0 if outcome.equal else FOUND


def _brief_parts(kinds: Sequence[str]) -> list[str]:
    """What is shown of these kinds once they are found."""
    return [part.name for kind in registry.named(kinds) for part in kind.parts if part.brief]
