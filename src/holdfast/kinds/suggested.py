"""Which rules are worth expecting: of what matters first in each table, the little that is likely
meant, and what nearly holds.

The scores are those of ``docs/ranking.md``. A suggestion that holds by chance costs a false alarm
some day, so that the bars are higher here than for what is shown. What nearly holds hardly does so
by chance: its listing has bars of its own.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.input.row_input import Columns
from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.ranking import TableRanking
from holdfast.model.commits import Commit
from holdfast.model.constraints import NotNull
from holdfast.model.expectations import Suggestion
from holdfast.model.near import NearRule
from holdfast.model.ranking import UNTRIED, Grain, Ranked
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot, TableSnapshot

FEW = 0.01
"""What at most this share of the rows breaks is suggested. A good batch, too, brings more rows of
those that break other rules."""

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
        for each in _of_table(snapshot.tables[name], ranking):
            rule = registry.canonical(each.rule, columns)
            if rule not in expected:
                suggestions.setdefault(rule, replace(each, rule=rule))
    return list(suggestions.values())


def _of_table(table: TableSnapshot, ranking: TableRanking) -> Iterator[Suggestion]:
    if not table.rows:
        return
    kinds = [kind for kind in registry.named_in(ranking.kinds) if kind.suggestions is not None]
    likely = {
        kind: [each for each in ranking.kinds[kind.field] if _is_likely(each, kind)]
        for kind in kinds
    }
    of_keys = [
        each.near
        for kind in kinds
        for each in ranking.near.get(kind.field, ())
        if each.near and kind.role == "key" and _is_likely(each, kind)
    ]
    first = [ranked.constraint for some in likely.values() for ranked in some]
    if ranking.grain.key in (*first, *(near.rule for near in of_keys)):
        yield from _grain(table, ranking.grain)
    yield from map(_nearly, of_keys)
    for by_chance in (False, True) if table.rows >= ENOUGH else (False,):
        if by_chance:
            yield from map(_nearly, filter(_can_be_bounded, table.near_rules))
        for kind, ranks in likely.items():
            bounds = kind.suggestions
            if bounds is not None and kind.role != "key" and bounds.by_chance == by_chance:
                for each in ranks[: bounds.most]:
                    rule = str(kind.rule_of(each.constraint))
                    yield Suggestion(rule, _because(each, *bounds.words))


def _grain(table: TableSnapshot, grain: Grain) -> Iterator[Suggestion]:
    """The key that rows stand for, and that its columns are never null."""
    if grain.key is None or not grain.key.columns:
        return
    why = f"its grain: {grain.reason}"
    if grain.removal:
        why = f"its grain, but for {count(grain.removal, 'row')} too many: {grain.reason}"
    yield Suggestion(str(grain.key), why, grain.removal or None)
    never_null = {facts.name for facts in table.facts if facts.nulls == 0}
    for column in grain.key.columns:
        if column in never_null:
            yield Suggestion(str(NotNull(table.name, column)), "in the grain, and never null")


def _nearly(near: NearRule) -> Suggestion:
    """A rule that nearly holds, bounded by what breaks it now."""
    verb = "breaks" if near.removal == 1 else "break"
    why = f"nearly holds: {near.removal:,} of {count(near.of_rows, 'row')} {verb} it"
    return Suggestion(str(near.rule), why, near.removal)


def _can_be_bounded(near: NearRule) -> bool:
    """Whether a rule, which is no key, is broken by few rows, and can be expected so."""
    kind = registry.of(near.rule)
    few = near.removal <= FEW * near.of_rows
    return few and kind.role != "key" and kind.bounds_removal(near.rule)


def _is_likely(ranked: Ranked, kind: Kind) -> bool:
    """Whether its score is high enough, nothing explains it, and batches do not contradict it."""
    bounds = kind.suggestions
    confidence = UNTRIED if ranked.stability is None else ranked.stability.confidence
    return (
        bounds is not None
        and ranked.score >= bounds.score
        and ranked.stands_alone
        and confidence >= UNTRIED
    )


def _because(ranked: Ranked, *words: str) -> str:
    reasons = [*words, f"score {ranked.score:.2f}", *ranked.reasons]
    if ranked.stability is not None and ranked.stability.batches:
        reasons.append(ranked.stability.sentence)
    return ", ".join(reasons)
