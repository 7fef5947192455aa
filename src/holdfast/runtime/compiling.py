"""Saying that kernels are being compiled: a file in the profile, for as long as it takes.

The first profile on a machine waits for the compiler, in the driver and in every worker. Neither
sees the other's work, but all of them see the profile.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from numba.core import event

from holdfast.model.progress import Progress
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique

KIND = "compiling"
"""The kind of the files, in their names."""

_reported: set[tuple[str, str]] = set()
"""What this process says already."""


@dataclass(frozen=True)
class Reporting:
    """A task that says so while a kernel is compiled for it; equal to every other of its task."""

    task: Callable[..., Iterator[TaskResult]]
    root: str = field(compare=False)
    prefix: str = field(compare=False)

    def __call__(self, *arguments: Any) -> Iterator[TaskResult]:
        """Do the task."""
        with reported(self.root, self.prefix):
            yield from self.task(*arguments)


@contextmanager
def reported(root: str, prefix: str) -> Iterator[None]:
    """While a kernel is compiled in this process there is a file whose name has this prefix."""
    if (root, prefix) in _reported:  # a task beside the driver, which hears of all kernels
        yield
        return
    path = Path(root) / unique(prefix, KIND)
    _reported.add((root, prefix))
    try:
        with event.install_listener("numba:compile", _file(path)):
            yield
    finally:
        _reported.discard((root, prefix))


@contextmanager
def noted(progress: Progress) -> Iterator[None]:
    """While a kernel is compiled in this process, before there is a profile to say so in: the
    stage is that rows are read."""

    def begins() -> None:
        progress("read", compiling=True)

    with event.install_listener("numba:compile", _Compiling(begins, lambda: progress("read"))):
        yield


class _Compiling(event.Listener):
    """Sees when a kernel begins and ends to be compiled, but not when it comes from the cache."""

    def __init__(self, begins: Callable[[], None], ends: Callable[[], None]) -> None:
        self._begins, self._ends = begins, ends
        self._depth = 0  # kernels compile the kernels that they call

    def on_start(self, event: Any) -> None:  # noqa: ARG002  # the listener's signature
        self._depth += 1
        if self._depth == 1:
            self._begins()

    def on_end(self, event: Any) -> None:  # noqa: ARG002  # the listener's signature
        self._depth -= 1
        if self._depth == 0:
            self._ends()


def _file(path: Path) -> _Compiling:
    """Keeps a file for as long as it takes. A report must not fail what it reports on."""

    def begins() -> None:
        with suppress(OSError):
            path.touch()

    def ends() -> None:
        with suppress(OSError):
            path.unlink(missing_ok=True)

    return _Compiling(begins, ends)
