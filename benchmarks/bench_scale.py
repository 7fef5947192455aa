"""Work that divides: bytes that tasks read and return with 64 tasks beside 2, on the same cores;
and the memory of a driver whose batch deletes, or repeats, many rows.

Bytes are counted where tasks take rows and index entries from mapped files (runtime/reads.py), and
in the results that come back; so they do not depend on how busy the machine is. ``python -m
benchmarks.bench_scale long`` has batches of 4,000,000 rows.
"""

from __future__ import annotations

import json
import logging
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.batches import verdict
from holdfast import Options, Profile

TABLE = "orders"
ORDERS, SOME, FEW, CODES = "orders.parquet", "some.parquet", "few.parquet", "codes.parquet"
TASKS = (2, 64)
ROWS = 500_000
BATCH = 50_000
MOST = 1.5
"""Times the bytes of 2 tasks that 64 may read, and return."""

RESULT = 250
"""Bytes that each further result may have: what it says even of no rows at all."""

SHORT, LONG = 1_000_000, 4_000_000
"""Rows of the batches for which the driver's memory is measured."""

GROWTH = 100.0
"""Megabytes by which it may grow for any of them."""


def main(rows: int = SHORT) -> None:
    """Print every figure with its target."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        if rows == SHORT:
            _write(folder, ROWS, BATCH)
            pq.write_table(_codes(2 * ROWS), folder / CODES, row_group_size=1 << 17)
            few, many = (_asked(folder, "traffic", tasks) for tasks in TASKS)
            for stage in few:
                _compare(stage, few[stage], many[stage])
        print(f"\n  a driver whose batch has {rows:,} rows")
        _write(folder, rows + rows // 4, rows)
        for what, grown in _asked(folder, "memory", rows).items():
            verdict(f"growth of the driver's memory, {what}", grown, GROWTH, "MB")
    finally:
        shutil.rmtree(folder)


def _compare(stage: str, few: dict[str, list[int]], many: dict[str, list[int]]) -> None:
    print(f"\n  {stage}: bytes read and returned by {TASKS[0]} tasks, and by {TASKS[1]}")
    for kind in sorted({*few, *many}):
        (calls, read, back), (more, most, larger) = (
            traffic.get(kind, [0, 0, 0]) for traffic in (few, many)
        )
        print(
            f"    {kind:16} {calls:4} calls {read:13,} {back:11,}   "
            f"{more:4} calls {most:13,} {larger:11,}"
        )
    totals = [[sum(counts[place] for counts in side.values()) for place in (0, 1, 2)]
              for side in (few, many)]  # fmt: skip
    verdict("bytes read, times those of 2 tasks", totals[1][1] / max(totals[0][1], 1), MOST)
    expected = totals[0][2] + RESULT * (totals[1][0] - totals[0][0])
    what = f"bytes returned, times those of 2 tasks and {RESULT} for each further call"
    verdict(what, totals[1][2] / max(expected, 1), MOST)


def _asked(folder: Path, what: str, number: int) -> Any:
    """What a process of its own measures: it has one session, and one peak of memory."""
    command = [sys.executable, "-m", "benchmarks.bench_scale", what, str(number), str(folder)]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


# In a process of its own


class Traffic(logging.Handler):
    """Adds up what jobs read and return, by kind of task."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self._totals: dict[str, Counter[int]] = {}
        logger = logging.getLogger("holdfast.traffic")
        logger.setLevel(logging.DEBUG)
        logger.propagate = False
        logger.addHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        """Take in a line."""
        assert isinstance(record.args, tuple)
        kind, *numbers = record.args
        self._totals.setdefault(str(kind), Counter()).update(dict(enumerate(numbers)))

    def taken(self) -> dict[str, list[int]]:
        """What was added up since it was last asked."""
        totals, self._totals = self._totals, {}
        return {kind: [counts[k] for k in range(3)] for kind, counts in totals.items()}


def traffic(tasks: int, folder: Path) -> dict[str, dict[str, list[int]]]:
    """The bytes of each stage."""
    session, counted = _session(tasks), Traffic()
    stages: dict[str, dict[str, list[int]]] = {}
    orders, few_rows = (str(folder / name) for name in (ORDERS, SOME))
    options = Options(kinds=("keys", "fds"), evidence="witnessed")
    place = folder / f"p{tasks}"
    profile = Profile.create(place, {TABLE: orders}, session=session, options=options)
    stages["first discovery"] = counted.taken()
    profile.apply(TABLE, deletes=few_rows)
    stages[f"{BATCH:,} deletes"] = counted.taken()
    profile.apply(TABLE, inserts=few_rows)
    stages[f"{BATCH:,} inserts"] = counted.taken()
    profile.apply(TABLE, inserts=few_rows)
    stages[f"{BATCH:,} duplicate inserts"] = counted.taken()
    profile.apply(TABLE, deletes=few_rows)
    counted.taken()
    profile.apply(TABLE, updates=few_rows, row_key=["id"])
    stages[f"{BATCH:,} updates"] = counted.taken()
    Profile.create(
        folder / f"s{tasks}", {"codes": str(folder / CODES)}, session=session, options=options
    )
    stages["first discovery of columns with few values"] = counted.taken()
    profile.error(f"{TABLE}: customer, kind -> price")
    profile.explain(f"{TABLE}: customer -> price")
    stages["group counts"] = counted.taken()
    return stages


def memory(rows: int, folder: Path) -> dict[str, float]:
    """By how many megabytes this process grows for batches of so many rows."""
    session = _session(2)
    orders, many, few = (str(folder / name) for name in (ORDERS, SOME, FEW))
    options = Options(kinds=("keys",))
    profile = Profile.create(folder / "p", {TABLE: orders}, session=session, options=options)
    profile.apply(TABLE, deletes=few)
    profile.apply(TABLE, inserts=few)  # what every batch loads is loaded by now
    return {
        f"{rows:,} duplicate inserts": _grown(profile, inserts=many),
        f"{rows:,} deletes": _grown(profile, deletes=many),
    }


def _grown(profile: Profile, **batch: Any) -> float:
    """Megabytes between what this process has before a batch and its peak during it."""
    Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    before = _status("VmRSS")
    profile.apply(TABLE, **batch)
    return _status("VmHWM") - before


def _status(name: str) -> float:
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line for line in lines if line.startswith(name)).split()[1]) / 1024


def _session(tasks: int) -> Any:
    from holdfast.spark.session import open_session

    return open_session("local[2]", conf={"spark.default.parallelism": str(tasks)})


def _write(folder: Path, rows: int, batch: int) -> None:
    """A table, many of its rows and few of them."""
    orders = _orders(rows)
    for name, size in ((ORDERS, rows), (SOME, batch), (FEW, 1_000)):
        pq.write_table(orders.slice(0, size), folder / name, row_group_size=1 << 17)


def _orders(rows: int) -> pa.Table:
    """A table in which some columns follow from others, with few values and with many."""
    dice = np.random.default_rng(1)
    kind = dice.integers(0, 12, rows)
    customer = dice.integers(0, rows // 20, rows)
    return pa.table(
        {
            "id": np.arange(rows),
            "customer": customer,
            "region": customer % 40,
            "kind": kind,
            "grade": kind % 4,
            "channel": dice.integers(0, 5, rows),
            "state": dice.integers(0, 50, rows),
            "day": dice.integers(0, 700, rows),
            "price": dice.integers(0, 100_000, rows),
            "name": pa.array([f"n{i % 5_000}" for i in range(rows)]),
        }
    )


def _codes(rows: int) -> pa.Table:
    """Columns with few values, some of which follow from several others: what is surveyed."""
    dice = np.random.default_rng(2)
    a, b, c, d = (dice.integers(0, 6, rows) for _ in range(4))
    return pa.table(
        {
            "id": np.arange(rows),
            "a": a,
            "b": b,
            "c": c,
            "d": d,
            "ab": a * b % 7,
            "bc": b * c % 5,
            "acd": (a + c * d) % 9,
            "bcd": (b * d + c) % 11,
            "abcd": (a * b + c * d) % 13,
        }
    )


if __name__ == "__main__":
    asked, *more = sys.argv[1:] or ["short"]
    if asked in ("short", "long"):
        main(LONG if asked == "long" else SHORT)
    else:
        measure = {"traffic": traffic, "memory": memory}[asked]
        print(json.dumps(measure(int(more[0]), Path(more[1]))))
