"""The rows whose values another table lacks, with the value of that table that is one edit away.

In a foreign key of texts, a missing value is often one that exists, with a typing error: if one
text alone is an edit away, it is suggested. Numbers that differ in one digit are no nearer than
others, so none is suggested for these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from itertools import chain

from holdfast.model.tuples import TupleSide
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.change import TableRows
from holdfast.table.exchange import exchanged, exchanged_results
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import groups
from holdfast.tasks import missing as tasks
from holdfast.tasks.values import RowValues
from holdfast.values.counting import columns_of, values_of

_TEXT = "text"
"""The family of the types whose values are texts."""


@contextmanager
def missing_rows(
    run: Run, tables: Mapping[str, Table], sides: tuple[TupleSide, TupleSide], rule: int
) -> Iterator[list[TaskResult]]:
    """Files of the rows of a side whose tuples the other side lacks, as findings for a rule, and
    how many tuples these are."""
    runner, root, prefix = run.runner, run.store.path, run.destination.prefix
    left, right = (_values(run, tables[side.table], side) for side in sides)
    number = max(parts(runner, each.view) for each in (left, right))
    writes: list[list[Call]] = [
        [
            (groups.write_codes, groups.WriteCodes(replace(each, view=share), prefix))
            for share in shares(each.view, runner.tasks)
        ]
        for each in (left, right)
    ]
    with ExitStack() as stack:
        written = stack.enter_context(exchanged(runner, root, [*chain.from_iterable(writes)]))
        dependent, referenced = (
            tuple(chain.from_iterable(of_side))
            for of_side in (written[: len(writes[0])], written[len(writes[0]) :])
        )
        finds: list[Call] = [
            (tasks.find_missing, tasks.FindMissing(root, dependent, referenced, *which, prefix))
            for which in _ranges(number)
        ]
        missing = _files(stack.enter_context(exchanged(runner, root, finds)))
        looks: list[Call] = [
            (
                tasks.find_near,
                tasks.FindNear(
                    share, *_column(right), missing, left.view.segments, *_column(left), prefix
                ),
            )
            for share in (shares(right.view, runner.tasks) if _are_texts(left, right) else ())
        ]
        near = _files(stack.enter_context(exchanged(runner, root, looks))) if looks else ()
        suspects: list[Call] = [
            (tasks.suspect_missing, tasks.SuspectMissing(root, missing, near, rule, *which, prefix))
            for which in _ranges(number)
        ]
        found = stack.enter_context(exchanged_results(runner, root, suspects))
        yield [*chain.from_iterable(found)]


def _values(run: Run, table: Table, side: TupleSide) -> RowValues:
    """All rows as tuples of a side."""
    rows = TableRows.living(table)
    places = tuple(map(table.columns.names.index, side.columns))
    return values_of(run, rows, [columns_of(0, rows, places)], side.nulls)


def _are_texts(left: RowValues, right: RowValues) -> bool:
    """Whether both have one column, of text."""
    return all(each.attributes[0].families == (_TEXT,) for each in (left, right))


def _column(values: RowValues) -> tuple[int]:
    (column,) = values.attributes[0].columns
    return (column,)


def _ranges(number: int) -> list[tuple[int, int]]:
    """Equal ranges: which, of how many."""
    return [(part, number) for part in range(number)]


def _files(written: Iterable[Iterable[str]]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(written))
