"""One column that is to have a value in every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.input.row_input import Columns
from holdfast.kinds.examine import Examiner, Version
from holdfast.model.constraints import NotNull
from holdfast.model.explanation import Violations

if TYPE_CHECKING:
    from holdfast.kinds.question import Question


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
        from holdfast.kinds import single_rows
        from holdfast.tasks.tuples import RowRule

        column = question.table(rule.table).columns.position(rule.column, rule.table)
        return single_rows.violations(question, rule.table, RowRule(column))
