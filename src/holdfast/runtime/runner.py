"""Where tasks run: the one interface that Spark and the in-process runner both fill."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import pyarrow as pa

from holdfast.model import thresholds
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


class InProcess:
    """Runs tasks one after the other, here, over Arrow tables. For tests and small data."""

    def __init__(self, tasks: int = 2) -> None:
        self.tasks = tasks
        self.here, self.gpus = True, 1

    def sharing(self, _prefix: str) -> Runner:
        """All tasks are in this process."""
        return self

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        """Run every call."""
        results = [checked(map(_copy, guarded(task(item)))) for task, item in calls]
        log_traffic(calls, results)
        return results

    def read(self, task: Reader, rows: pa.Table, spec: Ingest) -> list[TaskResult]:
        """Run a task over the rows, in as many partitions as there are tasks."""
        size = max(1, -(-rows.num_rows // self.tasks))
        task_results = []
        for start in range(0, max(1, rows.num_rows), size):
            batches = rows.slice(start, size).to_batches()
            task_results += checked(map(_copy, guarded(task(iter(batches), spec))))
        return task_results

    def head(self, task: Reader, rows: pa.Table, spec: Ingest, count: int) -> list[TaskResult]:
        """Run a task over the first rows."""
        return checked(guarded(task(iter(rows.slice(0, count).to_batches()), spec)))

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        """Read one row input after the other."""
        return [
            self.read(*read[:3]) if read.first is None else self.head(*read[:3], read.first)
            for read in reads
        ]


def _copy(task_result: TaskResult) -> TaskResult:
    """Through the same form that Spark carries, so that tests see what Spark would bring."""
    row = task_result.batch()
    return unpack(row.column(0)[0].as_py(), row.column(1)[0].as_py())
