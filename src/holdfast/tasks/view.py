"""A view: segments of a table as tasks see them, with the layout of their rows."""

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
    """The rows that have one of these codes in an index."""

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
        """The words of the largest segment. Its other files are near them, and small segments that
        come and go do not change the choice."""
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
        """The rows of a segment for kernels, which read only what was checked."""
        return index.SegmentRows(words, segment.base, map_dead(self.path, segment))

    def looked_up(self, segment: Segment, ranges: index.Ranges) -> index.SegmentRows:
        """The rows of a segment in the ranges of look-ups, for kernels."""
        return self.stored(segment, map_words(self.path, segment).ranged(ranges))

    def between(
        self, name: str, low: int, high: int | None, among: Among | None = None
    ) -> evidence.NumberedRows:
        """All living rows with codes from ``low`` to below ``high`` (``None``: no bound) in an
        index, with their ids, in the order of the codes; only those ``among`` others if that is
        given. Left out are most rows whose code no other row has, and, where nulls are unequal,
        rows with a null: they agree with no other row."""
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
        """The positions of the living rows of a segment that have one of these codes."""
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
    """Codes that divide an index into parts with about equally many rows; the first part has no
    lower bound."""
    codes, rows = _weighted(view, name)
    if not codes.size:
        return []
    ends = np.cumsum(rows)
    shares = ends[-1] * np.arange(1, parts) / parts
    places = np.minimum(np.searchsorted(ends, shares, "right"), codes.size - 1)
    return sorted({int(code) for code in codes[places]})


class Division(NamedTuple):
    """An index divided into ranges with bounded numbers of rows."""

    ranges: list[tuple[int, int | None]]  # from a code to below another one; None: no bound
    heavy: I64  # codes in none of the ranges, because they alone have more rows than a part
    heavy_share: float  # of all rows, that they have

    @property
    def heavy_ranges(self) -> list[tuple[int, int | None]]:
        """A range for each heavy code; there is none above the highest."""
        return [(code, code + 1 if code < HIGHEST else None) for code in self.heavy.tolist()]


def divided(view: View, name: str, most: float, heavy_from: float) -> Division:
    """Ranges of codes with at most about ``most`` rows each, unless a single code has more. Codes
    with more than ``heavy_from`` rows are left out as heavy."""
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
    """The codes that the indexes of all segments list, ascending, with the estimated number of rows
    up to the next. A code stands for the rows between two listed ones, so frequent codes are listed
    often."""
    codes, rows = [np.empty(0, np.int64)], [np.empty(0, np.float64)]
    for segment in view.segments:
        cuts = index_cuts(view.path / segment.indexes[name])
        codes.append(cuts)
        rows.append(np.full(len(cuts), segment.live / max(len(cuts), 1)))
    distinct, where = np.unique(np.concatenate(codes), return_inverse=True)
    weights = np.bincount(where, np.concatenate(rows), distinct.size)
    return distinct, weights.astype(np.float64)
