"""What a commit holds of a table and of the profile, for kinds to read: without kernels."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.model.commits import Commit, TableRecord
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.options import Settings
from holdfast.store import Store
from holdfast.store.codecs import stored

if TYPE_CHECKING:
    from holdfast.report.snapshot import TableSnapshot

KEY_RHS = -1
"""The rhs that stands for keys in a file of minimal sets."""


@dataclass(frozen=True)
class StoredTable:
    """A table's part of a commit, and the files that it names, each of which is read once."""

    store: Store
    name: str
    record: TableRecord
    options: Settings
    current: bool  # whether the version is the last one, whose witnesses are kept
    _read: dict[tuple[str, str], pa.Table] = field(default_factory=dict)

    @property
    def columns(self) -> list[str]:
        """The names of its columns."""
        return list(self.record.columns.names)

    def file(self, role: str, space: str = AGREEMENTS) -> pa.Table:
        """A file of what pairs of rows show in a space, by its role."""
        if (space, role) not in self._read:
            files = self.record.evidence[space].files[role]
            self._read[space, role] = stored(self.store, files)
        return self._read[space, role]


@dataclass(frozen=True)
class StoredProfile:
    """A commit, and what was read of its tables."""

    store: Store
    commit: Commit
    options: Settings
    tables: dict[str, TableSnapshot]


def dependencies_and_keys(sets: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The two parts of a file of minimal sets."""
    # Through the buffers, because pyarrow's own ways to count would import pandas.
    chunks = sets.column("rhs").chunks
    rhs = [np.frombuffer(c.buffers()[1], np.int32)[c.offset : c.offset + len(c)] for c in chunks]
    dependencies = int(sum((each != KEY_RHS).sum() for each in rhs))
    return sets.slice(0, dependencies), sets.slice(dependencies)


def columns_of(masks: pa.ChunkedArray, names: list[str]) -> list[tuple[str, ...]]:
    """The column names of each mask, in table order."""
    return named(masks.to_pylist(), names)


def named(masks: list[bytes], names: list[str]) -> list[tuple[str, ...]]:
    """The names in each mask, in their order."""
    return [tuple(names[place] for place in places) for places in members(masks, len(names))]


def members(masks: list[bytes], atoms: int) -> list[list[int]]:
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
