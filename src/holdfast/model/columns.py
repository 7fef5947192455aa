"""What is known of the values of a column."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from holdfast.model.records import Serializable


@dataclass(frozen=True)
class ColumnFacts(Serializable):
    """A column of a table: its type, and what its values are like.

    ``distinct`` does not count nulls; ``estimated``: it is not exact. ``minimum`` and ``maximum``
    are as JSON output shows values, None where there are none, or none with an order.
    """

    FORM = ("name", "type", "nulls", "distinct", "estimated", "minimum", "maximum")

    table: str
    name: str
    type: str
    nulls: int | None = None  # None: not known, in a profile of an earlier Holdfast
    distinct: int | None = None
    estimated: bool = False
    minimum: Any = None
    maximum: Any = None
    at_minimum: int | None = None  # rows that have the lowest value; None: not known
