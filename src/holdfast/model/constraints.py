"""Constraints as values: they compare, print and know their dict form.

Here are keys, functional dependencies and columns without nulls; ``denial_constraints.py`` and
``inclusion_dependencies.py`` have the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

from holdfast.model.markup import Written, rows
from holdfast.model.names import listed, quoted
from holdfast.model.records import ADDED, Serializable

Row = dict[str, Any]


class Constraint(Protocol):
    """What every constraint can do; ``str`` gives the form that the grammar parses."""

    @property
    def body(self) -> str:
        """The form under a heading that names the table."""

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it is about; the rows that violate it are those of the first."""

    @property
    def involved(self) -> tuple[str, ...]:
        """The columns that it is about, for rows that show it: first those that have to agree."""

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """All columns that it is about, each with its table."""

    @property
    def tells_values(self) -> bool:
        """Whether it is written with values of cells."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""


@dataclass(frozen=True)
class OfTable(Written, Serializable):
    """A constraint about one table, under whose name its JSON form stands."""

    table: str

    def __str__(self) -> str:
        return f"{quoted(self.table)}: {self.body}"

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self}{error_text(getattr(self, 'error', None))}>"

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        raise NotImplementedError

    @property
    def tables(self) -> tuple[str, ...]:
        """The table that it is about."""
        return (self.table,)

    @property
    def involved(self) -> tuple[str, ...]:
        """The columns that it is about."""
        raise NotImplementedError

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The same, with the table."""
        return tuple((self.table, column) for column in self.involved)


@dataclass(frozen=True, repr=False)
class Key(OfTable):
    """Columns on which no two rows agree, and no fewer of them would do.

    >>> str(Key("orders", ("id",))), str(Key("orders", ())), Key("orders", ("a", "b")).body
    ('orders: key(id)', 'orders: key()', 'key(a, b)')
    """

    FORM = ("columns", "error")

    columns: tuple[str, ...]
    error: float | None = field(default=None, metadata=ADDED)
    """The share of row pairs that agree on it; None: none does."""

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"key({', '.join(map(quoted, self.columns))})"

    @property
    def involved(self) -> tuple[str, ...]:
        """Its columns."""
        return self.columns


@dataclass(frozen=True)
class NonKey(Written, Serializable):
    """Columns on which two rows agree, and with any further column none do."""

    FORM = ("columns", "witness")

    table: str
    columns: tuple[str, ...]
    witness: tuple[Row, Row] | None = None

    def __str__(self) -> str:
        return listed(self.columns)

    def __repr__(self) -> str:
        return f"<NonKey {self}>"

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (rows(self.witness, self.columns) if self.witness else "")


@dataclass(frozen=True, repr=False)
class FunctionalDependency(OfTable):
    """Rows that agree on the left side agree on the right, and no fewer columns on the left do.

    >>> str(FunctionalDependency("people", ("zip",), "city"))
    'people: zip -> city'
    >>> FunctionalDependency("people", (), "planet").body
    '{} -> planet'
    """

    FORM = ("lhs", "rhs", "error")

    lhs: tuple[str, ...]
    rhs: str
    error: float = 0.0  # the share of row pairs that violate it

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"{listed(self.lhs)} -> {quoted(self.rhs)}"

    @property
    def involved(self) -> tuple[str, ...]:
        """Both sides."""
        return (*self.lhs, self.rhs)


@dataclass(frozen=True)
class NotNull(OfTable):
    """A column that has a value in every row.

    >>> str(NotNull("orders", "id"))
    'orders: id not null'
    """

    FORM = ("column",)

    column: str

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"{quoted(self.column)} not null"

    @property
    def involved(self) -> tuple[str, ...]:
        """Its column."""
        return (self.column,)


@dataclass(frozen=True)
class AgreeSet(Serializable):
    """The columns in which some pairs of rows agree, and no others, with how many pairs do."""

    columns: tuple[str, ...]
    pairs: int

    def __repr__(self) -> str:
        return f"<AgreeSet {listed(self.columns)}, pairs {self.pairs:,}>"


Sets = TypeVar("Sets", Key, NonKey, AgreeSet)


def shortest_first(sets: Iterable[Sets], columns: Sequence[str]) -> list[Sets]:
    """By their number of columns, and those alike in table order.

    >>> keys = [Key("t", ("b", "a")), Key("t", ("b",)), Key("t", ("a",))]
    >>> [key.body for key in shortest_first(keys, "ab")]
    ['key(a)', 'key(b)', 'key(b, a)']
    """
    place = {name: i for i, name in enumerate(columns)}
    return sorted(sets, key=lambda each: (len(each.columns), [place[c] for c in each.columns]))


def error_text(share: float | None) -> str:
    """The error of a constraint that some rows violate, as its repr has it."""
    return f", error {share:.3g}" if share else ""
