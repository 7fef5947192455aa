"""Many small tables in one profile: the first profile, and ten rows into one of the tables.

``python -m benchmarks tables`` has 200 tables, ``python -m benchmarks.bench_tables long`` 1,000.
Every table has ten columns, among them numbers that nearly all tables share, so that there are
hundreds of thousands of inclusion dependencies.
"""

from __future__ import annotations

import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from benchmarks.batches import verdict
from holdfast import Profile, Source

COLUMNS = "id,parent,owner,kind,amount,level,day,name,code,note"
ROWS, BATCH, REPEATS = 100, 10, 7


def main() -> None:
    """Print every figure with its target."""
    _run(200)


def long() -> None:
    """The same for a thousand tables, which takes some minutes."""
    _run(1_000)


def _run(tables: int) -> None:
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        _measured(folder, tables)
    finally:
        shutil.rmtree(folder)


def _measured(folder: Path, tables: int) -> None:
    from holdfast.spark.session import open_session

    session = open_session()
    warm = {name: _source(folder, name, 0) for name in ("one", "two")}
    profile = Profile.create(folder / "warm", warm, session=session)
    profile.apply("one", inserts=_source(folder, "more", 1, BATCH))
    sources = {f"table_{n:04}": _source(folder, f"table_{n:04}", n) for n in range(tables)}
    print(f"\n{tables:,} tables of {len(COLUMNS.split(','))} columns and {ROWS} rows", flush=True)
    start = time.perf_counter()
    profile = Profile.create(folder / "p", sources, session=session)
    taken = time.perf_counter() - start
    print(
        f"  first profile       {taken:7.2f} s  {1000 * taken / tables:.0f} ms a table", flush=True
    )
    times = []
    for k in range(REPEATS):
        table = f"table_{k * tables // REPEATS:04}"
        more = _source(folder, "more", 10_000 + k, BATCH)
        start = time.perf_counter()
        profile.apply(table, inserts=more)
        times.append(time.perf_counter() - start)
    spread = " ".join(f"{one:.2f}" for one in sorted(times))
    print(f"  {BATCH} inserts          {statistics.median(times):7.2f} s  ({spread})", flush=True)
    commits = sorted((folder / "p" / "log").glob("*.json"))
    commit = commits[-1].stat().st_size
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"  commit              {commit / 1e6:7.3f} MB")
    print(f"  data files          {len(list((folder / 'p' / 'data').iterdir())):7,}")
    print(f"  memory, this process{peak:7.2f} GB at most", flush=True)
    start = time.perf_counter()
    number = len(profile.inclusion_dependencies())
    taken = time.perf_counter() - start
    print(f"  listing             {taken:7.2f} s  {number:,} inclusion dependencies")
    session.stop()
    print("\ntargets")
    verdict(f"{BATCH} inserts into one of {tables:,} tables", statistics.median(times), 1.5, "s")


def _source(folder: Path, name: str, seed: int, rows: int = ROWS) -> Source:
    """A file of rows: numbers that other tables have too, and some values of its own."""
    draw = random.Random(seed)
    first = 1 if rows == ROWS else ROWS + 1
    lines = [COLUMNS, *(_line(draw, seed, first + k) for k in range(rows))]
    path = folder / f"{name}.csv"
    path.write_text("\n".join(lines) + "\n")
    return Source(str(path))


def _line(draw: Any, seed: int, number: int) -> str:
    cells = (
        number,
        draw.randrange(1, ROWS),
        draw.randrange(1, 2 * ROWS),
        draw.randrange(1 + seed % 7, 9 + seed % 7),
        f"{draw.randrange(100_000) / 100:.2f}",
        draw.choice(["low", "middle", "high"]),
        f"2026-{draw.randrange(1, 13):02}-{draw.randrange(1, 29):02}",
        f"name {draw.randrange(50)}",
        f"{seed:04}-{number:05}",
        draw.choice(["", "checked", f"see {draw.randrange(20)}"]),
    )
    return ",".join(map(str, cells))


if __name__ == "__main__":
    long() if sys.argv[1:] == ["long"] else main()
