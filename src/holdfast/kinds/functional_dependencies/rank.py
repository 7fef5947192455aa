"""Which functional dependencies matter: those that explain redundancy, and that chance does not
explain; and a cover of them.

A table with a few rules has thousands of minimal dependencies, because everything that contains a
key determines everything, and rules put together make others. So dependencies are scored by the
redundancy that they explain, and the best that follow from no better ones make a *cover*; the
others are implied by it, and each can say by which.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from holdfast.kinds.functional_dependencies.tested import (
    Tested,
    estimated,
    repeated,
)
from holdfast.model.constraints import Constraint, FunctionalDependency, Key
from holdfast.model.ranking import Ranked, behind
from holdfast.screen.text import count, share

if TYPE_CHECKING:
    from holdfast.report.snapshot import TableSnapshot

WORTHWHILE = 0.15
"""The score from which on a dependency is shown among those that matter."""

MOST = 5_000
"""So many dependencies are ranked, the shortest."""


def ranked(table: TableSnapshot) -> list[Ranked]:
    """The dependencies of a table: a cover of them first, by score, then those that it implies."""
    dependencies = table.functional_dependencies
    if dependencies is None:
        return []
    scored = weighed([each for each in dependencies[:MOST] if not each.error], table)
    scored.sort(key=lambda each: (each.by_chance, -each.score))
    keys = () if table.duplicates else table.keys
    return behind(table.near_rules, covered(scored, keys, table.columns))


def weighed(some: Sequence[FunctionalDependency], table: TableSnapshot) -> list[Ranked]:
    """Some dependencies, each by itself."""
    distinct = _of_columns(table)
    tested = [estimated(each, distinct, table.rows) for each in some]
    return [_scored(*each, table) for each in zip(some, tested, strict=True)]


def judged(dependency: FunctionalDependency, table: TableSnapshot) -> Ranked:
    """A dependency as it would be ranked if it held: it does not, so chance does not explain it."""
    tested = replace(estimated(dependency, _of_columns(table), table.rows), strength=1.0)
    scored = _scored(dependency, tested, table)
    return replace(scored, reasons=scored.reasons[:1], tested=None)


def _of_columns(table: TableSnapshot) -> dict[str, float]:
    return {column: _distinct(column, table)[0] for column in table.columns}


def _scored(dependency: FunctionalDependency, tested: Tested, table: TableSnapshot) -> Ranked:
    redundancy, is_estimated = _redundancy(dependency, tested, table)
    score = redundancy / math.sqrt(max(1, len(dependency.lhs)))
    label = " (estimated)" if is_estimated else ""
    reasons = [f"{share(round(redundancy, 3))} of its values are redundant{label}"]
    if not dependency.lhs:
        return Ranked(dependency, round(score, 4), ("constant",))
    pairs = count(tested.pairs, "pair of rows", "pairs of rows")
    reasons.append(f"about {pairs} could have broken it")
    by_chance = not tested.strength
    return Ranked(
        dependency, round(score, 4), tuple(reasons), tested=tested.pairs, by_chance=by_chance
    )


def _redundancy(
    dependency: FunctionalDependency, tested: Tested, table: TableSnapshot
) -> tuple[float, bool]:
    """The share of the values on the right that could be inferred from other rows: one minus the
    combinations of values on the left per row; and whether that is an estimate. There are at least
    as many combinations of several columns as values of each, and otherwise about as many as the
    pairs that agree on them tell."""
    if not table.rows:
        return 0.0, False
    known = [_distinct(column, table) for column in dependency.lhs]
    most = max((number for number, _ in known), default=1.0)
    redundancy = max(0.0, 1.0 - most / table.rows)
    if len(known) > 1:
        return min(redundancy, repeated(tested.pairs, table.rows)), True
    return redundancy, any(is_estimated for _, is_estimated in known)


def _distinct(column: str, table: TableSnapshot) -> tuple[float, bool]:
    """How many different values a column has, with a null; and whether that is an estimate."""
    facts = next((each for each in table.facts if each.name == column), None)
    if facts is None or facts.distinct is None:
        guess = dict(zip(table.columns, table.distinct, strict=False))
        return max(1.0, guess.get(column, 1.0)), True
    return max(1.0, facts.distinct + bool(facts.nulls)), facts.estimated


def covered(scored: Sequence[Ranked], keys: Sequence[Key], columns: Sequence[str]) -> list[Ranked]:
    """Those that follow neither from keys nor from better ones, and then the rest, each with what
    it is implied by."""
    place = {column: 1 << at for at, column in enumerate(columns)}
    everything = (1 << len(columns)) - 1
    known: list[_Step] = [_Step(_mask(key.columns, place), everything, key) for key in keys]
    steps = [_step(each, place) for each in scored]
    cover: list[_Step] = []
    for step in steps:
        if _derived(step.lhs, step.rhs, [*known, *cover]) is None:
            cover.append(step)
    # A better one may follow from worse ones, so that the cover can be smaller still: but not one
    # that is more than chance from those that are none.
    for step in reversed(cover[:]):
        rest = [
            each for each in cover if each is not step and (step.by_chance or not each.by_chance)
        ]
        if _derived(step.lhs, step.rhs, [*known, *rest]) is not None:
            cover.remove(step)
    inside = {id(step) for step in cover}
    first, implied = [], []
    for each, step in zip(scored, steps, strict=True):
        if id(step) in inside:
            first.append(each)
            continue
        by = _derived(step.lhs, step.rhs, [*known, *cover])
        implied.append(replace(each, implied_by=tuple(one.of for one in by or ())))
    return [*first, *implied]


def _step(each: Ranked, place: dict[str, int]) -> _Step:
    dependency = each.constraint
    assert isinstance(dependency, FunctionalDependency)
    return _Step(_mask(dependency.lhs, place), place[dependency.rhs], dependency, each.by_chance)


class _Step:
    """What a key or a dependency lets one conclude, as bits of columns."""

    __slots__ = ("by_chance", "lhs", "of", "rhs")

    def __init__(self, lhs: int, rhs: int, of: Constraint, by_chance: bool = False) -> None:
        self.lhs, self.rhs, self.of, self.by_chance = lhs, rhs, of, by_chance


def _derived(lhs: int, rhs: int, known: Sequence[_Step]) -> list[_Step] | None:
    """The steps from one set of columns to others, as few as are needed; None: there are none."""
    reached, taken = lhs, list[_Step]()
    while reached & rhs != rhs:
        unreached, step = ~reached, None
        for each in known:
            if each.rhs & unreached and not each.lhs & unreached:
                if each.rhs & rhs & unreached:  # the one that ends it, where there is one
                    step = each
                    break
                if step is None:
                    step = each
        if step is None:
            return None
        taken.append(step)
        reached |= step.rhs
    wanted, needed = rhs, list[_Step]()
    for step in reversed(taken):
        if step.rhs & wanted & ~lhs:
            needed.append(step)
            wanted = wanted & ~step.rhs | step.lhs
    return needed[::-1]


def _mask(columns: Sequence[str], place: dict[str, int]) -> int:
    return sum(place[column] for column in columns)
