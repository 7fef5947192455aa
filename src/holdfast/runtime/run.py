"""One run over a profile: where it works, what it reports, and how long its stages took."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from holdfast.model.errors import disk_errors
from holdfast.model.limits import Time
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.runtime.compiling import KIND, Reporting, reported
from holdfast.runtime.objects import is_remote
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, DelegatingRunner, Read, Runner
from holdfast.runtime.timed import Timed

if TYPE_CHECKING:
    from holdfast.store import Lease, Store

_WATCH_SECONDS = 1.0


@dataclass(frozen=True)
class Destination:
    """Where a run writes its files: the profile, and the beginning of their names; and what it
    keeps of the rows."""

    root: str
    prefix: str
    keep_rows: bool = True
    key: bytes | None = field(default=None, repr=False)  # what cells are concealed with, if at all


@dataclass
class Run:
    """One run over a profile: where it works, and how long its stages took."""

    runner: Runner
    store: Store
    options: Options
    lease: Lease
    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)
    device: str | None = None  # what to count pairs with; None: what the options say
    key: bytes | None = field(default=None, repr=False)  # what cells are concealed with, if at all

    def __post_init__(self) -> None:
        """Tasks must see what this run writes."""
        tokens = Path(self.store.path) / self.lease.prefix("token")
        self.runner = self.runner.sharing(str(tokens))

    @property
    def destination(self) -> Destination:
        """Where this run writes."""
        return Destination(self.store.path, self.lease.pattern, self.options.keep_rows, self.key)

    @cached_property
    def time(self) -> Time:
        """The time that this run may spend on searching, from when it is first asked."""
        return Time.of(self.options.time_budget)

    @property
    def upkeep_time(self) -> Time:
        """The time until which this run may prepare what makes later batches quick: beyond that of
        the search, half as much again."""
        end, budget = self.time.end, self.options.time_budget
        return Time() if end is None or budget is None else Time(end + budget / 2)

    def bounded(self) -> Run:
        """The same run, with tasks that end when its time does."""
        return self.with_runner(self.within(self.time))

    def with_runner(self, runner: Runner) -> Run:
        """The same run, whose tasks another runner places; its time begins now, if it has not."""
        self.time  # noqa: B018  # so that the copy has the same
        again = copy(self)
        again.runner = runner
        return again

    def within(self, time: Time) -> Runner:
        """What runs tasks that end when a time does."""
        return Timed(self.runner, time)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        started = time.perf_counter()
        with disk_errors(self.store.path):
            yield
        taken = time.perf_counter() - started
        self.seconds[name] = round(self.seconds.get(name, 0.0) + taken, 4)


def about(progress: Progress, table: str) -> Progress:
    def report(stage: str, **facts: Any) -> None:
        progress(stage, table=table, **facts)

    return report


@contextmanager
def watched(
    runner: Runner, store: Store, lease: Lease, progress: Progress
) -> Iterator[tuple[Runner, Progress]]:
    """The runner and the progress of a run that says so while kernels are compiled, here or by a
    task."""
    prefix = lease.pattern
    if is_remote(Path(store.path, prefix)):
        yield runner, progress
        return
    reports = Path(store.path, f"{prefix.replace('*', KIND)}*")
    latest: list[tuple[str, dict[str, object]]] = []
    ended, compiling = threading.Event(), threading.Event()

    def report(stage: str, **facts: Any) -> None:
        latest[:] = [(stage, facts)]
        progress(stage, **facts, **({"compiling": True} if compiling.is_set() else {}))

    def watch() -> None:
        while not ended.wait(_WATCH_SECONDS):
            is_now = any(reports.parent.glob(reports.name))
            if is_now == compiling.is_set():
                continue
            (compiling.set if is_now else compiling.clear)()
            for stage, facts in latest[:]:
                report(stage, **facts)

    watcher = threading.Thread(target=watch, name="compiling", daemon=True)
    watcher.start()
    try:
        with reported(store.path, prefix):
            yield _Reporting(runner, store.path, prefix), report
    finally:
        ended.set()
        watcher.join()


@dataclass(frozen=True)
class _Reporting(DelegatingRunner):
    """A runner whose tasks say that they compile."""

    root: str
    prefix: str

    def sharing(self, prefix: str) -> Runner:
        return _Reporting(self.runner.sharing(prefix), self.root, self.prefix)

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        return self.runner.run([(self._of(task), item) for task, item in calls])

    def read_all(self, reads: Sequence[Read]) -> list[list[TaskResult]]:
        return self.runner.read_all([read._replace(task=self._of(read.task)) for read in reads])

    def _of(self, task: Any) -> Reporting:
        return Reporting(task, self.root, self.prefix)
