"""What matters first in a table: the constraints of every kind by their scores, and its grain.

``docs/ranking.md`` says what the scores are made of. They compare constraints of one kind, in one
table; a score of a key says nothing beside that of a dependency.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast import families
from holdfast.model.constraints import Key
from holdfast.model.names import listed
from holdfast.model.ranking import Grain, Ranked

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot


def ranked(snapshot: Snapshot, table: str) -> dict[str, list[Ranked]]:
    """The constraints about a table, by the JSON name of their kind, those that matter most first.

    >>> from holdfast.report.snapshot import Snapshot
    >>> ranked(Snapshot(1, "", {"kinds": []}, {}), "orders")
    {}
    """
    kinds = families.named(snapshot.options["kinds"])
    return {kind.field: kind.rank(snapshot, table) for kind in kinds}


def grain(snapshot: Snapshot, table: str, by_kind: dict[str, list[Ranked]] | None = None) -> Grain:
    """What one row of a table stands for, and why."""
    found = ranked(snapshot, table) if by_kind is None else by_kind
    now = snapshot.tables[table]
    best = next((e for some in found.values() for e in some if isinstance(e.constraint, Key)), None)
    if best is not None and isinstance(best.constraint, Key):
        return Grain(table, best.constraint, ", ".join(best.reasons))
    if now.duplicates:
        number = now.duplicates
        why = f"{number:,} row{' repeats' if number == 1 else 's repeat'} another one"
        return Grain(table, None, why)
    return Grain(table, None, "no key is known")


def sentence(grain: Grain) -> str:
    """A grain as people say it."""
    if grain.key is None:
        return f"no grain: {grain.reason}"
    if not grain.key.columns:
        return "at most one row"
    return f"one row per {listed(grain.key.columns)} ({grain.reason})"
