"""A dbt properties file with tests and constraints, and the generic test that some of them use.

dbt's own tests are used where they say the same: ``not_null``, ``unique`` (which passes nulls by)
and ``relationships``. Everything else is a query, run by the test ``holdfast_violations``.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect, is_plain, nulls_sentence
from holdfast.export.queries import Queries, about, name_of
from holdfast.export.yaml_text import dumps
from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.errors import SchemaError
from holdfast.model.names import identifier
from holdfast.model.records import Json, JsonObject
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


@dataclass(frozen=True)
class Dbt:
    """Words of a properties file."""

    sql: Queries

    def ref(self, table: str) -> str:
        """A reference to the model of a table."""
        return f"ref('{_model_name(table)}')"

    def field(self, column: str) -> str:
        """A column as an argument of a test."""
        return column if is_plain(column) else self.sql.dialect.name_of(column)

    def takes(self, columns: Iterable[str]) -> bool:
        """Whether constraints of the table can name these columns: dbt does not quote them, so that
        those with names that need quotes are tested alone."""
        return all(map(is_plain, columns))


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
            if _is_template(name):
                raise SchemaError(
                    f"dbt takes a part of the name {plain(name)!r} for a template; rename the "
                    "column or table, or leave the table out with --table"
                )
        for rule in filter(_is_template, map(str, table.rules)):
            raise SchemaError(
                f"dbt takes a part of the rule {plain(rule)} for a template; forget the rule, or "
                "leave the table out with --table"
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


def _is_template(text: str) -> bool:
    return any(mark in text for mark in ("{{", "{%", "{#", "}}", "%}", "#}"))


def _model(contract: Contract, dialect: Dialect, table: TableContract) -> JsonObject:
    name, dbt = _model_name(table.name), Dbt(Queries(dialect, contract))
    columns = {column.name: _column(dialect, column.name, column.type) for column in table.columns}
    tests_of: dict[str, list[Json]] = {}
    tests: list[Json] = []
    for rule in contract.rules_of(table):
        exporter, bound = registry.of(rule).exporter(), contract.bounds.get(rule)
        test = exporter.dbt_test(rule, dbt)
        # A name with a quote in it dbt does not quote well.
        if test is not None and dialect.quote not in test[0] and "'" not in test[0]:
            own = test[1]
            if bound is not None:
                own = _with_settings(own, _bounded(bound, exporter.dbt_failures))
            tests_of.setdefault(test[0], []).append(own)
        else:
            tests.append(_query_test(contract, dialect, rule, dbt))
    for column, own_tests in tests_of.items():
        columns[column]["data_tests"] = own_tests
    for column in table.required:
        columns[column]["constraints"] = [{"type": "not_null"}]
    model: JsonObject = {"name": name}
    if name != table.name:
        model["config"] = {"alias": table.name}
    constraints = [
        registry.of(rule).exporter().dbt_constraint(rule, dbt, table)
        for rule in (*table.strict, *contract.references(table.name))
    ]
    if any(constraints):
        model["constraints"] = [constraint for constraint in constraints if constraint]
    model["columns"] = [*columns.values()]
    if tests:
        model["data_tests"] = tests
    return model


def _model_name(table: str) -> str:
    """dbt wants words of letters, digits and underscores."""
    return table if table.isidentifier() and table.isascii() else identifier([table])


def _column(dialect: Dialect, name: str, kind: str) -> JsonObject:
    column: JsonObject = {"name": name, "data_type": dialect.type_of(kind)}
    if not is_plain(name):
        column["quote"] = True
    return column


def _query_test(contract: Contract, dialect: Dialect, rule: Constraint, dbt: Dbt) -> JsonObject:
    """A test that runs a query."""
    first, *others = rule.tables
    places = {**dict.fromkeys(others, _OTHERS), first: _ROWS}
    bound = contract.bounds.get(rule)
    arguments: JsonObject = {"rule": about(rule, bound)}
    if len(places) > 1:
        arguments["to"] = dbt.ref(others[0])
    queries = Queries(dialect, contract, places)
    test: JsonObject = {"name": name_of(rule), "arguments": arguments}
    if bound is None:
        arguments["query"] = queries.of(rule) + "\n"
    else:
        query, number = queries.removal(rule)
        arguments["query"] = query + "\n"
        test["config"] = _bounded(bound, number)
    return {"holdfast_violations": test}


def _bounded(bound: int, number: str) -> JsonObject:
    """The settings of a test that so many rows may fail; ``number`` counts them."""
    settings: JsonObject = {} if number == "count(*)" else {"fail_calc": number}
    return {**settings, "error_if": f">{bound}", "warn_if": ">0"}


def _with_settings(test: Json, config: JsonObject) -> JsonObject:
    """A test of dbt's own with settings."""
    if isinstance(test, str):
        return {test: {"config": config}}
    assert isinstance(test, dict)
    return {name: {**arguments, "config": config} for name, arguments in test.items()}
