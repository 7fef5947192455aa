"""Denial constraints: all of them from nothing, approximate ones, and batches, beside FastADC."""

from __future__ import annotations

import random
import resource
import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import tax
from benchmarks.batches import verdict
from benchmarks.peers import fastadc
from holdfast import Options, Profile, Source
from holdfast.model import thresholds
from tests.data import MISSING, data_dir

FIRST = {
    "adult": (28_296, 20.0),
    "breast-cancer": (58_635, 10.0),
    "hepatitis": (700_300, 40.0),
    "abalone": (2_375, 2.0),
}
"""The constraints that a table has, and the seconds in which they are to be found."""

BATCHES = {50: (1.0, 2.5), 326: (1.5, 3.0), 3_256: (15.0, 15.0)}
"""Rows of adult, and the seconds in which they are to be inserted and deleted."""

DRAWN = {10_000: 2.0, 300: 0.6}
REPEATS = 3


def main() -> None:
    """Print every figure with its target."""
    from holdfast.spark.session import open_session

    data = data_dir()
    if data is None:
        print(f"  skipped: {MISSING}")
        return
    session = open_session()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        _first(session, folder / "warm", data / "adult.csv")  # so that both workers have kernels
        for name, (count, most) in FIRST.items():
            taken, profile = _first(session, folder / name, data / f"{name}.csv")
            constraints = len(profile.denial_constraints(name))
            same = "as known" if constraints == count else f"NOT the {count:,} that are known"
            stages = profile._store.read().seconds[name]
            print(f"  {name}: {constraints:,}, {same}; {_stages_text(stages)}")
            verdict("  first profile", taken, most, "s")
            if name == "adult":
                verdict("  all evidence with counts", stages["count"], 2, "s")
                _batches(profile, data / "adult.csv", folder)
        for bound in (0.01, 0.0001):
            path, text = folder / f"adult-{bound}", data / "adult.csv"
            taken, profile = _first(session, path, text, max_error=bound)
            constraints = len(profile.denial_constraints("adult", max_error=bound))
            verdict(f"adult, error up to {bound}: {constraints:,} constraints", taken, 60, "s")
        _beside_fastadc(session, folder, data)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  memory of the driver: {most:,.0f} MB at most")
    finally:
        shutil.rmtree(folder)
        session.stop()


def long() -> None:
    """A million tax records, witnessed; and the same counted."""
    from holdfast.spark.session import open_session

    session = open_session()
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        rates, batches, looked_up = {}, {}, {}
        # Both tables get indexes, so that they can be compared.
        thresholds.current = replace(thresholds.current, lookup_table_rows=100_000)
        for rows in (100_000, 1_000_000):
            path = folder / f"tax-{rows}.parquet"
            tax.write(path, rows)
            taken, profile = _first(session, folder / f"p{rows}", path, evidence="witnessed")
            (table,) = profile.tables
            constraints = len(profile.denial_constraints(table))
            rates[rows] = taken / rows
            print(f"  {rows:,} tax records: {constraints:,} constraints in {taken:,.1f} s")
            print(f"    {_stages_text(profile._store.read().seconds[table])}")
            batches[rows] = _tax_batches(profile, table, folder, rows)
            looked_up[rows] = _looked_up_batches(profile, table, folder, rows)
        verdict("a million tax records", rates[1_000_000] * 1_000_000, 300, "s")
        verdict("  per row, times that of 100,000", rates[1_000_000] / rates[100_000], 1.3)
        for (what, seconds), most in zip(batches[1_000_000].items(), (3, 5), strict=True):
            verdict(f"  1,000 rows {what}", seconds, most, "s")
            print(f"    {seconds / batches[100_000][what]:.2f} times that of 100,000 rows")
        for what, seconds in looked_up[1_000_000].items():
            share = seconds / looked_up[100_000][what]
            print(f"  1,000 further rows {what}, through indexes alone: {seconds:.2f} s")
            verdict("    times that of 100,000 rows", share, 1.5)
        path = folder / "tax-1000000.parquet"
        taken, profile = _first(session, folder / "counted", path, evidence="counted")
        constraints = len(profile.denial_constraints(profile.tables[0]))
        print(f"  the same million counted: {constraints:,} constraints in {taken:,.0f} s")
    finally:
        shutil.rmtree(folder)
        session.stop()


def _looked_up_batches(profile: Profile, table: str, folder: Path, rows: int) -> dict[str, float]:
    """The rows that a longer table goes on with, which keep to its rules."""
    longer = tax.rows(rows + 1_000 * REPEATS)
    now = thresholds.current
    # Whatever it costs to compare all rows, it is too much.
    thresholds.current = replace(now, costs=replace(now.costs, pairs_a_second=1.0))
    try:
        batches = [longer.slice(rows + 1_000 * k, 1_000) for k in range(REPEATS)]
        return _in_and_out(profile, table, folder, batches)
    finally:
        thresholds.current = now


def _tax_batches(profile: Profile, table: str, folder: Path, rows: int) -> dict[str, float]:
    """Rows of another table, which break most of its rules."""
    batches = [tax.rows(1_000, seed=rows + k) for k in range(REPEATS)]
    return _in_and_out(profile, table, folder, batches)


def _in_and_out(
    profile: Profile, table: str, folder: Path, batches: list[pa.Table]
) -> dict[str, float]:
    """Batches of rows that are not there yet in, and out again: medians."""
    times: dict[str, list[float]] = {"inserted": [], "deleted": []}
    for rows in batches:
        batch = folder / "more.parquet"
        pq.write_table(rows, batch)
        start = time.perf_counter()
        profile.apply(table, inserts=batch)
        middle = time.perf_counter()
        profile.apply(table, deletes=batch)
        times["inserted"].append(middle - start)
        times["deleted"].append(time.perf_counter() - middle)
    return {what: statistics.median(seconds) for what, seconds in times.items()}


def _first(session: Any, into: Path, path: Path, **options: Any) -> tuple[float, Profile]:
    start = time.perf_counter()
    settings = Options(kinds=("dcs",), cross_columns=None, **options)
    profile = Profile.create(into, Source(str(path)), options=settings, session=session)
    return time.perf_counter() - start, profile


def _stages_text(stages: dict[str, float]) -> str:
    return ", ".join(f"{stage} {seconds:.2f} s" for stage, seconds in stages.items())


def _batches(profile: Profile, path: Path, folder: Path) -> None:
    """Rows of adult out and in again, each three times."""
    header, *lines = path.read_text().splitlines()
    for rows, targets in BATCHES.items():
        times: dict[str, list[float]] = {"inserted": [], "deleted": []}
        for k in range(REPEATS if rows < 3_000 else 1):
            chosen = random.Random(k).sample(lines, rows)
            batch = folder / "batch.csv"
            batch.write_text("\n".join([header, *chosen]) + "\n")
            times["deleted"].append(_applied(profile, deletes=batch))
            times["inserted"].append(_applied(profile, inserts=batch))
        for (what, seconds), most in zip(times.items(), targets, strict=True):
            verdict(f"  {rows:,} rows {what}", statistics.median(seconds), most, "s")


def _applied(profile: Profile, **batch: Any) -> float:
    start = time.perf_counter()
    profile.apply("adult", **batch)
    return time.perf_counter() - start


def _beside_fastadc(session: Any, folder: Path, data: Path) -> None:
    """Tables on which FastADC ends: eight columns of adult, and a drawn one of 30,000 × 11."""
    adult = folder / "eight.csv"
    rows = [line.split(",")[:8] for line in (data / "adult.csv").read_text().splitlines()]
    adult.write_text("\n".join(",".join(row) for row in rows) + "\n")
    drawn = _drawn(folder / "drawn.csv", 30_000)
    for path in (adult, drawn):
        taken, profile = _first(session, folder / path.stem, path)
        constraints = len(profile.denial_constraints(path.stem))
        print(f"  {path.stem}: {constraints:,} constraints in {taken:.2f} s")
        peer = fastadc(path)
        if peer is None:
            print("    Desbordante        not installed, or without an answer in ten minutes")
            continue
        print(f"    Desbordante (FastADC) {peer.total:.2f} s, {len(peer.found):,} constraints")
        verdict("    share of FastADC's time", taken / peer.total, 1)
    header, *lines = drawn.read_text().splitlines()
    profile = Profile.open(folder / "drawn", session=session)
    for rows_in, most in DRAWN.items():
        chosen = random.Random(rows_in).sample(lines, rows_in)
        batch = folder / "batch.csv"
        batch.write_text("\n".join([header, *chosen]) + "\n")
        start = time.perf_counter()
        profile.apply("drawn", deletes=batch)
        gone = time.perf_counter() - start
        start = time.perf_counter()
        profile.apply("drawn", inserts=batch)
        verdict(f"drawn, {rows_in:,} inserts", time.perf_counter() - start, most, "s")
        if rows_in == 300:
            verdict("drawn, 300 deletes", gone, 0.8, "s")


def _drawn(path: Path, rows: int) -> Path:
    """A table of 11 columns, of which some rise with others."""
    draw = random.Random(11)
    with path.open("w") as out:
        out.write("id,day,amount,tax,rate,shop,city,region,kind,flag,grade\n")
        for i in range(rows):
            amount, shop = draw.randrange(10_000), draw.randrange(400)
            cells: list[Any] = [
                i,
                i // 30,
                amount,
                amount // 10,
                amount // 2_000,
                shop,
                f"c{shop // 8}",
            ]
            cells += [
                f"r{shop // 80}",
                f"k{draw.randrange(6)}",
                draw.randrange(2),
                draw.randrange(9),
            ]
            out.write(",".join(map(str, cells)) + "\n")
    return path


if __name__ == "__main__":
    long() if sys.argv[1:] == ["long"] else main()
