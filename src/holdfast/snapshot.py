"""What a version of a profile says: read from its files, without Spark and without kernels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa
import pyarrow.compute
from numpy.typing import NDArray

from holdfast.constraints import FunctionalDependency, Key, NonKey
from holdfast.store import Store

KEY_SIDE = -1
"""The right side that stands for keys in a file of dependencies."""

KEY, NON_KEY = 0, 1
"""The kinds of rows in a file of keys."""


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
    details: dict[str, Any]  # the commit's own words about the table
    functional_dependencies: Sequence[FunctionalDependency] | None = None  # None: not looked for
    approximate_keys: tuple[Key, ...] = ()  # within the bound on the error, but violated


@dataclass(frozen=True)
class Snapshot:
    """One version."""

    version: int
    created: str
    options: dict[str, Any]
    tables: dict[str, TableSnapshot]


def snapshot(store: Store, version: int | None = None) -> Snapshot:
    """Everything that a version says. Witnesses are those of the current version only."""
    body = store.read(version)
    current = version is None or version == store.head()
    tables = {
        name: _table(store, name, form, body["options"], current)
        for name, form in body["tables"].items()
    }
    return Snapshot(body["version"], body["created"], body["options"], tables)


def _table(
    store: Store, name: str, form: dict[str, Any], options: dict[str, Any], current: bool
) -> TableSnapshot:
    names = form["columns"]["names"]
    keys = pa.ipc.open_file(pa.memory_map(store.file(form["keys"]))).read_all()
    sets = columns_of(keys.column("mask"), names)
    kinds = keys.column("kind").to_pylist()
    witnesses: dict[tuple[str, ...], tuple[Any, Any]] = {}
    if current:
        seen = pa.ipc.open_file(pa.memory_map(store.file(form["evidence"]))).read_all()
        pairs = zip(seen.column("one").to_pylist(), seen.column("two").to_pylist(), strict=True)
        for columns, pair in zip(columns_of(seen.column("mask"), names), pairs, strict=True):
            if pair[0] is not None and pair[1] is not None:
                witnesses[columns] = (json.loads(pair[0]), json.loads(pair[1]))
    limited = options.get("max_columns") is not None
    return TableSnapshot(
        name,
        form["rows"],
        tuple(names),
        tuple(form["columns"]["types"]),
        tuple(Key(c) for c, kind in zip(sets, kinds, strict=True) if kind == KEY),
        tuple(
            NonKey(c, witnesses.get(c)) for c, kind in zip(sets, kinds, strict=True) if kind != KEY
        ),
        form["duplicates"],
        tuple(form.get("duplicated") or ()),
        {**form, "limited": limited},
        Dependencies(store, form["fds"], names) if "fds" in form else None,
        _approximate_keys(store, form["fds"], names) if "fds" in form else (),
    )


def _approximate_keys(store: Store, path: str, names: list[str]) -> tuple[Key, ...]:
    kept = pa.ipc.open_file(pa.memory_map(store.file(path))).read_all()
    some = kept.filter(pa.compute.equal(kept.column("right"), KEY_SIDE))
    sets = columns_of(some.column("mask"), names)
    errors = some.column("error").to_pylist()
    return tuple(Key(columns, error) for columns, error in zip(sets, errors, strict=True))


class Dependencies(Sequence[FunctionalDependency]):
    """Functional dependencies, shortest first, made into values one by one: there may be a
    million of them."""

    def __init__(self, store: Store, path: str, names: list[str]) -> None:
        kept = pa.ipc.open_file(pa.memory_map(store.file(path))).read_all()
        self._kept = kept.filter(pa.compute.not_equal(kept.column("right"), KEY_SIDE))
        self._names = names

    def __len__(self) -> int:
        return int(self._kept.num_rows)

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
            FunctionalDependency(columns, self._names[right], error)
            for columns, right, error in zip(
                columns_of(some.column("mask"), self._names),
                some.column("right").to_pylist(),
                some.column("error").to_pylist(),
                strict=True,
            )
        ]
        return made[::step]

    def __iter__(self) -> Iterator[FunctionalDependency]:
        for start in range(0, len(self), 10_000):
            yield from self[start : start + 10_000]


def columns_of(masks: pa.ChunkedArray, names: list[str]) -> list[tuple[str, ...]]:
    """The column names of each mask, in table order."""
    if not len(masks):
        return []
    data = np.frombuffer(b"".join(masks.to_pylist()), np.uint8).reshape(len(masks), -1)
    bits: NDArray[np.uint8] = np.unpackbits(data, axis=1, bitorder="little")[:, : len(names)]
    rows, places = np.nonzero(bits)
    ends = np.searchsorted(rows, np.arange(1, len(masks) + 1))
    starts = np.concatenate([[0], ends[:-1]])
    picked = [names[place] for place in places.tolist()]
    return [tuple(picked[lo:hi]) for lo, hi in zip(starts, ends, strict=True)]
