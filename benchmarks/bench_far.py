"""A table that no longer fits into memory: 100 million rows on one machine, beside 6 million.

Lineitem as Parquet, with a column of texts that are all different, one whose values follow Zipf's
law, and one that is 90 % null. ``python -m benchmarks.bench_far 1 0.1`` compares other scale
factors than 17 and 1. ``HOLDFAST_BENCH`` names a folder with room for the profile; the table stays
in benchmarks/data.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from benchmarks.batches import BATCH, KEY, TABLE, timed, verdict
from benchmarks.tpch import DATA, made, without_views
from holdfast import Options, Profile, Source

FAR, NEAR = "17", "1"
KINDS = ("keys", "fds", "inds")
WARM = 3
"""Batches of each kind that follow the first."""

KINDS_OF_BATCHES = ("inserts", "updates", "deletes")

SLOWER = 1.5
"""Times the seconds for each row, and for a warm batch, that the larger table may take."""

FIRST = 4.0
"""Seconds that the first batch of a new process may take beyond a warm one."""

DISK, DRIVER, WORKER = 40.0, 400.0, 2_000.0
"""Gigabytes of the profile; megabytes of the driver's processes, and of a worker."""

Figures = dict[str, Any]


def main(far: str = FAR, near: str = NEAR) -> None:
    """Print every figure with its target."""
    room = os.environ.get("HOLDFAST_BENCH")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-far-", dir=room))
    try:
        figures = [_scale(folder, scale) for scale in (near, far)]
    finally:
        shutil.rmtree(folder)
    small, large = figures
    print(f"\nscale factor {far} beside {near}")
    verdict("seconds for each row, times those of the other", large["row"] / small["row"], SLOWER)
    verdict("gigabytes on disk", large["disk"], DISK, "GB")
    for who, most in (("driver, Python", DRIVER), ("driver, JVM", DRIVER), ("worker", WORKER)):
        verdict(f"memory of a {who}", large["peaks"].get(who, 0.0), most, "MB")
    for kind, seconds in large["batches"].items():
        first, *warm = seconds
        usual = statistics.median(small["batches"][kind][1:])
        verdict(f"1,000 {kind}, times the others", statistics.median(warm) / usual, SLOWER)
        if kind == "inserts":  # those that begin the process
            beyond = first - statistics.median(warm)
            verdict("first batch of a process beyond a warm one", beyond, FIRST, "s")


def _scale(folder: Path, scale: str) -> Figures:
    path = wide(scale)
    rows = pq.ParquetFile(path).metadata.num_rows
    print(f"\nscale factor {scale}: {rows:,} rows, {path.stat().st_size / 1e9:.2f} GB", flush=True)
    profiled, peaks = _part("profile", folder, scale)
    data = folder / scale / "data"
    seconds, disk = profiled["seconds"], sum(each.stat().st_size for each in data.iterdir())
    each = seconds / rows * 1e6
    print(f"  first profile {seconds:.1f} s, {each:.2f} s for a million rows")
    stages = ", ".join(f"{stage} {taken:.1f}" for stage, taken in profiled["stages"].items())
    print(f"    of which {stages} s; {profiled['found']}")
    print(f"  {disk / 1e9:.2f} GB on disk: {_by_kind(data)}")
    for who, size in sorted(peaks.items()):
        print(f"  {who:16} {size:6.0f} MB of its own at most")
    _part("hold", folder, scale)
    batches, _ = _part("batches", folder, scale)
    for kind, (first, *warm) in batches.items():
        print(f"  1,000 {kind}: first {first:.2f} s, then {statistics.median(warm):.2f} s")
    shutil.rmtree(folder / scale)
    return {"row": each, "disk": disk / 1e9, "peaks": peaks, "batches": batches}


def _by_kind(data: Path) -> str:
    sizes: Counter[str] = Counter()
    for path in data.iterdir():
        sizes[path.name.split("-")[0]] += path.stat().st_size
    return ", ".join(f"{kind} {size / 1e9:.2f}" for kind, size in sizes.most_common(5))


def _part(what: str, folder: Path, scale: str) -> tuple[Figures, dict[str, float]]:
    """A part of this module in a new process: its last line, and the memory of its processes."""
    command = [sys.executable, "-m", "benchmarks.bench_far", what, str(folder), scale]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        memory = Memory(process.pid)
        output, _ = process.communicate()
        peaks = memory.peaks()
    if process.returncode:
        sys.exit(f"{' '.join(command)}: exit code {process.returncode}")
    return json.loads(output.strip().splitlines()[-1]), peaks


class Memory:
    """The most memory of a process and of those that it has started. Pages of mapped files are left
    out, as the system takes them back when it needs them."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._peaks: dict[str, float] = {}
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()

    def peaks(self) -> dict[str, float]:
        """Megabytes, by what a process is; and no further watching."""
        self._done.set()
        self._watcher.join()
        return self._peaks

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            for pid in _family(self._root):
                try:
                    status = Path(f"/proc/{pid}/status").read_text().splitlines()
                except OSError:
                    continue  # it has ended
                fields = dict(line.split(":", 1) for line in status if ":" in line)
                if pid == self._root:
                    who = "driver, Python"
                else:
                    who = "driver, JVM" if fields["Name"].strip() == "java" else "worker"
                size = int(fields.get("RssAnon", "0 kB").split()[0]) / 1024
                self._peaks[who] = max(self._peaks.get(who, 0.0), size)


def _family(root: int) -> set[int]:
    """A process and its descendants."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text().rsplit(")", 1)[1].split()[1]
                )
            except (OSError, IndexError):
                continue  # it has ended
    family = {root}
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return family


def wide(scale: str) -> Path:
    """The table, made on first use."""
    path = DATA / f"sf{scale}-wide" / "lineitem.parquet"
    if not path.exists():
        plain = made(scale, ("lineitem",), "parquet")["lineitem"]
        path.parent.mkdir(exist_ok=True)
        partial = path.with_suffix(".partial")
        _widen(plain, partial)
        partial.rename(path)
        plain.unlink()  # the disk may have no room for both and a profile
    return path


def _widen(plain: Path, path: Path) -> None:
    """With three further columns, one row group at a time."""
    file = pq.ParquetFile(plain)
    writer, first = None, 0
    for group in range(file.num_row_groups):
        rows = without_views(file.read_row_group(group))
        for name, values in _further(first, rows.num_rows).items():
            rows = rows.append_column(name, values)
        writer = writer or pq.ParquetWriter(path, rows.schema)
        writer.write_table(rows)
        first += rows.num_rows
    assert writer is not None
    writer.close()


def _further(first: int, rows: int) -> dict[str, pa.Array]:
    """Columns of the rows from one on: different texts, Zipf's law, and nine nulls in ten."""
    dice = np.random.default_rng(first)
    # An odd factor takes different numbers to different ones, in no order.
    numbers = np.arange(first, first + rows, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    return {
        "text": pc.binary_join_element_wise("t", pa.array(numbers).cast(pa.string()), "-"),
        "zipf": pa.array(np.minimum(dice.zipf(1.2, rows), 1 << 40)),
        "rare": pa.array(dice.integers(0, 1_000, rows), mask=dice.random(rows) < 0.9),
    }


# In a process of its own


def profile(folder: Path, scale: str) -> Figures:
    """A first profile."""
    from holdfast.spark.session import open_session

    options = Options(kinds=KINDS, near="off")
    session = open_session()
    few_rows = folder / "few.parquet"
    pq.write_table(next(_drawn(wide(scale), 1)), few_rows)
    Profile.create(folder / "warm", {TABLE: few_rows}, session=session, options=options)
    shutil.rmtree(folder / "warm")
    start = time.perf_counter()
    source = Source(str(wide(scale)))
    created = Profile.create(folder / scale, {TABLE: source}, session=session, options=options)
    taken = time.perf_counter() - start
    version = created._store.read()
    counts = created.snapshot().tables[TABLE]
    found = f"{len(counts.keys)} keys of {counts.rows:,} rows"
    session.stop()
    return {
        "seconds": taken,
        "stages": {**version.seconds[TABLE], **version.values_seconds},
        "found": found,
    }


def hold(folder: Path, scale: str) -> Figures:
    """Write batches of rows from anywhere in the table; delete those that are to be inserted."""
    from holdfast.spark.session import open_session

    files = [path for kind in KINDS_OF_BATCHES for path in _files(folder, scale, kind)]
    for rows, path in zip(_drawn(wide(scale), len(files)), files, strict=True):
        pq.write_table(rows, path)
    session = open_session()
    opened = Profile.open(folder / scale, session=session)
    for path in _files(folder, scale, "inserts"):
        opened.apply(TABLE, deletes=path)
    session.stop()
    return {}


def batches(folder: Path, scale: str) -> Figures:
    """The seconds of batches of a process that has only started Spark. The rows of each are
    others."""
    from holdfast.spark.session import open_session

    session = open_session()
    session.range(1).count()
    figures: dict[str, list[float]] = {kind: [] for kind in KINDS_OF_BATCHES}
    for inserts, updates, deletes in zip(
        *(_files(folder, scale, kind) for kind in KINDS_OF_BATCHES), strict=True
    ):
        opened = Profile.open(folder / scale, session=session)
        figures["inserts"].append(timed(opened, inserts=inserts))
        rows = pq.read_table(updates)
        place = rows.schema.get_field_index("l_comment")
        comments = pc.binary_join_element_wise(rows.column(place), "again", " ")
        pq.write_table(rows.set_column(place, "l_comment", comments), updates)
        figures["updates"].append(timed(opened, updates=updates, row_key=KEY))
        figures["deletes"].append(timed(opened, deletes=deletes))
    session.stop()
    return figures


def _files(folder: Path, scale: str, kind: str) -> list[Path]:
    return [folder / f"{scale}-{kind}-{k}.parquet" for k in range(1 + WARM)]


def _drawn(path: Path, batches: int) -> Iterator[pa.Table]:
    """Batches of different rows from anywhere in the file, a few of its row groups at a time."""
    file, dice = pq.ParquetFile(path), np.random.default_rng(2)
    groups = dice.choice(file.num_row_groups, min(64, file.num_row_groups), replace=False)
    share = -(-batches * BATCH // len(groups))
    picked = []
    for group in groups.tolist():
        rows = file.read_row_group(group)
        places = dice.choice(rows.num_rows, min(share, rows.num_rows), replace=False)
        picked.append(rows.take(places))
    rows = pa.concat_tables(picked)
    rows = rows.take(dice.permutation(rows.num_rows)[: batches * BATCH])
    return (rows.slice(k * BATCH, BATCH) for k in range(batches))


if __name__ == "__main__":
    parts = {"profile": profile, "hold": hold, "batches": batches}
    if sys.argv[1:2] and sys.argv[1] in parts:
        print(json.dumps(parts[sys.argv[1]](Path(sys.argv[2]), sys.argv[3])))
    else:
        main(*sys.argv[1:])
