"""Jobs that bring rows with equal codes together: one job writes them in order of their codes, and
the next reads them by ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path

from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, Runner
from holdfast.runtime.sealed import discard


@contextmanager
def exchanged(runner: Runner, root: str, calls: Sequence[Call]) -> Iterator[list[list[str]]]:
    """Run calls that write files, and give the files of each call; they are removed at the end."""
    written = [
        [file for task_result in result for file in _files(task_result)]
        for result in runner.run(calls)
    ]
    try:
        yield written
    finally:
        for file in chain.from_iterable(written):
            discard(Path(root) / file)


def _files(task_result: TaskResult) -> list[str]:
    """The files that a task wrote."""
    facts = task_result.facts
    if "files" in facts:
        return list(facts["files"])
    return [facts["part"]] if facts["part"] else []
