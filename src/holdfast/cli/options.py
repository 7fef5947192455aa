"""The options that several commands have: which profile, which rows, how they are written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer

from holdfast.cli import arguments
from holdfast.cli.command import flag
from holdfast.kinds import registry

if TYPE_CHECKING:
    from holdfast.kinds.base import Kind

Directory = Annotated[str, typer.Argument(metavar="DIR", help="The profile directory.")]
OneTable = Annotated[str | None, flag("--table", "Only this table.", "NAME")]
At = Annotated[int | None, flag("--at", "An earlier version.", "VERSION")]


def kinds_flag(purpose: str, default: Callable[[Kind], bool]) -> Any:
    """``--kinds``, with the kinds that there are."""
    chosen = [name for name, kind in registry.REGISTRY.items() if default(kind)]
    return flag("--kinds", arguments.kinds_help(purpose, chosen), "KINDS")


def source_flag(name: str, text: str, metavar: str | None = None) -> Any:
    """An option that says how rows are read."""
    return flag(name, text, metavar, "Where the rows come from")


_FORMAT = (
    "text or json: how results are printed. Anything else (csv, parquet, orc, table, jdbc, "
    "delta …): the format of the source. Can be given twice."
)


@dataclass(frozen=True)
class Sources:
    """What rows are read from; how results are printed stands in the same option."""

    formats: Annotated[list[str] | None, flag("--format", _FORMAT, "FORMAT")] = None
    input_format: Annotated[
        str | None, source_flag("--input-format", "Its format, also json and text.", "FORMAT")
    ] = None
    option: Annotated[
        list[str] | None,
        source_flag("--option", "An option of Spark's reader. Repeatable.", "KEY=VALUE"),
    ] = None
    round_nanoseconds: Annotated[
        bool, source_flag("--round-nanoseconds", "Of Parquet: down to microseconds.")
    ] = False

    def split(self) -> tuple[str, str | None, dict[str, str]]:
        """How results are printed, the format of the sources, and options of their reader."""
        output, source_format = arguments.split_formats(self.formats, self.input_format)
        return output, source_format, arguments.pairs(self.option, "--option")


@dataclass(frozen=True)
class Cells:
    """How the cells of CSV are written."""

    delimiter: Annotated[str | None, source_flag("--delimiter", "Between cells.", "CHAR")] = None
    escape: Annotated[
        str | None,
        source_flag("--escape", "Before a quote inside quotes, such as a backslash.", "CHAR"),
    ] = None
    encoding: Annotated[
        str | None, source_flag("--encoding", "Of CSV, such as latin-1; else UTF-8.", "NAME")
    ] = None
    null_value: Annotated[
        list[str] | None,
        source_flag("--null-value", "A cell that means null, such as NA. Repeatable.", "TEXT"),
    ] = None

    def given(self) -> arguments.CellOptions:
        """Those that were given."""
        return arguments.cell_options(self.delimiter, self.escape, self.encoding, self.null_value)


@dataclass(frozen=True)
class Compared:
    """What denial constraints compare."""

    max_predicates: Annotated[
        int | None, flag("--max-predicates", "The most comparisons of a denial constraint.", "N")
    ] = None
    cross_columns: Annotated[
        str | None,
        flag("--cross-columns", "Compare columns that share so many values; or off.", "SHARE|off"),
    ] = None
    columns: Annotated[
        str | None,
        flag("--columns", "Those that denial constraints compare, with commas.", "COLUMNS"),
    ] = None

    def given(self) -> arguments.ComparedOptions:
        """Those that were given."""
        return arguments.compared(self.max_predicates, self.cross_columns, self.columns)
