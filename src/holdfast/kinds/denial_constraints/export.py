"""Denial constraints in the forms of other tools."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.exporter import Clause, Exporter
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.names import identifier
from holdfast.model.records import JsonObject

if TYPE_CHECKING:
    from holdfast.export.contract import TableContract
    from holdfast.export.dbt import Dbt
    from holdfast.export.queries import Queries


class DenialExporter(Exporter[DenialConstraint]):
    """Checks of single rows, and queries for rows or pairs that satisfy all predicates."""

    def words(self, rule: DenialConstraint) -> tuple[Sequence[str], str]:
        """The predicates."""
        words = [word for p in rule.predicates for word in (*p.left, p.op, *p.right)]
        return [rule.table, *words], ""

    def sentence(self, rule: DenialConstraint) -> str | None:
        """An order rule has one."""
        return rule.sentence

    def query(self, rule: DenialConstraint, sql: Queries) -> str:
        """The rows that satisfy all predicates or, by the values that these compare, the pairs t
        and s."""
        dialect = sql.dialect
        if not rule.predicates:
            (number,) = sql.free_names((), "rows")
            return sql.groups(rule.table, (), f"count(*) AS {number}", f"{number} > 1")
        if rule.is_within_a_row:
            conditions = [_condition(each, sql) for each in rule.predicates]
            return "\n".join(["SELECT *", f"FROM {sql.rows(rule.table)}", *sql.where(conditions)])
        cells = [cell for each in rule.predicates for cell in (each.left, each.right)]
        order = sql.table(rule.table).names
        columns = sorted({column for _, column in cells}, key=order.index)
        (number,) = sql.free_names(columns, "rows")
        groups, t, s = map(dialect.name_of, ("groups", "t", "s"))
        values = [
            f"{row}.{dialect.name_of(each)} AS {dialect.name_of(f'{alias}.{each}')}"
            for alias, row in (("t", t), ("s", s))
            for each in columns
        ]
        conditions = [
            _condition(each, sql, {"t": f"{t}.", "s": f"{s}."}) for each in rule.predicates
        ]
        if _pairs_with_itself(rule, sql.contract.nulls):
            # A row is no pair with itself, but with its like.
            differ = [
                dialect.different.format(f"{t}.{name}", f"{s}.{name}")
                for name in map(dialect.name_of, columns)
            ]
            conditions.append(f"({' OR '.join([*differ, f'{t}.{number} > 1'])})")
        names = dialect.names(columns)
        lines = [
            f"WITH {groups} AS (",
            f"  SELECT {names}, count(*) AS {number}",
            f"  FROM {sql.rows(rule.table)}",
            f"  GROUP BY {names}",
            ")",
            f"SELECT {', '.join(values)}",
            f"FROM {groups} AS {t} CROSS JOIN {groups} AS {s}",
            *sql.where(conditions),
        ]
        return "\n".join(lines)

    def removal(self, rule: DenialConstraint, sql: Queries) -> tuple[str, str] | None:
        """That of the key or the dependency that says the same; of others about two rows it is not
        kept, so nothing bounds them."""
        from holdfast.kinds import registry

        plain = rule.plain
        return None if plain is None else registry.of(plain).exporter().removal(plain, sql)

    def clause(self, rule: DenialConstraint, sql: Queries, table: TableContract) -> Clause:  # noqa: ARG002
        """A rule about single rows is a check; for others no database has a constraint."""
        if not rule.is_within_a_row:
            return Clause(str(rule))
        words = [word for p in rule.predicates for word in (p.left[1], p.op, p.right[1])]
        name = identifier([rule.table, *words], "check")
        return Clause(str(rule), name, f"CHECK ({_never(rule, sql)})")

    def dbt_constraint(
        self, rule: DenialConstraint, dbt: Dbt, table: TableContract
    ) -> JsonObject | None:
        """The same as in SQL."""
        if not rule.is_within_a_row:
            return None
        name = self.clause(rule, dbt.sql, table).name
        return {"type": "check", "name": name, "expression": _never(rule, dbt.sql)}

    def great_expectation(self, rule: DenialConstraint) -> tuple[str, JsonObject] | None:
        """A rule that one column of a row is never larger than another."""
        if len(rule.predicates) != 1:
            return None
        (predicate,) = rule.predicates
        (row, left), (other_row, right) = predicate.left, predicate.right
        if row != other_row or predicate.op not in ("<", "<=", ">", ">="):
            return None
        larger, smaller = (left, right) if predicate.op[0] == "<" else (right, left)
        return "expect_column_pair_values_a_to_be_greater_than_b", {
            "column_A": larger,
            "column_B": smaller,
            "or_equal": not predicate.op.endswith("="),
            "ignore_row_if": "either_value_is_missing",
        }


def _never(rule: DenialConstraint, sql: Queries) -> str:
    """The condition that no row satisfies all predicates."""
    return f"NOT ({' AND '.join(_condition(each, sql) for each in rule.predicates)})"


def _pairs_with_itself(rule: DenialConstraint, nulls: str) -> bool:
    """Whether a row beside itself can satisfy all predicates."""
    never = {"<", ">"} | ({"!="} if nulls == "equal" else set())
    return not any(each.left[1] == each.right[1] and each.op in never for each in rule.predicates)


def _condition(predicate: Predicate, sql: Queries, rows: Mapping[str, str] | None = None) -> str:
    """The condition that two cells satisfy a predicate; ``rows`` says what stands before the
    columns of each row."""
    (row, column), (other_row, other) = predicate.left, predicate.right
    before = rows or {"t": "", "s": ""}
    left = before[row] + sql.dialect.name_of(column)
    right = before[other_row] + sql.dialect.name_of(other)
    return sql.dialect.satisfied(left, predicate.op, right, sql.contract.nulls)
