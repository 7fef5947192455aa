"""One job, run as ours: an interrupt cancels it and no other, a failure is one sentence.

The job runs in a thread of its own. An interrupt then meets the caller's thread while it waits,
and not in the middle of a call to the JVM, whose answer its next call would take for its own.
"""

from __future__ import annotations

import re
import signal
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from urllib.parse import unquote

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.util import inheritable_thread_target

from holdfast.errors import HoldfastError, SetupError, SourceError, StoreError

_POLL = 0.1


def collect(session: SparkSession, frame: DataFrame) -> list[Row]:
    """The rows of a frame that has few."""
    tag = f"holdfast-{uuid.uuid4().hex}"

    def work() -> list[Row]:
        session.addTag(tag)  # of this thread, so it ends with it
        return frame.collect()

    with ThreadPoolExecutor(1) as pool, _plain_interrupts():
        running: Future[list[Row]] = pool.submit(inheritable_thread_target(session)(work))
        try:
            return running.result()
        except KeyboardInterrupt:
            # Again until it is gone: it may not have started when it was cancelled first.
            while not running.done():
                session.interruptTag(tag)
                wait([running], _POLL)
            raise
        except Exception as failure:
            raise _explained(str(failure)) from failure


@contextmanager
def _plain_interrupts() -> Iterator[None]:
    """PySpark's own handler of Ctrl-C cancels all jobs, the caller's too: not while we wait."""
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


def _explained(text: str) -> HoldfastError:
    """A failed job as one sentence; the stack stays in the chain and in Spark's log."""
    no_space = re.search(r"No space left on device|Disk quota exceeded", text)
    if no_space:
        return StoreError(f"a task could not write: {no_space[0]}; nothing was committed")
    lines = [re.sub(r"^(Caused by)?: ", "", line.strip()) for line in text.splitlines()]
    told = [line for line in lines if re.match(r"^[\w.$]*(Error|Exception)\b.*: ", line)]
    cause = (told or [line for line in lines if line] or ["no reason given"])[-1]
    unreadable = re.search(r"\[FAILED_READ_FILE.*?\] .* file:?/*(/.*?)\.?\s+SQLSTATE", text)
    if unreadable:
        return SourceError(f"{unquote(unreadable[1])}: Spark cannot read it ({cause})")
    return SetupError(f"a Spark job failed: {cause}")
