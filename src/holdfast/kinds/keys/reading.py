"""Keys and non-keys as a version's files have them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from holdfast.kinds.stored import StoredTable, columns_of, dependencies_and_keys
from holdfast.model.constraints import Key, NonKey


@dataclass(frozen=True)
class FoundKeys:
    """The keys of a table's distinct rows, and its non-keys."""

    keys: tuple[Key, ...] = ()
    approximate_keys: tuple[Key, ...] = ()  # within the bound on the error, but violated
    non_keys: tuple[NonKey, ...] = ()


def stored_keys(table: StoredTable) -> FoundKeys:
    """Those of a table whose pairs of rows are compared."""
    keys, near = keys_of(table.file("sets"), table.name, table.columns)
    return FoundKeys(keys, near, _non_keys(table))


def keys_of(
    sets: pa.Table, table: str, names: list[str]
) -> tuple[tuple[Key, ...], tuple[Key, ...]]:
    """The keys among minimal sets; and those that some pairs violate, within a bound."""
    _, some = dependencies_and_keys(sets)
    rows = zip(
        columns_of(some.column("mask"), names), some.column("error").to_pylist(), strict=True
    )
    keys = [Key(table, columns, error or None) for columns, error in rows]
    exact = tuple(key for key in keys if key.error is None)
    return exact, tuple(key for key in keys if key.error is not None)


def _non_keys(table: StoredTable) -> tuple[NonKey, ...]:
    witnesses: dict[tuple[str, ...], tuple[Any, Any]] = {}
    if table.current:
        seen = table.file("evidence")
        sets = columns_of(seen.column("mask"), table.columns)
        pairs = zip(*(_rows(seen.column(name)) for name in ("one", "two")), strict=True)
        witnesses = {
            columns: (one, two)
            for columns, (one, two) in zip(sets, pairs, strict=True)
            if one is not None and two is not None
        }
    maximal = columns_of(table.file("non_keys").column("mask"), table.columns)
    return tuple(NonKey(table.name, columns, witnesses.get(columns)) for columns in maximal)


def _rows(column: pa.ChunkedArray) -> list[dict[str, Any] | None]:
    """Rows from their text. A few rows may show very many non-keys, so each is read once."""
    found: list[dict[str, Any] | None] = []
    for chunk in column.chunks:
        rows = [json.loads(text) for text in chunk.dictionary.to_pylist()]
        places = chunk.indices.to_pylist()
        found += [None if place is None else rows[place] for place in places]
    return found
