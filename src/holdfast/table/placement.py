"""Dividing the segments of a table among tasks."""

from __future__ import annotations

from dataclasses import replace

from holdfast.model import thresholds
from holdfast.runtime.runner import Runner
from holdfast.tasks.segments import Segment, most_rows
from holdfast.tasks.view import View


def shares(view: View, tasks: int) -> list[View]:
    """The segments of a view divided among tasks, with about as many rows each."""
    piles: list[list[Segment]] = [[] for _ in range(max(1, min(tasks, len(view.segments))))]
    for segment in sorted(view.segments, key=lambda s: -s.rows):
        min(piles, key=lambda pile: sum(s.rows for s in pile)).append(segment)
    return [replace(view, segments=tuple(pile)) for pile in piles if pile]


def ranges(runner: Runner, rows: int) -> int:
    """The number of ranges of codes into which rows to be looked up are divided: each is worth a
    task, and fits into one."""
    limits = thresholds.current
    worth = min(runner.tasks, -(-rows // limits.located_rows))
    return max(1, worth, -(-rows // limits.segment_rows))


def parts(runner: Runner, view: View) -> int:
    """The number of parts into which the rows of a view are divided: each fits into a task, and
    every task has one."""
    rows, limits = view.live, thresholds.current
    least = runner.tasks if rows > limits.undivided_rows else 1
    return max(least, -(-rows // most_rows(view.words)))
