"""How the rows of a batch move values between clusters; only the values that they contain are
touched."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from holdfast.model.errors import StoreError
from holdfast.model.lazily import Lazily
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import TableRows
from holdfast.table.state import Table
from holdfast.tasks import values as tasks
from holdfast.tasks.values import RowValues, ValueColumns
from holdfast.values import composite, n_ary
from holdfast.values.counting import counted, run_of, values_of
from holdfast.values.n_ary import Candidate, TupleSearch, Verdicts
from holdfast.values.shared import Pairs, Wanted

if TYPE_CHECKING:
    from holdfast.values.state import ValueState


def with_rows(run: Run, before: ValueState, changes: Iterable[TableRows]) -> ValueState:
    """The state after rows were added and removed; takes one job, or two if there are many rows."""
    changes = [rows for rows in changes if rows.count]
    values = [row_values(run, before, rows) for rows in changes]
    size = sum(
        rows.count * len(of_rows.attributes) for rows, of_rows in zip(changes, values, strict=True)
    )
    run.progress("values", cells=size)
    if not size:
        return before
    new = counted(run, values, size)
    destination, frequencies = run.destination, not run.options.insert_only
    calls: list[Call] = [
        (
            tasks.move,
            tasks.MoveValues(
                destination.root, low, high, destination.prefix, new.runs, new.rows, before.runs,
                before.clusters.words, frequencies,
            ),
        )
        for low, high in new.ranges
    ]  # fmt: skip
    task_results = run_all(run.runner, calls)
    if any(task_result.facts["wrong"] for task_result in task_results):
        raise StoreError("a batch takes away values that the profile does not have")
    after = before.moved(
        np.concatenate([task_result.arrays["masks"] for task_result in task_results]),
        np.concatenate([task_result.arrays["counts"] for task_result in task_results]),
        {rows.table.name for rows in changes},
    )
    added = run_of(task_results)
    return replace(after, runs=(*before.runs, *([added] if added.entries else [])))


def row_values(run: Run, state: ValueState, rows: TableRows) -> RowValues:
    """The values of rows, one attribute for each column."""
    low, high = state.stretches[rows.table.name]
    families = state.families
    return values_of(
        run, rows, [ValueColumns(n, (n - low,), (families[n],)) for n in range(low, high)]
    )


def with_verdicts(
    run: Run,
    state: ValueState,
    tables: Mapping[str, Table],
    before: ValueState | None = None,
    batch: n_ary.RowChanges | None = None,
) -> ValueState:
    """The state with verdicts on dependencies of several columns, if these are searched: of as many
    columns as the state is complete for, or fewer if the time ends; by default on those alone that
    refer to keys. A batch can change only those that have one of its tables on a side."""
    options, batch = run.options, batch or {}
    most = state.arity or options.arity
    if most == 1:
        return replace(state, verdicts={}) if state.verdicts else state
    if options.max_arity is None:
        return composite.with_references(run, state, tables, before, batch)
    search = TupleSearch(run.bounded(), Lazily(tables, lambda name: TableRows.living(tables[name])))
    wanted = Wanted(1.0, options.empty_columns, options.within_tables)
    unchanged: Verdicts = {}
    known: Verdicts = {}
    if before is None:
        pairs = state.shared.pairs(wanted)
    else:
        of_batch = [state.shared.pairs_of(*state.stretches[table], wanted) for table in batch]
        pairs = Pairs.together(of_batch)
        for candidate, verdict in before.verdicts.items():
            concerned = {candidate.table, candidate.other} & set(batch)
            (known if concerned else unchanged)[candidate] = verdict
    unary = {
        Candidate(*_column(state, dependent), *_column(state, referenced))
        for dependent, referenced in zip(
            pairs.dependent.tolist(), pairs.referenced.tolist(), strict=True
        )
    }
    verdicts, arity = n_ary.all_verdicts(search, unary, known, batch, most)
    if arity < most:
        unchanged = {one: unchanged[one] for one in unchanged if len(one.columns) <= arity}
    ended = arity if arity < options.max_arity else None
    return replace(state, verdicts={**unchanged, **verdicts}, arity=ended)


def _column(state: ValueState, number: int) -> tuple[str, tuple[int, ...]]:
    """The table of an attribute, and its position there."""
    table = state.attributes[number].table
    return table, (number - state.stretches[table][0],)
