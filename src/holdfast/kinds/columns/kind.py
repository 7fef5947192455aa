"""Rules about the values of single columns as a kind of constraint. They are written down, and
nobody asks for the kind by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.kinds.base import Kind
from holdfast.model.column_values import Bounds, Domain, Pattern, ValueRule

if TYPE_CHECKING:
    from holdfast.kinds.columns.examine import ValueExaminer
    from holdfast.kinds.columns.export import ValueExporter


class ColumnRules(Kind):
    """Domains, bounds and patterns of columns."""

    name = "columns"
    field = "column_rules"
    nouns = ("rule of a column", "rules of columns")
    classes = (Domain, Bounds, Pattern)

    def of_rows(self, rule: ValueRule) -> bool:  # noqa: ARG002
        """Those with another value."""
        return True

    def exporter(self) -> ValueExporter:
        """Its part of every form."""
        from holdfast.kinds.columns.export import ValueExporter

        return ValueExporter(self)

    def examiner(self) -> ValueExaminer:
        """One by one."""
        from holdfast.kinds.columns.examine import ValueExaminer

        return ValueExaminer()
