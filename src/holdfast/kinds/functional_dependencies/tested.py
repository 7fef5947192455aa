"""How many pairs of rows agree on the left sides of dependencies, and so could have broken them;
how far the dependencies are from chance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.cover.counts import EvidenceCounts
from holdfast.kernels import bitsets
from holdfast.kernels.tested import Predicates, RulesAsked, sums
from holdfast.kinds.chance import repeating, rules_like, strength
from holdfast.model.constraints import FunctionalDependency


@dataclass(frozen=True)
class Tested:
    """What pairs of rows say of a dependency."""

    pairs: int  # that agree on its left side
    strength: float  # how far it is from chance, from 0 to 1
    estimated: bool = False


def counted(
    dependencies: Sequence[FunctionalDependency],
    columns: Sequence[str],
    rows: int,
    counts: EvidenceCounts,
) -> list[Tested]:
    """By all pairs of rows."""
    place, width = {name: at for at, name in enumerate(columns)}, len(columns)
    starts, asked = [0], []
    for each in dependencies:
        # First come the predicates that rows agree in a column, then those that they differ.
        asked += [*(place[column] for column in each.lhs), width + place[each.rhs]]
        starts.append(len(asked))
    equal = bitsets.from_columns([(column,) for column in range(width)], width)
    none = np.zeros_like(equal)
    agree, differ = np.concatenate([equal, none]), np.concatenate([none, equal])
    others, could = sums(
        counts.masks,
        counts.counts,
        Predicates(agree, differ, agree, agree),
        RulesAsked(np.array(starts, np.int64), np.array(asked, np.int64)),
    )
    shares = [counts.satisfying((column,)) / max(1, counts.pairs) for column in range(width)]
    shares += [1 - share for share in shares]
    differing = [repeating(share, rows) for share in shares[:width]] * 2
    expected = others * np.array(shares)[asked]
    tested = []
    for at, each in enumerate(dependencies):
        of_rule = slice(starts[at], starts[at + 1])
        least = min([*expected[of_rule].tolist(), *(differing[k] for k in asked[of_rule])])
        tested.append(Tested(int(could[at]), _strength(least, each, width)))
    return tested


def estimated(dependency: FunctionalDependency, distinct: Mapping[str, float], rows: int) -> Tested:
    """As if the values of all columns were equally frequent, and had nothing to do with each
    other."""
    every = rows * (rows - 1) / 2
    agreeing = every / math.prod(max(1.0, distinct.get(column, 1.0)) for column in dependency.lhs)
    expected = agreeing * (1 - 1 / max(1.0, distinct.get(dependency.rhs, 1.0)))
    return Tested(round(agreeing), _strength(expected, dependency, len(distinct)), True)


def _strength(expected: float, dependency: FunctionalDependency, columns: int) -> float:
    size = len(dependency.lhs) + 1
    return strength(expected, rules_like(columns, size, 1) + math.log(size))


def repeated(pairs: int, rows: int) -> float:
    """The share of rows that are not the first of their group, if so many pairs of rows are in one
    group, and groups are as large as they are by chance.

    >>> round(repeated(3, 10_000), 4), round(repeated(5_000, 10_000), 2)
    (0.0003, 0.37)
    """
    others = 2 * pairs / rows
    return 1 + math.expm1(-others) / others if others else 0.0
