"""The versions of a profile, and how two of them differ."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.model.changes import Changes
from holdfast.model.near import NearChange
from holdfast.model.versions import Entry, TableDiff
from holdfast.report.terminal.batch import batch_text
from holdfast.report.terminal.kinds import kind_diff
from holdfast.report.terminal.repeated import hold_again, none_holds, none_repeats, repeating
from holdfast.screen.page import Page, figures
from holdfast.screen.text import count, moment, plain


def history(page: Page, entries: Sequence[Entry]) -> None:
    """The versions, oldest first; the latest ones when there are many."""
    tables = [counts for entry in entries for counts in entry.counts.values()]
    kinds = registry.named_in(field for counts in tables for field in counts)
    latest = entries if page.limit is None else entries[-page.limit :]
    if entries and (first := entries[0].version) > 1:
        page.line(f"the versions before {first:,} expired", "dim")
    if len(latest) < len(entries):
        hidden = len(entries) - len(latest)
        page.line(f"… {hidden:,} earlier (--all shows them)", "dim")
    (_one_table if _fits(page, latest, kinds) else _by_version)(page, latest, kinds)
    if any(any(entry.duplicates.values()) for entry in latest):
        for kind in kinds:
            if kind.needs_distinct_rows:
                has = f"the distinct rows have n {kind.nouns[1]}"
                page.line(f"0 (n): a row repeats another one; {has}", "dim")
    _near(page, latest)


def _near(page: Page, entries: Sequence[Entry]) -> None:
    """What batches did to rules that nearly hold, the latest of it."""
    happened = [
        f"version {entry.version}, {plain(table)}: {plain(change.sentence)}"
        for entry in entries
        for table, changes in entry.by_table.items()
        for change in changes.near
    ]
    if happened:
        page.line("rules that nearly hold", "bold")
    if page.limit is not None and len(happened) > page.limit:
        page.line(f"… {len(happened) - page.limit:,} earlier (--all shows them)", "dim", 2)
        happened = happened[-page.limit :]
    for line in happened:
        page.line(line, "", 2)


def _one_table(page: Page, entries: Sequence[Entry], kinds: Sequence[Kind]) -> None:
    """All versions in one table."""
    page.table(_versions(entries, kinds), 0)


def _by_version(page: Page, entries: Sequence[Entry], kinds: Sequence[Kind]) -> None:
    """A line for each version and a table below it, for a screen too narrow for one table."""
    for entry in entries:
        events = _events(entry, kinds)
        batch = "".join(f", batch {name}" for _, name, *_ in events if name)
        page.line(f"version {entry.version}, {_minute(entry)} UTC{batch}", "bold")
        if entry.event is not None:
            page.line(entry.event, indent=2)
            continue
        # Numbers of one kind need a word above them that is as short as they are.
        grid = figures("table", "rows changed", "rows", *(kind.name for kind in kinds))
        grid.columns[0].no_wrap = grid.columns[2].no_wrap = True
        grid.columns[1].justify = "left"
        for table, _, *others in events:
            grid.add_row(table, *others)
        page.table(grid, 2)


def _fits(page: Page, entries: Sequence[Entry], kinds: Sequence[Kind]) -> bool:
    """Whether one table of all versions is as wide as the screen, at most."""
    without_end = page.console.options.update(width=10_000)
    wanted = page.console.measure(_versions(entries, kinds), options=without_end).maximum
    return wanted <= page.console.width


def _versions(entries: Sequence[Entry], kinds: Sequence[Kind]) -> Table:
    numbers = [kind.nouns[1] for kind in kinds]
    grid = figures("version", "when (UTC)", "table", "batch", "rows changed", "rows", *numbers)
    for column in (1, 2, 3, 4):
        grid.columns[column].justify = "left"
    for entry in entries:
        version = str(entry.version), _minute(entry)
        for event in _events(entry, kinds):
            grid.add_row(*version, *event)
            version = "", ""  # shown on the first of its lines
    return grid


def _minute(entry: Entry) -> str:
    return moment(entry.created)[: len("2026-11-15 08:52")]


def _events(entry: Entry, kinds: Sequence[Kind]) -> list[list[str]]:
    """What a version did: a batch to some tables, or the first profile to each."""
    if entry.event is not None:
        return [["", "", entry.event, "", *("" for _ in kinds)]]
    if entry.changes is None:
        return [
            [plain(table), "", entry.without_batch, f"{rows:,}"]
            + [_number(kind, entry, table, entry.duplicates[table]) for kind in kinds]
            for table, rows in entry.tables.items()
        ]
    events = []
    batch = plain(entry.changes.batch_id or "")
    for table, happened in entry.by_table.items():
        numbers = [
            _number(kind, entry, table, happened.duplicates) + _change(kind, happened)
            for kind in kinds
        ]
        events.append([plain(table), batch, batch_text(happened), f"{happened.rows:,}", *numbers])
        batch = ""  # shown on the first of its lines
    return events


def _number(kind: Kind, entry: Entry, table: str, duplicates: int) -> str:
    """How many constraints a table has: of some kinds none, where a row repeats another one."""
    number = entry.counts[table].get(kind.field)
    if number is None:
        return ""
    return f"0 ({number:,})" if duplicates and kind.needs_distinct_rows else f"{number:,}"


def _change(kind: Kind, happened: Changes) -> str:
    """How many came and went; not where repeated rows leave none."""
    changed = happened.kinds.get(kind.field)
    none = happened.duplicates and kind.needs_distinct_rows
    if changed is None or none or not changed.any:
        return ""
    lost = sum(changed.counts[what] for what in ("broken", "superseded", "unchecked"))
    return f" (+{changed.counts['gained']:,} −{lost:,})"


def diff(page: Page, one: int, two: int, tables: dict[str, TableDiff]) -> None:
    """What differs between two versions."""
    page.line(f"from version {one} to {two}")
    alike = [name for name, table in tables.items() if table.is_alike]
    for name, table in tables.items():
        if name in alike:
            continue
        page.line()
        page.line(f"{plain(name)}: {table.rows[0]:,} → {count(table.rows[1], 'row')}", "bold")
        before, after = table.duplicates
        if before and after:
            page.line(f"{none_holds()}: {before:,} → {repeating(after)}", "red", 2)
            page.line("of the distinct rows:", indent=2)
        elif after:
            page.line(f"{none_holds()} any more: {repeating(after)}", "red", 2)
        elif before:
            page.line(f"{none_repeats(before)}: {hold_again()}", indent=2)
        for kind in registry.named_in(table.kinds):
            kind_diff(page, kind, table.kinds[kind.field])
        _near_diff(page, table.near)
        if table.has_same_constraints:
            page.line("the same constraints", "dim", 2)
    if len(alike) == len(tables):
        page.line("as many rows, and the same constraints", "dim")


def _near_diff(page: Page, changes: Sequence[NearChange]) -> None:
    """How the rules that nearly hold differ, which both versions looked for."""
    for change in changes[: page.limit]:
        rows = [each.removal for each in (change.before, change.after) if each is not None]
        if change.before is not None and change.after is not None:
            verb = "rows break it" if max(rows) != 1 else "row breaks it"
            numbers = f"{rows[0]:,} → {rows[1]:,} {verb}"
            line = f"{change.body}: {numbers}{' (holds again)' if change.after.holds else ''}"
        else:
            line = change.sentence
        page.line(plain(line), "yellow", 2)
    page.more(len(changes), 2)
