"""Rules about a table as a whole: how many rows it has, and how new its newest value is. No row
breaks one by itself."""

from __future__ import annotations

from dataclasses import dataclass, replace

from holdfast.model.column_values import BETWEEN, ROWS
from holdfast.model.constraints import OfTable
from holdfast.model.errors import InputError
from holdfast.model.names import quoted
from holdfast.model.records import Serializable

NEWEST, WITHIN = "newest", "within"
"""Words that are some only where they stand: before a column in parentheses, and behind it."""

UNITS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60}
"""Units of time by their words, in seconds."""


@dataclass(frozen=True, repr=False)
class RowCount(OfTable):
    """A table with so many rows at least, or at most, or both.

    >>> str(RowCount("orders", at_least=1000)), RowCount("orders", 1, 5).body
    ('orders: rows >= 1000', 'rows between 1 and 5')
    """

    FORM = ("at_least", "at_most")

    at_least: int | None = None
    at_most: int | None = None

    def __post_init__(self) -> None:
        if self.at_least is None and self.at_most is None:
            raise InputError(f"rows of {self.table!r}: give at_least, at_most, or both")
        if any(number is not None and number < 0 for number in (self.at_least, self.at_most)):
            raise InputError(f"rows of {self.table!r}: a table has 0 rows or more")
        if None not in (self.at_least, self.at_most) and self.wrong(self.at_least or 0):
            raise InputError(f"{self}: no number lies between them; the smaller one comes first")

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        if self.at_most is None:
            return f"{ROWS} >= {self.at_least}"
        if self.at_least is None:
            return f"{ROWS} <= {self.at_most}"
        if self.at_least == self.at_most:
            return f"{ROWS} = {self.at_most}"
        return f"{ROWS} {BETWEEN} {self.at_least} and {self.at_most}"

    @property
    def involved(self) -> tuple[str, ...]:
        """No column."""
        return ()

    def wrong(self, rows: int) -> int:
        """How many rows are too few or too many.

        >>> RowCount("orders", 10, 20).wrong(7), RowCount("orders", 10, 20).wrong(20)
        (3, 0)
        """
        too_few = 0 if self.at_least is None else self.at_least - rows
        too_many = 0 if self.at_most is None else rows - self.at_most
        return max(too_few, too_many, 0)


@dataclass(frozen=True, repr=False)
class Newest(OfTable):
    """A column of dates or timestamps whose newest value was, when the rows last changed, at most
    so old.

    >>> str(Newest("orders", "day", 2, "days")), Newest("orders", "day", 1, "hours").body
    ('orders: newest(day) within 2 days', 'newest(day) within 1 hour')
    """

    FORM = ("column", "within", "unit")

    column: str
    within: int
    unit: str

    def __post_init__(self) -> None:
        if self.unit not in UNITS or self.within < 1:
            raise InputError(
                f"the newest {self.column!r} is within 1 or more {', '.join(UNITS)}, "
                f"not {self.within} {self.unit}"
            )

    @staticmethod
    def of(table: str, column: str, number: int, unit: str) -> Newest:
        """A rule in the largest unit that says the same.

        >>> Newest.of("orders", "day", 48, "hours").body
        'newest(day) within 2 days'
        """
        seconds = number * UNITS[unit]
        larger = next(name for name, length in UNITS.items() if seconds % length == 0)
        return Newest(table, column, seconds // UNITS[larger], larger)

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"{NEWEST}({quoted(self.column)}) {WITHIN} {self.time}"

    @property
    def time(self) -> str:
        """How old the newest value may be."""
        return f"{self.within} {self.unit if self.within > 1 else self.unit[:-1]}"

    @property
    def seconds(self) -> int:
        """The same in seconds."""
        return self.within * UNITS[self.unit]

    @property
    def involved(self) -> tuple[str, ...]:
        """Its column."""
        return (self.column,)


TableRule = RowCount | Newest
"""A rule about a table as a whole."""


@dataclass(frozen=True)
class Finding(Serializable):
    """What a rule about a whole table found there."""

    rows: int
    """The rows of the table."""

    newest: str | None = None
    """The newest value of the column that the rule is about; None: there is none."""

    moment: str | None = None
    """When the rows last changed, which that is compared with."""

    wrong: int = 0
    """Rows too few or too many; 1 where the newest value is too old, or there is none."""

    @property
    def masked(self) -> Finding:
        """The same without the value."""
        return replace(self, newest=self.newest and "value 1")
