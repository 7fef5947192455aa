"""Keys of a skewed table (Zipf, nine nulls in ten, one hot value), with the targets of lineitem."""

from __future__ import annotations

import csv
import io
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
from numpy.typing import NDArray

from benchmarks.batches import medians, timed, verdict
from benchmarks.tpch import DATA, random_lines, write
from holdfast import Options, Profile, Source

TABLE = "visits"
KEYS = Options(kinds=("keys",))
SIZES = {"small": 600_000, "large": 6_000_000}
"""As many rows as lineitem has at scale factors 0.1 and 1."""

MANY = 20_000
_CHUNK = 200_000


def main() -> None:
    """Print every figure with its target."""
    from holdfast.spark.session import open_session

    session = open_session()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        header, lines = random_lines(visits("small"), 5_000, 1)
        source = Source(str(write(folder / "warm.csv", header, lines)))
        warm = Profile.create(folder / "warm", {TABLE: source}, session=session, options=KEYS)
        path = write(folder / "some.csv", header, lines[:50])
        warm.apply(TABLE, deletes=path)
        warm.apply(TABLE, inserts=path)
        figures = {size: _size(session, folder / size, size) for size in SIZES}
        print("\ntargets")
        small, large = figures["small"], figures["large"]
        for what, most in (("insert", 1.0), ("delete", 1.5), ("update", 1.5)):
            verdict(f"1,000 {what}s into {SIZES['large']:,} rows", large[what], most, "s")
            verdict(f"  over the same into {SIZES['small']:,}", large[what] / small[what], 1.3)
        for size, figure in figures.items():
            share = figure["many"] / figure["profile"]
            verdict(f"{MANY:,} inserts, share of a fresh profile, {size}", share, 1)
    finally:
        shutil.rmtree(folder)
        session.stop()


def visits(size: str) -> Path:
    """The CSV file, made on first use."""
    rows = SIZES[size]
    path = DATA / f"visits-{rows}.csv"
    if not path.exists():
        DATA.mkdir(exist_ok=True)
        random = np.random.default_rng(rows)
        part = path.with_suffix(".part")
        with part.open("wb") as sink:
            for start in range(0, rows, _CHUNK):
                table = _visits(random, start, min(_CHUNK, rows - start), rows)
                options = pa.csv.WriteOptions(include_header=start == 0, quoting_style="needed")
                pa.csv.write_csv(table, sink, options)
        part.rename(path)
    return path


def _visits(random: np.random.Generator, start: int, count: int, rows: int) -> pa.Table:
    """Some of the rows, which differ by their id."""
    account = _zipf(random, count, 100_000)
    store = np.where(random.random(count) < 0.6, 1, random.integers(2, 50_000, count))
    without = random.random(count) < 0.9
    return pa.table(
        {
            "id": np.arange(start, start + count),
            "account": account,
            "store": store,
            "device": pa.array(random.integers(0, rows, count), mask=without),
            "referrer": pa.array(_zipf(random, count, 5_000), mask=random.random(count) < 0.9),
            "product": _zipf(random, count, 20_000),
            "cents": _zipf(random, count, 100_000),
            "day": np.where(random.random(count) < 0.4, 0, random.integers(1, 2_000, count)),
            "minute": random.integers(0, 1_440, count),
            "terminal": _zipf(random, count, 50_000),
            "basket": _zipf(random, count, 1_000_000),
            "status": random.choice(["ok", "late", "lost"], count, p=[0.95, 0.04, 0.01]),
        }
    )


def _zipf(random: np.random.Generator, count: int, values: int) -> NDArray[np.int64]:
    """Numbers of which the k-th is 1/k as frequent as the first."""
    weights = np.cumsum(1 / np.arange(1, values + 1))
    places: NDArray[np.int64] = np.searchsorted(weights, random.random(count) * weights[-1])
    return places


def _size(session: Any, folder: Path, size: str) -> dict[str, float]:
    print(f"\nvisits, {SIZES[size]:,} rows", flush=True)
    folder.mkdir()
    path = visits(size)
    start = time.perf_counter()
    profile = Profile.create(
        folder / "full", {TABLE: Source(str(path))}, session=session, options=KEYS
    )
    figures = {"profile": time.perf_counter() - start}
    table = profile.snapshot().tables[TABLE]
    print(f"  first profile          {figures['profile']:7.2f} s  {len(table.keys)} minimal keys")
    stages = profile._store.read().seconds[TABLE]
    print(f"    of which             {', '.join(f'{k} {v:.1f} s' for k, v in stages.items())}")
    print(f"    indexes              {', '.join('+'.join(i.columns) for i in table.indexes)}")
    figures |= medians(profile, folder, path, _changed, TABLE, ["id"])
    header, lines = random_lines(path, MANY, 5)
    many = write(folder / "many.csv", header, _renumbered(lines))
    figures["many"] = timed(profile, TABLE, inserts=many)
    print(f"  {MANY:,} inserts        {figures['many']:7.2f} s")
    return figures


def _changed(lines: list[str]) -> list[str]:
    """The same rows with another price."""
    return _lines([[*row[:6], str((int(row[6]) + 1) % 100_000), *row[7:]] for row in _rows(lines)])


def _renumbered(lines: list[str]) -> list[str]:
    """Rows like these, at other times, with ids of their own."""
    return _lines(
        [
            [str(10**9 + k), *row[1:8], str((int(row[8]) + 7) % 1_440), *row[9:]]
            for k, row in enumerate(_rows(lines))
        ]
    )


def _rows(lines: list[str]) -> list[list[str]]:
    return list(csv.reader(lines))


def _lines(rows: list[list[str]]) -> list[str]:
    sink = io.StringIO()
    csv.writer(sink, lineterminator="\n").writerows(rows)
    return sink.getvalue().splitlines(keepends=True)


if __name__ == "__main__":
    main()
