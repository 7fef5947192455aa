"""Writing what a version changed, not all that it says.

A role of a version (its minimal sets, its evidence, …) is a table of rows in some order. A version
writes how that table differs from the one before, or the whole table where that is about as short.
A reader goes through a base and a limited number of differences, which together have at most
a share of its bytes (:mod:`holdfast.model.thresholds`): what exceeds either begins a new base.
"""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.types as kinds
from numpy.typing import NDArray

from holdfast.kernels.arrays import U64
from holdfast.model import thresholds
from holdfast.runtime.sealed import seal_of
from holdfast.store.codecs import ADDED, FACTS, PLACE, encoded, matrix_of, stored
from holdfast.store.directory import Store
from holdfast.store.leases import Lease

_MIX = np.uint64(0x9E3779B97F4A7C15)


def saved(
    store: Store,
    lease: Lease,
    kind: str,
    table: pa.Table,
    before: tuple[str, ...],
    old: pa.Table | None = None,
) -> tuple[str, ...]:
    """The files of a role that holds a table now and had some files before: none are written if
    nothing changed. ``old`` is what those hold, where that was read already."""
    if before:
        change = difference(stored(store, before) if old is None else old, table)
        if change is not None:
            if not change.num_rows:
                return before
            content = encoded(change)
            if worthwhile(before, content.size):
                return (*before, store.write(lease.new_path(kind, "arrow"), content))
    return (store.write(lease.new_path(kind, "arrow"), encoded(table)),)


def worthwhile(files: tuple[str, ...], size: int) -> bool:
    """Whether a base and its differences should have another one of so many bytes."""
    base, *differences = (seal.size for seal in map(seal_of, files) if seal)
    limits = thresholds.current
    few = len(differences) < limits.differences
    return few and sum(differences) + size <= limits.difference_share * base


def difference(old: pa.Table, new: pa.Table) -> pa.Table | None:
    """What makes one table of another; None where they are of different types.

    Rows that stay keep their order: one that moved is a row that went and one that came.
    """
    if not old.schema.equals(new.schema):
        return None
    before, after = _rows(old, new)
    positions = _positions(after, before)
    stays = positions > np.maximum.accumulate(np.concatenate([[-1], positions[:-1]]))
    went = np.ones(old.num_rows, np.bool_)
    went[positions[stays]] = False
    gone, came = np.flatnonzero(went), np.flatnonzero(~stays)
    nothing = {field.name: pa.nulls(len(gone), field.type) for field in new.schema}
    facts = {FACTS: json.dumps({"before": old.num_rows, "after": new.num_rows})}
    rows = [
        _with_positions(new.take(pa.array(came)), came, added=True),
        _with_positions(pa.table(nothing, schema=new.schema), gone, added=False),
    ]
    return pa.concat_tables(rows).combine_chunks().replace_schema_metadata(facts)


def _with_positions(rows: pa.Table, positions: NDArray[np.intp], added: bool) -> pa.Table:
    rows = rows.append_column(PLACE, pa.array(positions, pa.int64()))
    return rows.append_column(ADDED, pa.array(np.full(len(positions), added)))


def _rows(one: pa.Table, two: pa.Table) -> tuple[U64, U64]:
    """The rows of two tables as words that are equal where rows are."""
    both = pa.concat_tables([one, two])
    words = np.hstack([_words(column) for column in both.columns])
    return words[: one.num_rows], words[one.num_rows :]


def _positions(rows: U64, known: U64) -> NDArray[np.intp]:
    """Where each row is among known ones, or -1. By hashes, because rows are many and wide; one of
    two rows of equal hash is taken for a new one, which makes a difference longer, not wrong."""
    if not len(known):
        return np.full(len(rows), -1)
    hashes, known_hashes = _hashes(rows), _hashes(known)
    order, asked = np.argsort(known_hashes), np.argsort(hashes)
    positions = np.empty(len(rows), np.int64)
    # Both in order, because looking up hashes here and there takes much longer than sorting them.
    at = np.searchsorted(known_hashes[order], hashes[asked])
    positions[asked] = order[at.clip(max=len(known) - 1)]
    same = hashes == known_hashes[positions]
    same[same] = (rows[same] == known[positions[same]]).all(axis=1)
    return np.where(same, positions, -1)


def _hashes(rows: U64) -> U64:
    hashes = np.zeros(len(rows), np.uint64)
    for word in rows.T:
        hashes = (hashes ^ word) * _MIX
        hashes ^= hashes >> np.uint64(32)
    return hashes


def _words(column: pa.ChunkedArray) -> U64:
    kind = column.type
    if kinds.is_fixed_size_binary(kind):
        return matrix_of(column, kind.byte_width // 8)
    if kinds.is_fixed_size_list(kind):
        values = _words(pa.chunked_array([column.combine_chunks().flatten()]))
        return values.reshape(-1, kind.list_size)
    if kinds.is_dictionary(kind):
        column = column.cast(kind.value_type)
    if kinds.is_string(column.type):
        column = column.combine_chunks().dictionary_encode().indices.fill_null(-1)
    values = column.to_numpy()
    wide = values.astype(np.float64 if kinds.is_floating(kind) else np.int64)
    words: U64 = wide.view(np.uint64).reshape(-1, 1)
    return words
