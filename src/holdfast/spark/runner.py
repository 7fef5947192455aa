"""Tasks on Spark: DataFrame API and ``mapInArrow`` only, so that Connect works like classic."""

from __future__ import annotations

import copy
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import types as t

from holdfast.spark.jobs import collect, is_remote
from holdfast.spark.session import is_own, parallelism
from holdfast.spark.workers import freeze, prepare
from holdfast.store import disk_errors
from holdfast.tasks import devices, shared
from holdfast.tasks.ingest import Ingest
from holdfast.tasks.result import TaskResult, checked, guarded, unpack
from holdfast.tasks.runner import Call, Read, Reader, log_traffic, piles
from holdfast.tasks.sealed import uploaded

Batches = Iterator[pa.RecordBatch]

# As types, not in words: Spark would parse those for every job.
_RESULT = t.StructType(
    [
        t.StructField("item", t.LongType()),
        t.StructField("facts", t.StringType()),
        t.StructField("arrays", t.BinaryType()),
    ]
)
_ANSWER = -1
"""The item of a worker's answer about the shared folder."""


class Trial(NamedTuple):
    """How the paths of tokens begin, and the token that the driver left."""

    prefix: str
    token: str


class SparkRunner:
    """Runs tasks in a Spark session, which stays the caller's: never stopped or reconfigured."""

    def __init__(self, session: SparkSession, tasks: int | None = None) -> None:
        self.session = session
        self.here, self.gpus = _is_local(session), _gpus(session)
        self._tokens: str | None = None
        self._numbers: dict[int, DataFrame] = {}
        self._given = tasks
        self._seen = 1 if is_own(session) else prepare(session)
        self.tasks = self._given or parallelism(session, self._seen)

    def sharing(self, prefix: str) -> SparkRunner:
        """The same session; every job tries whether workers see the folder as we do.

        Those of a local session of our own do.
        """
        if is_own(self.session):
            return self
        runner = copy.copy(self)
        runner._tokens = prefix
        if not (self.here or is_remote(self.session) or self._given):
            runner.tasks = parallelism(self.session, self._seen)  # executors may have come since
        return runner

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        """Run every call: heavy ones in a task each, the others in about as many as run at once."""
        if not calls:
            return []
        dealt = piles(calls, self.tasks)
        count = len(dealt)
        results: list[list[TaskResult]] = [[] for _ in calls]

        def frame(trial: Trial | None) -> DataFrame:
            work = _dealt(calls, dealt, trial)
            return self._numbered(count).mapInArrow(work, _RESULT)

        for item, task_result in self._collect(frame):
            results[item].append(task_result)
        log_traffic(calls, results)
        return results

    def _numbered(self, count: int) -> DataFrame:
        """So many partitions, with their number each; made once."""
        if count not in self._numbers:
            self._numbers[count] = self.session.range(0, count, 1, count)
        return self._numbers[count]

    def read(self, task: Reader, rows: DataFrame, spec: Ingest) -> list[TaskResult]:
        """Run a task over every partition of a DataFrame, in one action."""
        return self.read_all([Read(task, rows, spec)])[0]

    def head(self, task: Reader, rows: DataFrame, spec: Ingest, count: int) -> list[TaskResult]:
        """Run a task over the first rows. In one partition these come one partition after the
        other, so that no more of them are read; a limit of several looks into them all."""
        return self.read_all([Read(task, rows, spec, count)])[0]

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        """Read several DataFrames in one action."""
        results: list[list[TaskResult]] = [[] for _ in reads]

        def frame(trial: Trial | None) -> DataFrame:
            frames = [_over(item, each, trial) for item, each in enumerate(reads)]
            return reduce(lambda one, two: one.unionAll(two), frames)

        for item, task_result in self._collect(frame):
            results[item].append(task_result)
        return results

    def _collect(self, frame: Callable[[Trial | None], DataFrame]) -> list[tuple[int, TaskResult]]:
        """The task results of a job: small by construction, whatever the table's size."""
        uploaded()  # what the driver wrote, and tasks may read
        with self._trial() as trial:
            rows = collect(self.session, lambda: frame(trial))
            results = [(row["item"], unpack(row["facts"], bytes(row["arrays"]))) for row in rows]
            if trial:
                answers = [task_result.facts for item, task_result in results if item == _ANSWER]
                shared.compare(trial.token, answers)
        checked(task_result for _, task_result in results)
        return [(item, task_result) for item, task_result in results if item != _ANSWER]

    @contextmanager
    def _trial(self) -> Iterator[Trial | None]:
        if self._tokens is None:
            yield None
            return
        with disk_errors(self._tokens):
            trial = Trial(self._tokens, shared.leave(self._tokens))
        try:
            yield trial
        finally:
            shared.remove(trial.token)


def _dealt(
    calls: Sequence[Call], dealt: list[list[int]], trial: Trial | None
) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for item in dealt[number]:
                    task, argument = calls[item]
                    yield from _rows(item, task(argument))
                    freeze(task)

    return lambda batches: _tried(trial, work(batches))


def _over(item: int, read: Read, trial: Trial | None) -> DataFrame:
    task, rows, spec, count = read

    def over(batches: Batches) -> Batches:
        yield from _rows(item, task(batches, spec))
        freeze(task)

    frame: DataFrame = rows if count is None else rows.coalesce(1).limit(count)
    return frame.mapInArrow(lambda batches: _tried(trial, over(batches)), _RESULT)


def _tried(trial: Trial | None, work: Batches) -> Batches:
    """On a worker: the work, if the folder is the one that the driver sees."""
    devices.hand_over(_scheduled_gpus())
    answer = shared.answer(*trial) if trial else None
    if answer is not None:
        yield _row(_ANSWER, TaskResult(answer))
    if answer is None or answer["sees"]:
        yield from work


def _scheduled_gpus() -> list[str]:
    """On a worker: the addresses of the GPUs that Spark has scheduled for this task."""
    from pyspark import TaskContext

    context = TaskContext.get()
    gpu = context.resources().get("gpu") if context else None
    return list(gpu.addresses) if gpu else []


def _rows(item: int, task_results: Iterator[TaskResult]) -> Batches:
    for task_result in guarded(task_results):
        yield _row(item, task_result)


def _row(item: int, task_result: TaskResult) -> pa.RecordBatch:
    row = task_result.batch()
    return pa.record_batch(
        [pa.array([item], pa.int64()), *row.columns], names=["item", "facts", "arrays"]
    )


def _is_local(session: SparkSession) -> bool:
    """Whether tasks run on the driver's machine; the master of a Connect server runs them there."""
    master = session.conf.get("spark.master", None) or ""
    return not is_remote(session) and re.fullmatch(r"local(\[.*\])?", master) is not None


def _gpus(session: SparkSession) -> int:
    """How many GPUs Spark has for tasks at once, as far as the session's settings tell."""
    each = session.conf.get("spark.executor.resource.gpu.amount", None)
    executors = session.conf.get("spark.executor.instances", None)
    return max(1, int(each or 1) * int(executors or 1))
