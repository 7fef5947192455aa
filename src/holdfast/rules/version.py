"""What a version's files say of the rules that hold in it: read without kernels, because ``show``
asks for it, too."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels.arrays import U64
from holdfast.model.commits import Commit
from holdfast.store import Store
from holdfast.store.codecs import matrix_of, stored


@dataclass(frozen=True)
class ExactSets:
    """Minimal sets that no pair violates, with the rhs of each."""

    masks: U64
    rhs: NDArray[np.int32]

    @staticmethod
    def of(file: pa.Table, atoms: int) -> ExactSets:
        """Those of a file, through its buffers: pyarrow's own ways would import pandas."""
        rhs, error = _numbers(file, "rhs", np.int32), _numbers(file, "error", np.float64)
        masks = matrix_of(file.column("mask"), max(1, -(-atoms // 64)))
        return ExactSets(masks[error == 0], rhs[error == 0])

    def of_rhs(self, rhs: int) -> U64:
        """The sets of one rhs."""
        sets: U64 = self.masks[self.rhs == rhs]
        return sets


def _numbers(file: pa.Table, name: str, dtype: type) -> NDArray[Any]:
    parts: list[NDArray[Any]] = [np.empty(0, dtype)]
    for chunk in file.column(name).chunks:
        if len(chunk):
            data: NDArray[Any] = np.frombuffer(chunk.buffers()[1], dtype)
            parts.append(data[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts)


@dataclass(frozen=True)
class Version:
    """A version that is asked about a rule; its files are read once."""

    store: Store
    commit: Commit
    _sets: dict[tuple[str, str], ExactSets] = field(default_factory=dict)

    @property
    def read(self) -> int:
        """How many minimal sets were read so far."""
        return sum(len(each.masks) for each in self._sets.values())

    def sets(self, name: str, space: str, atoms: int) -> ExactSets:
        """The minimal sets of a table that no pair violates."""
        if (name, space) not in self._sets:
            file = self.commit.table(name).evidence[space].files["sets"]
            self._sets[name, space] = ExactSets.of(stored(self.store, file), atoms)
        return self._sets[name, space]
