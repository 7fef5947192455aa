"""Batches of a table's rows, by default lineitem's, timed, and figures beside their targets."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.tpch import random_lines, write
from holdfast import Profile

TABLE = "lineitem"
KEY = ["l_orderkey", "l_linenumber"]
BATCH, REPEATS = 1_000, 7

Changed = Callable[[list[str]], list[str]]


def medians(
    profile: Profile,
    folder: Path,
    path: Path,
    changed: Changed | None = None,
    table: str = TABLE,
    row_key: Sequence[str] = KEY,
) -> dict[str, float]:
    """Medians over batches of rows that were held out at random: inserts, deletes, and updates
    with what ``changed`` makes of rows."""
    header, lines = random_lines(path, 2 * REPEATS * BATCH, 2)
    removed, others = lines[: REPEATS * BATCH], lines[REPEATS * BATCH :]
    profile.apply(table, deletes=write(folder / "held.csv", header, removed))
    times: dict[str, list[float]] = {"insert": [], "delete": []}
    for k in range(REPEATS):
        batch = slice(k * BATCH, (k + 1) * BATCH)
        inserts = write(folder / "some.csv", header, removed[batch])
        gone = write(folder / "gone.csv", header, others[batch])
        times["insert"].append(timed(profile, table, inserts=inserts))
        times["delete"].append(timed(profile, table, deletes=gone))
        if changed is not None:
            new = write(folder / "new.csv", header, changed(removed[batch]))
            taken = timed(profile, table, updates=new, row_key=list(row_key))
            times.setdefault("update", []).append(taken)
    for what, seconds in times.items():
        spread = " ".join(f"{one:.2f}" for one in sorted(seconds))
        print(
            f"  1,000 {what}s          {statistics.median(seconds):7.2f} s  ({spread})", flush=True
        )
    return {what: statistics.median(seconds) for what, seconds in times.items()}


def timed(profile: Profile, table: str = TABLE, **batch: Any) -> float:
    """The seconds that a batch takes."""
    start = time.perf_counter()
    profile.apply(table, **batch)
    return time.perf_counter() - start


def verdict(what: str, figure: float, most: float, unit: str = "") -> None:
    """A figure beside its target."""
    mark = "ok " if figure <= most else "NOT"
    print(f"  {mark} {what}: {figure:.2f} {unit} (at most {most:g})")
