"""What every task over segments is given: where they are and how their rows are laid out."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import evidence, index
from holdfast.kernels.arrays import I64, U64
from holdfast.tasks.segments import (
    Segment,
    are_dead,
    index_codes,
    index_columns,
    index_cuts,
    look_up,
    map_between,
    map_dead,
    map_words,
)

LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1
"""The ends of all codes."""


@dataclass(frozen=True)
class Among:
    """The rows that have one of some codes in an index."""

    index: str
    codes: I64


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
    def shape(self) -> evidence.RowShape:
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

    @property
    def home(self) -> str | None:
        """The words of the segment with the most rows: what else belongs to it lies there, too, and
        small segments that come and go change nothing."""
        largest = min(self.segments, key=lambda s: (-s.rows, s.words), default=None)
        return None if largest is None else f"{self.root}/{largest.words}"

    def rows(self, segment: Segment, positions: I64) -> U64:
        """Rows of a segment."""
        return map_words(self.path, segment).at(positions)[positions]

    def rows_with(self, ids: I64) -> U64:
        """Rows by their ids."""
        out = np.empty((len(ids), self.shape.owner.size + self.shape.full.size), np.uint64)
        numbers = ids >> 32
        for segment in self.segments:
            places = np.flatnonzero(numbers == segment.number)
            if places.size:
                out[places] = self.rows(segment, ids[places] - segment.base)
        return out

    def stored(self, segment: Segment, words: U64) -> index.SegmentRows:
        """The rows of a segment, for kernels, which read those of ``words`` that were checked."""
        return index.SegmentRows(words, segment.base, map_dead(self.path, segment))

    def looked_up(self, segment: Segment, ranges: index.Ranges) -> index.SegmentRows:
        """The rows of a segment that look-ups returned, for kernels."""
        return self.stored(segment, map_words(self.path, segment).ranged(ranges))

    def between(
        self, name: str, low: int, high: int | None, among: Among | None = None
    ) -> evidence.NumberedRows:
        """All living rows whose code in an index is at least ``low`` and below ``high`` (``None``:
        no bound), with their ids, in the order of the codes; of these the ones ``among`` some.
        Most rows that have a code for themselves are left out, and where nulls differ, a null's
        row: they agree with no other one."""
        chosen, ids, runs = [], [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        parts = [map_between(self.path / s.indexes[name], low, high) for s in self.segments]
        shared = index.repeated([codes for codes, _ in parts])
        for segment, (every, entries), repeated in zip(self.segments, parts, shared, strict=True):
            codes, positions = every[repeated], entries[repeated].astype(np.int64)
            wanted = ~self._left_out(segment, name, positions)
            if among is not None:
                others = index_codes(self.rows(segment, positions), among.index, self.shape)
                wanted &= np.isin(others.view(np.int64), among.codes)
            chosen.append(positions[wanted])
            ids.append(positions[wanted] + segment.base)
            runs.append(codes[wanted])
        # A stable sort merges the segments' runs, which are in order already.
        order = np.argsort(np.concatenate(runs), kind="stable")
        targets = np.empty_like(order)
        targets[order] = np.arange(order.size)
        rows = np.empty((order.size, self.shape.owner.size + self.shape.full.size), np.uint64)
        start = 0
        for segment, positions in zip(self.segments, chosen, strict=True):
            words = map_words(self.path, segment).at(positions)
            index.scatter(words, positions, targets[start : start + positions.size], rows)
            start += positions.size
        return evidence.NumberedRows(rows, np.concatenate(ids)[order])

    def having(self, segment: Segment, among: Among) -> I64:
        """The positions of the living rows of a segment that have some codes in an index."""
        lo, hi, entries = look_up(self.path, segment, among.index, among.codes.view(np.uint64))
        runs = [entries[start:stop] for start, stop in zip(lo, hi, strict=True)]
        positions = np.concatenate([np.empty(0, np.int64), *runs])
        return positions[~self._left_out(segment, among.index, positions)]

    def _left_out(self, segment: Segment, name: str, positions: I64) -> NDArray[np.bool_]:
        out = are_dead(self.path, segment, positions)
        if not self.nulls_equal:
            for column in {*index_columns(name)}:
                word = self.shape.owner.size + column // 64
                nulls = map_words(self.path, segment).at(positions)[positions, word]
                out |= (nulls >> np.uint64(column % 64) & np.uint64(1)).astype(np.bool_)
        return out


def bounds(view: View, name: str, parts: int) -> list[int]:
    """Codes that cut an index into parts of about as many rows; the first part has no lower end."""
    codes, rows = _weighted(view, name)
    if not codes.size:
        return []
    ends = np.cumsum(rows)
    shares = ends[-1] * np.arange(1, parts) / parts
    places = np.minimum(np.searchsorted(ends, shares, "right"), codes.size - 1)
    return sorted({int(code) for code in codes[places]})


class Division(NamedTuple):
    """An index cut into parts by the rows that its codes have."""

    ranges: list[tuple[int, int | None]]  # from a code to below another one; None: no bound
    heavy: I64  # codes in none of the ranges, because they alone have more rows than a part
    heavy_share: float  # of all rows, that they have

    @property
    def heavy_ranges(self) -> list[tuple[int, int | None]]:
        """A range for each heavy code; nothing lies above the highest one that there is."""
        return [(code, code + 1 if code < HIGHEST else None) for code in self.heavy.tolist()]


def divided(view: View, name: str, most: float, heavy_from: float) -> Division:
    """Ranges of codes of at most about so many rows each, but for codes that have more; those that
    have more than another number of rows are left out as heavy."""
    ranges: list[tuple[int, int | None]] = []
    heavy: list[int] = []
    low, light_rows, heavy_rows = LOWEST, 0.0, 0.0
    for code, rows in zip(*map(np.ndarray.tolist, _weighted(view, name)), strict=True):
        is_heavy = rows > heavy_from
        if is_heavy or light_rows + rows > most:
            if light_rows:
                ranges.append((low, code))
                low = code
            light_rows = 0.0
        if is_heavy:
            # Between two heavy codes there may be some that are not listed.
            if LOWEST < low < code:
                ranges.append((low, code))
            heavy.append(code)
            heavy_rows += rows
            low = code + 1
        else:
            light_rows += rows
    if low <= HIGHEST:
        ranges.append((low, None))
    living = max(1, sum(segment.live for segment in view.segments))
    return Division(ranges, np.array(heavy, np.int64), min(1.0, heavy_rows / living))


def _weighted(view: View, name: str) -> tuple[I64, NDArray[np.float64]]:
    """The codes that the segments' indexes list, ascending, and about how many living rows have
    each, or one up to the next: a code stands for as many rows as lie between two that are
    listed, so that what has many is listed often."""
    codes, rows = [np.empty(0, np.int64)], [np.empty(0, np.float64)]
    for segment in view.segments:
        cuts = index_cuts(view.path / segment.indexes[name])
        codes.append(cuts)
        rows.append(np.full(len(cuts), segment.live / max(len(cuts), 1)))
    distinct, where = np.unique(np.concatenate(codes), return_inverse=True)
    weights = np.bincount(where, np.concatenate(rows), distinct.size)
    return distinct, weights.astype(np.float64)
