"""A version of a profile: what it knows, what is in it, and whether it is right."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.table import Table

from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.ranking import TableRanking, ranked, sentence
from holdfast.model.columns import ColumnFacts
from holdfast.model.constraints import AgreeSet
from holdfast.model.names import listed
from holdfast.model.near import NEAR
from holdfast.model.options import Settings
from holdfast.model.versions import Verification
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.report.terminal.near import near_rules
from holdfast.report.terminal.repeated import show_repeated
from holdfast.screen.page import GAP, WIDEST_CELL, Page, figures
from holdfast.screen.text import count, moment, plain, size, value_text

if TYPE_CHECKING:
    from holdfast.kinds.denial_constraints.predicate_listing import Predicates

_NARROWEST = 6
"""How much of a value is shown at least where there is little room."""

_NULLS = {
    "equal": "Two nulls count as equal.",
    "unequal": "A null differs from every value, also from another null.",
}


def show(
    page: Page,
    path: str,
    snapshot: Snapshot,
    parts: Collection[str] | None = None,
    *,
    verbose: bool = False,
    sizes: dict[str, int] | None = None,
) -> None:
    """A version of a profile: the asked-for parts (None: all)."""
    options = snapshot.options
    of_tables = registry.table_parts(parts)
    _title(page, path, snapshot, nulls=bool(of_tables))
    nearly = parts is None or NEAR in parts
    for table in snapshot.tables.values() if of_tables or nearly or verbose else ():
        _table_heading(page, table)
        if nearly:
            if any(registry.of(near.rule).role == "key" for near in table.near_rules):
                _grain(page, ranked(snapshot, [table.name])[table.name])
            near_rules(page, path, table, asked=parts is not None and len(parts) == 1)
        for kind, asked in of_tables.items():
            if kind.name in table.found:
                for part in asked:
                    part.show(page, table, options, verbose)
            elif kind.name in options["kinds"]:
                _left_out(page, kind, table)
        if verbose:
            _inside(page, table)
    for kind, of_profile in registry.profile_parts(parts).items():
        for each in of_profile if kind.name in snapshot.found else ():
            each.show(page, snapshot, asked=parts is not None and len(parts) == 1)
    if verbose:
        _settings(page, options, sizes or {})


def overview(
    page: Page, path: str, snapshot: Snapshot, ranking: Mapping[str, TableRanking]
) -> None:
    """What matters first in each table of a version."""
    kinds = registry.named(snapshot.options["kinds"])
    _title(page, path, snapshot, nulls=registry.compare_pairs(snapshot.options["kinds"]))
    for name, table in snapshot.tables.items():
        _table_heading(page, table)
        _grain(page, ranking[name])
        near_rules(page, path, table)
        for kind in kinds:
            if kind.name in table.found or not _left_out(page, kind, table):
                kind.overview(page, snapshot, table, ranking[name][kind.field])
    for kind in kinds:
        kind.overview_of_profile(page, snapshot)


def _grain(page: Page, ranking: TableRanking) -> None:
    """What one row stands for, where that is known."""
    if ranking.grain.key is not None:
        page.line(plain(sentence(ranking.grain)), "", 2)


def _title(page: Page, path: str, snapshot: Snapshot, *, nulls: bool) -> None:
    page.line(f"{path}, version {snapshot.version} of {moment(snapshot.created)} UTC")
    if nulls:
        page.line(_NULLS[snapshot.options["nulls"]], "dim")


def _table_heading(page: Page, table: TableSnapshot) -> None:
    page.line()
    rows, columns = count(table.rows, "row"), count(len(table.columns), "column")
    page.line(f"{plain(table.name)}: {rows}, {columns}", "bold")
    if table.duplicates:
        show_repeated(page, table.duplicates, table.duplicated)


def _left_out(page: Page, kind: Kind, table: TableSnapshot) -> bool:
    """Say why a kind was not searched for in a table, if there is a reason."""
    why = kind.left_out(table)
    if why:
        page.line(f"{kind.nouns[1]} were not searched for: {why} (--kinds)", "", 2)
    return bool(why)


def columns(page: Page, snapshot: Snapshot) -> None:
    """What is known of each column."""
    for place, table in enumerate(snapshot.tables.values()):
        if place:
            page.line()
        page.line(f"{plain(table.name)}: {count(table.rows, 'row')}", "bold")
        rows = [_column_cells(each) for each in table.facts[: page.limit]]
        heading = ("column", "type", "nulls", "distinct", "minimum", "maximum")
        widths = [max(map(cell_len, cells)) for cells in zip(heading, *rows, strict=True)]
        # Names and numbers are shown whole, values as far as they fit.
        room = page.console.width - GAP - sum(widths[:4]) - 5 * GAP
        grid = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0), header_style="dim")
        for place, name in enumerate(heading):
            numbers, values = name in heading[2:4], name in heading[4:]
            grid.add_column(
                name,
                justify="right" if numbers else "left",
                overflow="ellipsis" if values else "fold",
                no_wrap=numbers or values or room > 2 * _NARROWEST,
                max_width=min(WIDEST_CELL, max(_NARROWEST, room // 2)) if values else None,
                min_width=None if values or room < 2 * _NARROWEST else widths[place],
            )
        for cells in rows:
            grid.add_row(*cells)
        page.table(grid, 2)
        page.more(len(table.facts))


def _column_cells(facts: ColumnFacts) -> tuple[str, ...]:
    nulls = "" if facts.nulls is None else f"{facts.nulls:,}"
    about = "about " if facts.estimated else ""
    distinct = "" if facts.distinct is None else f"{about}{facts.distinct:,}"
    ends = ["" if end is None else value_text(end) for end in (facts.minimum, facts.maximum)]
    return plain(listed([facts.name])), plain(facts.type), nulls, distinct, *ends


def agree_sets(page: Page, counted: dict[str, list[AgreeSet] | None]) -> None:
    """Agree-sets, those of most pairs first; None: the pairs of a table are not counted."""
    for place, (name, sets) in enumerate(counted.items()):
        if place:
            page.line()
        if sets is None:
            page.line(f"{plain(name)}: pairs of rows are not counted", "bold")
            continue
        page.line(f"{plain(name)}: {count(len(sets), 'agree-set')}", "bold")
        most = max((len(f"{each.pairs:,}") for each in sets), default=0)
        for each in sorted(sets, key=lambda each: -each.pairs)[: page.limit]:
            pairs = f"{each.pairs:>{most},} {'pair ' if each.pairs == 1 else 'pairs'}  "
            page.line(pairs + plain(listed(each.columns)), indent=2, hang=len(pairs))
        page.more(len(sets))


def predicates(page: Page, chosen: Mapping[str, Predicates]) -> None:
    """What denial constraints compare in each table, and what today's rows would choose."""
    for place, (name, each) in enumerate(chosen.items()):
        if place:
            page.line()
        page.line(plain(name), "bold")
        for line in each.lines:
            page.line(plain(line), indent=2)
        if each.today is None:
            continue
        if each.today == each.stored:
            page.line("Today's rows would choose the same.", "dim", 2)
            continue
        page.line("Today's rows would choose otherwise:", "", 2)
        for line in each.otherwise:
            page.line(plain(line), "yellow", 4)


def _inside(page: Page, table: TableSnapshot) -> None:
    indexes = count(len(table.indexes), "index", "indexes")
    page.line(f"{count(table.segments, 'segment')}, {indexes}", indent=2)
    if table.indexes:
        grid = figures("index", "distinct values", "selectivity")
        for index in table.indexes:
            share = f"{index.selectivity:.4g}"
            grid.add_row(plain(listed(index.columns)), f"{index.distinct:,}", share)
        page.table(grid, 4)
    for kind in registry.REGISTRY.values():
        kind.explain(page, table)


def _settings(page: Page, options: Settings, sizes: dict[str, int]) -> None:
    page.line()
    page.line("options", "bold")
    for name, value in options.items():
        shown = ", ".join(map(str, value)) if isinstance(value, list) else value_text(value)
        page.line(f"{name}: {shown}", indent=2)
    page.line()
    page.line(f"on disk: {size(sum(sizes.values()))}", "bold")
    for kind, taken in sorted(sizes.items(), key=lambda item: -item[1]):
        page.line(f"{kind}: {size(taken)}", indent=2)


def verification(page: Page, path: str, outcome: Verification) -> None:
    """Whether a profile equals a fresh one."""
    if outcome.equal:
        page.line(f"{path}, version {outcome.version}: equal to a fresh profile of its rows")
        return
    page.line(f"{path}, version {outcome.version}: differs from a fresh profile", "red")
    for name, sentences in outcome.differences.items():
        if sentences:
            page.line(plain(name), "bold", 2)
        for each in sentences[: page.limit]:
            page.line(plain(each), indent=4)
        page.more(len(sentences), 4)
