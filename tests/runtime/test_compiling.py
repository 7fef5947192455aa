"""Whoever waits for the compiler is told so, once per machine."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from queue import Queue
from typing import Any

import numba
import pyarrow as pa
import pytest

from holdfast import flow
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime import run
from holdfast.runtime.compiling import Reporting, noted, reported
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess, Reader
from holdfast.store import Store
from holdfast.tasks.ingest import Ingest
from tests.flow.tables import BIGINT, row_input

pytestmark = pytest.mark.skipif(
    os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="nothing is compiled"
)

PATIENCE = 600
"""Seconds after which a test that waits has failed, however busy the machine is."""


def fresh(seen: list[list[str]], folder: Path) -> Any:
    """A kernel that no cache has; while it is compiled it lists the folder."""

    def kernel(x: int) -> int:
        return x + 1

    compiled: Any = numba.njit(kernel)
    compile_ = compiled._compiler.compile

    def listing(*told: Any) -> Any:
        seen.append(sorted(path.name for path in folder.iterdir()))
        return compile_(*told)

    compiled._compiler.compile = listing
    return compiled


def test_a_file_stands_while_a_kernel_is_compiled(tmp_path: Path) -> None:
    seen: list[list[str]] = []
    kernel = fresh(seen, tmp_path)

    def task(told: int) -> Iterator[TaskResult]:
        yield TaskResult({"result": kernel(told)}, {})

    reporting = Reporting(task, str(tmp_path), "*-run-")
    (task_result,) = reporting(41)
    assert task_result.facts == {"result": 42}
    ((name,),) = seen
    assert name.startswith("compiling-run-")
    assert not list(tmp_path.iterdir())
    list(reporting(1))  # compiled by now
    assert len(seen) == 1


def test_a_place_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    kernel = fresh([], tmp_path)
    with reported(str(tmp_path / "missing"), "*-run-"):
        assert kernel(1) == 2


def test_tasks_are_told_apart_by_what_they_do() -> None:
    """Workers remember which tasks they have done, whatever the run was."""
    one, two = Reporting(row_input, "a", "b"), Reporting(row_input, "c", "d")  # type: ignore[arg-type]
    assert one == two
    assert hash(one) == hash(two)


def test_progress_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The stage is told again with it when a file of the run appears, and without when it goes."""
    monkeypatch.setattr(run, "_WATCH_SECONDS", 0.001)
    store = Store.create(tmp_path / "p")
    told: Queue[tuple[str, dict[str, Any]]] = Queue()

    def progress(stage: str, **facts: Any) -> None:
        told.put((stage, facts))

    with (
        store.writing() as lease,
        run.watched(InProcess(1), store, lease, progress) as (_, report),
    ):
        report("search", round=1)
        assert told.get(timeout=PATIENCE) == ("search", {"round": 1})
        file = tmp_path / "p" / f"{lease.prefix('compiling')}1.arrow"  # as a task's elsewhere
        file.touch()
        assert told.get(timeout=PATIENCE) == ("search", {"round": 1, "compiling": True})
        report("learn")
        assert told.get(timeout=PATIENCE) == ("learn", {"compiling": True})
        file.unlink()
        assert told.get(timeout=PATIENCE) == ("learn", {})
    assert told.empty()


def test_every_task_of_a_run_reports(tmp_path: Path) -> None:
    """In a profile, in a batch and in a verification."""
    store = Store.create(tmp_path / "p")
    runner = Seen(1)
    row_inputs = {"t": row_input([BIGINT], [(1,), (2,), (2,)])}
    flow.profile(runner, store, row_inputs, Options(("keys",)), no_progress)
    flow.apply(runner, store, "t", flow.Batch(row_input([BIGINT], [(3,)])), no_progress)
    flow.verify(runner, store, no_progress)
    assert runner.tasks_seen
    assert all(isinstance(task, Reporting) for task in runner.tasks_seen)


class Seen(InProcess):
    """Remembers the tasks that it ran."""

    def __init__(self, tasks: int) -> None:
        super().__init__(tasks)
        self.tasks_seen: list[Any] = []

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        self.tasks_seen += [task for task, _ in calls]
        return super().run(calls)

    def read(self, task: Reader, rows: pa.Table, spec: Ingest) -> list[TaskResult]:
        self.tasks_seen.append(task)
        return super().read(task, rows, spec)


def test_it_is_said_before_there_is_a_profile(tmp_path: Path) -> None:
    said: list[tuple[str, dict[str, object]]] = []
    kernel = fresh([], tmp_path)
    with noted(lambda stage, **facts: said.append((stage, facts))):
        assert said == []
        assert kernel(1) == 2
        assert kernel(2) == 3
    assert said == [("read", {"compiling": True}), ("read", {})]
