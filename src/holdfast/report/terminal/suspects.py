"""Rules that nearly hold, and the cells that they suspect."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.table import Table

from holdfast.model.near import NearRule, Suspect, Suspects
from holdfast.report.terminal.near import heading, rules_with_numbers
from holdfast.screen.page import GAP, WIDEST_CELL, Page
from holdfast.screen.text import count, plain, value_text

_FIRST = 2
"""So many cells of a row are shown beside a suspected one."""


def suspects(page: Page, found: Suspects) -> None:
    """Each table's rules, then the cells."""
    for table, rules in groupby(found.near, lambda near: near.table):
        _rules(page, table, [*rules])
    if not found.near:
        page.line("no key and no functional dependency nearly holds", "green")
    elif not found.total:
        page.line("no cell is suspected", "green")
    else:
        verb = "is" if found.total == 1 else "are"
        page.line(f"{count(found.total, 'cell')} {verb} suspected", "bold")
        _cells(page, found.cells)
        page.rest(found.total - len(found.cells), 2)


def _rules(page: Page, table: str, rules: Sequence[NearRule]) -> None:
    page.line(f"{plain(table)}: {heading(len(rules))}", "bold")
    rules_with_numbers(page, rules, 2)


def _cells(page: Page, cells: Sequence[Suspect]) -> None:
    """The cells, with what most of their groups have."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="bold")
    grid.add_column("score", justify="right", min_width=5)
    for name in ("row", "column", "value", "suggested", "by"):
        grid.add_column(name, overflow="ellipsis", no_wrap=True, max_width=WIDEST_CELL)
    for suspect in cells:
        value = ", ".join(value_text(suspect.row.get(name)) for name in suspect.columns)
        most = f"{suspect.agreeing:,} of {suspect.group:,}"
        suggested = "" if suspect.suggested is None else value_text(suspect.suggested)
        is_key = suspect.agreeing == suspect.group
        grid.add_row(
            f"{suspect.score:.2f}",
            _row(suspect),
            ", ".join(map(plain, suspect.columns)),
            value,
            f"used by {suspect.group:,} rows" if is_key else f"{suggested} ({most} rows)",
            plain(str(suspect.rule)),
        )
    page.table(grid, 2)


def _row(suspect: Suspect) -> str:
    """What tells the row from others: the cells that come first, but for the suspected ones."""
    cells = [value for name, value in suspect.row.items() if name not in suspect.columns]
    return ", ".join(value_text(value) for value in cells[:_FIRST])
