"""A version of a profile as a notebook shows it: a small table, without scripts."""

from __future__ import annotations

from holdfast.kinds import registry
from holdfast.kinds.ranking import ranked
from holdfast.model import markup
from holdfast.model.names import listed
from holdfast.report.snapshot import Snapshot, TableSnapshot
from holdfast.screen.text import moment


def overview(name: str, snapshot: Snapshot) -> str:
    """Its tables, what tells their rows apart, and how many constraints they have."""
    parts = [part for some in registry.table_parts().values() for part in some if part.brief]
    shown = [
        part
        for part in parts
        if any(part.field in _numbers(table) for table in snapshot.tables.values())
    ]
    heads = ["table", "rows", "columns", "one row per", *(part.nouns[1] for part in shown)]
    lines = []
    ranking = ranked(snapshot, snapshot.tables)
    for table in snapshot.tables.values():
        grain, numbers = ranking[table.name].grain, _numbers(table)
        key = markup.soft(grain.reason)
        if grain.key is not None:
            key = markup.code(listed(grain.key.columns))
        counts = [f"{numbers[part.field]:,}" if part.field in numbers else "" for part in shown]
        lines.append(
            [markup.text(table.name), f"{table.rows:,}", f"{len(table.columns):,}", key, *counts]
        )
    across = [
        f"{len(part.listed(snapshot)):,} {part.nouns[1]}"
        for kind, some in registry.profile_parts().items()
        if kind.name in snapshot.found
        for part in some
    ]
    when = f"version {snapshot.version} of {moment(snapshot.created)} UTC"
    beside = f"<div>{markup.soft(', '.join(across))}</div>" if across else ""
    return markup.heading(f"{name}, {when}") + markup.table(heads, lines) + beside


def _numbers(table: TableSnapshot) -> dict[str, int]:
    return {
        part.field: len(part.listed(table))
        for kind, parts in registry.table_parts().items()
        if kind.name in table.found
        for part in parts
    }
