"""Which rules are worth expecting: of what matters first in each table, the little that is likely
meant.

The scores are those of ``docs/ranking.md``. A suggestion that holds by chance costs a false alarm
some day, so that the bars are higher here than for what is shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.kinds.ranking import TableRanking
from holdfast.model.commits import Commit
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.expectations import Suggestion
from holdfast.model.inclusion_dependencies import ForeignKey
from holdfast.model.ranking import UNTRIED, Ranked

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot, TableSnapshot

KEY = 0.4
"""The grain is suggested from this score on: one of many columns that are no identifiers is not."""

FOREIGN_KEY = 0.6
DEPENDENCY = 0.5
RULE = 0.7

MOST = 3
"""So many functional dependencies of a table are suggested, and so many denial constraints."""

ENOUGH = 30
"""Dependencies and rules of a table with fewer rows hold by chance too easily."""


def suggested(
    snapshot: Snapshot, rankings: Mapping[str, TableRanking], version: Commit
) -> list[Suggestion]:
    """The rules of each table that are likely meant and that nobody has declared yet."""
    columns = {name: Columns.stored(each.columns) for name, each in version.tables.items()}
    expected = {each.rule for each in version.expectations}
    suggestions: dict[str, Suggestion] = {}
    for name, ranking in rankings.items():
        for text, reason in _of_table(snapshot.tables[name], ranking):
            rule = registry.canonical(text, columns)
            if rule not in expected:
                suggestions.setdefault(rule, Suggestion(rule, reason))
    return list(suggestions.values())


def _of_table(table: TableSnapshot, ranking: TableRanking) -> Iterator[tuple[str, str]]:
    if not table.rows:
        return
    first = [each for some in ranking.kinds.values() for each in some if _is_likely(each)]
    grain = ranking.grain.key
    if grain is not None and grain.columns and any(each.constraint == grain for each in first):
        yield str(grain), f"its grain: {ranking.grain.reason}"
        never_null = {each.name for each in table.facts if each.nulls == 0}
        for column in grain.columns:
            if column in never_null:
                yield str(NotNull(table.name, column)), "in the grain, and never null"
    for each in first:
        if isinstance(each.constraint, ForeignKey):
            yield str(each.constraint.inclusion), _because(each, "a foreign key")
    if table.rows < ENOUGH:
        return
    for kind in (FunctionalDependency, DenialConstraint):
        for each in [each for each in first if isinstance(each.constraint, kind)][:MOST]:
            yield str(each.constraint), _because(each)


_BARS = {
    Key: KEY,
    ForeignKey: FOREIGN_KEY,
    FunctionalDependency: DEPENDENCY,
    DenialConstraint: RULE,
}


def _is_likely(each: Ranked) -> bool:
    """Whether its score is high enough, nothing implies it, and batches do not speak against it."""
    bar = _BARS.get(type(each.constraint))
    confidence = UNTRIED if each.stability is None else each.stability.confidence
    return bar is not None and each.score >= bar and not each.implied_by and confidence >= UNTRIED


def _because(each: Ranked, *words: str) -> str:
    reasons = [*words, f"score {each.score:.2f}", *each.reasons]
    if each.stability is not None and each.stability.batches:
        reasons.append(each.stability.sentence)
    return ", ".join(reasons)
