"""What can be said of one rule: whether it holds, since when, what violates it, what is near it."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from typing import Any

from holdfast.model.constraints import Constraint, Row
from holdfast.model.near import NearRule
from holdfast.model.ranking import Stability
from holdfast.model.records import ADDED, INLINE, Serializable
from holdfast.model.whole_tables import Finding

EXAMPLES = 3
"""Groups of violating rows that are shown unless told otherwise."""

EXAMPLE_ROWS = 4
"""Rows of a group that are shown."""

NEAREST = 5
"""Rules that hold instead, or are enough, that are told at most; the shortest."""


@dataclass(frozen=True)
class Removal(Serializable):
    """How many rows would have to go at least, for the rule to hold (g3 times the rows): exact
    where both numbers are the same, else bounds."""

    FORM = ("at_least", "at_most", "exact")

    at_least: int
    at_most: int

    @property
    def exact(self) -> bool:
        """Whether the number is known."""
        return self.at_least == self.at_most


@dataclass(frozen=True)
class Example(Serializable):
    """Rows that violate a rule together: a few of so many."""

    rows: int
    shown: tuple[Row, ...]


@dataclass(frozen=True)
class Violations(Serializable):
    """What violates a rule, in numbers and examples; None: it was too much to count."""

    FORM = (
        *("rows", "groups", "pairs", "of_pairs", "error", "removal", "tested", "coverage"),
        *("found", "examples"),
    )

    rows: int | None  # that take part in a violation
    groups: int | None = None  # of rows that agree on the left side; for an inclusion, values
    pairs: int | None = None  # of rows; those of a denial constraint have an order
    of_pairs: int | None = None  # all there are; None: single rows violate it
    removal: Removal | None = None
    examples: tuple[Example, ...] = ()
    tested: int | None = None  # of a rule that holds: pairs (of an inclusion, rows) that try it
    coverage: float | None = field(default=None, metadata=ADDED)  # of an inclusion
    of_rows: int | None = None  # of a rule about single rows, all there are
    found: Finding | None = field(default=None, metadata=ADDED)
    """Of a rule about a whole table, which no row violates by itself."""

    @property
    def any(self) -> bool:
        """Whether there are some. Where pairs are too many to be counted, an example shows it."""
        wrong = self.found is not None and self.found.wrong
        return bool(self.examples or self.rows or self.pairs or wrong)

    @property
    def error(self) -> float | None:
        """The share of pairs that violate the rule (g1); of a rule about single rows, of rows."""
        if self.of_rows is not None and self.rows is not None:
            return self.rows / self.of_rows if self.of_rows else 0.0
        if self.pairs is None or self.of_pairs is None:
            return None
        return self.pairs / self.of_pairs if self.of_pairs else 0.0


@dataclass(frozen=True)
class Nearby(Serializable):
    """Rules that are near one: what holds in place of one that does not, and what is enough for one
    that does."""

    FORM = ("instead", "enough", "minimal")

    instead: tuple[Constraint, ...] = ()  # of the shortest extensions
    enough: tuple[Constraint, ...] = ()  # parts of the rule, or rules that imply it
    minimal: bool | None = (
        None  # whether nothing less is enough; None: it does not hold, or unknown
    )
    notes: tuple[str, ...] = ()  # what is not known, and why


@dataclass(frozen=True)
class Stretch(Serializable):
    """Versions in which a rule held, or did not; None: that is not known any more, or was never
    looked for."""

    first: int
    last: int
    holds: bool | None


@dataclass(frozen=True)
class ChangedRows(Serializable):
    """How many rows of a table a batch changed."""

    table: str
    inserted: int = 0
    deleted: int = 0
    updated: int = 0

    @property
    def number(self) -> int:
        """All of them."""
        return self.inserted + self.deleted + self.updated


@dataclass(frozen=True)
class Event(Serializable):
    """The version in which something happened to a rule, and the batch that did it."""

    version: int
    created: str
    batch_id: str | None = None
    tables: tuple[ChangedRows, ...] = ()  # none: the first profile, or kinds that were added


@dataclass(frozen=True)
class Past(Serializable):
    """How a rule stood in the versions of a profile."""

    FORM = ("since", "at_least", "broke", "stretches", "stability")

    stretches: tuple[Stretch, ...] = ()  # oldest first
    since: Event | None = None  # from when on it has been as it is now; None: not known
    at_least: bool = False  # whether it may have been so before: what was then is not known
    broke: int = 0  # how often
    stability: Stability | None = None  # None: it does not hold, or its past is not known


def masked(examples: Iterable[Example]) -> tuple[Example, ...]:
    """The same without their values: in each column numbers stand for them, the same for equal
    ones and in their order where they have one. A null stays one.

    >>> rows = ({"city": "Rome", "age": 31}, {"city": "Oslo", "age": None})
    >>> masked([Example(2, rows)])[0].shown
    ({'city': 'value 2', 'age': 'value 1'}, {'city': 'value 1', 'age': None})
    """
    examples = tuple(examples)
    values: dict[str, set[str]] = {}
    for example in examples:
        for row in example.shown:
            for name, value in row.items():
                values.setdefault(name, set()).update([] if value is None else [_plain(value)])
    numbers = {
        name: {text: f"value {at}" for at, text in enumerate(sorted(some, key=_order), 1)}
        for name, some in values.items()
    }
    return tuple(
        Example(
            example.rows,
            tuple(
                {name: None if v is None else numbers[name][_plain(v)] for name, v in row.items()}
                for row in example.shown
            ),
        )
        for example in examples
    )


def _plain(value: Any) -> str:
    """The same text for equal values."""
    return json.dumps(_unsigned(value), sort_keys=True)


def _unsigned(value: Any) -> Any:
    """A value in which no zero has a sign: -0.0 equals 0.0."""
    if isinstance(value, float):
        return value + 0.0
    if isinstance(value, list):
        return [_unsigned(each) for each in value]
    if isinstance(value, dict):
        return {name: _unsigned(each) for name, each in value.items()}
    return value


def _order(text: str) -> tuple[int, Decimal, str]:
    """Numbers by their size, also decimals, which are text; then NaN, then everything else, as
    text."""
    try:
        number = Decimal(str(json.loads(text)))
    except InvalidOperation:
        return 2, Decimal(0), text
    return (1, Decimal(0), text) if number.is_nan() else (0, number, text)


@dataclass(frozen=True)
class Explanation(Serializable):
    """All that a profile can say of one rule."""

    FORM = (
        *(("rule", "text"), "kind", "table", ("constraint", "rule"), "version", "holds", "rows"),
        *("violations", "same", "apart", ("history", "past")),
        *("near", "listed_since", (INLINE, "nearby"), ("notes", "nearby.notes")),
    )

    rule: Constraint
    kind: str  # the name that JSON gives it
    table: str  # that it is about; of an inclusion, the one on the left
    version: int
    holds: bool
    rows: int  # of the table
    violations: Violations
    past: Past = field(default_factory=Past)
    nearby: Nearby = field(default_factory=Nearby)
    same: tuple[str, ...] = ()  # the columns in which violating rows agree
    apart: tuple[str, ...] = ()  # the columns that decide beside them
    unit: str = "group"  # what rows that violate it together are: a group, or a value
    named_rows: bool = False  # whether the rows of an example are t and s
    near: NearRule | None = None  # what the profile keeps of it as a rule that nearly holds
    listed_since: int | None = None  # the version from which on it does

    def __str__(self) -> str:
        return f"{self.rule} {'holds' if self.holds else 'does not hold'}"

    def __repr__(self) -> str:
        return f"<Explanation: {self}, version {self.version}>"

    @property
    def text(self) -> str:
        """The rule as the grammar writes it."""
        return str(self.rule)
