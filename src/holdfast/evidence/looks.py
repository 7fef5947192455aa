"""Looks: the ways in which candidates are held against rows, and which of them is the cheapest.

* A *probe* looks the rows of a batch up in the indexes: pairs with a row of the batch.
* A *search* goes through all pairs of rows that agree in a sorted column of the lhs.
* *Representatives* are one row for each combination of values on an lhs that has few of them:
  every other row is compared with the one that stands for it.

Planning a look costs no job. Its calls are made once the columns that it goes by are sorted.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover import candidates as cands
from holdfast.kernels import bitsets
from holdfast.kernels.evidence import Candidates
from holdfast.model import thresholds
from holdfast.table import indexes
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import evidence as tasks
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View, bounds

Flags = NDArray[np.bool_]

_LOWEST = -(1 << 63)


@dataclass(frozen=True)
class Scope:
    """The rows that are looked at, what runs the tasks, and what evidence counts."""

    runner: Runner
    view: View
    every_rhs: bool  # what is maximal for some column on the right, not only what is maximal


@dataclass(frozen=True)
class Look(ABC):
    """A look for evidence against candidates: for all of it, unless ``in_part``."""

    candidates: Candidates

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The indexes that every segment needs for it."""
        return ()

    @property
    def in_part(self) -> bool:
        """Whether it leaves rows out."""
        return False

    @abstractmethod
    def calls(self, scope: Scope) -> list[Call]:
        """The calls that look at the rows of a scope."""


@dataclass(frozen=True)
class Probe(Look):
    """The rows of a batch, looked up in the indexes; with ``duplicates`` also for equal rows."""

    batch: tuple[Segment, ...]
    lookups: indexes.Plan
    duplicates: bool

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to look up, and to look for."""
        return bool(self.batch) and (self.duplicates or len(self.candidates.lhs) > 0)

    def calls(self, scope: Scope) -> list[Call]:
        """A call for every share of the segments."""
        how = (self.lookups.lookups, self.lookups.filters, self.lookups.groups, self.duplicates)
        return [
            (tasks.probe, tasks.Probe(share, scope.every_rhs, self.batch, self.candidates, *how))
            for share in shares(scope.view, scope.runner.tasks)
        ]


@dataclass(frozen=True)
class Search(Look):
    """All pairs of rows that agree in the first column of ``order``, which every lhs has;
    or those among some of the rows."""

    order: tuple[int, ...]
    some: bool

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The column that it starts from."""
        return (str(self.order[0]),)

    @property
    def in_part(self) -> bool:
        """Whether only some of the rows are gone through."""
        return self.some

    def calls(self, scope: Scope) -> list[Call]:
        """A call for every range of codes."""
        view, column, part = scope.view, self.order[0], thresholds.current.part
        cuts = bounds(view, column, parts(scope.runner, view) * (part if self.some else 1))
        ranges = list(zip([_LOWEST, *cuts], [*cuts, None], strict=True))
        number = len(ranges)
        if self.some:
            # The ranges lie apart, so that they differ in all that order brings.
            ranges = ranges[part // 2 :: part]
        how = (self.candidates, self.order, number)
        return [
            (tasks.search, tasks.Search(view, scope.every_rhs, column, low, high, *how))
            for low, high in ranges
        ]


@dataclass(frozen=True)
class Representatives(Look):
    """One row for each combination of values on the left-hand sides, and all others beside it."""

    def calls(self, scope: Scope) -> list[Call]:
        """One call, over all rows."""
        item = tasks.Representatives(scope.view, scope.every_rhs, self.candidates)
        return [(tasks.representatives, item)]


def sample_calls(scope: Scope) -> list[Call]:
    """Calls that gather the first evidence."""
    return [
        (tasks.sample, tasks.Sample(share, scope.every_rhs, thresholds.current.sample_rows))
        for share in shares(scope.view, scope.runner.tasks)
    ]


def probe(held: Candidates, table: Table, batch: tuple[Segment, ...], *, duplicates: bool) -> Probe:
    """A probe for those candidates that looking the batch up validates; not for those for which it
    would return more rows than a search goes through."""
    distinct, rows = table.distinct, table.rows
    lookups = indexes.plan(_flags(held, table), table.indexed, distinct, rows)
    columns = {column for group in lookups.lookups for column in group}
    batch_rows = sum(segment.live for segment in batch)
    returned = sum(batch_rows * rows / max(distinct[c], 1.0) for c in columns)
    limits = thresholds.current
    searched = limits.search_cost * rows * max(1, len(columns))
    if returned > searched + limits.cheap_probe:
        lookups = lookups.without_lookups()
    return Probe(cands.chosen(held, lookups.reached), batch, lookups, duplicates)


def has_few_combinations(candidates: Candidates, table: Table) -> Flags:
    """Which left-hand sides have few combinations of values, and so large groups."""
    lhs = _flags(candidates, table)
    combinations = (lhs * np.log(np.maximum(table.distinct, 1.0))).sum(axis=1)
    most = min(
        math.log(max(thresholds.current.few_combinations, 1)),
        math.log(max(table.rows / max(thresholds.current.large_groups, 1), 1)),
    )
    few: Flags = (combinations <= most) | ~lhs.any(axis=1)
    return few


def searches(candidates: Candidates, table: Table, *, part_first: bool) -> list[Search]:
    """A search for the candidates of every start column; with ``part_first``, and unless there are
    few candidates, in part."""
    by_selectivity = sorted(range(len(table.distinct)), key=lambda c: -table.distinct[c])
    some = part_first and len(candidates.lhs) > thresholds.current.part_from_candidates
    start = _start_columns(candidates, table)
    return [
        Search(
            cands.chosen(candidates, start == column),
            (column, *(c for c in by_selectivity if c != column)),
            some,
        )
        for column in np.unique(start).tolist()
    ]


def representatives(candidates: Candidates, tasks: int) -> list[Representatives]:
    """The candidates dealt out to as many looks as there are tasks."""
    task = np.arange(len(candidates.lhs)) % tasks
    return [
        Representatives(cands.chosen(candidates, task == t))
        for t in range(min(tasks, len(candidates.lhs)))
    ]


def _start_columns(candidates: Candidates, table: Table) -> NDArray[np.int64]:
    """The column that each candidate's search starts from: a selective one, sorted already where
    possible, and few of them."""
    distinct = table.distinct
    lhs = _flags(candidates, table)
    starts = np.zeros(len(distinct), np.bool_)
    for column in _sorted_columns(table):
        mine = lhs[lhs[:, column]]
        starts[column] = (distinct[column] >= indexes.best(mine, distinct) / 8).any()
    starts[indexes.cover(lhs[~lhs[:, starts].any(axis=1)], distinct)] = True
    weights = np.where(lhs & starts, np.maximum(distinct, 1.0), 0.0)
    out: NDArray[np.int64] = weights.argmax(axis=1)
    return out


def _sorted_columns(table: Table) -> set[int]:
    """Columns that are sorted in every segment."""
    held = [{int(n) for n in s.indexes if n.isdigit()} for s in table.segments]
    return set.intersection(*held) if held else set()


def _flags(candidates: Candidates, table: Table) -> indexes.Sets:
    return bitsets.to_flags(candidates.lhs, len(table.distinct))
