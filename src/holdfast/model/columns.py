"""What is known of the values of a column."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class ColumnFacts:
    """A column of a table: its type, and what its values are like.

    ``distinct`` does not count nulls; ``estimated``: it is not exact. ``minimum`` and ``maximum``
    are as JSON output shows values, None where there are none, or none with an order.
    """

    table: str
    name: str
    type: str
    nulls: int | None = None  # None: not known, in a profile of an earlier Holdfast
    distinct: int | None = None
    estimated: bool = False
    minimum: Any = None
    maximum: Any = None

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        form = asdict(self)
        del form["table"]
        return form
