"""Kept values beside those of the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from holdfast.model.commits import ValueRun
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Call, Runner
from holdfast.tasks import values as tasks
from holdfast.tasks.values import cut
from holdfast.values.clusters import ValueState


def differences(
    runner: Runner, kept: ValueState, fresh: ValueState, destination: Destination
) -> Iterator[tuple[str, str]]:
    """Where the kept values are not those of the rows: the table, and a sentence about it."""
    some = False
    for low, high in kept.overlaps.stretches():
        mine, theirs = (state.overlaps.rows(low, high) for state in (kept, fresh))
        for one, two in np.argwhere(np.triu(mine != theirs, low)).tolist():
            some = True
            a, b = kept.attributes[low + one], kept.attributes[two]
            what = f"{a} has" if low + one == two else f"{a} and {b} share"
            yield (
                a.table,
                f"the profile says that {what} {mine[one, two]} distinct values, but it is "
                f"{theirs[one, two]}",
            )
    if some:
        return
    table = kept.attributes[0].table
    statuses = [{each: v.status for each, v in state.tuples.items()} for state in (kept, fresh)]
    if statuses[0] != statuses[1]:
        yield table, "the profile's inclusions of several columns are not those of the rows"
    same = kept.clusters.all(), fresh.clusters.all()
    if not all(np.array_equal(a, b) for a, b in zip(*same, strict=True)):
        yield table, "the profile's clusters of attributes are not those of the rows"
    parts = max(len(run.parts) for run in (*kept.runs, *fresh.runs, ValueRun((None,), 0)))
    calls: list[Call] = [
        (
            tasks.compare,
            tasks.Compare(
                destination.root, cut(k, parts), cut(k + 1, parts), kept.runs, fresh.runs
            ),
        )
        for k in range(parts)
    ]
    for result in runner.run(calls):
        for task_result in result:
            for number, count in task_result.facts["wrong"].items():
                each = kept.attributes[int(number)]
                yield each.table, f"the profile counts {count} values of {each} wrongly"
