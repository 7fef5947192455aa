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
    with exchanged_results(runner, root, calls) as results:
        yield [[file for result in of_call for file in files_of(result)] for of_call in results]


@contextmanager
def exchanged_by_place(
    runner: Runner, root: str, calls: Sequence[Call], places: int
) -> Iterator[list[tuple[str, ...]]]:
    """The files of all calls by the place that is said with each."""
    with exchanged_results(runner, root, calls) as results:
        files: list[list[str]] = [[] for _ in range(places)]
        for result in chain.from_iterable(results):
            files[result.facts["place"]] += files_of(result)
        yield [*map(tuple, files)]


@contextmanager
def exchanged_results(
    runner: Runner, root: str, calls: Sequence[Call]
) -> Iterator[list[list[TaskResult]]]:
    """The same, with all that the calls say."""
    results = runner.run(calls)
    try:
        yield results
    finally:
        for file in chain.from_iterable(map(files_of, chain.from_iterable(results))):
            discard(Path(root) / file)


def files_of(task_result: TaskResult) -> list[str]:
    """The files that a task wrote."""
    facts = task_result.facts
    if "files" in facts:
        return list(facts["files"])
    return [facts["part"]] if facts["part"] else []
