"""How arrays are stored: Arrow files of a profile, and sets of atoms as columns of masks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.store.directory import Store
from holdfast.store.leases import Lease

U64 = NDArray[np.uint64]


def write(store: Store, lease: Lease, kind: str, table: pa.Table) -> str:
    """Write a file of a kind; its path."""
    sink = pa.BufferOutputStream()
    options = pa.ipc.IpcWriteOptions(compression="zstd")
    with pa.ipc.new_file(sink, table.schema, options=options) as writer:
        writer.write_table(table)
    return store.write(lease.new_path(kind, "arrow"), sink.getvalue())


def stored(store: Store, files: tuple[str, ...]) -> pa.Table:
    """What the Arrow files of one role hold."""
    (path,) = files
    return pa.ipc.open_file(pa.py_buffer(store.content(path))).read_all()


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
