"""Columns without nulls as a kind of constraint. The facts about columns say where nulls are: there
is nothing to search for, and nobody asks for the kind by name."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.kinds.base import Kind
from holdfast.model.constraints import NotNull

if TYPE_CHECKING:
    from holdfast.kinds.not_null.examine import NotNullExaminer
    from holdfast.kinds.not_null.export import NotNullExporter


class NotNullColumns(Kind):
    """Columns that have a value in every row."""

    name = "not_null"
    field = "not_null"
    nouns = ("column without nulls", "columns without nulls")
    classes = (NotNull,)
    role = "not null"

    def of_rows(self, rule: NotNull) -> bool:  # noqa: ARG002
        """Those with a null."""
        return True

    def exporter(self) -> NotNullExporter:
        """Its part of every form."""
        from holdfast.kinds.not_null.export import NotNullExporter

        return NotNullExporter(self)

    def examiner(self) -> NotNullExaminer:
        """One by one."""
        from holdfast.kinds.not_null.examine import NotNullExaminer

        return NotNullExaminer()
