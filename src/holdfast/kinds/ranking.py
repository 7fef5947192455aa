"""What matters first in a table: the constraints of every kind by their scores, and its grain.

``docs/ranking.md`` says what the scores are made of. They compare constraints of one kind, in one
table; a score of a key says nothing beside that of a dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.explanation import Past
from holdfast.model.names import listed
from holdfast.model.ranking import STABILITY, UNTRIED, Grain, Ranked
from holdfast.model.records import JsonObject
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.model.near import NearRule
    from holdfast.report.snapshot import Snapshot
    from holdfast.store import Store

ASKED = 20
"""Of so many of each kind and table the past is looked at: those that come first without it."""

LOOKED_BACK = 100
"""So many versions are looked back at, because what matters first is asked for often."""

READ = 2_000_000
"""So many minimal sets are read for that, of all tables and versions."""

Pasts = Callable[[Sequence[Constraint]], list[Past]]
"""Constraints in, the past of each out."""


@dataclass(frozen=True)
class TableRanking:
    """What matters first in a table: its grain, and its constraints by the JSON name of their
    kind."""

    grain: Grain
    kinds: dict[str, list[Ranked]]

    def __getitem__(self, kind: str) -> list[Ranked]:
        return self.kinds[kind]

    def to_dict(self, most: int | None = None) -> JsonObject:
        """The JSON form, with the first so many of each kind."""
        kinds = {
            kind: [each.to_dict() for each in some[:most]] for kind, some in self.kinds.items()
        }
        return {"grain": self.grain.to_dict(), "first": kinds}


def ranked(
    snapshot: Snapshot, tables: Iterable[str], past: Pasts | None = None
) -> dict[str, TableRanking]:
    """What matters first in some tables; without their ``past``, as if no batch had tried them."""
    kinds = registry.named(snapshot.options["kinds"])
    by_kind = {(name, kind.field): kind.rank(snapshot, name) for name in tables for kind in kinds}
    first = [each.constraint for some in by_kind.values() for each in some[:ASKED]]
    known: Iterator[Past | None] = iter(past(first) if past is not None else [None] * len(first))
    out: dict[str, dict[str, list[Ranked]]] = {}
    for (name, field), some in by_kind.items():
        tried = [_with(each, next(known)) for each in some[:ASKED]]
        tried += [_with(each, None) for each in some[ASKED:]]
        # What others imply stays behind them.
        tried.sort(key=lambda each: (bool(each.implied_by), -each.score))
        out.setdefault(name, {})[field] = tried
    return {name: TableRanking(grain(snapshot, name, each), each) for name, each in out.items()}


def pasts_in(store: Store, version: int) -> Pasts:
    """The pasts of constraints as a profile has them."""
    from holdfast.rules.history import pasts

    def find(constraints: Sequence[Constraint]) -> list[Past]:
        kinds = [registry.of(constraint) for constraint in constraints]
        asked = [
            (kind.examiner(), kind.rule_of(constraint))
            for kind, constraint in zip(kinds, constraints, strict=True)
        ]
        return pasts(store, version, asked, LOOKED_BACK, READ)

    return find


def _with(each: Ranked, past: Past | None) -> Ranked:
    """With what batches say of it."""
    stability = None if past is None else past.stability
    confidence = UNTRIED if stability is None else stability.confidence
    score = (1 - STABILITY) * each.score + STABILITY * confidence
    return replace(each, score=round(score, 4), stability=stability)


def keys_nearly_holding(snapshot: Snapshot, table: str) -> list[tuple[Ranked, NearRule]]:
    """The keys of a table that nearly hold, by what their scores were if they held."""
    scored = [
        (_with(registry.of(each.rule).judged(each.rule, snapshot, table), None), each)
        for each in snapshot.tables[table].near_rules
        if registry.of(each.rule).role == "key"
    ]
    return sorted(scored, key=lambda pair: -pair[0].score)


def grain(snapshot: Snapshot, table: str, kinds: dict[str, list[Ranked]]) -> Grain:
    """What one row of a table stands for, and why: of the keys that hold or nearly do, the best."""
    now = snapshot.tables[table]
    keys = [ranked for kind in registry.with_role("key") for ranked in kinds.get(kind.field, ())]
    for best, near in keys_nearly_holding(snapshot, table)[:1]:
        if not keys or best.score > keys[0].score:
            nearly: Any = near.rule
            return Grain(table, nearly, ", ".join(best.reasons), near.removal)
    if keys:
        reasons, stability = [*keys[0].reasons], keys[0].stability
        if stability is not None and stability.batches:
            reasons.append(stability.sentence)
        key: Any = keys[0].constraint
        return Grain(table, key, ", ".join(reasons))
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
        return "there is at most one row"
    too_many = f", but for {count(grain.removal, 'row')} too many" if grain.removal else ""
    return f"one row per {listed(grain.key.columns)}{too_many}: {grain.reason}"
