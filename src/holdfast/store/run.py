"""One run over a profile: where it works, what it tells, and how long its stages took."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from holdfast.model.limits import Time
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.store.directory import Store
from holdfast.store.files import disk_errors
from holdfast.store.leases import Lease
from holdfast.tasks.runner import Runner

clock = time.monotonic
"""What a time budget is measured by."""


@dataclass(frozen=True)
class Place:
    """Where a run writes its files: the profile, and the beginning of their names."""

    root: str
    prefix: str
    keep_rows: bool = True


@dataclass
class Run:
    """One run over a profile: where it works, and how long its stages took."""

    runner: Runner
    store: Store
    options: Options
    lease: Lease
    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Tasks must see what this run writes."""
        tokens = Path(self.store.path) / self.lease.prefix("token")
        self.runner = self.runner.sharing(str(tokens))

    @property
    def place(self) -> Place:
        """Where this run writes."""
        return Place(self.store.path, self.lease.pattern, self.options.keep_rows)

    @cached_property
    def time(self) -> Time:
        """The time that this run may spend on searching, from when it is first asked."""
        return Time.of(self.options.time_budget, clock)

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
