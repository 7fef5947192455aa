"""What a version of a profile says: read from its files, without Spark and without kernels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, overload

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.families.inclusion_dependencies.foreign_keys import (
    Facts,
    Shared,
    foreign_keys,
    highest_first,
)
from holdfast.model.commits import (
    AGREEMENT,
    Choice,
    InclusionRecord,
    TableRecord,
)
from holdfast.model.constraints import (
    EMPTY,
    HOLDS,
    AgreeSet,
    Attribute,
    Cluster,
    ForeignKey,
    FunctionalDependency,
    InclusionDependency,
    Key,
    NonKey,
    shortest_first,
)
from holdfast.model.errors import InputError
from holdfast.model.limits import Limits
from holdfast.store import Store
from holdfast.store.codecs import stored, stored_file

KEY_SIDE = -1
"""The right side that stands for keys in a file of dependencies."""

_REPR_SHOWN = 3
"""How many of a long list its repr shows."""


@dataclass(frozen=True)
class Index:
    """An index over columns; selectivity is distinct values per row, 1 for a key. That of several
    columns is at least that of each."""

    columns: tuple[str, ...]
    distinct: int  # estimated
    selectivity: float


@dataclass(frozen=True)
class TableSnapshot:
    """One table in one version."""

    name: str
    rows: int
    columns: tuple[str, ...]
    types: tuple[str, ...]
    keys: tuple[Key, ...]  # of the distinct rows
    non_keys: tuple[NonKey, ...]
    duplicates: int
    duplicated: tuple[Any, ...]  # one row that occurs twice, as it was shown
    functional_dependencies: Dependencies | None = None  # None: not looked for
    approximate_keys: tuple[Key, ...] = ()  # within the bound on the error, but violated
    max_error: float | None = None  # that bound
    limits: Limits = field(default_factory=Limits)  # of columns, up to which all are listed
    choice: Choice | None = None  # how dependencies are known; None: no pairs of rows are compared
    segments: int = 0
    indexes: tuple[Index, ...] = ()

    def __repr__(self) -> str:
        fds = self.functional_dependencies
        found = {"rows": self.rows, "columns": len(self.columns), "keys": len(self.keys)}
        found |= {"non-keys": len(self.non_keys)}
        found |= {} if fds is None else {"functional dependencies": len(fds)}
        found |= {"repeated rows": self.duplicates} if self.duplicates else {}
        told = ", ".join(f"{what} {size:,}" for what, size in found.items())
        return f"<TableSnapshot {self.name!r}: {told}>"


@dataclass(frozen=True)
class Inclusions:
    """Which columns of all tables are contained in which."""

    shared: Shared
    tables: dict[str, Facts]
    wide: tuple[InclusionDependency, ...] = ()  # those of several columns
    min_coverage: float = 1.0
    empty_columns: bool = False

    def __repr__(self) -> str:
        return f"<Inclusions: columns {len(self.shared.attributes):,}, tables {len(self.tables)}>"

    def dependencies(self, min_coverage: float | None = None) -> list[InclusionDependency]:
        """The inclusion dependencies, the highest coverage first."""
        least = self.min_coverage if min_coverage is None else min_coverage
        found = self.shared.inclusion_dependencies(least, self.empty_columns)
        return highest_first([*found, *self.wide])

    def foreign_keys(self, min_coverage: float | None = None) -> list[ForeignKey]:
        """The foreign keys, the likeliest first."""
        return foreign_keys(self.dependencies(min_coverage), self.tables, self.shared)


@dataclass(frozen=True)
class Snapshot:
    """One version."""

    version: int
    created: str
    options: dict[str, Any]
    tables: dict[str, TableSnapshot]
    inclusions: Inclusions | None = None  # None: not looked for

    def __repr__(self) -> str:
        tables = ", ".join(f"{name} (rows {each.rows:,})" for name, each in self.tables.items())
        return f"<Snapshot of version {self.version}, {self.created}: {tables}>"


def snapshot(store: Store, version: int | None = None) -> Snapshot:
    """Everything that a version says. Witnesses are those of the current version only."""
    return store.ask(lambda asked: _snapshot(store, asked, version is None), version)


def _snapshot(store: Store, version: int, last: bool) -> Snapshot:
    commit = store.read(version)
    current = last or version == store.head()
    options = dict(sorted(commit.options.to_dict().items()))
    tables = {
        name: _table(store, name, record, options, current)
        for name, record in commit.tables.items()
    }
    inclusions = None
    if commit.inclusion is not None:
        inclusions = _inclusions(store, commit.inclusion, tables, options)
    return Snapshot(commit.version, commit.created, options, tables, inclusions)


def _inclusions(
    store: Store,
    record: InclusionRecord,
    tables: dict[str, TableSnapshot],
    options: dict[str, Any],
) -> Inclusions:
    attributes = tuple(Attribute(table, column) for table, column in record.attributes)
    kept = stored(store, record.files["inclusions"])
    values = np.zeros((len(attributes), len(attributes)), np.int64)
    # Lists, because to_numpy would import pandas, which takes longer than all the rest.
    one, two, count = (
        np.array(kept.column(name).to_pylist(), np.int64) for name in ("one", "two", "values")
    )
    values[one, two] = values[two, one] = count
    facts = {
        name: Facts(
            () if table.duplicates else table.keys,
            dict(zip(table.columns, table.types, strict=True)),
            table.rows,
        )
        for name, table in tables.items()
    }
    shared = Shared(attributes, record.families, values)
    tuples = record.files.get("tuples")
    wide = _wide(store, tuples, tables, options) if tuples else ()
    return Inclusions(shared, facts, wide, options["min_coverage"], options["empty_columns"])


def _wide(
    store: Store,
    files: tuple[str, ...],
    tables: dict[str, TableSnapshot],
    options: dict[str, Any],
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
    attributes = [Attribute(table, column) for table, column in record.attributes]
    kept = stored(store, record.files["clusters"])
    sets = _members(kept.column("mask").to_pylist(), len(attributes))
    found = [
        Cluster(tuple(attributes[place] for place in places), count)
        for places, count in zip(sets, kept.column("values").to_pylist(), strict=True)
    ]
    return sorted(found, key=lambda each: -each.values)


def _table(
    store: Store, name: str, record: TableRecord, options: dict[str, Any], current: bool
) -> TableSnapshot:
    names = list(record.columns.names)
    pairs = record.evidence.get(AGREEMENT)
    keys: tuple[Key, ...] = ()
    near: tuple[Key, ...] = ()
    non_keys: tuple[NonKey, ...] = ()
    dependencies = None
    if pairs is not None:
        sets = stored(store, pairs.files["sets"])
        keys, near = keys_of(sets, name, names)
        non_keys = _non_keys(store, pairs.files, name, names, current)
        if pairs.choice.strategy is not None:
            dependencies = Dependencies(sets, name, names)
    return TableSnapshot(
        name,
        record.rows,
        record.columns.names,
        record.columns.types,
        keys,
        non_keys,
        record.duplicates,
        tuple(_in_order(row, names) for row in record.duplicated),
        dependencies,
        near,
        options["max_error"],
        pairs.limits if pairs else Limits(),
        pairs.choice if pairs else None,
        len(record.segments),
        tuple(_index(record, name) for name in record.indexed),
    )


def _index(record: TableRecord, name: str) -> Index:
    places = [int(place) for place in name.split("+")]
    distinct = max(1.0, *(record.distinct[place] for place in places))
    share = min(1.0, distinct / max(record.estimated_at or record.rows, 1))
    columns = tuple(record.columns.names[place] for place in places)
    return Index(columns, round(distinct), round(share, 6))


def _non_keys(
    store: Store, files: dict[str, tuple[str, ...]], table: str, names: list[str], current: bool
) -> tuple[NonKey, ...]:
    witnesses: dict[tuple[str, ...], tuple[Any, Any]] = {}
    if current:
        seen = stored(store, files["evidence"])
        pairs = zip(seen.column("one").to_pylist(), seen.column("two").to_pylist(), strict=True)
        for columns, pair in zip(columns_of(seen.column("mask"), names), pairs, strict=True):
            if pair[0] is not None and pair[1] is not None:
                witnesses[columns] = (json.loads(pair[0]), json.loads(pair[1]))
    maximal = columns_of(stored(store, files["non_keys"]).column("mask"), names)
    return tuple(NonKey(table, columns, witnesses.get(columns)) for columns in maximal)


def _in_order(row: dict[str, Any], names: list[str]) -> dict[str, Any]:
    """A row as a commit holds it, with its columns in table order again."""
    return {name: row[name] for name in names} if {*row} == {*names} else row


def keys_of(
    sets: pa.Table, table: str, names: list[str]
) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """The keys among minimal sets; and those that some pairs violate, within a bound."""
    some = sets.slice(_dependency_count(sets))
    found = zip(
        columns_of(some.column("mask"), names), some.column("error").to_pylist(), strict=True
    )
    keys = [Key(table, columns, error or None) for columns, error in found]
    exact = tuple(key for key in keys if key.error is None)
    return exact, tuple(key for key in keys if key.error is not None)


def _dependency_count(kept: pa.Table) -> int:
    """How many rows of a file are functional dependencies; keys come after them."""
    # Through the buffers, because pyarrow's own ways to count would import pandas.
    chunks = kept.column("rhs").chunks
    sides = [np.frombuffer(c.buffers()[1], np.int32)[c.offset : c.offset + len(c)] for c in chunks]
    return int(sum((side != KEY_SIDE).sum() for side in sides))


class Dependencies(Sequence[FunctionalDependency]):
    """Functional dependencies, shortest first, made into values one by one: there may be a
    million of them."""

    def __init__(self, kept: pa.Table, table: str, names: list[str]) -> None:
        self._kept = kept.slice(0, _dependency_count(kept))
        self._table = table
        self._names = names

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
        made = [
            FunctionalDependency(self._table, columns, self._names[right], error)
            for columns, right, error in zip(
                columns_of(some.column("mask"), self._names),
                some.column("rhs").to_pylist(),
                some.column("error").to_pylist(),
                strict=True,
            )
        ]
        return made[::step]

    def without(self, others: Dependencies) -> tuple[FunctionalDependency, ...]:
        """Those that hold, and are not among the others that do; in the same order."""
        known = set(others._holding())
        new = [sides for sides in self._holding() if sides not in known]
        lefts = _named([mask for mask, _ in new], self._names)
        pairs = zip(lefts, (self._names[right] for _, right in new), strict=True)
        return tuple(FunctionalDependency(self._table, left, right) for left, right in pairs)

    def _holding(self) -> list[tuple[bytes, int]]:
        """Left and right sides as a file holds them, of those without error."""
        columns = [self._kept.column(name).to_pylist() for name in ("mask", "rhs", "error")]
        return [(mask, right) for mask, right, error in zip(*columns, strict=True) if not error]

    def __iter__(self) -> Iterator[FunctionalDependency]:
        for start in range(0, len(self), 10_000):
            yield from self[start : start + 10_000]


def columns_of(masks: pa.ChunkedArray, names: list[str]) -> list[tuple[str, ...]]:
    """The column names of each mask, in table order."""
    return _named(masks.to_pylist(), names)


def _named(masks: list[bytes], names: list[str]) -> list[tuple[str, ...]]:
    return [tuple(names[place] for place in places) for places in _members(masks, len(names))]


def _members(masks: list[bytes], atoms: int) -> list[list[int]]:
    """The numbers in each mask, ascending."""
    if not masks:
        return []
    data = np.frombuffer(b"".join(masks), np.uint8).reshape(len(masks), -1)
    bits: NDArray[np.uint8] = np.unpackbits(data, axis=1, bitorder="little")[:, :atoms]
    rows, places = np.nonzero(bits)
    ends = np.searchsorted(rows, np.arange(1, len(masks) + 1))
    starts = np.concatenate([[0], ends[:-1]])
    picked = places.tolist()
    return [picked[lo:hi] for lo, hi in zip(starts, ends, strict=True)]


def agree_sets(store: Store, table: str, at: int | None = None) -> list[AgreeSet]:
    """All agree-sets of a table with their numbers of pairs, shortest first, now or ``at`` a
    version."""

    def answer(version: int) -> list[AgreeSet]:
        record = store.read(version).table(table)
        # Only the last version's numbers are kept, and what every batch changed.
        changes = _recounted(store, table, version if at is None else at, version)
        files = record.evidence[AGREEMENT].files["agree"]
        total = _added_up(store, record, files[:1], files[1:])
        for columns, change in changes.items():
            total[columns] = total.get(columns, 0) - change
        return _agree_sets(total, record)

    return store.ask(answer)


def changed_agree_sets(store: Store, table: str, since: int) -> list[AgreeSet]:
    """How the numbers of pairs of a table changed after a version."""
    record = store.read().table(table)
    return _agree_sets(_recounted(store, table, since, store.head()), record)


def _recounted(store: Store, table: str, since: int, last: int) -> dict[tuple[str, ...], int]:
    """How batches changed the numbers of pairs, all of which were counted."""
    if not 1 <= since <= last:
        raise InputError(f"there is no version {since}; there are 1 to {last}")
    records = {each: store.read(each).table(table) for each in range(since, last + 1)}
    if without := [version for version, each in records.items() if not is_counted(each)]:
        raise InputError(
            f"the pairs of rows of {table!r} were not counted in version {without[-1]}; "
            f"ask for version {without[-1] + 1} or later"
        )
    files = [each.evidence[AGREEMENT].files["agree"] for each in records.values()]
    # What a version changed is the last of its files, if it changed anything.
    changes = [new[-1] for old, new in pairwise(files) if new != old]
    return _added_up(store, records[last], (), changes)


def is_counted(record: TableRecord) -> bool:
    """Whether all pairs of a table's rows are counted, so that it has agree-sets."""
    return AGREEMENT in record.evidence and "agree" in record.evidence[AGREEMENT].files


def _added_up(
    store: Store, record: TableRecord, bases: Sequence[str], changes: Sequence[str]
) -> dict[tuple[str, ...], int]:
    """Numbers of pairs, by columns: all those in some files, and what others changed of them."""
    total: dict[tuple[str, ...], int] = {}
    for column, files in (("pairs", bases), ("change", changes)):
        for path in files:
            kept = stored_file(store, path)
            sets = columns_of(kept.column("mask"), list(record.columns.names))
            for columns, pairs in zip(sets, kept.column(column).to_pylist(), strict=True):
                total[columns] = total.get(columns, 0) + pairs
    return total


def _agree_sets(total: dict[tuple[str, ...], int], record: TableRecord) -> list[AgreeSet]:
    found = [AgreeSet(columns, pairs) for columns, pairs in total.items() if pairs]
    return shortest_first(found, record.columns.names)
