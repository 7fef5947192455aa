"""Work in several threads of this process: kernels and Arrow give up the interpreter's lock.

An interrupt, or an error, ends the others at the next place where they look whether they may go on
(:func:`look`). Nothing is left at work when the caller goes on.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")

_stop: ContextVar[threading.Event | None] = ContextVar("stop", default=None)


class Stopped(Exception):
    """Ends work whose result nobody waits for any more."""


def look() -> None:
    """In work, wherever a part of it is done: go on only if somebody waits for it."""
    stop = _stop.get()
    if stop is not None and stop.is_set():
        raise Stopped


def done(works: Sequence[Callable[[], T]], threads: int) -> list[T]:
    """Do all works, so many at a time; what each returns, or the error of the first that fails."""
    if threads < 2 or len(works) < 2:
        return [work() for work in works]
    stop = threading.Event()

    def within(work: Callable[[], T]) -> T:
        _stop.set(stop)
        look()
        try:
            return work()
        except BaseException:
            stop.set()
            raise

    with ThreadPoolExecutor(min(threads, len(works)), "task") as pool:
        try:
            futures: list[Future[T]] = [pool.submit(within, work) for work in works]
            wait(futures)
        except BaseException:  # an interrupt
            stop.set()
            raise
    failed = [error for error in (future.exception() for future in futures) if error]
    for error in failed:
        if not isinstance(error, Stopped):
            raise error
    return [future.result() for future in futures]
