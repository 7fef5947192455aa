"""Columns without nulls in the forms of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.exporter import Exporter, Test
from holdfast.model.constraints import NotNull
from holdfast.model.records import JsonObject

if TYPE_CHECKING:
    from holdfast.export.contract import Choice
    from holdfast.export.dbt import Dbt
    from holdfast.export.queries import Queries
    from holdfast.export.soda import Soda
    from holdfast.model.ranking import Ranked
    from holdfast.report.snapshot import TableSnapshot


class NotNullExporter(Exporter[NotNull]):
    """Tests that columns have a value in every row."""

    counts_rows = True

    def chosen(
        self, choice: Choice, table: TableSnapshot, ranking: Sequence[Ranked]
    ) -> Iterable[NotNull]:
        """In the order of the columns."""
        rules = super().chosen(choice, table, ranking)
        return sorted(rules, key=lambda rule: table.columns.index(rule.column))

    def found(
        self,
        choice: Choice,
        table: TableSnapshot,
        ranking: Sequence[Ranked],  # noqa: ARG002
    ) -> Iterable[NotNull]:
        """The columns that have no null: of the grain where nothing was chosen. In a table without
        a row that says nothing."""
        facts = table.facts if table.rows else ()
        if not choice.everything:
            grain = choice.grain(table.name)
            facts = tuple(each for each in facts if each.name in grain)
        return [NotNull(table.name, each.name) for each in facts if each.nulls == 0]

    def words(self, rule: NotNull) -> tuple[Sequence[str], str]:
        """The column."""
        return [rule.table, rule.column], "not_null"

    def query(self, rule: NotNull, sql: Queries) -> str:
        """The rows with a null."""
        column = sql.dialect.name_of(rule.column)
        return f"SELECT *\nFROM {sql.rows(rule.table)}\nWHERE {column} IS NULL"

    def dbt_test(self, rule: NotNull, dbt: Dbt) -> Test:  # noqa: ARG002
        """``not_null``."""
        return rule.column, "not_null"

    def great_expectation(self, rule: NotNull) -> tuple[str, JsonObject]:
        """The same."""
        return "expect_column_values_to_not_be_null", {"column": rule.column}

    def soda_check(self, rule: NotNull, soda: Soda) -> Test:
        """A check of missing values."""
        return rule.column, {"missing": soda.named(rule)}
