"""Agree-sets counted, and the functional dependencies kept from them, on real tables.

All cells are read as text, as the known results are. The tables are looked for as the tests do:
in ``HOLDFAST_DATA``, or in shared/data beside the checkout.
"""

from __future__ import annotations

import csv
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.tpch import write
from holdfast import Options, Profile, Source
from holdfast.kernels import comparisons, pairs
from holdfast.model.comparisons import BOTH
from tests.data import MISSING, data_dir, read_table

TABLE = "t"
REPEATS = 7
DRAWN_ROWS, DRAWN_COLUMNS = 102_000, 10
COUNTED = Options(kinds=("keys", "fds"), evidence="counted")
SHORT = replace(COUNTED, max_columns=2)


def main() -> None:
    """Print every figure with its target."""
    data = data_dir()
    if data is None:
        print(f"  skipped: {MISSING}")
        return
    _kernel(data / "adult.csv")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        _tables(data, folder)
    finally:
        shutil.rmtree(folder)


def _tables(data: Path, folder: Path) -> None:
    from holdfast.spark.session import open_session

    session = open_session()
    bench = _Bench(session, folder)
    for name in ("adult", "flight"):  # few columns and many are counted by kernels of their own
        _some(bench, data / f"{name}.csv")

    adult = _Table("adult", data / "adult.csv")
    with bench.profile(adult, COUNTED) as profiled:
        _verdict("agree-sets from nothing", profiled.agree_sets, 4)
        _verdict("functional dependencies from scratch", profiled.total, 5)
        bench.batches(profiled, adult, len(adult.lines) // 100, 0.7)

    drawn = _Table("drawn from adult", _drawn(adult, folder))
    with bench.profile(drawn, COUNTED) as profiled:
        _verdict("agree-sets from nothing", profiled.agree_sets, 15)
        bench.batches(profiled, drawn, DRAWN_ROWS // 100, 1)

    flight = _Table("flight", data / "flight.csv")
    with bench.profile(flight, COUNTED) as profiled:
        _verdict("agree-sets from nothing", profiled.agree_sets, 2)
        _verdict("functional dependencies from scratch", profiled.total, 15)
        bench.batches(profiled, flight, 10, 3)

    uniprot = _Table("uniprot", data / "uniprot.csv")
    with bench.profile(uniprot, SHORT) as profiled:
        _verdict("agree-sets from nothing", profiled.agree_sets, 5)
        bench.batches(profiled, uniprot, len(uniprot.lines) // 100, 1)
    session.stop()


@dataclass(frozen=True)
class _Table:
    """A CSV file, and its lines."""

    name: str
    path: Path
    header: str = field(init=False)
    lines: list[str] = field(init=False)

    def __post_init__(self) -> None:
        header, *lines = self.path.read_text(encoding="utf-8").splitlines(keepends=True)
        object.__setattr__(self, "header", header)
        object.__setattr__(self, "lines", lines)


@dataclass(frozen=True)
class _Made:
    """A profile, and how long its parts took."""

    profile: Profile
    agree_sets: float  # reading and counting
    total: float


@dataclass(frozen=True)
class _Bench:
    """A warm session, and a folder to work in."""

    session: Any
    folder: Path

    @contextmanager
    def profile(self, table: _Table, options: Options) -> Iterator[_Made]:
        """Profile a table from nothing; the profile is removed afterwards."""
        marks: dict[str, float] = {}

        def progress(stage: str, **_: Any) -> None:
            marks.setdefault(stage, time.perf_counter())

        path = self.folder / "profile"
        start = time.perf_counter()
        profile = Profile.create(
            path,
            {TABLE: Source(str(table.path), all_text=True)},
            options=options,
            session=self.session,
            progress=progress,
        )
        total = time.perf_counter() - start
        seconds = profile._store.read().seconds[TABLE]
        counting = marks["cover"] - marks["count"]
        now = profile.snapshot().tables[TABLE]
        sets, dependencies = len(profile.agree_sets(TABLE)), now.functional_dependencies or ()
        limit = f" of at most {options.max_columns} columns" if options.max_columns else ""
        print(f"\n{table.name}, {now.rows:,} rows, {len(now.columns)} columns", flush=True)
        print(f"  first profile {total:.2f} s: {sets:,} agree-sets, {len(dependencies):,} "
              f"functional dependencies, {len(now.keys):,} keys{limit}")  # fmt: skip
        stages = ", ".join(f"{stage} {taken:.2f} s" for stage, taken in seconds.items())
        print(f"    of which {stages}; the pairs alone {counting:.2f} s")
        yield _Made(profile, seconds["read"] + counting, total)
        shutil.rmtree(path)

    def batches(self, profiled: _Made, table: _Table, size: int, most: float) -> None:
        """Medians over batches of rows that were held out at random."""
        lines = random.Random(2).sample(table.lines, 2 * REPEATS * size)
        removed, others = lines[: REPEATS * size], lines[REPEATS * size :]
        profiled.profile.apply(TABLE, deletes=self._file("held", table, removed))
        times: dict[str, list[float]] = {"inserts": [], "deletes": []}
        stages: dict[str, list[dict[str, float]]] = {"inserts": [], "deletes": []}
        for k in range(REPEATS):
            part = slice(k * size, (k + 1) * size)
            for what, rows in (("inserts", removed[part]), ("deletes", others[part])):
                batch: dict[str, Any] = {what: self._file(what, table, rows)}
                start = time.perf_counter()
                changes = profiled.profile.apply(TABLE, **batch)
                times[what].append(time.perf_counter() - start)
                stages[what].append(changes.seconds)
        for what, taken in times.items():
            parts = ", ".join(
                f"{stage} {statistics.median(batch.get(stage, 0.0) for batch in stages[what]):.2f}"
                for stage in stages[what][0]
            )
            spread = " ".join(f"{seconds:.2f}" for seconds in sorted(taken))
            print(f"    {size:,} {what}: {spread}; medians of {parts}")
            _verdict(f"{size:,} {what}, committed", statistics.median(taken), most)

    def _file(self, name: str, table: _Table, lines: list[str]) -> Path:
        return write(self.folder / f"{name}.csv", table.header, lines)


def _some(bench: _Bench, path: Path) -> None:
    """Start the workers and load their kernels: everything is measured in a warm session."""
    table = _Table("warm", path)
    csv_path = write(bench.folder / "warm.csv", table.header, table.lines[:200])
    source = Source(str(csv_path), all_text=True)
    place = bench.folder / "warm"
    profile = Profile.create(place, {TABLE: source}, options=SHORT, session=bench.session)
    few = write(bench.folder / "few.csv", table.header, table.lines[:20])
    profile.apply(TABLE, deletes=few)
    profile.apply(TABLE, inserts=few)
    shutil.rmtree(place)


def _drawn(adult: _Table, folder: Path) -> Path:
    """A table whose columns have the value distributions of adult's first ones, independently."""
    generator = np.random.default_rng(11)
    header, rows = read_table(adult.path)
    columns = list(zip(*rows, strict=True))[:DRAWN_COLUMNS]
    drawn = [generator.choice(np.array(column), DRAWN_ROWS) for column in columns]
    path = folder / "drawn.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header[:DRAWN_COLUMNS])
        writer.writerows(zip(*drawn, strict=True))
    return path


# The kernel alone


def _kernel(path: Path) -> None:
    """Pairs per second on one core: agree-sets, and comparison words with the numbers ordered."""
    _, rows = read_table(path)
    planes, ordered = [], []
    for column in zip(*rows, strict=True):
        number = all(cell.isdigit() for cell in column)
        cells = np.array([int(cell) for cell in column] if number else column)
        planes.append(np.unique(cells, return_inverse=True)[1])
        ordered.append(number)
    side = pairs.TileRows(np.array(planes, np.int32))
    ends = np.arange(len(rows))
    million = len(rows) * (len(rows) - 1) / 2e6
    for what, orders, least in (
        ("agree-sets", [False] * len(planes), 150),
        ("comparison words", ordered, 250),
    ):
        layout = comparisons.layout([(c, c, BOTH, order) for c, order in enumerate(orders)])
        rates = []
        for _ in range(4):  # the first one may have to be compiled
            start = time.perf_counter()
            words = len(pairs.count(pairs.tile_pairs(layout, side, side, True, ends)).words)
            rates.append(million / (time.perf_counter() - start))
        mark = "ok " if max(rates) >= least else "NOT"
        print(
            f"  {mark} adult, {words:,} {what}: {max(rates):.0f} million pairs/s per core "
            f"(at least {least})"
        )


def _verdict(what: str, figure: float, most: float) -> None:
    mark = "ok " if figure <= most else "NOT"
    print(f"  {mark} {what}: {figure:.2f} s (under {most:g})", flush=True)
