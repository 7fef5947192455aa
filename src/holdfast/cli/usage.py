"""Mistakes in how a command is called: bad input like any other, told in one line."""

from __future__ import annotations

from typing import Any, Protocol

import typer

from holdfast.model.errors import InputError
from holdfast.model.names import nearest

# What Typer raises then; where its base class is depends on the version.
UsageError: Any = typer.BadParameter.__mro__[1]


class _Parsing(Protocol):
    """A command, or the group of all commands."""

    def get_params(self, ctx: Any) -> list[Any]: ...

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]: ...


def parsed(parent: _Parsing, ctx: Any, args: list[str]) -> list[str]:
    """The arguments that are left when a command has taken its own; an InputError where they are
    not what it takes."""
    try:
        return parent.parse_args(ctx, args)
    except UsageError as error:
        if not str(error.format_message()):
            raise  # no arguments at all: the help has been shown
        options = [name for each in parent.get_params(ctx) for name in each.opts]
        raise _mistake(ctx, _what(error), *_meant(error, options)) from error


def expect_command(ctx: Any, name: str, known: list[str]) -> None:
    """See that there is such a command."""
    if name not in known:
        near = nearest(name, known)
        meant = [] if near is None else [repr(near)]
        raise _mistake(ctx, f"there is no command {name!r}", *meant)


def _what(error: Any) -> str:
    if hasattr(error, "possibilities"):
        return f"there is no option {error.option_name}"
    message = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    return message[0].lower() + message[1:]


def _meant(error: Any, options: list[str]) -> list[str]:
    """The option that may be meant by one which is none."""
    if not hasattr(error, "possibilities"):
        return []
    near = nearest(error.option_name, options)
    return [] if near is None else [near]


def _mistake(ctx: Any, what: str, *meant: str) -> InputError:
    hint = f"did you mean {meant[0]}? See" if meant else "see"
    return InputError(f"{what}; {hint} `{ctx.command_path} --help`")
