"""Constraints of a table that are made when they are asked for: there may be a million of them."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import ClassVar, TypeVar, overload

from holdfast.model.constraints import Constraint
from holdfast.model.results import Tabular

C = TypeVar("C", bound=Constraint)

_REPR_SHOWN = 3
"""How many of a long list its repr shows."""

_BLOCK = 10_000
"""How many are made at a time."""


class ConstraintSequence(Sequence[C], Tabular):
    """A sequence of constraints, made in blocks."""

    of: ClassVar[type]
    """The class of the constraints."""

    @abstractmethod
    def block(self, part: slice) -> list[C]:
        """Some of them."""

    def _listed(self) -> tuple[type, Sequence[C]]:
        return self.of, self

    def __repr__(self) -> str:
        first = [*map(repr, self[:_REPR_SHOWN]), *(["…"] if len(self) > _REPR_SHOWN else [])]
        return f"<{type(self).__name__}, {len(self):,} in all: [{', '.join(first)}]>"

    @overload
    def __getitem__(self, at: int) -> C: ...

    @overload
    def __getitem__(self, at: slice) -> list[C]: ...

    def __getitem__(self, at: int | slice) -> C | list[C]:
        if isinstance(at, slice):
            return self.block(at)
        place = range(len(self))[at]
        return self.block(slice(place, place + 1))[0]

    def __iter__(self) -> Iterator[C]:
        for start in range(0, len(self), _BLOCK):
            yield from self.block(slice(start, start + _BLOCK))
