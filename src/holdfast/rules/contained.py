"""Tuples that occur in other columns: what inclusion dependencies are judged by."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.model.commits import ValueRun
from holdfast.model.constraints import Constraint
from holdfast.model.expectations import Tally
from holdfast.model.explanation import Removal, Violations
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.near import NearRule
from holdfast.model.tuples import Reference, TupleSide
from holdfast.rules.form import Clashes, RuleForm
from holdfast.rules.question import GROUP_ROWS, Question
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import RowChange, TableRows
from holdfast.table.exchange import exchanged
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import groups as tasks
from holdfast.tasks import tuples as tuple_tasks
from holdfast.tasks import values
from holdfast.tasks.groups import ExampleLimits
from holdfast.tasks.values import RowValues
from holdfast.values.counting import columns_of, ranges, values_of
from holdfast.values.tuples import NO_CODES, SHOWN, TupleCounts, involved, rows_with, tuples_of


@dataclass(frozen=True)
class ContainedTuples(Reference, RuleForm):
    """Tuples of the left side that the right side lacks."""

    @property
    def table(self) -> str:  # type: ignore[override]  # a field of the other forms
        """That of the left side."""
        return self.left.table

    def tally(
        self,
        counts: TupleCounts,
        violations: int | None,  # noqa: ARG002
        tables: Mapping[str, Table],  # noqa: ARG002
    ) -> Tally:
        """Rows that lack a match; of the distinct values, those that are missing."""
        left, contained = counts.side(self.left), counts.reference(self.sides)
        missing = left.rows - contained.rows
        return Tally(missing, left.distinct - contained.distinct, left.distinct, missing)

    def near(
        self,
        rule: Constraint,
        counts: TupleCounts,
        violations: int | None,  # noqa: ARG002
        tables: Mapping[str, Table],
    ) -> NearRule:
        """How far it is from holding: in values, and in the rows that have them."""
        left, contained = counts.side(self.left), counts.reference(self.sides)
        return NearRule(
            rule, self.table, left.rows - contained.rows, tables[self.table].rows,
            values=left.distinct - contained.distinct, of_values=left.distinct,
        )  # fmt: skip

    def measured(self, rule: Constraint, question: Question) -> NearRule:
        """The same, counted in all rows."""
        [results] = missing_tuples(question, [self], ExampleLimits(0, 0))
        total, missing, rows = (
            sum(result.facts[name] for result in results) for name in ("values", "missing", "rows")
        )
        table = question.tables[self.table]
        return NearRule(rule, self.table, rows, table.rows, values=missing, of_values=total)

    def measure(self, question: Question, limits: ExampleLimits) -> Violations:
        """All rows whose values are not on the right would have to go."""
        [results] = missing_tuples(question, [self], limits)
        total, every, missing, rows = (
            sum(result.facts[name] for result in results)
            for name in ("values", "all_rows", "missing", "rows")
        )
        return Violations(
            rows,
            missing,
            removal=Removal(rows, rows),
            examples=question.examples(question.tables[self.table], results, limits),
            tested=every,
            coverage=(total - missing) / total if total else 1.0,
        )

    def error(self, question: Question) -> float:
        """The share of the distinct values."""
        return 1 - (self.measure(question, ExampleLimits(0, 0)).coverage or 0.0)

    def witnesses(self, question: Question, most: int | None) -> I64:
        """A row for each value that is missing, by the counted values of the profile; the rule has
        one column on each side."""
        state = question.values
        assert state is not None
        dependent, referenced = (
            state.attributes.index(Attribute(side.table, side.columns[0])) for side in self.sides
        )
        codes = _missing_codes(question, state.runs, (dependent, referenced), most)
        if not len(codes):
            return np.empty((0, 1), np.int64)
        tuples = self._tuples(question, self.left)
        calls: list[Call] = [
            (values.find, values.FindValues(replace(tuples, view=share), codes))
            for share in shares(tuples.view, question.run.runner.tasks)
        ]
        ids = np.full(len(codes), -1, np.int64)
        for result in run_all(question.run.runner, calls):
            ids[result.arrays["codes"]] = result.arrays["ids"]
        return ids[ids >= 0][:, None]

    def groups(self, question: Question, violations: int | None) -> list[tuple[int, I64]]:
        """All in one: new rows first, then one of each tuple."""
        run, table = question.run, question.tables[self.table]
        left, right = question.counts.numbers(self.sides)
        _, codes = self._orphans(question, question.new_rows(table))
        if not len(codes):
            # Those that a batch brought or took, if any.
            codes = question.counts.lacking.get((left, right), NO_CODES)
        if not len(codes):
            codes = _missing_codes(question, question.counts.record.runs, (left, right), SHOWN)
        candidates: list[tuple[bool, int, int]] = []
        side = question.counts.side(self.left)
        codes = np.unique(codes, axis=0)[:SHOWN]
        for _, rows in rows_with(run, table, (side, None), codes, GROUP_ROWS):
            ids = question.new_first(table, [id_ for id_, _ in rows])
            is_new = question.are_new(table, np.array(ids, np.int64)).tolist()
            candidates += [(not flag, turn, ids[turn]) for turn, flag in enumerate(is_new)]
        first = [id_ for *_, id_ in sorted(candidates)[:GROUP_ROWS]]
        return [(violations or 0, np.array(first, np.int64))]

    def taking_part(self, question: Question, rows: TableRows) -> Clashes:
        """Those without a match."""
        ids, _ = self._orphans(question, rows)
        return Clashes(ids, np.full(len(ids), -1))

    def taken_away(self, question: Question, change: RowChange) -> Clashes | None:
        """Rows of the right side that were the last with their tuple, and a row of the left side
        that needs it."""
        if self.right.table != change.after.name or not change.departed.count:
            return None
        run, counts = question.run, question.counts
        left, right = (counts.side(side) for side in self.sides)
        gone = tuples_of(run, change.departed, [right])
        root, runs = run.store.path, counts.record.runs
        calls: list[Call] = [
            (
                tuple_tasks.needed_rows,
                tuple_tasks.NeededRows(
                    root, runs, replace(gone, view=view), right.number, left.number
                ),
            )
            for view in shares(gone.view, run.runner.tasks)
        ]
        results = run_all(run.runner, calls)
        ids, codes = (
            np.concatenate([result.arrays[name] for result in results]) for name in ("ids", "codes")
        )
        if not len(ids):
            return None
        wanted, at = np.unique(codes, axis=0, return_inverse=True)
        referring = rows_with(run, question.tables[self.table], (left, None), wanted, 1)
        first = np.array([rows[0][0] for _, rows in referring], np.int64)
        return Clashes(ids, first[at.reshape(-1)])

    def _orphans(self, question: Question, rows: TableRows) -> tuple[I64, U64]:
        """The ids of rows of the left side whose tuples the right side lacks, and their codes: by
        the counted tuples, at the cost of these rows."""
        if not rows.count:
            return np.empty(0, np.int64), NO_CODES
        left, right = (question.counts.side(side) for side in self.sides)
        tuples = tuples_of(question.run, rows, [left])
        asked = [
            tuple_tasks.ReferringRows(replace(tuples, view=view), right.number)
            for view in shares(tuples.view, question.run.runner.tasks)
        ]
        return involved(question.run, question.counts, asked)[:2]

    def _tuples(self, question: Question, side: TupleSide) -> RowValues:
        """All rows of a side as tuples."""
        rows = TableRows.living(question.tables[side.table])
        places = tuple(map(rows.table.columns.names.index, side.columns))
        return values_of(question.run, rows, [columns_of(0, rows, places)], side.nulls)


def _missing_codes(
    question: Question, runs: tuple[ValueRun, ...], pair: tuple[int, int], most: int | None
) -> U64:
    """Codes of values that the first of two attributes has in counted runs, and the second lacks,
    in order."""
    run = question.run
    count = max([1, *(len(each.parts) for each in runs)])
    calls: list[Call] = [
        (values.missing, values.MissingValues(run.store.path, low, high, runs, *pair, most))
        for low, high in ranges(count)
    ]
    codes = [result.arrays["codes"] for result in run_all(run.runner, calls)]
    return np.concatenate(codes)[:most]


def missing_tuples(
    question: Question, forms: Sequence[ContainedTuples], limits: ExampleLimits
) -> list[list[TaskResult]]:
    """What tasks say of the tuples that several right sides lack: one where there are few rows,
    else one for each range of codes, which are written first."""
    runner, root = question.run.runner, question.run.store.path
    prefix = question.run.destination.prefix
    sides = [tuple(form._tuples(question, side) for side in form.sides) for form in forms]
    counts = [max(parts(runner, tuples.view) for tuples in both) for both in sides]
    calls: list[list[Call]] = []
    writing: list[Call] = [
        (tasks.write_codes, tasks.WriteCodes(replace(tuples, view=share), prefix))
        for both, count in zip(sides, counts, strict=True)
        for tuples in both
        for share in shares(tuples.view, count)
        if count > 1
    ]
    with exchanged(runner, root, writing) as written:
        files = iter([file for names in written for file in names])
        for both, count in zip(sides, counts, strict=True):
            if count == 1:
                dependent, referenced = both
                calls.append([(tasks.orphans, tasks.Orphans(dependent, referenced, limits))])
                continue
            left, right = (
                tuple(next(files) for _ in shares(tuples.view, count)) for tuples in both
            )
            calls.append(
                [
                    (tasks.orphans_in, tasks.OrphansIn(root, left, right, part, count, limits))
                    for part in range(count)
                ]
            )
        results = iter(runner.run([call for of_form in calls for call in of_form]))
        return [[result for _ in of_form for result in next(results)] for of_form in calls]
