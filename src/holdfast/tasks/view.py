"""What every task over segments is told: where they are and how their rows are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import evidence, index
from holdfast.tasks.segments import Segment, map_dead, map_words

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

    def rows(self, segment: Segment, positions: I64) -> U64:
        """Rows of a segment as a row-major block."""
        words = map_words(self.path, segment)
        out = np.empty((positions.size, words.shape[0]), np.uint64)
        index.gather(words, positions, out)
        return out

    def part(self, column: int, part: int, parts: int) -> tuple[U64, I64]:
        """All living rows whose cell in ``column`` falls into a part, with their ids."""
        blocks = [np.empty((0, sum(self.widths) + self.shape.full.size), np.uint64)]
        ids = [np.empty(0, np.int64)]
        for segment in self.segments:
            words = map_words(self.path, segment)
            dead = map_dead(self.path, segment)
            chosen = index.choose(words, dead, column, self.shape, part, parts)
            blocks.append(self.rows(segment, chosen))
            ids.append(chosen + segment.base)
        return np.concatenate(blocks), np.concatenate(ids)
