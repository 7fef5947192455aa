"""Constraints as SQL: statements that add them to tables that are there, or that make the tables.

What a database has no constraint for (functional dependencies, rules about two rows) is listed in
comments, and ``queries.py`` has a query for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from holdfast.export.contract import Contract, TableContract, allowed
from holdfast.export.dialects import Dialect, comment, nulls_sentence
from holdfast.export.queries import Queries
from holdfast.kinds import registry
from holdfast.kinds.exporter import Clause
from holdfast.model.constraints import Constraint
from holdfast.model.inclusion_dependencies import ForeignKey

_WITHOUT = "Without a constraint (--to queries has a query for each):"


def files(contract: Contract, dialect: Dialect, create: bool) -> dict[str, str]:
    """All of it in one file: with ``create`` the tables, else what is added to them."""
    for table in contract.tables:
        dialect.expect_columns(table)
    lines = [*map(comment, _heading(contract, dialect))]
    for table in _parents_first(contract) if create else contract.tables:
        lines += ["", *(_created if create else _altered)(contract, dialect, table)]
    # References to tables that come later have to wait for them.
    later = [
        line
        for table in contract.tables
        for reference, clause in _references(contract, dialect, table)
        if not create or not _is_created_before(contract, reference)
        for line in _added(contract, dialect, table, clause)
    ]
    lines += ["", *later] if later else []
    return {"constraints.sql": "\n".join(lines) + "\n"}


def _heading(contract: Contract, dialect: Dialect) -> Iterator[str]:
    yield (
        f"Constraints of {contract.name}, version {contract.version}, "
        f"for {dialect.version} or newer."
    )
    yield nulls_sentence(contract)
    if contract.nulls == "equal" and dialect.unique and not dialect.unique_nulls:
        yield "UNIQUE passes over nulls: it says less than a key whose columns have some."
    if dialect.informational or not dialect.unique:
        yield "Keys and foreign keys are informational: nothing enforces them."


# A table at a time


def _created(contract: Contract, dialect: Dialect, table: TableContract) -> list[str]:
    """The statement that creates a table, with its constraints."""
    in_keys = {column for key in table.keys for column in key.columns}
    for each in contract.foreign_keys:
        for side in (each.dependent, each.referenced):
            in_keys |= {a.column for a in side if a.table == table.name}
    parts = []
    for column in table.columns:
        kind = dialect.type_of(column.type, in_key=column.name in in_keys)
        present = " NOT NULL" if column.name in table.required else ""
        parts.append(f"{dialect.name_of(column.name)} {kind}{present}")
    clauses = [
        *_clauses(contract, dialect, table),
        *(
            clause
            for reference, clause in _references(contract, dialect, table)
            if _is_created_before(contract, reference)
        ),
    ]
    parts += [
        f"CONSTRAINT {dialect.name_of(each.name)} {each.text}" for each in clauses if each.text
    ]
    body = ",\n".join(f"  {part}" for part in parts)
    place = dialect.table_of(contract, table.name)
    statement = f"CREATE TABLE {place} (\n{body}\n){dialect.table_options};"
    return [statement, *_left_out(clauses)]


def _altered(contract: Contract, dialect: Dialect, table: TableContract) -> list[str]:
    """The statements that add the constraints of a table, apart from its foreign keys."""
    lines: list[str] = []
    clauses = [*_clauses(contract, dialect, table)]
    place = dialect.table_of(contract, table.name)
    if dialect.sets_not_null:
        names = [dialect.name_of(name) for name in table.names if name in table.required]
        lines += [f"ALTER TABLE {place} ALTER COLUMN {name} SET NOT NULL;" for name in names]
    else:
        required = [rule for rule in table.strict if registry.of(rule).role == "not null"]
        clauses += [Clause(str(rule)) for rule in required]
    for clause in clauses:
        if clause.text:
            lines += _added(contract, dialect, table, clause)
    lines += _left_out(clauses)
    return lines or [comment(f"{table.name}: no constraints")]


def _added(
    contract: Contract, dialect: Dialect, table: TableContract, clause: Clause
) -> Iterator[str]:
    """The lines that add a constraint to a table, or say why there is none."""
    place = dialect.table_of(contract, table.name)
    if not clause.text:
        yield comment(f"{clause.rule}: {clause.why}")
    elif dialect.alters:
        yield comment(clause.rule)
        name = dialect.name_of(clause.name)
        yield f"ALTER TABLE {place} ADD CONSTRAINT {name} {clause.text};"
    elif clause.unique:
        yield comment(clause.rule)
        yield f"CREATE UNIQUE INDEX {dialect.name_of(clause.name)} ON {place} ({clause.unique});"
    else:
        yield comment(
            f"{clause.rule}: cannot be added to a table that is there; see --create-tables"
        )


def _left_out(clauses: Iterable[Clause]) -> list[str]:
    """The lines about rules that have no constraint."""
    rules = [f"{each.rule}{each.why and f' ({each.why})'}" for each in clauses if not each.text]
    return [comment(_WITHOUT), *(comment(f"  {rule}") for rule in rules)] if rules else []


# A constraint at a time


def _clauses(contract: Contract, dialect: Dialect, table: TableContract) -> Iterator[Clause]:
    """The constraints of a table but for those that are said of its columns."""
    for rule in table.rules:
        if rule in table.bounds:
            yield Clause(str(rule), why=allowed(table.bounds[rule]))
        elif registry.of(rule).role != "not null":
            yield _clause(contract, dialect, table, rule)
    for rule in contract.across:
        if rule.tables[0] == table.name:
            bound = contract.bounds.get(rule)
            yield Clause(str(rule), why="" if bound is None else allowed(bound))


def _references(
    contract: Contract, dialect: Dialect, table: TableContract
) -> Iterator[tuple[ForeignKey, Clause]]:
    """The foreign keys of a table, each as a clause."""
    for key in contract.references(table.name):
        yield key, _clause(contract, dialect, table, key)


def _clause(contract: Contract, dialect: Dialect, table: TableContract, rule: Constraint) -> Clause:
    return registry.of(rule).exporter().clause(rule, Queries(dialect, contract), table)


# The order of tables


def _parents_first(contract: Contract) -> list[TableContract]:
    """The tables so that each comes after those it refers to, as far as there is no circle."""
    done: list[TableContract] = []
    left = list(contract.tables)
    while left:
        names = {each.name for each in left}
        ready = [each for each in left if not _parents(contract, each) & (names - {each.name})]
        done += ready or left[:1]
        left = [each for each in left if each not in done]
    return done


def _parents(contract: Contract, table: TableContract) -> set[str]:
    return {key.tables[-1] for key in contract.references(table.name)}


def _is_created_before(contract: Contract, reference: ForeignKey) -> bool:
    """Whether the table that is referred to is there when the other one is created."""
    order = [each.name for each in _parents_first(contract)]
    return order.index(reference.tables[-1]) <= order.index(reference.tables[0])
