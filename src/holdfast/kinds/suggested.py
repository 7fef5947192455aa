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
from holdfast.kinds.base import Kind
from holdfast.kinds.ranking import TableRanking
from holdfast.model.commits import Commit
from holdfast.model.constraints import NotNull
from holdfast.model.expectations import Suggestion
from holdfast.model.ranking import UNTRIED, Ranked

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot, TableSnapshot

ENOUGH = 30
"""What holds by chance in small tables is suggested of tables with so many rows."""


def suggested(
    snapshot: Snapshot, rankings: Mapping[str, TableRanking], version: Commit
) -> list[Suggestion]:
    """The rules of each table that are likely meant and that nobody has declared yet."""
    columns = {name: Columns.stored(table.columns) for name, table in version.tables.items()}
    expected = {standing.rule for standing in version.expectations}
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
    likely = {
        kind: [ranked for ranked in ranking.kinds[kind.field] if _is_likely(ranked, kind)]
        for kind in registry.named_in(ranking.kinds)
        if kind.suggestions is not None
    }
    grain = ranking.grain.key
    first = [ranked.constraint for some in likely.values() for ranked in some]
    if grain is not None and grain.columns and grain in first:
        yield str(grain), f"its grain: {ranking.grain.reason}"
        never_null = {facts.name for facts in table.facts if facts.nulls == 0}
        for column in grain.columns:
            if column in never_null:
                yield str(NotNull(table.name, column)), "in the grain, and never null"
    for by_chance in (False, True) if table.rows >= ENOUGH else (False,):
        for kind, ranks in likely.items():
            bounds = kind.suggestions
            if bounds is not None and kind.role != "key" and bounds.by_chance == by_chance:
                for ranked in ranks[: bounds.most]:
                    yield str(kind.rule_of(ranked.constraint)), _because(ranked, *bounds.words)


def _is_likely(ranked: Ranked, kind: Kind) -> bool:
    """Whether its score is high enough, nothing implies it, and batches do not speak against it."""
    bounds = kind.suggestions
    confidence = UNTRIED if ranked.stability is None else ranked.stability.confidence
    return (
        bounds is not None
        and ranked.score >= bounds.score
        and not ranked.implied_by
        and confidence >= UNTRIED
    )


def _because(ranked: Ranked, *words: str) -> str:
    reasons = [*words, f"score {ranked.score:.2f}", *ranked.reasons]
    if ranked.stability is not None and ranked.stability.batches:
        reasons.append(ranked.stability.sentence)
    return ", ".join(reasons)
