"""Progress on standard error: nothing for the first two seconds, then one changing line.

Without a terminal (a log file, a scheduler), a line is printed every five seconds.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, TextIO

from holdfast.screen.text import count

_STAGES = {
    "session": "starting Spark",
    "read": "reading",
    "sample": "sampling pairs of rows",
    "search": "searching for counterexamples",
    "learn": "searching for counterexamples",
    "locate": "finding the rows to change",
    "alter": "writing the rows with other columns",
    "probe": "looking the batch up",
    "index": "sorting columns",
    "merge": "merging segments",
    "commit": "committing",
    "code": "ranking values",
    "count": "counting pairs of rows",
    "cover": "finding dependencies",
    "values": "counting values",
    "expectations": "counting violations of rules",
    "near": "counting rules that nearly hold",
    "suspects": "finding the cells that break rules",
    "tuples": "comparing tuples",
    "verify": "profiling again",
    "report": "writing the report",
}

_NOUNS = {
    "rows": "row",
    "candidates": "candidate",
    "columns": "column",
    "segments": "segment",
    "runs": "run",
    "cells": "cell",
    "arity": "column",
    "rules": "rule",
}
_OTHERS = {"round": "round {:,}", "refuted": "{:,} refuted"}


def describe(stage: str, facts: Mapping[str, object]) -> str:
    """A stage in words.

    >>> describe("search", {"table": "orders", "round": 2, "candidates": 1200, "refuted": 3})
    'orders: searching for counterexamples, round 2, 1,200 candidates, 3 refuted'
    >>> describe("read", {"table": "orders", "compiling": True})
    'orders: compiling, once: reading'
    >>> describe("locate", {"rows": 1})
    'finding the rows to change, 1 row'
    """
    words = [_STAGES.get(stage, stage)]
    for name, value in facts.items():
        if name in ("table", "compiling") or value is None:
            continue
        if isinstance(value, int) and name in _NOUNS:
            words.append(count(value, _NOUNS[name]))
        else:
            words.append(_OTHERS.get(name, f"{name} {{}}").format(value))
    table = facts.get("table")
    start = (f"{table}: " if table else "") + ("compiling, once: " if "compiling" in facts else "")
    return start + ", ".join(words)


AFTER_S = 2.0
"""Seconds before anything is shown."""


class Progress:
    """Shows the latest stage while its block runs; called as ``progress(stage, **facts)``."""

    def __init__(self, stream: TextIO, *, after: float | None = None, every: float = 5.0) -> None:
        self._stream = stream
        self._after = AFTER_S if after is None else after
        self._every = every
        self._latest: tuple[str, Mapping[str, object]] = ("starting", {})
        self._done = threading.Event()
        self._started = 0.0
        self._thread = threading.Thread(target=self._watch, name="progress", daemon=True)

    def __call__(self, stage: str, **facts: Any) -> None:
        """Record the current stage."""
        self._latest = (stage, facts)

    def __enter__(self) -> Progress:
        self._started = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._done.set()
        self._thread.join()

    def _watch(self) -> None:
        # A thread of its own, because the caller may wait a minute for a Spark job.
        if self._done.wait(self._after):
            return
        if self._stream.isatty():
            self._change_one_line()
        else:
            self._add_lines()

    def _line(self) -> str:
        return f"{describe(*self._latest)} ({time.monotonic() - self._started:.0f} s)"

    def _change_one_line(self) -> None:
        from rich.console import Console
        from rich.text import Text

        console = Console(file=self._stream)
        with console.status(Text(self._line(), no_wrap=True, overflow="ellipsis")) as status:
            while not self._done.wait(0.2):
                status.update(Text(self._line(), no_wrap=True, overflow="ellipsis"))

    def _add_lines(self) -> None:
        while True:
            self._stream.write(self._line() + "\n")
            self._stream.flush()
            if self._done.wait(self._every):
                return
