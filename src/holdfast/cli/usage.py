"""How commands are called: mistakes, which are bad input like any other and are reported in one
line, and old names of options, which still work, with a note."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from itertools import islice
from typing import Any, Protocol

import typer

from holdfast.model.errors import InputError
from holdfast.model.names import nearest

# What Typer raises then; where its base class is depends on the version.
UsageError: Any = typer.BadParameter.__mro__[1]


RENAMED = {
    "export": {"--out": "--output", "--tables": "--create-tables"},
    "report": {"--no-values": "--hide-values"},
    "serve": {"--no-values": "--hide-values"},
}
"""Old names of options, by command."""

_PRINTED = ("text", "json")
"""The values of ``--format``. It named the format of sources, too, where commands read rows."""


class _Parsing(Protocol):
    """A command, or the group of all commands."""

    def get_params(self, ctx: Any) -> list[Any]: ...

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]: ...


def parsed(parent: _Parsing, ctx: Any, args: list[str]) -> list[str]:
    """The arguments that a command does not parse itself. Arguments that it does not accept are an
    InputError."""
    try:
        current, notes = _renamed(ctx.info_name, parent.get_params(ctx), args)
        rest = parent.parse_args(ctx, current)
        if not ctx.params.get("quiet"):
            sys.stderr.writelines(f"note: {note}\n" for note in notes)
        return rest
    except UsageError as error:
        if not str(error.format_message()):
            raise  # no arguments at all: the help has been shown
        options = [name for param in parent.get_params(ctx) for name in param.opts]
        raise _mistake(ctx, _what(error), *_meant(error, options)) from error


def _renamed(
    command: str, params: Sequence[Any], args: Sequence[str]
) -> tuple[list[str], list[str]]:
    """The arguments with the names that options have now, and a note for each old one."""
    names = {option for param in params for option in param.opts}
    valued = {
        name for param in params if not getattr(param, "is_flag", True) for name in param.opts
    }
    formats: dict[str, list[str]] = {}
    current: list[str] = []
    notes: list[str] = []
    words = iter(args)
    for word in words:
        if word == "--":
            current += [word, *words]
            break
        name, equals, value = word.partition("=")
        new = RENAMED.get(command, {}).get(name, name)
        rest = [] if equals or new not in valued else [*islice(words, 1)]
        value = "".join([value, *rest])
        if "--input-format" in names and name == "--format" and value not in ("", *_PRINTED):
            new = "--input-format"
            notes.append(f"{name} {value} is now {new} {value}")
        elif new != name:
            notes.append(f"{name} is now {new}")
        if "--input-format" in names and new in ("--format", "--input-format"):
            formats.setdefault(new, []).append(value)
        current += [new + word.removeprefix(name), *rest]
    for name, values in formats.items():
        if len(values) > 1:
            raise InputError(f"{name} was given twice: {' and '.join(values)}; keep one of them")
    return current, notes


def expect_command(ctx: Any, name: str, known: list[str]) -> None:
    """Check that a command exists."""
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
    """The option that was probably meant by an unknown one."""
    if not hasattr(error, "possibilities"):
        return []
    near = nearest(error.option_name, options)
    return [] if near is None else [near]


def _mistake(ctx: Any, what: str, *meant: str) -> InputError:
    hint = f"did you mean {meant[0]}? See" if meant else "see"
    return InputError(f"{what}; {hint} `{ctx.command_path} --help`")
