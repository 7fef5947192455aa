"""Keys in the forms of other tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from holdfast.kinds.exporter import Clause, Exporter, Test
from holdfast.model.constraints import Key
from holdfast.model.names import identifier
from holdfast.model.records import JsonObject

if TYPE_CHECKING:
    from holdfast.export.contract import Choice, TableContract
    from holdfast.export.dbt import Dbt
    from holdfast.export.queries import Queries
    from holdfast.export.soda import Soda
    from holdfast.model.ranking import Ranked
    from holdfast.report.snapshot import TableSnapshot


class KeyExporter(Exporter[Key]):
    """Primary keys, unique constraints and tests of uniqueness."""

    heading = "Keys"
    dimension = "uniqueness"
    dbt_failures = "coalesce(sum(n_records) - count(*), 0)"

    def found(
        self, choice: Choice, table: TableSnapshot, ranking: Sequence[Ranked]
    ) -> Iterable[Key]:
        """Those that foreign keys refer to, and where nothing was chosen the likeliest."""
        keys: list[Any] = [each.constraint for each in ranking]
        if choice.everything:
            return [*keys, *(key for key in table.keys if key not in keys and not table.duplicates)]
        first = keys[:1] if choice.is_empty else []
        referenced = choice.referenced(table.name)
        return [key for key in keys if key in first or frozenset(key.columns) in referenced]

    def words(self, rule: Key) -> tuple[Sequence[str], str]:
        """Its columns."""
        return [rule.table, *rule.columns], "key"

    def query(self, rule: Key, sql: Queries) -> str:
        """A row for each group of rows that agree on it."""
        (rows,) = sql.free_names(rule.columns, "rows")
        return sql.groups(rule.table, rule.columns, f"count(*) AS {rows}", f"{rows} > 1")

    def removal(self, rule: Key, sql: Queries) -> tuple[str, str]:
        """All rows of a group but one."""
        rows, removal = sql.free_names(rule.columns, "rows", "removal")
        counts = f"count(*) AS {rows}, count(*) - 1 AS {removal}"
        return sql.groups(rule.table, rule.columns, counts, f"{rows} > 1"), removal

    def clause(self, rule: Key, sql: Queries, table: TableContract) -> Clause:
        """PRIMARY KEY, for the first whose columns are never null, or UNIQUE."""
        dialect, nulls = sql.dialect, sql.contract.nulls
        columns = dialect.names(rule.columns)
        if not columns:
            return Clause(str(rule))
        if rule == table.primary:
            name = identifier([table.name], "pk")
            text = f"PRIMARY KEY ({columns}){dialect.informational}"
            return Clause(str(rule), name, text, unique=columns)
        if dialect.unique is None:
            why = f"{dialect.name} has one key per table, of columns that are never null"
            return Clause(str(rule), why=why)
        word = dialect.unique
        if nulls == "equal" and not table.required.issuperset(rule.columns):
            word = dialect.unique_nulls or word
        name = identifier([table.name, *rule.columns], "key")
        text = f"{word} ({columns}){dialect.informational}"
        return Clause(str(rule), name, text, unique=columns)

    def dbt_test(self, rule: Key, dbt: Dbt) -> Test | None:  # noqa: ARG002
        """``unique``, for one of a single column."""
        return (rule.columns[0], "unique") if len(rule.columns) == 1 else None

    def dbt_constraint(self, rule: Key, dbt: Dbt, table: TableContract) -> JsonObject | None:
        """The same as in SQL."""
        if not rule.columns or not dbt.takes(rule.columns):
            return None
        primary = rule == table.primary
        return {"type": "primary_key" if primary else "unique", "columns": [*rule.columns]}

    def great_expectation(self, rule: Key) -> tuple[str, JsonObject] | None:
        """Of one column or, where no value is missing, of several."""
        if len(rule.columns) == 1:
            return "expect_column_values_to_be_unique", {"column": rule.columns[0]}
        if not rule.columns:
            return None
        # With a null, whether two rows are alike depends on what reads the batch.
        return "expect_compound_columns_to_be_unique", {
            "column_list": [*rule.columns],
            "ignore_row_if": "any_value_is_missing",
        }

    def soda_check(self, rule: Key, soda: Soda) -> Test | None:
        """A check of duplicate values, for one of a single column."""
        if len(rule.columns) != 1:
            return None
        return rule.columns[0], {"duplicate": soda.named(rule)}
