"""Rows that are asked about a rule: tasks over them, and examples to show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from holdfast.evidence.comparison import completion
from holdfast.evidence.scope import Scope
from holdfast.kinds.examine import Version
from holdfast.model.commits import Commit
from holdfast.model.comparisons import Space
from holdfast.model.constraints import Row
from holdfast.model.explanation import Example, Removal, Violations
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.exchange import exchanged
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import examine as tasks
from holdfast.tasks.completion import Planes
from holdfast.tasks.examine import Shown
from holdfast.tasks.shown import rows_as_text
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Question:
    """Rows that are asked about a rule: those of the version that a run is about."""

    run: Run
    commit: Commit
    shown: Shown
    held: ExitStack  # what is needed until all is answered
    _planes: dict[Space, Planes] = field(default_factory=dict)

    @cached_property
    def version(self) -> Version:
        """What the version says itself."""
        return Version(self.run.store, self.commit)

    def coded(self, scope: Scope) -> Planes:
        """A table in planes of codes, which are written once."""
        if scope.space not in self._planes:
            self._planes[scope.space] = self.held.enter_context(completion.coded(scope))
        return self._planes[scope.space]

    def table(self, name: str) -> Table:
        """A table's rows."""
        return Table.stored(name, self.commit.table(name))

    def asked(self, calls: Sequence[Call]) -> list[TaskResult]:
        """What tasks answer, in one job."""
        return [each for results in self.run.runner.run(calls) for each in results]

    def examples(self, table: Table, results: Sequence[TaskResult]) -> tuple[Example, ...]:
        """The largest groups of all tasks, with rows."""
        groups = [
            (int(size), ids[ids >= 0])
            for each in results
            for size, ids in zip(each.arrays["sizes"], each.arrays["ids"], strict=True)
        ]
        groups.sort(key=lambda each: (-each[0], each[1].tolist()))
        groups = groups[: self.shown.groups]
        return tuple(
            Example(size, rows)
            for (size, _), rows in zip(
                groups, self.rows(table, [ids for _, ids in groups]), strict=True
            )
        )

    def rows(self, table: Table, ids: Sequence[Any]) -> list[tuple[Row, ...]]:
        """Rows to show, some for each of several examples."""
        names = table.columns.names
        every = np.unique(np.concatenate([np.empty(0, np.int64), *ids]))
        text = rows_as_text(self.run.store.path, table.segments, names, every)
        return [tuple(json.loads(text[int(id_)]) for id_ in some) for some in ids]


def _grouped(
    question: Question, view: View, left: tuple[int, ...], right: int | None
) -> list[TaskResult]:
    """What tasks say of groups of rows: one where there are few of them, else one for each range
    of hashes."""
    run, shown = question.run, question.shown
    whole = tasks.Grouped(view, left, right, shown)
    count = parts(run.runner, view)
    if count == 1:
        return question.asked([(tasks.grouped, whole)])
    writing: list[Call] = [
        (tasks.grouped, replace(whole, view=share, prefix=run.destination.prefix))
        for share in shares(view, count)
    ]
    with exchanged(run.runner, view.root, writing) as written:
        files = tuple(file for mine in written for file in mine)
        return question.asked(
            [
                (tasks.grouped_in, tasks.GroupedIn(view.root, files, right, part, count, shown))
                for part in range(count)
            ]
        )


def agreeing(
    question: Question, name: str, lhs: Sequence[str], rhs: str | None, orders: int = 1
) -> Violations:
    """Rows that agree on the left and, unless a key is asked for, differ on the right; ``orders``:
    in how many orders a pair counts."""
    table, run = question.table(name), question.run
    columns = table.columns
    left = tuple(sorted({columns.position(each, name) for each in lhs}))
    right = None if rhs is None else columns.position(rhs, name)
    results = _grouped(question, table.view(run.store.path, run.options), left, right)
    groups, rows, pairs, agreeing, removed = (
        sum(each.facts[what] for each in results)
        for what in ("groups", "rows", "pairs", "agreeing", "removed")
    )
    every = table.rows * (table.rows - 1) // 2
    return Violations(
        rows,
        groups,
        orders * pairs,
        orders * every,
        Removal(removed, removed),
        question.examples(table, results),
        None if rhs is None else orders * agreeing,
    )
