"""Functional dependencies in the forms of other tools: no tool has a check of its own for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.exporter import Exporter
from holdfast.model.constraints import FunctionalDependency

if TYPE_CHECKING:
    from holdfast.export.queries import Queries


class DependencyExporter(Exporter[FunctionalDependency]):
    """Queries for rows that agree on the lhs and differ on the rhs."""

    heading = "Functional dependencies"

    def words(self, rule: FunctionalDependency) -> tuple[Sequence[str], str]:
        """Both sides."""
        return [rule.table, *rule.lhs, "determines", rule.rhs], ""

    def query(self, rule: FunctionalDependency, sql: Queries) -> str:
        """A row for each group of rows that agree on the lhs and have several values on the rhs."""
        rhs = sql.dialect.name_of(rule.rhs)
        rows, present, different = sql.free_names(rule.lhs, "rows", "present", "different")
        counts = (
            f"count(*) AS {rows}, count({rhs}) AS {present},\n"
            f"    count(DISTINCT {rhs}) AS {different}"
        )
        if sql.contract.nulls == "equal":
            # Nulls are one more value.
            violated = f"{different} > 1 OR ({different} = 1 AND {present} < {rows})"
        else:
            violated = f"{rows} > 1 AND ({different} > 1 OR {present} < {rows})"
        return sql.groups(rule.table, rule.lhs, counts, violated)

    def removal(self, rule: FunctionalDependency, sql: Queries) -> tuple[str, str]:
        """Of a group all rows but those with its most frequent value."""
        columns = tuple(dict.fromkeys((*rule.lhs, rule.rhs)))
        rows, same, removal = sql.free_names(columns, "rows", "same", "removal")
        largest = same
        if sql.contract.nulls == "unequal":
            # Each null is one more value.
            largest = f"CASE WHEN {sql.dialect.name_of(rule.rhs)} IS NULL THEN 1 ELSE {same} END"
        values = sql.grouped(rule.table, columns, f"count(*) AS {same}", rule.lhs, indent="    ")
        counts = f"sum({same}) AS {rows}, sum({same}) - max({largest}) AS {removal}"
        found = sql.groups(rule.table, rule.lhs, counts, f"{removal} > 0", sql.nested(values))
        return found, removal
