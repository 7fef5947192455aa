"""Counting pairs of rows: the evidence of those in some tiles of rows × rows, and the pairs that
agree on given columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.kernels import counts as tables
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.comparisons import WordLayout, evidence, layout_of, mirror, own_words
from holdfast.kernels.pairs import TileRows, tile_pairs
from holdfast.kernels.ranks import Codes
from holdfast.model import thresholds
from holdfast.model.comparisons import Comparison, Space
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks import exchange
from holdfast.tasks.coding import Coding, comparisons_of
from holdfast.tasks.devices import CPU, GPU, Device
from holdfast.tasks.segments import (
    Segment,
    combined,
    deleted_since,
    live_positions,
    map_words,
)
from holdfast.tasks.view import View


def tile_rows(device: str) -> int:
    """Rows on a side of a tile, at most."""
    limits = thresholds.current
    return limits.gpu_tile_rows if device == GPU else limits.tile_rows


@dataclass(frozen=True)
class RowStretch:
    """Some rows of one segment, in the order of their positions.

    Those that live in ``segment`` are meant; with ``later``, the same segment as it was afterwards,
    those of them that had been deleted by then. Of these rows the stretch has the ones numbered
    from ``start`` on and before ``stop``.
    """

    segment: Segment
    later: Segment | None
    start: int
    stop: int

    @property
    def rows(self) -> int:
        """How many rows it has."""
        return self.stop - self.start


Side = tuple[RowStretch, ...]
"""Rows of a tile, at most as many as :func:`tile_rows` says."""


@dataclass(frozen=True)
class Tile:
    """Rows that are compared with rows."""

    ones: int
    """Which side the rows t are."""

    others: int
    """Which side the rows s are."""

    lead: int | None
    """Row t number i is compared with the first ``lead + i`` rows s; ``None``: with all."""

    sign: int
    """1 for pairs that the table has now, -1 for pairs that it had and has no more."""


MOST_WORDS = 4_000_000
"""Distinct evidences of a space from which on they are not counted: they would not fit the driver
either."""


@dataclass(frozen=True)
class Count:
    """Count the pairs of rows in some tiles, by their evidence in some spaces."""

    view: View
    """How rows are laid out; it needs no segments."""

    spaces: tuple[Space, ...]

    coding: Coding
    """How cells become codes, for the comparisons of all spaces."""

    with_pairs: bool
    """Whether to report two rows, too, for each evidence of pairs that the table has now."""

    device: str = CPU
    """What to count with, and how large tiles are therefore: ``cpu`` or ``gpu``."""

    sides: tuple[Side, ...] = ()
    """The sides of the tiles, each once."""

    tiles: tuple[Tile, ...] = ()

    @property
    def home(self) -> str | None:
        """The words of the segment that has the most of its rows."""
        stretches = [stretch for side in self.sides for stretch in side]
        most = min(stretches, key=lambda s: (-s.rows, s.segment.words), default=None)
        return None if most is None else f"{self.view.root}/{most.segment.words}"


@dataclass(frozen=True)
class CountAgreeing:
    """Count the pairs that agree on each of some sets of columns; with a prefix, write the hashes
    of these rows for :class:`CountAgreeingIn` instead."""

    view: View
    sets: tuple[tuple[int, ...], ...]
    prefix: str | None = None

    @property
    def work(self) -> int:
        """Rows that it goes through, once for each set."""
        return self.view.live * len(self.sets)


@dataclass(frozen=True)
class CountAgreeingIn:
    """Count the pairs with equal hashes in files, for each of some sets of columns, in one range
    of hashes."""

    root: str
    files: tuple[tuple[str, ...], ...]
    part: int
    parts: int


def agreeing(item: CountAgreeing) -> Iterator[TaskResult]:
    """The pairs of rows with equal cells, by grouping on a 128-bit hash of them."""
    hashes = (_hashes(item.view, columns) for columns in item.sets)
    if item.prefix is None:
        yield TaskResult({"pairs": [_equal_pairs(of_set) for of_set in hashes]})
        return
    root = item.view.path
    yield TaskResult({"files": [exchange.write(root, item.prefix, of_set) for of_set in hashes]})


def agreeing_in(item: CountAgreeingIn) -> Iterator[TaskResult]:
    """The same, of rows that all tasks have hashed."""
    ranges = (
        exchange.between(Path(item.root), files, item.part, item.parts, 2) for files in item.files
    )
    yield TaskResult({"pairs": [_equal_pairs(of_set) for of_set in ranges]})


def _hashes(view: View, columns: tuple[int, ...]) -> U64:
    """Two hashes of the cells in some columns, of all living rows that can agree with others."""
    shape = view.shape
    hashes = [np.empty((0, 2), np.uint64)]
    nulls = bitsets.from_columns([columns], view.columns)[0]
    for segment in view.segments:
        rows = map_words(view.path, segment).whole()
        living = np.zeros(len(rows), np.bool_)
        living[live_positions(view.path, segment)] = True
        if not view.nulls_equal:
            living &= (rows[:, shape.owner.size :] & nulls == 0).all(axis=1)
        codes = [combined(rows, columns, shape, seed)[living] for seed in (0, 1)]
        hashes.append(np.stack(codes, axis=1))
    return np.concatenate(hashes)


def _equal_pairs(hashes: U64) -> int:
    ordered = hashes[np.lexsort(hashes.T)]
    sizes = np.diff(np.append(np.flatnonzero(bitsets.begins_run(ordered)), len(ordered)))
    return int((sizes * (sizes - 1) // 2).sum())


def count(item: Count) -> Iterator[TaskResult]:
    """For each space, evidence with the change in its number of pairs; with pairs, also the ids of
    two rows that show each, -1 for what only pairs of before show. Then, what counted them.

    Where both rows of a pair see the same a pair counts once, elsewhere in both orders. Memory
    follows the rows of a tile and the number of distinct evidences, of which there may be too many.
    """
    view = item.view
    comparisons = comparisons_of([space.comparisons for space in item.spaces])
    layout = layout_of(comparisons)
    totals = [_Total(space, comparisons, layout) for space in item.spaces]
    device = Device(item.device, thresholds.current.tile_rows)
    for tiles in _numbered_together(item):
        rows = _load(item, tiles, layout)
        for tile in tiles:
            look()
            ones, others = rows[tile.ones], rows[tile.others]
            ends = None
            if tile.lead is not None:
                ends = np.clip(tile.lead + np.arange(len(ones.ids)), 0, len(others.ids))
            with_pairs = item.with_pairs and tile.sign > 0
            first, second = TileRows(ones.codes, ones.own_t), TileRows(others.codes, others.own_s)
            compared = tile_pairs(layout, first, second, view.nulls_equal, ends)
            for part in device.count(compared, with_pairs):
                counted = part.counted
                pairs = np.full((len(counted.words), 2), -1, np.int64)
                if with_pairs:
                    pairs[:, 0] = ones.ids[part.first + counted.pairs[:, 0]]
                    pairs[:, 1] = others.ids[part.second + counted.pairs[:, 1]]
                for total in totals:
                    total.add(counted.words, tile.sign * counted.counts, pairs)
                for total in totals:
                    if len(total.masks) > MOST_WORDS:
                        device.release()
                        yield TaskResult({"too_many": total.space.name})
                        return
    device.release()
    for total in totals:
        arrays: dict[str, NDArray[Any]] = {"masks": total.masks, "counts": total.counts}
        if item.with_pairs:
            arrays["pairs"] = total.pairs
        yield TaskResult({"space": total.space.name}, arrays)
    yield device.report()


class _Total:
    """Evidence of one space, with its numbers of pairs so far and a pair that shows each."""

    def __init__(self, space: Space, comparisons: list[Comparison], layout: WordLayout) -> None:
        self.space, self._layout = space, layout
        # Where only agreement counts, words are evidence, and in order already.
        self._is_word = space.comparisons == tuple(comparisons) and not layout.ordered.any()
        self._is_word = self._is_word and space.atoms == len(comparisons)
        self.masks = bitsets.empty(space.atoms)
        self.counts = np.empty(0, np.int64)
        self.pairs = np.empty((0, 2), np.int64)

    def add(self, words: U64, counts: I64, pairs: I64) -> None:
        """Add the pairs of a tile."""
        masks = words
        if not self._is_word:
            masks = evidence(words, self._layout, self.space)
            if not self.space.symmetric:
                mirrored = evidence(mirror(words, self._layout), self._layout, self.space)
                masks = np.concatenate([masks, mirrored])
                counts = np.concatenate([counts, counts])
                pairs = np.concatenate([pairs, pairs[:, ::-1]])
            masks, counts, pairs = tables.grouped(masks, counts, pairs)
        known = [self.masks, masks]
        shown_by = [self.pairs, pairs]
        self.masks, self.counts, _, _ = tables.added(self.masks, self.counts, masks, counts)
        self.pairs = tables.pairs_showing(self.masks, known, shown_by)


class _Coded(NamedTuple):
    """The rows of a side, with codes that can be compared with those of other sides."""

    ids: I64
    codes: Codes
    own_t: U64  # what comparisons within a row say where it is the first of a pair
    own_s: U64  # and where it is the second


def _numbered_together(item: Count) -> Iterator[list[Tile]]:
    """The tiles in their order, as many at a time as have no more rows than two sides can have: so
    that rows which several tiles share are loaded and numbered once."""
    tiles: list[Tile] = []
    sides: set[int] = set()
    for tile in item.tiles:
        more = sides | {tile.ones, tile.others}
        rows = sum(stretch.rows for side in more for stretch in item.sides[side])
        if tiles and rows > 2 * tile_rows(item.device):
            yield tiles
            tiles, more = [], {tile.ones, tile.others}
        tiles.append(tile)
        sides = more
    if tiles:
        yield tiles


def _load(item: Count, tiles: list[Tile], layout: WordLayout) -> dict[int, _Coded]:
    """The rows of all sides of some tiles, coded together."""
    view = item.view
    sides = sorted({side for tile in tiles for side in (tile.ones, tile.others)})
    stretches = [stretch for side in sides for stretch in item.sides[side]]
    rows = sum(stretch.rows for stretch in stretches)
    ids = np.empty(rows, np.int64)
    words = np.empty((rows, view.shape.owner.size + view.shape.full.size), np.uint64)
    start = 0
    for stretch in stretches:
        positions = _positions(view, stretch)
        these = slice(start, start + len(positions))
        ids[these] = positions + stretch.segment.base
        # With a mode other than "raise", rows are written where they belong without a copy.
        words_of_segment = map_words(view.path, stretch.segment).at(positions)
        np.take(words_of_segment, positions, 0, words[these], mode="clip")
        start = these.stop
    codes = item.coding.codes(words, view.shape.first)
    own_t, own_s = own_words(codes, layout, view.nulls_equal)
    ends = np.cumsum([sum(s.rows for s in item.sides[side]) for side in sides]).tolist()
    return {
        side: _Coded(ids[start:end], codes[:, start:end], own_t[start:end], own_s[start:end])
        for side, (start, end) in zip(sides, pairwise([0, *ends]), strict=True)
    }


def _positions(view: View, stretch: RowStretch) -> I64:
    """Where in its segment the rows of a stretch are."""
    positions = live_positions(view.path, stretch.segment)
    if stretch.later is not None:
        positions = deleted_since(view.path, stretch.segment, stretch.later)
    if len(positions) < stretch.stop:
        raise AssertionError(
            f"segment {stretch.segment.number}: {len(positions)} rows instead of {stretch.stop}"
        )
    return positions[stretch.start : stretch.stop]
