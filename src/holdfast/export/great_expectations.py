"""Suites of Great Expectations, one for each table.

Its own expectations are used where they say the same, and queries for everything else: those need a
batch of a database or of Spark.
"""

from __future__ import annotations

import json

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect
from holdfast.export.queries import Queries, about
from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.names import identifier
from holdfast.model.records import JsonObject


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


def _suite(contract: Contract, dialect: Dialect, table: TableContract) -> JsonObject:
    rules = contract.rules_of(table)
    return {
        "name": table.name,
        "expectations": [_expectation(contract, dialect, table, rule) for rule in rules],
        "meta": {
            "holdfast": {
                "profile": contract.name,
                "version": contract.version,
                "nulls": contract.nulls,
                "dialect": dialect.name,
            }
        },
    }


def _expectation(
    contract: Contract, dialect: Dialect, table: TableContract, rule: Constraint
) -> JsonObject:
    exporter, bound = registry.of(rule).exporter(), contract.bounds.get(rule)
    own = exporter.great_expectation(rule)
    if own is not None and bound is not None:
        kind, arguments = own
        own = (
            (kind, {**arguments, "mostly": _mostly(bound, table)}) if exporter.counts_rows else None
        )
    kind, arguments = own or _query(contract, dialect, rule)
    return {"type": kind, "kwargs": arguments, "meta": {"rule": str(rule)}}


def _mostly(bound: int, table: TableContract) -> float:
    """The share of the rows that hold, where so many may not: rounded down, so that these pass."""
    return max(0, table.rows - bound) * 1_000_000 // max(1, table.rows) / 1_000_000


def _query(contract: Contract, dialect: Dialect, rule: Constraint) -> tuple[str, JsonObject]:
    """A query that has no rows where the rule holds, or where no more rows break it than may; the
    batch stands for the table."""
    mark = "\0batch\0"  # no name has a NUL in it
    # The batch may come with an alias, and some queries give it one.
    renames = registry.of(rule).exporter().renames_rows
    places = {rule.tables[0]: f"(SELECT * FROM {mark})" if renames else mark}
    queries, bound = Queries(dialect, contract, places), contract.bounds.get(rule)
    query = queries.of(rule) if bound is None else queries.too_many(rule, bound)
    query = query.replace("{", "{{").replace("}", "}}").replace(mark, "{batch}")
    return "unexpected_rows_expectation", {
        "unexpected_rows_query": query,
        "description": about(rule, bound),
    }
