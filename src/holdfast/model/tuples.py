"""Columns whose tuples are counted, and what asks for it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol


@dataclass(frozen=True)
class TupleSide:
    """Columns of a table whose tuples are counted."""

    table: str
    columns: tuple[str, ...]
    nulls: bool  # whether a null is a value; else a tuple with one is left out
    of: str | None = None  # the rule whose left side it is, of an inclusion
    grouped: bool = False  # whether removal and strength follow from its counts
    rhs: str | None = None  # a column whose values are counted within groups that agree on the rest

    @property
    def lhs(self) -> TupleSide | None:
        """The side that it is within; None: it stands alone."""
        return None if self.rhs is None else replace(self, rhs=None)


class Countable(Protocol):
    """What follows from counted tuples."""

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """The columns whose tuples are counted for it."""

    @property
    def references(self) -> tuple[tuple[TupleSide, TupleSide], ...]:
        """Sides of which it is counted how much one has of the other."""


@dataclass(frozen=True)
class Reference:
    """How much one side has of the other."""

    left: TupleSide
    right: TupleSide

    @property
    def sides(self) -> tuple[TupleSide, TupleSide]:
        """What is counted."""
        return self.left, self.right

    @property
    def references(self) -> tuple[tuple[TupleSide, TupleSide], ...]:
        """How much of the left side the right side has."""
        return (self.sides,)
