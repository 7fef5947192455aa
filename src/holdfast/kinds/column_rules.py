"""Rules about single columns, which rows break one by one.

They are declared, and a profile does not look for them. A further kind of them is a folder with a
subclass of :class:`holdfast.kinds.base.Kind` and one of :class:`ColumnExaminer`, and a line in the
registry.
"""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING, Protocol, TypeVar

from holdfast.kinds.examine import Examiner
from holdfast.model.constraints import Constraint
from holdfast.model.options import Options
from holdfast.rules.form import Tables, columns_of

if TYPE_CHECKING:
    from holdfast.input.row_input import Columns
    from holdfast.rules.single_rows import SingleRows
    from holdfast.tasks.single_rows import RowRule


class ColumnRule(Constraint, Protocol):
    """A rule about one column of a table."""

    @property
    def table(self) -> str:
        """The table."""

    @property
    def column(self) -> str:
        """The column."""


C = TypeVar("C", bound=ColumnRule)


class ColumnExaminer(Examiner[C]):
    """What can be asked of a rule about one column."""

    @abstractmethod
    def row_rule(self, rule: C, columns: Columns) -> RowRule:
        """What a row must not be."""

    def checked(self, rule: C, tables: Tables) -> C:
        """There is such a column."""
        columns_of(rule.table, tables).position(rule.column, rule.table)
        return rule

    def form(self, rule: C, tables: Tables, options: Options) -> SingleRows:  # noqa: ARG002
        """Rows, one by one."""
        from holdfast.rules.single_rows import SingleRows

        return SingleRows(rule.table, self.row_rule(rule, tables[rule.table]))

    def cells(self, rule: C) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Its own."""
        return (), (rule.column,)
