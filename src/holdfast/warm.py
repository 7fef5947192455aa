"""Compile every kernel once, ahead of time: ``python -m holdfast.warm``.

Compiled kernels are cached on disk, but in a fresh installation each of Spark's Python workers
would compile them for itself. A small profile in this process fills the cache for all.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pyarrow as pa

from holdfast import pipeline
from holdfast.feed import Columns, Feed
from holdfast.options import Options
from holdfast.placement import no_progress
from holdfast.runner import InProcess
from holdfast.store import Store


def main() -> None:
    """Profile a few rows of every kind of column both ways, and change some."""
    runner = InProcess(2)
    for evidence in ("counted", "witnessed"):
        with tempfile.TemporaryDirectory() as folder:
            store = Store.create(Path(folder) / "profile")
            options = Options(evidence=evidence)
            pipeline.discover(runner, store, {"rows": _feed(0, 60)}, options, no_progress)
            batch = pipeline.Batch(inserts=_feed(60, 70), deletes=_feed(0, 5))
            pipeline.apply(runner, store, "rows", batch, no_progress)
            batch = pipeline.Batch(updates=_feed(10, 12), row_key=("id",))
            pipeline.apply(runner, store, "rows", batch, no_progress)
            pipeline.error(lambda: runner, store, "rows", ("name",), "share")


def _feed(start: int, end: int) -> Feed:
    """Lines of text, as from a CSV file."""
    types = {
        "id": pa.int64(),
        "name": pa.string(),
        "share": pa.float64(),
        "day": pa.date32(),
        "sum": pa.decimal128(30, 2),
        "same": pa.bool_(),
    }
    lines = [
        f'{i},"n{i % 7}",{i % 5}.5,2026-01-{i % 28 + 1:02},{i % 3}.25,true\n'
        for i in range(start, end)
    ]
    rows = pa.table({"line": lines, "origin": pa.nulls(len(lines), pa.int64())})
    columns = Columns.of(list(types), [str(each) for each in types.values()], list(types.values()))
    return Feed("rows", columns, rows, lines=",")


if __name__ == "__main__":
    main()
