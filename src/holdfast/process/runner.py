"""The runner of this process: as many threads as it may use cores."""

from __future__ import annotations

import os

from holdfast.runtime.runner import InProcess


def in_threads(tasks: int | None = None) -> InProcess:
    """A runner of so many tasks at once; by default as many as there are cores for this process."""
    count = tasks or cores()
    return InProcess(count, count)


def cores() -> int:
    """How many cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
