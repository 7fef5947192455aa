"""What a task sends back: facts that JSON can hold, and NumPy arrays, in one Arrow row."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.model import errors
from holdfast.model.errors import HoldfastError
from holdfast.runtime.reads import taken
from holdfast.runtime.sealed import flushed

SCHEMA = pa.schema([("facts", pa.string()), ("arrays", pa.binary())])
"""The columns of every task's result."""


@dataclass(frozen=True)
class TaskResult:
    """One result of a task."""

    facts: dict[str, Any]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)
    read: int = 0  # bytes of mapped files that the task read for it
    size: int = 0  # bytes in which it came to the driver

    def batch(self) -> pa.RecordBatch:
        """The task result as one Arrow row."""
        described = []
        chunks = []
        for name, array in self.arrays.items():
            described.append([name, array.dtype.str, list(array.shape)])
            chunks.append(np.ascontiguousarray(array).tobytes())
        facts = json.dumps({"facts": self.facts, "arrays": described, "read": self.read})
        return pa.record_batch([[facts], [b"".join(chunks)]], schema=SCHEMA)


def facts_of(error: HoldfastError) -> dict[str, str]:
    """An error as facts."""
    return {"kind": type(error).__name__, "message": str(error)}


def error_of(facts: dict[str, str]) -> HoldfastError:
    """The error that :func:`facts_of` describes."""
    kind: type[HoldfastError] = getattr(errors, facts["kind"])
    return kind(facts["message"])


def guarded(task_results: Iterator[TaskResult]) -> Iterator[TaskResult]:
    """What a task sends back, once the files that it wrote are flushed; an error of ours as the
    last result, because Spark would run the task again and then bury the message in its own."""
    taken()
    try:
        for task_result in task_results:
            flushed()
            yield replace(task_result, read=taken())
    except HoldfastError as error:
        yield TaskResult({"failed": facts_of(error)})


def checked(task_results: Iterable[TaskResult]) -> list[TaskResult]:
    """What tasks sent back, on the driver; their error, if one failed."""
    collected = list(task_results)
    for task_result in collected:
        if "failed" in task_result.facts:
            raise error_of(task_result.facts["failed"])
    return collected


def unpack(facts: str, arrays: bytes) -> TaskResult:
    """The task result that :meth:`TaskResult.batch` turned into a row."""
    described = json.loads(facts)
    out: dict[str, NDArray[Any]] = {}
    offset = 0
    for name, dtype, shape in described["arrays"]:
        count = int(np.prod(shape, dtype=np.int64))
        out[name] = np.frombuffer(arrays, dtype, count, offset).reshape(shape)
        offset += count * np.dtype(dtype).itemsize
    return TaskResult(described["facts"], out, described["read"], len(facts) + len(arrays))
