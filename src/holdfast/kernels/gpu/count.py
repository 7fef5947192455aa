"""Words of pairs of rows, counted on a CUDA device.

Codes travel once and are packed on the device (:mod:`.plan`); a sample of the pairs says which
words are frequent; then all pairs are counted, and the distinct words come back. Sides that are too
long for the device's memory are cut, and the tiles of their parts counted one after the other.

Nothing here imports CuPy before it is called: it is there only with the extra ``gpu``.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels import pairs
from holdfast.kernels.arrays import I32, I64, U32
from holdfast.kernels.comparisons import WordLayout
from holdfast.kernels.gpu import pack, source
from holdfast.kernels.gpu.plan import EQUAL, ORDERED, OWN, CellFacts, null_codes, plan
from holdfast.kernels.pairs import TilePairs, TileRows, WordCounts
from holdfast.kernels.ranks import NULL
from holdfast.model.comparisons import BOTH

SAMPLED = 1 << 26
"""Pairs from which on a sample says which words are frequent."""

SAMPLE = 2_048
"""Rows of either side in the sample."""

UNITS = 32
"""Units of work for each block of threads, so that all end at about the same time."""

LARGEST = 1 << 30
"""Pairs of a unit, at most."""

SPAN = 16
"""Rows of the shorter side in a unit, at least."""

CODES = 1 << 26
"""Bytes of codes that travel at once."""

SHARE = 8
"""Each side takes at most the device's free memory divided by this."""

KEPT = 1 << 29
"""Bytes of the device's memory that are kept from one call to the next: asking for them takes as
long as a small tile does."""

ROOM = 1
"""Steps of all blocks that a hash table has room for, beside its entries."""


class _Side(NamedTuple):
    """Rows of one side on the device."""

    packed: Any  # (rows, columns)
    first: int  # the number of the first one
    rows: int


class _Table:
    """Keys and their counters on the device."""

    def __init__(self, cupy: Any, length: int, slots: int, direct: bool, with_pairs: bool) -> None:
        self.slots = slots
        self.keys = cupy.zeros((0 if direct else slots, length), np.uint32)
        self.counts = cupy.zeros(slots, np.uint64)
        self.pairs = cupy.zeros(slots if with_pairs else 0, np.uint64)
        self.entries = cupy.zeros(1, np.uint32)

    @property
    def arguments(self) -> tuple[Any, ...]:
        last = np.uint32(self.slots - 1)
        return self.keys, self.counts, self.pairs_or_null, self.entries, last

    @property
    def pairs_or_null(self) -> Any:
        """The array for pairs, or a null pointer where none are asked for."""
        return self.pairs if len(self.pairs) else np.uint64(0)


def count(tile: TilePairs, with_pairs: bool = False) -> WordCounts:
    """The same as :func:`holdfast.kernels.pairs.count`, or a ``MemoryError`` where the device's
    memory does not suffice."""
    if not tile.number:
        return pairs.count(tile, with_pairs)
    import cupy

    try:
        return _Count(cupy, tile, with_pairs).result()
    finally:
        pool = cupy.get_default_memory_pool()
        if pool.total_bytes() > KEPT:
            pool.free_all_blocks()


def release() -> None:
    """Release the device memory that is kept from one call to the next."""
    import cupy

    cupy.get_default_memory_pool().free_all_blocks()


class _Count:
    """One call: the plan, the kernels, the table."""

    def __init__(self, cupy: Any, tile: TilePairs, with_pairs: bool) -> None:
        self.cupy, self.with_pairs = cupy, with_pairs
        self.layout, self.ones, self.others, self.nulls_equal, self.ends = tile
        self.plan = plan(cells(self.layout, self.ones, self.others), self.nulls_equal)
        attributes = cupy.cuda.Device().attributes
        self.shape = source.shape(self.plan, attributes["MaxSharedMemoryPerBlockOptin"])
        # Threads are for rows of one side: for those s, where there are few rows t.
        self.swapped = len(self.ends) < min(self.shape.tile, self.others.codes.shape[1])
        text = source.source(self.plan, self.shape, self.nulls_equal, self.swapped)
        number = cupy.cuda.Device().id
        self.kernels = _module(text, number)
        self.pack = _module(pack.SOURCE, number).get_function("pack")
        self.counting = self.kernels.get_function("count_pairs")
        self.shared = source.shared_bytes(self.plan, self.shape)
        if self.shared > 48 << 10:
            self.counting.max_dynamic_shared_size_bytes = self.shared
        self.grid = attributes["MultiProcessorCount"] * self.shape.blocks
        self.total = tile.number
        self.hot = cupy.zeros((self.plan.length, self.shape.hot), np.uint32)
        self.hot_at = cupy.zeros(self.shape.hot, np.uint32)
        self.table = self._table(self._first_slots())

    def result(self) -> WordCounts:
        """Count all pairs and return their words."""
        free = self.cupy.cuda.runtime.memGetInfo()[0]
        most = max(self.shape.tile, free // SHARE // (4 * self.plan.columns))
        left_starts = range(0, len(self.ends), most)
        right_starts = range(0, int(self.ends.max()), most)
        sampled = self.total < SAMPLED
        right = None
        for first in left_starts:
            left = self._side(self.ones, 0, first, min(first + most, len(self.ends)))
            for second in right_starts:
                if right is None or len(right_starts) > 1:
                    end = min(second + most, self.others.codes.shape[1])
                    right = self._side(self.others, 1, second, end)
                ends = np.clip(self.ends[first : first + left.rows] - second, 0, right.rows)
                if not sampled and ends.any():
                    self._sample(left, right, ends)
                    sampled = True
                self._count(left, right, ends)
        return self._harvest()

    # Rows to the device.

    def _side(self, rows: TileRows, which: int, first: int, stop: int) -> _Side:
        cupy, number = self.cupy, stop - first
        packed = cupy.zeros((number, self.plan.columns), np.uint32)
        fields = cupy.asarray(self._fields(which))
        needs_own = rows.own is not None and any(word.kind == OWN for word in self.plan.words)
        width = self.layout.width if needs_own else 0
        batch_size = max(1, CODES // (4 * len(rows.codes) + 8 * width + 1))
        for start in range(first, stop, batch_size):
            end = min(stop, start + batch_size)
            codes = cupy.asarray(np.ascontiguousarray(rows.codes[:, start:end], np.int32))
            own = None
            if needs_own and rows.own is not None:
                own = cupy.asarray(np.ascontiguousarray(rows.own[start:end]))
            size = end - start
            arguments = (
                codes,
                own if own is not None else np.uint64(0),
                np.int32(width),
                np.int32(size),
                fields,
                np.int32(len(fields)),
                packed[start - first : end - first],
                np.int32(self.plan.columns),
            )
            self.pack((_blocks_for(size),), (256,), arguments)
        return _Side(packed, first, number)

    def _fields(self, which: int) -> U32:
        """The fields of one side, as the packing kernel takes them."""
        layout, planes = self.layout, (self.layout.left, self.layout.right)[which]
        out = []
        for word in self.plan.words:
            for field in word.fields:
                k, cell = field.comparison, self.plan.cells[field.comparison]
                if word.kind == OWN:
                    out.append((word.column, field.low, layout.bit[k], field.bits, 0, 0))
                    continue
                code = null_codes(cell.largest, cell.kind, self.nulls_equal)[which]
                mask = field.guard | field.guard >> 1 if word.nulls else 0
                out.append((word.column, field.low, planes[k], 0, code, mask))
        return np.array(out, np.uint32).reshape(-1, 6)

    # Counting.

    def _count(self, left: _Side, right: _Side, ends: I64) -> None:
        """Count a tile, with larger tables where one becomes full."""
        cupy = self.cupy
        units = self._units(left, ends)
        origin = np.uint64((left.first << 32) + right.first)
        longer, shorter = (right, left) if self.swapped else (left, right)
        ends_there = cupy.asarray(ends.astype(np.int32))
        while len(units):
            units_there = cupy.asarray(units)
            state = cupy.zeros(2, np.int32)
            unfinished = cupy.empty((self.grid, 4), np.int32)
            arguments = (
                longer.packed,
                shorter.packed,
                ends_there,
                np.int32(longer.rows),
                origin,
                units_there,
                np.int32(len(units)),
                state[:1],
                unfinished,
                state[1:],
                *self.table.arguments,
                np.uint32(self._limit()),
                self.hot,
                self.hot_at,
            )
            blocks = min(self.grid, len(units))
            threads = (self.shape.threads,)
            self.counting((blocks,), threads, arguments, shared_mem=self.shared)
            if self.plan.direct:
                return
            done, number = state.get().tolist()
            if not number:
                return
            units = np.concatenate([unfinished[:number].get(), units[done:]])
            self._grow()

    def _units(self, left: _Side, ends: I64) -> I32:
        """Tiles of rows beside spans of the others: (tile, first, last, where all are compared)."""
        tile = self.shape.tile
        wanted = int(ends.sum()) // (UNITS * self.grid * tile)
        span = min(max(SPAN, wanted), LARGEST // tile)
        if span > self.shape.step:
            span = -(-span // self.shape.step) * self.shape.step
        if self.swapped:
            number = -(-int(ends.max(initial=0)) // tile)
            reach, sure = np.full(number, left.rows), np.zeros(number, np.int64)
        else:
            starts = np.arange(0, len(ends), tile)
            reach = np.maximum.reduceat(ends, starts)
            sure = np.minimum.reduceat(ends, starts)
            if len(ends) % tile:
                sure[-1] = 0
        spans = -(-reach // span)
        of = np.repeat(np.arange(len(reach)), spans)
        first = (np.arange(len(of)) - np.repeat(np.cumsum(spans) - spans, spans)) * span
        last = np.minimum(first + span, reach[of])
        return np.stack([of, first, last, sure[of]], axis=1).astype(np.int32)

    def _sample(self, left: _Side, right: _Side, ends: I64) -> None:
        """Count the pairs of some rows, for the words that are frequent among them."""
        cupy = self.cupy
        random = np.random.default_rng(0)
        left_rows = np.sort(random.integers(0, left.rows, min(SAMPLE, left.rows)))
        right_rows = np.sort(random.integers(0, right.rows, min(SAMPLE, right.rows)))
        fewer = np.searchsorted(right_rows, ends[left_rows])
        one = _Side(left.packed[cupy.asarray(left_rows)], 0, len(left_rows))
        other = _Side(right.packed[cupy.asarray(right_rows)], 0, len(right_rows))
        self._count(one, other, fewer)
        self._find_hot()
        self.table.counts.fill(0)
        if self.with_pairs:
            # Words among the frequent ones note no pair later: they have those of the sample.
            packed = self.table.pairs
            lefts, rights = packed >> np.uint64(32), packed & np.uint64(0xFFFFFFFF)
            packed[:] = (cupy.asarray(left_rows + left.first)[lefts.astype(np.int64)] << 32) + (
                cupy.asarray(right_rows + right.first)[rights.astype(np.int64)]
            )

    def _find_hot(self) -> None:
        best = self.cupy.zeros(self.shape.hot, np.uint64)
        table = self.table
        find = self.kernels.get_function("find_hot")
        slots = np.uint32(table.slots)
        find((_blocks_for(table.slots),), (256,), (table.keys, table.counts, slots, best))
        take = self.kernels.get_function("take_hot")
        take((-(-self.shape.hot // 256),), (256,), (table.keys, best, self.hot, self.hot_at))

    # The table.

    def _step(self) -> int:
        """Pairs that all blocks compare at once."""
        return self.grid * self.shape.tile * self.shape.step

    def _first_slots(self) -> int:
        if self.plan.direct:
            return 1 << self.plan.direct
        return 1 << (2 * min(self.total, ROOM * self._step()) - 1).bit_length()

    def _table(self, slots: int) -> _Table:
        return _Table(self.cupy, self.plan.length, slots, self.plan.direct > 0, self.with_pairs)

    def _limit(self) -> int:
        """Entries from which on the table may become full within a step."""
        most = self.table.slots // 4 * 3
        return 0xFFFFFFFF if most >= self.total else max(0, most - self._step())

    def _grow(self) -> None:
        old = self.table
        if old.slots >= 1 << 29:
            raise MemoryError(f"There are more than {old.slots // 2:,} distinct words.")
        self.table = self._table(4 * old.slots)
        move = self.kernels.get_function("move_entries")
        arguments = (
            old.keys,
            old.counts,
            old.pairs_or_null,
            np.uint32(old.slots),
            *self.table.arguments,
        )
        move((_blocks_for(old.slots),), (256,), arguments)
        if self.hot_at.any():
            self._find_hot()

    def _harvest(self) -> WordCounts:
        cupy, layout = self.cupy, self.layout
        entries = cupy.flatnonzero(self.table.counts).astype(np.uint32)
        words = cupy.zeros((len(entries), layout.width), np.uint64)
        bits = np.array(
            [(bit, self._bit(comparison, which)) for bit, comparison, which in self.plan.bits],
            np.int32,
        ).reshape(-1, 2)
        arguments = (
            self.table.keys,
            entries,
            np.uint32(len(entries)),
            cupy.asarray(bits),
            np.int32(len(bits)),
            words,
            np.int32(layout.width),
        )
        blocks = -(-len(entries) // 256)
        self.kernels.get_function("decode")((blocks,), (256,), arguments)
        order = cupy.lexsort(cupy.ascontiguousarray(words.T[::-1]))
        entries = entries[order]
        sorted_words = words[order].get()
        counts = self.table.counts[entries].get().astype(np.int64)
        packed = self.table.pairs[entries if self.with_pairs else entries[:0]].get()
        rows = np.stack([packed >> np.uint64(32), packed & np.uint64(0xFFFFFFFF)], axis=1)
        return WordCounts(sorted_words, counts, rows.astype(np.int64))

    def _bit(self, comparison: int, which: int) -> int:
        """The bit of a word for an outcome; with rows the other way round, <= is >=."""
        layout = self.layout
        if self.swapped and layout.ordered[comparison] and layout.rows[comparison] == BOTH:
            which = 1 - which
        return int(layout.bit[comparison]) + which


def cells(layout: WordLayout, ones: TileRows, others: TileRows) -> tuple[CellFacts, ...]:
    """What a plan has to know of every comparison."""
    largest: list[Any] = []
    nulls: list[Any] = []
    for side in (ones, others):
        if largest and side.codes is ones.codes:
            largest, nulls = 2 * largest, 2 * nulls
            break
        largest.append(side.codes.max(axis=1, initial=NULL))
        nulls.append(side.codes.min(axis=1, initial=0) == NULL)
    out = []
    for k, (left, right) in enumerate(zip(layout.left, layout.right, strict=True)):
        if layout.rows[k] != BOTH:
            out.append(CellFacts(OWN, 3 if layout.ordered[k] else 1, False))
            continue
        top = max(0, int(largest[0][left]), int(largest[1][right]))
        has_nulls = bool(nulls[0][left] or nulls[1][right])
        out.append(CellFacts(ORDERED if layout.ordered[k] else EQUAL, top, has_nulls))
    return tuple(out)


def _blocks_for(size: int) -> int:
    return max(1, min(4_096, -(-size // 256)))


@lru_cache(maxsize=64)
def _module(text: str, number: int) -> Any:  # each device loads its own
    import cupy

    return cupy.RawModule(code=text, options=("--std=c++17",))
