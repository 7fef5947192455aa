"""Rows that agree on some columns: what keys and functional dependencies are judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.evidence import counting
from holdfast.evidence.comparison import completion
from holdfast.evidence.scope import Scope
from holdfast.input.row_input import Columns
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.explained import FRACTION
from holdfast.model.comparisons import EQUALITY, Comparison, Space, agreements
from holdfast.model.constraints import Constraint
from holdfast.model.errors import InputError
from holdfast.model.expectations import Tally
from holdfast.model.explanation import Removal, Violations
from holdfast.model.near import GroupSums, NearRule, strength
from holdfast.model.options import Options
from holdfast.model.tuples import TupleSide
from holdfast.rules import near
from holdfast.rules.form import Clashes, RuleForm, in_order
from holdfast.rules.question import GROUP_ROWS, Question
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import TableRows
from holdfast.table.exchange import exchanged
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import groups as tasks
from holdfast.tasks import tuples as tuple_tasks
from holdfast.tasks.groups import ExampleLimits
from holdfast.values.tuples import (
    NO_CODES,
    SHOWN,
    RowOfCode,
    Sides,
    TupleCounts,
    in_view,
    involved,
    rows_with,
    tuples_of,
)


@dataclass(frozen=True)
class AgreeingTuples(RuleForm):
    """Pairs of rows that agree on a side and, where there is another, not on that."""

    table: str
    lhs: TupleSide
    both: TupleSide | None = None  # the left side together with the right one
    ordered: bool = False  # a pair counts twice, once for each order of its rows

    @staticmethod
    def of(
        table: str,
        lhs: tuple[str, ...],
        rhs: str | None,
        columns: Columns,
        options: Options,
        ordered: bool = False,
    ) -> AgreeingTuples:
        """Of a key, which has no right side, or of a functional dependency."""
        nulls = options.nulls == "equal"
        side = TupleSide(table, in_order(lhs, table, columns), nulls)
        if rhs is None:
            return AgreeingTuples(table, side, None, ordered)
        both = TupleSide(table, in_order((*lhs, rhs), table, columns), nulls)
        return AgreeingTuples(table, side, both, ordered)

    def grouped(self) -> AgreeingTuples:
        """The same, with its tuples counted so that removal and strength follow (:meth:`near`)."""
        lhs = replace(self.lhs, grouped=True)
        if self._rhs is None or not lhs.columns:
            return replace(self, lhs=lhs)
        return replace(self, lhs=lhs, both=replace(lhs, rhs=self._rhs))

    @property
    def _rhs_alone(self) -> TupleSide | None:
        """The right side as a side of its own, which strength compares with."""
        if self.both is None or self.both.rhs is None:
            return None
        return TupleSide(self.table, (self.both.rhs,), self.lhs.nulls, grouped=True)

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """What is counted; all rows agree on no columns."""
        sides = (self.lhs, self.both, self._rhs_alone)
        return tuple(side for side in sides if side is not None and side.columns)

    @property
    def _orders(self) -> int:
        """In how many orders a pair of rows counts."""
        return 2 if self.ordered else 1

    @property
    def _rhs(self) -> str | None:
        """The right side of a dependency, which may be on the left, too."""
        if self.both is None:
            return None
        if self.both.rhs is not None:
            return self.both.rhs
        differing = (name for name in self.both.columns if name not in self.lhs.columns)
        return next(differing, self.both.columns[0])

    @property
    def _columns(self) -> tuple[str, ...]:
        """The columns of a dependency, the left ones first."""
        if self.both is None:
            return self.lhs.columns
        return (*self.lhs.columns, self.both.rhs) if self.both.rhs else self.both.columns

    def tally(
        self,
        counts: TupleCounts,
        violations: int | None,  # noqa: ARG002
        tables: Mapping[str, Table],
    ) -> Tally:
        """Of all pairs."""
        every = _pairs(tables[self.table])
        agreeing = counts.side(self.lhs).pairs if self.lhs.columns else every
        same = 0 if self.both is None else counts.side(self.both).pairs
        number = self._orders * (agreeing - same)
        return Tally(number, number, self._orders * every, self._removal(counts, number, tables))

    def _removal(
        self, counts: TupleCounts, violations: int, tables: Mapping[str, Table]
    ) -> int | None:
        """Of a key all but one row of each group; of a dependency all without the most frequent
        value of theirs, which only a grouped one tells."""
        if not violations:
            return 0
        if not self.lhs.columns:
            return tables[self.table].rows - 1 if self.both is None else None
        lhs = counts.side(self.lhs)
        if self.both is None:
            return lhs.rows - lhs.distinct
        return None if self.both.rhs is None else lhs.rows - counts.side(self.both).majority

    def with_removal(self, rule: str) -> RuleForm:
        """Of a dependency, which groups rows, a grouped one has it."""
        if self.both is None:
            return self
        if not self.lhs.columns:
            raise InputError(
                f"{rule}: how many rows would have to go is not kept where nothing is on the left; "
                "give --max-error in place of --max-rows"
            )
        return self.grouped()

    def near(
        self,
        rule: Constraint,
        counts: TupleCounts,
        violations: int | None,  # noqa: ARG002
        tables: Mapping[str, Table],
    ) -> NearRule:
        """How far a grouped dependency is from holding: removal and strength."""
        assert self.both is not None
        lhs, both, table = counts.side(self.lhs), counts.side(self.both), tables[self.table]
        # Each row without a tuple has one of its own.
        alone = table.rows - lhs.rows
        sums = GroupSums(lhs.distinct + alone, both.explained + alone, both.fraction)
        removal = table.rows - both.majority - alone
        return NearRule(rule, self.table, removal, table.rows, self.strength(sums, counts, table))

    def strength(self, sums: GroupSums, counts: TupleCounts, table: Table) -> float:
        """How much of the right side groups explain beyond chance."""
        assert self._rhs_alone is not None
        squares = 2 * counts.side(self._rhs_alone).pairs + table.rows
        explained = sums.explained + sums.fraction / (1 << FRACTION)
        return strength(table.rows, sums.groups, explained, squares)

    def measured(self, rule: Constraint, question: Question) -> NearRule:
        """The same, counted in all rows."""
        return near.measured(question.run, question.tables[self.table], rule)

    def measure(self, question: Question, limits: ExampleLimits) -> Violations:
        """All rows of a group with different values on the right; those without its most frequent
        one would have to go. Of a key all rows that share it, and all but one of each group."""
        table = question.tables[self.table]
        places = table.columns.names.index
        left = tuple(map(places, self.lhs.columns))
        right = None if self._rhs is None else places(self._rhs)
        results = _grouped(question, table, left, right, limits)
        groups, rows, pairs, agreeing, removed = (
            sum(result.facts[name] for result in results)
            for name in ("groups", "rows", "pairs", "agreeing", "removed")
        )
        return Violations(
            rows,
            groups,
            self._orders * pairs,
            self._orders * _pairs(table),
            Removal(removed, removed),
            question.examples(table, results, limits),
            None if self.both is None else agreeing,
        )

    def tested(self, question: Question, measured: Violations) -> int | None:
        """Of a key the pairs that agree on all but one of its columns."""
        if self.both is not None or self.ordered or not self.lhs.columns:
            return measured.tested
        table = question.tables[self.table]
        places = tuple(map(table.columns.names.index, self.lhs.columns))
        fewer = [tuple(p for p in places if p != left_out) for left_out in places]
        return sum(self._agreeing(question, fewer))

    def error(self, question: Question) -> float:
        """The share of the pairs."""
        table = question.tables[self.table]
        if table.rows < 2:
            return 0.0
        names = table.columns.names
        sides = [self.lhs.columns, *([] if self.both is None else [self._columns])]
        agreeing = self._agreeing(question, [tuple(map(names.index, columns)) for columns in sides])
        return (agreeing[0] - sum(agreeing[1:])) / _pairs(table)

    def _agreeing(self, question: Question, sets: Sequence[tuple[int, ...]]) -> Sequence[int]:
        """How many pairs of rows agree on each of some sets of columns."""
        run = question.run
        view = question.tables[self.table].view(run.store.path, run.options)
        return counting.agreeing(run.runner, view, tuple(sets), run.destination.prefix)

    def witnesses(self, question: Question, most: int | None) -> I64:
        """Pairs of rows."""
        table = question.tables[self.table]
        columns = self._columns
        if table.rows < 2 or (self.both is not None and self._rhs in self.lhs.columns):
            return np.empty((0, 2), np.int64)
        names = table.columns.names
        compared = tuple(Comparison(c, c, EQUALITY) for c in map(names.index, columns))
        # A set of no atoms is satisfied by every pair, whatever is compared.
        space = Space("rule", len(names), compared) if compared else agreements(len(names))
        atoms = tuple(2 * k + (name not in self.lhs.columns) for k, name in enumerate(columns))
        most = _pairs(table) if most is None else most
        return completion.violating(Scope.of(question.run, table, space), atoms, most)

    def groups(self, question: Question, violations: int | None) -> list[tuple[int, I64]]:  # noqa: ARG002
        """Rows that share a key, or agree on the left side of a dependency, one for each value on
        the right."""
        run, table = question.run, question.tables[self.table]
        _, codes, _ = self._involved(question, question.new_rows(table))
        if not len(codes):
            codes = self._shared(question, table)
        codes = np.unique(codes, axis=0)[:SHOWN]
        groups = rows_with(run, table, self._counted_sides(question), codes, GROUP_ROWS)
        return [(number, _one_of_each(question, table, rows)) for number, rows in groups if number]

    def taking_part(self, question: Question, rows: TableRows) -> Clashes:
        """Those that share a tuple with others which differ, with one of those each."""
        ids, codes, others = self._involved(question, rows)
        if not len(ids):
            return Clashes(ids, ids)
        wanted, at = np.unique(codes, axis=0, return_inverse=True)
        # Of rows that differ, two are enough: one of them differs from any row.
        table, sides = question.tables[self.table], self._counted_sides(question)
        candidates = [rows for _, rows in rows_with(question.run, table, sides, wanted, 2)]
        clashes = [
            next(
                (
                    other
                    for other, code in candidates[group]
                    if other != id_ and (self.both is None or code != tuple(own_code))
                ),
                -1,
            )
            for id_, group, own_code in zip(
                ids.tolist(), at.reshape(-1).tolist(), others.tolist(), strict=True
            )
        ]
        return Clashes(ids, np.array(clashes, np.int64))

    def _involved(self, question: Question, rows: TableRows) -> tuple[I64, U64, U64]:
        """The ids of rows that agree with others on one side and not on the other, and their codes
        in both: by the counted tuples, at the cost of these rows."""
        run, table = question.run, question.tables[self.table]
        asked = []
        lhs, both = self._counted_sides(question)
        if rows.count:
            view = table.view(run.store.path, run.options, rows.segments)
            asked = [
                tuple_tasks.AgreeingRows(
                    share,
                    in_view(run, rows, lhs, share),
                    in_view(run, rows, both, share),
                    table.rows,
                )
                for share in shares(view, run.runner.tasks)
            ]
        return involved(run, question.counts, asked)

    def _shared(self, question: Question, table: Table) -> U64:
        """Codes of tuples of the left side that rows share which do not agree on the right."""
        if not self.lhs.columns:
            return np.zeros((1, 2), np.uint64)  # that all rows have
        side = question.counts.side(self.lhs)
        codes = question.counts.shared.get(side.number, NO_CODES)
        if self.both is None and len(codes):
            return codes
        # Not every tuple that rows share has different right sides; and those of a side that was
        # counted before are not at hand.
        pairs = self.witnesses(question, SHOWN)
        rows = TableRows.at(table, pairs[:, 0])
        tuples = tuples_of(question.run, rows, [side]).codes(0) if len(pairs) else []
        return np.concatenate([NO_CODES, *(codes for _, _, codes in tuples)])

    def _counted_sides(self, question: Question) -> Sides:
        counts = question.counts
        lhs = counts.side(self.lhs) if self.lhs.columns else None
        return lhs, None if self.both is None else counts.side(self.both)


def _pairs(table: Table) -> int:
    return table.rows * (table.rows - 1) // 2


def _grouped(
    question: Question,
    table: Table,
    left: tuple[int, ...],
    right: int | None,
    limits: ExampleLimits,
) -> list[TaskResult]:
    """What tasks say of groups of rows: one where there are few of them, else one for each range
    of hashes."""
    run = question.run
    view = table.view(run.store.path, run.options)
    whole = tasks.Grouped(view, left, right, limits)
    count = parts(run.runner, view)
    if count == 1:
        return run_all(run.runner, [(tasks.grouped, whole)])
    writing: list[Call] = [
        (tasks.grouped, replace(whole, view=share, prefix=run.destination.prefix))
        for share in shares(view, count)
    ]
    with exchanged(run.runner, view.root, writing) as written:
        files = tuple(file for names in written for file in names)
        ranges: list[Call] = [
            (tasks.grouped_in, tasks.GroupedIn(view.root, files, right, part, count, limits))
            for part in range(count)
        ]
        return run_all(run.runner, ranges)


def _one_of_each(question: Question, table: Table, rows: Sequence[RowOfCode]) -> I64:
    """One row of each kind that differs from the others, new ones first; and of those that were
    there at least one, if they have their own."""
    code_of = dict(rows)
    firsts: dict[tuple[int, int], int] = {}
    for id_ in question.new_first(table, code_of):
        firsts.setdefault(code_of[id_], id_)
    ids = np.array([*firsts.values()], np.int64)
    number_new = int(question.are_new(table, ids).sum())
    if number_new >= GROUP_ROWS:
        last = GROUP_ROWS - 1
        ids = np.concatenate([ids[:last], ids[number_new:], ids[last:]])
    return ids[:GROUP_ROWS]
