"""Which columns to sort: a cheap cover of the minimal left sides, and a few more under a quota.

SWAN (section III) picks the column that most minimal keys contain, again and again, until every
key has an indexed column. Frequency alone picks columns with a handful of values on real data
(``l_discount``, 11 values in 6,000,000 rows), whose look-ups return half the table. So a column's
gain is weighed against the rows that a look-up in it returns: the greedy step of weighted set
cover. With equal weights it is the paper's.

A left side all of whose columns are so unselective that a look-up returns thousands of rows gets
an index of its own, over all its columns: the rows that a look-up there returns agree on the whole
left side, so one of them is enough to test a new row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from holdfast.tasks.segments import index_name

Key = tuple[int, ...]

_MOST_COMBINED = 12
"""Indexed columns up to which all combinations are tried when extra indexes are chosen."""


BROAD = 4_096
"""Rows that a look-up in one column may return; a left side without such a column is *broad*."""

_LARGE_GROUPS = 64
"""Rows that a look-up returns from which on an index of a left side's own is the better one."""

_MOST_OWN = 64
"""Broad left sides that get an index; the others are searched for in all rows."""


@dataclass(frozen=True)
class Plan:
    """How the rows of a batch are looked up for some left sides."""

    lookups: tuple[tuple[int, ...], ...]  # columns that left sides share, any of which will do
    filters: dict[int, tuple[int, ...]]
    groups: tuple[tuple[int, str], ...]  # those of the reached that have an index of their own
    reached: NDArray[np.bool_]  # the left sides that this finds everything against

    def without_lookups(self) -> Plan:
        """Only what goes by indexes of left sides' own."""
        reached = np.zeros_like(self.reached)
        reached[np.flatnonzero(self.reached)[[place for place, _ in self.groups]]] = True
        names = tuple(enumerate(name for _, name in self.groups))
        return Plan((), {}, names, reached)


def selectivity(column: int, distinct: list[float], rows: int) -> float:
    """Distinct values per row: 1 for a key, near 0 for a flag."""
    return min(1.0, max(distinct[column], 1.0) / max(rows, 1))


def choose(keys: list[Key], distinct: list[float], rows: int, quota: int) -> tuple[int, ...]:
    """The columns to index: every key has one; more while the quota (a total) allows."""
    chosen = cover(keys, distinct)
    extra = _extra(keys, chosen, distinct, rows, quota)
    return tuple(sorted({*chosen, *extra}))


def own(lefts: list[Key], distinct: list[float], rows: int) -> list[str]:
    """The indexes of broad left sides' own, shortest first."""
    broad = [left for left in lefts if left and is_broad(left, distinct, rows)]
    return [index_name(left) for left in sorted(broad, key=len)[:_MOST_OWN]]


def is_broad(left: Key, distinct: list[float], rows: int) -> bool:
    """Whether a look-up in any single column of a left side returns too many rows."""
    return rows > BROAD * max((distinct[c] for c in left), default=1.0)


def is_reached(left: Key, indexed: tuple[str, ...], distinct: list[float], rows: int) -> bool:
    """Whether a left side can be looked up in these indexes."""
    return (
        not left
        or index_name(left) in indexed
        or any(str(c) in indexed and rows <= BROAD * max(distinct[c], 1.0) for c in left)
    )


def plan(lefts: list[Key], indexed: tuple[str, ...], distinct: list[float], rows: int) -> Plan:
    """How to look a batch up for these left sides.

    Left sides with the same indexed columns share a look-up. Every one that contains column ``c``
    has one of ``filters[c]`` besides, so a row that agrees in none of them is skipped unread.
    """
    reached = np.array([is_reached(left, indexed, distinct, rows) for left in lefts], np.bool_)
    groups, shared = [], []
    for place, left in enumerate(
        left for left, is_one in zip(lefts, reached, strict=True) if is_one
    ):
        columns = tuple(c for c in left if str(c) in indexed)
        large = rows > _LARGE_GROUPS * max((distinct[c] for c in columns), default=1.0)
        if not left or (index_name(left) in indexed and (large or not columns)):
            groups.append((place, index_name(left)))
        else:
            shared.append((left, columns))
    filters = {}
    for column in {c for _, columns in shared for c in columns}:
        rest = [tuple(c for c in left if c != column) for left, _ in shared if column in left]
        # A left side that is the column alone needs no second agreement.
        filters[column] = () if () in rest else tuple(cover(rest, distinct))
    lookups = tuple(sorted({columns for _, columns in shared}))
    return Plan(lookups, filters, tuple(groups), reached)


def cover(keys: list[Key], distinct: list[float]) -> list[int]:
    """Columns such that each key has one, by greedy weighted set cover."""
    chosen: list[int] = []
    left = np.zeros((len(keys), len(distinct)), np.bool_)
    for place, key in enumerate(keys):
        left[place, list(key)] = True
    left = left[left.any(axis=1)]
    # A look-up returns rows/distinct rows, so the gain per cost is frequency × distinct.
    weights = np.maximum(distinct, 1.0)
    while len(left):
        best = int(np.argmax(left.sum(axis=0) * weights))
        chosen.append(best)
        left = left[~left[:, best]]
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
