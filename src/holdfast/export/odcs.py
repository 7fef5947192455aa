"""A data contract in the Open Data Contract Standard."""

from __future__ import annotations

import re
from collections.abc import Sequence

from holdfast.export.contract import Column, Contract, TableContract
from holdfast.export.dialects import Dialect, nulls_sentence
from holdfast.export.queries import Queries, about, name_of
from holdfast.export.yaml_text import dumps
from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.names import identifier
from holdfast.model.records import JsonObject
from holdfast.screen.text import plain

_LOGICAL = {
    "boolean": "boolean", "tinyint": "integer", "smallint": "integer", "int": "integer",
    "bigint": "integer", "float": "number", "double": "number", "decimal": "number",
    "date": "date", "timestamp": "timestamp", "timestamp_ntz": "timestamp", "time": "time",
    "array": "array", "struct": "object", "map": "map",
}  # fmt: skip

_REFERABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)


def files(contract: Contract, dialect: Dialect, _create: bool) -> dict[str, str]:
    """One contract with all tables."""
    for table in contract.tables:
        dialect.expect_columns(table)
    form: JsonObject = {
        "apiVersion": "v3.1.0",
        "kind": "DataContract",
        "id": identifier([contract.name]),
        "name": contract.name,
        "version": f"{contract.version}.0.0",
        "status": "draft",
        "description": {
            "usage": f"Constraints that hold in version {contract.version} of the profile "
            f"{contract.name}. {nulls_sentence(contract)} Queries are in the SQL of {dialect.name}."
        },
        "schema": [_object(contract, dialect, table) for table in contract.tables],
    }
    return {"contract.odcs.yaml": dumps(form)}


def _object(contract: Contract, dialect: Dialect, table: TableContract) -> JsonObject:
    place = ".".join((*contract.namespace, table.name))
    form: JsonObject = {
        **_named(table.name),
        "physicalName": place,
        "physicalType": "table",
        "logicalType": "object",
    }
    if table.keys and table.keys[0].columns:
        columns = ", ".join(table.keys[0].columns)
        form["dataGranularityDescription"] = plain(f"one row for each {columns}")
    form["properties"] = [_property(table, column) for column in table.columns]
    if relationships := [
        {
            "type": "foreignKey",
            "from": _reference(each.dependent),
            "to": _reference(each.referenced),
        }
        for each in contract.references(table.name)
    ]:
        form["relationships"] = relationships
    said = {key for key in table.keys if len(key.columns) == 1}  # by the properties of columns
    if quality := [
        _quality(contract, dialect, rule)
        for rule in contract.rules_of(table)
        if rule not in said and (rule in contract.bounds or registry.of(rule).role != "not null")
    ]:
        form["quality"] = quality
    return form


def _property(table: TableContract, column: Column) -> JsonObject:
    base = re.split(r"[(<]", column.type)[0]
    form: JsonObject = {
        **_named(column.name),
        "physicalName": column.name,
        "physicalType": column.type,
        "logicalType": _LOGICAL.get(base, "string"),
    }
    if table.keys and column.name in table.keys[0].columns:
        position = table.keys[0].columns.index(column.name) + 1
        form |= {"primaryKey": True, "primaryKeyPosition": position}
    if column.name in table.required:
        form["required"] = True
    if any(key.columns == (column.name,) for key in table.keys):
        form["unique"] = True
    return form


def _named(name: str) -> dict[str, str]:
    """A name, with an id where references cannot use it."""
    return {"name": name} if _REFERABLE.fullmatch(name) else {"id": _id(name), "name": name}


def _id(name: str) -> str:
    return name if _REFERABLE.fullmatch(name) else identifier([name])


def _reference(side: Sequence[Attribute]) -> str | list[str]:
    """The columns of a side, by their names or, where these cannot be referred to, by ids."""

    def place(each: Attribute) -> str:
        if _REFERABLE.fullmatch(each.table) and _REFERABLE.fullmatch(each.column):
            return f"{each.table}.{each.column}"
        return f"schema/{_id(each.table)}/properties/{_id(each.column)}"

    places = [*map(place, side)]
    return places if len(places) > 1 else places[0]


def _quality(contract: Contract, dialect: Dialect, rule: Constraint) -> JsonObject:
    """A query that counts what violates a rule."""
    queries, bound = Queries(dialect, contract), contract.bounds.get(rule)
    if bound is None:
        inner = queries.of(rule)
        query = f"SELECT count(*) FROM (\n{inner}\n) AS {dialect.name_of('violations')}\n"
        wanted: JsonObject = {"mustBe": 0}
    else:
        query, wanted = queries.total(rule) + "\n", {"mustBeLessOrEqualTo": bound}
    return {
        "name": name_of(rule),
        "description": about(rule, bound),
        "dimension": registry.of(rule).exporter().dimension_of(rule),
        "type": "sql",
        "query": query,
        **wanted,
    }
