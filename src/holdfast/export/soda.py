"""Soda contracts, one for each table."""

from __future__ import annotations

from typing import Any

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect, identifier, nulls_sentence
from holdfast.export.queries import Queries, about, name_of
from holdfast.export.yaml_text import dumps
from holdfast.model.constraints import Key, NotNull
from holdfast.model.errors import SchemaError
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.screen.text import plain


def files(contract: Contract, dialect: Dialect, _create: bool) -> dict[str, str]:
    """A contract for each table, in a file of its own."""
    contracts = {}
    for table in contract.tables:
        dialect.expect_columns(table)
        for name in (table.name, *table.names):
            if "${" in name:
                raise SchemaError(
                    f"Soda takes a part of the name {plain(name)!r} for a variable; rename the "
                    "column or table, or leave the table out with --table"
                )
        contracts[f"{identifier([table.name])}.yml"] = dumps(
            _contract(contract, dialect, table),
            f"A contract of {plain(table.name)}, for Soda 4; "
            f"version {contract.version} of {plain(contract.name)}.",
            f"{nulls_sentence(contract)} Queries are in the SQL of {dialect.name}.",
        )
    return contracts


def _contract(contract: Contract, dialect: Dialect, table: TableContract) -> dict[str, Any]:
    columns: dict[str, dict[str, Any]] = {name: {"name": name} for name in table.names}
    checks: list[Any] = [{"schema": {"allow_other_column_order": True}}]
    for rule in (*table.rules, *contract.inclusions_of(table.name)):
        column, check = _own(contract, rule)
        if column is None:
            checks.append(check or _query(contract, dialect, rule))
        else:
            columns[column].setdefault("checks", []).append(check)
    return {"dataset": _dataset(contract, table.name), "columns": [*columns.values()],
        "checks": checks}  # fmt: skip


def _dataset(contract: Contract, table: str) -> str:
    """The qualified name of a table: the data source, what it lies in, its own name."""
    return "/".join((*(contract.namespace or (contract.name,)), table))


def _own(contract: Contract, rule: Rule) -> tuple[str | None, Any]:
    """One of Soda's own checks that says the same, with the column that it belongs to."""
    named = {"name": about(rule), "qualifier": name_of(rule)}
    if isinstance(rule, NotNull):
        return rule.column, {"missing": named}
    if isinstance(rule, Key) and len(rule.columns) == 1:
        return rule.columns[0], {"duplicate": named}
    if isinstance(rule, InclusionDependency) and len(rule.dependent) == 1:
        (mine,), (theirs,) = rule.dependent, rule.referenced
        if contract.inclusion_nulls == "ignored" and mine.table != theirs.table:
            place = {"dataset": _dataset(contract, theirs.table), "column": theirs.column}
            return mine.column, {"invalid": {**named, "valid_reference_data": place}}
    return None, None


def _query(contract: Contract, dialect: Dialect, rule: Rule) -> dict[str, Any]:
    """A check that runs a query. The data source, the first name, is no part of a table's."""
    there = Contract(**{**vars(contract), "namespace": contract.namespace[1:]})
    query = Queries(dialect, there).of(rule) + "\n"
    return {"failed_rows": {"name": about(rule), "qualifier": name_of(rule), "query": query}}
