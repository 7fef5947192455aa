"""Rules that nearly hold, kept by looking up the rows of a batch: nothing is kept for the others.

Keys are kept so, and dependencies whose left side hardly repeats: these have about as many tuples
as the table has rows, but groups of few rows, which are found by an index. How many groups there
are, and what they explain, is stored with the rule, and changes by the groups of the batch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.kernels.arrays import I64
from holdfast.model import thresholds
from holdfast.model.near import GroupSums, NearRule
from holdfast.model.tuples import TupleSide
from holdfast.rules import near
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.form import RuleForm
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table import indexing
from holdfast.table.change import RowChange
from holdfast.table.placement import ranges
from holdfast.table.state import Table
from holdfast.tasks import looked_up_groups as tasks
from holdfast.values.tuples import TupleCounts

_INDEX_BYTES = 12
"""What a row takes in an index."""

_MANY = 4
"""Where a batch has more rows than one in so many of the table, all rows are counted instead."""


@dataclass(frozen=True)
class LookedUpGroups(AgreeingTuples):
    """Groups of rows that agree on a key, or on a lhs."""

    @staticmethod
    def of_form(form: AgreeingTuples) -> LookedUpGroups:
        """The same groups, however else they are counted."""
        return LookedUpGroups(form.table, form.lhs, form.both)

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """The right side alone, which strength compares with; of a key none."""
        return () if self._rhs_alone is None else (self._rhs_alone,)

    @property
    def looked_up(self) -> tuple[str, ...]:
        """Those that groups agree on."""
        return self.lhs.columns

    @classmethod
    def recounted(
        cls,
        run: Run,
        forms: Sequence[AgreeingTuples],
        before: Sequence[NearRule],
        counts: TupleCounts,
        changes: Sequence[RowChange],
        tables: Mapping[str, Table],
    ) -> list[NearRule]:
        """Table by table."""
        now = [*before]
        for change in changes:
            name = change.after.name
            places = [place for place, form in enumerate(forms) if form.table == name]
            own, old = [forms[place] for place in places], [before[place] for place in places]
            after = _after(run, change, own, old, counts, tables[name])
            for place, each in zip(places, after, strict=True):
                now[place] = each
        return now

    def near_bytes(self, near: NearRule, tables: Mapping[str, Table]) -> int:
        """An index, unless one is there that serves, and what is counted besides."""
        table = tables[self.table]
        is_there = indexing.that_serves(table, table.positions(self.lhs.columns)) is not None
        return super().near_bytes(near, tables) + (0 if is_there else _INDEX_BYTES * table.rows)


def form_of(near: NearRule, form: RuleForm) -> RuleForm:
    """What a rule is judged by, as it is kept."""
    if near.sums is None or not isinstance(form, AgreeingTuples):
        return form
    return LookedUpGroups.of_form(form)


def best_kept(near: NearRule, form: RuleForm | None, tables: Mapping[str, Table]) -> NearRule:
    """A rule as it is best kept: with what its groups explain if they are looked up, which is so
    where they have few rows, and an index takes less than tuples would; else without."""
    if near.sums is None or form is None:
        return near
    table, groups = tables[near.table], form_of(near, form)
    returned = indexing.returned(table, table.positions(groups.looked_up))
    few = returned <= thresholds.current.own_index_rows
    if few and groups.near_bytes(near, tables) <= form.near_bytes(near, tables):
        return near
    return replace(near, sums=None)


def _after(
    run: Run,
    change: RowChange,
    forms: Sequence[AgreeingTuples],
    before: Sequence[NearRule],
    counts: TupleCounts,
    table: Table,
) -> list[NearRule]:
    """How far the rows of a table are from rules after a batch."""
    rows = change.arrived.count + change.departed.count
    if not before or not rows:
        return [*before]
    if rows * _MANY > table.rows:
        return [_counted(run, table, each) for each in before]
    view = change.after.view(run.store.path, run.options)
    later = {segment.number: segment for segment in change.departed.later or ()}
    gone = tuple((segment, later.get(segment.number)) for segment in change.departed.segments)
    groups = []
    for each in before:
        lhs = table.positions(each.lhs)
        rhs = None if each.rhs is None else table.positions((each.rhs,))[0]
        groups.append(tasks.LookedUpGroups(lhs, rhs, indexing.that_serves(change.after, lhs)))
    parts = ranges(run.runner, rows)
    calls: list[Call] = [
        (
            tasks.changed_groups,
            tasks.ChangedGroups(view, change.added, gone, tuple(groups), part, parts),
        )
        for part in range(parts)
    ]
    results = [each.arrays for each in run_all(run.runner, calls)]
    after = []
    for place, (form, old) in enumerate(zip(forms, before, strict=True)):
        more = np.sum([arrays[f"changes{place}"] for arrays in results], axis=0)
        changed = _changed_key if form.both is None else _changed_dependency
        after.append(changed(form, old, more, counts, table))
    return after


def _changed_key(
    form: AgreeingTuples,  # noqa: ARG001
    old: NearRule,
    more: I64,
    counts: TupleCounts,  # noqa: ARG001
    table: Table,
) -> NearRule:
    removal, values, rows = more.tolist()
    return replace(
        old,
        removal=old.removal + removal,
        of_rows=table.rows,
        values=(old.values or 0) + values,
        rows=(old.rows or 0) + rows,
    )


def _changed_dependency(
    form: AgreeingTuples, old: NearRule, more: I64, counts: TupleCounts, table: Table
) -> NearRule:
    assert old.sums is not None
    groups, whole, fraction, majority = more.tolist()
    sums = GroupSums(
        old.sums.groups + groups, old.sums.explained + whole, old.sums.fraction + fraction
    )
    removal = table.rows - (old.of_rows - old.removal + majority)
    return replace(
        old,
        removal=removal,
        of_rows=table.rows,
        strength=form.strength(sums, counts, table),
        sums=sums,
    )


def _counted(run: Run, table: Table, old: NearRule) -> NearRule:
    if table.rows:
        return near.measured(run, table, old.rule)
    if old.sums is not None:
        return replace(old, removal=0, of_rows=0, strength=0.0, sums=GroupSums(0, 0, 0))
    return replace(old, removal=0, of_rows=0, values=0, rows=0)
