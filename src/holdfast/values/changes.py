"""Rows that came and went move values between clusters, and touch only the values they contain."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from holdfast.model import thresholds
from holdfast.model.commits import ValueRun
from holdfast.model.errors import StoreError
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Call, Runner
from holdfast.table.change import Rows
from holdfast.table.placement import shares
from holdfast.tasks import values as tasks
from holdfast.tasks.values import Cells, cut
from holdfast.values import n_ary
from holdfast.values.clusters import ValueState
from holdfast.values.n_ary import Candidate, Verdicts
from holdfast.values.shared import Pairs, Wanted


def changed(
    runner: Runner,
    before: ValueState,
    changes: Iterable[Rows],
    destination: Destination,
    options: Options,
    progress: Progress,
) -> ValueState:
    """The state after rows came and went, in one job, or two where there are many."""
    changes = [change for change in changes if change.count]
    cells = [(change, cells_of(before, change, destination, options)) for change in changes]
    size = sum(change.count * len(each.attributes) for change, each in cells)
    progress("values", cells=size)
    if not size:
        return before
    runs: list[ValueRun] = []
    parts = 1
    if size > thresholds.current.task_cells:
        runs = _counted(runner, [each for _, each in cells], destination)
        entries = sum(run.entries for run in runs)
        parts = max(runner.tasks, -(-entries // thresholds.current.task_entries))
    direct = () if runs else tuple(each for _, each in cells)
    words = before.clusters.words
    calls: list[Call] = [
        (
            tasks.move,
            tasks.Move(
                destination.root, destination.prefix, cut(k, parts), cut(k + 1, parts),
                tuple(runs), direct, before.runs, words, not options.insert_only,
            ),
        )
        for k in range(parts)
    ]  # fmt: skip
    task_results = [task_result for result in runner.run(calls) for task_result in result]
    if any(task_result.facts["wrong"] for task_result in task_results):
        raise StoreError("a batch takes away values that the profile does not have")
    after = before.moved(
        np.concatenate([task_result.arrays["masks"] for task_result in task_results]),
        np.concatenate([task_result.arrays["counts"] for task_result in task_results]),
        {change.table.name for change in changes},
    )
    added = run_of(task_results)
    return replace(after, runs=(*before.runs, *([added] if added.entries else [])))


def cells_of(state: ValueState, change: Rows, destination: Destination, options: Options) -> Cells:
    table = change.table
    low, high = state.stretches[table.name]
    attributes = tuple(
        tasks.Attribute(number, (number - low,), (state.families[number],))
        for number in range(low, high)
    )
    return Cells(
        table.view(destination.root, options, change.segments),
        table.columns.schema,
        attributes,
        options.inclusion_nulls == "values",
        change.weight,
        change.ids,
        change.later,
    )


def _counted(runner: Runner, cells: list[Cells], destination: Destination) -> list[ValueRun]:
    """Runs of the values of many rows."""
    calls: list[Call] = []
    for each in cells:
        for share in shares(each.view, runner.tasks):
            item = tasks.Count(replace(each, view=share), destination.prefix)
            calls.append((tasks.count, item))
    # The large ones first, so that no task is left alone with one at the end.
    calls.sort(key=lambda call: -sum(s.rows for s in call[1].cells.view.segments))
    return [run_of([task_result]) for result in runner.run(calls) for task_result in result]


def run_of(task_results: list[TaskResult]) -> ValueRun:
    return ValueRun(
        tuple(task_result.facts["part"] for task_result in task_results),
        sum(task_result.facts["entries"] for task_result in task_results),
    )


def with_tuples(
    search: n_ary.Search,
    state: ValueState,
    before: ValueState | None,
    batches: n_ary.Batches,
    progress: Progress,
) -> ValueState:
    """The state with its dependencies of several columns, where they are looked for. After a batch
    only those that have one of its tables on a side can be others than before."""
    options = search.options
    if options.max_arity == 1:
        return state
    wanted = Wanted(1.0, options.empty_columns, options.within_tables)
    kept: Verdicts = {}
    known: Verdicts = {}
    if before is None:
        pairs = state.shared.pairs(wanted)
    else:
        of_batch = [state.shared.pairs_of(*state.stretches[table], wanted) for table in batches]
        pairs = Pairs.together(of_batch)
        for each, verdict in before.tuples.items():
            (known if {each.table, each.other} & set(batches) else kept)[each] = verdict
    unary = {
        Candidate(*_column(state, dependent), *_column(state, referenced))
        for dependent, referenced in zip(
            pairs.dependent.tolist(), pairs.referenced.tolist(), strict=True
        )
    }
    found = n_ary.all_verdicts(search, unary, known, batches, progress)
    return replace(state, tuples={**kept, **found})


def _column(state: ValueState, number: int) -> tuple[str, tuple[int, ...]]:
    """The table of an attribute, and its place there."""
    table = state.attributes[number].table
    return table, (number - state.stretches[table][0],)
