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
    error: float | None = None  # the share of row pairs that agree on it, where pairs are counted

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
