"""One column that is to have a value in every row."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from holdfast.kinds.column_rules import ColumnExaminer
from holdfast.model.constraints import NotNull
from holdfast.rules.version import Version

if TYPE_CHECKING:
    from holdfast.input.row_input import Columns
    from holdfast.tasks.single_rows import RowRule


class NotNullExaminer(ColumnExaminer[NotNull]):
    """Columns without nulls."""

    kind = "not_null"

    def row_rule(self, rule: NotNull, columns: Columns) -> RowRule:
        """Null there."""
        from holdfast.tasks.single_rows import IsNull

        return IsNull(columns.position(rule.column, rule.table))

    def source(self, version: Version, rule: NotNull) -> Any:
        """The nulls that are counted."""
        return self._nulls(version, rule)

    def held(self, version: Version, rule: NotNull) -> bool | None:
        """Whether there were none."""
        nulls = self._nulls(version, rule)
        return None if nulls is None else not nulls

    def _nulls(self, version: Version, rule: NotNull) -> int | None:
        record = version.commit.table(rule.table)
        if not record.facts:
            return None
        return record.facts[record.columns.names.index(rule.column)].nulls
