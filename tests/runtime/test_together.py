"""Works side by side: one job for all of them, and what each would have got alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence

import pytest

from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess, Runner
from holdfast.runtime.together import Work, side_by_side


def double(number: int) -> Iterator[TaskResult]:
    yield TaskResult({"double": 2 * number})


class Jobs(InProcess):
    """Remembers how many calls each job had, and the thread that ran it."""

    def __init__(self) -> None:
        super().__init__(2)
        self.sizes: list[int] = []
        self.threads: set[str] = set()

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        self.sizes.append(len(calls))
        self.threads.add(threading.current_thread().name)
        return super().run(calls)


def doubling(start: int, times: int) -> Work[int]:
    """Doubles a number so often, each time by a job of two calls."""

    def work(runner: Runner) -> int:
        number = start
        for _ in range(times):
            one, two = runner.run([(double, number), (double, -number)])
            assert one[0].facts["double"] == -two[0].facts["double"]
            number = one[0].facts["double"]
        return number

    return work


def test_what_all_wait_for_is_one_job() -> None:
    runner = Jobs()
    times = [3, 0, 1, 2]
    done = side_by_side(runner, [doubling(n + 1, k) for n, k in enumerate(times)], 10)
    assert done == [(n + 1) << k for n, k in enumerate(times)]
    assert runner.sizes == [6, 4, 2]
    assert runner.threads == {threading.main_thread().name}


def test_only_so_many_at_once() -> None:
    runner = Jobs()
    assert side_by_side(runner, [doubling(1, 1)] * 5, 2) == [2] * 5
    assert runner.sizes == [4, 4, 2]
    assert side_by_side(runner, [], 2) == []


def failing(after: int, error: BaseException) -> Work[int]:
    def work(runner: Runner) -> int:
        doubling(1, after)(runner)
        raise error

    return work


def test_the_error_is_that_of_the_first_work() -> None:
    """Whichever fails earlier; works before it go on, and those after it end."""
    runner = Jobs()
    works = [doubling(1, 2), failing(3, ValueError("second")), failing(1, ValueError("third"))]
    with pytest.raises(ValueError, match="second"):
        side_by_side(runner, [*works, doubling(1, 9)], 10)
    # The last work ends with the third, which fails after the first job.
    assert runner.sizes == [8, 4, 2]


def test_a_job_that_fails_fails_for_all_who_wait() -> None:
    class Broken(InProcess):
        def run(self, _calls: Sequence[Call]) -> list[list[TaskResult]]:
            raise RuntimeError("the cluster is gone")

    with pytest.raises(RuntimeError, match="the cluster is gone"):
        side_by_side(Broken(), [doubling(1, 1)] * 3, 3)
    assert not [each for each in threading.enumerate() if each.name.startswith("work-")]


def test_an_interrupt_ends_all_works() -> None:
    class Interrupted(InProcess):
        def run(self, _calls: Sequence[Call]) -> list[list[TaskResult]]:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        side_by_side(Interrupted(), [doubling(1, 1)] * 3, 3)
    assert not [each for each in threading.enumerate() if each.name.startswith("work-")]
