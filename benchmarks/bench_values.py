"""Inclusion dependencies of TPC-H's eight tables: first profile and batches, beside Spider.

All cells are read as text, as Spider does. ``HOLDFAST_SCALES=0.1`` leaves scale factor 1 out.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

from benchmarks.batches import TABLE, medians, verdict
from benchmarks.peers import InclusionPeer, spider
from benchmarks.tpch import random_lines, tables, write
from holdfast import Options, Profile, Source

KINDS = Options(kinds=("inds",), within_tables=True)
KNOWN = 96


def main() -> None:
    """Print every figure with its target."""
    scales = os.environ.get("HOLDFAST_SCALES", "0.1,1").split(",")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        _run(folder, scales)
    finally:
        shutil.rmtree(folder)


def _run(folder: Path, scales: list[str]) -> None:
    from holdfast.spark.session import open_session

    session = open_session()
    _warm(session, folder)
    figures: dict[str, dict[str, Any]] = {}
    for scale in scales:
        print(f"\nall tables at scale factor {scale}", flush=True)
        figures[scale] = _scale(session, folder / scale, scale)
    session.stop()
    print("\ntargets")
    _targets(figures)


def _warm(session: Any, folder: Path) -> None:
    """Start every worker and load its kernels: small tables would keep only one busy."""
    sources = {name: Source(str(path), all_text=True) for name, path in tables("0.1").items()}
    profile = Profile.create(folder / "warm", sources, options=KINDS, session=session)
    few_rows = write(folder / "some.csv", *random_lines(tables("0.1")[TABLE], 50, 1))
    profile.apply(TABLE, deletes=few_rows)
    profile.apply(TABLE, inserts=few_rows)


def _scale(session: Any, folder: Path, scale: str) -> dict[str, Any]:
    folder.mkdir()
    paths = tables(scale)
    sources = {name: Source(str(path), all_text=True) for name, path in paths.items()}
    with _Memory() as memory:
        start = time.perf_counter()
        profile = Profile.create(folder / "p", sources, options=KINDS, session=session)
        taken = time.perf_counter() - start
    dependencies = profile.inclusion_dependencies()
    body = profile._store.read()
    reading = sum(stages["read"] for stages in body.seconds.values())
    print(
        f"  first profile       {taken:7.2f} s  {len(dependencies)} inclusion dependencies "
        f"(reading {reading:.1f} s, values {body.values_seconds['values']:.1f} s)"
    )
    print(f"  memory in all       {memory.peak:7.2f} GB at most")
    peer = spider(list(paths.values()))
    if peer is None:
        print("  Spider              not installed (set HOLDFAST_DESBORDANTE to its Python)")
    else:
        print(
            f"  Desbordante, Spider {peer.total:7.2f} s  {len(peer.dependencies)} inclusion "
            f"dependencies (load {peer.load:.1f} s, search {peer.search:.1f} s)"
        )
    figures = {"profile": taken, "peer": peer, "memory": memory.peak, "found": len(dependencies)}
    return {**figures, **medians(profile, folder, paths[TABLE])}


class _Memory:
    """The most memory that this process and those it started have at once, in gigabytes."""

    def __enter__(self) -> _Memory:
        self.peak = 0.0
        self._done = threading.Event()
        self._watcher = threading.Thread(target=self._watch, daemon=True)
        self._watcher.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._done.set()
        self._watcher.join()

    def _watch(self) -> None:
        while not self._done.wait(0.2):
            self.peak = max(self.peak, _resident() / 1e9)


def _resident() -> int:
    """Bytes of this process and its descendants; shared pages count once for each, so too high."""
    parents: dict[int, int] = {}
    sizes: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                own = (entry / "smaps_rollup").read_text().splitlines()
            except (OSError, IndexError):
                continue
            parents[int(entry.name)] = int(fields[1])
            # Mapped files can be given back at any time; what counts is a process's own memory.
            sizes[int(entry.name)] = sum(
                1024 * int(line.split()[1]) for line in own if line.startswith("Anonymous:")
            )
    processes = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in processes} - processes:
        processes |= more
    return sum(size for pid, size in sizes.items() if pid in processes)


def _targets(figures: dict[str, dict[str, Any]]) -> None:
    for scale, measured in figures.items():
        peer: InclusionPeer | None = measured["peer"]
        mark = "ok " if measured["found"] == KNOWN else "NOT"
        print(f"  {mark} {measured['found']} inclusion dependencies at {scale} ({KNOWN} are known)")
        if peer is not None:
            share = measured["profile"] / peer.total
            if scale == "1":
                verdict("first profile, share of Spider's time", share, 1)
            else:
                print(f"      first profile at {scale}, share of Spider's time: {share:.2f}")
        verdict(f"memory in all at {scale}", measured["memory"], 8, "GB")
        for what in ("insert", "delete"):
            verdict(f"1,000 {what}s at {scale}", measured[what], 2.0, "s")
    if "0.1" in figures and "1" in figures:
        for what in ("insert", "delete"):
            ratio = figures["1"][what] / figures["0.1"][what]
            verdict(f"1,000 {what}s at 1 over the same at 0.1", ratio, 1.3)
