"""Inclusion dependencies and foreign keys as values: columns whose values occur in others."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

from holdfast.model.errors import InputError
from holdfast.model.markup import Written
from holdfast.model.names import quoted

HOLDS, REFUTED, EMPTY = range(3)
"""What was found of a candidate for an inclusion of several columns; empty: the left side has no
tuple without a null."""


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
        match = re.fullmatch(r"(`(?:[^`]|``)+`|[^`.]+)\.(`(?:[^`]|``)+`|[^`.]+)", text, re.DOTALL)
        if match is None:
            raise InputError(
                f"{text!r} is not a column of a table; write table.column, and a name that has a "
                "dot or a backtick in backticks"
            )
        return Attribute(*(_undotted(name) for name in match.groups()))

    @staticmethod
    def of(given: Attribute | str) -> Attribute:
        """The attribute that is meant: one, or how it prints."""
        if isinstance(given, Attribute):
            return given
        if isinstance(given, str):
            return Attribute.parse(given)
        raise InputError(
            f"{given!r} is not a column of a table; give an Attribute, such as "
            "foreign_key.dependent[0], or text, such as 'orders.customer_id'"
        )


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

    def __repr__(self) -> str:
        return f"<Cluster {self}, values {self.values:,}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        attributes = [[each.table, each.column] for each in self.attributes]
        return {"attributes": attributes, "values": self.values}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> Cluster:
        """The value of a JSON form."""
        attributes = (Attribute(table, column) for table, column in form["attributes"])
        return Cluster(tuple(attributes), form["values"])


@dataclass(frozen=True)
class Reference(Written):
    """Columns of a table whose values are, or should be, among those of others; the columns of a
    side are of one table."""

    dependent: tuple[Attribute, ...]
    referenced: tuple[Attribute, ...]

    def __str__(self) -> str:
        return f"{_side(self.dependent)} in {_side(self.referenced)}"

    @property
    def body(self) -> str:
        """The same as the whole: it names its tables itself."""
        return str(self)

    @property
    def tables(self) -> tuple[str, ...]:
        """The dependent table and the referenced one, each once."""
        return tuple(dict.fromkeys(side[0].table for side in self.sides))

    @property
    def involved(self) -> tuple[str, ...]:
        """The dependent columns."""
        return tuple(attribute.column for attribute in self.dependent)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form: both sides."""
        return {
            name: {"table": side[0].table, "columns": [each.column for each in side]}
            for name, side in (("dependent", self.dependent), ("referenced", self.referenced))
        }

    @property
    def sides(self) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """What it is about, whatever its coverage."""
        return self.dependent, self.referenced


@dataclass(frozen=True, repr=False)
class InclusionDependency(Reference):
    """Every value of the dependent columns occurs in the referenced ones, or a share of them does.

    Of one that a change lost, the coverage is what the change left of it: None where that is not
    known (several columns), or where there are no values any more.

    >>> str(InclusionDependency((Attribute("orders", "customer"),), (Attribute("people", "id"),)))
    'orders(customer) in people(id)'
    """

    coverage: float | None = 1.0  # the share of the dependent's distinct values

    def __repr__(self) -> str:
        known = self.coverage is not None and self.coverage < 1
        partly = f", coverage {self.coverage:.6g}" if known else ""
        return f"<InclusionDependency {self}{partly}>"

    def _notes(self) -> list[str]:
        known = self.coverage is not None and self.coverage < 1
        return [f"{self.coverage:.6g} of the values"] if known else []

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**super().to_dict(), "coverage": self.coverage}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> InclusionDependency:
        """The value of a JSON form."""
        return InclusionDependency(
            _attributes(form["dependent"]), _attributes(form["referenced"]), form["coverage"]
        )


@dataclass(frozen=True, repr=False)
class ForeignKey(Reference):
    """An inclusion in a minimal key of another table, with how likely it is meant: 0 to 1."""

    score: float
    coverage: float = 1.0  # the share of the dependent's distinct values

    def __repr__(self) -> str:
        return f"<ForeignKey {self}, score {self.score:.3g}>"

    def _notes(self) -> list[str]:
        return [f"score {self.score:.3g}"]

    @property
    def inclusion(self) -> InclusionDependency:
        """The dependency alone, which can be asked for."""
        return InclusionDependency(self.dependent, self.referenced, self.coverage)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**super().to_dict(), "score": self.score, "coverage": self.coverage}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> ForeignKey:
        """The value of a JSON form."""
        return ForeignKey(
            _attributes(form["dependent"]), _attributes(form["referenced"]), form["score"]
        )


def _side(attributes: tuple[Attribute, ...]) -> str:
    columns = ", ".join(quoted(each.column) for each in attributes)
    return f"{quoted(attributes[0].table)}({columns})"


def _attributes(side: dict[str, Any]) -> tuple[Attribute, ...]:
    return tuple(Attribute(side["table"], column) for column in side["columns"])
