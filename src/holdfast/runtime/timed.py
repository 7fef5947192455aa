"""Jobs that end with their time: tasks look at the clock, and one that is late ends the job.

Clocks of machines differ, so tasks are told how many seconds are left. They count from when a
process meets the first task of a job: those that wait for others of the same job have no more time
for that.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from holdfast.model.limits import OutOfTime, Time
from holdfast.runtime import threads
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, DelegatingRunner, Read, Runner

_LATE = "late"

_time: ContextVar[Time] = ContextVar("time")

_jobs: dict[str, Time] = {}
"""The time of the last jobs that this process had tasks of."""

_REMEMBERED = 4

_lock = threading.Lock()


def look() -> None:
    """In a task, wherever it has done a part of its work: go on only if there is time."""
    threads.look()
    _time.get(Time()).look()


def is_bounded() -> bool:
    """In a task: whether its time can end."""
    return _time.get(Time()).end is not None


def is_over() -> bool:
    """In a task that can end with less: whether it is time to."""
    return _time.get(Time()).is_over


@dataclass(frozen=True)
class Timed(DelegatingRunner):
    """A runner whose jobs raise :class:`OutOfTime` when a time is over."""

    time: Time

    def sharing(self, prefix: str) -> Runner:
        return Timed(self.runner.sharing(prefix), self.time)

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        if self.time.end is None or not calls:
            return self.runner.run(calls)
        job, seconds = uuid.uuid4().hex, self.time.left
        results = self.runner.run([(_Within(task, job, seconds), item) for task, item in calls])
        if any(
            _LATE in task_result.facts for task_results in results for task_result in task_results
        ):
            raise OutOfTime
        return results

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        return self.runner.read_all(reads)


@dataclass(frozen=True)
class _Within:
    """A task that says so when its time is over; equal to every other of its task."""

    task: Callable[[Any], Iterator[TaskResult]]
    job: str = field(compare=False)
    seconds: float = field(compare=False)

    def __call__(self, item: Any) -> Iterator[TaskResult]:
        """Do the task, as far as there is time."""
        before = _time.set(self._time())
        try:
            yield from self.task(item)
        except OutOfTime:
            yield TaskResult({_LATE: True})
        finally:
            _time.reset(before)

    def _time(self) -> Time:
        with _lock:
            if self.job not in _jobs:
                for job in [*_jobs][: 1 - _REMEMBERED]:
                    del _jobs[job]
                _jobs[self.job] = Time.of(self.seconds)
            return _jobs[self.job]
