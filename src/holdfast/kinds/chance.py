"""Whether a rule holds by chance: how many pairs of rows would break it if a column were shuffled.

If one column of a rule had nothing to do with the others, the pairs that satisfy all other
predicates would satisfy its predicate as often as any pair does. So many violations are expected,
and none are there. The fewest that are expected of any column tell how surprising that is: a rule
for which few are expected holds because hardly a pair tries it, or because a part of it nearly
holds already and the rest happens to leave out what breaks that. Pairs that share a row are no
independent tests, so no more of them count than rows that lack a column's most frequent value.
"""

from __future__ import annotations

import math

SURE = 3.0
"""The logarithm of how often a rule that is shown may hold by chance: once in twenty tables."""


def rules_like(comparisons: int, size: int, operators: int = 3) -> float:
    """The logarithm of the number of rules with so many of some comparisons, any of which would
    have been found if it held."""
    choices = math.lgamma(comparisons + 1) - math.lgamma(size + 1)
    return choices - math.lgamma(comparisons - size + 1) + size * math.log(operators)


def strength(expected: float, rules: float) -> float:
    """How far from chance a rule is for which so many violations are expected, among so many rules
    (their logarithm): 0 if it is likely chance, and nearly 1 if it cannot be.

    >>> strength(10.0, rules=8.0), strength(44.0, rules=8.0)
    (0.0, 0.75)
    """
    bar = rules + SURE
    return 1.0 - bar / expected if expected > bar else 0.0


def repeating(share: float, rows: int) -> float:
    """At least how many rows lack a column's most frequent value, if such a share of the pairs of
    rows is equal in it."""
    return rows * (1.0 - math.sqrt(min(1.0, share)))
