"""What matters first in a table: the constraints of every kind by their scores, and its grain.

``docs/ranking.md`` says what the scores are made of. They compare constraints of one kind, in one
table; a score of a key says nothing beside that of a dependency.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.explanation import Past
from holdfast.model.names import listed
from holdfast.model.ranking import STABILITY, UNTRIED, Grain, Ranked, in_order
from holdfast.model.records import JsonObject
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.kinds.base import Kind
    from holdfast.report.snapshot import Snapshot, TableSnapshot
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
    kind; those that nearly hold are apart."""

    grain: Grain
    kinds: dict[str, list[Ranked]]
    near: dict[str, list[Ranked]] = field(default_factory=dict)

    def __getitem__(self, kind: str) -> list[Ranked]:
        return self.kinds[kind]

    def together(self, kind: str) -> list[Ranked]:
        """Those of a kind that hold, and that nearly do, in one order."""
        return _together(kind, self.kinds, self.near)

    def to_dict(self, most: int | None = None) -> JsonObject:
        """The JSON form, with the first so many of each kind."""
        kinds = {kind: self.together(kind) for kind in self.kinds}
        first = {
            kind: [each.to_dict() for each in some if not each.by_chance][:most]
            for kind, some in kinds.items()
        }
        numbers = {kind: sum(e.by_chance for e in some) for kind, some in kinds.items()}
        form: JsonObject = {"grain": self.grain.to_dict(), "first": first}
        by_chance = {kind: number for kind, number in numbers.items() if number}
        return {**form, "by_chance": by_chance} if by_chance else form


def _together(kind: str, *some: Mapping[str, Sequence[Ranked]]) -> list[Ranked]:
    return in_order(each for by_kind in reversed(some) for each in by_kind.get(kind, ()))


def ranked(
    snapshot: Snapshot, tables: Iterable[str], past: Pasts | None = None
) -> dict[str, TableRanking]:
    """What matters first in some tables; without their ``past``, as if no batch had tried them."""
    kinds = registry.named(snapshot.options["kinds"])
    by_kind = {(name, kind.field): kind.rank(snapshot, name) for name in tables for kind in kinds}
    first = [each.constraint for some in by_kind.values() for each in some[:ASKED]]
    known: Iterator[Past | None] = iter(past(first) if past is not None else [None] * len(first))
    out: dict[str, dict[str, list[Ranked]]] = {}
    for (name, kind_name), some in by_kind.items():
        tried = [_with(each, next(known)) for each in some[:ASKED]]
        tried += [_with(each, None) for each in some[ASKED:]]
        out.setdefault(name, {})[kind_name] = in_order(tried)
    rankings = {}
    for name, of_table in out.items():
        near = _near(snapshot, name)
        best = grain(snapshot.tables[name], of_table, near)
        rankings[name] = TableRanking(best, of_table, near)
    return rankings


@dataclass(frozen=True)
class Weighed:
    """Constraints of one kind, those that matter first."""

    constraints: tuple[Constraint, ...]
    first: int  # so many of the first matter
    by_chance: int  # so many of the others hold by chance, as far as that is known


def weighed(
    kind: Kind, some: Sequence[Constraint], snapshot: Snapshot, table: str, *, hold: bool = True
) -> Weighed:
    """Constraints of a table in the order in which they matter: as a version ranks them, where they
    ``hold`` in it, or else as far as its rows tell of them."""
    known = {each.constraint: each for each in kind.rank(snapshot, table)} if hold and some else {}
    others = [each for each in some if each not in known]
    known.update(zip(others, kind.weigh(others, snapshot, table), strict=True))
    ranked = in_order(_with(known[each], None) for each in some)
    return Weighed(
        tuple(each.constraint for each in ranked),
        sum(map(kind.matters, ranked)),
        sum(each.by_chance for each in ranked),
    )


def _near(snapshot: Snapshot, table: str) -> dict[str, list[Ranked]]:
    """The rules of a table that nearly hold, by their kind, as they would be ranked if they
    held."""
    by_kind: dict[str, list[Ranked]] = {}
    for near in snapshot.tables[table].near_rules:
        kind = registry.of(near.rule)
        each = replace(_with(kind.judged(near.rule, snapshot, table), None), near=near)
        by_kind.setdefault(kind.field, []).append(each)
    return {kind: in_order(some) for kind, some in by_kind.items()}


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


def grain(
    table: TableSnapshot, kinds: Mapping[str, list[Ranked]], near: Mapping[str, list[Ranked]]
) -> Grain:
    """What one row of a table stands for, and why: of the keys that hold or nearly do, the best."""
    fields = [kind.field for kind in registry.with_role("key")]
    keys = [each for field in fields for each in _together(field, kinds, near)]
    if keys:
        reasons, stability, broken = [*keys[0].reasons], keys[0].stability, keys[0].near
        if stability is not None and stability.batches:
            reasons.append(stability.sentence)
        key: Any = keys[0].constraint
        return Grain(table.name, key, ", ".join(reasons), broken.removal if broken else 0)
    if number := table.duplicates:
        why = f"{number:,} row{' repeats' if number == 1 else 's repeat'} another one"
        return Grain(table.name, None, why)
    return Grain(table.name, None, "no key is known")


def sentence(grain: Grain) -> str:
    """A grain as people say it."""
    if grain.key is None:
        return f"no grain: {grain.reason}"
    if not grain.key.columns:
        return "there is at most one row"
    too_many = f", but for {count(grain.removal, 'row')} too many" if grain.removal else ""
    return f"one row per {listed(grain.key.columns)}{too_many}: {grain.reason}"
