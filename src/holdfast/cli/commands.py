"""The command line: each command is named after the method of Profile that it calls.

Results go to standard output, everything else to standard error. ``docs/cli.md`` describes it.
Imports are inside the commands, because ``show``, ``history`` and ``diff`` should answer at once
and need neither Spark nor kernels.
"""

from __future__ import annotations

import functools
import logging
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TextIO

import typer
import typer.core

from holdfast import families
from holdfast.cli import arguments
from holdfast.export import DIALECTS, FORMS
from holdfast.model.errors import StoreError
from holdfast.report.failures import FOUND, exit_code, hush, interrupted, notes
from holdfast.screen.text import plain

if TYPE_CHECKING:
    from holdfast.api import Profile
    from holdfast.families.base import Kind
    from holdfast.model.constraints import AgreeSet
    from holdfast.report.progress import Progress
    from holdfast.report.snapshot import Snapshot


class _PlainFlags:
    """Help that shows no type for a flag: there is no value to give."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for each in parameters:
            if getattr(each, "is_flag", False):
                each.metavar = ""
        return parameters


class _Command(_PlainFlags, typer.core.TyperCommand):
    pass


class _Group(_PlainFlags, typer.core.TyperGroup):
    pass


app = typer.Typer(
    name="holdfast",
    cls=_Group,
    help="Finds the keys, foreign keys, functional and inclusion dependencies and denial "
    "constraints that hold in tables, and keeps them current as rows arrive, change and go.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
P = ParamSpec("P")

log = logging.getLogger("holdfast")


class Output(StrEnum):
    """How results are printed."""

    TEXT = "text"
    JSON = "json"


class SessionAction(StrEnum):
    """What can be done with the session that commands share."""

    START = "start"
    STOP = "stop"
    STATUS = "status"


def _flag(names: str, text: str, metavar: str | None = None, panel: str | None = None) -> Any:
    return typer.Option(*names.split(), help=text, metavar=metavar, rich_help_panel=panel)


def _kinds_flag(purpose: str, default: Callable[[Kind], bool]) -> Any:
    """``--kinds``, with the kinds that there are."""
    chosen = [name for name, kind in families.REGISTRY.items() if default(kind)]
    return _flag("--kinds", arguments.kinds_help(purpose, chosen), "KINDS")


def _part_argument() -> Any:
    """What ``show`` can be asked for: the parts of the kinds that there are."""
    names = arguments.part_names()

    def expect(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, names))}.")
        return value

    return typer.Argument(metavar="PART", help=f"Only these: {', '.join(names)}.", callback=expect)


def _source_flag(name: str, text: str, metavar: str | None = None) -> Any:
    return _flag(name, text, metavar, "Where the rows come from")


def _spark_flag(name: str, text: str, metavar: str) -> Any:
    return _flag(name, text, metavar, "Spark")


_FORMAT = (
    "text or json: how results are printed. Anything else (csv, parquet, orc, table, jdbc, "
    "delta …): the format of the source. Can be given twice."
)
_SCHEMA = "Types, as in 'id bigint, name string'; for one table of several, 'TABLE=DDL'."
_ROW_KEY = (
    "Columns that name one row, with commas; `a,b` in backticks is one column. With --batch "
    "TABLE=COLUMNS, for each table."
)

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The profile directory.")]
FromVersion = Annotated[int, typer.Argument(metavar="A", help="The version to start from.")]
ToVersion = Annotated[int, typer.Argument(metavar="B", help="The version to end with.")]
Table = Annotated[str | None, _flag("--table", "The table that changes.", "NAME")]
BatchPath = Annotated[
    str | None,
    _flag("--batch", "Several tables: a folder (TABLE/inserts.csv …) or a YAML file.", "PATH"),
]
OneTable = Annotated[str | None, _flag("--table", "Only this table.", "NAME")]
OutputFormat = Annotated[Output, _flag("--format", "How results are printed.")]
Formats = Annotated[list[str] | None, _flag("--format", _FORMAT, "FORMAT")]
InputFormat = Annotated[
    str | None, _source_flag("--input-format", "Its format, also json and text.", "FORMAT")
]
ReaderOptions = Annotated[
    list[str] | None,
    _source_flag("--option", "An option of Spark's reader. Repeatable.", "KEY=VALUE"),
]
Delimiter = Annotated[str | None, _source_flag("--delimiter", "Between cells.", "CHAR")]
Escape = Annotated[
    str | None,
    _source_flag("--escape", "Before a quote inside quotes, such as a backslash.", "CHAR"),
]
Encoding = Annotated[
    str | None, _source_flag("--encoding", "Of CSV, such as latin-1; else UTF-8.", "NAME")
]
NullValues = Annotated[
    list[str] | None,
    _source_flag("--null-value", "A cell that means null, such as NA. Repeatable.", "TEXT"),
]
Inserts = Annotated[str | None, _flag("--inserts", "New rows.", "SOURCE")]
Deletes = Annotated[
    str | None, _flag("--deletes", "Rows to remove: whole, or the row key's columns.", "SOURCE")
]
Updates = Annotated[
    str | None, _flag("--updates", "Whole new rows; --row-key says for which ones.", "SOURCE")
]
Upserts = Annotated[
    str | None, _flag("--upserts", "Whole rows; those that --row-key finds are replaced.", "SOURCE")
]
IfExists = Annotated[bool, _flag("--if-exists", "Skip deletes of rows that are not there.")]
RowKey = Annotated[list[str] | None, _flag("--row-key", _ROW_KEY, "COLUMNS")]
BatchId = Annotated[
    str | None, _flag("--batch-id", "A batch with this id is applied only once.", "ID")
]
Retries = Annotated[
    int, _flag("--retries", "How often to try again when another writer commits first.", "N")
]
Master = Annotated[str | None, _spark_flag("--master", "Spark's master.", "URL")]
Remote = Annotated[str | None, _spark_flag("--remote", "A Spark Connect server.", "URL")]
Conf = Annotated[
    list[str] | None, _spark_flag("--conf", "A setting of the session. Repeatable.", "KEY=VALUE")
]
Parallelism = Annotated[
    int | None, _spark_flag("--parallelism", "Into how many tasks work is divided.", "N")
]
_DEVICE = "What counts pairs of rows; auto: a GPU where it is quicker."
Device = Annotated[str, _flag("--device", _DEVICE, "auto|cpu|gpu")]
OtherDevice = Annotated[
    str | None, _flag("--device", "Count with this, not the profile's own.", "auto|cpu|gpu")
]
MaxPredicates = Annotated[
    int | None, _flag("--max-predicates", "The most comparisons of a denial constraint.", "N")
]
CrossColumns = Annotated[
    str | None,
    _flag("--cross-columns", "Compare columns that share so many values; or off.", "SHARE|off"),
]
Compared = Annotated[
    str | None, _flag("--columns", "Those that denial constraints compare, with commas.", "COLUMNS")
]
Limit = Annotated[int | None, _flag("--limit", "Show at most so many of each list.", "N")]
PageLimit = Annotated[
    int | None, _flag("--limit", "At most so many of each list; else 10,000.", "N")
]
NoValues = Annotated[bool, _flag("--no-values", "Show no cell of the data: no rows, no plots.")]
All = Annotated[bool, _flag("--all", "Show long lists whole.")]
Quiet = Annotated[bool, _flag("--quiet -q", "Neither progress nor notes.")]
Verbose = Annotated[bool, _flag("--verbose -v", "Tell more.")]


def command(function: Callable[P, int]) -> Callable[P, None]:
    """Make a function a command: it returns an exit code, and its errors become one line."""

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        with notes(quiet=bool(kwargs["quiet"]), verbose=bool(kwargs["verbose"])):
            code = exit_code(lambda: function(*args, **kwargs))
        if code:
            raise typer.Exit(code)

    app.command(cls=_Command)(run)
    return run


@command
def profile(
    sources: Annotated[
        list[str],
        typer.Argument(metavar="SOURCE", help="PATH or NAME=PATH; else named after the file."),
    ],
    into: Annotated[str, _flag("--into", "A new directory.", "DIR")],
    formats: Formats = None,
    input_format: InputFormat = None,
    option: ReaderOptions = None,
    schema: Annotated[list[str] | None, _source_flag("--schema", _SCHEMA, "DDL")] = None,
    all_text: Annotated[bool, _source_flag("--all-text", "Read every column as text.")] = False,
    multi_line: Annotated[bool, _source_flag("--multi-line", "Cells may hold newlines.")] = False,
    flatten: Annotated[
        bool, _source_flag("--flatten", "Fields of nested records become columns.")
    ] = False,
    delimiter: Delimiter = None,
    escape: Escape = None,
    encoding: Encoding = None,
    null_value: NullValues = None,
    no_header: Annotated[bool, _source_flag("--no-header", "The first line is a row.")] = False,
    kinds: Annotated[str | None, _kinds_flag("What to look for", lambda kind: kind.default)] = None,
    nulls: Annotated[str, _flag("--nulls", "How two nulls compare.", "equal|unequal")] = "equal",
    max_columns: Annotated[
        int | None, _flag("--max-columns", "The longest key or left side to look for.", "N")
    ] = None,
    time_budget: Annotated[
        float | None, _flag("--time-budget", "Search a table no longer than this.", "SECONDS")
    ] = None,
    evidence: Annotated[
        str,
        _flag("--evidence", "How functional dependencies are known.", "auto|counted|witnessed"),
    ] = "auto",
    device: Device = "auto",
    max_error: Annotated[
        float | None, _flag("--max-error", "Also what this share of row pairs violates.", "SHARE")
    ] = None,
    max_predicates: MaxPredicates = None,
    cross_columns: CrossColumns = None,
    columns: Compared = None,
    min_coverage: Annotated[
        float, _flag("--min-coverage", "Also inclusions of this share of the values.", "SHARE")
    ] = 1.0,
    max_arity: Annotated[
        int, _flag("--max-arity", "Columns on each side of an inclusion.", "N")
    ] = 1,
    inclusion_nulls: Annotated[
        str, _flag("--inclusion-nulls", "Nulls on the left of an inclusion.", "ignored|values")
    ] = "ignored",
    empty_columns: Annotated[
        bool, _flag("--empty-columns", "A column without values is in all others.")
    ] = False,
    within_tables: Annotated[
        bool, _flag("--within-tables", "Also inclusions between columns of one table.")
    ] = False,
    insert_only: Annotated[
        bool, _flag("--insert-only", "Count no values, and refuse deletes and updates.")
    ] = False,
    index_quota: Annotated[int, _flag("--index-quota", "How many columns to index.", "N")] = 8,
    start: Annotated[
        str, _flag("--start", "sample: a sample, then the rest as inserts.", "full|sample")
    ] = "full",
    no_rows: Annotated[bool, _flag("--no-rows", "Keep no raw rows, so show none.")] = False,
    no_values: Annotated[
        bool, _flag("--no-values", "Keep no values either, but keyed hashes.")
    ] = False,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Find the constraints of some tables, and keep them in a new profile directory."""
    from holdfast.input.sources import Source
    from holdfast.model.options import Options

    output, source_format = arguments.split_formats(formats, input_format)
    options = Options(
        kinds=() if kinds is None else kinds,
        nulls=nulls,
        max_columns=max_columns,
        time_budget=time_budget,
        evidence=evidence,
        device=device,
        max_error=max_error,
        **arguments.compared(max_predicates, cross_columns, columns),
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
    reader_options = arguments.pairs(option, "--option")
    cells = arguments.cell_options(delimiter, escape, encoding, null_value)

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
            **arguments.for_csv(cells, path, paths, source_format),
        )

    spark = _spark(master, remote, conf, parallelism)
    with arguments.spooled(named) as given, _committing(into):
        paths = {name: path for name, path in given.items() if path is not None}
        tables = {name: source(name, path, list(paths.values())) for name, path in paths.items()}
        with _progress(quiet) as progress:
            from holdfast.api import Profile

            new_profile = Profile.create(
                into,
                tables,
                options=options,
                session=functools.partial(spark.session, progress),
                progress=progress,
                parallelism=spark.parallelism,
            )
        kinds_shown = families.REGISTRY.values()
        brief = [part.name for kind in kinds_shown for part in kind.parts if part.brief]
        _show(new_profile, into, new_profile.snapshot(), output, brief, everything, verbose)
    return 0


@command
def apply(
    directory: Directory,
    table: Table = None,
    inserts: Inserts = None,
    deletes: Deletes = None,
    updates: Updates = None,
    upserts: Upserts = None,
    batch: BatchPath = None,
    row_key: RowKey = None,
    if_exists: IfExists = False,
    batch_id: BatchId = None,
    retries: Retries = 0,
    strict: Annotated[
        bool, _flag("--strict", "Do not apply a batch that breaks what it should not.")
    ] = False,
    quarantine: Annotated[
        str | None, _flag("--quarantine", "Write rows there that break expected rules.", "FOLDER")
    ] = None,
    formats: Formats = None,
    input_format: InputFormat = None,
    option: ReaderOptions = None,
    delimiter: Delimiter = None,
    escape: Escape = None,
    encoding: Encoding = None,
    null_value: NullValues = None,
    device: OtherDevice = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Apply a batch of changes to one or several tables; tell what became true and what stopped."""
    from holdfast.report import terminal

    output, source_format = arguments.split_formats(formats, input_format)
    options = arguments.pairs(option, "--option")
    cells = arguments.cell_options(delimiter, escape, encoding, null_value)
    given = {"inserts": inserts, "deletes": deletes, "updates": updates, "upserts": upserts}
    changed = arguments.Changed(table, given, batch, row_key, if_exists)
    spark = _spark(master, remote, conf, parallelism)
    with arguments.spooled(given) as paths, _committing(directory):
        tables = changed.batch_of(paths, source_format, options, cells)
        with _progress(quiet) as progress:
            opened = _open(directory, spark, progress)
            changes = opened.apply(
                tables,
                batch_id=batch_id,
                retries=retries,
                device=device,
                strict=strict,
                quarantine=quarantine,
            )
        outcome = changes if table is None else changes.alone(table)
        if output == Output.JSON:
            _print_json(outcome.to_dict())
        else:
            page = terminal.Page(sys.stdout, everything=everything)
            terminal.changes(page, outcome, verbose=verbose)
    return FOUND if outcome.refused or (outcome.applied and outcome.stops) else 0


@command
def check(
    directory: Directory,
    table: Table = None,
    inserts: Inserts = None,
    deletes: Deletes = None,
    updates: Updates = None,
    upserts: Upserts = None,
    batch: BatchPath = None,
    row_key: RowKey = None,
    if_exists: IfExists = False,
    batch_id: BatchId = None,
    kinds: Annotated[
        str | None, _kinds_flag("What the exit code is about", lambda kind: kind.gates)
    ] = None,
    formats: Formats = None,
    input_format: InputFormat = None,
    option: ReaderOptions = None,
    delimiter: Delimiter = None,
    escape: Escape = None,
    encoding: Encoding = None,
    null_value: NullValues = None,
    device: OtherDevice = None,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Tell what a batch would change, without applying it; exit code 1 if something would break."""
    from holdfast.report import forms, terminal

    output, source_format = arguments.split_formats(formats, input_format)
    options = arguments.pairs(option, "--option")
    cells = arguments.cell_options(delimiter, escape, encoding, null_value)
    given = {"inserts": inserts, "deletes": deletes, "updates": updates, "upserts": upserts}
    changed = arguments.Changed(table, given, batch, row_key, if_exists)
    gates = arguments.kind_fields(kinds)
    spark = _spark(master, remote, conf, parallelism)
    with arguments.spooled(given) as paths, _progress(quiet) as progress:
        tables = changed.batch_of(paths, source_format, options, cells)
        opened = _open(directory, spark, progress)
        changes = opened.check(tables, batch_id=batch_id, device=device)
    outcome = changes if table is None else changes.alone(table)
    if output == Output.JSON:
        _print_json(forms.check(outcome, gates))
    else:
        page = terminal.Page(sys.stdout, everything=everything)
        terminal.changes(page, outcome, check=True, verbose=verbose)
    return FOUND if families.breaks(outcome, gates) else 0


@command
def expect(
    directory: Directory,
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="RULE", help="Such as 'orders: key(id)'.")
    ] = None,
    file: Annotated[str | None, _flag("--from", "A YAML file of rules.", "FILE")] = None,
    severity: Annotated[
        str, _flag("--severity", "Whether one that breaks stops a load.", "error|warn")
    ] = "error",
    max_error: Annotated[
        float, _flag("--max-error", "The share that may violate it.", "SHARE")
    ] = 0.0,
    name: Annotated[str | None, _flag("--name", "What the rule is called.", "NAME")] = None,
    suggest: Annotated[
        bool, _flag("--suggest", "Offer the best rules that hold, one by one.")
    ] = False,
    yes: Annotated[bool, _flag("--yes", "With --suggest: take them all.")] = False,
    output: OutputFormat = Output.TEXT,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Expect rules to hold: check, apply and exit codes are then about them."""
    from holdfast.cli import suggestions
    from holdfast.report import forms, terminal

    spark = _spark(master, remote, conf, parallelism)
    if suggest or yes:
        given = bool(rules) or file is not None or name is not None
        asks = output == Output.TEXT and sys.stdin.isatty() and sys.stderr.isatty()
        offers = suggestions.offered(directory, given=given, suggest=suggest)
        if not yes and not asks:
            if output == Output.JSON:
                _print_json(forms.suggestions(offers))
            else:
                suggestions.printed(offers, quiet=quiet)
            return 0
        chosen = offers if yes else suggestions.chosen(offers)
        rules = [each.rule for each in chosen]
        if not rules:
            if output == Output.JSON:
                _print_json(forms.expected([]))
            else:
                suggestions.nothing(offers, quiet=quiet)
            return 0
    with _committing(directory), _progress(quiet) as progress:
        opened = _open(directory, spark, progress)
        changes = opened.expect(
            *(rules or ()), severity=severity, max_error=max_error, name=name, file=file
        )
    if output == Output.JSON:
        _print_json(forms.expected(changes))
    else:
        terminal.expected(terminal.Page(sys.stdout, everything=everything), changes)
    return 0


@command
def expectations(
    directory: Directory,
    at: Annotated[int | None, _flag("--at", "An earlier version.", "VERSION")] = None,
    output: OutputFormat = Output.TEXT,
    everything: All = False,
    quiet: Quiet = False,  # noqa: ARG001
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """List the expected rules, and whether each holds."""
    from holdfast.api import Profile
    from holdfast.report import forms, terminal

    standings = Profile.open(directory).expectations(at)
    if output == Output.JSON:
        _print_json(forms.expectations(standings))
    else:
        terminal.expectations(terminal.Page(sys.stdout, everything=everything), standings)
    return 0


@command
def forget(
    directory: Directory,
    rule: Annotated[str, typer.Argument(metavar="RULE|NAME", help="Which one.")],
    output: OutputFormat = Output.TEXT,
    everything: All = False,
    quiet: Quiet = False,  # noqa: ARG001
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Expect a rule no more."""
    from holdfast.api import Profile
    from holdfast.report import forms, terminal

    gone = Profile.open(directory).forget(rule)
    if output == Output.JSON:
        _print_json(forms.forgotten(gone))
    else:
        page = terminal.Page(sys.stdout, everything=everything)
        page.line(f"{gone.rule}: not expected any more")
    return 0


@command
def show(
    directory: Directory,
    part: Annotated[str | None, _part_argument()] = None,
    table: OneTable = None,
    at: Annotated[int | None, _flag("--at", "An earlier version.", "VERSION")] = None,
    min_coverage: Annotated[
        float | None,
        _flag("--min-coverage", "Also inclusions of this share of the values.", "SHARE"),
    ] = None,
    limit: Limit = None,
    output: OutputFormat = Output.TEXT,
    everything: All = False,
    quiet: Quiet = False,  # noqa: ARG001  every command takes it
    verbose: Verbose = False,
) -> int:
    """Show what a profile knows: columns, keys and non-keys, dependencies, foreign keys, rules."""
    from dataclasses import replace

    from holdfast.api import Profile
    from holdfast.model.commits import unknown_table
    from holdfast.report import forms, terminal

    arguments.expect_limit(limit, everything)
    opened = Profile.open(directory)
    snapshot = opened.snapshot(at)
    if table is not None:
        if table not in snapshot.tables:
            raise unknown_table(table, snapshot.tables)
        snapshot = replace(snapshot, tables={table: snapshot.tables[table]})
    if part == arguments.COLUMNS:
        if output == Output.JSON:
            _print_json(forms.columns(snapshot, limit))
        else:
            page = terminal.Page(sys.stdout, everything=everything, limit=limit)
            terminal.columns(page, snapshot)
        return 0
    if part == arguments.AGREE_SETS:
        # Where no table has them, the first one says why.
        having = {*filter(opened.counts_pairs, snapshot.tables)} or {*snapshot.tables}
        counted: dict[str, list[AgreeSet] | None] = {
            name: opened.agree_sets(name, at=at) if name in having else None
            for name in snapshot.tables
        }
        if output == Output.JSON:
            _print_json(forms.agree_sets(snapshot, counted, limit))
        else:
            page = terminal.Page(sys.stdout, everything=everything, limit=limit)
            terminal.agree_sets(page, counted)
        return 0
    for kind in families.REGISTRY.values():
        if part in [each.name for each in kind.parts]:
            snapshot.expect(kind)
    if min_coverage is not None:
        snapshot = snapshot.asked_with({"min_coverage": min_coverage})
    parts = None if part is None else [part]
    _show(opened, directory, snapshot, output, parts, everything, verbose, limit)
    return 0


@command
def explain(
    directory: Directory,
    rule: Annotated[
        str, typer.Argument(metavar="RULE", help="As it is printed: 'orders: key(a, b)'.")
    ],
    limit: Annotated[
        int | None, _flag("--limit", "Show so many examples of what violates it.", "N")
    ] = None,
    mask: Annotated[bool, _flag("--mask", "Show numbers in place of values.")] = False,
    output: OutputFormat = Output.TEXT,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Tell of one rule whether it holds, since when, what violates it, and what is near it."""
    from holdfast.model.explanation import EXAMPLES
    from holdfast.report import terminal

    arguments.expect_limit(limit, everything)
    spark = _spark(master, remote, conf, parallelism)
    with _progress(quiet) as progress:
        opened = _open(directory, spark, progress)
        explanation = opened.explain(rule, EXAMPLES if limit is None else limit, mask)
    if output == Output.JSON:
        _print_json(explanation.to_dict())
    else:
        terminal.explanation(terminal.Page(sys.stdout, everything=everything), explanation)
    return 0


@command
def predicates(
    directory: Directory,
    table: OneTable = None,
    stored: Annotated[bool, _flag("--stored", "Only what was chosen, without Spark.")] = False,
    output: OutputFormat = Output.TEXT,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """List what denial constraints compare, and what today's rows would choose."""
    from holdfast.report import forms, terminal

    spark = _spark(master, remote, conf, parallelism)
    with _progress(quiet) as progress:
        by_table = _open(directory, spark, progress).predicates(table, today=not stored)
    if output == Output.JSON:
        _print_json(forms.predicates(by_table))
    else:
        terminal.predicates(terminal.Page(sys.stdout, everything=everything), by_table)
    return 0


@command
def add(
    directory: Directory,
    kinds: Annotated[str, _flag("--kinds", "What to look for from now on, too.", "KINDS")],
    max_predicates: MaxPredicates = None,
    cross_columns: CrossColumns = None,
    columns: Compared = None,
    output: OutputFormat = Output.TEXT,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> int:
    """Look for further kinds of constraints in the rows that a profile holds, and keep them."""
    asked = [name.strip() for name in kinds.split(",")]
    options = arguments.compared(max_predicates, cross_columns, columns)
    spark = _spark(master, remote, conf, parallelism)
    with _committing(directory):
        with _progress(quiet) as progress:
            opened = _open(directory, spark, progress)
            opened.add_kinds(asked, **options)
        parts = [part.name for kind in families.named(asked) for part in kind.parts if part.brief]
        _show(opened, directory, opened.snapshot(), output, parts, everything, verbose)
    return 0


@command
def export(
    directory: Directory,
    to: Annotated[str, _flag("--to", f"One of {', '.join(FORMS)}.", "FORM")],
    dialect: Annotated[
        str, _flag("--dialect", f"Of SQL: {', '.join(DIALECTS)}.", "NAME")
    ] = "spark",
    out: Annotated[
        str | None, _flag("--out -o", "Write a file, or a folder of several.", "PATH")
    ] = None,
    table: Annotated[
        list[str] | None, _flag("--table", "Only this table. Repeatable.", "NAME")
    ] = None,
    tables: Annotated[bool, _flag("--tables", "For sql: make the tables, too.")] = False,
    namespace: Annotated[
        str | None, _flag("--namespace", "Where the tables are, as in main.sales.", "NAME")
    ] = None,
    at: Annotated[int | None, _flag("--at", "An earlier version.", "VERSION")] = None,
    output: OutputFormat = Output.TEXT,
    everything: Annotated[bool, _flag("--all", "Every constraint that holds.")] = False,
    quiet: Quiet = False,  # noqa: ARG001
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Write the constraints in the form of another tool: SQL, dbt tests, a diagram and so on."""
    from holdfast.api import Profile

    files = Profile.open(directory).export(
        to,
        dialect=dialect,
        everything=everything,
        tables=table or None,
        namespace=arguments.split_names(namespace),
        create=tables,
        version=at,
    )
    if out is not None:
        written = files.write(out)
        if output == Output.JSON:
            _print_json({"written": written})
        else:
            sys.stdout.write("".join(f"{plain(each)}\n" for each in written))
    elif output == Output.JSON:
        _print_json({"files": dict(files)})
    else:
        sys.stdout.write(str(files))
    return 0


@command
def history(
    directory: Directory,
    output: OutputFormat = Output.TEXT,
    everything: All = False,
    quiet: Quiet = False,  # noqa: ARG001
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """List the versions of a profile and what each changed."""
    from holdfast.api import Profile
    from holdfast.report import forms, terminal

    entries = Profile.open(directory).history()
    if output == Output.JSON:
        _print_json(forms.history(entries))
    else:
        terminal.history(terminal.Page(sys.stdout, everything=everything), entries)
    return 0


@command
def diff(
    directory: Directory,
    a: FromVersion,
    b: ToVersion,
    output: OutputFormat = Output.TEXT,
    everything: All = False,
    quiet: Quiet = False,  # noqa: ARG001
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Show which keys and dependencies were gained and lost from version A to version B."""
    from holdfast.api import Profile
    from holdfast.report import forms, terminal

    tables = Profile.open(directory).diff(a, b)
    if output == Output.JSON:
        _print_json(forms.diff(a, b, tables))
    else:
        terminal.diff(terminal.Page(sys.stdout, everything=everything), a, b, tables)
    return 0


@command
def report(
    directory: Directory,
    file: Annotated[
        str | None, _flag("--output -o", "The file to write; else called after DIR.", "FILE")
    ] = None,
    show_it: Annotated[bool, _flag("--open", "Show it in the browser.")] = False,
    limit: PageLimit = None,
    no_values: NoValues = False,
    output: OutputFormat = Output.TEXT,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Write a profile as one HTML page that needs nothing else: tables, constraints, history."""
    from holdfast.api import Profile

    arguments.expect_limit(limit, everything)
    with _progress(quiet) as progress:
        opened = Profile.open(directory, progress=progress)
        written = opened.report(
            file, values=not no_values, **arguments.page_limit(limit, everything)
        )
    if output == Output.JSON:
        _print_json({"file": written, "bytes": Path(written).stat().st_size})
    else:
        sys.stdout.write(f"{written}\n")
    if show_it:
        _browse(Path(written).resolve().as_uri())
    return 0


@command
def serve(
    directory: Directory,
    host: Annotated[
        str, _flag("--host", "Where to listen; anything but loopback takes a token.", "ADDRESS")
    ] = "127.0.0.1",
    port: Annotated[int, _flag("--port", "The port; 0 for any that is free.", "N")] = 8400,
    show_it: Annotated[bool, _flag("--open", "Show it in the browser.")] = False,
    limit: PageLimit = None,
    no_values: NoValues = False,
    output: OutputFormat = Output.TEXT,
    everything: All = False,
    quiet: Quiet = False,  # noqa: ARG001
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Serve the report as a page that follows the profile, read-only, until an interrupt."""
    from holdfast.api import Profile

    arguments.expect_limit(limit, everything)
    opened = Profile.open(directory)

    def ready(url: str) -> None:
        if output == Output.JSON:
            _print_json({"url": url})
        else:
            sys.stdout.write(f"{_shown(directory)}: {url} (Ctrl-C stops)\n")
        sys.stdout.flush()
        if show_it:
            _browse(url)

    # A service manager ends what it started by this signal, a terminal by the other.
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        most = arguments.page_limit(limit, everything)
        opened.serve(host, port, values=not no_values, ready=ready, **most)
    finally:
        signal.signal(signal.SIGTERM, before)
    return 0


@command
def verify(
    directory: Directory,
    output: OutputFormat = Output.TEXT,
    master: Master = None,
    remote: Remote = None,
    conf: Conf = None,
    parallelism: Parallelism = None,
    everything: All = False,
    quiet: Quiet = False,
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Profile the current rows from scratch and compare; exit code 1 if anything differs."""
    from holdfast.report import terminal

    spark = _spark(master, remote, conf, parallelism)
    with _progress(quiet) as progress:
        outcome = _open(directory, spark, progress).verify()
    if output == Output.JSON:
        _print_json(outcome.to_dict())
    else:
        page = terminal.Page(sys.stdout, everything=everything)
        terminal.verification(page, _shown(directory), outcome)
    return 0 if outcome.equal else FOUND


@command
def session(
    action: Annotated[SessionAction, typer.Argument(metavar="start|stop|status", help="What.")],
    idle_minutes: Annotated[
        float, _flag("--idle-minutes", "Ends by itself after so long without commands.", "N")
    ] = 30,
    master: Master = None,
    conf: Conf = None,
    output: OutputFormat = Output.TEXT,
    everything: All = False,  # noqa: ARG001
    quiet: Quiet = False,
    verbose: Verbose = False,  # noqa: ARG001
) -> int:
    """Keep a Spark running for later commands of this user, so that they need not start one."""
    from holdfast.cli import session_control

    if action == SessionAction.START:
        settings = arguments.pairs(conf, "--conf")
        with _progress(quiet) as progress:
            if progress:
                progress("session")
            status = session_control.start(master, settings, idle_minutes)
    elif action == SessionAction.STOP:
        status = session_control.stop()
    else:
        status = session_control.status()
    if output == Output.JSON:
        _print_json(status.to_dict())
    else:
        sys.stdout.write(f"{status}\n")
    return 0 if status.running or action != SessionAction.STATUS else FOUND


def _print_version(wanted: bool) -> None:
    if wanted:
        from holdfast import __version__

        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _holdfast(
    version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_print_version, help="Print it."),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line in this process."""
    hush()
    run()


def run() -> None:
    """Run the command that ``sys.argv`` has; ends with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that lacks a character should not cost the results.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    _parser()(prog_name="holdfast")


@functools.cache
def _parser() -> Any:
    """All commands with their options: read once, though a session runs many commands."""
    return typer.main.get_command(app)


@dataclass(frozen=True)
class _Spark:
    """The session that a command asks for, and into how many tasks it divides work there."""

    master: str | None
    remote: str | None
    settings: dict[str, str]
    parallelism: int | None

    def session(self, progress: Progress | None) -> Any:
        """Open it."""
        from holdfast.spark.session import open_session

        if progress:
            progress("session")
        # Spark installs a handler that talks to the JVM in the middle of another call to it.
        before = signal.getsignal(signal.SIGINT)
        try:
            return open_session(self.master, self.remote, self.settings)
        finally:
            signal.signal(signal.SIGINT, before)


def _spark(
    master: str | None, remote: str | None, conf: Sequence[str] | None, parallelism: int | None
) -> _Spark:
    """What is wrong with the arguments is reported before anything is opened."""
    return _Spark(master, remote, arguments.pairs(conf, "--conf"), parallelism)


def _open(directory: str, spark: _Spark, progress: Progress | None) -> Profile:
    from holdfast.api import Profile

    session = functools.partial(spark.session, progress)
    return Profile.open(
        directory, session=session, progress=progress, parallelism=spark.parallelism
    )


@contextmanager
def _progress(quiet: bool) -> Iterator[Progress | None]:
    if quiet:
        yield None
        return
    from holdfast.report.progress import Progress

    try:
        # A copy, because a starting JVM is given another standard error for a while.
        stream: TextIO = os.fdopen(os.dup(sys.stderr.fileno()), "w")
    except (OSError, ValueError):  # not a file: a test, a notebook
        stream = sys.stderr
    with Progress(stream) as progress:
        yield progress


@contextmanager
def _committing(directory: str) -> Iterator[None]:
    """Tell an interrupted user truly whether a version was committed."""
    before = _head(directory)
    try:
        yield
    except BaseException as error:
        if interrupted(error) and (after := _head(directory)) != before:
            raise KeyboardInterrupt(f"interrupted, but version {after} is committed") from error
        raise


def _head(directory: str) -> int:
    from holdfast.store import Store

    try:
        return Store.open(directory).head()
    except StoreError:
        return 0


def _show(
    opened: Profile,
    directory: str,
    snapshot: Snapshot,
    output: str,
    parts: Sequence[str] | None,
    everything: bool,
    verbose: bool,
    limit: int | None = None,
) -> None:
    from holdfast.report import forms, terminal

    sizes = opened.sizes() if verbose else None
    ranking = opened.ranking_of(snapshot) if parts is None else None
    page = terminal.Page(sys.stdout, everything=everything, limit=limit)
    if output == Output.JSON:
        form = forms.show(
            snapshot, parts, verbose=verbose, sizes=sizes, limit=limit, ranking=ranking
        )
        _print_json(form)
    elif ranking is not None and not (everything or verbose or limit is not None):
        terminal.overview(page, _shown(directory), snapshot, ranking)
    else:
        terminal.show(page, _shown(directory), snapshot, parts, verbose=verbose, sizes=sizes)


def _browse(url: str) -> None:
    import webbrowser

    if not webbrowser.open(url):
        log.warning("there is no browser to show it with; open %s", url)


def _shown(directory: str) -> str:
    """A profile directory as results name it."""
    from holdfast.store import local_path
    from holdfast.tasks.objects import is_remote, shown

    return shown(directory) if is_remote(directory) else str(Path(local_path(directory)))


def _print_json(form: dict[str, Any]) -> None:
    from holdfast.report import forms

    encoding = (sys.stdout.encoding or "utf-8").lower().replace("-", "")
    for chunk in forms.chunks(form, ascii_only=encoding != "utf8"):
        sys.stdout.write(chunk)
    sys.stdout.write("\n")
