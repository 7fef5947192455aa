"""What makes a function a command: options, some of them in groups, and an exit code.

A group is a frozen dataclass whose fields are options, or a class whose ``parameters`` says which
options it has. A command with a parameter of that type has these options in its place.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import is_dataclass
from typing import Any, get_type_hints

import typer

from holdfast.cli.failures import exit_code, notes


def flag(names: str, text: str, metavar: str | None = None, panel: str | None = None) -> Any:
    """An option, with its help."""
    return typer.Option(*names.split(), help=text, metavar=metavar, rich_help_panel=panel)


class Command:
    """A function that returns an exit code, as Typer calls it; its errors become one line."""

    def __init__(self, function: Callable[..., int]) -> None:
        functools.update_wrapper(self, function)
        self.__annotations__: dict[str, Any] = {}  # the signature has them
        self._function = function

    @property
    def __signature__(self) -> inspect.Signature:
        # Made when it is asked for: help names the kinds that there are by then.
        return inspect.Signature([*self._options()])

    def __call__(self, **given: Any) -> None:
        with notes(quiet=given["quiet"], verbose=given["verbose"]):
            code = exit_code(lambda: self._function(**self._grouped(given)))
        if code:
            raise typer.Exit(code)

    def _parameters(self) -> Iterator[tuple[inspect.Parameter, type | None]]:
        """The parameters of the function; those that are groups with what they are."""
        for each in inspect.signature(self._function, eval_str=True).parameters.values():
            kind = each.annotation
            is_group = isinstance(kind, type) and (
                is_dataclass(kind) or hasattr(kind, "parameters")
            )
            yield each, kind if is_group else None

    def _options(self) -> Iterator[inspect.Parameter]:
        for each, group in self._parameters():
            if group is None:
                yield each.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            else:
                yield from _options_of(group)

    def _grouped(self, given: Mapping[str, object]) -> dict[str, object]:
        return {
            each.name: given[each.name]
            if group is None
            else group(**{option.name: given[option.name] for option in _options_of(group)})
            for each, group in self._parameters()
        }


@functools.cache
def _options_of(group: Any) -> Sequence[inspect.Parameter]:
    if hasattr(group, "parameters"):
        return group.parameters()  # type: ignore[no-any-return]
    types = get_type_hints(group, include_extras=True)
    return [
        each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[each.name])
        for each in inspect.signature(group).parameters.values()
    ]
