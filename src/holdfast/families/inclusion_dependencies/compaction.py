"""Runs of values are merged in tiers, so that a look-up reads few of them."""

from __future__ import annotations

from dataclasses import replace

from holdfast.families.inclusion_dependencies.changes import run_of
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.model.commits import ValueRun
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.store.run import Destination
from holdfast.tasks import values as tasks
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.values import HELD, cut

_FAN = 8
"""Runs of one tier that are merged into one of the next."""

_SMALLEST = 1 << 15
"""Entries below which all runs are of the lowest tier."""


def due(runs: tuple[ValueRun, ...]) -> list[tuple[ValueRun, ...]]:
    """The runs to merge, group by group."""
    tiers: dict[int, list[ValueRun]] = {}
    for run in runs:
        tier, entries = 0, run.entries
        while entries > _SMALLEST:
            entries //= _FAN
            tier += 1
        tiers.setdefault(tier, []).append(run)
    return [
        tuple(members[start : start + _FAN])
        for members in tiers.values()
        for start in range(0, len(members) - _FAN + 1, _FAN)
    ]


def merged(
    runner: Runner, state: Inclusion, destination: Destination, options: Options, progress: Progress
) -> Inclusion:
    """Merge runs where a tier is full."""
    groups = due(state.runs)
    if not groups:
        return state
    progress("merge", runs=sum(map(len, groups)))
    calls: list[Call] = []
    owners: list[int] = []
    for number, group in enumerate(groups):
        entries = sum(run.entries for run in group)
        parts = 1 if entries <= _SMALLEST * _FAN else max(runner.tasks, -(-entries // HELD))
        for k in range(parts):
            item = tasks.Merge(
                destination.root, destination.prefix, cut(k, parts), cut(k + 1, parts), group,
                not options.insert_only,
            )  # fmt: skip
            calls.append((tasks.merge, item))
            owners.append(number)
    results = runner.run(calls)
    made = []
    for number in range(len(groups)):
        mine = [r for owner, r in zip(owners, results, strict=True) if owner == number]
        made.append(run_of([task_result for result in mine for task_result in result]))
    gone = {id(run) for group in groups for run in group}
    kept = [run for run in state.runs if id(run) not in gone]
    return replace(state, runs=tuple(run for run in [*kept, *made] if run.entries))
