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

from holdfast.cli import waits
from holdfast.cli.failures import exit_code, notes


def flag(names: str, text: str, metavar: str | None = None, panel: str | None = None) -> Any:
    """An option, with its help."""
    return typer.Option(*names.split(), help=text, metavar=metavar, rich_help_panel=panel)


class Command:
    """Wraps a function that returns an exit code for Typer; its errors become one line."""

    def __init__(self, function: Callable[..., int]) -> None:
        functools.update_wrapper(self, function)
        self.__annotations__: dict[str, Any] = {}  # the signature has them
        self._function = function

    @property
    def __signature__(self) -> inspect.Signature:
        # Computed on access, because help lists the kinds that are registered by then.
        return inspect.Signature([*self._options()])

    def __call__(self, **given: Any) -> None:
        with notes(quiet=given["quiet"], verbose=given["verbose"]):
            code = exit_code(lambda: self._function(**self._grouped(given)))
            waits.suggest(quiet=given["quiet"])
        if code:
            raise typer.Exit(code)

    def _parameters(self) -> Iterator[tuple[inspect.Parameter, type | None]]:
        """The parameters of the function, and for each that is a group, the group."""
        for parameter in inspect.signature(self._function, eval_str=True).parameters.values():
            kind = parameter.annotation
            is_group = isinstance(kind, type) and (
                is_dataclass(kind) or hasattr(kind, "parameters")
            )
            yield parameter, kind if is_group else None

    def _options(self) -> Iterator[inspect.Parameter]:
        for parameter, group in self._parameters():
            if group is None:
                yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)
            else:
                yield from _options_of(group)

    def _grouped(self, given: Mapping[str, object]) -> dict[str, object]:
        return {
            parameter.name: given[parameter.name]
            if group is None
            else group(**{option.name: given[option.name] for option in _options_of(group)})
            for parameter, group in self._parameters()
        }


@functools.cache
def _options_of(group: Any) -> Sequence[inspect.Parameter]:
    if hasattr(group, "parameters"):
        return group.parameters()  # type: ignore[no-any-return]
    types = get_type_hints(group, include_extras=True)
    return [
        option.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=types[option.name])
        for option in inspect.signature(group).parameters.values()
    ]
