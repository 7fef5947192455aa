"""What is known of the values of a column."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from holdfast.model.records import ADDED, Serializable


@dataclass(frozen=True)
class ColumnFacts(Serializable):
    """A column of a table: its type, and what its values are like.

    ``distinct`` does not count nulls; ``estimated``: it is not exact. ``minimum`` and ``maximum``
    are as JSON output shows values, None where there are none, or none with an order. ``values``
    are those of a column with few, as rules write them, with their numbers of rows; ``pattern`` is
    the one that all of its texts match, if their shapes differ in lengths at most.
    """

    FORM = (
        *("name", "type", "nulls", "distinct", "estimated", "minimum", "maximum"),
        *("values", "pattern"),
    )

    table: str
    name: str
    type: str
    nulls: int | None = None  # None: not known, in a profile of an earlier Holdfast
    distinct: int | None = None
    estimated: bool = False
    minimum: Any = None
    maximum: Any = None
    at_minimum: int | None = None  # rows that have the lowest value; None: not known
    values: dict[str, int] | None = field(default=None, metadata=ADDED)  # None: many, or not told
    pattern: str | None = field(default=None, metadata=ADDED)
