"""One column that is to have a value in every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.families.examine import Examiner, Version
from holdfast.input.row_input import Columns
from holdfast.model.constraints import NotNull
from holdfast.model.explanation import Example, Removal, Violations

if TYPE_CHECKING:
    from holdfast.families.question import Question
    from holdfast.tasks.runner import Call


class NotNullExaminer(Examiner[NotNull]):
    """Columns without nulls."""

    kind = "not_null"

    def expected(self, version: Version, rule: NotNull) -> NotNull:
        """There is such a column."""
        columns = Columns.stored(version.commit.table(rule.table).columns)
        columns.position(rule.column, rule.table)
        return rule

    def tables(self, rule: NotNull) -> tuple[str, ...]:
        """Its own."""
        return (rule.table,)

    def cells(self, rule: NotNull) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The null."""
        return (), (rule.column,)

    def source(self, version: Version, rule: NotNull) -> Any:
        """The nulls that are counted."""
        return self._nulls(version, rule)

    def held(self, version: Version, rule: NotNull) -> bool | None:
        """Whether there were none."""
        number = self._nulls(version, rule)
        return None if number is None else not number

    def _nulls(self, version: Version, rule: NotNull) -> int | None:
        record = version.commit.table(rule.table)
        if not record.facts:
            return None
        return record.facts[record.columns.names.index(rule.column)].nulls

    def violations(self, question: Question, rule: NotNull) -> Violations:
        """The rows that have a null there: all of them would have to go."""
        import numpy as np

        from holdfast.table.placement import shares
        from holdfast.tasks import examine as tasks

        table, run = question.table(rule.table), question.run
        column = table.columns.position(rule.column, rule.table)
        view = table.view(run.store.path, run.options)
        calls: list[Call] = [
            (tasks.nulls, tasks.Nulls(share, column, question.shown))
            for share in shares(view, run.runner.tasks)
        ]
        results = question.asked(calls)
        rows = sum(each.facts["rows"] for each in results)
        none = np.empty(0, np.int64)
        ids = np.sort(np.concatenate([none, *(each.arrays["ids"] for each in results)]))
        [shown] = question.rows(table, [ids[: question.shown.rows]])
        examples = (Example(rows, shown),) if rows else ()
        return Violations(rows, None, removal=Removal(rows, rows), examples=examples)
