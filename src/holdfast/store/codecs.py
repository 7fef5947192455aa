"""How arrays are stored: Arrow files of a profile, and sets of atoms as columns of masks.

What one role of a version holds is a table in one file, the *base*, or a base and *differences*
(:mod:`holdfast.store.differences` writes them): rows that went, and rows that came with the
position that they have then. Reading needs no kernels.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from holdfast.kernels.arrays import U64
from holdfast.runtime import sealed
from holdfast.store.directory import Store
from holdfast.store.leases import Lease

ADDED, PLACE = "added", "place"
"""The columns of a difference besides those of its rows: whether a row came, and its position
among all rows then; or the one it had before it went."""

FACTS = b"holdfast"
"""Where a difference says how many rows there were before it and are after it."""


def write(store: Store, lease: Lease, kind: str, table: pa.Table) -> str:
    """Write a file of a kind; its path."""
    return store.write(lease.new_path(kind, "arrow"), encoded(table))


def encoded(table: pa.Table) -> pa.Buffer:
    """The bytes of a file."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return sink.getvalue()


def stored(store: Store, files: Sequence[str]) -> pa.Table:
    """What the files of one role hold: a base, and differences in the order of their versions."""
    base, *differences = files
    table = stored_file(store, base)
    for path in differences:
        table = _changed(table, stored_file(store, path), store.file(path))
    return table


def stored_file(store: Store, path: str) -> pa.Table:
    """What one file holds."""
    return pa.ipc.open_file(pa.py_buffer(store.content(path))).read_all()


def _changed(table: pa.Table, difference: pa.Table, path: str) -> pa.Table:
    """A table after a difference."""
    facts = json.loads(difference.schema.metadata[FACTS])
    if facts["before"] != table.num_rows:
        why = f"it changes {facts['before']} rows, but there are {table.num_rows}"
        raise sealed.damaged(Path(path), why)
    positions = difference.column(PLACE).to_pylist()
    came = sum(difference.column(ADDED).to_pylist())
    new = difference.select(table.column_names).slice(0, came)
    left = pa.concat_tables(_between(table, positions[came:]))
    parts = [left.slice(0, 0)]
    at = taken = row = 0
    while row < came:
        # Neighbours that came are one part, as are those between them that stayed.
        start = row
        while row < came and positions[row] == positions[start] + row - start:
            row += 1
        stayed = positions[start] - at
        parts += [left.slice(taken, stayed), new.slice(start, row - start)]
        at, taken = positions[start] + row - start, taken + stayed
    changed = pa.concat_tables([*parts, left.slice(taken)]).combine_chunks()
    return changed.replace_schema_metadata(table.schema.metadata)


def _between(table: pa.Table, gone: Sequence[int]) -> Iterator[pa.Table]:
    """The parts of a table that are left without some rows."""
    start = 0
    for position in gone:
        yield table.slice(start, position - start)
        start = position + 1
    yield table.slice(start)


def masks_of(matrix: U64) -> pa.Array:
    """A column of masks."""
    width = 8 * matrix.shape[1]
    data = pa.py_buffer(np.ascontiguousarray(matrix).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(matrix), [None, data])


def matrix_of(column: pa.ChunkedArray, words: int) -> U64:
    """The masks of a column."""
    parts = [np.empty((0, words), np.uint64)]
    for chunk in column.chunks:
        data = np.frombuffer(chunk.buffers()[1], np.uint64).reshape(-1, words)
        parts.append(data[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts)
