"""How many pairs of rows agree on the left sides of dependencies, and so could have broken them;
how far the dependencies are from chance. That is estimated: counts of pairs need kernels, which
looking at a profile has no time for."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from holdfast.kinds.chance import rules_like, strength
from holdfast.model.constraints import FunctionalDependency


@dataclass(frozen=True)
class Tested:
    """What pairs of rows say of a dependency."""

    pairs: int  # that agree on its left side
    strength: float  # how far it is from chance, from 0 to 1


def estimated(dependency: FunctionalDependency, distinct: Mapping[str, float], rows: int) -> Tested:
    """As if the values of all columns were equally frequent, and had nothing to do with each
    other."""
    every = rows * (rows - 1) / 2
    agreeing = every / math.prod(
        domain(distinct.get(column, 1.0), rows) for column in dependency.lhs
    )
    expected = agreeing * (1 - 1 / max(1.0, distinct.get(dependency.rhs, 1.0)))
    return Tested(round(agreeing), _strength(expected, dependency, len(distinct)))


@lru_cache(1 << 12)
def domain(distinct: float, rows: int) -> float:
    """Of how many equally frequent values so many rows would have so many different ones: of far
    more, if hardly a value occurs twice.

    >>> round(domain(10, 1_000)), round(domain(999, 1_000), -3)
    (10, 500000.0)
    """
    if distinct >= rows:
        return math.inf
    share = distinct / rows
    low, high = 0.0, 1 / share
    for _ in range(60):  # rows for each value: (1 - exp(-x)) / x falls as x grows
        middle = (low + high) / 2
        low, high = (middle, high) if -math.expm1(-middle) > share * middle else (low, middle)
    return rows / high


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
