"""Works side by side: what all of them wait for is one job.

A work, such as the profile of a table, asks its runner for one job after the other and thinks in
between. Several of them get a thread each. Once every one of them waits for a job, all that they
ask for becomes one job, in the caller's thread, so that the number of jobs is that of the work with
the most, however many there are. Results are those of one work after the other, and so is the
error, if there is one: that of the first work that fails.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, DelegatingRunner, Read, Runner

T = TypeVar("T")

Work = Callable[[Runner], T]
"""Something that runs tasks with the runner that it is given."""


def side_by_side(runner: Runner, works: Sequence[Work[T]], at_once: int) -> list[T]:
    """Do all works, so many of them side by side; what each returns."""
    done: list[T] = []
    for start in range(0, len(works), max(1, at_once)):
        together = works[start : start + max(1, at_once)]
        done += [together[0](runner)] if len(together) == 1 else _Round(runner, together).done()
    return done


class _Stopped(BaseException):
    """Ends a work whose result nobody waits for any more."""


@dataclass(eq=False)
class _Asked:
    """A job that a work waits for: calls, or rows to read."""

    runner: Runner
    calls: Sequence[Call] = ()
    reads: Sequence[Read] | None = None
    results: list[list[TaskResult]] | None = None
    error: BaseException | None = None


class _Round:
    """Works that wait for each other."""

    def __init__(self, runner: Runner, works: Sequence[Work[Any]]) -> None:
        self._works = works
        self._runner = runner
        self._shared: dict[str, Runner] = {}
        self._turn = threading.Condition()
        self._asked: dict[int, _Asked] = {}
        self._results: dict[int, Any] = {}
        self._errors: dict[int, BaseException] = {}
        self._last = len(works)  # works from this one on are to stop
        self._seats = [_Seat(runner, self, number) for number in range(len(works))]

    def done(self) -> list[Any]:
        """Do the works."""
        threads = [
            threading.Thread(target=self._work, args=(number,), name=f"work-{number}", daemon=True)
            for number in range(len(self._works))
        ]
        for thread in threads:
            thread.start()
        try:
            self._serve()
        finally:
            # An interrupt leaves works that wait: they end with an error of their own.
            with self._turn:
                if len(self._results) + len(self._errors) < len(self._works):
                    self._stop(0)
            for thread in threads:
                thread.join()
        if self._errors:
            raise self._errors[min(self._errors)]
        return [self._results[number] for number in range(len(self._works))]

    def _work(self, number: int) -> None:
        try:
            result = self._works[number](self._seats[number])
        except BaseException as error:  # noqa: BLE001  # it is raised in the caller's thread
            with self._turn:
                self._errors[number] = error
                self._stop(number + 1)
        else:
            with self._turn:
                self._results[number] = result
                self._turn.notify_all()

    def _stop(self, first: int) -> None:
        """Works after one that fails are not needed: one by one, they would not have begun."""
        self._last = min(self._last, first)
        self._turn.notify_all()

    def sharing(self, prefix: str) -> Runner:
        """The runner of tasks that write where paths begin so: one for all works."""
        with self._turn:
            if prefix not in self._shared:
                self._shared[prefix] = self._runner.sharing(prefix)
            return self._shared[prefix]

    def ask(self, number: int, asked: _Asked) -> list[list[TaskResult]]:
        """What a job brings, in the thread of a work."""
        with self._turn:
            self._asked[number] = asked
            self._turn.notify_all()
            self._turn.wait_for(
                lambda: asked.results is not None or asked.error or number >= self._last
            )
            self._asked.pop(number, None)
        if asked.error is not None:
            raise asked.error
        if asked.results is None:
            raise _Stopped
        return asked.results

    def _serve(self) -> None:
        """Run what all works that are not done wait for, until all are done."""
        while True:
            with self._turn:
                self._turn.wait_for(self._all_wait)
                asked = [self._asked[number] for number in sorted(self._asked)]
                self._asked.clear()
            if not asked:
                return
            for runner in {id(request.runner): request.runner for request in asked}.values():
                _run(runner, [request for request in asked if request.runner is runner])
            with self._turn:
                self._turn.notify_all()

    def _all_wait(self) -> bool:
        """Whether all works that are not done wait for a job, and none of them is to stop."""
        return all(
            number in self._results
            or number in self._errors
            or (number in self._asked and number < self._last)
            for number in range(len(self._works))
        )


def _run(runner: Runner, asked: Sequence[_Asked]) -> None:
    """One job for the calls of all, and one for what they read."""
    calling, reading = ([e for e in asked if e.reads is None], [e for e in asked if e.reads])
    if calling:
        calls = [call for request in calling for call in request.calls]
        _hand_out(calling, [len(request.calls) for request in calling], lambda: runner.run(calls))
    if reading:
        reads = [read for request in reading for read in request.reads or ()]
        _hand_out(reading, [len(e.reads or ()) for e in reading], lambda: runner.read_all(reads))


def _hand_out(
    asked: Sequence[_Asked], sizes: Sequence[int], job: Callable[[], list[list[TaskResult]]]
) -> None:
    """Run a job for all who asked; an error is that of each of them."""
    try:
        results = job()
    except Exception as error:  # noqa: BLE001  # it is raised by those who asked
        for request in asked:
            request.error = error
        return
    start = 0
    for request, size in zip(asked, sizes, strict=True):
        request.results = results[start : start + size]
        start += size


@dataclass(frozen=True)
class _Seat(DelegatingRunner):
    """The runner of one work."""

    round: _Round
    number: int

    def sharing(self, prefix: str) -> Runner:
        return replace(self, runner=self.round.sharing(prefix))

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        return self.round.ask(self.number, _Asked(self.runner, calls)) if calls else []

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        return self.round.ask(self.number, _Asked(self.runner, reads=reads)) if reads else []
