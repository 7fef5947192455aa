"""A snapshot of lineitem in which few rows changed, beside a first profile, in processor time.

Both run in this process, by turns, so the ratio does not depend on how busy the machine is.
``python -m benchmarks.bench_snapshot 1`` takes scale factor 1, which is 6,001,215 rows; the default
is a tenth of it.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pyarrow as pa

from benchmarks.batches import verdict
from benchmarks.tpch import lineitem
from holdfast import flow
from holdfast.input.row_input import Columns, RowInput
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.tasks.dialect import Dialect

CHANGED = 1_000
TARGET = 0.7
"""Of the processor time of a first profile."""


def main(scale: str = "0.1") -> None:
    """Print every figure with its target."""
    header, *lines = lineitem(scale).read_text().splitlines(keepends=True)
    names = header.strip().split(",")
    text = Columns.of(names, ["string"] * len(names), [pa.string()] * len(names))
    given = RowInput("lineitem", text, None, lines=Dialect(), guessed=True)
    every = len(lines) // CHANGED
    other = ["9" + line if k % every == 0 else line for k, line in enumerate(lines)]
    first, second = (replace(given, rows=_lines(each)) for each in (lines, other))
    for kinds in (("keys",), ("keys", "fds", "inds")):
        folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
        try:
            _compare(folder, first, second, Options(kinds=kinds))
        finally:
            shutil.rmtree(folder)


def _compare(folder: Path, first: RowInput, second: RowInput, options: Options) -> None:
    runner = InProcess(2)
    stores = [Store.create(folder / name) for name in ("p", "q")]

    def profile(store: Store) -> None:
        flow.profile(runner, store, {"lineitem": first}, options, no_progress)

    def snapshot() -> None:
        told = flow.apply(runner, stores[0], "lineitem", flow.Batch(snapshot=second), no_progress)
        print(f"    {told.inserted:,} inserted, {told.deleted:,} deleted; {told.seconds}")

    profile(stores[0])  # with kernels that are compiled and files that are in memory
    spent = [_spent(snapshot), _spent(lambda: profile(stores[1]))]
    print(f"  {', '.join(options.kinds)}: a snapshot {spent[0]:.1f} s, a profile {spent[1]:.1f} s")
    verdict(
        "processor time of a snapshot, times that of a first profile", spent[0] / spent[1], TARGET
    )


def _spent(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before


def _lines(lines: list[str]) -> pa.Table:
    return pa.table({"line": lines, "origin": pa.nulls(len(lines), pa.int64())})


if __name__ == "__main__":
    main(*sys.argv[1:])
