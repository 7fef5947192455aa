"""Jobs that end with their time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import pytest

from holdfast.model import limits
from holdfast.model.limits import OutOfTime, Time
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import InProcess
from holdfast.runtime.timed import Timed, is_bounded, is_over, look


def steps(number: int) -> Iterator[TaskResult]:
    """A task of so many steps, which ends when its time does."""
    for step in range(number):
        look()
        yield TaskResult({"step": step})


def as_many(number: int) -> Iterator[TaskResult]:
    """A task that does as many steps as there is time for."""
    done = 0
    while done < number and not is_over():
        done += 1
    yield TaskResult({"done": done, "bounded": is_bounded()})


@pytest.fixture(autouse=True)
def _clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """A second for every look."""
    monkeypatch.setattr(limits, "clock", count().__next__)


def test_a_job_ends_by_itself_or_with_its_time() -> None:
    results = Timed(InProcess(), Time.of(1_000)).run([(steps, 3), (steps, 2)])
    assert [[each.facts["step"] for each in mine] for mine in results] == [[0, 1, 2], [0, 1]]
    with pytest.raises(OutOfTime):
        Timed(InProcess(), Time.of(10)).run([(steps, 100)])


def test_tasks_of_a_job_share_its_time() -> None:
    """Each alone would have enough of it."""
    for number in (1, 2):
        calls = [(steps, 12)] * number
        if number == 1:
            assert len(Timed(InProcess(), Time.of(20)).run(calls)[0]) == 12
        else:
            with pytest.raises(OutOfTime):
                Timed(InProcess(), Time.of(20)).run(calls)


def test_a_task_can_end_with_less() -> None:
    [[first], [second]] = Timed(InProcess(), Time.of(20)).run([(as_many, 100), (as_many, 100)])
    assert 5 < first.facts["done"] < 20
    assert second.facts["done"] == 0
    assert first.facts["bounded"]


def test_without_an_end_no_task_looks_at_the_clock() -> None:
    [[result]] = Timed(InProcess(), Time()).run([(as_many, 100)])
    assert result.facts == {"done": 100, "bounded": False}
    assert limits.clock() == 0


def test_of_two_times_the_inner_one_counts() -> None:
    outer = Timed(InProcess(), Time.of(10_000))
    with pytest.raises(OutOfTime):
        Timed(outer, Time.of(10)).run([(steps, 100)])
    assert len(outer.run([(steps, 100)])[0]) == 100
