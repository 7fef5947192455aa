"""Inclusion dependencies and foreign keys as values: columns whose values occur in others."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from holdfast.model.errors import InputError
from holdfast.model.markup import Written
from holdfast.model.names import quoted
from holdfast.model.records import Serializable, form_of_field

HOLDS, REFUTED, EMPTY, UNKNOWN = range(4)
"""What was found of a candidate for an inclusion of several columns; empty: the left side has no
tuple without a null. Unknown: there are too many candidates to count all."""


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


Attributes = tuple[Attribute, ...]

_PAIRS = form_of_field(
    write=lambda attributes: [[attribute.table, attribute.column] for attribute in attributes],
    read=lambda form: tuple(Attribute(table, column) for table, column in form),
)
"""The form of attributes of any tables."""

_SIDE = form_of_field(
    write=lambda side: {"table": side[0].table, "columns": [each.column for each in side]},
    read=lambda form: tuple(Attribute(form["table"], column) for column in form["columns"]),
)
"""The form of attributes of one table."""


@dataclass(frozen=True)
class Cluster(Serializable):
    """Attributes that have some values in common, and no other attribute has them."""

    attributes: Attributes = field(metadata=_PAIRS)
    values: int  # how many

    def __str__(self) -> str:
        return ", ".join(map(str, self.attributes))

    def __repr__(self) -> str:
        return f"<Cluster {self}, values {self.values:,}>"


@dataclass(frozen=True)
class Reference(Written, Serializable):
    """Columns of a table whose values are, or should be, among those of others; the columns of a
    side are of one table."""

    dependent: Attributes = field(metadata=_SIDE)
    referenced: Attributes = field(metadata=_SIDE)

    def __str__(self) -> str:
        return f"{_side(self.dependent)} in {self.referenced_side}"

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

    @property
    def places(self) -> tuple[tuple[str, str], ...]:
        """The columns of both sides."""
        return tuple((each.table, each.column) for side in self.sides for each in side)

    @property
    def referenced_side(self) -> str:
        """The referenced columns, as they are written."""
        return _side(self.referenced)

    @property
    def sides(self) -> tuple[Attributes, Attributes]:
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


def _side(attributes: Attributes) -> str:
    columns = ", ".join(quoted(each.column) for each in attributes)
    return f"{quoted(attributes[0].table)}({columns})"
