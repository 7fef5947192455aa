"""Which columns to sort: a cheap cover of every minimal lhs, and a few more under a quota.

SWAN (section III) picks the column that most minimal keys contain, again and again, until every
key has an indexed column. Frequency alone picks columns with a handful of values on real data
(``l_discount``, 11 values in 6,000,000 rows), whose look-ups return half the table. So a column's
gain is weighed against the rows that a look-up in it returns: the greedy step of weighted set
cover. With equal weights it is the paper's.

An lhs all of whose columns are so unselective that a look-up returns thousands of rows gets an
index over several columns: over as many of its most selective ones as make a look-up return few
rows, which serves every lhs that has these columns. Where that takes all its columns, the rows that
a look-up returns agree on the whole lhs, so one of them is enough to test a new row.

``values`` are those that a column counts as (:attr:`holdfast.table.state.Table.effective`): a value
that half the rows have makes look-ups return a quarter of all rows, whatever the others are.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
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


_MOST_JOINT = 64
"""Indexes over several columns; left-hand sides that none serves are searched for in all rows."""


@dataclass(frozen=True)
class LookupPlan:
    """How the rows of a batch are looked up for some left-hand sides."""

    lookups: tuple[tuple[str, ...], ...]  # indexes that left-hand sides share, any of which will do
    filters: dict[str, tuple[int, ...]]
    groups: tuple[tuple[int, str], ...]  # those of the reached that have an index of their own
    reached: NDArray[np.bool_]  # the left-hand sides that this finds everything against

    def without_lookups(self) -> LookupPlan:
        """The plan with only those left-hand sides that have an index of their own."""
        reached = np.zeros_like(self.reached)
        reached[np.flatnonzero(self.reached)[[at for at, _ in self.groups]]] = True
        names = tuple(enumerate(name for _, name in self.groups))
        return LookupPlan((), {}, names, reached)


def selectivity(column: int, values: list[float], rows: int) -> float:
    """Values per row: 1 for a key, near 0 for a flag."""
    return min(1.0, max(values[column], 1.0) / max(rows, 1))


def best(lhs: Sets, values: list[float]) -> NDArray[np.float64]:
    """The values of each lhs's most selective column."""
    of_columns = np.where(lhs, np.maximum(values, 1.0), 1.0)
    most: NDArray[np.float64] = of_columns.max(axis=1, initial=1.0)
    return most


def choose(lhs: Sets, values: list[float], rows: int, quota: int) -> tuple[int, ...]:
    """The columns to index: every lhs has one; more while the quota (a total) allows."""
    chosen = cover(lhs, values)
    extra = _extra(lhs, chosen, values, rows, quota)
    return tuple(sorted({*chosen, *extra}))


def joint(lhs: Sets, values: list[float], rows: int, indexed: tuple[str, ...]) -> list[str]:
    """Indexes over several columns for unselective left-hand sides, shortest first, up to the limit
    for a table."""
    unselective = lhs[is_unselective(lhs, values, rows)]
    room = max(0, _MOST_JOINT - sum(len(_columns(name)) > 1 for name in indexed))
    chosen: list[str] = []
    served = np.zeros(len(unselective), np.bool_)
    for at in np.argsort(unselective.sum(axis=1), kind="stable"):
        if len(chosen) < room and not served[at]:
            columns = _selective_part(np.flatnonzero(unselective[at]).tolist(), values, rows)
            chosen.append(index_name(columns))
            served |= (
                unselective[:, columns].all(axis=1)
                if is_selective(chosen[-1], values, rows)
                else (unselective.sum(axis=1) == len(columns)) & unselective[:, columns].all(axis=1)
            )
    return chosen


def _selective_part(columns: list[int], values: list[float], rows: int) -> list[int]:
    """The most selective columns, as many as make a look-up return few rows; all if none do."""
    by_values = sorted(columns, key=lambda column: -values[column])
    most = float(thresholds.current.own_index_rows)
    for number, column in enumerate(by_values, 1):
        most *= max(values[column], 1.0)
        if rows <= most:
            return sorted(by_values[:number])
    return columns


def sparse(
    lhs: Sets, values: list[float], rows: int, there: Sequence[str]
) -> dict[str, NDArray[np.bool_]]:
    """Indexes over several columns in which hardly any two rows agree, each with the left-hand
    sides that it serves. Existing indexes come first, then those that serve most, as long as
    building them is worthwhile."""
    chosen: dict[str, NDArray[np.bool_]] = {}
    unserved = np.ones(len(lhs), np.bool_)
    known = [name for name in there if _is_sparse(name, values, rows)]
    others = dict.fromkeys(
        name
        for flags in lhs
        for name in _sparse_parts(np.flatnonzero(flags).tolist(), values, rows)
    )
    for names in (known, [*others]):
        while names and unserved.any() and len(chosen) < thresholds.current.sparse_indexes:
            serves = [_has(lhs, name) & unserved for name in names]
            most = max(range(len(names)), key=lambda at: int(serves[at].sum()))
            if not serves[most].any():
                break
            chosen[names[most]] = serves[most]
            unserved &= ~serves[most]
    return chosen


def _is_sparse(name: str, values: list[float], rows: int) -> bool:
    return returned(name, values, rows) <= thresholds.current.sparse_rows


def _sparse_parts(columns: list[int], values: list[float], rows: int) -> list[str]:
    """The sparse indexes over two of some columns; if there are none, one over the fewest of the
    most selective columns."""
    by_values = sorted(columns, key=lambda column: -values[column])
    pairs = map(index_name, combinations(columns, 2))
    longer = (index_name(sorted(by_values[:number])) for number in range(3, len(columns) + 1))
    sparse_pairs = [name for name in pairs if _is_sparse(name, values, rows)]
    return sparse_pairs or [name for name in longer if _is_sparse(name, values, rows)][:1]


def returned(name: str, values: list[float], rows: int) -> float:
    """The estimated number of rows that a look-up returns, assuming that the columns are
    independent."""
    return rows / math.prod(max(values[column], 1.0) for column in _columns(name))


def is_selective(name: str, values: list[float], rows: int) -> bool:
    """Whether a look-up in an index returns few rows."""
    return returned(name, values, rows) <= thresholds.current.lookup_rows


def is_unselective(lhs: Sets, values: list[float], rows: int) -> NDArray[np.bool_]:
    """Which left-hand sides have columns, none of which makes a look-up return few rows."""
    return lhs.any(axis=1) & (rows > thresholds.current.lookup_rows * best(lhs, values))


def is_reached(
    lhs: Sets, indexed: tuple[str, ...], values: list[float], rows: int
) -> NDArray[np.bool_]:
    """Which left-hand sides can be looked up in these indexes."""
    reached: NDArray[np.bool_] = np.asarray(~lhs.any(axis=1))
    for name in indexed:
        if is_selective(name, values, rows):
            reached |= _has(lhs, name)
    reached[[*_own(lhs, indexed)]] = True
    return reached


def plan(lhs: Sets, indexed: tuple[str, ...], values: list[float], rows: int) -> LookupPlan:
    """How to look up the rows of a batch for these left-hand sides.

    Left-hand sides share look-ups: one index serves all that contain its columns. Each of them also
    has one of the filter columns of the index, so rows that agree in none of these are skipped
    unread.
    """
    reached = is_reached(lhs, indexed, values, rows)
    lhs = lhs[reached]
    uses = _uses(lhs, indexed, values, rows)
    most = np.array([returned(name, values, rows) for name in indexed])
    large = np.where(uses, most, np.inf).min(axis=1, initial=np.inf)
    large = large > thresholds.current.own_index_rows
    names = _own(lhs, indexed)
    groups = {at: name for at, name in names.items() if large[at]}
    groups |= dict.fromkeys(np.flatnonzero(~lhs.any(axis=1)).tolist(), "")
    shared = np.ones(len(lhs), np.bool_)
    shared[[*groups]] = False
    lhs, uses = lhs[shared], uses[shared]
    filters = {}
    for place, name in enumerate(indexed):
        rest = lhs[uses[:, place]]
        if len(rest):
            rest[:, _columns(name)] = False
            # An lhs that is the index's columns alone needs no second agreement.
            filters[name] = tuple(cover(rest, values)) if rest.any(axis=1).all() else ()
    together = bitsets.to_columns(bitsets.minimal(bitsets.from_flags(uses))) if len(indexed) else []
    lookups = tuple(tuple(indexed[place] for place in group) for group in together)
    return LookupPlan(lookups, filters, tuple(sorted(groups.items())), reached)


def is_used(name: str, lhs: Sets, values: list[float], rows: int) -> bool:
    """Whether an index serves any of the left-hand sides."""
    if len(_columns(name)) == 1:
        return bool(_has(lhs, name).any())
    served = _has(lhs, name) & is_unselective(lhs, values, rows)
    return bool(_own(lhs, (name,))) or (is_selective(name, values, rows) and bool(served.any()))


def _uses(lhs: Sets, indexed: tuple[str, ...], values: list[float], rows: int) -> Sets:
    """Which indexes serve each lhs: those of its single columns, or, if none of these is selective,
    the selective ones over several of its columns."""
    has = np.zeros((len(lhs), len(indexed)), np.bool_)
    single = np.zeros(len(indexed), np.bool_)
    selective = np.zeros(len(indexed), np.bool_)
    for place, name in enumerate(indexed):
        has[:, place] = _has(lhs, name)
        single[place] = len(_columns(name)) == 1
        selective[place] = is_selective(name, values, rows)
    by_column = (has & single & selective).any(axis=1, keepdims=True)
    uses: Sets = np.where(by_column, has & single, has & selective)
    return uses


def _columns(name: str) -> list[int]:
    """The columns of an index, each once."""
    return sorted({*index_columns(name)})


def _has(lhs: Sets, name: str) -> NDArray[np.bool_]:
    """Which left-hand sides have all columns of an index."""
    return np.asarray(lhs[:, _columns(name)].all(axis=1))


def _own(lhs: Sets, indexed: tuple[str, ...]) -> dict[int, str]:
    """The left-hand sides, by position, whose columns are exactly those of an index."""
    names: dict[int, str] = {}
    for name in indexed:
        whole = _has(lhs, name) & (lhs.sum(axis=1) == len(_columns(name)))
        names.update(dict.fromkeys(np.flatnonzero(whole).tolist(), name))
    return names


def cover(lhs: Sets, values: list[float]) -> list[int]:
    """Columns such that each lhs has one, by greedy weighted set cover."""
    chosen: list[int] = []
    unserved = lhs[lhs.any(axis=1)]
    # A look-up returns rows/values rows, so the gain per cost is frequency × values.
    weights = np.maximum(values, 1.0)
    while len(unserved):
        most = int(np.argmax(unserved.sum(axis=0) * weights))
        chosen.append(most)
        unserved = unserved[~unserved[:, most]]
    return chosen


def _extra(lhs: Sets, chosen: list[int], values: list[float], rows: int, quota: int) -> set[int]:
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
            needed = set(cover(rest, values))
            if len(needed) <= room:
                helpers[column] = needed
    weakest = sorted(helpers, key=lambda c: values[c])[:_MOST_COMBINED]
    extra: set[int] = set()
    best_score = (2.0, 0)
    for size in range(1, len(weakest) + 1):
        for combination in combinations(weakest, size):
            union = set().union(*(helpers[c] for c in combination))
            if len(union) > room:
                continue
            missed = 1.0
            for column in combination:
                missed *= 1.0 - selectivity(column, values, rows)
            score = (1.0 - missed, -size)
            if score < best_score:
                extra, best_score = union, score
    return extra
