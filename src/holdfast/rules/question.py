"""The rows that rules are asked about, and rows to be shown."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field

import numpy as np

from holdfast.evidence.comparison import completion
from holdfast.evidence.scope import Scope
from holdfast.kernels.arrays import I64, Flags
from holdfast.model.comparisons import Space
from holdfast.model.constraints import Row
from holdfast.model.expectations import Group
from holdfast.model.explanation import Example
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.table.change import TableRows
from holdfast.table.state import Table
from holdfast.tasks.completion import Planes
from holdfast.tasks.groups import ExampleLimits
from holdfast.tasks.segments import Segment
from holdfast.tasks.shown import rows_as_text
from holdfast.values.state import ValueState
from holdfast.values.tuples import TupleCounts

GROUP_ROWS = 10
"""Rows of a group that are shown; their number is given beside."""


@dataclass(frozen=True)
class Question:
    """Rows that rules are asked about, with what is already counted of them."""

    run: Run
    tables: Mapping[str, Table]
    counts: TupleCounts = TupleCounts()  # noqa: RUF009  # a frozen value
    added: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    """The segments that a batch brought, by table."""

    values: ValueState | None = None
    files: ExitStack = field(default_factory=ExitStack)
    """What is open until all is answered."""

    _planes: dict[Space, Planes] = field(default_factory=dict)

    def coded(self, scope: Scope) -> Planes:
        """A table in planes of codes, which are written once."""
        if scope.space not in self._planes:
            self._planes[scope.space] = self.files.enter_context(completion.coded(scope))
        return self._planes[scope.space]

    def new_rows(self, table: Table) -> TableRows:
        """The rows of a table that a batch brought."""
        return TableRows(table, self.added.get(table.name, ()))

    def are_new(self, table: Table, ids: I64) -> Flags:
        """Which of some rows a batch brought."""
        numbers = [segment.number for segment in self.added.get(table.name, ())]
        flags: Flags = np.isin(ids >> 32, numbers)
        return flags

    def new_first(self, table: Table, ids: Iterable[int]) -> list[int]:
        """The ids of rows in order, those that a batch brought first."""
        numbers = {segment.number for segment in self.added.get(table.name, ())}
        return sorted(ids, key=lambda id_: (id_ >> 32 not in numbers, id_))

    def rows(self, table: Table, ids: Sequence[I64]) -> list[tuple[Row, ...]]:
        """Rows to be shown, together as their ids are."""
        distinct = np.unique(np.concatenate([np.empty(0, np.int64), *ids]))
        names = table.columns.names
        text = rows_as_text(self.run.store.path, table.segments, names, distinct)
        return [tuple(json.loads(text[id_]) for id_ in group.tolist()) for group in ids]

    def examples(
        self, table: Table, results: Sequence[TaskResult], limits: ExampleLimits
    ) -> tuple[Example, ...]:
        """The largest groups that tasks found, with rows."""
        groups = [
            (int(size), ids[ids >= 0])
            for result in results
            for size, ids in zip(result.arrays["sizes"], result.arrays["ids"], strict=True)
        ]
        groups.sort(key=lambda group: (-group[0], group[1].tolist()))
        groups = groups[: limits.groups]
        rows = self.rows(table, [ids for _, ids in groups])
        return tuple(Example(size, row) for (size, _), row in zip(groups, rows, strict=True))

    def groups(self, table: Table, numbered: Sequence[tuple[int, I64]]) -> list[Group]:
        """Groups of rows that violate a rule, with which of them a batch brought."""
        numbered = [(number, ids) for number, ids in numbered if len(ids)]
        rows = self.rows(table, [ids for _, ids in numbered])
        return [
            Group(group, number, tuple(self.are_new(table, ids).tolist()))
            for group, (number, ids) in zip(rows, numbered, strict=True)
        ]
