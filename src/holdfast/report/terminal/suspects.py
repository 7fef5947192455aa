"""Rules that nearly hold, and the cells that they suspect."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby

from rich.table import Table

from holdfast.model.constraints import Constraint
from holdfast.model.near import NearRule, Suspect, Suspects
from holdfast.report.terminal.near import heading, rules_with_numbers
from holdfast.screen.page import GAP, WIDEST_CELL, Page
from holdfast.screen.text import count, plain, value_text

_WIDEST = (WIDEST_CELL, 24, 16, 14, 12, 11, 10, 8)
"""How wide columns of values are at most: the first that fits the screen. Suggestions take two."""

_FIRST = 2
"""So many cells of a row are shown beside a suspected one where no columns tell rows apart."""


def suspects(page: Page, found: Suspects) -> None:
    """Each table's rules, which are counted, then the cells with the numbers of their rules."""
    numbers: dict[Constraint, int] = {}
    start = 1
    for table, rules in groupby(found.near, lambda near: near.table):
        of_table = [*rules]
        page.line(f"{plain(table)}: {heading(len(of_table))}", "bold")
        rules_with_numbers(page, of_table, 2, start)
        numbers |= {near.rule: start + n for n, near in enumerate(of_table[: page.limit])}
        start += len(of_table)
    if not found.near:
        page.line("no rule nearly holds", "green")
    elif not found.total:
        page.line("no cell is suspected", "green")
    else:
        verb = "is" if found.total == 1 else "are"
        page.line(f"{count(found.total, 'cell')} {verb} suspected", "bold")
        _cells(page, found.cells, numbers)
        page.rest(found.total - len(found.cells), 2)


def suspects_of_rule(page: Page, found: Suspects) -> None:
    """The cells that one rule suspects, and what tells their rows from others."""
    [near] = found.near
    page.line(plain(str(near.rule)), "bold")
    if not found.total:
        page.line("no cell is suspected", "green", 2)
        return
    page.line(_of_rule(near, found), "", 2)
    if near.suspected_column is None:
        page.rows([cell.row for cell in found.cells], near.lhs, 4)
    else:
        _wrong(page, near, near.suspected_column, found.cells)
    page.rest(found.total - len(found.cells), 4)


def _of_rule(near: NearRule, found: Suspects) -> str:
    """How many cells there are."""
    if near.of_values is not None:
        verb = "refers" if found.total == 1 else "refer"
        are = "is" if found.groups == 1 else "are"
        rows, values = count(found.total, "row"), count(found.groups, "value")
        return f"{rows} {verb} to {values} that {are} missing"
    if near.rhs is None:
        return f"{count(found.total, 'row')} share {count(found.groups, 'value')}"
    cells, groups = count(found.total, "cell"), count(found.groups, "group")
    verb = "disagrees" if found.total == 1 else "disagree"
    of = "the group" if found.total == 1 else "their group"
    return f"{cells} in {groups} {verb} with the rest of {of}"


def _wrong(page: Page, near: NearRule, column: str, cells: Sequence[Suspect]) -> None:
    """Cells of a column that should be others, with the columns that say which they are."""
    keys = [name for cell in cells[:1] for name in cell.row_key or ()]
    names = [*dict.fromkeys([*keys, *near.lhs, column])]
    if not all(name in cell.row for cell in cells for name in names):  # no rows are kept
        names = [*cells[0].row]
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    for name in names:
        grid.add_column(plain(name), overflow="ellipsis", no_wrap=True, max_width=WIDEST_CELL)
    if near.rhs is not None or any(cell.suggested is not None for cell in cells):
        grid.add_column("suggested", overflow="fold")
    for cell in cells:
        grid.add_row(*(value_text(cell.row.get(name)) for name in names), _suggested(cell, GAP))
    page.table(grid, 4)


def _suggested(cell: Suspect, gap: int = 1) -> str:
    """What it should be, and how much of its group is."""
    value = None if cell.suggested is None else value_text(cell.suggested)
    if cell.suspicion is not None:
        return value or ""
    most = f"({cell.agreeing:,} of {cell.group:,} rows)"
    return most if value is None else f"{value}{' ' * gap}{most}"


def _cells(page: Page, cells: Sequence[Suspect], numbers: Mapping[Constraint, int]) -> None:
    """The cells, with what most of their groups have; rules that are not shown have no number."""
    grids = (_grid(cells, numbers, widest) for widest in _WIDEST)
    page.table(
        next((grid for grid in grids if page.fits(grid, 2)), None)
        or _grid(cells, numbers, _WIDEST[-1]),
        2,
    )


def _grid(cells: Sequence[Suspect], numbers: Mapping[Constraint, int], widest: int) -> Table:
    """The cells in columns that are not wider."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    grid.add_column("score", justify="right", no_wrap=True)
    for name in ("row", "column", "value"):
        grid.add_column(name, overflow="ellipsis", no_wrap=True, max_width=widest)
    grid.add_column(
        "suggested", overflow="ellipsis", no_wrap=True, max_width=min(2 * widest, WIDEST_CELL)
    )
    grid.add_column("by rule", overflow="fold")  # what is too wide wraps here
    for cell in cells:
        grid.add_row(
            f"{cell.score:.2f}",
            _row(cell),
            ", ".join(map(plain, cell.columns)),
            ", ".join(value_text(cell.row.get(name)) for name in cell.columns),
            _suggested(cell) or cell.suspicion or "",
            str(numbers.get(cell.rule, plain(str(cell.rule)))),
        )
    return grid


def _row(cell: Suspect) -> str:
    """What tells the row from others: its grain, if that is not suspected; or else the cells that
    come first."""
    key = cell.row_key or {}
    if key and not {*key} & {*cell.columns}:
        return ", ".join(map(value_text, key.values()))
    others = [value for name, value in cell.row.items() if name not in cell.columns]
    return ", ".join(map(value_text, others[:_FIRST]))
