"""Functional dependencies as a version's files have them."""

from __future__ import annotations

import pyarrow as pa

from holdfast.kinds.sequences import ConstraintSequence
from holdfast.kinds.stored import columns_of, dependencies_and_keys, named
from holdfast.model.constraints import FunctionalDependency


class Dependencies(ConstraintSequence[FunctionalDependency]):
    """Functional dependencies, shortest first."""

    of = FunctionalDependency

    def __init__(self, kept: pa.Table, table: str, names: list[str]) -> None:
        self._kept, _ = dependencies_and_keys(kept)
        self._table = table
        self._names = names

    def __len__(self) -> int:
        return int(self._kept.num_rows)

    def block(self, part: slice) -> list[FunctionalDependency]:
        """Some of them."""
        start, stop, step = part.indices(len(self))
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
