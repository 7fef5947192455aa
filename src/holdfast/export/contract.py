"""What is exported of a version: for each table its columns and the constraints that hold.

What is expected comes first, then by default the few that matter most by their scores
(``kinds/ranking.py``): keys, likely foreign keys, functional dependencies that do not follow
from others, and rules. What only nearly holds is never exported.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.model.commits import unknown_table
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.errors import InputError
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import ForeignKey, InclusionDependency

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot, TableSnapshot

_KEYS = 3
"""So many keys of a table are exported unless all are asked for, besides those that foreign keys
refer to."""

_RULES = 10
"""So many functional dependencies of a table, and so many denial constraints, are."""

_LIKELY = 0.5
"""Foreign keys with at least this score are exported unless all are asked for."""


@dataclass(frozen=True)
class Column:
    """A column, with its type in Spark's words."""

    name: str
    type: str
    required: bool = False  # whether it is known that every row has a value


@dataclass(frozen=True)
class TableContract:
    """What is exported of a table. Its first key is the one that stands for its rows."""

    name: str
    columns: tuple[Column, ...]
    rows: int = 0
    keys: tuple[Key, ...] = ()
    dependencies: tuple[FunctionalDependency, ...] = ()
    denials: tuple[DenialConstraint, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns."""
        return tuple(each.name for each in self.columns)

    @property
    def required(self) -> frozenset[str]:
        """The columns that are known to have a value in every row."""
        return frozenset(each.name for each in self.columns if each.required)

    @property
    def primary(self) -> Key | None:
        """The first key, if it can stand for the rows: it has columns, and none is ever null."""
        for key in self.keys[:1]:
            if key.columns and self.required.issuperset(key.columns):
                return key
        return None

    @property
    def rules(self) -> Iterator[Rule]:
        """Every constraint of it."""
        yield from (NotNull(self.name, each.name) for each in self.columns if each.required)
        yield from self.keys
        yield from self.dependencies
        yield from self.denials

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
    inclusions: tuple[InclusionDependency, ...] = ()  # other than foreign keys
    namespace: tuple[str, ...] = ()  # the catalog and schema of the tables, as far as given

    def table(self, name: str) -> TableContract | None:
        """One of the tables; None: it is not exported."""
        return next((each for each in self.tables if each.name == name), None)

    def references(self, table: str) -> list[ForeignKey]:
        """The foreign keys of a table."""
        return [each for each in self.foreign_keys if each.dependent[0].table == table]

    def inclusions_of(self, table: str) -> list[InclusionDependency]:
        """What is contained elsewhere of a table, foreign keys first."""
        references = [
            InclusionDependency(each.dependent, each.referenced) for each in self.references(table)
        ]
        others = [each for each in self.inclusions if each.dependent[0].table == table]
        return [*references, *others]

    @property
    def rules(self) -> Iterator[Rule]:
        """Every constraint."""
        for table in self.tables:
            yield from table.rules
            yield from self.inclusions_of(table.name)


def contract_of(
    snapshot: Snapshot,
    name: str,
    *,
    everything: bool = False,
    tables: Sequence[str] | None = None,
    namespace: Sequence[str] = (),
    expected: Sequence[Rule] = (),
) -> Contract:
    """What is exported of a version of a profile that is called so: of some tables or all, rules
    that are expected and hold, and besides the few constraints that matter or every one that holds.
    ``namespace`` is where the tables are."""
    for each in tables or ():
        if each not in snapshot.tables:
            raise unknown_table(each, snapshot.tables)
    chosen = {each: snapshot.tables[each] for each in (tables or snapshot.tables)}
    if not chosen:
        raise InputError(f"the profile {name} has no table to export")
    references, inclusions = _contained(snapshot, chosen, everything, expected)
    return Contract(
        name,
        snapshot.version,
        snapshot.options["nulls"],
        snapshot.options["inclusion_nulls"],
        tuple(_table(snapshot, each, references, everything, expected) for each in chosen.values()),
        tuple(references),
        tuple(inclusions),
        tuple(namespace),
    )


def _contained(
    snapshot: Snapshot,
    tables: dict[str, TableSnapshot],
    everything: bool,
    expected: Sequence[Rule],
) -> tuple[list[ForeignKey], list[InclusionDependency]]:
    """The foreign keys between the tables, those that are expected and the likeliest first; and
    the other inclusions."""
    inclusions = snapshot.inclusions

    def inside(each: ForeignKey | InclusionDependency) -> bool:
        return {each.dependent[0].table, each.referenced[0].table} <= {*tables}

    wanted = [each for each in expected if isinstance(each, InclusionDependency) and inside(each)]
    meant = {each.sides for each in wanted}
    certain = [ForeignKey(*each.sides, 1.0) for each in wanted if _is_key(each, tables, expected)]
    plain = [each for each in wanted if not _is_key(each, tables, expected)]
    if inclusions is None:
        return certain, plain
    holding = [
        each
        for each in inclusions.foreign_keys(1.0)
        if each.coverage == 1 and inside(each) and (each.dependent, each.referenced) not in meant
    ]
    if everything:
        known = {(each.dependent, each.referenced) for each in holding}
        others = [each for each in inclusions.dependencies(1.0) if inside(each)]
        rest = [each for each in others if each.sides not in known | meant]
        return [*certain, *holding], [*plain, *rest]
    # Of several keys that contain a column at most one is meant.
    likeliest: dict[object, ForeignKey] = {each.dependent: each for each in certain}
    for each in holding:
        if each.score >= _LIKELY:
            likeliest.setdefault(each.dependent, each)
    return [*likeliest.values()], plain


def _is_key(
    inclusion: InclusionDependency, tables: dict[str, TableSnapshot], expected: Sequence[Rule]
) -> bool:
    """Whether an inclusion lies in a key, so that it is a foreign key."""
    table = tables[inclusion.referenced[0].table]
    known = [] if table.duplicates else [frozenset(key.columns) for key in table.keys]
    expected_keys = [
        each for each in expected if isinstance(each, Key) and each.table == table.name
    ]
    columns = frozenset(each.column for each in inclusion.referenced)
    return columns in {*known, *(frozenset(key.columns) for key in expected_keys)}


def _table(
    snapshot: Snapshot,
    table: TableSnapshot,
    references: Sequence[ForeignKey],
    everything: bool,
    expected: Sequence[Rule],
) -> TableContract:
    from holdfast.kinds.ranking import ranked

    mine = [
        each
        for each in expected
        if not isinstance(each, InclusionDependency) and each.table == table.name
    ]
    by_kind = ranked(snapshot, [table.name])[table.name].kinds
    best = [each for kind in by_kind.values() for each in kind]
    # One that follows from others says nothing beside them.
    keys = [each.constraint for each in best if isinstance(each.constraint, Key)]
    cover = [each.constraint for each in best if not each.implied_by]
    dependencies = [each for each in cover if isinstance(each, FunctionalDependency)]
    rules = [each for each in cover if isinstance(each, DenialConstraint)]
    if everything:
        keys = [*keys, *(key for key in table.keys if key not in keys and not table.duplicates)]
        dependencies = [each for each in table.functional_dependencies or () if not each.error]
        rules = [each for each in table.found.get("dcs") or () if not each.error]
    else:
        referenced = {
            frozenset(a.column for a in each.referenced)
            for each in references
            if each.referenced[0].table == table.name
        }
        few = keys[:_KEYS]
        keys = [key for key in keys if key in few or frozenset(key.columns) in referenced]
        dependencies, rules = dependencies[:_RULES], rules[:_RULES]
    expected_keys = [each for each in mine if isinstance(each, Key)]
    expected_fds = [each for each in mine if isinstance(each, FunctionalDependency)]
    expected_rules = [each for each in mine if isinstance(each, DenialConstraint)]
    return TableContract(
        table.name,
        _columns(table, {each.column for each in mine if isinstance(each, NotNull)}),
        table.rows,
        tuple(dict.fromkeys([*expected_keys, *keys])),
        tuple(dict.fromkeys([*expected_fds, *dependencies])),
        tuple(dict.fromkeys([*expected_rules, *rules])),
    )


def _columns(table: TableSnapshot, expected: set[str]) -> tuple[Column, ...]:
    """The columns, with those that are expected to be never null, or are; without a row the latter
    says nothing."""
    without_nulls = {each.name for each in table.facts if each.nulls == 0} if table.rows else set()
    present = expected | without_nulls
    pairs = zip(table.columns, table.types, strict=True)
    return tuple(Column(name, kind, name in present) for name, kind in pairs)
