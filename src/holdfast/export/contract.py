"""What is exported of a version: for each table its columns, and the rules that were chosen.

These are the rules that are expected and those that are suggested; or else every constraint that
holds, the chosen ones first. Where nothing was chosen it is what rows stand for, and foreign keys.
Each kind has its own part in that (``kinds/exporter.py``). What nearly holds has a bound, the
number of rows that may break it, and is nothing that a database can be told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

from holdfast.kinds import registry
from holdfast.kinds.base import Kind, Role
from holdfast.model.commits import unknown_table
from holdfast.model.constraints import Constraint
from holdfast.model.errors import InputError
from holdfast.screen.text import count

if TYPE_CHECKING:
    from holdfast.kinds.ranking import TableRanking
    from holdfast.model.constraints import Key
    from holdfast.model.inclusion_dependencies import ForeignKey
    from holdfast.report.snapshot import Snapshot, TableSnapshot


@dataclass(frozen=True)
class Column:
    """A column, with its type in Spark's words, and whether it is known to have a value in every
    row, which says nothing of other rows."""

    name: str
    type: str
    never_null: bool = False


@dataclass(frozen=True)
class TableContract:
    """What is exported of a table. Its first key is the one that stands for its rows."""

    name: str
    columns: tuple[Column, ...]
    rows: int = 0
    rules: tuple[Constraint, ...] = ()  # those of one kind side by side
    bounds: Mapping[Constraint, int] = field(default_factory=dict)  # so many rows may break them

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(column.name for column in self.columns)

    @cached_property
    def keys(self) -> tuple[Key, ...]:
        """The keys that hold."""
        return tuple(self._with_role("key"))

    @cached_property
    def required(self) -> frozenset[str]:
        """The columns that have to have a value in every row."""
        return frozenset(rule.column for rule in self._with_role("not null"))

    @cached_property
    def never_null(self) -> frozenset[str]:
        """These, and the columns that have a value in every row today."""
        return self.required | {column.name for column in self.columns if column.never_null}

    @property
    def primary(self) -> Key | None:
        """The first key, if it can stand for the rows: it has columns, and none is ever null."""
        for key in self.keys[:1]:
            if key.columns and self.required.issuperset(key.columns):
                return key
        return None

    def _with_role(self, role: Role) -> Iterator[Any]:
        return (rule for rule in self.strict if registry.of(rule).role == role)

    @property
    def strict(self) -> Iterator[Constraint]:
        """The rules that no row may break."""
        return (rule for rule in self.rules if rule not in self.bounds)

    def type_of(self, column: str) -> str:
        """The type of a column."""
        return next(each.type for each in self.columns if each.name == column)


@dataclass(frozen=True)
class Contract:
    """What is exported of a version."""

    name: str
    version: int
    nulls: str  # equal or unequal: how two nulls compare
    inclusion_nulls: str  # ignored or values: nulls on the left side of an inclusion
    tables: tuple[TableContract, ...]
    foreign_keys: tuple[ForeignKey, ...] = ()
    across: tuple[Constraint, ...] = ()  # other rules about several tables
    namespace: tuple[str, ...] = ()  # the catalog and schema of the tables, as far as given
    bounds: Mapping[Constraint, int] = field(default_factory=dict)
    """How many rows may break the rules that nearly hold, of all tables."""

    unchosen: bool = False
    """Whether nothing was chosen, so that it is the grain of tables and foreign keys alone."""

    def table(self, name: str) -> TableContract | None:
        """One of the tables; None: it is not exported."""
        return next((table for table in self.tables if table.name == name), None)

    def references(self, table: str) -> list[ForeignKey]:
        """The foreign keys of a table."""
        return [key for key in self.foreign_keys if key.tables[0] == table]

    def across_of(self, table: str) -> list[Constraint]:
        """What relates a table to others, foreign keys first."""
        references: list[Constraint] = [key.inclusion for key in self.references(table)]
        return [*references, *(rule for rule in self.across if rule.tables[0] == table)]

    def rules_of(self, table: TableContract) -> tuple[Constraint, ...]:
        """Every constraint of a table."""
        return (*table.rules, *self.across_of(table.name))

    @property
    def rules(self) -> Iterator[Constraint]:
        """Every constraint."""
        for table in self.tables:
            yield from self.rules_of(table)


@dataclass(frozen=True)
class Choice:
    """What there is to choose from."""

    snapshot: Snapshot
    tables: Mapping[str, TableSnapshot]
    everything: bool  # whether all that holds is asked for
    chosen: Sequence[Any]  # rules that hold, within their bounds
    bounds: Mapping[Any, int] = field(default_factory=dict)  # of those that some rows may break

    @property
    def is_empty(self) -> bool:
        """Whether nothing was chosen that is about these tables."""
        return not any({*rule.tables} <= {*self.tables} for rule in self.chosen)

    def grain(self, table: str) -> frozenset[str]:
        """The columns of what the rows of a table stand for, where nothing was chosen."""
        key = self.rankings[table].grain.key if self.is_empty else None
        return frozenset(() if key is None else key.columns)

    @cached_property
    def rankings(self) -> Mapping[str, TableRanking]:
        """What matters first in each table."""
        from holdfast.kinds.ranking import ranked

        return ranked(self.snapshot, self.tables)

    def chosen_of(self, kind: Kind, table: str | None = None) -> list[Any]:
        """The rules of a kind that were chosen, in a table or in any."""
        return [
            rule
            for rule in self.chosen
            if registry.of(rule) is kind and table in (None, rule.tables[0])
        ]

    def keys(self, table: str) -> set[frozenset[str]]:
        """The columns of the keys of a table: of those that hold, and those that were chosen."""
        found = () if self.tables[table].duplicates else self.tables[table].keys
        chosen = [
            rule
            for rule in self.chosen
            if registry.of(rule).role == "key"
            and rule.tables[0] == table
            and rule not in self.bounds
        ]
        return {frozenset(key.columns) for key in (*found, *chosen)}

    @cached_property
    def across(self) -> tuple[list[ForeignKey], list[Constraint]]:
        """What is exported between tables: foreign keys, and the others."""
        foreign_keys: list[ForeignKey] = []
        others: list[Constraint] = []
        for kind in registry.every():
            references, rest = kind.exporter().chosen_across(self)
            foreign_keys += references
            others += rest
        return foreign_keys, others

    def referenced(self, table: str) -> set[frozenset[str]]:
        """The columns of a table that foreign keys refer to."""
        keys = [key for key in self.across[0] if key.tables[-1] == table]
        return {frozenset(column.column for column in key.referenced) for key in keys}


def contract_of(
    snapshot: Snapshot,
    name: str,
    *,
    everything: bool = False,
    tables: Sequence[str] | None = None,
    namespace: Sequence[str] = (),
    chosen: Sequence[Constraint] = (),
    bounds: Mapping[Constraint, int] | None = None,
) -> Contract:
    """What is exported of a version of a profile that is called so: of some tables or all, the
    chosen rules, some of which so many rows may break (``bounds``), or every constraint that holds.
    ``namespace`` is where the tables are."""
    for table in tables or ():
        if table not in snapshot.tables:
            raise unknown_table(table, snapshot.tables)
    by_name = {table: snapshot.tables[table] for table in (tables or snapshot.tables)}
    if not by_name:
        raise InputError(f"the profile {name} has no table to export")
    choice = Choice(snapshot, by_name, everything, chosen, bounds or {})
    foreign_keys, others = choice.across
    return Contract(
        name,
        snapshot.version,
        snapshot.options["nulls"],
        snapshot.options["inclusion_nulls"],
        tuple(_table(choice, table) for table in by_name.values()),
        tuple(foreign_keys),
        tuple(others),
        tuple(namespace),
        choice.bounds,
        choice.is_empty and not everything,
    )


def _table(choice: Choice, table: TableSnapshot) -> TableContract:
    ranking = choice.rankings[table.name].kinds
    rules = [
        rule
        for kind in registry.every()
        for rule in kind.exporter().chosen(choice, table, ranking.get(kind.field, ()))
    ]
    complete = {facts.name for facts in table.facts if table.rows and facts.nulls == 0}
    columns = zip(table.columns, table.types, strict=True)
    return TableContract(
        table.name,
        tuple(Column(name, type_, name in complete) for name, type_ in columns),
        table.rows,
        tuple(rules),
        {rule: choice.bounds[rule] for rule in rules if rule in choice.bounds},
    )


def allowed(bound: int) -> str:
    """That some rows may break a rule, in words.

    >>> allowed(1), allowed(1200)
    ('at most 1 row may break it', 'at most 1,200 rows may break it')
    """
    return f"at most {count(bound, 'row')} may break it"
