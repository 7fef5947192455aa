"""What tasks read and send back, counted, with as many tasks as one likes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pyarrow as pa

from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess, Reader, Runner
from holdfast.tasks.ingest import Ingest


class Counting(InProcess):
    """Counts the bytes that tasks read and return, by kind of task."""

    def __init__(self, tasks: int) -> None:
        super().__init__(tasks)
        self.bytes_read: Counter[str] = Counter()
        self.bytes_returned: Counter[str] = Counter()
        self.calls: Counter[str] = Counter()

    def sharing(self, _prefix: str) -> Runner:
        return self

    def read(self, task: Reader, rows: pa.Table, spec: Ingest) -> list[TaskResult]:
        """In as many partitions whatever the number of tasks, as a source has them."""
        return InProcess(4).read(task, rows, spec)

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        results = super().run(calls)
        for (task, _), mine in zip(calls, results, strict=True):
            name = getattr(task, "task", task).__name__
            self.calls[name] += 1
            self.bytes_read[name] += sum(each.read for each in mine)
            self.bytes_returned[name] += sum(each.size for each in mine)
        return results
