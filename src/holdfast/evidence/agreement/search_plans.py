"""The ways to search the rows for evidence against candidates, and which of them is the cheapest.

* A *probe* looks the rows of a batch up in the indexes: pairs with a row of the batch.
* *Repeats* are the rows of a batch that equal an earlier row: they are no evidence, but counted.
* An *index search* goes through all pairs of rows that agree in a sorted column of the lhs.
* *Representatives* are one row for each combination of values on an lhs that has few of them:
  every other row is compared with the one that stands for it.

Planning a search costs no job. Its calls are made once the columns that it needs are sorted: only
then it is known how many rows share a value. An index search leaves out the *heavy* values,
each of which has more rows than a task should bring together, and divides their rows by one more
column of the lhs, and so on; where the lhs has no further column, they are compared with
representatives. So the memory of a task is bounded, whatever the values are.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.cover import candidates as cands
from holdfast.evidence.scope import Scope
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import Flags
from holdfast.kernels.evidence import Candidates
from holdfast.model import thresholds
from holdfast.runtime.runner import Call
from holdfast.table import indexes
from holdfast.table.placement import parts, ranges, shares
from holdfast.table.state import Table
from holdfast.tasks import evidence as tasks
from holdfast.tasks import rows as row_tasks
from holdfast.tasks.segments import Segment, index_columns, index_name
from holdfast.tasks.view import Among, Division, divided


@dataclass(frozen=True)
class SearchPlan(ABC):
    """A search for evidence against candidates: for all of it, unless ``in_part``."""

    candidates: Candidates

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The indexes that every segment needs for it."""
        return ()

    @property
    def in_part(self) -> bool:
        """Whether it leaves rows out."""
        return False

    @property
    def validates(self) -> bool:
        """Whether the candidates that it does not refute hold."""
        return not self.in_part

    def lacking(self, _scope: Scope) -> tuple[str, ...]:
        """Further indexes that it needs: known once those it is ``sorted_by`` are there."""
        return ()

    @abstractmethod
    def calls(self, scope: Scope) -> list[Call]:
        """The calls that look at the rows of a scope."""


@dataclass(frozen=True)
class BatchProbe(SearchPlan):
    """The rows of a batch, looked up in the indexes."""

    batch: tuple[Segment, ...]
    order: tuple[int, ...]  # columns, most selective first
    lookups: indexes.LookupPlan

    @property
    def is_needed(self) -> bool:
        """Whether there is anything to look up, and to look for."""
        return bool(self.batch) and len(self.candidates.lhs) > 0

    def calls(self, scope: Scope) -> list[Call]:
        """A call for every share of the segments."""
        plan = self.lookups
        what = (scope.every_rhs, self.candidates, self.batch, self.order)
        how = (plan.lookups, plan.filters, plan.groups)
        return [
            (tasks.probe, tasks.ProbeBatch(share, *what, *how))
            for share in shares(scope.view, scope.runner.tasks)
        ]


@dataclass(frozen=True)
class BatchRepeats(SearchPlan):
    """The rows of a batch, looked up among all rows; there are no candidates."""

    batch: tuple[Segment, ...]

    def calls(self, scope: Scope) -> list[Call]:
        """A call for every range of the codes of rows: each row is in one, so that counts add
        up."""
        count = ranges(scope.runner, sum(segment.rows for segment in self.batch))
        return [
            (row_tasks.repeats, row_tasks.Repeats(scope.view, self.batch, *codes))
            for codes in row_tasks.even_ranges(count)
        ]


@dataclass(frozen=True)
class IndexSearch(SearchPlan):
    """All pairs of rows that agree in the columns of an index, which every lhs has; or those among
    some of the rows."""

    start: tuple[int, ...]  # those columns
    order: tuple[int, ...]  # all columns, those first
    index: str
    partly: bool
    whole: bool = False  # heavy values are brought together all the same
    lists: str = ""  # how the paths of lists of all wanted pairs begin, if there are to be any

    @property
    def sorted_by(self) -> tuple[str, ...]:
        """The index that it starts from."""
        return (self.index,)

    @property
    def in_part(self) -> bool:
        """Whether only some of the rows are gone through."""
        return self.partly

    def lacking(self, scope: Scope) -> tuple[str, ...]:
        """The indexes that divide the rows of heavy values, as far as these are known."""
        return tuple(step.index for step in self._steps(scope) if step.division is None)

    def calls(self, scope: Scope) -> list[Call]:
        """A call for every range of codes, and one for what is heavy in all columns of an lhs."""
        view, part = scope.view, thresholds.current.part
        calls: list[Call] = []
        what = (view, scope.every_rhs, self.candidates)
        for step in self._steps(scope):
            division = step.division
            if division is None:
                raise ValueError(f"the index {step.index} is not there")
            # Ranges in part lie apart, so that they differ in all that order brings.
            between = division.ranges[part // 2 :: part] if self.partly else division.ranges
            parted = [(*codes, len(division.ranges)) for codes in between]
            if self.whole:
                parted += [(*codes, 1) for codes in division.heavy_ranges]
            order = (*step.columns[::-1], *(c for c in self.order if c not in step.columns))
            how = (step.chosen, order, step.index)
            calls += [
                (
                    tasks.search,
                    tasks.SearchRange(*what, *how, low, high, step.among, number, self.lists),
                )
                for low, high, number in parted
            ]
            ended = step.ended(self.candidates)
            if ended.size and division.heavy.size and not self.partly and not self.whole:
                heavy = Among(step.index, division.heavy)
                item = tasks.SurveyRows(*what, ended, heavy)
                calls.append((tasks.representatives, item))
        return calls

    def _steps(self, scope: Scope) -> list[_SearchStep]:
        """Index after index: from the first one, and from there for heavy values."""
        view = scope.view
        most = 1.05 * view.live / parts(scope.runner, view)
        most = most / thresholds.current.part if self.partly else most
        least = max(most, thresholds.current.undivided_rows)
        everything = np.arange(len(self.candidates.lhs))
        steps = [_SearchStep(self.index, self.start, everything, None, 1.0, None)]
        for at, step in enumerate(steps):  # which grow meanwhile
            if all(step.index in segment.indexes for segment in view.segments):
                # Of the rows in a range only those among the heavy ones are brought together.
                division = divided(view, step.index, most / step.share, least)
                steps[at] = step = replace(step, division=division)
                if step.division is not None and not self.partly and not self.whole:
                    steps += step.next(self.candidates, self.order)
        return steps


@dataclass(frozen=True)
class _SearchStep:
    """Some candidates of a search, by an index over columns that all their left-hand sides have."""

    index: str
    columns: tuple[int, ...]
    chosen: NDArray[np.int64]
    among: Among | None  # only those rows
    share: float  # of all rows, that those have
    division: Division | None  # None: the index is not there yet

    def ended(self, candidates: Candidates) -> NDArray[np.int64]:
        """The candidates whose left-hand sides have no further column."""
        return self.chosen[~self._further(candidates).any(axis=1)]

    def next(self, candidates: Candidates, order: tuple[int, ...]) -> list[_SearchStep]:
        """How the rows of heavy codes are divided: by the most selective further column."""
        if self.division is None or not self.division.heavy.size:
            return []
        further = self._further(candidates)[:, list(order)]
        first = np.where(further.any(axis=1), further.argmax(axis=1), -1)
        steps = []
        share = self.division.heavy_share
        for place in np.unique(first[first >= 0]).tolist():
            columns = (*self.columns, order[place])
            among = Among(self.index, self.division.heavy)
            divided_on = self.chosen[first == place]
            steps.append(
                _SearchStep(index_name(sorted(columns)), columns, divided_on, among, share, None)
            )
        return steps

    def _further(self, candidates: Candidates) -> Flags:
        """The columns that each lhs has beside those of the index."""
        width = candidates.lhs.shape[1] * 64
        further = bitsets.to_flags(candidates.lhs[self.chosen], width)
        further[:, list(self.columns)] = False
        return further


@dataclass(frozen=True)
class Survey(SearchPlan):
    """One row for each combination of values on the left-hand sides, with which all others are
    compared: in each of several parts of the rows. A later plan merges the rows that were kept of
    each part."""

    parts: int = 1
    prefix: str = ""  # of the files that kept rows go to

    @property
    def validates(self) -> bool:
        """Rows of different parts were not compared."""
        return self.parts == 1

    def calls(self, scope: Scope) -> list[Call]:
        """A call for every part of the rows."""
        everything = np.arange(len(self.candidates.lhs))
        how = (scope.view, scope.every_rhs, self.candidates, everything, None)
        return [
            (tasks.representatives, tasks.SurveyRows(*how, part, self.parts, self.prefix))
            for part in range(self.parts)
        ]


@dataclass(frozen=True)
class SurveyedRows:
    """Rows that were kept for the combinations of values on left-hand sides, in files, and the
    right-hand sides that they were compared in."""

    candidates: Candidates
    files: tuple[str, ...]

    def places(self, candidates: Candidates) -> NDArray[np.int64]:
        """Where candidates are among these, with all their right-hand sides; -1: nowhere."""
        known = {lhs.tobytes(): k for k, lhs in enumerate(self.candidates.lhs)}
        at = np.array([known.get(lhs.tobytes(), -1) for lhs in candidates.lhs], np.int64)
        beyond = candidates.rhs[at >= 0] & ~self.candidates.rhs[at[at >= 0]]
        at[np.flatnonzero(at >= 0)[beyond.any(axis=1)]] = -1
        return at


@dataclass(frozen=True)
class SurveyMerge(SearchPlan):
    """The rows that were kept in parts of the rows, compared with each other."""

    places: tuple[int, ...]
    files: tuple[str, ...]

    def calls(self, scope: Scope) -> list[Call]:
        """One call."""
        item = tasks.MergeSurveys(
            scope.view, scope.every_rhs, self.candidates, self.places, self.files
        )
        return [(tasks.merge, item)]


def sample_calls(scope: Scope) -> list[Call]:
    """Calls that gather the first evidence."""
    return [
        (
            tasks.sample,
            tasks.SampleNeighbours(share, scope.every_rhs, thresholds.current.sample_rows),
        )
        for share in shares(scope.view, scope.runner.tasks)
    ]


def repeats(batch: tuple[Segment, ...], atoms: int) -> BatchRepeats:
    """A plan that counts the rows of a batch which repeat others."""
    none = bitsets.empty(atoms)
    return BatchRepeats(Candidates(none, np.empty((0, none.shape[1] + 1), np.uint64)), batch)


def probe(candidates: Candidates, table: Table, batch: tuple[Segment, ...]) -> BatchProbe:
    """A probe for the candidates that look-ups of the batch validate; not for those whose look-ups
    would return more rows than a search goes through."""
    values, rows = table.effective, table.rows
    lookups = indexes.plan(_flags(candidates, table), table.indexed, values, rows)
    names = {name for group in lookups.lookups for name in group}
    batch_rows = sum(segment.live for segment in batch)
    returned = sum(batch_rows * indexes.returned(name, values, rows) for name in names)
    limits = thresholds.current
    searched = limits.search_cost * rows * max(1, len(names))
    if returned > searched + limits.cheap_probe:
        lookups = lookups.without_lookups()
    reached = cands.chosen(candidates, lookups.reached)
    return BatchProbe(reached, batch, _by_selectivity(table), lookups)


def has_few_combinations(candidates: Candidates, table: Table) -> Flags:
    """Which left-hand sides have few combinations of values, and so large groups; or may have,
    because no column of theirs has many values. Columns that depend on each other have fewer
    combinations than the product says, and to be wrong costs little: room for representatives is
    full after about as many rows."""
    lhs, limits = _flags(candidates, table), thresholds.current
    combinations = (lhs * np.log(np.maximum(table.distinct, 1.0))).sum(axis=1)
    most = min(
        math.log(max(limits.few_combinations, 1)),
        math.log(max(table.rows / max(limits.large_groups, 1), 1)),
    )
    most_values = (lhs * table.effective).max(axis=1, initial=1.0)
    few: Flags = (combinations <= most) | (most_values * limits.frequent_rows <= table.rows)
    return few


def searches(
    candidates: Candidates,
    table: Table,
    *,
    partly: bool = False,
    whole: Flags | None = None,
    lists: str = "",
) -> list[IndexSearch]:
    """A search for the candidates of every start column, in all or ``some`` of the rows. The rows
    of the ``whole`` ones' heavy values are not divided: they have more combinations of them than
    there is room for representatives. All pairs that refute a candidate are listed where there are
    to be ``lists``."""
    by_selectivity = _by_selectivity(table)
    whole = np.zeros(len(candidates.lhs), np.bool_) if whole is None else whole
    return [
        IndexSearch(
            cands.chosen(candidates, starting & (whole == undivided)),
            columns,
            (*columns, *(c for c in by_selectivity if c not in columns)),
            index,
            partly,
            undivided,
            lists,
        )
        for index, columns, starting in _starts(candidates, table)
        for undivided in np.unique(whole[starting]).tolist()
    ]


Start = tuple[str, tuple[int, ...], Flags]
"""An index with its columns, and which of the candidates are searched for from there."""


def _starts(candidates: Candidates, table: Table) -> list[Start]:
    """Where the searches for all candidates start. For few of them in many rows that may be sparse
    indexes: to sort rows by several columns, and to compare the few that agree in these, takes
    less than to bring together and compare all that agree in one."""
    count, limits = len(candidates.lhs), thresholds.current
    everything = np.ones(count, np.bool_)
    single = _single_starts(candidates, table, everything)
    if table.rows < limits.part_from_rows or count > limits.part_from_candidates:
        return single
    sets = _flags(candidates, table)
    served = indexes.sparse(sets, table.effective, table.rows, table.indexed)
    sparse = [(name, index_columns(name), starting) for name, starting in served.items()]
    rest = everything & ~np.any([starting for _, _, starting in sparse], axis=0)
    others = _single_starts(candidates, table, rest)
    cost = len(sparse) + limits.column_cost * len(others)
    return sparse + others if cost < limits.column_cost * len(single) else single


def _single_starts(candidates: Candidates, table: Table, which: Flags) -> list[Start]:
    """Single columns for some of the candidates."""
    columns = np.full(len(which), -1)
    columns[which] = _start_columns(cands.chosen(candidates, which), table)
    return [
        (table.column_index(column), (column,), columns == column)
        for column in np.unique(columns[which]).tolist()
    ]


def _by_selectivity(table: Table) -> tuple[int, ...]:
    values = table.effective
    return tuple(sorted(range(len(values)), key=lambda column: -values[column]))


def representatives(candidates: Candidates, rows: int, tasks: int, prefix: str) -> list[Survey]:
    """All candidates for each of several parts of the rows; where the rows are too few for that,
    the candidates dealt out to several plans."""
    count, limits = len(candidates.lhs), thresholds.current
    if not count:
        return []
    worth = min(tasks, -(-rows * count // limits.survey))
    parts = min(worth, rows // limits.surveyed_rows)
    if parts > 1:
        return [Survey(candidates, parts, prefix)]
    return [Survey(dealt) for dealt in _dealt(candidates, max(1, worth))]


def merges(
    candidates: Candidates, surveys: Iterable[SurveyedRows], tasks: int
) -> list[SurveyMerge]:
    """Plans for those candidates whose rows were kept, dealt out to tasks."""
    plans = []
    for survey in surveys:
        at = survey.places(candidates)
        for dealt in _dealt(cands.chosen(candidates, at >= 0), tasks):
            places = tuple(survey.places(dealt).tolist())
            plans.append(SurveyMerge(dealt, places, survey.files))
        candidates = cands.chosen(candidates, at < 0)
    return plans


def _dealt(candidates: Candidates, tasks: int) -> list[Candidates]:
    count = len(candidates.lhs)
    task = np.arange(count) % tasks
    return [cands.chosen(candidates, task == t) for t in range(min(tasks, count))]


def _start_columns(candidates: Candidates, table: Table) -> NDArray[np.int64]:
    """The column that each candidate's search starts from: a selective one, sorted already where
    possible, and few of them."""
    values = table.effective
    lhs = _flags(candidates, table)
    starts = np.zeros(len(values), np.bool_)
    for column in _sorted_columns(table):
        with_column = lhs[lhs[:, column]]
        starts[column] = (values[column] >= indexes.best(with_column, values) / 8).any()
    starts[indexes.cover(lhs[~lhs[:, starts].any(axis=1)], values)] = True
    weights = np.where(lhs & starts, np.maximum(values, 1.0), 0.0)
    out: NDArray[np.int64] = weights.argmax(axis=1)
    return out


def _sorted_columns(table: Table) -> set[int]:
    """Columns that are sorted in every segment."""
    names = [{*segment.indexes} for segment in table.segments]
    in_all = set.intersection(*names) if names else set()
    return {c for c in range(len(table.columns.names)) if table.column_index(c) in in_all}


def _flags(candidates: Candidates, table: Table) -> indexes.Sets:
    return bitsets.to_flags(candidates.lhs, len(table.distinct))
