"""Rules about the values of one column: a domain, bounds, and a pattern. A null is no value, and
passes."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.model.constraints import OfTable
from holdfast.model.errors import InputError
from holdfast.model.literals import TEXT, written
from holdfast.model.names import backticked, quoted

ROWS = "rows"
"""The word for the number of rows of a table, where a column of that name goes in backticks."""

BETWEEN, MATCHES = "between", "matches"
"""Words behind a column, where they are words alone."""

SYMBOLS = {"at_least": ">=", "above": ">", "at_most": "<=", "below": "<"}
"""The operator of each bound."""


@dataclass(frozen=True)
class Domain(OfTable):
    """A column whose values are among some.

    >>> str(Domain("orders", "status", "text", ("F", "O")))
    "orders: status in ('F', 'O')"
    """

    FORM = ("column", "type", "values")
    tells_values = True

    column: str
    type: str  # of the literals: text, number or boolean
    values: tuple[str, ...]

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"{quoted(self.column)} in ({self.listed})"

    @property
    def listed(self) -> str:
        """Its values, as they are written."""
        return ", ".join(written(self.type, value) for value in self.values)

    @property
    def involved(self) -> tuple[str, ...]:
        """Its column."""
        return (self.column,)


@dataclass(frozen=True)
class Bounds(OfTable):
    """A column whose values have a lowest, or a highest, or lie between two.

    >>> str(Bounds("orders", "amount", "number", above="0"))
    'orders: amount > 0'
    >>> Bounds("orders", "day", "text", at_least="2026-01-01", at_most="2026-12-31").body
    "day between '2026-01-01' and '2026-12-31'"
    """

    FORM = ("column", "type", "at_least", "above", "at_most", "below")
    tells_values = True

    column: str
    type: str  # of the literals: text, which is how times are written, or number
    at_least: str | None = None
    above: str | None = None
    at_most: str | None = None
    below: str | None = None

    def __post_init__(self) -> None:
        if len(self.given) != 1 and {*self.given} != {"at_least", "at_most"}:
            raise InputError(
                f"bounds of {self.column!r}: give at_least and at_most together, or one of "
                f"{', '.join(SYMBOLS)}"
            )

    @property
    def given(self) -> dict[str, str]:
        """The bounds that there are, by their names."""
        every = {name: getattr(self, name) for name in SYMBOLS}
        return {name: value for name, value in every.items() if value is not None}

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        is_word = self.column.lower() == ROWS
        column = backticked(self.column) if is_word else quoted(self.column)
        values = {name: written(self.type, value) for name, value in self.given.items()}
        if len(values) > 1:
            return f"{column} between {values['at_least']} and {values['at_most']}"
        return " ".join([column, *(f"{SYMBOLS[name]} {value}" for name, value in values.items())])

    @property
    def involved(self) -> tuple[str, ...]:
        """Its column."""
        return (self.column,)


@dataclass(frozen=True)
class Pattern(OfTable):
    """A column of texts that match a regular expression (RE2), each as a whole.

    >>> str(Pattern("orders", "code", "[A-Z]{2}-[0-9]+"))
    "orders: code matches '[A-Z]{2}-[0-9]+'"
    """

    FORM = ("column", "pattern")
    tells_values = True

    column: str
    pattern: str

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"{quoted(self.column)} {MATCHES} {written(TEXT, self.pattern)}"

    @property
    def involved(self) -> tuple[str, ...]:
        """Its column."""
        return (self.column,)


ValueRule = Domain | Bounds | Pattern
"""A rule about the values of one column."""
