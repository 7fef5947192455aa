"""Showing what a profile knows: a version, one rule, comparisons, the history."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.cli.opening import Spark
from holdfast.cli.options import At, Directory, OneTable
from holdfast.cli.printing import Printing, shown_path
from holdfast.kinds import registry
from holdfast.screen.text import plain


def _part_argument() -> Any:
    """The argument of ``show``: the parts of all kinds."""
    names = registry.part_names()

    def expect(value: str | None) -> str | None:
        if value is not None and value not in names:
            raise typer.BadParameter(f"{value!r} is not one of {', '.join(map(repr, names))}.")
        return value

    return typer.Argument(metavar="PART", help=f"Only these: {', '.join(names)}.", callback=expect)


def show(
    directory: Directory,
    part: Annotated[str | None, _part_argument()] = None,
    *,
    table: OneTable = None,
    at: At = None,
    min_coverage: Annotated[
        float | None,
        flag(
            "--min-coverage",
            "Also list inclusions that hold for this share of the values.",
            "SHARE",
        ),
    ] = None,
    limit: Annotated[
        int | None, flag("--limit", "Show at most N entries of each list.", "N")
    ] = None,
    printing: Printing,
) -> int:
    """Show what a profile knows: columns, keys and non-keys, dependencies, foreign keys, rules."""
    from holdfast.api import Profile

    arguments.expect_limit(limit, printing.everything)
    printing.version(
        Profile.open(directory),
        directory,
        None if part is None else [part],
        table=table,
        version=at,
        min_coverage=min_coverage,
        limit=limit,
    )
    return 0


def explain(
    directory: Directory,
    rule: Annotated[
        str,
        typer.Argument(metavar="RULE", help="As rules are printed, such as 'orders: key(a, b)'."),
    ],
    *,
    limit: Annotated[int | None, flag("--limit", "Show N examples of violations.", "N")] = None,
    mask: Annotated[bool, flag("--mask", "Show numbers instead of values.")] = False,
    spark: Spark,
    printing: Printing,
) -> int:
    """Explain one rule: whether and since when it holds, what violates it, and similar rules."""
    from holdfast.model.explanation import EXAMPLES
    from holdfast.report import terminal

    arguments.expect_limit(limit, printing.everything)
    with spark.profile(directory, printing) as opened:
        explanation = opened.explain(rule, EXAMPLES if limit is None else limit, mask)
    printing.result(
        explanation.to_dict,
        lambda page: terminal.explanation(page, shown_path(directory), explanation),
    )
    return 0


def suspects(
    directory: Directory,
    rule: Annotated[
        str | None,
        typer.Argument(metavar="RULE", help="Only cells that break it: 'orders: city -> country'."),
    ] = None,
    *,
    table: OneTable = None,
    limit: Annotated[int | None, flag("--limit", "List at most N cells.", "N")] = None,
    file: Annotated[
        str | None,
        flag("--output -o", "Write all cells: FILE.csv, .jsonl or .parquet.", "FILE"),
    ] = None,
    spark: Spark,
    printing: Printing,
) -> int:
    """List the rules that nearly hold, and the cells that break them, with what they should be."""
    from holdfast.model.near import SHOWN
    from holdfast.report import terminal
    from holdfast.screen.text import count

    arguments.expect_limit(limit, printing.everything)
    if file is not None:
        with spark.profile(directory, printing) as opened:
            written = opened.write_suspects(file, rule, table, limit)
        printing.lines({"file": file, "suspects": written}, f"{file}: {count(written, 'cell')}")
        return 0
    if limit is None and not (printing.everything or printing.as_json):
        limit = SHOWN
    with spark.profile(directory, printing) as opened:
        found = opened.suspects(rule, table, limit)
    show = terminal.suspects if rule is None else terminal.suspects_of_rule
    printing.result(found.to_dict, lambda page: show(page, found))
    return 0


def dismiss(
    directory: Directory,
    rule: Annotated[
        str, typer.Argument(metavar="RULE", help="The rule, as in 'orders: city -> country'.")
    ],
    *,
    undo: Annotated[bool, flag("--undo", "Allow a rule again that was dismissed.")] = False,
    printing: Printing,
) -> int:
    """Say that a rule is not meant: it is neither listed as nearly holding nor suspected again."""
    from holdfast.api import Profile

    Profile.open(directory).dismiss(rule, undo)
    done = "allowed again" if undo else "dismissed"
    printing.result(
        lambda: {"rule": rule, "dismissed": not undo},
        lambda page: page.line(f"{plain(rule)}: {done}"),
    )
    return 0


def predicates(
    directory: Directory,
    *,
    table: OneTable = None,
    stored: Annotated[bool, flag("--stored", "Only what was chosen; needs no Spark.")] = False,
    spark: Spark,
    printing: Printing,
) -> int:
    """List what denial constraints compare, and what the current rows would compare instead."""
    from holdfast.report import forms, terminal

    with spark.profile(directory, printing) as opened:
        by_table = opened.predicates(table, today=not stored)
    printing.result(
        lambda: forms.predicates(by_table),
        lambda page: terminal.predicates(page, by_table),
    )
    return 0


def history(
    directory: Directory,
    *,
    printing: Printing,
) -> int:
    """List the versions of a profile and what each changed."""
    from holdfast.api import Profile
    from holdfast.report import forms, terminal

    entries = Profile.open(directory).history()
    printing.result(lambda: forms.history(entries), lambda page: terminal.history(page, entries))
    return 0


def diff(
    directory: Directory,
    a: Annotated[int, typer.Argument(metavar="A", help="The version to start from.")],
    b: Annotated[int, typer.Argument(metavar="B", help="The version to end with.")],
    *,
    printing: Printing,
) -> int:
    """Show which keys and dependencies were gained and lost from version A to version B."""
    from holdfast.api import Profile
    from holdfast.report import forms, terminal

    tables = Profile.open(directory).diff(a, b)
    printing.result(
        lambda: forms.diff(a, b, tables),
        lambda page: terminal.diff(page, a, b, tables),
    )
    return 0
