"""Rules about single rows: how many rows violate one, and a few of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from holdfast.kernels.arrays import I64
from holdfast.model.explanation import Example, Removal, Violations
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.change import TableRows
from holdfast.table.placement import shares
from holdfast.tasks import tuples as tasks

if TYPE_CHECKING:
    from holdfast.kinds.question import Question


def tested(run: Run, rows: TableRows, rules: tuple[tasks.RowRule, ...], most: int) -> list[Call]:
    """Calls that test rows by rules, and give the ids of at most so many for each."""
    table = rows.table
    view = table.view(run.store.path, run.options, rows.segments)
    schema = table.columns.schema
    return [
        (tasks.check_rows, tasks.Tested(share, schema, rules, most, rows.later, rows.weight))
        for share in shares(view, run.runner.tasks)
    ]


def violating(run: Run, rows: TableRows, rule: tasks.RowRule, most: int) -> tuple[int, I64]:
    """How many rows violate a rule, and the ids of the first."""
    calls = tested(run, rows, (rule,), most) if rows.count else []
    results = [each.arrays for result in run.runner.run(calls) for each in result] if calls else []
    ids = np.concatenate([np.empty(0, np.int64), *(each["ids"] for each in results)])
    return sum(int(each["number"][0]) for each in results), np.sort(ids)[:most]


def violations(question: Question, name: str, rule: tasks.RowRule) -> Violations:
    """The rows of a table that violate a rule: all of them would have to go."""
    table = question.table(name)
    number, ids = violating(question.run, TableRows.living(table), rule, question.shown.rows)
    [shown] = question.rows(table, [ids])
    return Violations(
        number,
        of_rows=table.rows,
        removal=Removal(number, number),
        examples=(Example(number, shown),) if number else (),
    )
