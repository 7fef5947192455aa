"""Keys of lineitem: first profile, batches, hard cases, memory, beside Desbordante."""

from __future__ import annotations

import csv
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.batches import BATCH, KEY, TABLE, medians, timed, verdict
from benchmarks.peers import Peer, desbordante
from benchmarks.tpch import lineitem, random_lines, write
from benchmarks.witnesses import (
    WITNESSES,
    as_csv,
    without_witnesses,
    without_witnesses_in_copies,
)
from holdfast import Options, Profile, Source

KEYS = Options(kinds=("keys",))


def main() -> None:
    """Print every figure with its target."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        _run(folder)
    finally:
        shutil.rmtree(folder)


def _run(folder: Path) -> None:
    from holdfast.spark.session import open_session

    session = open_session()
    _warm(session, folder)
    figures: dict[str, dict[str, Any]] = {}
    for scale in ("0.1", "1"):
        print(f"\nlineitem at scale factor {scale}", flush=True)
        figures[scale] = _scale(session, folder / scale, scale)
    print("\ntargets")
    _targets(figures["0.1"], figures["1"])
    session.stop()
    print("\nmemory of the Python driver process (peak, first profile)", flush=True)
    peaks = [_driver_peak(scale) for scale in ("0.1", "1")]
    grown = peaks[1] - peaks[0]
    print(f"  600,572 rows {peaks[0]:.0f} MB, 6,001,215 rows {peaks[1]:.0f} MB")
    verdict("growth of the driver's memory", grown, 100, "MB")


def _warm(session: Any, folder: Path) -> None:
    """Start the workers and load their kernels: batches are measured in a warm session."""
    header, lines = random_lines(lineitem("0.1"), 5_000, 1)
    path = write(folder / "warm.csv", header, lines)
    profile = Profile.create(
        folder / "warm", {TABLE: Source(str(path))}, session=session, options=KEYS
    )
    few_rows = write(folder / "some.csv", header, lines[:50])
    profile.apply(TABLE, deletes=few_rows)
    profile.apply(TABLE, inserts=few_rows)
    profile.apply(TABLE, updates=few_rows, row_key=KEY)


def _scale(session: Any, folder: Path, scale: str) -> dict[str, Any]:
    folder.mkdir()
    path = lineitem(scale)
    figures: dict[str, Any] = {}
    start = time.perf_counter()
    profile = Profile.create(
        folder / "full", {TABLE: Source(str(path))}, session=session, options=KEYS
    )
    figures["profile"] = time.perf_counter() - start
    keys = profile.snapshot().tables[TABLE].keys
    print(f"  first profile          {figures['profile']:7.2f} s  {len(keys)} minimal keys")
    stages = profile._store.read().seconds[TABLE]
    print(f"    of which             {', '.join(f'{k} {v:.1f} s' for k, v in stages.items())}")
    start = time.perf_counter()
    other = Profile.create(
        folder / "sample", {TABLE: Source(str(path))}, session=session,
        options=Options(kinds=("keys",), start="sample"),
    )  # fmt: skip
    taken = time.perf_counter() - start
    same = other.snapshot().tables[TABLE].keys == keys
    print(f"  the same, from a sample{taken:7.2f} s  same keys: {same}")
    shutil.rmtree(folder / "sample")
    peer = desbordante(path)
    if peer is None:
        print("  Desbordante            not installed (set HOLDFAST_DESBORDANTE to its Python)")
    else:
        names = profile.snapshot().tables[TABLE].columns
        of_peer = {tuple(names[i] for i in key) for key in peer.keys}
        of_holdfast = {key.columns for key in keys}
        print(
            f"  Desbordante (HPIValid) {peer.total:7.2f} s  {len(of_peer)} minimal keys "
            f"(load {peer.load:.1f} s, search {peer.search:.1f} s)"
        )
        for key in sorted(of_peer ^ of_holdfast):
            print(
                f"    only {'Holdfast' if key in of_holdfast else 'Desbordante'}: {', '.join(key)}"
            )
    figures["peer"] = peer
    figures.update(without_witnesses_in_copies(profile, folder, path))
    figures.update(medians(profile, folder, path, _changed))
    _hard(profile, folder, path)
    return figures


def _hard(profile: Profile, folder: Path, path: Path) -> None:
    """Inserts that each break a key; then the witnesses of non-keys once more, with the rows that
    batches have brought."""
    header, lines = random_lines(path, BATCH, 3)
    breaking = write(folder / "breaking.csv", header, _broken(lines))
    print(f"  1,000 inserts that each break a key        {timed(profile, inserts=breaking):7.2f} s")
    timed(profile, deletes=breaking)
    print("  after all these batches")
    for what in WITNESSES:
        without_witnesses(profile, folder, path, what)


def _changed(lines: list[str]) -> list[str]:
    """The same rows with another comment."""
    rows = list(csv.reader(lines))
    return as_csv([[*row[:-1], row[-1][::-1] + "."] for row in rows])


def _broken(lines: list[str]) -> list[str]:
    """Rows that repeat a key (order and line number) and differ otherwise."""
    rows = list(csv.reader(lines))
    return as_csv(
        [[row[0], row[1], row[2], row[3], str(int(row[4]) % 50 + 1), *row[5:-1], row[-1] + "!"]
         for row in rows]
    )  # fmt: skip


def _targets(small: dict[str, Any], large: dict[str, Any]) -> None:
    peer: Peer | None = large["peer"]
    if peer is not None:
        verdict("first profile, share of Desbordante's time", large["profile"] / peer.total, 0.7)
        ratio = peer.total / large["insert"]
        print(f"  {'ok ' if ratio >= 100 else 'NOT'} Desbordante's run over our insert batch: "
              f"{ratio:.0f} (at least 100)")  # fmt: skip
    for what, most in (("insert", 1.0), ("delete", 1.5), ("update", 1.5)):
        verdict(f"1,000 {what}s at scale factor 1", large[what], most, "s")
        verdict("  over the same at 0.1", large[what] / small[what], 1.3)
    for what in WITNESSES:
        verdict(what, large[what], 1.5, "s")
        verdict("  over the same at 0.1", large[what] / small[what], 1.3)


def _driver_peak(scale: str) -> float:
    """Megabytes that a process of its own needs for a first profile, Spark's JVM apart."""
    program = "from benchmarks.bench_keys import profile_once; profile_once({!r})"
    done = subprocess.run(
        [sys.executable, "-c", program.format(scale)], capture_output=True, text=True, check=True
    )
    return float(done.stdout.split()[-1])


def profile_once(scale: str) -> None:
    """Profile once and print this process's peak resident memory in megabytes."""
    with tempfile.TemporaryDirectory() as folder:
        Profile.create(Path(folder, "p"), {TABLE: Source(str(lineitem(scale)))}, options=KEYS)
    print(_peak())


def _peak() -> float:
    """Peak resident megabytes of this process. What getrusage tells on Linux starts from the
    process that started this one, so the kernel's own mark is read there."""
    status = Path("/proc/self/status")
    if status.exists():
        mark = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM"))
        return int(mark.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 / 1024
