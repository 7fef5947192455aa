"""How many distinct values every two attributes share, read where it is needed.

This is a matrix with a row and a column for each attribute. A batch changes only the rows and
columns of its tables' attributes. So the matrix is stored in runs of differences, which are added
up: each batch adds a run, and runs are merged in tiers. The files of a run are divided by
attributes, so that a question about a table reads only the rows of its attributes. Reading needs no
kernels.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
import pyarrow as pa

from holdfast.kernels.arrays import I64, U64
from holdfast.model import thresholds
from holdfast.model.commits import ValueRun
from holdfast.store import Store
from holdfast.store.codecs import stored_file

Stretch = tuple[int, int]
"""Attributes: from a number to below another."""

Entries = tuple[I64, I64, I64]
"""Two attributes and how many values they share, or by how many these changed: sorted by the
attributes, with both orders of two, and none with itself."""

_READ_FILES = 32
"""Files whose entries are cached: neighbouring stretches are mostly in the same ones."""


@dataclass(frozen=True)
class ValueMoves:
    """Values that moved between clusters: how many moved from which set of attributes to which.
    Only the attributes ``changed`` gained and lost values."""

    before: U64
    after: U64
    counts: I64
    changed: tuple[Stretch, ...]

    def add_to(self, out: I64, low: int, high: int) -> None:
        """Add how the numbers of shared values of a stretch change."""
        from holdfast.kernels import values as kernels

        kernels.add_overlaps(self.before, -self.counts, low, high, out)
        kernels.add_overlaps(self.after, self.counts, low, high, out)

    def distinct(self, attributes: int) -> I64:
        """How the number of distinct values of each attribute changes."""
        from holdfast.kernels import values as kernels

        out = np.zeros(attributes, np.int64)
        kernels.add_distinct(self.before, -self.counts, out)
        kernels.add_distinct(self.after, self.counts, out)
        return out


@dataclass(frozen=True)
class Overlaps:
    """How many distinct values every two attributes share: stored in runs, and the moves since."""

    distinct: I64  # values that each attribute has itself
    runs: tuple[ValueRun, ...] = ()
    store: Store | None = None  # that has the files of the runs
    moves: ValueMoves | None = None  # not yet in a run
    _read: dict[str, Entries] = field(default_factory=dict, compare=False, repr=False)

    @property
    def count(self) -> int:
        """How many attributes there are."""
        return len(self.distinct)

    def moved(self, moves: ValueMoves) -> Overlaps:
        """The state after values moved, which happens once per version."""
        assert self.moves is None
        return replace(self, distinct=self.distinct + moves.distinct(self.count), moves=moves)

    def rows(self, low: int, high: int) -> I64:
        """How many values the attributes of a stretch share with every attribute; with itself an
        attribute shares all it has."""
        out = np.zeros((high - low, self.count), np.int64)
        for run in self.runs:
            for one, two, values in self._parts(run, low, high):
                out[one - low, two] += values
        if self.moves is not None:
            self.moves.add_to(out, low, high)
        places = np.arange(low, high)
        out[places - low, places] = self.distinct[low:high]
        return out

    def stretches(self) -> list[Stretch]:
        """All attributes, in stretches small enough for memory."""
        return divided(self.count, parts(self.count))

    def entries(self, run: ValueRun, low: int, high: int) -> Entries:
        """The entries of a run for a stretch."""
        return _together(list(self._parts(run, low, high)))

    def _parts(self, run: ValueRun, low: int, high: int) -> Iterator[Entries]:
        stretches = divided(self.count, len(run.parts))
        for part, (first, last) in zip(run.parts, stretches, strict=True):
            if part is None or first >= high or last <= low:
                continue
            yield between(self._file(part), low, high)

    def _file(self, path: str) -> Entries:
        if path not in self._read:
            assert self.store is not None
            table = stored_file(self.store, path)
            while len(self._read) >= _READ_FILES:
                del self._read[next(iter(self._read))]
            one, two, values = (numbers(table, name) for name in ("one", "two", "values"))
            self._read[path] = one, two, values
        return self._read[path]


_NONE = np.empty(0, np.int64)


def parts(attributes: int) -> int:
    """How many files a large run has; each has at least one attribute."""
    return max(1, min(attributes, -(-(attributes**2) // thresholds.current.overlap_cells)))


def divided(attributes: int, count: int) -> list[Stretch]:
    """All attributes, in this many equal stretches."""
    edges = [attributes * k // count for k in range(count + 1)]
    return list(pairwise(edges))


def numbers(table: pa.Table, name: str) -> I64:
    """A column of whole numbers. Through the buffers, because pyarrow's own way would import
    pandas, which takes longer than all the rest."""
    column = table.column(name)
    kind = np.dtype(column.type.to_pandas_dtype())
    blocks = [
        np.frombuffer(chunk.buffers()[1], kind)[chunk.offset : chunk.offset + len(chunk)]
        for chunk in column.chunks
        if len(chunk)
    ]
    return np.concatenate([_NONE, *blocks]).astype(np.int64, copy=False)


def table_of(entries: Entries) -> pa.Table:
    """Entries in the form of a file."""
    one, two, values = entries
    return pa.table({"one": one.astype(np.int32), "two": two.astype(np.int32), "values": values})


def _together(blocks: list[Entries]) -> Entries:
    one, two, values = (np.concatenate([_NONE, *(block[k] for block in blocks)]) for k in range(3))
    return one, two, values


def summed(blocks: list[Entries]) -> Entries:
    """The sums of several lists of entries."""
    one, two, values = _together(blocks)
    order = np.lexsort((two, one))
    one, two, values = one[order], two[order], values[order]
    first = np.ones(len(one), np.bool_)
    first[1:] = (one[1:] != one[:-1]) | (two[1:] != two[:-1])
    starts = np.flatnonzero(first)
    if len(starts):
        one, two, values = one[starts], two[starts], np.add.reduceat(values, starts)
    nonzero = values != 0
    return one[nonzero], two[nonzero], values[nonzero]


def between(entries: Entries, low: int, high: int) -> Entries:
    """The entries of a stretch."""
    one, two, values = entries
    chosen = slice(*np.searchsorted(one, [low, high]))
    return one[chosen], two[chosen], values[chosen]


def shared_by_moved(moves: ValueMoves, attributes: int, low: int, high: int) -> Entries:
    """How moved values change what a stretch shares with all attributes."""
    block = np.zeros((high - low, attributes), np.int64)
    moves.add_to(block, low, high)
    one, two = np.nonzero(block)
    return one + low, two, block[one, two]


def changed_entries(moves: ValueMoves, attributes: int) -> Entries:
    """The entries that moved values change: the rows of the changed attributes, and, transposed,
    their columns."""
    inside = np.zeros(attributes, np.bool_)
    for low, high in moves.changed:
        inside[low:high] = True
    blocks: list[Entries] = []
    for low, high in moves.changed:
        one, two, values = shared_by_moved(moves, attributes, low, high)
        outside = ~inside[two]
        blocks += [(one, two, values), (two[outside], one[outside], values[outside])]
    return summed(blocks)
