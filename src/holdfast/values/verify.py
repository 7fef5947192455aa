"""Comparing the stored values with those of the rows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.tasks import values as tasks
from holdfast.values.counting import ranges

if TYPE_CHECKING:
    from holdfast.values.state import ValueState


def differences(run: Run, stored: ValueState, fresh: ValueState) -> Iterator[tuple[str, str]]:
    """Where the stored values are not those of the rows: the table, and a sentence about it."""
    any_differ = False
    for low, high in stored.overlaps.stretches():
        old, new = (state.overlaps.rows(low, high) for state in (stored, fresh))
        for one, two in np.argwhere(np.triu(old != new, low)).tolist():
            any_differ = True
            a, b = stored.attributes[low + one], stored.attributes[two]
            what = f"{a} has" if low + one == two else f"{a} and {b} share"
            yield (
                a.table,
                f"the profile says that {what} {old[one, two]} distinct values, but it is "
                f"{new[one, two]}",
            )
    if any_differ:
        return
    table = stored.attributes[0].table
    old_statuses, new_statuses = (
        {candidate: verdict.status for candidate, verdict in state.verdicts.items()}
        for state in (stored, fresh)
    )
    if old_statuses != new_statuses:
        yield table, "the profile's inclusions of several columns are not those of the rows"
    clusters = zip(stored.clusters.all(), fresh.clusters.all(), strict=True)
    if not all(np.array_equal(a, b) for a, b in clusters):
        yield table, "the profile's clusters of attributes are not those of the rows"
    parts = max([1, *(len(run.parts) for run in (*stored.runs, *fresh.runs))])
    root = run.store.path
    calls: list[Call] = [
        (tasks.compare, tasks.CompareRuns(root, low, high, stored.runs, fresh.runs))
        for low, high in ranges(parts)
    ]
    for task_result in run_all(run.runner, calls):
        for number, count in task_result.facts["wrong"].items():
            attribute = stored.attributes[int(number)]
            yield attribute.table, f"the profile counts {count} values of {attribute} wrongly"
