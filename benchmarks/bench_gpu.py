"""Pairs counted on a GPU beside two cores of the same machine: ``make bench-gpu``.

Every figure is of the whole call: codes to the device, counting, words and counts back. Counts are
summed; where the processor counts the same table, they are compared word by word. The first call of
a plan compiles its kernels, which is told apart.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from holdfast import flow
from holdfast.evidence.pairs import PairEvidence
from holdfast.input.row_input import Columns, RowInput
from holdfast.kernels import comparisons, gpu, pairs
from holdfast.kernels.gpu import count as gpu_count
from holdfast.kernels.pairs import TilePairs, TileRows, WordCounts
from holdfast.kinds.registry import completed
from holdfast.kinds.table_state import TableState
from holdfast.model.comparisons import AGREEMENTS, BOTH
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store

ADULT = [
    (73, 0.03), (9, 0.70), (21_648, 0.001), (16, 0.32), (16, 0.32), (7, 0.46), (15, 0.13),
    (6, 0.41), (5, 0.85), (2, 0.67), (119, 0.92), (92, 0.95), (94, 0.47), (42, 0.90), (2, 0.76),
]  # fmt: skip
"""Distinct values of adult's columns, and the share of the most frequent one."""

ORDERED = {0, 2, 4, 10, 11, 12}
BATCH, ADULT_ROWS = 50, 32_561
TIMES = 20
"""How many times as fast as two cores wide words are to be."""


Counter = Callable[[TilePairs, bool], WordCounts]
"""Counts pairs of rows, here or on the GPU."""


class Table(NamedTuple):
    """Codes, and how they are compared."""

    codes: Any
    layout: comparisons.WordLayout

    def head(self, rows: int) -> Table:
        """The first rows."""
        return Table(np.ascontiguousarray(self.codes[:, :rows]), self.layout)


def adult(rows: int) -> Table:
    """Columns like adult's, drawn by themselves: one frequent value, the others after Zipf."""
    random = np.random.default_rng(1)
    planes = []
    for values, share in ADULT:
        others = 1 / np.arange(1, values)
        weights = np.append(share, (1 - share) * others / others.sum())
        # Frequent values lie anywhere in the order.
        order = random.permutation(values).astype(np.int32)
        planes.append(order[_drawn(random, weights, rows)])
    # The number of years of education is that of its name.
    planes[4] = random.permutation(ADULT[3][0]).astype(np.int32)[planes[3]]
    return _table(np.array(planes), ORDERED)


def wide(rows: int) -> Table:
    """Forty columns: those of adult, and the same with fewer and fewer values."""
    codes = adult(rows).codes
    planes = [codes[c % 15] // (1 << c // 15) for c in range(40)]
    return _table(np.array(planes), {c for c in range(40) if c % 15 in ORDERED})


def even(rows: int) -> Table:
    """Fifteen columns of few values, all equally frequent: 373,248 words, none of them hot."""
    random = np.random.default_rng(3)
    sizes = [2 if c not in ORDERED else 3 for c in range(15)]
    planes = [random.integers(0, size, rows, np.int32) for size in sizes]
    return _table(np.array(planes), ORDERED)


def _drawn(random: np.random.Generator, weights: Any, rows: int) -> Any:
    cumulated = np.cumsum(weights / weights.sum())
    drawn = np.searchsorted(cumulated, random.random(rows, np.float32), "right")
    return np.minimum(drawn, len(weights) - 1).astype(np.int32)


def _table(codes: Any, ordered: set[int]) -> Table:
    space = [(c, c, BOTH, c in ordered) for c in range(len(codes))]
    return Table(np.ascontiguousarray(codes, np.int32), comparisons.layout(space))


def count(counter: Counter, table: Table, rows: Any = None) -> WordCounts:
    """All pairs of a table, or those of some rows t, with a pair of each word."""
    side = TileRows(table.codes)
    if rows is not None:
        ones = TileRows(table.codes[:, rows])
        return counter(pairs.tile_pairs(table.layout, ones, side, True), True)
    ends = np.arange(table.codes.shape[1])
    return counter(pairs.tile_pairs(table.layout, side, side, True, ends), False)


def timed(call: Callable[[], WordCounts], repeats: int) -> tuple[float, WordCounts]:
    """The least time of some calls."""
    least = float("inf")
    for _ in range(repeats):
        start = time.perf_counter()
        result = call()
        least = min(least, time.perf_counter() - start)
    return least, result


def on_two_cores(table: Table) -> float:
    """Seconds of two processes at once, each with the rows t that have a half of the pairs."""
    number = table.codes.shape[1]
    cut = int(number / np.sqrt(2))
    parts = [np.arange(cut), np.arange(cut, number)]
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        # Both start, and compile or load their kernels.
        list(pool.map(_counted, [table.head(2_000)] * 2, [np.arange(1_000, 2_000)] * 2))
        start = time.perf_counter()
        counted = list(pool.map(_counted, [table] * 2, parts))
        taken = time.perf_counter() - start
    assert sum(counted) == _pairs(number)
    return taken


def _counted(table: Table, rows: Any) -> int:
    """How many pairs of some rows with those before them are counted."""
    ones, others = TileRows(table.codes[:, rows]), TileRows(table.codes)
    tile = pairs.tile_pairs(table.layout, ones, others, True, rows)
    return int(pairs.count(tile).counts.sum())


def _pairs(rows: int) -> int:
    return rows * (rows - 1) // 2


def same(here: WordCounts, there: WordCounts) -> None:
    """Stop if words or counts differ."""
    assert np.array_equal(here.words, there.words)
    assert np.array_equal(here.counts, there.counts)


def large(counter: Counter, name: str, table: Table, most: float) -> None:
    """A table on the GPU, against a number of seconds."""
    rows = table.codes.shape[1]
    taken, counted = timed(lambda: count(counter, table), 1 if most > 60 else 3)
    assert int(counted.counts.sum()) == _pairs(rows)
    _verdict(
        f"{name}, {rows:,} rows: {taken:.3f} s (under {most:g}), "
        f"{_pairs(rows) / taken / 1e9:.0f} billion pairs/s, {len(counted.words):,} words",
        taken <= most,
    )


def beside(counter: Counter, name: str, table: Table) -> None:
    """The same table on the GPU and on two cores."""
    rows = table.codes.shape[1]
    start = time.perf_counter()
    count(counter, table)
    first = time.perf_counter() - start
    fast, counted = timed(lambda: count(counter, table), 3)
    slow = on_two_cores(table)
    alone, here = timed(lambda: count(pairs.count, table), 1)
    same(here, counted)
    _verdict(
        f"{name}, {rows:,} rows: {fast:.3f} s, {_pairs(rows) / fast / 1e9:.2f} billion pairs/s, "
        f"{len(counted.words):,} words (first call {first:.2f} s); one core {alone:.2f} s, two "
        f"{slow:.2f} s: {slow / fast:.0f} times (at least {TIMES})",
        slow >= TIMES * fast,
    )


def batch(counter: Counter, what: str, ordered: set[int]) -> None:
    """A small batch of new rows against adult's number of rows, with a pair for each word."""
    table = _table(adult(ADULT_ROWS).codes, ordered)
    rows = np.arange(BATCH) * 600
    slow, here = timed(lambda: count(pairs.count, table, rows), 20)
    fast, there = timed(lambda: count(counter, table, rows), 20)
    same(here, there)
    _verdict(
        f"{BATCH} rows against {ADULT_ROWS:,}, {what}: {1e3 * fast:.2f} ms, "
        f"one core {1e3 * slow:.2f} ms",
        fast <= slow,
    )


def profiled(rows: int, most: float) -> None:
    """A whole profile in this process: keys and functional dependencies, with pairs counted on the
    GPU. Most of its seconds are the host's: rows are read, searched for keys, loaded and coded."""
    _profile(3_000)  # compiles what there is to compile
    taken, seconds, known = _profile(rows)
    counts, choice = known.counts, known.choice
    assert counts is not None
    assert counts.pairs == _pairs(rows)
    _verdict(
        f"profile of keys and fds, {rows:,} rows: {taken:.1f} s; counted on {choice.device} in "
        f"{seconds['count']:.2f} s (under {most:g}), {(choice.pairs_per_second or 0) / 1e9:.0f} "
        f"billion pairs/s, {len(counts.masks):,} agree-sets; stages {seconds}",
        choice.device == gpu.device().name and seconds["count"] <= most,
    )


def _profile(rows: int) -> tuple[float, dict[str, float], PairEvidence]:
    """How long it took, and its stages, and what it found."""
    names = [f"c{c}" for c in range(len(ADULT))]
    cells = pa.table(dict(zip(names, map(pa.array, adult(rows).codes), strict=True)))
    columns = Columns.of(names, ["int"] * len(names), [pa.int32()] * len(names))
    options = Options(kinds=("keys", "fds"), evidence="counted", device="gpu", keep_rows=False)
    with tempfile.TemporaryDirectory() as folder:
        store = Store.create(Path(folder) / "profile")
        row_inputs = {"t": RowInput("rows", columns, cells)}
        start = time.perf_counter()
        flow.profile(InProcess(1), store, row_inputs, completed(options), no_progress)
        taken = time.perf_counter() - start
        version = store.read()
        known = TableState.load(store, version, "t").evidence[AGREEMENTS]
    return taken, version.seconds["t"], known


def _verdict(what: str, good: bool) -> None:
    print(f"  {'ok ' if good else 'NOT'} {what}", flush=True)


def main() -> None:
    """Print every figure with its target."""
    there = gpu.device()
    if not there.usable:
        print(f"  skipped: {there.missing}")
        return
    print(f"  {there.name}, {there.memory >> 20:,} MiB")
    counter = gpu_count.count
    batch(counter, "comparison words", ORDERED)
    batch(counter, "agree-sets", set())
    beside(counter, "adult-like", adult(100_000))
    beside(counter, "40 columns", wide(20_000))
    beside(counter, "no frequent words", even(100_000))
    profiled(300_000, 5)
    profiled(1_000_000, 15)
    large(counter, "adult-like", adult(1_000_000), 2.5)
    large(counter, "adult-like", adult(10_000_000), 240)
