"""Expected rules: declaring, listing and forgetting them."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli.command import flag
from holdfast.cli.opening import Spark, committing
from holdfast.cli.options import At, Directory
from holdfast.cli.printing import Printing, print_json
from holdfast.screen.text import plain

if TYPE_CHECKING:
    from holdfast.model.expectations import Suggestion


def expect(
    directory: Directory,
    rules: Annotated[
        list[str] | None, typer.Argument(metavar="RULE", help="Such as 'orders: key(id)'.")
    ] = None,
    *,
    file: Annotated[str | None, flag("--from", "A YAML file of rules.", "FILE")] = None,
    severity: Annotated[
        str,
        flag(
            "--severity",
            "error: if the rule breaks, the batch is rejected; warn: it is reported.",
            "error|warn",
        ),
    ] = "error",
    max_error: Annotated[
        float, flag("--max-error", "The share of violations that is allowed.", "SHARE")
    ] = 0.0,
    max_rows: Annotated[
        int | None,
        flag("--max-rows", "How many rows may have to go before the rule holds.", "NUMBER"),
    ] = None,
    name: Annotated[str | None, flag("--name", "A name for the rule.", "NAME")] = None,
    suggest: Annotated[bool, flag("--suggest", "Suggest rules that hold, one by one.")] = False,
    yes: Annotated[bool, flag("--yes", "With --suggest: accept all of them.")] = False,
    spark: Spark,
    printing: Printing,
) -> int:
    """Choose the rules that must hold (--suggest lists them): check, apply and exit codes are then
    about these."""
    from holdfast.cli import suggestions
    from holdfast.report import forms, terminal

    settings: dict[str, Any] = {"severity": severity, "max_error": max_error, "max_rows": max_rows}
    wanted: Sequence[str | Suggestion] = rules or ()
    if suggest or yes:
        given = bool(rules) or file is not None or name is not None
        asks = not printing.as_json and sys.stdin.isatty() and sys.stderr.isatty()
        offers = suggestions.offered(directory, given=given, suggest=suggest)
        if not yes and not asks:
            if printing.as_json:
                print_json(forms.suggestions(offers))
            else:
                suggestions.printed(offers, quiet=printing.quiet, **settings)
            return 0
        wanted = offers if yes else suggestions.chosen(offers)
        if not wanted:
            if printing.as_json:
                print_json(forms.expected([]))
            else:
                suggestions.nothing(offers, quiet=printing.quiet)
            return 0
    with committing(directory), spark.profile(directory, printing) as opened:
        changes = opened.expect(*wanted, name=name, file=file, **settings)
    printing.result(lambda: forms.expected(changes), lambda page: terminal.expected(page, changes))
    return 0


def expectations(
    directory: Directory,
    *,
    path: Annotated[
        str | None,
        flag("--output -o", "Write them to a YAML file, which expect --from takes.", "FILE"),
    ] = None,
    at: At = None,
    printing: Printing,
) -> int:
    """List the expected rules, and whether each holds."""
    from holdfast.api import Profile
    from holdfast.report import forms, terminal

    standings = Profile.open(directory).expectations(at)
    if path is not None:
        from holdfast.export.files import Exported
        from holdfast.export.rules import RULES, rules_file

        files = Exported({RULES: rules_file([each.expectation for each in standings])}, "# ")
        written = files.write(path)
        printing.lines({"written": written}, "\n".join(map(plain, written)))
        return 0
    printing.result(
        lambda: forms.expectations(standings),
        lambda page: terminal.expectations(page, standings),
    )
    return 0


def forget(
    directory: Directory,
    rule: Annotated[str, typer.Argument(metavar="RULE|NAME", help="The rule, or its name.")],
    *,
    printing: Printing,
) -> int:
    """Remove a rule from the expected ones."""
    from holdfast.api import Profile
    from holdfast.report import forms

    gone = Profile.open(directory).forget(rule)
    printing.result(
        lambda: forms.forgotten(gone),
        lambda page: page.line(f"{gone.rule}: not expected any more"),
    )
    return 0
