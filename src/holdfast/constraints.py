"""Constraints as values: they compare, print and know their dict form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]


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

    def __str__(self) -> str:
        return ", ".join(map(quoted, self.columns)) or "{}"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"columns": list(self.columns)}


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
