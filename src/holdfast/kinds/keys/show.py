"""Keys and non-keys in JSON and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.parts import TablePart
from holdfast.model.constraints import Key, NonKey, shortest_first
from holdfast.model.names import listed
from holdfast.model.options import Settings
from holdfast.model.records import JsonObject
from holdfast.screen.text import count, plain

if TYPE_CHECKING:
    from rich.text import Text

    from holdfast.report.snapshot import TableSnapshot
    from holdfast.screen.page import Page


class KeyList(TablePart):
    """Minimal keys: those of the distinct rows, where rows are repeated."""

    name = "keys"
    field = "keys"
    nouns = ("key", "keys")
    limit = "keys"

    def listed(self, table: TableSnapshot) -> list[Key]:
        """Those that hold, shortest first."""
        return shortest_first(table.keys, table.columns)

    def whole(self, table: TableSnapshot) -> list[Key]:
        """With the approximate ones behind them."""
        return [*self.listed(table), *table.approximate_keys]

    def form(self, table: TableSnapshot, options: Settings) -> JsonObject:
        """A bag with a repeated row has no key, whatever its distinct rows have. The error of a key
        that holds is shown where errors are looked for."""
        error = {} if options.get("max_error") is None else {"error": 0.0}
        keys = [{**key.to_dict(), **error} for key in self.listed(table)]
        approximate = [key.to_dict() for key in table.approximate_keys]
        if table.duplicates:
            return {self.field: approximate, "keys_of_distinct_rows": keys}
        return {self.field: [*keys, *approximate]}

    def show(self, page: Page, table: TableSnapshot, options: Settings, verbose: bool) -> None:  # noqa: ARG002
        """Those that hold, and then approximate ones."""
        keys = self.listed(table)
        heading = self.heading(len(keys))
        if table.duplicates:
            heading += " if the duplicated rows were removed"
        page.line(heading + self.limited(table, options), indent=2)
        for key in keys[: page.limit]:
            page.line(column_names(key) + nulls_of(key, table), "green", 4)
        page.more(len(keys), 4)
        if near := table.approximate_keys:
            page.line(count(len(near), "approximate key"), indent=2)
            for key in near[: page.limit]:
                shared = f"shared by {key.error:.3g} of the row pairs"
                page.line(f"{column_names(key)}  ({shared})", indent=4)
            page.more(len(near), 4)


class NonKeyList(TablePart):
    """Maximal non-keys, each with two rows that show it."""

    name = "non-keys"
    field = "non_keys"
    nouns = ("non-key", "non-keys")
    brief = False
    limit = "keys"

    def listed(self, table: TableSnapshot) -> list[NonKey]:
        """Shortest first."""
        return shortest_first(table.non_keys, table.columns)

    def show(self, page: Page, table: TableSnapshot, options: Settings, verbose: bool) -> None:
        """With what two rows share, or with both rows."""
        non_keys = self.listed(table)
        shown = non_keys[: page.limit]
        heading = self.heading(len(non_keys))
        if non_keys:
            heading = count(len(non_keys), "maximal non-key")
        page.line(heading + self.limited(table, options), indent=2)
        if verbose:
            for non_key in shown:
                page.line(column_names(non_key), "yellow", 4)
                if non_key.witness:
                    page.rows(non_key.witness, non_key.columns, 6)
        elif shown:
            _with_shared(page, shown, 4)
        page.more(len(non_keys), 4)


def nulls_of(key: Key, table: TableSnapshot) -> str:
    """How many nulls the columns of a key have, as far as that is known.

    A reader who wants to make it a primary key has to know."""
    known = {each.name: each.nulls for each in table.facts}
    numbers = {name: number for name in key.columns if (number := known.get(name)) is not None}
    if not key.columns or len(numbers) < len(key.columns):
        return ""
    some = {name: number for name, number in numbers.items() if number}
    if not some:
        return ", never null"
    nulls = count(sum(some.values()), "null")
    return f", {nulls}" if len(key.columns) == 1 else f", {nulls} in {plain(listed([*some]))}"


def column_names(constraint: Key | NonKey) -> str:
    """A set as people read it."""
    return plain(listed(constraint.columns))


def _with_shared(page: Page, non_keys: Sequence[NonKey], indent: int) -> None:
    """Non-keys beside what two rows share or, where the names would leave too little room for
    that, above it. Names are shown whole, values as far as they fit."""
    from rich.cells import cell_len
    from rich.table import Table

    from holdfast.screen.page import GAP

    sets = [column_names(non_key) for non_key in non_keys]
    shared = [_shared(non_key) for non_key in non_keys]
    room = page.console.width - indent
    names = max(map(cell_len, ["columns", *sets]))
    values = max(each.cell_len for each in shared)
    beside = names + GAP + values <= room or names <= room // 3
    left = room - (names + GAP if beside else 2 * GAP)
    for each in shared:
        each.truncate(max(1, left), overflow="ellipsis")
    if not values:
        for columns in sets:
            page.line(columns, "yellow", indent)
    elif beside:
        grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        grid.add_column("columns", style="yellow", no_wrap=True)
        grid.add_column("shared by two rows", no_wrap=True)
        for columns, cells in zip(sets, shared, strict=True):
            grid.add_row(columns, cells)
        page.table(grid, indent)
    else:
        page.line("columns, and what two rows share in them", "dim", indent)
        for columns, cells in zip(sets, shared, strict=True):
            page.line(columns, "yellow", indent)
            page.line(cells, "", indent + 2 * GAP)


def _shared(non_key: NonKey) -> Text:
    """The values that the witness rows share."""
    from rich.text import Text

    from holdfast.screen.page import cell

    if non_key.witness is None:
        return Text("")
    row = non_key.witness[0]
    if not all(column in row for column in non_key.columns):
        return Text(" and ").join(cell(each) for each in non_key.witness)
    return Text(" | ").join(cell(row[column]) for column in non_key.columns)
