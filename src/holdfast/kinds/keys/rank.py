"""Which keys matter: those that somebody would declare come before those that hold by chance."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING

from holdfast.model.constraints import Key, shortest_first
from holdfast.model.identifiers import of_name, of_type
from holdfast.model.inclusion_dependencies import ForeignKey
from holdfast.model.ranking import Ranked, behind
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot, TableSnapshot

MOST = 5_000
"""So many keys are ranked, the shortest: of more, none of the others would be declared."""

LIKELY = 0.6
"""The score from which on a foreign key counts as a reference to the key that it lies in."""

WEIGHTS = {
    "columns": 0.3,
    "types": 0.2,
    "names": 0.2,
    "never null": 0.1,
    "referenced": 0.15,
    "first columns": 0.05,
}


def ranked(snapshot: Snapshot, name: str) -> list[Ranked]:
    """The keys of a table, the likeliest first; none where rows are repeated."""
    table = snapshot.tables[name]
    if table.duplicates:
        return []
    into = _references(snapshot, name)
    keys = shortest_first(table.keys, table.columns)[:MOST]
    # Sorting keeps the order of those alike: the shorter, then in table order.
    return behind(table.near_rules, [_ranked(key, table, into) for key in keys])


def judged(key: Key, snapshot: Snapshot, name: str) -> Ranked:
    """A key as it would be ranked if it held."""
    return _ranked(key, snapshot.tables[name], _references(snapshot, name))


def _references(snapshot: Snapshot, name: str) -> list[ForeignKey]:
    """The likely foreign keys into a table."""
    inclusions = snapshot.inclusions
    references = [] if inclusions is None else inclusions.foreign_keys()
    return [each for each in references if each.referenced[0].table == name]


def _ranked(key: Key, table: TableSnapshot, references: Sequence[ForeignKey]) -> Ranked:
    place = {column: at for at, column in enumerate(table.columns)}
    types = [of_type(column, table.types[place[column]]) for column in key.columns]
    names = [of_name(column, table.name) for column in key.columns]
    nulls = _nulls(key, table)
    by = sorted({e.dependent[0].table for e in references if _refers(e, key.columns)})
    early = [1 - place[column] / len(table.columns) for column in key.columns]
    parts = {
        "columns": 1 / max(1, len(key.columns)),
        "types": min(types, default=1.0),
        "names": _mean(names),
        "never null": 0.5 if nulls is None else float(not nulls),
        "referenced": 1.0 if by else 0.0,
        "first columns": _mean(early),
    }
    score = sum(WEIGHTS[part] * value for part, value in parts.items())
    return Ranked(key, round(score, 4), tuple(_reasons(key, names, nulls, by)))


def _nulls(key: Key, table: TableSnapshot) -> int | None:
    """The nulls in its columns; None: they are not counted."""
    known = {each.name: each.nulls for each in table.facts}
    numbers = [known.get(column) for column in key.columns]
    return None if None in numbers else sum(number or 0 for number in numbers)


def _reasons(key: Key, names: Sequence[float], nulls: int | None, by: Collection[str]) -> list[str]:
    number = len(key.columns)
    reasons = ["one column" if number == 1 else f"{number} columns"]
    if key.columns and nulls is not None:
        reasons.append("never null" if not nulls else count(nulls, "null"))
    if key.columns and min(names) == 1:
        reasons.append("called like an identifier" if number == 1 else "called like identifiers")
    if by:
        reasons.append(f"referenced by {', '.join(by)}")
    return reasons


def _refers(reference: ForeignKey, columns: Sequence[str]) -> bool:
    return reference.score >= LIKELY and {e.column for e in reference.referenced} == {*columns}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 1.0
