"""Inclusion dependencies of several columns, built level by level from those of fewer.

A candidate of k columns is tested only if every candidate with one column less holds. A test
compares sets of tuples; a tuple has a code, as a value has. For a refuted candidate the code of one
missing tuple is stored with the number of its rows, and the candidate is tested again only when a
batch removes the last of these from the left side, or adds the tuple to the right side. A candidate
that holds is tested with the rows that a batch adds to its left side and removes from its right
side. Tuples with a null on the left side are ignored.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.model import thresholds
from holdfast.model.inclusion_dependencies import EMPTY, HOLDS, REFUTED
from holdfast.model.limits import OutOfTime, Time
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import RowChange, TableRows
from holdfast.table.placement import shares
from holdfast.tasks import values as tasks
from holdfast.tasks.values import RowValues
from holdfast.values.counting import columns_of, counted, values_of

Side = tuple[str, tuple[int, ...]]
"""A table and some of its columns."""


@dataclass(frozen=True)
class Candidate:
    """Columns of one table that may be contained in as many of another, or of the same."""

    table: str
    columns: tuple[int, ...]  # ascending
    other: str
    others: tuple[int, ...]

    @property
    def left(self) -> Side:
        """The dependent side."""
        return self.table, self.columns

    @property
    def right(self) -> Side:
        """The referenced side."""
        return self.other, self.others

    def without(self, at: int) -> Candidate:
        """The candidate with one pair of columns left out."""
        return replace(
            self,
            columns=self.columns[:at] + self.columns[at + 1 :],
            others=self.others[:at] + self.others[at + 1 :],
        )


@dataclass(frozen=True)
class Verdict:
    """What is known about a candidate. If it is refuted, ``missing`` is the code of a tuple that
    the right side lacks, and ``rows`` how many rows of the left side have it."""

    status: int
    missing: tuple[int, int] = (0, 0)
    rows: int = 0


Verdicts = dict[Candidate, Verdict]


RowChanges = Mapping[str, RowChange]
"""What a batch did to each table that it changed."""


@dataclass(frozen=True)
class TupleSearch:
    """The run that tests candidates, and the rows of all tables as they are now."""

    run: Run
    tables: Mapping[str, TableRows]

    def tuples(self, rows: TableRows, sides: Iterable[tuple[int, Side]]) -> RowValues:
        """Rows as tuples: one attribute for each side, with its number."""
        attributes = [columns_of(number, rows, columns) for number, (_, columns) in sides]
        return values_of(self.run, rows, attributes)

    def living(self, side: Side) -> RowValues:
        """The tuples of the living rows of one side."""
        return self.tuples(self.tables[side[0]], [(0, side)])

    def shared(self, values: RowValues) -> list[RowValues]:
        """The tuples divided among tasks."""
        return [replace(values, view=s) for s in shares(values.view, self.run.runner.tasks)]


def all_verdicts(
    search: TupleSearch,
    unary: Iterable[Candidate],
    before: Verdicts,
    batch: RowChanges,
    most: int,
) -> tuple[Verdicts, int]:
    """The verdicts on all candidates of two to ``most`` columns, given the dependencies of one; and
    up to how many columns they are complete, which is less where the time of the run ends.

    ``before`` are those of the version before the batch; it is empty if there is no such version.
    """
    options = search.run.options
    verdicts: Verdicts = {}
    holding = set(unary)
    for arity in range(2, most + 1):
        try:
            candidates = list(_candidates(holding, arity, search.run.time))
            if not candidates:
                break
            search.run.progress("tuples", arity=arity, candidates=len(candidates))
            known = {one: before[one] for one in candidates if one in before}
            known = _still_known(search, known, batch)
            known |= _tested(search, [one for one in candidates if one not in known])
        except OutOfTime:
            return verdicts, arity - 1
        verdicts |= known
        wanted = {HOLDS, EMPTY} if options.empty_columns else {HOLDS}
        holding = {one for one in candidates if verdicts[one].status in wanted}
    return verdicts, most


def _candidates(holding: set[Candidate], arity: int, time: Time) -> Iterator[Candidate]:
    """The candidates of which every part with one column less holds."""
    groups: dict[tuple[Side, Side], list[Candidate]] = {}
    for candidate in holding:
        first = (candidate.table, candidate.columns[:-1]), (candidate.other, candidate.others[:-1])
        groups.setdefault(first, []).append(candidate)
    for group in groups.values():
        group.sort(key=lambda candidate: (candidate.columns, candidate.others))
        for one, two in combinations(group, 2):
            time.look()
            if one.columns[-1] == two.columns[-1] or one.others[-1] == two.others[-1]:
                continue
            joined = replace(
                one,
                columns=(*one.columns, two.columns[-1]),
                others=(*one.others, two.others[-1]),
            )
            if arity == 2 or all(joined.without(k) in holding for k in range(arity)):
                yield joined


# Tests


def _tested(search: TupleSearch, candidates: list[Candidate]) -> Verdicts:
    """Verdicts from a full comparison of the sets of tuples."""
    if not candidates:
        return {}
    sides = sorted({side for one in candidates for side in (one.left, one.right)})
    number = {side: k for k, side in enumerate(sides)}
    rows = [
        search.tuples(
            search.tables[table], [(number[side], side) for side in sides if side[0] == table]
        )
        for table in dict.fromkeys(side[0] for side in sides)
    ]
    size = sum(s.rows for values in rows for s in values.view.segments) * len(sides)
    values = counted(search.run, rows, size)
    left = tuple(number[candidate.left] for candidate in candidates)
    right = tuple(number[candidate.right] for candidate in candidates)
    root = search.run.store.path
    calls: list[Call] = [
        (
            tasks.trial,
            tasks.ContainmentTests(root, low, high, values.runs, values.rows, left, right),
        )
        for low, high in values.ranges
    ]
    seen = np.zeros(len(candidates), np.bool_)
    refuted: dict[int, Verdict] = {}
    for task_result in run_all(search.run.runner, calls):
        seen |= task_result.arrays["seen"]
        for k in np.flatnonzero(task_result.arrays["rows"]).tolist():
            refuted[k] = _refuted(task_result.arrays["codes"], task_result.arrays["rows"], k)
    return {
        candidate: refuted.get(k, Verdict(HOLDS if seen[k] else EMPTY))
        for k, candidate in enumerate(candidates)
    }


def _refuted(codes: U64, rows: I64, at: int) -> Verdict:
    high, low = codes[at].tolist()
    return Verdict(REFUTED, (high, low), int(rows[at]))


def _still_known(search: TupleSearch, known: Verdicts, batch: RowChanges) -> Verdicts:
    """The verdicts that look-ups can keep or update after a batch. All other candidates have to be
    tested."""
    most = thresholds.current.looked_up_rows
    many = {name for name, c in batch.items() if c.arrived.count + c.departed.count > most}
    filled = {table for table, change in batch.items() if change.arrived.count}
    verdicts = {
        candidate: verdict
        for candidate, verdict in known.items()
        if not many & {candidate.table, candidate.other}
        and not (verdict.status == EMPTY and candidate.table in filled)
    }
    answers = _answers(
        search,
        [
            (candidate, what, lookup)
            for candidate, verdict in verdicts.items()
            for what, lookup in _lookups(search, candidate, verdict, batch)
        ],
    )
    doubtful: dict[Candidate, U64] = {}
    for candidate, answer in answers.items():
        number = {what: int(rows.sum()) for what, (_, rows) in answer.items()}
        if verdicts[candidate].status == REFUTED:
            verdict = verdicts[candidate]
            left = verdict.rows + number.get("come", 0) - number.get("gone", 0)
            verdicts[candidate] = replace(verdict, rows=0 if number.get("supplied") else left)
            continue
        if number.get("left") == 0:
            verdicts[candidate] = Verdict(EMPTY)
        lost = [codes[rows == 0] for what, (codes, rows) in answer.items() if what != "left"]
        if any(map(len, lost)):
            doubtful[candidate] = np.concatenate(lost)
    verdicts |= _missed(search, doubtful)
    return {candidate: v for candidate, v in verdicts.items() if v.status != REFUTED or v.rows}


def _missed(search: TupleSearch, doubtful: Mapping[Candidate, U64]) -> Verdicts:
    """Verdicts on candidates whose right side now lacks some tuples: refuted if the left side has
    one."""
    lookups = [
        (candidate, "left", tasks.CountTuples((), codes, (share,)))
        for candidate, codes in doubtful.items()
        for share in search.shared(search.living(candidate.left))
    ]
    verdicts = {}
    for candidate, answer in _answers(search, lookups).items():
        codes, rows = answer["left"]
        if rows.any():
            verdicts[candidate] = _refuted(codes, rows, int(rows.argmax()))
    return verdicts


Answers = dict[Candidate, dict[str, tuple[U64, I64]]]
"""What was looked up: tuples, and how many rows have each."""


def _answers(
    search: TupleSearch, lookups: list[tuple[Candidate, str, tasks.CountTuples]]
) -> Answers:
    calls: list[Call] = [(tasks.count_tuples, lookup) for _, _, lookup in lookups]
    results = search.run.runner.run(calls) if calls else []
    answers: Answers = {}
    for (candidate, what, _), result in zip(lookups, results, strict=True):
        for task_result in result:
            answer = answers.setdefault(candidate, {})
            codes, rows = task_result.arrays["codes"], task_result.arrays["rows"]
            answer[what] = (codes, rows + answer[what][1]) if what in answer else (codes, rows)
    return answers


def _lookups(
    search: TupleSearch, candidate: Candidate, verdict: Verdict, batch: RowChanges
) -> Iterator[tuple[str, tasks.CountTuples]]:
    """What to look up to see how a batch changes a verdict."""
    none = np.empty((0, 2), np.uint64)
    left, right = batch.get(candidate.table), batch.get(candidate.other)
    if verdict.status == REFUTED:
        code = np.array([verdict.missing], np.uint64)
        for what, rows, side in (
            ("gone", left and left.departed, candidate.left),
            ("come", left and left.arrived, candidate.left),
            ("supplied", right and right.arrived, candidate.right),
        ):
            if rows and rows.count:
                yield what, tasks.CountTuples((), code, (search.tuples(rows, [(0, side)]),))
    elif verdict.status == HOLDS:
        if left and left.departed.count:
            dependent = search.living(candidate.left)
            yield "left", tasks.CountTuples((), none, (dependent,))
        wanted = []
        if left and left.arrived.count:
            wanted.append(("arrived", search.tuples(left.arrived, [(0, candidate.left)])))
        if right and right.departed.count:
            wanted.append(("departed", search.tuples(right.departed, [(0, candidate.right)])))
        referenced = search.living(candidate.right)
        for what, tuples in wanted:
            for share in search.shared(referenced) or [referenced]:
                yield what, tasks.CountTuples((tuples,), none, (share,))
