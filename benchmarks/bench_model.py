"""The cost model of docs/scale.md beside real first profiles and batches of a generated table, with
2, 4, 16 and 64 tasks: bytes, which must be the same, and processor time.

Tasks run in this process, one after the other, which changes nothing about what they read, write
and send. What only rows can say (how many rows a search brings together, how many a look-up
returns) is counted in the run with 2 tasks; the model says the rest for all of them. Processor
seconds for each unit of work are those of a table half as long. ``python -m benchmarks.bench_model
counts`` counts lineitem at scale factor 1 for the constants of the model.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from benchmarks import scale_model
from benchmarks.batches import verdict
from benchmarks.scale_model import (
    ENTRY,
    LOOKUP,
    VALUE,
    Amount,
    Counts,
    Layout,
    delete_reads,
    first_reads,
    first_writes,
    insert_reads,
    segment_form,
    sketches,
    visits,
)
from benchmarks.tpch import lineitem, random_lines, write
from holdfast import Options, Profile
from holdfast.model import thresholds
from holdfast.model.records import to_form
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess, Reader, Runner
from holdfast.store.log import canonical
from holdfast.tasks import compaction, evidence, partners
from holdfast.tasks.ingest import Ingest
from holdfast.tasks.segments import open_arrays

TASKS = (2, 4, 16, 64)
SEGMENTS = 64
ROWS = SEGMENTS * 3_072
BATCH = 1_000
REPEATS = 3
TABLE = "orders"
WITHIN = 1.3
"""Times the predicted seconds that measured ones may be, or the other way round."""

WORTH = 0.15
"""Seconds from which on a step is worth comparing: less is said by one interruption."""


class Watched(InProcess):
    """Runs calls one by one, and adds up what each kind of task did."""

    def __init__(self, tasks: int, readers: int) -> None:
        super().__init__(tasks)
        self.readers = readers
        self.amounts: dict[str, Amount] = {}
        self.gathered = 0  # rows that searches brought together
        self.built = 0  # indexes of segments
        self.drawn: list[tuple[int, int]] = []  # rows, and passes through all rows with them
        self.looked_up = 0  # indexes in which each row of a batch is looked up

    def sharing(self, _prefix: str) -> Runner:
        """All tasks are in this process."""
        return self

    def read(self, task: Reader, rows: Any, spec: Ingest) -> list[TaskResult]:
        """In as many parts as the source has, however many tasks there are."""
        start = time.thread_time()
        results = InProcess(self.readers).read(task, rows, spec)
        self._add(_name(task), self.readers, results, time.thread_time() - start)
        return results

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        """One after the other."""
        results = []
        for call in calls:
            start = time.thread_time()
            results += super().run([call])
            self._add(_name(call[0]), 1, results[-1], time.thread_time() - start)
            self._look_at(call[1], results[-1])
        self._look_at_job([call[1] for call in calls])
        return results

    def taken(self) -> dict[str, Amount]:
        """What was added up since it was last asked."""
        amounts, self.amounts = self.amounts, {}
        return amounts

    def _look_at_job(self, items: Sequence[Any]) -> None:
        drawn = sum(sum(item.counts) for item in items if isinstance(item, partners.DrawRows))
        passes = {item.first for item in items if isinstance(item, partners.OfferPartners)}
        if drawn:
            self.drawn.append((drawn, 0))
        if passes:
            self.drawn[-1] = self.drawn[-1][0], len(passes)

    def _look_at(self, item: Any, results: Sequence[TaskResult]) -> None:
        if isinstance(item, evidence.ProbeBatch):
            names = {name for group in item.lookups for name in group}
            self.looked_up = len(names) + sum(name != "" for _, name in item.groups)
        elif isinstance(item, evidence.SearchRange):
            self.gathered += sum(each.facts["rows"] for each in results)
        elif isinstance(item, compaction.Build):
            self.built += sum(len(each.facts["indexes"]) for each in results)

    def _add(self, name: str, calls: int, results: Sequence[TaskResult], seconds: float) -> None:
        read, sent = (sum(getattr(each, what) for each in results) for what in ("read", "size"))
        arrays = sum(array.nbytes for each in results for array in each.arrays.values())
        amount = Amount(calls, read, sent, arrays, seconds)
        self.amounts[name] = self.amounts.get(name, Amount()) + amount

    def counts(self, layout: Layout, amounts: Mapping[str, Amount], kept: int) -> Counts:
        """What only rows can say of a first profile. Numbers of passes come out whole, if the model
        is right."""
        rows, row = layout.rows, layout.row
        drawn = sum(number for number, _ in self.drawn)

        def read(kind: str) -> int:
            return amounts.get(kind, Amount()).read

        offered = read("merge_partners") - layout.tasks * drawn * 8 * (1 + layout.words)
        return Counts(
            kept=kept,
            built=self.built // layout.segments,
            builds=read("build") // (rows * row),
            searches=(read("search") - self.gathered * row) / (rows * ENTRY),
            gathered=self.gathered / rows,
            surveys=read("representatives") // (rows * row),
            drawn=tuple(self.drawn),
            offers=offered / layout.offer,
            group_passes=read("write_groups") // (rows * row),
            grouped=read("count_written") / rows,
            tuples=read("recount") / VALUE / rows,
            value_passes=read("count") // (rows * row),
            counted=read("move") / VALUE / rows,
            distinct=0.0,
        )

    def of_batch(self, layout: Layout, probe: Amount) -> tuple[int, float]:
        """The indexes in which each inserted row was looked up, and the bytes that these look-ups
        returned for it."""
        segments = layout.segments + 1
        looked_up = BATCH * LOOKUP * segments * self.looked_up
        own = min(layout.tasks, segments) * BATCH * layout.row
        return self.looked_up, (probe.read - looked_up - own) / BATCH


def _name(task: Any) -> str:
    while hasattr(task, "task"):
        task = task.task
    name: str = task.__name__
    return name


@contextmanager
def small_segments(rows: int = ROWS // SEGMENTS) -> Iterator[None]:
    """Segments of so many rows, and work that is divided however little it is."""
    before = thresholds.current
    small = replace(before, segment_rows=rows, joined_bytes=0, undivided_rows=0)
    thresholds.current = replace(small, grouped_rows=0, drawn_rows=1 << 12, task_cells=0)
    try:
        yield
    finally:
        thresholds.current = before


def orders(rows: int) -> pa.Table:
    """A table without equal rows, in which some columns follow from others."""
    dice = np.random.default_rng(1)
    customer = dice.integers(0, rows // 20, rows)
    kind = dice.integers(0, 12, rows)
    return pa.table(
        {
            "id": dice.permutation(rows),
            "customer": customer,
            "region": customer % 40,
            "kind": kind,
            "grade": kind % 4,
            "day": dice.integers(0, 700, rows),
            "price": dice.integers(0, rows // 2, rows),
            "name": pa.array([f"n{i % 5_000}" for i in range(rows)]),
        }
    )


def main() -> None:
    """Print every figure beside what the model says."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-model-"))
    try:
        Run.of(folder / "warm", orders(ROWS // 8), 2)
        half, whole = orders(ROWS // 2), orders(ROWS)
        shapes = ((half, 2, SEGMENTS), (half, 64, SEGMENTS), (whole, 2, SEGMENTS // 4))
        rates = fitted([_least(folder, *shape) for shape in shapes])
        runs = [_least(folder, whole, tasks) for tasks in TASKS]
    finally:
        shutil.rmtree(folder)
    for run in runs:
        _show(run, runs[0], rates)
    print("\nnanoseconds for a byte, microseconds for a visit of a file")
    for kind, (byte, visit) in rates.items():
        print(f"  {kind:16} {1e9 * byte:8.2f} {1e6 * visit:8.1f}")


def _least(folder: Path, table: pa.Table, tasks: int, segments: int = SEGMENTS) -> Run:
    """A run with the least seconds of a few: others on this machine only add to them."""
    runs = []
    for _ in range(REPEATS):
        runs.append(Run.of(folder / "p", table, tasks, segments))
        shutil.rmtree(folder / "p")
    least = {
        kind: replace(amount, seconds=min(run.amounts[kind].seconds for run in runs))
        for kind, amount in runs[0].amounts.items()
    }
    return replace(runs[0], amounts=least)


@dataclass(frozen=True)
class Run:
    """What was measured of a first profile and two batches."""

    layout: Layout
    table: pa.Table
    indexed: tuple[str, ...]
    amounts: dict[str, Amount]  # by kind of task
    deletes: dict[str, Amount]
    inserts: dict[str, Amount]
    written: Mapping[str, int]  # bytes of arrays, by kind of file
    manifest: int  # bytes of segments in it
    raw: tuple[int, ...]  # bytes of each file of raw rows
    counts: Counts

    @staticmethod
    def of(folder: Path, table: pa.Table, tasks: int, segments: int = SEGMENTS) -> Run:
        """A run; its profile stays in the folder."""
        runner = Watched(tasks, segments)
        with _running(runner), small_segments(table.num_rows // segments):
            options = Options(evidence="witnessed")
            profile = Profile.create(folder, {TABLE: table}, options=options, engine="process")
            amounts = runner.taken()
            record = profile._store.read().tables[TABLE]
            written = _arrays(folder)
            manifest = sum(len(canonical(to_form(each))) for each in record.segments)
            raw = tuple((folder / each.raw).stat().st_size for each in record.segments if each.raw)
            words = open_arrays(folder / record.segments[0].words).facts["shape"][1]
            rows, columns = table.num_rows, table.num_columns
            layout = Layout(rows, columns, words, rows // segments, tasks)
            counts = runner.counts(layout, amounts, len(record.indexed))
            counts = replace(counts, distinct=written["values"] / VALUE / rows)
            runner.readers = 1  # a small file is one part
            batch = table.slice(rows - 5 * BATCH, BATCH)
            profile.apply(TABLE, deletes=batch)
            deletes = runner.taken()
            profile.apply(TABLE, inserts=batch)
            inserts = runner.taken()
        looked_up, returned = runner.of_batch(layout, inserts["probe"])
        counts = replace(counts, looked_up=looked_up, returned=returned)
        return Run(
            layout, table, record.indexed, amounts, deletes, inserts, written, manifest, raw, counts
        )

    def expected(self, known: Run) -> dict[str, tuple[int, int]]:
        """What was measured beside what the model says, which takes from another run what only
        rows can say."""
        layout = self.layout
        own = counted(self.table, layout) / layout.rows, distinct(self.table) / layout.rows
        counts = replace(known.counts, counted=own[0], distinct=own[1], offers=self.counts.offers)
        reads = {
            kind: (self.amounts[kind].read, expected)
            for kind, expected in first_reads(layout, counts).items()
            if kind in self.amounts and kind != "count_written"  # by the rows that each task has
        }
        deletes = delete_reads(layout, BATCH)
        inserts = insert_reads(layout, counts, BATCH, BATCH)
        writes = {
            f"written: {kind}": (self.written[kind], expected)
            for kind, expected in first_writes(layout, counts).items()
        }
        sent = self.amounts["ingest"]
        return {
            **{f"read: {kind}": pair for kind, pair in reads.items()},
            **{f"read: {k}": (self.deletes[k].read, most) for k, most in deletes.items()},
            **{f"read: {k}": (self.inserts[k].read, most) for k, most in inserts.items()},
            **writes,
            "manifest: segments": (self.manifest, self._forms()),
            "sent: sketches": (sent.arrays, sketches(layout)),
        }

    def _forms(self) -> int:
        """Bytes of all segments in the manifest, as the model says."""
        rows, row = self.layout.segment_rows, self.layout.row
        # Of sizes only the number of digits counts.
        sizes = {"words": rows * row, "index": rows * ENTRY}
        return sum(
            segment_form(rows, number, {**sizes, "raw": raw}, self.indexed)
            for number, raw in enumerate(self.raw, 1)
        )


@contextmanager
def _running(runner: Runner) -> Iterator[None]:
    """Profiles run their tasks so."""
    before = Profile._running
    Profile._running = lambda _: runner  # type: ignore[method-assign, assignment]
    try:
        yield
    finally:
        Profile._running = before  # type: ignore[method-assign]


def _arrays(folder: Path) -> Counter[str]:
    """Bytes of the arrays in mapped files, by kind."""
    sizes: Counter[str] = Counter()
    for path in (folder / "data").iterdir():
        kind = path.name.split("-")[0]
        if kind in ("words", "index", "values"):
            sizes[kind] += sum(array.nbytes for array in open_arrays(path).whole().values())
    return sizes


def counted(table: pa.Table, layout: Layout) -> int:
    """The values that tasks count: of each column the different ones in each share of the
    segments, which are dealt to the tasks by turns."""
    segments = np.arange(layout.rows) // layout.segment_rows
    return sum(
        pc.count_distinct(column.filter(pa.array(segments % layout.shares == share))).as_py()
        for column in table.columns
        for share in range(layout.shares)
    )


def distinct(table: pa.Table) -> int:
    """The different values of all columns."""
    return sum(pc.count_distinct(column).as_py() for column in table.columns)


Rates = dict[str, tuple[float, float]]
"""Seconds for a byte that a kind of task reads, or writes if it reads none, and for a visit."""


def fitted(runs: Sequence[Run]) -> Rates:
    """Rates by which runs take as long as they did, as nearly as possible in relative terms."""
    rates = {}
    for kind in runs[0].amounts:
        if not all(_sizes(run).get(kind) for run in runs):
            continue  # it had nothing to do
        seconds = np.array([run.amounts[kind].seconds for run in runs])
        sizes = np.array([[_sizes(run)[kind], _visits(run)[kind]] for run in runs], np.float64)
        relative, ones = sizes / seconds[:, None], np.ones(len(runs))
        byte, visit = np.linalg.lstsq(relative, ones)[0].tolist()
        if min(byte, visit) < 0:  # the better one alone
            alone = [np.linalg.lstsq(relative[:, k : k + 1], ones) for k in (0, 1)]
            best = min((0, 1), key=lambda k: float(alone[k][1].sum()))
            byte, visit = (float(alone[k][0][0]) if k == best else 0.0 for k in (0, 1))
        rates[kind] = byte, visit
    return rates


def predicted(run: Run, rates: Rates) -> dict[str, float]:
    """The seconds of a run, by kind of task."""
    return {
        kind: byte * _sizes(run)[kind] + visit * _visits(run)[kind]
        for kind, (byte, visit) in rates.items()
    }


def _sizes(run: Run) -> dict[str, int]:
    return {**first_reads(run.layout, run.counts), "ingest": run.layout.rows * run.layout.row}


def _visits(run: Run) -> dict[str, int]:
    return visits(run.layout, run.counts)


def _show(run: Run, known: Run, rates: Rates) -> None:
    print(f"\n{run.layout.tasks} tasks, {run.layout.rows:,} rows in {run.layout.segments} segments")
    for what, (measured, expected) in run.expected(known).items():
        mark = "ok " if measured == expected else "NOT"
        print(f"  {mark} {what:22} {measured:14,} (model {expected:14,})")
    seconds = predicted(run, rates)
    for kind, most in sorted(seconds.items(), key=lambda pair: -pair[1]):
        taken = run.amounts[kind].seconds
        if max(taken, most) >= WORTH:
            verdict(f"{kind}, {most:.2f} s by the model, off by", _times(taken, most), WITHIN)
    taken = sum(run.amounts[kind].seconds for kind in seconds)
    most = sum(seconds.values())
    verdict(f"all, {taken:.2f} s, {most:.2f} s by the model, off by", _times(taken, most), WITHIN)


def _times(one: float, other: float) -> float:
    """How many times the smaller is in the larger."""
    return max(one, other) / max(1e-9, min(one, other))


def count_lineitem() -> None:
    """Print what the rows of lineitem say, and seconds for a byte, for the constants of the
    model."""
    folder = Path(tempfile.mkdtemp(prefix="holdfast-model-"))
    runner, path = Watched(8, 8), lineitem("1")
    try:
        with _running(runner):
            profile = Profile.create(folder / "p", {"lineitem": path}, engine="process")
            amounts = runner.taken()
            record = profile._store.read().tables["lineitem"]
            of_segment = -(-record.rows // len(record.segments))
            layout = replace(scale_model.lineitem(record.rows, 2), segment_rows=of_segment)
            counts = runner.counts(layout, amounts, len(record.indexed) + len(record.looked_up))
            written = _arrays(folder / "p")
            raw = sum(
                (folder / "p" / each.raw).stat().st_size for each in record.segments if each.raw
            )
            header, lines = random_lines(path, BATCH, 2)
            batch = write(folder / "batch.csv", header, lines)
            profile.apply("lineitem", deletes=batch)
            runner.taken()
            profile.apply("lineitem", inserts=batch)
            looked_up, returned = runner.of_batch(layout, runner.taken()["probe"])
    finally:
        shutil.rmtree(folder)
    counts = replace(counts, looked_up=looked_up, returned=returned)
    print(replace(counts, distinct=written["values"] / VALUE / record.rows))
    print(f"{len(record.segments)} segments; {raw / record.rows:.0f} bytes of a raw row")
    for kind, amount in amounts.items():
        size = amount.read or written["words"]
        print(f"  {kind:16} {amount.read:16,} bytes, {1e9 * amount.seconds / size:8.2f} ns each")


if __name__ == "__main__":
    count_lineitem() if sys.argv[1:] == ["counts"] else main()
