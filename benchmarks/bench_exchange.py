"""How rows are brought together for a search: ranges of our indexes beside Spark's own exchange.

Both look for pairs against the same candidates, with the same kernel, in the same session, by
turns. *Ranges*: every task maps all segments and takes one range of codes from their sorted
columns; sorting the columns is counted too. *Exchange*: tasks hand out their segments' rows, Spark
brings them together by ``repartitionByRange`` over the code of the column and a salt, and tasks
search what comes. The salt is the code of a second column, which every candidate has, so that one
value can be divided; a salt that has nothing to do with the rows would tear pairs apart.

    python -m benchmarks exchange
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from benchmarks.batches import TABLE as LINEITEM
from benchmarks.bench_skew import TABLE as VISITS
from benchmarks.bench_skew import visits
from benchmarks.tpch import lineitem
from holdfast import Options, Profile, Source
from holdfast.cover import candidates as cands
from holdfast.cover.dependencies import KEY
from holdfast.evidence.agreement.search_plans import IndexSearch
from holdfast.evidence.scope import Scope
from holdfast.kernels import bitsets, evidence
from holdfast.kernels import search as searches
from holdfast.kernels.evidence import Candidates, NumberedRows
from holdfast.kinds.table_state import TableState
from holdfast.model import thresholds
from holdfast.model.comparisons import agreements
from holdfast.runtime.result import TaskResult
from holdfast.tasks.evidence import _task_result, _trie
from holdfast.tasks.segments import live_positions
from holdfast.tasks.view import View

MASTERS = ("local[2]", "local-cluster[2,1,2048]")
ROUNDS = 2
# Start column and salt; every candidate has both, and one column more.
TABLES = (
    (LINEITEM, partial(lineitem, "0.1"), "l_extendedprice", "l_partkey"),
    (VISITS, partial(visits, "small"), "store", "account"),
)


def main() -> None:
    """One process for each master: a process holds one session."""
    for master in MASTERS:
        subprocess.run(
            [sys.executable, "-c", f"from benchmarks.bench_exchange import run; run({master!r})"],
            check=True,
        )


def run(master: str) -> None:
    """Compare both ways on one master."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    session: Any = (
        SparkSession.builder.master(master)
        .config("spark.ui.enabled", "false")
        .config("spark.executorEnv.PYTHONPATH", str(Path(__file__).parent.parent))
        .config("spark.sql.shuffle.partitions", "64")
        .config("spark.sql.execution.arrow.maxRecordsPerBatch", "65536")
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("ERROR")
    folder = Path(tempfile.mkdtemp(prefix="holdfast-bench-"))
    try:
        for name, path, start, salt in TABLES:
            _table(session, master, folder / name, name, path(), start, salt)
    finally:
        shutil.rmtree(folder)
        session.stop()


def _table(
    session: Any, master: str, folder: Path, name: str, path: Path, start: str, salt: str
) -> None:
    options = Options(kinds=("keys",), max_columns=1)
    profile = Profile.create(folder, {name: Source(str(path))}, session=session, options=options)
    from holdfast.spark.runner import SparkRunner

    table = TableState.load(profile._store, profile._store.read(), name).table
    runner = SparkRunner(session).sharing(str(folder / "data" / "token-"))
    view = table.view(profile._store.path, options)
    names = table.columns.names
    one, two = names.index(start), names.index(salt)
    sets = [tuple(sorted((one, two, c))) for c in range(len(names)) if c not in (one, two)]
    wanted = cands.together({KEY: bitsets.from_columns(sets, len(names))}, len(names))
    order = (one, two, *(c for c in range(len(names)) if c not in (one, two)))
    for parts in (runner.tasks, 64):
        runner.tasks = parts
        scope = Scope(runner, view, table.columns.schema, agreements(len(names)), "")
        ways = {
            "ranges": partial(_ranges, scope, wanted, order),
            "exchange": partial(_exchange, session, scope, wanted, order, parts),
        }
        _compare(ways, wanted, f"{master}, {name} ({table.rows:,} rows), {parts} parts")


Results = list[TaskResult]


def _compare(ways: Mapping[str, Callable[[], Results]], wanted: Candidates, title: str) -> None:
    print(f"\n{title}", flush=True)
    seconds: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(ROUNDS + 1):  # the first warms workers
        by_way = {}
        for name, way in ways.items():
            begun = time.perf_counter()
            by_way[name] = way()
            if turn:
                seconds[name].append(time.perf_counter() - begun)
                continue
            largest = max(task_result.facts.get("rows", 0) for task_result in by_way[name])
            print(f"  {name:9} largest task {largest:9,} rows", flush=True)
        # Of large groups that refute a candidate only some pairs are looked at.
        refuted = [
            task_result.arrays["refuted"] for results in by_way.values() for task_result in results
        ]
        entire = np.delete(wanted.lhs, np.concatenate(refuted), axis=0)
        if len({_evidence(results, entire) for results in by_way.values()}) > 1:
            print("  NOT the same evidence")
    for name, taken in seconds.items():
        spread = " ".join(f"{one:.2f}" for one in sorted(taken))
        print(f"  {name:9} {statistics.median(taken):7.2f} s  ({spread})", flush=True)
    print(f"  load of the machine {os.getloadavg()[0]:.1f}")


def _ranges(scope: Scope, wanted: Candidates, order: tuple[int, ...]) -> Results:
    """As a search goes: sort the column where it is not sorted, then one call for each range."""
    from holdfast.table.indexing import with_indexes

    look = IndexSearch(wanted, order[:1], order, str(order[0]), partly=False)
    names = look.sorted_by
    while names:
        view = with_indexes(scope.runner, scope.view, "data/*-0123456789ab-", names)
        scope = replace(scope, view=view)
        names = look.lacking(scope)
    return [task_result for result in scope.runner.run(look.calls(scope)) for task_result in result]


def _exchange(
    session: Any, scope: Scope, wanted: Candidates, order: tuple[int, ...], parts: int
) -> Results:
    """Rows through Spark, divided by code and salt."""
    from pyspark.sql import functions as F

    view, count = scope.view, len(scope.view.segments)
    one, two = (int(view.shape.first[c]) for c in order[:2])

    def handed_out(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                yield from _handed_out(view, number, one, two)

    def searched(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        received = list(batches)
        if received:
            yield _searched(view, received, wanted, order).batch()

    schema = "code long, salt long, id long, words binary"
    rows = session.range(0, count, 1, count).mapInArrow(handed_out, schema)
    by_range = rows.repartitionByRange(parts, F.col("code"), F.col("salt"))
    from holdfast.runtime.result import unpack

    frame = by_range.mapInArrow(searched, "facts string, arrays binary")
    return [unpack(row["facts"], bytes(row["arrays"])) for row in frame.collect()]


def _handed_out(view: View, number: int, one: int, two: int) -> Iterator[pa.RecordBatch]:
    segment = view.segments[number]
    live = live_positions(view.path, segment)
    for start in range(0, live.size, 65_536):
        positions = live[start : start + 65_536]
        words = np.ascontiguousarray(view.rows(segment, positions))
        width = words.shape[1] * 8
        ends = pa.py_buffer(np.arange(0, (len(words) + 1) * width, width, dtype=np.int32))
        cells = pa.Array.from_buffers(pa.binary(), len(words), [None, ends, pa.py_buffer(words)])
        numbers = [words[:, one].view(np.int64), words[:, two].view(np.int64)]
        ids = positions + segment.base
        columns = [*(pa.array(np.ascontiguousarray(array)) for array in (*numbers, ids)), cells]
        yield pa.record_batch(columns, names=["code", "salt", "id", "words"])


def _searched(
    view: View, received: list[pa.RecordBatch], wanted: Candidates, order: tuple[int, ...]
) -> TaskResult:
    ids = np.concatenate([batch.column(2).to_numpy() for batch in received])
    width = view.shape.owner.size + view.shape.full.size
    blocks = []
    for batch in received:
        cells = batch.column(3)
        offsets = np.frombuffer(cells.buffers()[1], np.int32)[cells.offset :]
        bytes_ = np.frombuffer(cells.buffers()[2], np.uint8)
        whole = bytes_[offsets[0] : offsets[len(cells)]]
        blocks.append(whole.view(np.uint64).reshape(len(cells), width))
    rows = NumberedRows(np.concatenate(blocks), ids)
    findings = evidence.findings(view.shape.full.size, thresholds.current.mask_room)
    refuted = np.zeros_like(wanted.rhs)
    searches.search(rows, view.shape, _trie(wanted.lhs, order), wanted, findings, refuted)
    result = _task_result(findings, view.columns, False, refuted)
    result.facts["rows"] = len(ids)
    return result


def _evidence(results: Results, lhs: NDArray[np.uint64]) -> frozenset[bytes]:
    """What is maximal of the evidence against some left-hand sides."""
    masks = np.concatenate([task_result.arrays["masks"] for task_result in results])
    masks = masks[bitsets.any_subset(masks, lhs)]
    return frozenset(mask.tobytes() for mask in bitsets.maximal(masks))
