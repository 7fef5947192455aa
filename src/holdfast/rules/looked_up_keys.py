"""Keys that nearly hold, kept by looking up the rows of a batch: nothing is kept for the others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.model.near import NearRule
from holdfast.model.tuples import TupleSide
from holdfast.rules import near
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table import indexing
from holdfast.table.change import RowChange
from holdfast.table.placement import ranges
from holdfast.table.state import Table
from holdfast.tasks import key_groups as tasks
from holdfast.values.tuples import TupleCounts

_INDEX_BYTES = 12
"""What a row takes in an index."""

_MANY = 4
"""Where a batch has more rows than one in so many of the table, all rows are counted instead."""


@dataclass(frozen=True)
class NearKey(AgreeingTuples):
    """Groups of rows that agree on a key that nearly holds."""

    @staticmethod
    def of_key(key: AgreeingTuples) -> NearKey:
        """Of what a key is judged by."""
        return NearKey(key.table, key.lhs)

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """No tuples are counted."""
        return ()

    @property
    def looked_up(self) -> tuple[str, ...]:
        """Those of the key."""
        return self.lhs.columns

    @classmethod
    def recounted(
        cls,
        run: Run,
        forms: Sequence[AgreeingTuples],
        before: Sequence[NearRule],
        counts: TupleCounts,  # noqa: ARG003
        changes: Sequence[RowChange],
        tables: Mapping[str, Table],
    ) -> list[NearRule]:
        """Table by table."""
        now = [*before]
        for change in changes:
            name = change.after.name
            places = [place for place, form in enumerate(forms) if form.table == name]
            old = [before[place] for place in places]
            for place, each in zip(places, _after(run, change, old, tables[name]), strict=True):
                now[place] = each
        return now

    def near_bytes(self, near: NearRule, tables: Mapping[str, Table]) -> int:  # noqa: ARG002
        """An index, unless one is there that serves."""
        table = tables[self.table]
        is_there = indexing.that_serves(table, table.positions(self.lhs.columns)) is not None
        return 0 if is_there else _INDEX_BYTES * table.rows


def _after(run: Run, change: RowChange, before: Sequence[NearRule], table: Table) -> list[NearRule]:
    """How far the rows of a table are from keys after a batch."""
    rows = change.arrived.count + change.departed.count
    if not before or not rows:
        return [*before]
    if rows * _MANY > table.rows:
        return [_counted(run, table, each) for each in before]
    view = change.after.view(run.store.path, run.options)
    later = {segment.number: segment for segment in change.departed.later or ()}
    gone = tuple((segment, later.get(segment.number)) for segment in change.departed.segments)
    keys = [table.positions(each.lhs) for each in before]
    served = tuple(tasks.LookedUpKey(key, indexing.that_serves(change.after, key)) for key in keys)
    parts = ranges(run.runner, rows)
    calls: list[Call] = [
        (tasks.changed_groups, tasks.ChangedGroups(view, change.added, gone, served, part, parts))
        for part in range(parts)
    ]
    changes = np.sum([each.arrays["changes"] for each in run_all(run.runner, calls)], axis=0)
    return [
        replace(
            old,
            removal=old.removal + removal,
            of_rows=table.rows,
            values=(old.values or 0) + values,
            rows=(old.rows or 0) + shared,
        )
        for old, (removal, values, shared) in zip(before, changes.tolist(), strict=True)
    ]


def _counted(run: Run, table: Table, old: NearRule) -> NearRule:
    if not table.rows:
        return replace(old, removal=0, of_rows=0, values=0, rows=0)
    return near.measured(run, table, old.rule)
