"""Tasks in threads of one process: the outcome is that of one by one, and none is left at work."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pyarrow as pa
import pytest

from holdfast.model.errors import SourceError
from holdfast.runtime import threads, timed
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import InProcess, Parts
from tests.limits import varied

PATIENCE = 600
"""Seconds after which a test that waits has failed."""


def test_results_are_in_order() -> None:
    both = threading.Barrier(2)

    def work(number: int) -> int:
        if number < 2:
            both.wait(PATIENCE)  # they are at work at the same time
        return number

    assert threads.done([partial(work, k) for k in range(5)], 2) == [*range(5)]
    assert threads.done([], 2) == []
    assert threads.done([lambda: 7], 2) == [7]


@pytest.mark.parametrize("look", [threads.look, timed.look])
def test_an_error_ends_the_others(look: Any) -> None:
    ended: list[int] = []
    begun = threading.Event()

    def fails() -> None:
        begun.wait(PATIENCE)
        raise SourceError("this one")

    def goes_on() -> None:
        try:
            while True:
                begun.set()
                look()
        finally:
            ended.append(1)

    def never() -> None:
        ended.append(2)

    with pytest.raises(SourceError, match="this one"):
        threads.done([goes_on, fails, *[never] * 5], 2)
    assert ended == [1]


def test_an_interrupt_ends_all() -> None:
    ended: list[int] = []
    begun = threading.Barrier(2)

    def goes_on(number: int) -> None:
        if begun.wait(PATIENCE) == 0:
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)
        try:
            while True:
                threads.look()
        finally:
            ended.append(number)

    with pytest.raises(KeyboardInterrupt):
        threads.done([partial(goes_on, k) for k in range(4)], 2)
    assert len(ended) == 2
    threads.look()  # whoever is not in a thread of those goes on


def test_parts_are_read_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """And heavy calls are run at once; light ones in the caller's thread."""
    both = threading.Barrier(2)
    schema = pa.schema([("x", pa.int64())])

    def fetch(part: int) -> Iterator[pa.RecordBatch]:
        both.wait(PATIENCE)
        yield pa.record_batch([pa.array([part, part + 1])], schema=schema)

    def task(batches: Iterator[pa.RecordBatch], _: Any) -> Iterator[TaskResult]:
        yield TaskResult({"x": [x for batch in batches for x in batch.column(0).to_pylist()]})

    rows, runner, spec = Parts(schema, (1, 5), fetch), InProcess(2, 2), object()
    results = runner.read(task, rows, spec)  # type: ignore[arg-type]
    assert [result.facts["x"] for result in results] == [[1, 2], [5, 6]]

    where: list[str] = []

    def call(item: Any) -> Iterator[TaskResult]:
        where.append(threading.current_thread().name)
        if item.work:
            both.wait(PATIENCE)
        yield TaskResult({"work": item.work})

    class Item:
        def __init__(self, work: int) -> None:
            self.work = work

    runner.run([(call, Item(0)), (call, Item(0))])
    assert {*where} == {threading.current_thread().name}
    varied(monkeypatch, light_rows=1)
    results = [each for part in runner.run([(call, Item(2)), (call, Item(3))]) for each in part]
    assert [result.facts["work"] for result in results] == [2, 3]
    assert threading.current_thread().name not in where[2:]


def test_the_first_rows_are_those_of_the_first_parts() -> None:
    fetched: list[int] = []
    schema = pa.schema([("x", pa.int64())])

    def fetch(part: int) -> Iterator[pa.RecordBatch]:
        fetched.append(part)
        yield pa.record_batch([pa.array([part, part + 1])], schema=schema)

    def task(batches: Iterator[pa.RecordBatch], _: Any) -> Iterator[TaskResult]:
        yield TaskResult({"x": [x for batch in batches for x in batch.column(0).to_pylist()]})

    rows, spec = Parts(schema, (1, 5, 9), fetch), object()
    (result,) = InProcess().head(task, rows, spec, 3)  # type: ignore[arg-type]
    assert (result.facts["x"], fetched) == ([1, 2, 5], [1, 5])
