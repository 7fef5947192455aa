"""The exported constraints as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect


def files(contract: Contract, _dialect: Dialect, _create: bool) -> dict[str, str]:
    """One object; constraints have the forms that ``show`` prints, and the text of the grammar."""
    form = {
        "profile": contract.name,
        "version": contract.version,
        "nulls": contract.nulls,
        "inclusion_nulls": contract.inclusion_nulls,
        "tables": {table.name: _table(table) for table in contract.tables},
        "foreign_keys": [_said(each) for each in contract.foreign_keys],
        "inclusion_dependencies": [_said(each) for each in contract.inclusions],
    }
    return {"constraints.json": json.dumps(form, indent=2, ensure_ascii=False) + "\n"}


def _table(table: TableContract) -> dict[str, Any]:
    return {
        "rows": table.rows,
        "columns": [
            {"name": each.name, "type": each.type, "never_null": each.required}
            for each in table.columns
        ],
        "keys": [_said(each) for each in table.keys],
        "functional_dependencies": [_said(each) for each in table.dependencies],
        "denial_constraints": [_said(each) for each in table.denials],
    }


def _said(rule: Any) -> dict[str, Any]:
    return {"rule": str(rule), **rule.to_dict()}
