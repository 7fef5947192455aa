"""The values of all tables of a profile, as evidence: discovered, changed by a batch, verified."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from holdfast.model.lazily import Lazily
from holdfast.runtime.run import Run
from holdfast.table.change import RowChange, Rows
from holdfast.table.state import Table
from holdfast.values import changes, compaction, storage, verify
from holdfast.values.clusters import ValueState
from holdfast.values.n_ary import Batch, Search


def discover(run: Run, tables: Mapping[str, Table]) -> ValueState:
    """From the rows of all tables."""
    with run.stage("values"):
        none = ValueState.none({name: table.columns for name, table in tables.items()})
        return _of_rows(run, none, tables)


def changed(
    run: Run, before: ValueState, changed: Sequence[RowChange], tables: Mapping[str, Table]
) -> ValueState:
    """After a batch: merged with the values of the new rows, those of the deleted ones extracted.
    ``changed`` are the tables that it changes, ``tables`` all of them, as they are afterwards."""
    with run.stage("values"):
        rows: list[Rows] = []
        batches: dict[str, Batch] = {}
        for each in changed:
            batch = Batch(each.arrived, each.departed)
            rows += [batch.added, batch.gone]
            batches[each.after.name] = batch
        after = changes.changed(
            run.runner, before, rows, run.destination, run.options, run.progress
        )
        search = _search(run, tables)
        return changes.with_tuples(search, after, before, batches, run.progress)


def compacted(run: Run, values: ValueState) -> ValueState:
    """With runs merged where there are many."""
    if not compaction.due(values.runs):
        return values
    with run.stage("merge"):
        return compaction.merged(run.runner, values, run.destination, run.options, run.progress)


def differences(
    run: Run, kept: ValueState, tables: Mapping[str, Table]
) -> Iterator[tuple[str, str]]:
    """Where the kept values are not those of the rows: the table, and a sentence about it."""
    fresh = _of_rows(run, kept.emptied, tables)
    yield from verify.differences(run.runner, kept, fresh, run.destination)


def _of_rows(run: Run, none: ValueState, tables: Mapping[str, Table]) -> ValueState:
    rows = [Rows.living(table) for table in tables.values()]
    unary = changes.changed(run.runner, none, rows, run.destination, run.options, run.progress)
    return changes.with_tuples(_search(run, tables), unary, None, {}, run.progress)


def _search(run: Run, tables: Mapping[str, Table]) -> Search:
    rows = Lazily(tables, lambda name: Rows.living(tables[name]))
    return Search(run.runner, run.destination, run.options, rows)


def saved(run: Run, values: ValueState, before: ValueState | None) -> ValueState:
    """With what changed written to files."""
    return storage.save(run.store, run.lease, values, before)
