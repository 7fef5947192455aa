"""Jobs over rows that have to meet: one job writes them by their codes, the next reads ranges."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any

from holdfast.runtime.runner import Call, Runner
from holdfast.runtime.sealed import discard


@contextmanager
def exchanged(runner: Runner, root: str, calls: Sequence[Call]) -> Iterator[list[list[str]]]:
    """The files that each call wrote, in its order; they are removed afterwards."""
    written = [
        [file for task_result in result for file in _files(task_result.facts)]
        for result in runner.run(calls)
    ]
    try:
        yield written
    finally:
        for file in chain.from_iterable(written):
            discard(Path(root) / file)


def _files(facts: dict[str, Any]) -> list[str]:
    """What a task says that it wrote: some files, or a part of a run of values, if it has any."""
    if "files" in facts:
        return list(facts["files"])
    return [facts["part"]] if facts["part"] else []
