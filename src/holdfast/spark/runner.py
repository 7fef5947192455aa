"""Tasks on Spark: DataFrame API and ``mapInArrow`` only, so that Connect works like classic."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from holdfast.spark.jobs import collect
from holdfast.spark.session import is_own
from holdfast.spark.workers import prepare, settle
from holdfast.tasks.ingest import Ingest
from holdfast.tasks.result import Parcel, unpack
from holdfast.tasks.runner import Call, Reader

_RESULT = "item long, facts string, arrays binary"
_DEFAULT_TASKS = 8


class SparkRunner:
    """Runs tasks in a Spark session, which stays the caller's: never stopped or reconfigured."""

    def __init__(self, session: SparkSession, tasks: int | None = None) -> None:
        self.session = session
        self.tasks = tasks or _cores(session)
        if not is_own(session):
            prepare(session, self.tasks)

    def run(self, calls: Sequence[Call]) -> list[list[Parcel]]:
        """Run every call, dealt out to about as many tasks as run at once."""
        if not calls:
            return []
        count = min(self.tasks, len(calls))
        work = _dealt(calls, count)
        results: list[list[Parcel]] = [[] for _ in calls]
        for item, parcel in self._collect(
            lambda: self.session.range(0, count, 1, count).mapInArrow(work, _RESULT)
        ):
            results[item].append(parcel)
        return results

    def read(self, task: Reader, rows: DataFrame, spec: Ingest) -> list[Parcel]:
        """Run a task over every partition of a DataFrame, in one action."""
        return [parcel for _, parcel in self._collect(lambda: _over(task, rows, spec))]

    def head(self, task: Reader, rows: DataFrame, spec: Ingest, count: int) -> list[Parcel]:
        """Run a task over the first rows."""
        found = self._collect(lambda: _over(task, rows.limit(count), spec))
        return [parcel for _, parcel in found]

    def _collect(self, frame: Callable[[], DataFrame]) -> list[tuple[int, Parcel]]:
        """The parcels of a job: small by construction, whatever the table's size."""
        rows = collect(self.session, frame)
        return [(row["item"], unpack(row["facts"], bytes(row["arrays"]))) for row in rows]


def _dealt(
    calls: Sequence[Call], count: int
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for item in range(number, len(calls), count):
                    task, told = calls[item]
                    for parcel in task(told):
                        yield _row(item, parcel)
                    settle(task)

    return work


def _over(task: Reader, rows: DataFrame, spec: Ingest) -> DataFrame:
    def work(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for parcel in task(batches, spec):
            yield _row(0, parcel)
        settle(task)

    return rows.mapInArrow(work, _RESULT)


def _row(item: int, parcel: Parcel) -> pa.RecordBatch:
    row = parcel.batch()
    return pa.record_batch(
        [pa.array([item], pa.int64()), *row.columns], names=["item", "facts", "arrays"]
    )


def _cores(session: SparkSession) -> int:
    """How many tasks run at once, as far as the session's settings tell."""
    conf = session.conf
    given = conf.get("spark.default.parallelism", None)
    if given:
        return int(given)
    master = conf.get("spark.master", None) or ""
    local = re.fullmatch(r"local\[(\*|\d+)(?:,\d+)?\]", master)
    if local:
        return _machine() if local[1] == "*" else int(local[1])
    cluster = re.fullmatch(r"local-cluster\[(\d+),(\d+),\d+\]", master)
    if cluster:
        return int(cluster[1]) * int(cluster[2])
    if master == "local":
        return 1
    executors = conf.get("spark.executor.instances", None)
    each = conf.get("spark.executor.cores", None) or "1"
    return int(executors) * int(each) if executors else _DEFAULT_TASKS


def _machine() -> int:
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
