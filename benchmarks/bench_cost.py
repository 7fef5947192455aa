"""What near rules, rules of columns and composite foreign keys cost together: a first profile with
all that is found by default, beside one with keys, dependencies and inclusions of single columns.

``HOLDFAST_SCALES=0.1`` leaves lineitem at scale factor 1 out.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.batches import TABLE, verdict
from benchmarks.tpch import lineitem, random_lines, tables, write
from holdfast import Options, Profile

ALONE = Options(kinds=("keys", "fds", "inds"), near="off", max_arity=1)
ALL = Options()

AT_MOST = 1.4
"""Times the seconds of the one that a profile with all of it takes."""

TURNS = 3


def main() -> None:
    """Print every figure with its target."""
    from holdfast.spark.session import open_session

    session = open_session()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-cost-", dir=os.environ.get("HOLDFAST_BENCH")))
    try:
        header, lines = random_lines(lineitem("0.1"), 5_000, 1)
        _turn(session, folder, {TABLE: write(folder / "warm.csv", header, lines)})
        for scale in os.environ.get("HOLDFAST_SCALES", "0.1 1").split():
            _compare(session, folder, f"lineitem at {scale}", {TABLE: lineitem(scale)})
        _compare(session, folder, "TPC-H's eight tables at 0.1", tables("0.1"))
    finally:
        session.stop()
        shutil.rmtree(folder)


def _compare(session: Any, folder: Path, what: str, sources: Mapping[str, Path]) -> None:
    """The least seconds of some turns."""
    turns = [_turn(session, folder, sources) for _ in range(TURNS)]
    alone, full = (min(seconds) for seconds in zip(*turns, strict=True))
    print(f"\n{what}: {alone:.2f} s without, {full:.2f} s with all of it", flush=True)
    for name, seconds in zip(("without", "with"), zip(*turns, strict=True), strict=True):
        print(f"    {name:8}{' '.join(f'{one:6.2f}' for one in seconds)}")
    verdict(f"{what}, times the one without", full / alone, AT_MOST)


def _turn(session: Any, folder: Path, sources: Mapping[str, Path]) -> tuple[float, float]:
    """The seconds of a profile without, and of one with all of it."""
    return _seconds(session, folder, sources, ALONE), _seconds(session, folder, sources, ALL)


def _seconds(session: Any, folder: Path, sources: Mapping[str, Path], options: Options) -> float:
    start = time.perf_counter()
    Profile.create(folder / "p", sources, options=options, session=session)
    taken = time.perf_counter() - start
    shutil.rmtree(folder / "p")
    return taken


if __name__ == "__main__":
    main()
