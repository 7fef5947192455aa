"""The exported constraints as JSON, for programs."""

from __future__ import annotations

import json

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect
from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.records import JsonObject


def files(contract: Contract, _dialect: Dialect, _create: bool) -> dict[str, str]:
    """One object; constraints have the forms that ``show`` prints, and the text of the grammar."""
    form = {
        "profile": contract.name,
        "version": contract.version,
        "nulls": contract.nulls,
        "inclusion_nulls": contract.inclusion_nulls,
        "tables": {table.name: _table(contract, table) for table in contract.tables},
        "foreign_keys": [_form(contract, key) for key in contract.foreign_keys],
        "inclusion_dependencies": [_form(contract, rule) for rule in contract.across],
    }
    return {"constraints.json": json.dumps(form, indent=2, ensure_ascii=False) + "\n"}


def _table(contract: Contract, table: TableContract) -> JsonObject:
    rules = {
        kind.field: [_form(contract, rule) for rule in table.rules if registry.of(rule) is kind]
        for kind in registry.table_parts()
    }
    columns: list[JsonObject] = [
        {"name": each.name, "type": each.type, "never_null": each.name in table.never_null}
        for each in table.columns
    ]
    return {"rows": table.rows, "columns": columns, **rules}


def _form(contract: Contract, rule: Constraint) -> JsonObject:
    bound = contract.bounds.get(rule)
    return {
        "rule": str(rule),
        **rule.to_dict(),
        **({} if bound is None else {"max_rows": bound}),
    }
