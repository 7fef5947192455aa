"""Where tasks run: the one interface that Spark and the in-process runner both fill."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from holdfast.model import thresholds
from holdfast.runtime import threads
from holdfast.runtime.result import TaskResult, checked, guarded, unpack

if TYPE_CHECKING:
    from holdfast.tasks.ingest import Ingest

Call = tuple[Callable[[Any], Iterator[TaskResult]], Any]
"""A task and its argument. One that may go through many rows says through how many, as ``work``;
one that is best run where a file lies says which, as ``home``, or its ``view`` does."""

_log = logging.getLogger("holdfast.traffic")

Reader = Callable[[Iterator[pa.RecordBatch], "Ingest"], Iterator[TaskResult]]
"""A task over the rows of a row_input."""


class Read(NamedTuple):
    """A task over the rows of a row input; or over so many of the first ones only."""

    task: Reader
    rows: Any
    spec: Ingest
    first: int | None = None


class Runner(Protocol):
    """Runs tasks somewhere and brings back their task results; or raises the error of one."""

    @property
    def tasks(self) -> int:
        """How many tasks run at once."""

    @property
    def here(self) -> bool:
        """Whether tasks run on this machine alone."""

    @property
    def gpus(self) -> int:
        """How many GPUs tasks can have at once, if there are any."""

    def sharing(self, prefix: str) -> Runner:
        """A runner of tasks that write where paths begin so: they see one folder, or one object
        store, or it is an error."""

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        """Run every call, in one job; the task results of each, in order."""

    def read(self, task: Reader, rows: Any, spec: Ingest) -> list[TaskResult]:
        """Run a task over every partition of some rows, once, in one job."""

    def head(self, task: Reader, rows: Any, spec: Ingest, count: int) -> list[TaskResult]:
        """Run a task over the first rows only."""

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        """Read several row inputs in one job; the task results of each, in order."""


@dataclass(frozen=True)
class DelegatingRunner(Runner):
    """A runner that hands tasks on to another one."""

    runner: Runner

    @property
    def tasks(self) -> int:
        """As many as of the other."""
        return self.runner.tasks

    @property
    def here(self) -> bool:
        """Where those of the other run."""
        return self.runner.here

    @property
    def gpus(self) -> int:
        """Those of the other."""
        return self.runner.gpus

    def read(self, task: Reader, rows: Any, spec: Ingest) -> list[TaskResult]:
        """One of several that could be read."""
        return self.read_all([Read(task, rows, spec)])[0]

    def head(self, task: Reader, rows: Any, spec: Ingest, count: int) -> list[TaskResult]:
        """One of several that could be read."""
        return self.read_all([Read(task, rows, spec, count)])[0]


def run_all(runner: Runner, calls: Sequence[Call]) -> list[TaskResult]:
    """The task results of all calls, in order, without which is whose; no job where there are no
    calls."""
    results = runner.run(calls) if calls else []
    return [task_result for result in results for task_result in result]


def piles(calls: Sequence[Call], tasks: int) -> list[list[int]]:
    """The numbers of the calls that run one after the other, in one task.

    Heavy ones have a task each, so that a straggler or a retry repeats one of them. The others
    would wait for a task longer than they take, and are dealt out to as many as run at once.
    """
    heavy = [k for k, call in enumerate(calls) if is_heavy(call)]
    light = [k for k, call in enumerate(calls) if not is_heavy(call)]
    count = min(tasks, len(light))
    return [*([k] for k in heavy), *(light[first::count] for first in range(count))]


def is_heavy(call: Call) -> bool:
    """Whether a call goes through so many rows that it has a task for itself."""
    work: int = getattr(call[1], "work", 0)
    return work > thresholds.current.light_rows


def log_traffic(calls: Sequence[Call], results: Sequence[Sequence[TaskResult]]) -> None:
    """Say, to those who debug or measure, how much a job read and sent back, by kind of task."""
    if not _log.isEnabledFor(logging.DEBUG):
        return
    by_kind: dict[str, list[int]] = {}
    for (task, _), task_results in zip(calls, results, strict=True):
        while hasattr(task, "task"):  # within others
            task = task.task
        name = task.__name__
        total = by_kind.setdefault(name, [0, 0, 0])
        total[0] += 1
        total[1] += sum(task_result.read for task_result in task_results)
        total[2] += sum(task_result.size for task_result in task_results)
    for name, total in by_kind.items():
        _log.debug("%s: %d calls read %d bytes and returned %d", name, *total)


@dataclass(frozen=True)
class Parts:
    """Rows that tasks fetch, part by part: what is fetched never passes the driver.

    ``fetch`` is called on workers, once for each part, so it and the parts must be picklable. It
    yields record batches of the schema, with each part's rows in order.
    """

    schema: pa.Schema
    parts: tuple[Any, ...]
    fetch: Callable[[Any], Iterator[pa.RecordBatch]]

    def first(self, count: int) -> Iterator[pa.RecordBatch]:
        """So many rows from the first on."""
        for batch in chain.from_iterable(map(self.fetch, self.parts)):
            yield batch.slice(0, count)
            count -= batch.num_rows
            if count <= 0:
                return


class InProcess:
    """Runs tasks in this process, over Arrow tables or over parts that they fetch.

    Heavy calls and parts are run in as many ``threads``. Light calls take less time than handing
    them to a thread does, so they are run one after the other.
    """

    def __init__(self, tasks: int = 2, threads: int = 1) -> None:
        self.tasks, self._threads = tasks, threads
        self.here, self.gpus = True, 1

    def sharing(self, _prefix: str) -> Runner:
        """All tasks are in this process."""
        return self

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        """Run every call."""
        works = [partial(_called, task, item) for task, item in calls]
        results = threads.done(works, self._threads if any(map(is_heavy, calls)) else 1)
        log_traffic(calls, results)
        return results

    def read(self, task: Reader, rows: pa.Table | Parts, spec: Ingest) -> list[TaskResult]:
        """Run a task over the rows: over each part, or over as many slices as there are tasks."""
        if isinstance(rows, Parts):
            fetched = [partial(rows.fetch, part) for part in rows.parts]
        else:
            size = max(1, -(-rows.num_rows // self.tasks))
            fetched = [
                partial(_slice, rows, start, size) for start in range(0, rows.num_rows or 1, size)
            ]
        works = [partial(_over, task, fetch, spec) for fetch in fetched]
        results = threads.done(works, self._threads)
        return [task_result for of_part in results for task_result in of_part]

    def head(
        self, task: Reader, rows: pa.Table | Parts, spec: Ingest, count: int
    ) -> list[TaskResult]:
        """Run a task over the first rows."""
        first = rows.first(count) if isinstance(rows, Parts) else _slice(rows, 0, count)
        return checked(guarded(task(first, spec)))

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        """Read one row input after the other."""
        return [
            self.read(*read[:3]) if read.first is None else self.head(*read[:3], read.first)
            for read in reads
        ]


def _called(task: Callable[[Any], Iterator[TaskResult]], item: Any) -> list[TaskResult]:
    return checked(map(_copy, guarded(task(item))))


def _over(
    task: Reader, fetch: Callable[[], Iterator[pa.RecordBatch]], spec: Ingest
) -> list[TaskResult]:
    return checked(map(_copy, guarded(task(_while_wanted(fetch()), spec))))


def _while_wanted(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        threads.look()
        yield batch


def _slice(rows: pa.Table, start: int, size: int) -> Iterator[pa.RecordBatch]:
    return iter(rows.slice(start, size).to_batches())


def _copy(task_result: TaskResult) -> TaskResult:
    """Through the same form that Spark carries, so that results are what Spark would bring."""
    row = task_result.batch()
    return unpack(row.column(0)[0].as_py(), row.column(1)[0].as_py())
