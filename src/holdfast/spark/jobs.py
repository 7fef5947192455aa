"""One job, run as ours: an interrupt cancels it and no other, a failure is one sentence.

The job runs in a thread of its own. An interrupt then meets the caller's thread while it waits,
and not in the middle of a call to the JVM, whose answer its next call would take for its own.
"""

from __future__ import annotations

import re
import signal
import threading
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from typing import Any, TypeVar
from urllib.parse import unquote

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.util import inheritable_thread_target

from holdfast.model.errors import HoldfastError, SetupError, SourceError, StoreError

T = TypeVar("T")

_POLL = 0.1


def collect(session: SparkSession, frame: Callable[[], DataFrame]) -> list[Row]:
    """The rows of a frame that has few; it is built where it runs, as building calls the JVM."""
    try:
        return run(session, lambda: frame().collect())
    except Exception as failure:
        raise _explained(failure) from failure


def run(session: SparkSession, work: Callable[[], T]) -> T:
    """Do something that may start jobs."""
    tag = f"holdfast-{uuid.uuid4().hex}"
    add, cancel = _tagging(session)

    def tagged() -> T:
        add(tag)  # to this thread, so it ends with it
        return work()

    with ThreadPoolExecutor(1) as pool, plain_interrupts():
        running: Future[T] = pool.submit(inheritable_thread_target(session)(tagged))
        try:
            return running.result()
        except KeyboardInterrupt:
            # Again until it is gone: it may not have started when it was cancelled first.
            while not running.done():
                cancel(tag)
                wait([running], _POLL)
            raise


def is_remote(session: SparkSession) -> bool:
    """Whether this is a Spark Connect session, which has no context."""
    return type(session).__module__.startswith("pyspark.sql.connect.")


def _tagging(session: SparkSession) -> tuple[Callable[[str], None], Callable[[str], Any]]:
    """How the jobs of a thread are tagged, and cancelled from another thread.

    A classic session cancels only by tags of the thread that asks; its context cancels by any.
    """
    if is_remote(session):
        return session.addTag, session.interruptTag
    return session.sparkContext.addJobTag, session.sparkContext.cancelJobsWithTag


def cause(failure: Exception) -> str:
    """What went wrong, without the stack: that stays in the chain and in Spark's log."""
    lines = [re.sub(r"^(Caused by)?: ", "", line.strip()) for line in str(failure).splitlines()]
    errors = [line for line in lines if re.match(r"^[\w.$]*(Error|Exception)\b.*: ", line)]
    return errors[-1] if errors else next(filter(None, lines), type(failure).__name__)


@contextmanager
def plain_interrupts() -> Iterator[None]:
    """PySpark's own handler of Ctrl-C cancels all jobs, the caller's too: not while we work."""
    before = signal.getsignal(signal.SIGINT)
    in_main = threading.current_thread() is threading.main_thread()
    if not in_main or not getattr(before, "__module__", "").startswith("pyspark."):
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _explained(failure: Exception) -> HoldfastError:
    """A failed job as one sentence."""
    text = str(failure)
    no_space = re.search(r"No space left on device|Disk quota exceeded", text)
    if no_space:
        return StoreError(f"a task could not write: {no_space[0]}; nothing was committed")
    unreadable = re.search(r"\[FAILED_READ_FILE.*?\] .* file:?/*(/.*?)\.?\s+SQLSTATE", text)
    if unreadable:
        return SourceError(f"{unquote(unreadable[1])}: Spark cannot read it ({cause(failure)})")
    if "Python worker exited unexpectedly" in text:
        return SetupError(
            "a worker process ended while it ran a task, most likely for lack of memory; "
            "nothing was committed. Run fewer tasks at once (--master 'local[1]' here, "
            "fewer cores per executor on a cluster), or give the machine more memory"
        )
    return SetupError(f"a Spark job failed: {cause(failure)}")
