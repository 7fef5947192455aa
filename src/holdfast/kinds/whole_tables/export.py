"""Rules about tables as a whole in the forms of other tools."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.exporter import Clause, Exporter, Test
from holdfast.model.records import JsonObject
from holdfast.model.whole_tables import NEWEST, Newest, RowCount, TableRule

if TYPE_CHECKING:
    from holdfast.export.contract import TableContract
    from holdfast.export.queries import Queries
    from holdfast.export.soda import Soda


class WholeTableExporter(Exporter[TableRule]):
    """Checks of whole tables. The newest value is compared with the time of the check."""

    dimension = "completeness"

    def dimension_of(self, rule: TableRule) -> str:
        """How many rows there are, or how new they are."""
        return self.dimension if isinstance(rule, RowCount) else "timeliness"

    def words(self, rule: TableRule) -> tuple[Sequence[str], str]:
        """The numbers, or the column and the time."""
        if isinstance(rule, RowCount):
            bounds = {"least": rule.at_least, "most": rule.at_most}
            words = [f"{name} {rows}" for name, rows in bounds.items() if rows is not None]
            return [rule.table, *words], "rows"
        return [rule.table, rule.column, rule.time], NEWEST

    def query(self, rule: TableRule, sql: Queries) -> str:
        """One row, with the number of rows or the newest value, where that is not as it should
        be."""
        if isinstance(rule, Newest):
            column = sql.dialect.name_of(rule.column)
            name = sql.dialect.name_of(NEWEST)
            type_ = sql.table(rule.table).type_of(rule.column)
            least = sql.dialect.before_now(rule.seconds, type_)
            inner = f"SELECT max({column}) AS {name}\nFROM {sql.rows(rule.table)}"
            return f"SELECT *\nFROM {sql.nested(inner)}\nWHERE {name} IS NULL OR {name} < {least}"
        name = sql.dialect.name_of("number")
        inner = f"SELECT count(*) AS {name}\nFROM {sql.rows(rule.table)}"
        bounds = ((rule.at_least, "<"), (rule.at_most, ">"))
        wrong = " OR ".join(f"{name} {op} {rows}" for rows, op in bounds if rows is not None)
        return f"SELECT *\nFROM {sql.nested(inner)}\nWHERE {wrong}"

    def clause(self, rule: TableRule, sql: Queries, table: TableContract) -> Clause:  # noqa: ARG002
        """None: a constraint is about rows."""
        return Clause(str(rule), why="no constraint is about a whole table")

    def great_expectation(self, rule: TableRule) -> tuple[str, JsonObject] | None:
        """Of the number of rows."""
        if isinstance(rule, Newest):
            return None
        return "expect_table_row_count_to_be_between", {
            "min_value": rule.at_least,
            "max_value": rule.at_most,
        }

    def soda_check(self, rule: TableRule, soda: Soda) -> Test | None:
        """Of the number of rows, where it has one bound."""
        if isinstance(rule, Newest) or None not in (rule.at_least, rule.at_most):
            return None
        bounds = {"greater": rule.at_least, "less": rule.at_most}
        threshold = {
            f"must_be_{word}_than_or_equal": rows
            for word, rows in bounds.items()
            if rows is not None
        }
        return "", {"row_count": {**soda.named(rule), "threshold": threshold}}
