"""Inclusion dependencies as a version's files have them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.kinds.inclusion_dependencies.foreign_keys import Facts, foreign_keys
from holdfast.kinds.stored import StoredProfile
from holdfast.model.commits import InclusionRecord
from holdfast.model.inclusion_dependencies import (
    EMPTY,
    HOLDS,
    Attribute,
    Cluster,
    ForeignKey,
    InclusionDependency,
)
from holdfast.model.options import Settings
from holdfast.store import Store
from holdfast.store.codecs import stored
from holdfast.values.shared import Shared, attributes_of, highest_first, shared_values

if TYPE_CHECKING:
    from holdfast.report.snapshot import TableSnapshot


@dataclass(frozen=True)
class Inclusions:
    """Which columns of all tables are contained in which."""

    _shared: Shared
    tables: dict[str, Facts]
    wide: tuple[InclusionDependency, ...] = ()  # those of several columns
    min_coverage: float = 1.0
    empty_columns: bool = False
    within_tables: bool = False
    arity: int | None = None  # columns up to which they are complete, if a time budget ended
    _foreign_keys: dict[float, list[ForeignKey]] = field(
        default_factory=dict, compare=False, repr=False
    )  # by the coverage that was asked for: every table asks for those of all

    def __repr__(self) -> str:
        return f"<Inclusions: columns {len(self._shared.attributes):,}, tables {len(self.tables)}>"

    @property
    def distinct(self) -> dict[Attribute, int]:
        """How many distinct values every column has."""
        return self._shared.distinct

    def lost(self, dependency: InclusionDependency) -> InclusionDependency:
        """What is left of a dependency that held before: the coverage that it has here."""
        return self._shared.lost(dependency)

    def dependencies(self, min_coverage: float | None = None) -> list[InclusionDependency]:
        """The inclusion dependencies, the highest coverage first."""
        least = self.min_coverage if min_coverage is None else min_coverage
        unary = self._shared.inclusion_dependencies(least, self.empty_columns, self.within_tables)
        return highest_first([*unary, *self.wide])

    def foreign_keys(self, min_coverage: float | None = None) -> list[ForeignKey]:
        """The foreign keys, the likeliest first."""
        least = self.min_coverage if min_coverage is None else min_coverage
        if least not in self._foreign_keys:
            keys = foreign_keys(self.dependencies(least), self.tables, self._shared)
            self._foreign_keys[least] = keys
        return list(self._foreign_keys[least])


def inclusions(profile: StoredProfile) -> Inclusions | None:
    """Which columns are contained in which, in a profile that looks for that."""
    record = profile.commit.inclusion
    if record is None:
        return None
    store, tables, options = profile.store, profile.tables, profile.options
    facts = {
        name: Facts(
            () if table.duplicates else table.keys,
            dict(zip(table.columns, table.types, strict=True)),
            table.rows,
        )
        for name, table in tables.items()
    }
    shared = shared_values(store, record)
    tuples = record.files.get("tuples")
    wide = _wide(store, tuples, tables, options) if tuples else ()
    asked = {name: options[name] for name in ("min_coverage", "empty_columns", "within_tables")}
    return Inclusions(shared, facts, wide, arity=record.arity, **asked)


def _wide(
    store: Store, files: tuple[str, ...], tables: dict[str, TableSnapshot], options: Settings
) -> tuple[InclusionDependency, ...]:
    kept = stored(store, files)
    wanted = (HOLDS, EMPTY) if options["empty_columns"] else (HOLDS,)
    return tuple(
        InclusionDependency(
            tuple(Attribute(row["table"], tables[row["table"]].columns[c]) for c in row["columns"]),
            tuple(Attribute(row["other"], tables[row["other"]].columns[c]) for c in row["others"]),
        )
        for row in kept.to_pylist()
        if row["status"] in wanted
    )


def clusters(store: Store) -> list[Cluster]:
    """The clusters of the current version, those of most values first."""
    return store.ask(lambda version: _clusters(store, store.read(version).inclusion))


def _clusters(store: Store, record: InclusionRecord | None) -> list[Cluster]:
    if record is None:
        return []
    from holdfast.kernels import bitsets
    from holdfast.values.clusters import Clusters

    attributes, _ = attributes_of(store, record)
    masks, counts = Clusters(bitsets.words_for(len(attributes)), record.clusters, store).all()
    unordered = [
        Cluster(tuple(attributes[place] for place in places), count)
        for places, count in zip(bitsets.to_columns(masks), counts.tolist(), strict=True)
    ]
    return sorted(unordered, key=lambda each: -each.values)
