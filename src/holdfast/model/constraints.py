"""Constraints as values: they compare, print and know their dict form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from holdfast.model.errors import InputError

Row = dict[str, Any]

HOLDS, REFUTED, EMPTY = range(3)
"""What was found of a candidate for an inclusion of several columns; empty: the left side has no
tuple without a null."""


def quoted(name: str) -> str:
    """A column name as it is printed: in backticks where it would be unclear.

    >>> quoted("id"), quoted("first name"), quoted("a.b")
    ('id', '`first name`', '`a.b`')
    """
    if name.isidentifier():
        return name
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True)
class Key:
    """Columns on which no two rows agree, and no fewer of them would do.

    >>> str(Key(("id",))), str(Key(()))
    ('id', '{}')
    """

    columns: tuple[str, ...]
    error: float | None = None  # the share of row pairs that agree on it; None: none does

    def __str__(self) -> str:
        return ", ".join(map(quoted, self.columns)) or "{}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        form: dict[str, Any] = {"columns": list(self.columns)}
        return form if self.error is None else {**form, "error": self.error}


@dataclass(frozen=True)
class NonKey:
    """Columns on which two rows agree, and with any further column none do."""

    columns: tuple[str, ...]
    witness: tuple[Row, Row] | None = None

    def __str__(self) -> str:
        return ", ".join(map(quoted, self.columns)) or "{}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        witness = list(self.witness) if self.witness else None
        return {"columns": list(self.columns), "witness": witness}


@dataclass(frozen=True)
class FunctionalDependency:
    """Rows that agree on the left side agree on the right, and no fewer columns on the left do.

    >>> str(FunctionalDependency(("zip",), "city"))
    'zip → city'
    """

    lhs: tuple[str, ...]
    rhs: str
    error: float = 0.0  # the share of row pairs that violate it

    def __str__(self) -> str:
        left = ", ".join(map(quoted, self.lhs)) or "{}"
        return f"{left} → {quoted(self.rhs)}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"lhs": list(self.lhs), "rhs": self.rhs, "error": self.error}


@dataclass(frozen=True)
class AgreeSet:
    """The columns in which some pairs of rows agree, and no others, with how many pairs do."""

    columns: tuple[str, ...]
    pairs: int

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"columns": list(self.columns), "pairs": self.pairs}


Sets = TypeVar("Sets", Key, NonKey, AgreeSet)


def shortest_first(sets: Iterable[Sets], columns: Sequence[str]) -> list[Sets]:
    """By their number of columns, and those alike in table order.

    >>> [str(key) for key in shortest_first([Key(("b", "a")), Key(("b",)), Key(("a",))], "ab")]
    ['a', 'b', 'b, a']
    """
    place = {name: i for i, name in enumerate(columns)}
    return sorted(sets, key=lambda each: (len(each.columns), [place[c] for c in each.columns]))


@dataclass(frozen=True)
class Attribute:
    """A column of a table, as one among those of all tables.

    >>> str(Attribute("orders", "customer id")), str(Attribute("a.b", "c`d"))
    ('orders.customer id', '`a.b`.`c``d`')
    """

    table: str
    column: str

    def __str__(self) -> str:
        return f"{_dotted(self.table)}.{_dotted(self.column)}"

    @staticmethod
    def parse(text: str) -> Attribute:
        """The attribute that prints like this.

        >>> Attribute.parse("`a.b`.c")
        Attribute(table='a.b', column='c')
        """
        found = re.fullmatch(r"(`(?:[^`]|``)+`|[^`.]+)\.(`(?:[^`]|``)+`|[^`.]+)", text, re.DOTALL)
        if found is None:
            raise InputError(
                f"{text!r} is not a column of a table; write table.column, and a name that has a "
                "dot or a backtick in backticks"
            )
        return Attribute(*(_undotted(name) for name in found.groups()))


def _dotted(name: str) -> str:
    if "." in name or "`" in name:
        return "`" + name.replace("`", "``") + "`"
    return name


def _undotted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


@dataclass(frozen=True)
class Cluster:
    """Attributes that have some values in common, and no other attribute has them."""

    attributes: tuple[Attribute, ...]
    values: int  # how many

    def __str__(self) -> str:
        return ", ".join(map(str, self.attributes))

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"attributes": list(map(str, self.attributes)), "values": self.values}


@dataclass(frozen=True)
class InclusionDependency:
    """Every value of the dependent columns occurs in the referenced ones, or a share of them does.

    >>> str(InclusionDependency((Attribute("orders", "customer"),), (Attribute("people", "id"),)))
    'orders.customer ⊆ people.id'
    """

    dependent: tuple[Attribute, ...]
    referenced: tuple[Attribute, ...]
    coverage: float = 1.0  # the share of the dependent's distinct values

    def __str__(self) -> str:
        return f"{_side(self.dependent)} ⊆ {_side(self.referenced)}"

    @property
    def sides(self) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """What it is about, whatever its coverage."""
        return self.dependent, self.referenced

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**_sides(self.dependent, self.referenced), "coverage": self.coverage}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> InclusionDependency:
        """The value that a commit stored."""
        dependent, referenced = (
            tuple(map(Attribute.parse, form[side])) for side in ("dependent", "referenced")
        )
        return InclusionDependency(dependent, referenced, form["coverage"])


@dataclass(frozen=True)
class ForeignKey:
    """An inclusion in a minimal key of another table, with how likely it is meant: 0 to 1."""

    dependent: tuple[Attribute, ...]
    referenced: tuple[Attribute, ...]
    score: float

    def __str__(self) -> str:
        return f"{_side(self.dependent)} → {_side(self.referenced)}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**_sides(self.dependent, self.referenced), "score": self.score}


def _side(attributes: tuple[Attribute, ...]) -> str:
    shown = ", ".join(map(str, attributes))
    return shown if len(attributes) == 1 else f"({shown})"


def _sides(dependent: tuple[Attribute, ...], referenced: tuple[Attribute, ...]) -> dict[str, Any]:
    return {"dependent": list(map(str, dependent)), "referenced": list(map(str, referenced))}
