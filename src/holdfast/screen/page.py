"""Where results go: lines and tables that are never wider than the screen."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TextIO

from rich.cells import cell_len
from rich.console import Console
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from holdfast.model.constraints import Row
from holdfast.screen.text import count, plain, value_text

FEW = 5
"""How many of a list are shown where only those that matter are."""

SHOWN = 20
"""How many of a list are shown unless all are asked for."""

GAP = 2
"""Between the columns of a table, and by how much what belongs to a line is indented."""

_WIDTH_WITHOUT_TERMINAL = 100
_ANY_WIDTH = 10_000
WIDEST_CELL = 32
"""Longer values are cut."""

_NAMED = 3
"""The most columns that are named though they are not shown, because rows differ in them alone."""


class _Console(Console):
    def on_broken_pipe(self) -> None:
        # Rich would exit with 1, which says that a check found something.
        raise BrokenPipeError


class Page:
    """Where results go, and how many of a list are shown."""

    def __init__(
        self, stream: TextIO, *, everything: bool = False, limit: int | None = None
    ) -> None:
        terminal = stream.isatty()
        width = None if terminal or "COLUMNS" in os.environ else _WIDTH_WITHOUT_TERMINAL
        self.console = _Console(
            file=stream, width=width, highlight=False, markup=False, emoji=False
        )
        self.limit = None if everything else SHOWN if limit is None else limit
        # A file or a pipe gets a set per line, whatever its length, so that it can be searched.
        self._soft = not terminal

    def line(
        self,
        text: str | Text = "",
        style: str = "",
        indent: int = 0,
        hang: int = GAP,
        wrap_after: str | None = None,
    ) -> None:
        """One line, or on a terminal as many as it needs: all but the first are indented by
        ``hang`` more, so that they are not taken for lines of their own. They end after
        ``wrap_after`` where they can; None: after any word."""
        whole = Text.assemble(text)
        room = max(1, self.console.width - indent)
        parts = [whole]
        if whole and not self._soft and whole.cell_len > room:
            parts = self._wrapped(whole, max(1, room - hang), wrap_after)
        for position, part in enumerate(parts):
            part.rstrip()
            before = " " * (indent + hang if position else indent)
            printed = Text(before).append(part) if part else Text()
            self.console.print(printed, style=style or None, soft_wrap=True)

    def _wrapped(self, whole: Text, room: int, wrap_after: str | None) -> list[Text]:
        lines = [Text()]
        pieces = [whole] if wrap_after is None else whole.split(wrap_after, include_separator=True)
        for piece in pieces:
            # A space at the end of a line needs no room.
            if lines[-1] and lines[-1].cell_len + cell_len(piece.plain.rstrip()) > room:
                lines.append(Text())
            lines[-1].append(piece)
        return [part for line in lines for part in line.wrap(self.console, room)]

    def table(self, table: Table, indent: int) -> None:
        """A table, cut to the width of the screen."""
        options = self.console.options.update(width=max(1, self.console.width - indent))
        for line in self.console.render_lines(table, options, pad=False):
            printed = Text(" " * indent)
            for text, style in _without_filling(line):
                printed.append(text, style)
            self.console.print(printed, soft_wrap=True)

    def fits(self, table: Table, indent: int) -> bool:
        """Whether nothing of a table would be cut."""
        options = self.console.options.update(max_width=_ANY_WIDTH)
        whole = Measurement.get(self.console, options, table).maximum
        return whole <= self.console.width - indent

    def rest(self, number: int, indent: int = 4, by_chance: int = 0) -> None:
        """Say how many others there are of a list whose first alone matter."""
        if number > 0:
            of = "" if by_chance == number else f"{by_chance:,} of "
            chance = f", {of}which may well be chance" if by_chance else ""
            self.line(f"… and {number:,} more{chance} (--all shows them)", "dim", indent)

    def more(self, total: int, indent: int = 2) -> None:
        """Say how many of a list were left out."""
        if self.limit is not None and total > self.limit:
            self.line(f"… and {total - self.limit:,} more (--all shows them)", "dim", indent)

    def rows(
        self,
        rows: Sequence[Row],
        first: Sequence[str],
        indent: int,
        marked: Sequence[str] = (),
        labels: Sequence[str] = (),
    ) -> None:
        """Rows side by side: the given columns first, then those whose cells are marked, then those
        in which the rows differ; what does not fit is counted. ``labels`` stand before the rows."""
        own = dict.fromkeys([*first, *marked])
        names = list(dict.fromkeys([*own, *(name for row in rows for name in row)]))
        names = [name for name in names if any(name in row for row in rows)]
        differing = [name for name in names if len({value_text(row.get(name)) for row in rows}) > 1]
        names.sort(key=lambda name: 0 if name in own else 1 if name in differing else 2)
        before = max(map(cell_len, labels), default=0)
        room = self.console.width - indent - (before + GAP if before else 0)
        fitting: list[str] = []
        for name in names:
            cells = [plain(name), *(cell(row.get(name)).plain for row in rows)]
            room -= min(max(map(cell_len, cells)), WIDEST_CELL) + GAP
            if fitting and room + GAP < 0:
                break
            fitting.append(name)
        grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
        if before:
            grid.add_column(no_wrap=True, style="bold")
        for name in fitting:
            style = "bold underline" if name in own else "bold"
            header = Text(plain(name), style)
            grid.add_column(header, header_style="", no_wrap=True, max_width=WIDEST_CELL)
        for place, row in enumerate(rows):
            texts = {name: cell(row.get(name)) for name in fitting}
            for name in texts.keys() & {*marked}:
                texts[name].stylize("bold red")
            grid.add_row(*([labels[place]] if before else []), *texts.values())
        self.table(grid, indent)
        if hidden := names[len(fitting) :]:
            self.line(_hidden(hidden, first, differing), "dim", indent)


def _hidden(hidden: Sequence[str], first: Sequence[str], differing: Sequence[str]) -> str:
    """How many columns of some rows are not shown. Where the rows look the same without them, that
    says which of them differ."""
    of_these = sum(name in first for name in hidden)
    said = f"… and {count(len(hidden), 'more column')}"
    said += f", {of_these:,} of them of this set" if of_these else ""
    if not differing or any(name not in hidden for name in differing):
        return said
    named = ", ".join(plain(name) for name in differing[:_NAMED])
    more = f" and {len(differing) - _NAMED:,} more" if len(differing) > _NAMED else ""
    return f"{said}; the rows differ in {named}{more}"


def _without_filling(line: list[Segment]) -> list[tuple[str, Any]]:
    """The parts of a line without the spaces that fill it to the right."""
    parts = [(segment.text, segment.style or "") for segment in line]
    while parts and not parts[-1][0].strip(" "):
        parts.pop()
    if parts:
        parts[-1] = (parts[-1][0].rstrip(" "), parts[-1][1])
    return parts


def figures(*headings: str) -> Table:
    """A table whose first column is text and whose others are numbers."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
    for position, heading in enumerate(headings):
        grid.add_column(heading, justify="right" if position else "left", overflow="fold")
    return grid


def cell(value: Any) -> Text:
    """A value of a row."""
    return Text(value_text(value), "" if value is not None else "dim italic")
