"""Rules that nearly hold, and what a batch did to them."""

from __future__ import annotations

from collections.abc import Sequence
from shlex import quote

from rich.table import Table

from holdfast.model.near import NearChange, NearRule
from holdfast.report.snapshot import TableSnapshot
from holdfast.screen.page import GAP, Page
from holdfast.screen.text import count, plain


def near_rules(page: Page, path: str, table: TableSnapshot, *, asked: bool = False) -> None:
    """Those of a table, under its heading. That there are none is said only if they are ``asked``
    for, and so is how far they were looked for."""
    listed = table.near
    if listed is None:
        if asked:
            command = plain(f"holdfast add {quote(path)} --near")
            page.line(f"rules that nearly hold were not looked for ({command})", "", 2)
        return
    near = listed.listed
    if not near and not asked:
        return
    page.line(heading(len(near) + listed.unlisted), "", 2)
    rules_with_numbers(page, near, 4)
    if listed.unlisted:
        page.line(f"… and {listed.unlisted:,} more, which are not listed", "dim", 4)
    if asked:
        sides = f": keys and left sides of up to {count(listed.columns, 'column')}"
        page.line(
            f"looked for in version {listed.since}{sides if listed.columns else ''}", "dim", 2
        )
        for kind in listed.left_out:
            page.line(f"{kind} were left out: there was no time for them", "yellow", 2)
        for rule in listed.dismissed:
            page.line(f"dismissed: {plain(rule)}", "dim", 2)
    if near:
        page.line(suspects_command(path, f"--table {quote(table.name)}"), "dim", 2)


def suspects_command(path: str, of: str) -> str:
    """How to see the rows that break some of them."""
    return f"{plain(f'holdfast suspects {quote(path)} {of}')} lists the rows"


def heading(rules: int) -> str:
    """How many there are."""
    number = count(rules, "rule") if rules else "no rule"
    return f"{number} nearly {'hold' if rules > 1 else 'holds'}"


def rules_with_numbers(
    page: Page, near: Sequence[NearRule], indent: int, start: int | None = None
) -> None:
    """Rules, and beside each how far it is from holding; counted from ``start``, if it is given."""
    grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), show_header=False)
    if start is not None:
        grid.add_column(justify="right", no_wrap=True)
    grid.add_column(style="yellow", overflow="fold")
    grid.add_column(overflow="fold")
    for place, each in enumerate(near[: page.limit]):
        number = [] if start is None else [str(start + place)]
        grid.add_row(*number, plain(each.rule.body), plain(each.sentence))
    page.table(grid, indent)
    page.more(len(near), indent)


def near_changes(page: Page, changes: Sequence[NearChange]) -> None:
    """What a batch did to them, a line each."""
    for each in changes[: page.limit]:
        page.line(happened(each), "yellow", 2)
    page.more(len(changes), 2)


def happened(change: NearChange) -> str:
    """What a batch did to one of them, and at what cost where that is not the batch's."""
    counted = " (counted in one pass over the table)" if change.is_new else ""
    return plain(change.sentence) + counted
