"""Which rules of columns matter: those that say what a column is, not where its values happen to
end."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.columns.reading import FoundRule
from holdfast.model.column_values import Bounds, Domain, Pattern
from holdfast.model.constraints import NotNull
from holdfast.model.literals import NUMBER
from holdfast.model.names import words_of
from holdfast.model.ranking import Ranked
from holdfast.model.samples import EMAIL, NAMES, URL, UUID
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.model.columns import ColumnFacts
    from holdfast.report.snapshot import Snapshot, TableSnapshot

WORTHWHILE = 0.55
"""The score from which on a rule is shown among those that matter."""

_ENOUGH = 30
"""So many rows show a pattern or a bound; of fewer, each counts less."""

_NUMBERS = 10
"""Of more numbers, a further one between them would be no news."""

_MEASURES = ("float", "double", "decimal")


def ranked(snapshot: Snapshot, name: str) -> list[Ranked]:
    """The rules of a table's columns, the most telling first."""
    scored = weighed(snapshot.tables[name].found["columns"], snapshot, name)
    return sorted(scored, key=lambda each: -each.score)


def weighed(rules: Sequence[FoundRule], snapshot: Snapshot, name: str) -> list[Ranked]:
    """Some rules, each by itself."""
    table = snapshot.tables[name]
    facts = {each.name: each for each in table.facts}
    identifiers = _identifiers(snapshot, table)
    some_null = any(each.nulls for each in table.facts)
    return [
        _scored(rule, facts[rule.column], table.rows, rule.column in identifiers, some_null)
        for rule in rules
    ]


def _identifiers(snapshot: Snapshot, table: TableSnapshot) -> set[str]:
    """The columns whose values only tell rows apart, or refer to some: a bound says nothing of
    them."""
    columns = {key.columns[0] for key in table.keys if len(key.columns) == 1}
    inclusions = snapshot.inclusions
    for each in inclusions.foreign_keys() if inclusions is not None else ():
        if each.dependent[0].table == table.name:
            columns |= {side.column for side in each.dependent}
    endings = ("id", "key", "no", "nr", "number", "line", "year")
    columns |= {name for name in table.columns if (words_of(name) or [""])[-1].endswith(endings)}
    return columns


def _scored(
    rule: FoundRule, facts: ColumnFacts, rows: int, is_identifier: bool, some_null: bool
) -> Ranked:
    there = rows - (facts.nulls or 0)
    enough = min(1.0, there / _ENOUGH)
    if isinstance(rule, NotNull):
        others = "others of the table are null" if some_null else "no column is"
        return Ranked(rule, 0.64 * enough if some_null else 0.3, ("never null", others))
    if isinstance(rule, Domain):
        return _domain(rule, facts, is_identifier)
    if isinstance(rule, Pattern):
        score = 0.2 if is_identifier and _is_number(rule.pattern) else _telling(rule.pattern)
        return Ranked(rule, round(score * enough, 4), (_named(rule.pattern, there),))
    natural = {**rule.given}
    if len(natural) > 1 and natural["at_least"] != "0":
        return Ranked(rule, 0.2, ("its lowest and highest value",))
    if len(natural) > 1:
        is_exact = str(facts.maximum) == natural["at_most"] and str(facts.minimum) == "0"
        score = 0.75 if natural["at_most"] in ("1", "100") else 0.2
        reason = "its lowest and highest value" if is_exact else "a natural bound"
        return Ranked(rule, round(score * enough, 4), (reason,))
    score = 0.2 if is_identifier else 0.72 if facts.type.startswith(_MEASURES) else 0.66
    return Ranked(rule, round(score * enough, 4), (_sign(rule),))


def _domain(rule: Domain, facts: ColumnFacts, is_identifier: bool) -> Ranked:
    """The surer, the more often the least frequent value occurs."""
    least = min((facts.values or {"": 0}).values())
    number = len(rule.values)
    score = 0.9 * (1 - 1 / math.sqrt(least + 1))
    if number == 1:
        score *= 0.4  # constant so far
    if rule.type == NUMBER:
        score *= 0.5 if is_identifier or number > _NUMBERS else 0.85
    values = f"{count(number, 'value')}, {'each ' if number > 1 else ''}in {count(least, 'row')}"
    return Ranked(rule, round(score, 4), (values + (" or more" if number > 1 else ""),))


def _is_number(pattern: str) -> bool:
    return re.fullmatch(r"\[0-9\](\{[\d,]+\})?", pattern) is not None


def _telling(pattern: str) -> float:
    """How much a pattern says: a fixed length says more than none, and so do several parts."""
    if pattern in (EMAIL, UUID, URL):
        return 0.88
    parts = re.findall(r"\[[^]]*\](?:\{[\d,]+\})?|.", pattern)
    varies = "," in "".join(re.findall(r"\{([\d,]+)\}", pattern))
    if len(parts) == 1:
        return 0.35 if varies else 0.7
    return 0.65 if varies else 0.82


def _named(pattern: str, rows: int) -> str:
    noun = NAMES.get(pattern)
    return f"all {rows:,} are {noun}" if noun else f"all {rows:,} texts look alike"


def _sign(rule: Bounds) -> str:
    (bound,) = rule.given
    return {
        "above": "always positive",
        "at_least": "never negative",
        "below": "always negative",
        "at_most": "never positive",
    }[bound]
