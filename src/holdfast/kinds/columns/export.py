"""Domains, bounds and patterns of columns in the forms of other tools."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from holdfast.kinds.exporter import Clause, Exporter, Test
from holdfast.model.column_values import MATCHES, SYMBOLS, Bounds, Domain, Pattern, ValueRule
from holdfast.model.literals import NUMBER, TEXT
from holdfast.model.names import identifier
from holdfast.model.records import Json, JsonObject

if TYPE_CHECKING:
    from holdfast.export.contract import TableContract
    from holdfast.export.dbt import Dbt
    from holdfast.export.queries import Queries
    from holdfast.export.soda import Soda

_PLAIN = re.compile(r"[^'\"\\\0]*")
"""A text that every tool puts in quotes as it is."""

_WHOLE = 1 << 53
"""Whole numbers up to here are the same in JSON, whatever reads it."""


class ValueExporter(Exporter[ValueRule]):
    """Checks of single rows."""

    dimension = "conformity"
    dbt_failures = "coalesce(sum(n_records), 0)"  # it has a row for each value

    def words(self, rule: ValueRule) -> tuple[Sequence[str], str]:
        """The column, and the values."""
        if isinstance(rule, Pattern):
            return [rule.table, rule.column, rule.pattern], MATCHES
        if isinstance(rule, Domain):
            return [rule.table, rule.column, *rule.values], "values"
        bounds = [word for name, value in rule.given.items() for word in (SYMBOLS[name], value)]
        return [rule.table, rule.column, *bounds], "bounds"

    def query(self, rule: ValueRule, sql: Queries) -> str:
        """The rows with another value."""
        return f"SELECT *\nFROM {sql.rows(rule.table)}\nWHERE NOT ({_condition(rule, sql)})"

    def clause(self, rule: ValueRule, sql: Queries, table: TableContract) -> Clause:  # noqa: ARG002
        """A check, which a null passes."""
        if isinstance(rule, Pattern) and not sql.dialect.checks_patterns:
            return Clause(str(rule), why=f"{sql.dialect.name} has no patterns of its own")
        name = identifier(*self.words(rule))
        return Clause(str(rule), name, f"CHECK ({_condition(rule, sql)})")

    def dbt_test(self, rule: ValueRule, dbt: Dbt) -> Test | None:  # noqa: ARG002
        """``accepted_values``."""
        if not isinstance(rule, Domain) or (values := _json_values(rule)) is None:
            return None
        arguments: JsonObject = {"values": values}
        if rule.type != TEXT:
            arguments["quote"] = False
        return rule.column, {"accepted_values": {"arguments": arguments}}

    def dbt_constraint(self, rule: ValueRule, dbt: Dbt, table: TableContract) -> JsonObject | None:
        """The same as in SQL."""
        clause = self.clause(rule, dbt.sql, table)
        if not clause.text:
            return None
        return {"type": "check", "name": clause.name, "expression": _condition(rule, dbt.sql)}

    def great_expectation(self, rule: ValueRule) -> tuple[str, JsonObject] | None:
        """The same, of texts and whole numbers."""
        if isinstance(rule, Domain):
            values = _json_values(rule)
            if values is None:
                return None
            return "expect_column_values_to_be_in_set", {
                "column": rule.column,
                "value_set": values,
            }
        if isinstance(rule, Pattern) or (ends := _ends(rule)) is None:
            return None
        return "expect_column_values_to_be_between", {
            "column": rule.column,
            "min_value": ends.get("at_least", ends.get("above")),
            "max_value": ends.get("at_most", ends.get("below")),
            "strict_min": "above" in ends,
            "strict_max": "below" in ends,
        }

    def soda_check(self, rule: ValueRule, soda: Soda) -> Test | None:
        """A check of invalid values."""
        if isinstance(rule, Domain):
            values = _json_values(rule)
            if values is None:
                return None
            return rule.column, {"invalid": {**soda.named(rule), "valid_values": values}}
        ends = {} if isinstance(rule, Pattern) else _ends(rule) or {}
        names = {"at_least": "valid_min", "at_most": "valid_max"}
        if not ends or not {*ends} <= {*names}:
            return None
        valid = {names[name]: value for name, value in ends.items()}
        return rule.column, {"invalid": {**soda.named(rule), **valid}}


def _condition(rule: ValueRule, sql: Queries) -> str:
    """What a value is; null where there is none."""
    type_ = sql.table(rule.table).type_of(rule.column)
    column = sql.dialect.name_of(rule.column)
    if isinstance(rule, Pattern):
        return sql.dialect.matching(column, rule.pattern)

    def value(text: str) -> str:
        return sql.dialect.value_of(rule.type, text, type_)

    if isinstance(rule, Domain):
        return f"{column} IN ({', '.join(map(value, rule.values))})"
    given = {name: value(text) for name, text in rule.given.items()}
    if len(given) > 1:
        return f"{column} BETWEEN {given['at_least']} AND {given['at_most']}"
    return " ".join([column, *(f"{SYMBOLS[name]} {text}" for name, text in given.items())])


def _json_values(rule: Domain) -> list[Json] | None:
    """The values of a domain where JSON and every tool have them as they are: texts that look like
    nothing else, and whole numbers."""
    if rule.type == NUMBER:
        numbers = [_whole(value) for value in rule.values]
        return None if None in numbers else [*numbers]
    if rule.type == TEXT and not any(map(_is_odd, rule.values)):
        return [*rule.values]
    return None


def _is_odd(text: str) -> bool:
    """Whether a tool may take a text for a moment, or end it at a quote."""
    return _PLAIN.fullmatch(text) is None or (text[:1].isdigit() and any(c in text for c in "-:"))


def _ends(rule: Bounds) -> dict[str, int] | None:
    """The bounds, where JSON and every tool have them as they are."""
    if rule.type != NUMBER:
        return None
    ends = {
        name: number for name, text in rule.given.items() if (number := _whole(text)) is not None
    }
    return ends if len(ends) == len(rule.given) else None


def _whole(text: str) -> int | None:
    return int(text) if "." not in text and abs(int(text)) <= _WHOLE else None
