"""The evidence kernels, on one core: pairs per second, and look-ups."""

from __future__ import annotations

import time

import numpy as np

from holdfast.kernels import evidence, index
from holdfast.kernels.evidence import NumberedRows
from holdfast.kernels.index import Ranges, SegmentRows
from holdfast.tasks.evidence import any_pair

ROWS, COLUMNS = 200_000, 16


def main() -> None:
    """Print the rates of comparing neighbours and of probing a sorted column."""
    generator = np.random.default_rng(7)
    widths = [1] * COLUMNS
    shape = evidence.shape(widths, True)
    rows = np.zeros((ROWS, COLUMNS + 1), np.uint64)
    for column in range(COLUMNS):
        rows[:, column] = generator.integers(0, 4 ** (column // 2 + 1), ROWS)
    ids = np.arange(ROWS)
    everything = any_pair(1)
    for count in (1_000, ROWS):
        findings = evidence.findings(1)
        start = time.perf_counter()
        evidence.neighbours(NumberedRows(rows[:count], ids[:count]), shape, 8, everything, findings)
        taken = time.perf_counter() - start
    pairs = ROWS * COLUMNS * 8
    print(f"neighbours  {pairs / taken / 1e6:6.0f} million pairs/s ({findings.state[0]:,} masks)")

    column = COLUMNS - 1
    codes, positions = index.sort(np.ascontiguousarray(rows[:, column]))
    batch = rows[:: ROWS // 1_000][:1_000].copy()
    wanted = batch[:, column].view(np.int64)
    lo, hi = np.searchsorted(codes, wanted, "left"), np.searchsorted(codes, wanted, "right")
    arrived = NumberedRows(batch, np.arange(1_000) + (1 << 40))
    ranges, stored = Ranges(lo, hi, positions), SegmentRows(rows, 0, np.empty(0, np.uint8))
    filters = np.array([0], np.int64)
    for _ in range(2):
        findings = evidence.findings(1)
        start = time.perf_counter()
        index.probe(arrived, ranges, stored, column, filters, shape, everything, findings)
        taken = time.perf_counter() - start
    print(f"probe       {int((hi - lo).sum()) / taken / 1e6:6.0f} million candidate rows/s")
