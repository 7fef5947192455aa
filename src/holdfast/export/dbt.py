"""A dbt properties file with tests and constraints, and the generic test that some of them use.

dbt's own tests are used where they say the same: ``not_null``, ``unique`` (which passes nulls by)
and ``relationships``. Everything else is a query, run by the test ``holdfast_violations``.
"""

from __future__ import annotations

from typing import Any

from holdfast.export import sql
from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect, identifier, is_plain, nulls_sentence
from holdfast.export.queries import Queries, about, name_of
from holdfast.export.yaml_text import dumps
from holdfast.model.constraints import Key
from holdfast.model.errors import SchemaError
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.screen.text import plain

_ROWS, _OTHERS = "holdfast_rows", "holdfast_others"

_TEST = """\
{#- Passes where a query has no rows: it finds what violates a rule in the rows of a model, and of
    another one where the rule is about two. -#}
{% test holdfast_violations(model, rule, query, to=none) %}
-- {{ rule }}
with holdfast_rows as (select * from {{ model }})
{%- if to %}, holdfast_others as (select * from {{ to }}){% endif %}
select * from (
{{ query }}
) as violations
{% endtest %}
"""


def files(contract: Contract, dialect: Dialect, _create: bool) -> dict[str, str]:
    """The properties of all models, and the generic test."""
    for table in contract.tables:
        dialect.expect_columns(table)
        if dialect.quote in table.name:
            raise SchemaError(
                f"dbt has no way to write the name {plain(table.name)!r} in the quotes of "
                f"{dialect.name}; rename the table, or leave it out with --table"
            )
        for name in (table.name, *table.names):
            if any(mark in name for mark in ("{{", "{%", "{#", "}}", "%}", "#}")):
                raise SchemaError(
                    f"dbt takes a part of the name {plain(name)!r} for a template; rename the "
                    "column or table, or leave the table out with --table"
                )
    models = [_model(contract, dialect, table) for table in contract.tables]
    text = dumps(
        {"version": 2, "models": models},
        f"Tests and constraints of {plain(contract.name)}, version {contract.version}, "
        "for dbt 1.10.5 or newer.",
        f"{nulls_sentence(contract)} Queries are in the SQL of {dialect.name}.",
        "Constraints count for models whose contract is enforced.",
    )
    return {"models/holdfast.yml": text, "tests/generic/holdfast_violations.sql": _TEST}


def _model(contract: Contract, dialect: Dialect, table: TableContract) -> dict[str, Any]:
    name = _model_name(table.name)
    columns = {column.name: _column(dialect, column.name, column.type) for column in table.columns}
    tests: list[Any] = []
    for rule in (*table.rules, *contract.inclusions_of(table.name)):
        column, test = _own_test(dialect, rule)
        if column is not None:
            columns[column].setdefault("data_tests", []).append(test)
        else:
            tests.append(_query_test(contract, dialect, rule))
    for column in table.required:
        columns[column]["constraints"] = [{"type": "not_null"}]
    model: dict[str, Any] = {"name": name}
    if name != table.name:
        model["config"] = {"alias": table.name}
    if constraints := [*_constraints(contract, dialect, table)]:
        model["constraints"] = constraints
    model["columns"] = [*columns.values()]
    if tests:
        model["data_tests"] = tests
    return model


def _model_name(table: str) -> str:
    """dbt wants words of letters, digits and underscores."""
    return table if table.isidentifier() and table.isascii() else identifier([table])


def _column(dialect: Dialect, name: str, kind: str) -> dict[str, Any]:
    column: dict[str, Any] = {"name": name, "data_type": dialect.type_of(kind)}
    if not is_plain(name):
        column["quote"] = True
    return column


def _own_test(dialect: Dialect, rule: Rule) -> tuple[str | None, Any]:
    """The column that one of dbt's own tests is for, and the test; None: there is none. A name
    with a quote in it dbt does not quote well."""
    known: tuple[str, Any] | None = None
    if isinstance(rule, Key) and len(rule.columns) == 1:
        known = rule.columns[0], "unique"
    elif isinstance(rule, InclusionDependency) and len(rule.dependent) == 1:
        (mine,), (theirs,) = rule.dependent, rule.referenced
        field = theirs.column if is_plain(theirs.column) else dialect.name_of(theirs.column)
        to = {"to": f"ref('{_model_name(theirs.table)}')", "field": field}
        known = mine.column, {"relationships": {"arguments": to}}
    elif type(rule).__name__ == "NotNull":
        known = rule.column, "not_null"  # type: ignore[union-attr]
    if known is None or dialect.quote in known[0] or "'" in known[0]:
        return None, None
    return known


def _query_test(contract: Contract, dialect: Dialect, rule: Rule) -> dict[str, Any]:
    """A test that runs a query."""
    places: dict[str, str] = {}
    arguments: dict[str, Any] = {"rule": about(rule)}
    if isinstance(rule, InclusionDependency):
        other = rule.referenced[0].table
        places = {other: _OTHERS, rule.dependent[0].table: _ROWS}
        if other == rule.dependent[0].table:
            places = {other: _ROWS}
        else:
            arguments["to"] = f"ref('{_model_name(other)}')"
    else:
        places = {rule.table: _ROWS}
    arguments["query"] = Queries(dialect, contract, places).of(rule) + "\n"
    return {"holdfast_violations": {"name": name_of(rule), "arguments": arguments}}


def _constraints(contract: Contract, dialect: Dialect, table: TableContract) -> list[Any]:
    """What dbt can put into the table that it makes. It does not quote the columns of these, so
    those with names that need quotes are tested alone."""
    constraints: list[Any] = []
    for place, key in enumerate(table.keys):
        if not key.columns or not all(map(is_plain, key.columns)):
            continue
        primary = place == 0 and table.primary is not None
        constraints.append(
            {"type": "primary_key" if primary else "unique", "columns": [*key.columns]}
        )
    for rule in table.denials:
        clause = sql.check(contract, dialect, rule)
        if clause.text:
            expression = clause.text.removeprefix("CHECK (").removesuffix(")")
            constraints.append({"type": "check", "name": clause.name, "expression": expression})
    for each in contract.references(table.name):
        dependent, referenced = (
            [a.column for a in side] for side in (each.dependent, each.referenced)
        )
        if all(map(is_plain, (*dependent, *referenced))):
            other = _model_name(each.referenced[0].table)
            to = {"to": f"ref('{other}')", "to_columns": referenced}
            constraints.append({"type": "foreign_key", "columns": dependent, **to})
    return constraints
