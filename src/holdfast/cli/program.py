"""The program ``holdfast``: its commands, and running one of them."""

from __future__ import annotations

import functools
import sys
from typing import Annotated, Any

import typer
import typer.core

from holdfast.cli import usage
from holdfast.cli.command import Command
from holdfast.cli.commands import (
    batches,
    expectations,
    following,
    looking,
    pages,
    profiles,
    session,
)
from holdfast.cli.failures import exit_code, hush

# In the order of the help.
COMMANDS = (
    profiles.profile,
    expectations.expect,
    batches.check,
    batches.apply,
    following.follow,
    expectations.expectations,
    expectations.forget,
    looking.show,
    looking.explain,
    looking.suspects,
    looking.dismiss,
    looking.predicates,
    profiles.add,
    profiles.alter,
    pages.export,
    looking.history,
    looking.diff,
    pages.report,
    pages.serve,
    profiles.verify,
    profiles.expire,
    session.session,
)


class _Plain:
    """Help that shows no type for flags, which have no value; and one-line errors for mistakes."""

    def get_params(self, ctx: Any) -> list[Any]:
        parameters: list[Any] = super().get_params(ctx)  # type: ignore[misc]
        for parameter in parameters:
            if getattr(parameter, "is_flag", False):
                parameter.metavar = ""
        return parameters

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        return usage.parsed(super(), ctx, args)  # type: ignore[arg-type]


class _PlainCommand(_Plain, typer.core.TyperCommand):
    pass


class _PlainGroup(_Plain, typer.core.TyperGroup):
    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[Any, Any, list[str]]:
        usage.expect_command(ctx, args[0], self.list_commands(ctx))
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="holdfast",
    cls=_PlainGroup,
    help="Finds the keys, foreign keys, functional and inclusion dependencies and denial "
    "constraints that hold in tables, and keeps them current as rows are inserted, "
    "updated and deleted.",
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for function in COMMANDS:
    app.command(cls=_PlainCommand)(Command(function))


def _print_version(wanted: bool) -> None:
    if wanted:
        from holdfast import __version__

        typer.echo(f"holdfast {__version__}")
        raise typer.Exit


@app.callback()
def _holdfast(
    version: Annotated[
        bool,
        typer.Option(
            "--version", is_eager=True, callback=_print_version, help="Print the version."
        ),
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line in this process."""
    hush()
    run()


def run() -> None:
    """Run the command in ``sys.argv``; exits with its exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A character that the terminal lacks must not lose the results.
        getattr(stream, "reconfigure", lambda **_: None)(errors="backslashreplace")
    sys.exit(exit_code(lambda: parser()(prog_name="holdfast")))


@functools.cache
def parser() -> Any:
    """All commands with their options: built once, although a session runs many commands."""
    return typer.main.get_command(app)
