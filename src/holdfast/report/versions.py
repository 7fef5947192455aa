"""What each version of a profile changed, and how two of them differ."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.ranking import weighed
from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.commits import Form
from holdfast.model.near import NearChange, NearList, near_changes
from holdfast.model.versions import Entry, KindDiff, TableDiff
from holdfast.report.snapshot import Snapshot
from holdfast.store import Store


def entries(store: Store, last: int | None = None) -> list[Entry]:
    """Every version, oldest first; only the ``last`` so many if that is given."""
    return [
        Entry(
            each.version,
            each.created,
            _stored_changes(each.changes) if each.changes else None,
            {name: table.rows for name, table in each.tables.items()},
            {name: _numbers(table.counts) for name, table in each.tables.items()},
            {name: table.duplicates for name, table in each.tables.items()},
            each.event,
        )
        for each in store.summaries(last)
    ]


def differences(before: Snapshot, after: Snapshot) -> dict[str, TableDiff]:
    """What was gained and lost between two versions, per table that both have."""
    old, new = before.tables, after.tables
    kinds = registry.named(after.options["kinds"])
    by_table = {}
    for name in new:
        if name in old:
            diffs = {kind.field: _diff(kind, before, after, name) for kind in kinds}
            by_table[name] = TableDiff(
                (old[name].rows, new[name].rows),
                (old[name].duplicates, new[name].duplicates),
                {field: each for field, each in diffs.items() if each is not None},
                _near(old[name].near, new[name].near),
            )
    return by_table


def _diff(kind: Kind, before: Snapshot, after: Snapshot, table: str) -> KindDiff | None:
    """What came and went of a kind: what matters in the version that has it comes first."""
    diff = kind.diff(before, after, table)
    if diff is None:
        return None
    gained = weighed(kind, diff.gained, after, table)
    lost = weighed(kind, diff.lost, before, table)
    if not gained.constraints and not lost.constraints:
        return diff
    return KindDiff(
        gained.constraints,
        lost.constraints,
        {"gained": gained.first, "lost": lost.first},
        {"gained": gained.by_chance, "lost": lost.by_chance},
    )


def _near(before: NearList | None, after: NearList | None) -> tuple[NearChange, ...]:
    """What happened to the rules that nearly hold; nothing where they were not looked for."""
    return () if before is None or after is None else near_changes(before, after)


def _stored_changes(form: Form) -> Changes | BatchChanges:
    """What a batch did: to one table, or to several."""
    changes = BatchChanges.from_stored(form, registry.makers())
    return changes if len(changes.tables) > 1 else next(iter(changes.tables.values()))


def _numbers(counts: Mapping[str, int]) -> dict[str, int]:
    """How many constraints a table has of each kind, by their JSON names."""
    known = registry.REGISTRY.items()
    return {kind.field: counts[name] for name, kind in known if name in counts}
