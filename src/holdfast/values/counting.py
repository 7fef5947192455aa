"""Counting the values of rows: in the tasks that need them, or, if there are many, into runs in a
job of its own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from holdfast.model import thresholds
from holdfast.model.commits import ValueRun
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import TableRows
from holdfast.table.placement import shares
from holdfast.tasks import values as tasks
from holdfast.tasks.values import RowValues, ValueColumns, cut


def values_of(
    run: Run, rows: TableRows, attributes: Iterable[ValueColumns], nulls: bool | None = None
) -> RowValues:
    """The values of some rows as tasks see them. Whether a null is a value is an option, unless it
    is given."""
    if nulls is None:
        nulls = run.options.inclusion_nulls == "values"
    view = rows.table.view(run.store.path, run.options, rows.segments)
    schema = rows.table.columns.schema
    return RowValues(view, schema, tuple(attributes), nulls, rows.weight, rows.ids, rows.later)


def columns_of(number: int, rows: TableRows, columns: tuple[int, ...]) -> ValueColumns:
    """Some columns of a table as an attribute with this number."""
    return ValueColumns(number, columns, tuple(map(rows.table.columns.family, columns)))


@dataclass(frozen=True)
class CountedValues:
    """Values in runs, or rows whose values each task counts itself; and the ranges of codes, one
    per task."""

    runs: tuple[ValueRun, ...]
    rows: tuple[RowValues, ...]
    ranges: list[tuple[int, int]]


def counted(run: Run, rows: Sequence[RowValues], size: int) -> CountedValues:
    """The values of rows, ``size`` of them in all; many are counted into runs first."""
    limits = thresholds.current
    if size <= limits.task_cells:
        return CountedValues((), tuple(rows), ranges(1))
    runs = runs_of(run, rows)
    entries = sum(one.entries for one in runs)
    return CountedValues(
        runs, (), ranges(max(run.runner.tasks, -(-entries // limits.task_entries)))
    )


def ranges(parts: int) -> list[tuple[int, int]]:
    """All codes, in ranges of equal width."""
    return [(cut(part, parts), cut(part + 1, parts)) for part in range(parts)]


def runs_of(run: Run, rows: Iterable[RowValues]) -> tuple[ValueRun, ...]:
    """Runs with the values of rows."""
    calls: list[Call] = [
        (tasks.count, tasks.CountValues(replace(values, view=share), run.destination.prefix))
        for values in rows
        for share in shares(values.view, run.runner.tasks)
    ]
    # The large ones first, so that no task is left alone with one at the end.
    calls.sort(key=lambda call: -sum(s.rows for s in call[1].cells.view.segments))
    return tuple(run_of([task_result]) for task_result in run_all(run.runner, calls))


def run_of(task_results: list[TaskResult]) -> ValueRun:
    """The run whose parts these tasks wrote."""
    return ValueRun(
        tuple(task_result.facts["part"] for task_result in task_results),
        sum(task_result.facts["entries"] for task_result in task_results),
    )
