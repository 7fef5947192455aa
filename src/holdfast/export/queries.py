"""Queries that find what violates a constraint, exactly as Holdfast compares: nulls, too, also in
columns that have none today.

A query has no rows where the constraint holds. That of a key or a functional dependency has a row
for each group of rows that violates it, that of an inclusion a row for each missing value, and that
of a denial constraint one for each pair of rows, t and s, by the values that it compares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from holdfast.export.contract import Contract, TableContract
from holdfast.export.dialects import Dialect, comment, identifier, nulls_sentence
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.errors import InputError
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.screen.text import plain


@dataclass(frozen=True)
class Queries:
    """Makes queries in a dialect. ``places`` says under what other name, as SQL has it, the rows of
    a table are found."""

    dialect: Dialect
    contract: Contract
    places: Mapping[str, str] | None = None

    def of(self, rule: Rule) -> str:
        """The query that finds what violates a rule."""
        if isinstance(rule, Key):
            return self._key(rule)
        if isinstance(rule, FunctionalDependency):
            return self._dependency(rule)
        if isinstance(rule, InclusionDependency):
            return self._inclusion(rule)
        if isinstance(rule, NotNull):
            column = self.dialect.name_of(rule.column)
            return f"SELECT *\nFROM {self._rows(rule.table)}\nWHERE {column} IS NULL"
        return self._denial(rule)

    def _rows(self, table: str) -> str:
        return (self.places or {}).get(table) or self.dialect.table_of(self.contract, table)

    def _known(self, name: str) -> TableContract:
        table = self.contract.table(name)
        if table is None:
            raise InputError(f"table {name!r} is not among those that are exported")
        return table

    def _present(self, columns: Iterable[str], row: str = "") -> list[str]:
        """Conditions that cells are not null."""
        return [f"{row}{self.dialect.name_of(each)} IS NOT NULL" for each in columns]

    def _agreeing(self, columns: tuple[str, ...]) -> list[str]:
        """Conditions on rows that can agree with others on columns."""
        return self._present(columns) if self.contract.nulls == "unequal" else []

    def _key(self, key: Key) -> str:
        names = self.dialect.names(key.columns)
        (count,) = free(key.columns, "rows")
        number = self.dialect.name_of(count)
        inner = [
            f"  SELECT {names + ', ' if names else ''}count(*) AS {number}",
            f"  FROM {self._rows(key.table)}",
            *_where(self._agreeing(key.columns), "  "),
            *([f"  GROUP BY {names}"] if names else []),
        ]
        return _outer(["*"], inner, f"{number} > 1", self.dialect)

    def _dependency(self, rule: FunctionalDependency) -> str:
        names = self.dialect.names(rule.lhs)
        rhs = self.dialect.name_of(rule.rhs)
        rows, present, different = map(
            self.dialect.name_of, free(rule.lhs, "rows", "present", "different")
        )
        inner = [
            f"  SELECT {names + ', ' if names else ''}count(*) AS {rows}, "
            f"count({rhs}) AS {present},",
            f"    count(DISTINCT {rhs}) AS {different}",
            f"  FROM {self._rows(rule.table)}",
            *_where(self._agreeing(rule.lhs), "  "),
            *([f"  GROUP BY {names}"] if names else []),
        ]
        if self.contract.nulls == "equal":
            # Nulls are one more value.
            violated = f"{different} > 1 OR ({different} = 1 AND {present} < {rows})"
        else:
            violated = f"{rows} > 1 AND ({different} > 1 OR {present} < {rows})"
        return _outer(["*"], inner, violated, self.dialect)

    def _inclusion(self, rule: InclusionDependency) -> str:
        dependent = [each.column for each in rule.dependent]
        referenced = [each.column for each in rule.referenced]
        d, r = self.dialect.name_of("d"), self.dialect.name_of("r")
        values = self.contract.inclusion_nulls == "values" and len(dependent) == 1
        pairs = [
            (f"{r}.{self.dialect.name_of(theirs)}", f"{d}.{self.dialect.name_of(mine)}")
            for mine, theirs in zip(dependent, referenced, strict=True)
        ]
        same = [self.dialect.same.format(*pair) if values else "{} = {}".format(*pair)
                for pair in pairs]  # fmt: skip
        present = [] if values else self._present(dependent, f"{d}.")
        table, other = rule.dependent[0].table, rule.referenced[0].table
        return "\n".join(
            [
                f"SELECT DISTINCT {', '.join(mine for _, mine in pairs)}",
                f"FROM {self._rows(table)} AS {d}",
                *_where(
                    [
                        *present,
                        f"NOT EXISTS (SELECT 1 FROM {self._rows(other)} AS {r} "
                        f"WHERE {' AND '.join(same)})",
                    ]
                ),
            ]
        )

    def _denial(self, rule: DenialConstraint) -> str:
        if not rule.predicates:
            return self._key(Key(rule.table, ()))
        rows = {row for each in rule.predicates for row, _ in (each.left, each.right)}
        if len(rows) == 1:
            return "\n".join(
                [
                    "SELECT *",
                    f"FROM {self._rows(rule.table)}",
                    *_where([self.predicate(each) for each in rule.predicates]),
                ]
            )
        cells = [cell for each in rule.predicates for cell in (each.left, each.right)]
        order = self._known(rule.table).names
        columns = sorted({column for _, column in cells}, key=order.index)
        (count,) = free(columns, "rows")
        number = self.dialect.name_of(count)
        groups = self.dialect.name_of("groups")
        t, s = self.dialect.name_of("t"), self.dialect.name_of("s")
        shown = [
            f"{row}.{self.dialect.name_of(each)} AS {self.dialect.name_of(f'{alias}.{each}')}"
            for alias, row in (("t", t), ("s", s))
            for each in columns
        ]
        conditions = [
            self.predicate(each, {"t": f"{t}.", "s": f"{s}."}) for each in rule.predicates
        ]
        if self._pairs_with_itself(rule):
            # A row is no pair with itself, but with its like.
            differ = [
                self.dialect.different.format(f"{t}.{name}", f"{s}.{name}")
                for name in map(self.dialect.name_of, columns)
            ]
            conditions.append(f"({' OR '.join([*differ, f'{t}.{number} > 1'])})")
        names = self.dialect.names(columns)
        return "\n".join(
            [
                f"WITH {groups} AS (",
                f"  SELECT {names}, count(*) AS {number}",
                f"  FROM {self._rows(rule.table)}",
                f"  GROUP BY {names}",
                ")",
                f"SELECT {', '.join(shown)}",
                f"FROM {groups} AS {t} CROSS JOIN {groups} AS {s}",
                *_where(conditions),
            ]
        )

    def _pairs_with_itself(self, rule: DenialConstraint) -> bool:
        """Whether a row beside itself can satisfy all predicates."""
        never = {"<", ">"} | ({"!="} if self.contract.nulls == "equal" else set())
        return not any(
            each.left[1] == each.right[1] and each.op in never for each in rule.predicates
        )

    def predicate(self, predicate: Predicate, rows: Mapping[str, str] | None = None) -> str:
        """A condition that two cells satisfy a predicate; ``rows`` says what stands before the
        columns of each row."""
        (row, column), (other_row, other) = predicate.left, predicate.right
        before = rows or {"t": "", "s": ""}
        left = before[row] + self.dialect.name_of(column)
        right = before[other_row] + self.dialect.name_of(other)
        return self.dialect.satisfied(left, predicate.op, right, self.contract.nulls)


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
        lines += ["", comment(str(rule)), queries.of(rule) + ";"]
    return {"violations.sql": "\n".join(lines) + "\n"}


def name_of(rule: Rule) -> str:
    """What a check of a rule is called, in plain letters: another rule has another name."""
    if isinstance(rule, Key):
        return identifier([rule.table, *rule.columns], "key")
    if isinstance(rule, FunctionalDependency):
        return identifier([rule.table, *rule.lhs, "determines", rule.rhs])
    if isinstance(rule, NotNull):
        return identifier([rule.table, rule.column], "not_null")
    if isinstance(rule, InclusionDependency):
        referenced = [rule.referenced[0].table, *(each.column for each in rule.referenced)]
        dependent = [rule.dependent[0].table, *(each.column for each in rule.dependent)]
        return identifier([*dependent, "in", *referenced])
    return identifier([rule.table, *(word for each in rule.predicates for word in _words(each))])


def about(rule: Rule) -> str:
    """A rule in words where it has some, else as it is written."""
    sentence = rule.sentence if isinstance(rule, DenialConstraint) else None
    return plain(f"{sentence}: {rule}" if sentence else str(rule))


def _words(predicate: Predicate) -> tuple[str, ...]:
    return (*predicate.left, predicate.op, *predicate.right)


def free(taken: Iterable[str], *wanted: str) -> list[str]:
    """Names that are not taken, like the wanted ones.

    >>> free(["Rows", "b"], "rows", "present")
    ['rows_', 'present']
    """
    used = {each.lower() for each in taken}
    names = []
    for name in wanted:
        while name in used:
            name += "_"
        used.add(name)
        names.append(name)
    return names


def _where(conditions: list[str], indent: str = "") -> list[str]:
    """The lines of a condition."""
    joined = f"\n{indent}  AND ".join(conditions)
    return [f"{indent}WHERE {joined}"] if conditions else []


def _outer(shown: list[str], inner: list[str], condition: str, dialect: Dialect) -> str:
    body = "\n".join(inner)
    alias = dialect.name_of("groups")
    return f"SELECT {', '.join(shown)}\nFROM (\n{body}\n) AS {alias}\nWHERE {condition}"
