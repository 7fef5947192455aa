"""The first batches of a new process: seconds beyond those of a warm one, and bytes read for them.

``python -m benchmarks.bench_cold long`` does it with 60 million rows (lineitem at scale factor 10,
25 GB on disk, half an hour).
"""

from __future__ import annotations

import ctypes
import json
import mmap
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq

from benchmarks.batches import BATCH, TABLE, timed, verdict
from benchmarks.tpch import lineitem, made, random_lines, without_views, write
from holdfast import Options, Profile, Source

WARM = 3
"""Batches of each kind that follow the first."""

WITHIN = {"0.1": 3.0, "1": 3.0, "10": 4.0}
"""Seconds that a first batch may take beyond a warm one, by scale factor."""


def main(scales: tuple[str, ...] = ("0.1", "1")) -> None:
    """Print every figure with its target."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-cold-", dir=os.environ.get("HOLDFAST_BENCH")))
    try:
        for scale in scales:
            _scale(folder, scale)
    finally:
        shutil.rmtree(folder)


def _scale(folder: Path, scale: str) -> None:
    _part("make", folder, scale)
    size = sum(path.stat().st_size for path in (folder / scale / "data").iterdir())
    print(f"\nlineitem at scale factor {scale}, {size / 1e6:,.0f} MB on disk", flush=True)
    for what, dropped in (("files in the page cache", False), ("page cache dropped", True)):
        if dropped and not _drop_page_cache():
            print("  the page cache cannot be dropped here (it takes root)")
            return
        figures = json.loads(_part("batches", folder, scale))
        print(f"  {what}")
        for kind in ("inserts", "deletes"):
            first, *warm = figures[kind]
            usual = statistics.median(warm)
            print(f"    1,000 {kind}: first {first:.2f} s, then {usual:.2f} s")
            verdict(f"  first {kind} beyond a warm batch", first - usual, WITHIN[scale], "s")
        if dropped:
            read = figures["resident"] / 1e6
            print(f"    the first inserts read {read:,.0f} MB of {size / 1e6:,.0f} MB")


def _part(what: str, *arguments: object) -> str:
    """Run a part of this module in a new process; its last line of output."""
    command = [sys.executable, "-m", "benchmarks.bench_cold", what, *map(str, arguments)]
    ended = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return (ended.stdout.strip().splitlines() or [""])[-1]


def make(folder: Path, scale: str) -> None:
    """A profile with keys, from which some rows are deleted, which the batches insert."""
    from holdfast.spark.session import open_session

    session = open_session()
    path, batches_of = (
        (made(scale, ("lineitem",), "parquet")["lineitem"], _rows)
        if scale == "10"
        else (lineitem(scale), _lines)
    )
    profile = Profile.create(
        folder / scale,
        {TABLE: Source(str(path))},
        session=session,
        options=Options(kinds=("keys",)),
    )
    for batch in batches_of(path, folder):
        profile.apply(TABLE, deletes=batch)
    session.stop()


def _lines(path: Path, folder: Path) -> list[Path]:
    """Batches of lines from anywhere in a CSV file."""
    header, lines = random_lines(path, (1 + WARM) * BATCH, 2)
    batches = [lines[k * BATCH : (k + 1) * BATCH] for k in range(1 + WARM)]
    return [write(folder / f"{k}.csv", header, batch) for k, batch in enumerate(batches)]


def _rows(path: Path, folder: Path) -> list[Path]:
    """Batches of rows from anywhere in a Parquet file."""
    file, random = pq.ParquetFile(path), np.random.default_rng(2)
    groups = random.choice(file.num_row_groups, (1 + WARM, 8), replace=False)
    paths = []
    for k, chosen in enumerate(groups.tolist()):
        rows = without_views(file.read_row_groups(chosen))
        positions = random.choice(rows.num_rows, BATCH, replace=False)
        paths.append(folder / f"{k}.parquet")
        pq.write_table(rows.take(positions), paths[-1])
    return paths


def batches(folder: Path, scale: str) -> None:
    """Insert rows and delete them again, batch after batch; the seconds that each takes."""
    from holdfast.spark.session import open_session

    session = open_session()
    session.range(1).count()
    figures: dict[str, Any] = {"inserts": [], "deletes": []}
    suffix = "parquet" if scale == "10" else "csv"
    for k in range(1 + WARM):
        for kind, seconds in (("inserts", figures["inserts"]), ("deletes", figures["deletes"])):
            profile = Profile.open(folder / scale, session=session)
            batch: dict[str, Any] = {kind: folder / f"{k}.{suffix}"}
            seconds.append(timed(profile, **batch))
            if "resident" not in figures:
                figures["resident"] = _resident(folder / scale / "data")
    session.stop()
    print(json.dumps(figures))


def _drop_page_cache() -> bool:
    os.sync()
    try:
        Path("/proc/sys/vm/drop_caches").write_text("3")
    except OSError:
        return False
    time.sleep(1)
    return True


def _resident(folder: Path) -> int:
    """How many bytes of a folder's files are in the page cache."""
    library = ctypes.CDLL(None, use_errno=True)
    pages = 0
    for path in folder.iterdir():
        size = path.stat().st_size
        if not size:
            continue
        with path.open("rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as content:
            count = -(-size // mmap.PAGESIZE)
            present = (ctypes.c_ubyte * count)()
            start = ctypes.addressof(ctypes.c_char.from_buffer(content))
            if library.mincore(ctypes.c_void_p(start), ctypes.c_size_t(size), present) == 0:
                pages += sum(page & 1 for page in present)
    return pages * mmap.PAGESIZE


if __name__ == "__main__":
    part, *rest = sys.argv[1:]
    if part == "long":
        main(("10",))
    else:
        {"make": make, "batches": batches}[part](Path(rest[0]), rest[1])
