"""Runs of values are merged in tiers, so that a look-up reads few of them."""

from __future__ import annotations

from holdfast.model import thresholds
from holdfast.model.commits import ValueRun
from holdfast.model.progress import Progress
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Call, Runner
from holdfast.tasks import values as tasks
from holdfast.tasks.values import cut
from holdfast.values.counting import run_of


def due(runs: tuple[ValueRun, ...]) -> list[tuple[ValueRun, ...]]:
    """The runs to merge, group by group."""
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
    """Runs, merged where a tier is full."""
    limits, groups = thresholds.current, due(runs)
    if not groups:
        return runs
    progress("merge", runs=sum(map(len, groups)))
    calls: list[Call] = []
    owners: list[int] = []
    for number, group in enumerate(groups):
        entries = sum(run.entries for run in group)
        parts = 1
        if entries > limits.small_run * limits.merged_runs:
            parts = max(runner.tasks, -(-entries // limits.task_entries))
        for k in range(parts):
            item = tasks.MergeRuns(
                destination.root, destination.prefix, cut(k, parts), cut(k + 1, parts), group,
                frequencies,
            )  # fmt: skip
            calls.append((tasks.merge, item))
            owners.append(number)
    results = runner.run(calls)
    new_runs = []
    for number in range(len(groups)):
        mine = [r for owner, r in zip(owners, results, strict=True) if owner == number]
        new_runs.append(run_of([task_result for result in mine for task_result in result]))
    gone = {id(run) for group in groups for run in group}
    kept = [run for run in runs if id(run) not in gone]
    return tuple(run for run in [*kept, *new_runs] if run.entries)
