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

from holdfast.model.errors import disk_errors
from holdfast.runtime import objects, shared
from holdfast.runtime.homes import deal, files_of, machine
from holdfast.runtime.result import TaskResult, checked, guarded, unpack
from holdfast.runtime.runner import Call, Parts, Read, Reader, log_traffic, piles
from holdfast.runtime.sealed import uploaded
from holdfast.spark.jobs import collect, is_remote
from holdfast.spark.places import Places, may_place, places_of
from holdfast.spark.session import is_own, parallelism
from holdfast.spark.workers import freeze, prepare
from holdfast.tasks import devices
from holdfast.tasks.ingest import Ingest

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

_RAN = -2
"""The item of a task's answer where it ran."""


class Trial(NamedTuple):
    """How the paths of tokens begin, and the token that the driver left."""

    prefix: str
    token: str


class Ask(NamedTuple):
    """What a task needs to tell where it ran: which places there are, and how many."""

    first: int
    places: int

    @staticmethod
    def of(places: Places) -> Ask:
        """About some places."""
        return Ask(places.first, len(places.machines))

    def answer(self, place: int | None) -> Iterator[TaskResult]:
        """On a worker: that a task ran here."""
        yield TaskResult({"first": self.first, "place": place, "machine": machine()})


class SparkRunner:
    """Runs tasks in a Spark session, which stays the caller's: never stopped or reconfigured."""

    def __init__(self, session: SparkSession, tasks: int | None = None) -> None:
        self.session = session
        self.here, self.gpus = is_on_this_machine(session), _gpus(session)
        self._tokens: str | None = None
        self._placing = False
        self._places: Places | None = None  # of the last job
        self._numbers: dict[int, DataFrame] = {}
        self._given = tasks
        self._seen = 1 if is_own(session) else prepare(session)
        self.tasks = self._given or parallelism(session, self._seen)

    def sharing(self, prefix: str) -> SparkRunner:
        """The same session; every job tries whether workers see the folder as we do. Those of a
        local session of our own do.

        On an object store they find out when they read, and none but their errors can tell. There a
        machine fetches what it reads, so calls are dealt to machines by what they read.
        """
        if is_own(self.session):
            return self
        runner = copy.copy(self)
        if objects.is_remote(prefix):
            runner._placing = not self.here and may_place(self.session)
        else:
            runner._tokens = prefix
        if not (self.here or is_remote(self.session) or self._given):
            runner.tasks = parallelism(self.session, self._seen)  # executors may have come since
        return runner

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        """Run every call: heavy ones in a task each, the others in about as many as run at once."""
        if not calls:
            return []
        results: list[list[TaskResult]] = [[] for _ in calls]

        def frame(trial: Trial | None) -> DataFrame:
            places = self._to_use()
            files = files_of(calls) if places else []
            if places is None or places.are_one or not (places.are_known and any(files)):
                dealt = piles(calls, self.tasks)
                numbers = self._numbered(len(dealt))
                return self._with_places([numbers.mapInArrow(_dealt(calls, dealt, trial), _RESULT)])
            calls_of_place, anywhere = deal(calls, files, places.machines)
            times = max(map(len, calls_of_place))
            dealt = [
                placed[k] if k < len(placed) else []
                for k in range(times)
                for placed in calls_of_place
            ]
            numbers = places.rows(self.session, times, len(anywhere))
            dealt += [[k] for k in anywhere]
            return numbers.mapInArrow(_dealt(calls, dealt, trial, Ask.of(places)), _RESULT)

        for item, task_result in self._collect(frame):
            results[item].append(task_result)
        log_traffic(calls, results)
        return results

    def _to_use(self) -> Places | None:
        """The places to use, if it matters where tasks run."""
        self._places = places_of(self.session, self.tasks) if self._placing else None
        return self._places

    def _with_places(self, frames: list[DataFrame]) -> DataFrame:
        """A job that runs anywhere; where places are not known yet it makes them."""
        places = self._places
        if places and not places.are_known:
            # First, so that they are dealt out evenly; and once, so that each is on one executor.
            nothing = _dealt((), [[]] * len(places.machines), None, Ask.of(places))
            frames = [places.rows(self.session).mapInArrow(nothing, _RESULT), *frames]
        return reduce(lambda one, two: one.unionAll(two), frames)

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
            places = self._to_use()
            ask = Ask.of(places) if places else None
            return self._with_places(
                [self._over(item, read, trial, ask) for item, read in enumerate(reads)]
            )

        for item, task_result in self._collect(frame):
            results[item].append(task_result)
        return results

    def _over(self, item: int, read: Read, trial: Trial | None, ask: Ask | None) -> DataFrame:
        """A task over the partitions of a DataFrame, or over parts that it fetches itself."""
        task, rows, spec, count = read
        parts = rows if isinstance(rows, Parts) else None

        def over(batches: Batches) -> Batches:
            if ask:
                yield from _rows(_RAN, ask.answer(None))
            for given in [batches] if parts is None else _fetched(parts, batches, count):
                yield from _rows(item, task(given, spec))
            freeze(task)

        if parts is not None:
            frame = self._numbered(max(1, len(parts.parts)) if count is None else 1)
        else:
            frame = rows if count is None else rows.coalesce(1).limit(count)
        return frame.mapInArrow(lambda batches: _tried(trial, over(batches)), _RESULT)

    def _collect(self, frame: Callable[[Trial | None], DataFrame]) -> list[tuple[int, TaskResult]]:
        """The task results of a job: small by construction, whatever the table's size."""
        uploaded()  # what the driver wrote, and tasks may read
        with self._trial() as trial:
            rows = collect(self.session, lambda: frame(trial))
            results = [(row["item"], unpack(row["facts"], bytes(row["arrays"]))) for row in rows]
            if trial:
                answers = [result.facts for item, result in results if item == _ANSWER]
                shared.compare(trial.token, [shared.Answer(**facts) for facts in answers])
        checked(task_result for _, task_result in results)
        if self._places:
            self._places.learn(result.facts for item, result in results if item == _RAN)
        return [(item, task_result) for item, task_result in results if item >= 0]

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
    calls: Sequence[Call], dealt: list[list[int]], trial: Trial | None, ask: Ask | None = None
) -> Callable[[Batches], Batches]:
    def work(batches: Batches) -> Batches:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                if ask and number < ask.places:
                    yield from _rows(_RAN, ask.answer(number))
                for item in dealt[number]:
                    task, argument = calls[item]
                    yield from _rows(item, task(argument))
                    freeze(task)

    return lambda batches: _tried(trial, work(batches))


def _fetched(rows: Parts, numbers: Batches, count: int | None) -> Iterator[Batches]:
    """On a worker: the rows of the parts that it is to fetch, or so many of the first ones."""
    for batch in numbers:
        for number in batch.column(0).to_pylist():
            if count is not None:
                yield rows.first(count)
            elif number < len(rows.parts):
                yield rows.fetch(rows.parts[number])


def _tried(trial: Trial | None, work: Batches) -> Batches:
    """On a worker: the work, if the folder is the one that the driver sees."""
    devices.hand_over(_scheduled_gpus())
    answer = shared.answer_of(*trial) if trial else None
    if answer is not None:
        yield _row(_ANSWER, TaskResult(answer._asdict()))
    if answer is None or answer.sees:
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


def is_on_this_machine(session: SparkSession) -> bool:
    """Whether tasks run on the driver's machine; the master of a Connect server runs them there."""
    master = session.conf.get("spark.master", None) or ""
    return not is_remote(session) and re.fullmatch(r"local(\[.*\])?", master) is not None


def _gpus(session: SparkSession) -> int:
    """How many GPUs Spark has for tasks at once, as far as the session's settings tell."""
    amount = session.conf.get("spark.executor.resource.gpu.amount", None)
    executors = session.conf.get("spark.executor.instances", None)
    return max(1, int(amount or 1) * int(executors or 1))
