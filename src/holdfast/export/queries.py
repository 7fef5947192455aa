"""Queries that find what violates a constraint, exactly as Holdfast compares: nulls, too, also in
columns that have none today.

A query has no rows where the constraint holds. Each kind writes its own (``kinds/…/export.py``).
That of a key or a functional dependency has a row for each group of rows that violates it, that of
an inclusion a row for each missing value, and that of a denial constraint one for each pair of
rows, t and s, by the values that it compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.export.contract import Contract, TableContract, allowed
from holdfast.export.dialects import Dialect, comment, nulls_sentence
from holdfast.kinds import registry
from holdfast.model.constraints import Constraint
from holdfast.model.errors import InputError
from holdfast.model.names import identifier
from holdfast.screen.text import plain


@dataclass(frozen=True)
class Queries:
    """Makes queries in a dialect. ``places`` says under what other name, as SQL has it, the rows of
    a table are found."""

    dialect: Dialect
    contract: Contract
    places: Mapping[str, str] | None = None

    def of(self, rule: Constraint) -> str:
        """The query that finds what violates a rule."""
        return registry.of(rule).exporter().query(rule, self)

    def removal(self, rule: Constraint) -> tuple[str, str]:
        """A query that finds what violates a rule, and how many rows would have to go, as an
        expression over its rows."""
        grouped = registry.of(rule).exporter().removal(rule, self)
        if grouped is None:
            return self.of(rule), "count(*)"
        query, column = grouped
        return query, f"coalesce(sum({column}), 0)"

    def total(self, rule: Constraint) -> str:
        """The query for how many rows would have to go before a rule holds."""
        query, number = self.removal(rule)
        return f"SELECT {number} AS {self.dialect.name_of('removal')}\nFROM {self.nested(query)}"

    def too_many(self, rule: Constraint, bound: int) -> str:
        """The query for that number where it is larger than it may be; else it has no rows."""
        removal = self.dialect.name_of("removal")
        return f"SELECT *\nFROM {self.nested(self.total(rule))}\nWHERE {removal} > {bound}"

    # Parts of queries

    def rows(self, table: str) -> str:
        """Where the rows of a table are found."""
        return (self.places or {}).get(table) or self.dialect.table_of(self.contract, table)

    def table(self, name: str) -> TableContract:
        """What is exported of a table."""
        table = self.contract.table(name)
        if table is None:
            raise InputError(f"table {name!r} is not among those that are exported")
        return table

    def free_names(self, taken: Iterable[str], *wanted: str) -> list[str]:
        """Names in quotes that are not taken, like the wanted ones."""
        return [*map(self.dialect.name_of, free(taken, *wanted))]

    def present(self, columns: Iterable[str], row: str = "") -> list[str]:
        """Conditions that cells are not null."""
        return [f"{row}{self.dialect.name_of(column)} IS NOT NULL" for column in columns]

    def where(self, conditions: list[str], indent: str = "") -> list[str]:
        """The lines of a condition."""
        joined = f"\n{indent}  AND ".join(conditions)
        return [f"{indent}WHERE {joined}"] if conditions else []

    def nested(self, query: str) -> str:
        """A query in the place of a table."""
        return f"(\n{query}\n) AS {self.dialect.name_of('groups')}"

    def grouped(
        self,
        table: str,
        columns: tuple[str, ...],
        counts: str,
        agreeing: tuple[str, ...],
        source: str | None = None,
        indent: str = "  ",
    ) -> str:
        """The query for groups of rows, of a table or a ``source`` in its place, with some counts.
        Rows with a null on ``agreeing`` columns agree with no others if nulls differ."""
        names = self.dialect.names(columns)
        can_agree = self.present(agreeing) if self.contract.nulls == "unequal" else []
        lines = [
            f"{indent}SELECT {names + ', ' if names else ''}{counts}",
            f"{indent}FROM {source or self.rows(table)}",
            *self.where(can_agree, indent),
            *([f"{indent}GROUP BY {names}"] if names else []),
        ]
        return "\n".join(lines)

    def groups(
        self,
        table: str,
        columns: tuple[str, ...],
        counts: str,
        violated: str,
        source: str | None = None,
    ) -> str:
        """The query for groups of rows that agree on columns: those whose ``counts`` satisfy a
        condition."""
        body = self.nested(self.grouped(table, columns, counts, columns, source))
        return f"SELECT *\nFROM {body}\nWHERE {violated}"


def files(contract: Contract, dialect: Dialect, _create: bool) -> dict[str, str]:
    """Every constraint with its query, in one file."""
    queries = Queries(dialect, contract)
    lines = [
        comment(f"What violates the constraints of {contract.name}, version {contract.version}."),
        comment("A query without rows: the constraint holds. " + nulls_sentence(contract)),
    ]
    for table in contract.tables:
        dialect.expect_columns(table)
    for rule in contract.rules:
        bound = contract.bounds.get(rule)
        if bound is None:
            lines += ["", comment(str(rule)), queries.of(rule) + ";"]
        else:
            words = f"{rule}: {allowed(bound)}. How many do:"
            lines += ["", comment(words), queries.total(rule) + ";"]
    return {"violations.sql": "\n".join(lines) + "\n"}


def name_of(rule: Constraint) -> str:
    """What a check of a rule is called, in plain letters: another rule has another name."""
    return identifier(*registry.of(rule).exporter().words(rule))


def about(rule: Constraint, bound: int | None = None) -> str:
    """A rule in words where it has some, else as it is written; and how many rows may break it."""
    sentence = registry.of(rule).exporter().sentence(rule)
    words = plain(f"{sentence}: {rule}" if sentence else str(rule))
    return words if bound is None else f"{words} ({allowed(bound)})"


def free(taken: Iterable[str], *wanted: str) -> list[str]:
    """Names that are not taken, like the wanted ones.

    >>> free(["Rows", "b"], "rows", "present")
    ['rows_', 'present']
    """
    used = {name.lower() for name in taken}
    names = []
    for name in wanted:
        while name in used:
            name += "_"
        used.add(name)
        names.append(name)
    return names
