"""What a version of a profile says: read from its files, without Spark and without kernels."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.constraints import Key, NonKey
from holdfast.store import Store

KEY, NON_KEY = 0, 1
"""The kinds of rows in a file of keys."""


@dataclass(frozen=True)
class TableSnapshot:
    """One table in one version."""

    name: str
    rows: int
    columns: tuple[str, ...]
    types: tuple[str, ...]
    keys: tuple[Key, ...]
    non_keys: tuple[NonKey, ...]
    duplicates: int
    duplicated: tuple[Any, ...]  # one row that occurs twice, as it was shown
    details: dict[str, Any]  # the commit's own words about the table


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
    )


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
