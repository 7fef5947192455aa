"""What every task over segments is given: where they are and how their rows are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import evidence, index
from holdfast.tasks.segments import Segment, are_dead, map_arrays, map_dead, map_words

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class View:
    """Some segments of a table."""

    root: str
    segments: tuple[Segment, ...]
    widths: tuple[int, ...]
    nulls_equal: bool

    @cached_property
    def path(self) -> Path:
        """The profile directory."""
        return Path(self.root)

    @cached_property
    def shape(self) -> evidence.Shape:
        """The shape of the rows, for kernels."""
        return evidence.shape(list(self.widths), self.nulls_equal)

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.widths)

    @property
    def words(self) -> int:
        """How many words a row has."""
        return self.shape.owner.size + self.shape.full.size

    @property
    def live(self) -> int:
        """How many living rows there are."""
        return sum(segment.live for segment in self.segments)

    def rows(self, segment: Segment, positions: I64) -> U64:
        """Rows of a segment."""
        return map_words(self.path, segment)[positions]

    def stored(self, segment: Segment) -> index.Stored:
        """All rows of a segment, for kernels."""
        words, dead = map_words(self.path, segment), map_dead(self.path, segment)
        return index.Stored(words, segment.base, dead)

    def between(self, column: int, low: int, high: int | None) -> evidence.Rows:
        """All living rows whose code in an indexed column is at least ``low`` and below ``high``
        (``None``: no bound), with their ids, in the order of the codes. Where nulls differ, a
        null's row is left out: it agrees with nothing."""
        chosen, ids, runs = [], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        for segment in self.segments:
            arrays, _ = map_arrays(self.path / segment.indexes[str(column)])
            codes = arrays["codes"]
            lo = np.searchsorted(codes, low)
            hi = len(codes) if high is None else np.searchsorted(codes, high)
            positions = arrays["positions"][lo:hi].astype(np.int64)
            kept = ~self._left_out(segment, column, positions)
            chosen.append(positions[kept])
            ids.append(positions[kept] + segment.base)
            runs.append(codes[lo:hi][kept])
        # A stable sort merges the segments' runs, which are in order already.
        order = np.argsort(np.concatenate(runs), kind="stable")
        targets = np.empty_like(order)
        targets[order] = np.arange(order.size)
        rows = np.empty((order.size, self.shape.owner.size + self.shape.full.size), np.uint64)
        start = 0
        for segment, positions in zip(self.segments, chosen, strict=True):
            words = map_words(self.path, segment)
            index.scatter(words, positions, targets[start : start + positions.size], rows)
            start += positions.size
        return evidence.Rows(rows, np.concatenate(ids)[order])

    def _left_out(self, segment: Segment, column: int, positions: I64) -> NDArray[np.bool_]:
        out = are_dead(self.path, segment, positions)
        if not self.nulls_equal:
            word = self.shape.owner.size + column // 64
            nulls = map_words(self.path, segment)[positions, word]
            out |= (nulls >> np.uint64(column % 64) & np.uint64(1)).astype(np.bool_)
        return out


def bounds(view: View, column: int, parts: int) -> list[int]:
    """Codes that cut a column into parts of about as many rows; the first part has no lower end.

    From the few codes that every segment's index lists, so the cuts are good, not perfect.
    """
    by_segment = [map_arrays(view.path / s.indexes[str(column)])[1]["cuts"] for s in view.segments]
    taken = np.sort(np.array([code for cuts in by_segment for code in cuts], np.int64))
    cuts = [int(taken[len(taken) * k // parts]) for k in range(1, parts)] if taken.size else []
    return sorted(set(cuts))
