"""Two inequalities looked up in chains of rows, beside a scan: the time follows what is found."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.batches import verdict
from holdfast.kernels import chains
from holdfast.kernels.arrays import I64
from holdfast.kernels.chains import HIGHEST, LOWEST, Chains, RangeQueries

ROWS = (100_000, 1_000_000, 10_000_000)
LOOKED_UP, SCANNED = 1_000, 5
REPEATS = 101
"""So many that some are not disturbed: the quickest one counts."""


def main() -> None:
    """Of 1,000 rows those that have more in one column and less in another, which rises with it:
    about as many in tables of every size."""
    _timed(lambda: _looked_up(*_table(1_000)))  # compiled by now
    taken = []
    for rows in ROWS:
        index, one, two = _table(rows)
        count, seconds = _timed(lambda: _looked_up(index, one, two))  # noqa: B023 -- called at once
        scanned = _scanned(index, one, two)
        taken.append(seconds)
        print(
            f"  {rows:>10,} rows, rank {index.rank}: {count:,} found in {1000 * seconds:.1f} ms, "
            f"by a scan {scanned:.1f} s"
        )
    for rows, before, after in zip(ROWS[1:], taken, taken[1:], strict=False):
        verdict(f"{rows:,} rows, times that of a tenth", after / before, 1.5)


def _table(rows: int) -> tuple[Chains, I64, I64]:
    """Two columns that rise together, with some noise, and rows to look up."""
    dice = np.random.default_rng(5)
    first = np.arange(rows) * 8
    second = first + dice.integers(0, 800, rows)
    index = chains.build(np.zeros(rows, np.int64), first, second)
    asked = np.sort(dice.integers(0, rows, LOOKED_UP))
    return index, first[asked], first[asked] + 900


def _looked_up(index: Chains, least: I64, most: I64) -> int:
    """How many rows there are; all are read."""
    size = len(least)
    ends = np.full(size, HIGHEST), np.full(size, LOWEST)
    boxes = RangeQueries(
        np.zeros(size, np.int64),
        np.full(size, len(index.codes)),
        np.stack([least, ends[0]], axis=1),
        np.stack([ends[1], most], axis=1),
    )
    stretches = chains.fetch(index, boxes)
    sizes = stretches[:, 2] - stretches[:, 1]
    places = np.arange(sizes.sum()) + np.repeat(stretches[:, 1] - np.cumsum(sizes) + sizes, sizes)
    return len(index.positions[places])


def _scanned(index: Chains, least: I64, most: I64) -> float:
    """The seconds that a scan takes for as many rows, from those for some of them."""
    start = time.perf_counter()
    for low, high in zip(least[:SCANNED], most[:SCANNED], strict=True):
        np.flatnonzero((index.first >= low) & (index.second <= high))
    return (time.perf_counter() - start) * len(least) / SCANNED


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    times = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        result = work()
        times.append(time.perf_counter() - start)
    return result, min(times)
