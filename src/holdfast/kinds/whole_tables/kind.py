"""Rules about tables as a whole as a kind of constraint: their number of rows, and how new the
newest value of a column is. They say what somebody means: there is nothing to search for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast.kinds.base import Kind
from holdfast.model.whole_tables import Finding, Newest, RowCount, TableRule
from holdfast.screen.text import count, moment

if TYPE_CHECKING:
    from holdfast.kinds.whole_tables.examine import WholeTableExaminer
    from holdfast.kinds.whole_tables.export import WholeTableExporter


class WholeTables(Kind):
    """Tables with enough rows, or with new ones."""

    name = "whole_tables"
    field = "whole_tables"
    nouns = ("rule of a whole table", "rules of whole tables")
    classes = (RowCount, Newest)

    def finding(self, rule: TableRule, found: Finding) -> str:
        """The number of rows, or how new the newest value is."""
        if isinstance(rule, RowCount):
            far = "few" if found.rows < (rule.at_least or 0) else "many"
            wrong = f", {found.wrong:,} too {far}" if found.wrong else ""
            return count(found.rows, "row") + wrong
        if found.newest is None:
            return f"no row has a value in {rule.column}"
        how = f", more than {rule.time} before" if found.wrong else "; that is compared with"
        when = f"{moment(found.moment or '')} UTC, when the rows last changed"
        return f"the newest {rule.column} is {found.newest}{how} {when}"

    def exporter(self) -> WholeTableExporter:
        """Its part of every form."""
        from holdfast.kinds.whole_tables.export import WholeTableExporter

        return WholeTableExporter(self)

    def examiner(self) -> WholeTableExaminer:
        """By what is stored of the table."""
        from holdfast.kinds.whole_tables.examine import WholeTableExaminer

        return WholeTableExaminer()
