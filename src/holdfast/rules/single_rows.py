"""Rules that a row breaks by itself: columns without nulls, comparisons of cells of one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from holdfast.kernels.arrays import I64
from holdfast.model.constraints import Constraint
from holdfast.model.expectations import Tally
from holdfast.model.explanation import Example, Removal, Violations
from holdfast.model.near import NearRule
from holdfast.rules.form import Clashes, RuleForm
from holdfast.rules.question import GROUP_ROWS, Question
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import RowChange, TableRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import single_rows as tasks
from holdfast.tasks.groups import ExampleLimits
from holdfast.tasks.single_rows import RowRule
from holdfast.values.tuples import TupleCounts


@dataclass(frozen=True)
class SingleRows(RuleForm):
    """Rows that break a rule by themselves."""

    table: str
    rule: RowRule | None  # None: no row can break it

    @classmethod
    def change(
        cls,
        run: Run,
        forms: Sequence[SingleRows],
        changes: Sequence[RowChange],
        before: Sequence[int | None],
    ) -> list[int | None]:
        """By the rows that came and went, in one job."""
        numbers = [number or 0 for number in before]
        calls: list[Call] = []
        owners: list[list[int]] = []
        for change in changes:
            of_table = {
                place: form.rule
                for place, form in enumerate(forms)
                if form.table == change.after.name and form.rule is not None
            }
            for rows in (change.arrived, change.departed) if of_table else ():
                calls += _tests(run, rows, tuple(of_table.values()), 0)
                owners += [[*of_table]] * (len(calls) - len(owners))
        for places, result in zip(owners, run_all(run.runner, calls), strict=True):
            for place, more in zip(places, result.arrays["number"].tolist(), strict=True):
                numbers[place] += more
        return [*numbers]

    def tally(
        self,
        counts: TupleCounts,  # noqa: ARG002
        violations: int | None,
        tables: Mapping[str, Table],
    ) -> Tally:
        """Of all rows."""
        return Tally(violations, violations, tables[self.table].rows, violations)

    def near(
        self,
        rule: Constraint,
        counts: TupleCounts,  # noqa: ARG002
        violations: int | None,
        tables: Mapping[str, Table],
    ) -> NearRule:
        """All rows that violate it would have to go."""
        return NearRule(rule, self.table, violations or 0, tables[self.table].rows)

    def measure(self, question: Question, limits: ExampleLimits) -> Violations:
        """All rows that violate it would have to go."""
        table = question.tables[self.table]
        number, ids = self._violating(question.run, TableRows.living(table), limits.rows)
        [rows] = question.rows(table, [ids])
        examples = (Example(number, rows),) if number else ()
        return Violations(
            number, of_rows=table.rows, removal=Removal(number, number), examples=examples
        )

    def error(self, question: Question) -> float:
        """The share of the rows."""
        rows = TableRows.living(question.tables[self.table])
        return self._violating(question.run, rows, 0)[0] / rows.count if rows.count else 0.0

    def witnesses(self, question: Question, most: int | None) -> I64:
        """Single rows."""
        rows = TableRows.living(question.tables[self.table])
        most = rows.count if most is None else most
        return self._violating(question.run, rows, most)[1][:, None]

    def groups(self, question: Question, violations: int | None) -> list[tuple[int, I64]]:
        """All in one: new rows, if any of them violate it."""
        table = question.tables[self.table]
        for rows in (question.new_rows(table), TableRows.living(table)):
            _, ids = self._violating(question.run, rows, GROUP_ROWS)
            if len(ids):
                return [(violations or 0, ids)]
        return []

    def taking_part(self, question: Question, rows: TableRows) -> Clashes:
        """Those that violate it, without any other."""
        _, ids = self._violating(question.run, rows, rows.count)
        return Clashes(ids, np.full(len(ids), -1))

    def _violating(self, run: Run, rows: TableRows, most: int) -> tuple[int, I64]:
        """How many rows violate it, and the ids of the first."""
        calls = [] if self.rule is None else _tests(run, rows, (self.rule,), most)
        results = [result.arrays for result in run_all(run.runner, calls)]
        ids = np.concatenate([np.empty(0, np.int64), *(arrays["ids"] for arrays in results)])
        return sum(int(arrays["number"][0]) for arrays in results), np.sort(ids)[:most]


def _tests(run: Run, rows: TableRows, rules: tuple[RowRule, ...], most: int) -> list[Call]:
    """Calls that test rows by rules, and give the ids of at most so many for each."""
    if not rows.count:
        return []
    table = rows.table
    view = table.view(run.store.path, run.options, rows.segments)
    schema = table.columns.schema
    return [
        (tasks.check_rows, tasks.RowTests(share, schema, rules, most, rows.later, rows.weight))
        for share in shares(view, run.runner.tasks)
    ]
