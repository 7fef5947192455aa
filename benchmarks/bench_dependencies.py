"""Functional dependencies of lineitem, through witnesses: profile and batches, beside HyFD."""

from __future__ import annotations

import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.batches import TABLE, medians, verdict
from benchmarks.peers import hyfd
from benchmarks.tpch import lineitem, random_lines, write
from benchmarks.witnesses import WITNESSES, without_witnesses_in_copies
from holdfast import Options, Profile, Source

FDS = Options(kinds=("keys", "fds"), evidence="witnessed")


def main() -> None:
    """Print every figure with its target."""
    from holdfast.spark.session import open_session

    session = open_session()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        _warm(session, folder)
        small = _scale(session, folder / "0.1", "0.1")
        peer = hyfd(lineitem("0.1"))
        if peer is None:
            print("  Desbordante          not installed (set HOLDFAST_DESBORDANTE to its Python)")
        else:
            print(
                f"  Desbordante (HyFD)   {peer.total:7.2f} s  {len(peer.found):,} dependencies "
                f"(load {peer.load:.1f} s, search {peer.search:.1f} s)"
            )
            _differences(peer.found, small["found"])
        large = _scale(session, folder / "1", "1")
        print("\ntargets")
        if peer is not None:
            verdict("first profile at 0.1, share of HyFD's time", small["profile"] / peer.total, 1)
        batches = {what: f"1,000 {what}s" for what in ("insert", "delete")}
        for what, name in (batches | {what: what for what in WITNESSES}).items():
            verdict(f"{name} at scale factor 0.1", small[what], 2, "s")
            verdict(
                "  the same at scale factor 1, times that of 0.1", large[what] / small[what], 1.3
            )
    finally:
        shutil.rmtree(folder)
        session.stop()


def _warm(session: Any, folder: Path) -> None:
    header, lines = random_lines(lineitem("0.1"), 5_000, 1)
    source = Source(str(write(folder / "warm.csv", header, lines)))
    profile = Profile.create(folder / "warm", {TABLE: source}, session=session, options=FDS)
    path = write(folder / "some.csv", header, lines[:50])
    profile.apply(TABLE, deletes=path)
    profile.apply(TABLE, inserts=path)


def _scale(session: Any, folder: Path, scale: str) -> dict[str, Any]:
    print(f"\nlineitem at scale factor {scale}", flush=True)
    folder.mkdir()
    path = lineitem(scale)
    start = time.perf_counter()
    source = Source(str(path))
    profile = Profile.create(folder / "full", {TABLE: source}, session=session, options=FDS)
    taken = time.perf_counter() - start
    columns = profile.snapshot().tables[TABLE].columns
    place = {name: at for at, name in enumerate(columns)}
    dependencies = {
        (tuple(place[name] for name in fd.lhs), place[fd.rhs])
        for fd in profile.functional_dependencies(TABLE)
    }
    print(f"  first profile        {taken:7.2f} s  {len(dependencies):,} dependencies")
    stages = profile._store.read().seconds[TABLE]
    print(f"    of which           {', '.join(f'{k} {v:.1f} s' for k, v in stages.items())}")
    figures = without_witnesses_in_copies(profile, folder, path)
    return {"profile": taken, "found": dependencies, **figures, **medians(profile, folder, path)}


def _differences(of_peer: list[tuple[tuple[int, ...], int]], of_holdfast: set[Any]) -> None:
    """Where the two differ; every one of ours is validated on the rows."""
    for left, right in sorted(set(of_peer) ^ of_holdfast):
        who = "Holdfast" if (left, right) in of_holdfast else "Desbordante"
        print(f"    only {who}: {left} -> {right}")


if __name__ == "__main__":
    main()
