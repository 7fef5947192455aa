"""Options that several commands share: which profile, how rows are read, what is looked for."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, TypedDict, get_type_hints

import typer

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.input.sources import Source
from holdfast.kinds import registry
from holdfast.model.errors import InputError
from holdfast.model.options import Options

if TYPE_CHECKING:
    from holdfast.kinds.base import Kind

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The profile directory.")]
OneTable = Annotated[str | None, flag("--table", "Only this table.", "NAME")]
At = Annotated[int | None, flag("--at", "An earlier version.", "VERSION")]


def kinds_flag(purpose: str, default: Callable[[Kind], bool]) -> Any:
    """``--kinds``, with the kinds that there are."""
    defaults = [name for name, kind in registry.REGISTRY.items() if default(kind)]
    return flag("--kinds", arguments.kinds_help(purpose, defaults), "KINDS")


def source_flag(name: str, text: str, metavar: str | None = None) -> Any:
    """An option that says how rows are read."""
    return flag(name, text, metavar, "Where the rows come from")


class CellOptions(TypedDict, total=False):
    """How the cells of CSV are written, as far as that was given."""

    delimiter: str
    escape: str
    encoding: str
    null_values: tuple[str, ...]
    date_format: str


Evolve = Annotated[
    bool, flag("--evolve", "New columns join the table as nulls; wider types are taken.")
]


@dataclass(frozen=True)
class Keep:
    """Which versions stay."""

    keep_versions: Annotated[
        int | None, flag("--keep-versions", "The last N versions stay; older ones expire.", "N")
    ] = None
    keep_days: Annotated[
        float | None, flag("--keep-days", "Versions of the last N days stay.", "N")
    ] = None


@dataclass(frozen=True)
class Reading:
    """How sources are read."""

    input_format: Annotated[
        str | None,
        source_flag("--input-format", "csv, json, parquet, orc, table, delta …", "FORMAT"),
    ] = None
    option: Annotated[
        list[str] | None,
        source_flag("--option", "An option of Spark's reader. Repeatable.", "KEY=VALUE"),
    ] = None
    round_nanoseconds: Annotated[
        bool,
        source_flag("--round-nanoseconds", "Round times in Parquet down to microseconds."),
    ] = False
    delimiter: Annotated[
        str | None, source_flag("--delimiter", "The character between cells of CSV.", "CHAR")
    ] = None
    escape: Annotated[
        str | None,
        source_flag("--escape", "The character before a quote inside quotes.", "CHAR"),
    ] = None
    encoding: Annotated[
        str | None,
        source_flag("--encoding", "The encoding of CSV, such as latin-1; else UTF-8.", "NAME"),
    ] = None
    null_value: Annotated[
        list[str] | None,
        source_flag("--null-value", "A cell that means null, such as NA. Repeatable.", "TEXT"),
    ] = None
    date_format: Annotated[
        str | None,
        source_flag("--date-format", "How CSV writes dates, such as %d/%m/%Y.", "FORMAT"),
    ] = None

    def reader_options(self) -> dict[str, str]:
        """Options of Spark's reader."""
        return arguments.pairs(self.option, "--option")

    def cells(self) -> CellOptions:
        """How cells of CSV are written, as far as that was given."""
        cells: CellOptions = {}
        if self.delimiter is not None:
            cells["delimiter"] = self.delimiter
        if self.escape is not None:
            cells["escape"] = self.escape
        if self.encoding is not None:
            cells["encoding"] = self.encoding
        if self.null_value:
            cells["null_values"] = tuple(self.null_value)
        if self.date_format is not None:
            cells["date_format"] = self.date_format
        return cells

    def cells_of(self, path: str, paths: Sequence[str]) -> CellOptions:
        """What was given of cells, for one of the sources of a command: those that are CSV take
        it. If none is, it is passed on, so that the source refuses it."""
        csv = [path for path in paths if Source(path, self.input_format).may_be_csv]
        return self.cells() if path in csv or not csv else {}

    def rounded(self, batch: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
        """The same batch, with ``--round-nanoseconds`` for its Parquet sources. If there are none,
        all sources get it, so that they refuse it."""
        if not self.round_nanoseconds:
            return batch
        sources = [
            source
            for changes in batch.values()
            for source in changes.values()
            if type(source) is Source
        ]
        parquet = [source for source in sources if source.may_be_parquet] or sources
        return {
            table: {
                name: replace(value, round_nanoseconds=True) if value in parquet else value
                for name, value in changes.items()
            }
            for table, changes in batch.items()
        }


class ProfileOptions:
    """The fields of :class:`~holdfast.model.options.Options` as options of the command line: their
    names, types, defaults and help are made from the fields."""

    NAMES: ClassVar[Sequence[str]] = [
        field.name for field in dataclasses.fields(Options) if "help" in field.metadata
    ]
    DEFAULTS: ClassVar[bool] = True

    def __init__(self, **values: Any) -> None:
        self._values = values

    @classmethod
    def parameters(cls) -> list[inspect.Parameter]:
        """The options, as a command has them."""
        by_name = {field.name: field for field in dataclasses.fields(Options)}
        return [_parameter(by_name[name], defaults=cls.DEFAULTS) for name in cls.NAMES]

    def given(self) -> dict[str, Any]:
        """The fields of ``Options`` that have a value."""
        return {
            name: _READ.get(name, lambda value: value)(value)
            for name, value in self._values.items()
            if value is not None
        }

    def options(self) -> Options:
        """All of them together."""
        return Options(**self.given())


class ComparedOptions(ProfileOptions):
    """Those that say what denial constraints compare; without defaults."""

    NAMES = ("max_predicates", "cross_columns", "columns")
    DEFAULTS = False


def share_or_off(text: str) -> float | None:
    """The share of ``--cross-columns``, or None where it is off.

    >>> share_or_off("0.5"), share_or_off("off")
    (0.5, None)
    """
    if text.strip().lower() == "off":
        return None
    try:
        return float(text)
    except ValueError:
        raise InputError(
            f"--cross-columns must be a share from 0 to 1, or off, not {text!r}"
        ) from None


_READ: dict[str, Callable[[Any], Any]] = {
    "cross_columns": share_or_off,
    "columns": lambda text: tuple(arguments.split_columns(text, "--columns")),
    "keep_rows": lambda off: not off,
    "keep_values": lambda off: not off,
}
"""What the value of an option means, where the field has another form."""


def _parameter(field: dataclasses.Field[Any], *, defaults: bool) -> inspect.Parameter:
    """A field of ``Options`` as an option; one that is true by default as ``--no-…``."""
    name, default = field.name.replace("_", "-"), field.default
    text, form = field.metadata["help"], field.metadata["form"] or None
    hint = get_type_hints(Options)[field.name]
    if default is True:
        name, default = name.replace("keep-", "no-"), False
    elif hint not in (bool, int, str, float, int | None, float | None) or name == "cross-columns":
        hint, default = str | None, None if default in ((), None) else str(default)
    option = flag(f"--{name}", text, form)
    if field.name == "kinds":
        option = kinds_flag(text, lambda kind: kind.default)
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default if defaults else None,
        annotation=Annotated[hint, option],
    )
