"""Values of one column that do not occur in another: rows that show them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.kernels.arrays import I64
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.options import Options
from holdfast.runtime.run import Destination
from holdfast.runtime.runner import Call, Runner
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import values as tasks
from holdfast.tasks.values import RowValues, ValueColumns, cut
from holdfast.values.state import ValueState


def missing(
    runner: Runner,
    state: ValueState,
    table: Table,
    pair: tuple[Attribute, Attribute],
    most: int | None,
    destination: Destination,
    options: Options,
) -> I64:
    """Rows of the dependent's table, one for each value (the first so many) that is missing."""
    dependent, referenced = (state.attributes.index(each) for each in pair)
    parts = max([1, *(len(run.parts) for run in state.runs)])
    calls: list[Call] = [
        (
            tasks.missing,
            tasks.MissingValues(
                destination.root, cut(k, parts), cut(k + 1, parts), state.runs, dependent,
                referenced, most,
            ),
        )
        for k in range(parts)
    ]  # fmt: skip
    task_results = [task_result for result in runner.run(calls) for task_result in result]
    # In the order of their codes, because the parts are, and each in itself.
    codes = np.concatenate([task_result.arrays["codes"] for task_result in task_results])[:most]
    if not len(codes):
        return np.empty(0, np.int64)
    column = table.columns.names.index(pair[0].column)
    attribute = ValueColumns(dependent, (column,), (state.families[dependent],))
    view, nulls = table.view(destination.root, options), options.inclusion_nulls == "values"
    cells = RowValues(view, table.columns.schema, (attribute,), nulls)
    calls = [
        (tasks.find, tasks.FindValues(replace(cells, view=share), codes))
        for share in shares(cells.view, runner.tasks)
    ]
    ids = np.full(len(codes), -1, np.int64)
    for result in runner.run(calls):
        for task_result in result:
            ids[task_result.arrays["codes"]] = task_result.arrays["ids"]
    return ids[ids >= 0]
