"""How many distinct values every two columns share, and the inclusion dependencies that follow."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.arrays import F64, I64
from holdfast.model.commits import InclusionRecord
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.store import Store
from holdfast.store.codecs import stored
from holdfast.values.overlaps import Overlaps, numbers


@dataclass(frozen=True)
class Wanted:
    """Which inclusion dependencies are reported.

    Those between attributes of one table are reported only on request, and so are those of an
    attribute without values, which all others of its family contain.
    """

    min_coverage: float = 1.0
    empty_columns: bool = False
    within_tables: bool = False


@dataclass(frozen=True)
class Pairs:
    """Dependencies of one column: the numbers of their attributes, and their coverage, which is NaN
    where there are no values."""

    dependent: I64
    referenced: I64
    coverage: F64

    @staticmethod
    def together(parts: Sequence[Pairs]) -> Pairs:
        """Several lists as one, highest coverage first."""
        dependent, referenced, coverage = (
            np.concatenate([np.empty(0, kind), *(getattr(part, name) for part in parts)])
            for name, kind in (
                ("dependent", np.int64), ("referenced", np.int64), ("coverage", np.float64)
            )
        )  # fmt: skip
        order = np.lexsort((referenced, dependent, -coverage))
        return Pairs(dependent[order], referenced[order], coverage[order])


@dataclass(frozen=True)
class Shared:
    """How many distinct values every two attributes share; with itself an attribute shares all it
    has."""

    attributes: tuple[Attribute, ...]
    families: tuple[str, ...]
    overlaps: Overlaps

    def __repr__(self) -> str:
        return f"<Shared: columns {len(self.attributes):,}>"

    def inclusion_dependencies(
        self, min_coverage: float = 1.0, empty_columns: bool = False, within_tables: bool = False
    ) -> list[InclusionDependency]:
        """Dependencies between attributes of one family, highest coverage first."""
        return self.named(self.pairs(Wanted(min_coverage, empty_columns, within_tables)))

    def pairs(self, wanted: Wanted) -> Pairs:
        """All dependencies that are wanted."""
        parts = []
        for low, high in self.overlaps.stretches():
            coverage = self._as_dependent(self.overlaps.rows(low, high), low, high, wanted)
            left, right = np.nonzero(coverage)
            parts.append(Pairs(left + low, right, coverage[left, right]))
        return Pairs.together(parts)

    def pairs_of(self, low: int, high: int, wanted: Wanted) -> Pairs:
        """Those with an attribute of a stretch on either side."""
        inside, outside = self._both(low, high, wanted)
        left, right = np.nonzero(inside)
        there, here = np.nonzero(outside.T)
        return Pairs.together(
            [
                Pairs(left + low, right, inside[left, right]),
                Pairs(there, here + low, outside[here, there]),
            ]
        )

    def changes(self, before: Shared, low: int, high: int, wanted: Wanted) -> tuple[Pairs, Pairs]:
        """The dependencies of a stretch that were gained and lost since an earlier version, highest
        coverage first; lost ones have the coverage that is left."""
        came: list[Pairs] = []
        went: list[Pairs] = []
        sides = zip(before._both(low, high, wanted), self._both(low, high, wanted), strict=True)
        for place, (old, new) in enumerate(sides):
            for parts, one, other in ((came, new, old), (went, old, new)):
                here, there = np.nonzero((one > 0) & (other == 0))
                coverage = one[here, there]
                pair = (here + low, there) if place == 0 else (there, here + low)
                parts.append(Pairs(*pair, coverage))
        lost = Pairs.together(went)
        rows, inside = (
            self.overlaps.rows(low, high),
            (lost.dependent >= low) & (lost.dependent < high),
        )
        here = np.where(inside, lost.dependent, lost.referenced) - low
        there = np.where(inside, lost.referenced, lost.dependent)
        own = self.overlaps.distinct[lost.dependent]
        left = np.where(own > 0, rows[here, there] / np.maximum(own, 1), np.nan)
        return Pairs.together(came), replace(lost, coverage=left)

    def _both(self, low: int, high: int, wanted: Wanted) -> tuple[F64, F64]:
        """The coverage of the attributes of a stretch by all others, and of all others by them; 0
        where it is too low or not wanted."""
        rows = self.overlaps.rows(low, high)
        inside = self._as_dependent(rows, low, high, wanted)
        outside = _covered(rows, self.overlaps.distinct[None, :], wanted)
        outside *= self._comparable(low, high, wanted)
        outside[:, low:high] = 0
        return inside, outside

    def _as_dependent(self, rows: I64, low: int, high: int, wanted: Wanted) -> F64:
        covered = _covered(rows, self.overlaps.distinct[low:high, None], wanted)
        covered *= self._comparable(low, high, wanted)
        return covered

    def _comparable(self, low: int, high: int, wanted: Wanted) -> NDArray[np.bool_]:
        """Which pairs of an attribute of a stretch and any attribute may be reported."""
        tables, families = self._numbered
        comparable: NDArray[np.bool_] = families[low:high, None] == families
        comparable[np.arange(high - low), np.arange(low, high)] = False
        if not wanted.within_tables:
            comparable &= tables[low:high, None] != tables
        return comparable

    @cached_property
    def _numbered(self) -> tuple[I64, I64]:
        """The tables of the attributes, and their families, as numbers."""
        tables: dict[str, int] = {}
        families: dict[str, int] = {}
        return (
            np.array([tables.setdefault(e.table, len(tables)) for e in self.attributes], np.int64),
            np.array([families.setdefault(e, len(families)) for e in self.families], np.int64),
        )

    def named(self, pairs: Pairs) -> list[InclusionDependency]:
        """Pairs as constraints."""
        columns = (pairs.dependent.tolist(), pairs.referenced.tolist(), pairs.coverage.tolist())
        return [
            InclusionDependency(
                (self.attributes[a],),
                (self.attributes[b],),
                None if math.isnan(coverage) else coverage,
            )
            for a, b, coverage in zip(*columns, strict=True)
        ]

    @property
    def distinct(self) -> dict[Attribute, int]:
        """How many distinct values each attribute has."""
        return dict(zip(self.attributes, self.overlaps.distinct.tolist(), strict=True))

    @cached_property
    def number(self) -> dict[Attribute, int]:
        """The number of each attribute."""
        return {attribute: number for number, attribute in enumerate(self.attributes)}

    def common(self, one: Attribute, two: Attribute) -> int:
        """How many values two attributes share."""
        a, b = self.number[one], self.number[two]
        return int(self.overlaps.rows(a, a + 1)[0, b])

    def lost(self, dependency: InclusionDependency) -> InclusionDependency:
        """A lost dependency with the coverage that is left."""
        coverage = None
        if len(dependency.dependent) == 1:
            (one,), (two,) = dependency.sides
            own = int(self.overlaps.distinct[self.number[one]])
            coverage = self.common(one, two) / own if own else None
        return replace(dependency, coverage=coverage)


def _covered(rows: I64, own: I64, wanted: Wanted) -> F64:
    """Which share of the dependent values is shared; 0 where it is too low."""
    coverage: F64 = rows / np.maximum(own, 1)
    coverage[np.broadcast_to(own == 0, coverage.shape)] = 1.0 if wanted.empty_columns else 0.0
    coverage[coverage < wanted.min_coverage] = 0
    return coverage


def highest_first(dependencies: Iterable[InclusionDependency]) -> list[InclusionDependency]:
    """Dependencies sorted by coverage."""
    return sorted(dependencies, key=lambda dependency: -(dependency.coverage or 0.0))


def shared_values(store: Store, record: InclusionRecord) -> Shared:
    """How many values every two columns share."""
    attributes, families = attributes_of(store, record)
    distinct = numbers(stored(store, record.files["distinct"]), "values")
    return Shared(attributes, families, Overlaps(distinct, record.overlaps, store))


def attributes_of(
    store: Store, record: InclusionRecord
) -> tuple[tuple[Attribute, ...], tuple[str, ...]]:
    """All columns, in the order of their numbers, with the families of their types."""
    rows = stored(store, record.files["attributes"])
    columns = (rows.column(name).to_pylist() for name in ("table", "column", "family"))
    tables, names, families = columns
    return tuple(map(Attribute, tables, names)), tuple(families)
