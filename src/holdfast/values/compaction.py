"""Merging runs of values in tiers, so that a look-up reads few of them."""

from __future__ import annotations

from holdfast.model import thresholds
from holdfast.model.commits import ValueRun
from holdfast.model.progress import Progress
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Call, Runner, run_all
from holdfast.tasks import values as tasks
from holdfast.values.counting import ranges, run_of


def due(runs: tuple[ValueRun, ...]) -> list[tuple[ValueRun, ...]]:
    """The groups of runs to merge."""
    fan = thresholds.current.merged_runs
    tiers: dict[int, list[ValueRun]] = {}
    for run in runs:
        tier, entries = 0, run.entries
        while entries > thresholds.current.small_run:
            entries //= fan
            tier += 1
        tiers.setdefault(tier, []).append(run)
    return [
        tuple(members[start : start + fan])
        for members in tiers.values()
        for start in range(0, len(members) - fan + 1, fan)
    ]


def merged_runs(
    runner: Runner,
    runs: tuple[ValueRun, ...],
    destination: Destination,
    frequencies: bool,
    progress: Progress,
) -> tuple[ValueRun, ...]:
    """The runs, with those merged whose tier is full."""
    limits, groups = thresholds.current, due(runs)
    if not groups:
        return runs
    progress("merge", runs=sum(map(len, groups)))
    calls: list[list[Call]] = []
    for group in groups:
        entries = sum(run.entries for run in group)
        parts = 1
        if entries > limits.small_run * limits.merged_runs:
            parts = max(runner.tasks, -(-entries // limits.task_entries))
        root, prefix = destination.root, destination.prefix
        items = [
            tasks.MergeRuns(root, low, high, group, prefix, frequencies)
            for low, high in ranges(parts)
        ]
        calls.append([(tasks.merge, item) for item in items])
    task_results = iter(run_all(runner, [call for of_group in calls for call in of_group]))
    merged = [run_of([next(task_results) for _ in of_group]) for of_group in calls]
    gone = {id(run) for group in groups for run in group}
    others = [run for run in runs if id(run) not in gone]
    return tuple(run for run in [*others, *merged] if run.entries)
