"""Which columns to sort: a cheap cover of every minimal lhs, and a few more under a quota.

SWAN (section III) picks the column that most minimal keys contain, again and again, until every
key has an indexed column. Frequency alone picks columns with a handful of values on real data
(``l_discount``, 11 values in 6,000,000 rows), whose look-ups return half the table. So a column's
gain is weighed against the rows that a look-up in it returns: the greedy step of weighted set
cover. With equal weights it is the paper's.

An lhs all of whose columns are so unselective that a look-up returns thousands of rows gets
an index of its own, over all its columns: the rows that a look-up there returns agree on the whole
lhs, so one of them is enough to test a new row.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.model import thresholds
from holdfast.tasks.segments import index_columns, index_name

Sets = NDArray[np.bool_]
"""Sets of columns, one in each row: a flag per column."""

_MOST_COMBINED = 12
"""Indexed columns up to which all combinations are tried when extra indexes are chosen."""


_MOST_OWN = 64
"""Unselective left-hand sides that get an index; the others are searched for in all rows."""


@dataclass(frozen=True)
class Plan:
    """How the rows of a batch are looked up for some left-hand sides."""

    lookups: tuple[tuple[int, ...], ...]  # columns that left-hand sides share, any of which will do
    filters: dict[int, tuple[int, ...]]
    groups: tuple[tuple[int, str], ...]  # those of the reached that have an index of their own
    reached: NDArray[np.bool_]  # the left-hand sides that this finds everything against

    def without_lookups(self) -> Plan:
        """Only what goes by indexes of left-hand sides' own."""
        reached = np.zeros_like(self.reached)
        reached[np.flatnonzero(self.reached)[[at for at, _ in self.groups]]] = True
        names = tuple(enumerate(name for _, name in self.groups))
        return Plan((), {}, names, reached)


def selectivity(column: int, distinct: list[float], rows: int) -> float:
    """Distinct values per row: 1 for a key, near 0 for a flag."""
    return min(1.0, max(distinct[column], 1.0) / max(rows, 1))


def best(lhs: Sets, distinct: list[float]) -> NDArray[np.float64]:
    """The distinct values of each lhs's most selective column."""
    values = np.where(lhs, np.maximum(distinct, 1.0), 1.0)
    most: NDArray[np.float64] = values.max(axis=1, initial=1.0)
    return most


def choose(lhs: Sets, distinct: list[float], rows: int, quota: int) -> tuple[int, ...]:
    """The columns to index: every lhs has one; more while the quota (a total) allows."""
    chosen = cover(lhs, distinct)
    extra = _extra(lhs, chosen, distinct, rows, quota)
    return tuple(sorted({*chosen, *extra}))


def own(lhs: Sets, distinct: list[float], rows: int, indexed: tuple[str, ...]) -> list[str]:
    """The indexes of unselective left-hand sides' own, shortest first, as many as there is room for
    beside those that there are."""
    unselective = lhs[is_unselective(lhs, distinct, rows)]
    room = max(0, _MOST_OWN - sum(not name.isdigit() for name in indexed))
    shortest = np.argsort(unselective.sum(axis=1), kind="stable")[:room]
    return [index_name(np.flatnonzero(unselective[at]).tolist()) for at in shortest]


def is_unselective(lhs: Sets, distinct: list[float], rows: int) -> NDArray[np.bool_]:
    """Which left-hand sides have columns, and look-ups in any one of them return too many rows."""
    return lhs.any(axis=1) & (rows > thresholds.current.lookup_rows * best(lhs, distinct))


def is_reached(
    lhs: Sets, indexed: tuple[str, ...], distinct: list[float], rows: int
) -> NDArray[np.bool_]:
    """Which left-hand sides can be looked up in these indexes."""
    most = thresholds.current.lookup_rows
    selective = [c for c in _single(indexed) if rows <= most * max(distinct[c], 1.0)]
    reached = np.asarray(lhs[:, selective].any(axis=1) | ~lhs.any(axis=1))
    reached[[*_own(lhs, indexed)]] = True
    return reached


def plan(lhs: Sets, indexed: tuple[str, ...], distinct: list[float], rows: int) -> Plan:
    """How to look a batch up for these left-hand sides.

    Left-hand sides share look-ups: what serves some indexed columns serves all left-hand sides that
    contain them. Every lhs that contains column ``c`` has one of ``filters[c]`` besides, so a row
    that agrees in none of them is skipped unread.
    """
    reached = is_reached(lhs, indexed, distinct, rows)
    lhs = lhs[reached]
    columns = np.zeros(lhs.shape[1], np.bool_)
    columns[_single(indexed)] = True
    large = rows > thresholds.current.own_index_rows * best(lhs & columns, distinct)
    large |= ~(lhs & columns).any(axis=1)
    names = _own(lhs, indexed)
    groups = {at: name for at, name in names.items() if large[at]}
    groups |= dict.fromkeys(np.flatnonzero(~lhs.any(axis=1)).tolist(), "")
    shared = np.ones(len(lhs), np.bool_)
    shared[[*groups]] = False
    lhs = lhs[shared]
    filters = {}
    for column in np.flatnonzero((lhs & columns).any(axis=0)).tolist():
        rest = lhs[lhs[:, column]]
        rest[:, column] = False
        # An lhs that is the column alone needs no second agreement.
        filters[column] = tuple(cover(rest, distinct)) if rest.any(axis=1).all() else ()
    lookups = bitsets.to_columns(bitsets.minimal(bitsets.from_flags(lhs & columns)))
    return Plan(tuple(lookups), filters, tuple(sorted(groups.items())), reached)


def is_used(name: str, lhs: Sets) -> bool:
    """Whether an index serves any of the left-hand sides."""
    columns = index_columns(name)
    if len(columns) == 1:
        return bool(lhs[:, columns[0]].any())
    return bool(_own(lhs, (name,)))


def _single(indexed: tuple[str, ...]) -> list[int]:
    """The columns that have an index of their own."""
    return [int(name) for name in indexed if name.isdigit()]


def _own(lhs: Sets, indexed: tuple[str, ...]) -> dict[int, str]:
    """The left-hand sides, by position, that an index is over all of."""
    names = {}
    for name in indexed:
        wanted = np.zeros(lhs.shape[1], np.bool_)
        wanted[list(index_columns(name))] = True
        names.update(dict.fromkeys(np.flatnonzero((lhs == wanted).all(axis=1)).tolist(), name))
    return names


def cover(lhs: Sets, distinct: list[float]) -> list[int]:
    """Columns such that each lhs has one, by greedy weighted set cover."""
    chosen: list[int] = []
    unserved = lhs[lhs.any(axis=1)]
    # A look-up returns rows/distinct rows, so the gain per cost is frequency × distinct.
    weights = np.maximum(distinct, 1.0)
    while len(unserved):
        most = int(np.argmax(unserved.sum(axis=0) * weights))
        chosen.append(most)
        unserved = unserved[~unserved[:, most]]
    return chosen


def _extra(lhs: Sets, chosen: list[int], distinct: list[float], rows: int, quota: int) -> set[int]:
    """SWAN's algorithm 4: indexes that let look-ups in the least selective columns intersect."""
    room = quota - len(chosen)
    if room <= 0:
        return set()
    helpers = {}
    once = lhs[:, chosen].sum(axis=1) == 1
    for column in chosen:
        rest = lhs[once & lhs[:, column]]
        rest[:, column] = False
        if len(rest) and rest.any(axis=1).all():
            needed = set(cover(rest, distinct))
            if len(needed) <= room:
                helpers[column] = needed
    weakest = sorted(helpers, key=lambda c: distinct[c])[:_MOST_COMBINED]
    extra: set[int] = set()
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
                extra, best_score = union, score
    return extra
