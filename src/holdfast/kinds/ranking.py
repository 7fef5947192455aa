"""What matters first in a table: the constraints of every kind by their scores, and its grain.

``docs/ranking.md`` says what the scores are made of. They compare constraints of one kind, in one
table; a score of a key says nothing beside that of a dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from holdfast.kinds import registry
from holdfast.model.constraints import Constraint, Key
from holdfast.model.explanation import Past
from holdfast.model.inclusion_dependencies import ForeignKey
from holdfast.model.names import listed
from holdfast.model.ranking import STABILITY, UNTRIED, Grain, Ranked

if TYPE_CHECKING:
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

    def to_dict(self, most: int | None = None) -> dict[str, Any]:
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
    from holdfast.kinds.past import pasts

    def find(constraints: Sequence[Constraint]) -> list[Past]:
        rules: list[Any] = [
            each.inclusion if isinstance(each, ForeignKey) else each for each in constraints
        ]
        asked = [(registry.examiner(rule), rule) for rule in rules]
        return pasts(store, version, asked, LOOKED_BACK, READ)

    return find


def _with(each: Ranked, past: Past | None) -> Ranked:
    """With what batches say of it."""
    stability = None if past is None else past.stability
    confidence = UNTRIED if stability is None else stability.confidence
    score = (1 - STABILITY) * each.score + STABILITY * confidence
    return replace(each, score=round(score, 4), stability=stability)


def grain(snapshot: Snapshot, table: str, kinds: dict[str, list[Ranked]]) -> Grain:
    """What one row of a table stands for, and why."""
    now = snapshot.tables[table]
    best = next((e for some in kinds.values() for e in some if isinstance(e.constraint, Key)), None)
    if best is not None and isinstance(best.constraint, Key):
        reasons = [*best.reasons]
        if best.stability is not None and best.stability.batches:
            reasons.append(best.stability.sentence)
        return Grain(table, best.constraint, ", ".join(reasons))
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
    return f"one row per {listed(grain.key.columns)}: {grain.reason}"
