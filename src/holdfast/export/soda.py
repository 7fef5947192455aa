"""Soda contracts, one for each table."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect, nulls_sentence
from holdfast.export.queries import Queries, about, name_of
from holdfast.export.yaml_text import dumps
from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.errors import SchemaError
from holdfast.model.names import identifier
from holdfast.model.records import Json, JsonObject
from holdfast.screen.text import plain


@dataclass(frozen=True)
class Soda:
    """Words of a Soda contract."""

    contract: Contract

    def dataset(self, table: str) -> str:
        """The qualified name of a table: the data source, what it lies in, its own name."""
        return "/".join((*(self.contract.namespace or (self.contract.name,)), table))

    def named(self, rule: Constraint) -> JsonObject:
        """What a check of a rule is called, and how many rows may fail it."""
        bound = self.contract.bounds.get(rule)
        named: JsonObject = {"name": about(rule, bound), "qualifier": name_of(rule)}
        if bound is not None:
            named["threshold"] = {"must_be_less_than_or_equal": bound}
        return named


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
        for rule in (text for text in map(str, table.rules) if "${" in text):
            raise SchemaError(
                f"Soda takes a part of the rule {plain(rule)} for a variable; forget the rule, or "
                "leave the table out with --table"
            )
        contracts[f"{identifier([table.name])}.yml"] = dumps(
            _contract(contract, dialect, table),
            f"A contract of {plain(table.name)}, for Soda 4; "
            f"version {contract.version} of {plain(contract.name)}.",
            f"{nulls_sentence(contract)} Queries are in the SQL of {dialect.name}.",
        )
    return contracts


def _contract(contract: Contract, dialect: Dialect, table: TableContract) -> JsonObject:
    soda = Soda(contract)
    checks_of: dict[str, list[Json]] = {name: [] for name in table.names}
    checks: list[Json] = [{"schema": {"allow_other_column_order": True}}]
    for rule in contract.rules_of(table):
        exporter = registry.of(rule).exporter()
        own = exporter.soda_check(rule, soda)
        if own is None or (rule in contract.bounds and not exporter.counts_rows):
            checks.append(_query(soda, dialect, rule))
        else:
            (checks_of[own[0]] if own[0] else checks).append(own[1])
    columns: list[JsonObject] = [
        {"name": name, "checks": own_checks} if own_checks else {"name": name}
        for name, own_checks in checks_of.items()
    ]
    return {"dataset": soda.dataset(table.name), "columns": columns, "checks": checks}


def _query(soda: Soda, dialect: Dialect, rule: Constraint) -> JsonObject:
    """A check that runs a query. The data source, the first name, is no part of a table's."""
    there = replace(soda.contract, namespace=soda.contract.namespace[1:])
    queries = Queries(dialect, there)
    if rule in soda.contract.bounds:
        return {"metric": {**soda.named(rule), "query": queries.total(rule) + "\n"}}
    return {"failed_rows": {**soda.named(rule), "query": queries.of(rule) + "\n"}}
