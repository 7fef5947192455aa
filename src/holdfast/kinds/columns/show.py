"""Rules of columns in JSON and on the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.kinds.parts import TablePart
from holdfast.model.options import Settings
from holdfast.screen.text import plain

if TYPE_CHECKING:
    from holdfast.report.snapshot import TableSnapshot
    from holdfast.screen.page import Page


class ColumnRuleList(TablePart):
    """The rules of single columns, column by column."""

    name = "column-rules"
    field = "column_rules"
    nouns = ("rule of a column", "rules of columns")

    def listed(self, table: TableSnapshot) -> Sequence[Any]:
        """In the order of the columns."""
        rules: Sequence[Any] = table.found["columns"]
        return rules

    def show(self, page: Page, table: TableSnapshot, options: Settings, verbose: bool) -> None:  # noqa: ARG002
        """With how often each value of a domain occurs."""
        rules = self.listed(table)
        values = {facts.name: facts.values for facts in table.facts}
        page.line(self.heading(len(rules)), indent=2)
        for rule in rules[: page.limit]:
            page.line(plain(rule.body), "green", 4)
            often = values.get(rule.column) if getattr(rule, "values", ()) else None
            if often:
                numbers = sorted(often.items(), key=lambda each: -each[1])
                page.line(", ".join(f"{plain(value)}: {n:,}" for value, n in numbers), "dim", 6)
        page.more(len(rules), 4)
