"""Functional dependencies as a version's files have them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import overload

import pyarrow as pa

from holdfast.kinds.stored import columns_of, dependencies_and_keys, named
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.results import Tabular

_REPR_SHOWN = 3
"""How many of a long list its repr shows."""


class Dependencies(Sequence[FunctionalDependency], Tabular):
    """Functional dependencies, shortest first, built one by one: there may be a
    million of them."""

    def __init__(self, kept: pa.Table, table: str, names: list[str]) -> None:
        self._kept, _ = dependencies_and_keys(kept)
        self._table = table
        self._names = names

    def _listed(self) -> tuple[type, Sequence[FunctionalDependency]]:
        return FunctionalDependency, self

    def __len__(self) -> int:
        return int(self._kept.num_rows)

    def __repr__(self) -> str:
        shown = [*map(repr, self[:_REPR_SHOWN]), *(["…"] if len(self) > _REPR_SHOWN else [])]
        return f"<Dependencies, {len(self):,} in all: [{', '.join(shown)}]>"

    @overload
    def __getitem__(self, at: int) -> FunctionalDependency: ...

    @overload
    def __getitem__(self, at: slice) -> list[FunctionalDependency]: ...

    def __getitem__(self, at: int | slice) -> FunctionalDependency | list[FunctionalDependency]:
        if isinstance(at, int):
            place = range(len(self))[at]
            return self[place : place + 1][0]
        start, stop, step = at.indices(len(self))
        some = self._kept.slice(start, max(0, stop - start))
        dependencies = [
            FunctionalDependency(self._table, columns, self._names[right], error)
            for columns, right, error in zip(
                columns_of(some.column("mask"), self._names),
                some.column("rhs").to_pylist(),
                some.column("error").to_pylist(),
                strict=True,
            )
        ]
        return dependencies[::step]

    def without(self, others: Dependencies) -> tuple[FunctionalDependency, ...]:
        """Those that hold, and are not among the others that do; in the same order."""
        known = set(others._holding())
        new = [each for each in self._holding() if each not in known]
        lhs = named([mask for mask, _ in new], self._names)
        pairs = zip(lhs, (self._names[rhs] for _, rhs in new), strict=True)
        return tuple(FunctionalDependency(self._table, left, right) for left, right in pairs)

    def _holding(self) -> list[tuple[bytes, int]]:
        """Left- and right-hand sides as a file holds them, of those without error."""
        columns = [self._kept.column(name).to_pylist() for name in ("mask", "rhs", "error")]
        return [(mask, right) for mask, right, error in zip(*columns, strict=True) if not error]

    def __iter__(self) -> Iterator[FunctionalDependency]:
        for start in range(0, len(self), 10_000):
            yield from self[start : start + 10_000]
