"""Suites of Great Expectations, one for each table.

Its own expectations are used where they say the same, and queries for everything else: those need a
batch of a database or of Spark.
"""

from __future__ import annotations

import json
from typing import Any

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect, identifier
from holdfast.export.queries import Queries, about
from holdfast.model.constraints import Key, NotNull
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import InclusionDependency


def files(contract: Contract, dialect: Dialect, _create: bool) -> dict[str, str]:
    """A suite for each table, in a file of its own."""
    suites = {}
    for table in contract.tables:
        dialect.expect_columns(table)
        suite = _suite(contract, dialect, table)
        suites[f"{identifier([table.name])}.json"] = (
            json.dumps(suite, indent=2, ensure_ascii=False) + "\n"
        )
    return suites


def _suite(contract: Contract, dialect: Dialect, table: TableContract) -> dict[str, Any]:
    rules = (*table.rules, *contract.inclusions_of(table.name))
    return {
        "name": table.name,
        "expectations": [_expectation(contract, dialect, rule) for rule in rules],
        "meta": {
            "holdfast": {
                "profile": contract.name,
                "version": contract.version,
                "nulls": contract.nulls,
                "dialect": dialect.name,
            }
        },
    }


def _expectation(contract: Contract, dialect: Dialect, rule: Rule) -> dict[str, Any]:
    kind, arguments = _own(rule) or _query(contract, dialect, rule)
    return {"type": kind, "kwargs": arguments, "meta": {"rule": str(rule)}}


def _own(rule: Rule) -> tuple[str, dict[str, Any]] | None:
    """One of its own expectations that says the same; None: there is none."""
    if isinstance(rule, NotNull):
        return "expect_column_values_to_not_be_null", {"column": rule.column}
    if isinstance(rule, Key) and len(rule.columns) == 1:
        return "expect_column_values_to_be_unique", {"column": rule.columns[0]}
    if isinstance(rule, Key) and rule.columns:
        # With a null, whether two rows are alike depends on what reads the batch.
        columns = {"column_list": [*rule.columns], "ignore_row_if": "any_value_is_missing"}
        return "expect_compound_columns_to_be_unique", columns
    if isinstance(rule, DenialConstraint) and len(rule.predicates) == 1:
        return _pair(rule)
    return None


def _pair(rule: DenialConstraint) -> tuple[str, dict[str, Any]] | None:
    """A rule that one column of a row is never larger than another."""
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


def _query(contract: Contract, dialect: Dialect, rule: Rule) -> tuple[str, dict[str, Any]]:
    """A query that has no rows where the rule holds; the batch stands for the table."""
    mark = "\0batch\0"  # no name has a NUL in it
    if isinstance(rule, InclusionDependency):
        # The batch may come with an alias, and the query gives it one.
        places = {rule.dependent[0].table: f"(SELECT * FROM {mark})"}
    else:
        places = {rule.table: mark}
    query = Queries(dialect, contract, places).of(rule)
    query = query.replace("{", "{{").replace("}", "}}").replace(mark, "{batch}")
    return "unexpected_rows_expectation", {
        "unexpected_rows_query": query,
        "description": about(rule),
    }
