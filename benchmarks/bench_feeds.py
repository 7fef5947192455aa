"""Following a feed into lineitem, step after step: how long a step takes, whether that, memory and
the directory stay as they are, and how soon a few rows are there. It runs in this process, with
keys and inclusion dependencies of lineitem and orders.

``HOLDFAST_SCALES`` or the first argument is TPC-H's scale factor (default 0.1), the second how many
steps of 10,000 changed rows there are (default 24): ``python -m benchmarks.bench_feeds 1 500`` is
6,001,215 rows.
"""

from __future__ import annotations

import os
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from benchmarks.batches import verdict
from benchmarks.tpch import tables
from holdfast import FeedFailure, FeedStep, FeedTable, Followed, Options, Profile, Source

ROWS = 10_000
FEW, TIMES = 100, 5
"""So few changed rows, and how often they are measured."""

UPDATED, GONE = 6_000, 2_000
"""Of a step; as many rows come again as went in the step before."""

KEPT = 20
"""Versions that stay."""

FLAT = 1.25
"""What the last third of the steps may take, times what the first third took."""


def main(scale: str = "", steps: str = "24") -> None:
    """Print every figure with its target."""
    for each in (scale or os.environ.get("HOLDFAST_SCALES", "0.1")).replace(",", " ").split():
        folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
        try:
            _followed(folder, each, int(steps))
        finally:
            shutil.rmtree(folder)


@dataclass
class _Changes:
    """Changes of random rows of a file, each of another row."""

    path: Path
    folder: Path
    seed: int = 7
    gone: list[bytes] = field(default_factory=list)
    files: int = 0

    def __post_init__(self) -> None:
        text = np.memmap(self.path, np.uint8, "r")
        ends = np.flatnonzero(text == ord("\n")).astype(np.int64) + 1
        self.header = bytes(text[: ends[0]])
        self.lines = np.stack([ends[:-1], ends[1:]], axis=1)
        np.random.default_rng(self.seed).shuffle(self.lines)
        self.text, self.at = text, 0

    def write(self, updated: int, gone: int) -> None:
        """The next file: some rows updated, some gone, and those that went before, again."""
        taken = self.lines[self.at : self.at + updated + gone]
        self.at += len(taken)
        if len(taken) < updated + gone:
            sys.exit(f"{self.path} has too few rows for so many steps")
        lines = [bytes(self.text[first:last]) for first, last in taken.tolist()]
        rows = [b"insert," + line for line in self.gone]
        rows += [b"update_postimage," + _other(line) for line in lines[:updated]]
        self.gone = lines[updated:]
        rows += [b"delete," + line for line in self.gone]
        name, self.files = f"{self.files:06}.csv", self.files + 1
        (self.folder / f".{name}").write_bytes(b"_change_type," + self.header + b"".join(rows))
        (self.folder / f".{name}").rename(self.folder / name)


def _other(line: bytes) -> bytes:
    """The same row with another quantity."""
    cells = line.split(b",", 5)
    cells[4] = b"%d" % (int(float(cells[4])) % 50 + 1)
    return b",".join(cells)


@dataclass
class _Measured:
    """What was measured after each step."""

    rows: list[int] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)  # until older versions had expired
    memory: list[float] = field(default_factory=list)  # the most so far, in MB
    size: list[float] = field(default_factory=list)  # of the directory, in MB


def _followed(folder: Path, scale: str, steps: int) -> None:
    paths = tables(scale, ("lineitem", "orders"))
    sources = {name: Source(str(path), "csv") for name, path in paths.items()}
    started = time.perf_counter()
    options = Options(kinds=("keys", "inds"))
    profile = Profile.create(folder / "p", sources, options=options, engine="process")
    rows = profile.snapshot().tables["lineitem"].rows
    print(f"  scale {scale}: {rows:,} rows, profiled in {time.perf_counter() - started:.0f} s")
    (folder / "in").mkdir()
    changes = _Changes(paths["lineitem"], folder / "in")
    feed = Followed(
        "lineitem",
        str(folder / "in"),
        (FeedTable("lineitem", ("l_orderkey", "l_linenumber")),),
        op_column="_change_type",
        reading=Source(".", "csv"),
    )
    _steps(profile, feed, changes, folder, 3, UPDATED, GONE)  # with kernels that are compiled
    measured = _steps(profile, feed, changes, folder, steps, UPDATED, GONE)
    verdict(f"{ROWS:,} changed rows", sum(measured.seconds) / sum(measured.rows) * ROWS, 5.0, " s")
    verdict("time of a step, last third times first", _growth(measured.seconds), FLAT)
    verdict("memory at the end, times after a third", _since_a_third(measured.memory), FLAT)
    verdict("directory, last third times first", _growth(measured.size), FLAT)
    print(
        f"    {sum(measured.rows) / sum(measured.seconds):,.0f} rows a second; "
        f"steps of {min(measured.seconds):.2f} to {max(measured.seconds):.2f} s; "
        f"{measured.memory[-1]:,.0f} MB of memory, {measured.size[-1]:,.0f} MB on disk"
    )
    changes.gone = changes.gone[: FEW // 4]
    few = _steps(profile, feed, changes, folder, TIMES, FEW // 2, FEW // 4)
    verdict(f"{FEW} changed rows", median(few.seconds), 3.0, " s")


def _steps(
    profile: Profile,
    feed: Followed,
    changes: _Changes,
    folder: Path,
    steps: int,
    updated: int,
    gone: int,
) -> _Measured:
    """Follow so many files, each of which arrives when the one before is applied."""
    measured = _Measured()
    started = 0.0

    def arrive() -> None:
        nonlocal started
        changes.write(updated, gone)
        started = time.perf_counter()

    def told(step: FeedStep | FeedFailure) -> None:
        if isinstance(step, FeedFailure):
            raise step.error
        measured.seconds.append(time.perf_counter() - started)
        measured.rows.append(step.rows)
        measured.memory.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
        measured.size.append(_size(folder / "p"))
        for file in (folder / "in").glob("*.csv"):
            file.unlink()
        if len(measured.rows) < steps:
            arrive()

    arrive()
    profile.follow(feed, keep_versions=KEPT, told=told)
    return measured


def _size(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6


def _growth(figures: Sequence[float]) -> float:
    """The median of the last third, times that of the first."""
    third = max(1, len(figures) // 3)
    return median(figures[-third:]) / median(figures[:third])


def _since_a_third(figures: Sequence[float]) -> float:
    return figures[-1] / figures[len(figures) // 3]


if __name__ == "__main__":
    main(*sys.argv[1:])
