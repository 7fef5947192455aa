"""Which columns to sort: a cheap cover of the minimal keys, and a few more under a quota.

SWAN (section III) picks the column that most minimal keys contain, again and again, until every
key has an indexed column. Frequency alone picks columns with a handful of values on real data
(``l_discount``, 11 values in 6,000,000 rows), whose look-ups return half the table. So a column's
gain is weighed against the rows that a look-up in it returns: the greedy step of weighted set
cover. With equal weights it is the paper's.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

Key = tuple[int, ...]

_MOST_COMBINED = 12
"""Indexed columns up to which all combinations are tried when extra indexes are chosen."""


@dataclass(frozen=True)
class Plan:
    """The indexed columns, and how look-ups use them."""

    columns: tuple[int, ...]
    lookups: tuple[tuple[int, ...], ...]
    filters: dict[int, tuple[int, ...]]


def selectivity(column: int, distinct: list[float], rows: int) -> float:
    """Distinct values per row: 1 for a key, near 0 for a flag."""
    return min(1.0, max(distinct[column], 1.0) / max(rows, 1))


def choose(keys: list[Key], distinct: list[float], rows: int, quota: int) -> tuple[int, ...]:
    """The columns to index: every key has one; more while the quota (a total) allows."""
    chosen = cover(keys, distinct)
    extra = _extra(keys, chosen, distinct, rows, quota)
    return tuple(sorted({*chosen, *extra}))


def plan(keys: list[Key], columns: tuple[int, ...], distinct: list[float]) -> Plan:
    """How to look a batch up for these keys.

    Keys with the same indexed columns share a look-up. Every key that contains column ``c`` has
    one of ``filters[c]`` besides, so a row that agrees in none of them is skipped unread.
    """
    groups = {tuple(c for c in key if c in columns) for key in keys if key}
    used = {c for group in groups for c in group}
    filters = {}
    for column in used:
        rest = [tuple(c for c in key if c != column) for key in keys if column in key]
        # A key that is the column alone needs no second agreement.
        filters[column] = () if () in rest else tuple(cover(rest, distinct))
    return Plan(tuple(columns), tuple(sorted(groups)), filters)


def cover(keys: list[Key], distinct: list[float]) -> list[int]:
    """Columns such that each key has one, by greedy weighted set cover."""
    chosen: list[int] = []
    left = [key for key in keys if key]
    while left:
        frequency: dict[int, int] = {}
        for key in left:
            for column in key:
                frequency[column] = frequency.get(column, 0) + 1
        # A look-up returns rows/distinct rows, so the gain per cost is frequency × distinct.
        best = max(frequency, key=lambda c: (frequency[c] * max(distinct[c], 1.0), -c))
        chosen.append(best)
        left = [key for key in left if best not in key]
    return chosen


def _extra(
    keys: list[Key], chosen: list[int], distinct: list[float], rows: int, quota: int
) -> set[int]:
    """SWAN's algorithm 4: indexes that let look-ups in the least selective columns intersect."""
    room = quota - len(chosen)
    if room <= 0:
        return set()
    helpers = {}
    for column in chosen:
        alone = [key for key in keys if [c for c in key if c in chosen] == [column]]
        rest = [tuple(c for c in key if c != column) for key in alone]
        if rest and () not in rest:
            needed = set(cover(rest, distinct))
            if len(needed) <= room:
                helpers[column] = needed
    weakest = sorted(helpers, key=lambda c: distinct[c])[:_MOST_COMBINED]
    best: set[int] = set()
    best_score = (2.0, 0)
    for size in range(1, len(weakest) + 1):
        for combination in combinations(weakest, size):
            union = set().union(*(helpers[c] for c in combination))
            if len(union) > room:
                continue
            missed = 1.0
            for column in combination:
                missed *= 1.0 - selectivity(column, distinct, rows)
            score = (1.0 - missed, -size)
            if score < best_score:
                best, best_score = union, score
    return best
