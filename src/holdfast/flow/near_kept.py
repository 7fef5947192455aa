"""Rules that nearly hold, kept under batches: those of the tables that a batch changes, and those
of other tables that are about these."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from holdfast.flow.near import form_of, forms_of, found, is_wanted, listed
from holdfast.kinds import registry
from holdfast.kinds.table_state import Step
from holdfast.model.changes import BatchChanges
from holdfast.model.commits import Commit
from holdfast.model.constraints import Constraint
from holdfast.model.grammar import parse
from holdfast.model.lazily import Lazily
from holdfast.model.near import NearList, near_changes
from holdfast.report.snapshot import snapshot
from holdfast.rules.form import RuleForm
from holdfast.rules.near_kept import NearState, also_counted, counted
from holdfast.runtime.run import Run
from holdfast.table.change import RowChange
from holdfast.table.state import Table
from holdfast.values.tuples import TupleCounts


@dataclass(frozen=True)
class NearKept:
    """The near rules after a batch."""

    steps: Mapping[str, Step]  # of the tables that it changed, with their lists
    counts: TupleCounts
    elsewhere: Mapping[str, NearList]  # of other tables, where they changed
    before: Mapping[str, NearList]  # what these were

    def told_in(self, changes: BatchChanges) -> BatchChanges:
        """What the batch did to each table, with what it did to near rules; to those of a table
        that it did not change, with the first table that it did change and that they are about."""
        told = {
            name: [*near_changes(step.before.near or NearList(), step.after.near or NearList())]
            for name, step in self.steps.items()
        }
        for name, near in self.elsewhere.items():
            for change in near_changes(self.before[name], near):
                first = next(each for each in parse(change.rule).tables if each in told)
                told[first].append(change)
        tables = {
            name: replace(each, near=tuple(told[name])) for name, each in changes.tables.items()
        }
        return replace(changes, tables=tables)


@dataclass
class _Keeping:
    """The lists of a version, as a batch changes them."""

    run: Run
    base: Commit  # what the batch builds on
    tables: Mapping[str, Table]  # all of them after the batch
    changes: Sequence[RowChange]
    counts: TupleCounts  # of the tuples after the batch, and of those that are counted for more

    def of_table(self, run: Run, near: NearList, name: str, steps: Iterable[Step]) -> NearList:
        """The list of a table after a batch, which may break rules that hold by any of these
        steps. Rules that are expected are watched like those that matter."""
        forms = forms_of(near.rules, self.tables, run.options)
        state = NearState.of(near, forms).recounted(run, self.counts, self.tables, self.changes)
        state = state.still_near(run.options, self.counts)
        expected = [standing.rule for standing in self.base.expectations]
        broken = self._broken(name, state.watched(expected), [*steps])
        if broken:
            run.progress("near", rules=len(broken))
            self.counts, began = counted(run, broken, self.counts, self.tables)
            state = state.joined(began)
        return state.near

    def _broken(
        self, name: str, watched: Sequence[str], steps: Sequence[Step]
    ) -> dict[Constraint, RuleForm]:
        """Those of some watched rules of a table that a batch broke, with what they are judged
        by."""
        columns = Lazily(self.tables, lambda name: self.tables[name].columns)
        forms: dict[Constraint, RuleForm] = {}
        for rule in map(parse, watched):
            about = rule.tables
            mine = [step for step in steps if step.after.table.name in about and about[0] == name]
            if any(registry.of(rule).broke(rule, step) for step in mine):
                form = form_of(rule, columns, self.run.options)
                if form is not None:
                    forms[rule] = form
        return forms

    def outgrown(self, run: Run, step: Step) -> NearList:
        """The list of a table that has doubled or halved: looked for in all rows."""
        table, near, version = step.after.table, step.after.near, self.base.version
        now = snapshot(run.store, version)
        of_rows = {table.name: found(run, step.after, now)}
        lists = listed(run, of_rows, self.tables, self.base, now, version + 1, step.values_after)
        every = lists[table.name].joined(near.near if near else ())
        forms = forms_of(every.rules, self.tables, run.options)
        self.counts = also_counted(run, forms, self.counts, self.tables)
        return NearState.of(every, forms).recounted(run, self.counts, self.tables).near


def kept(
    runs: Mapping[str, Run],
    run: Run,
    base: Commit,
    steps: Mapping[str, Step],
    changes: Sequence[RowChange],
    tables: Mapping[str, Table],
    counts: TupleCounts,
    dry_run: bool,
) -> NearKept:
    """The near rules after a batch, whose tuples are counted already. ``runs`` are over each table
    that it changes, ``tables`` all tables after it."""
    keeping = _Keeping(run, base, tables, changes, counts)
    after: dict[str, Step] = {}
    for name, step in steps.items():
        near = step.before.near
        if near is not None:
            near = keeping.of_table(runs[name], near, name, steps.values())
        after[name] = replace(step, after=replace(step.after, near=near))
        if not dry_run and is_wanted(run.options, step.after.table) and _is_outgrown(after[name]):
            near = keeping.outgrown(runs[name], after[name])
            after[name] = replace(step, after=replace(step.after, near=near))
        if near is not None and not dry_run:
            state = NearState.of(near, forms_of(near.rules, tables, run.options))
            table = state.indexed(runs[name], step.after.table)
            after[name] = replace(step, after=replace(after[name].after, table=table))
    before: dict[str, NearList] = {}
    elsewhere: dict[str, NearList] = {}
    for name in _about(base, counts, steps):
        near = base.tables[name].near
        if near is not None:
            now = keeping.of_table(run, near, name, steps.values())
            if now != near:
                before[name], elsewhere[name] = near, now
    return NearKept(after, keeping.counts, elsewhere, before)


def _about(base: Commit, counts: TupleCounts, steps: Mapping[str, Step]) -> list[str]:
    """The tables that a batch does not change with rules that it may change: those that refer to
    its tables by counted tuples, or did by what it broke. No other manifests are read."""
    table_of = {side.number: side.table for side in counts.record.sides}
    referring = {
        table_of[reference.left]
        for reference in counts.record.references
        if table_of[reference.right] in steps
    }
    for step in steps.values():
        for kind in registry.named(base.options.kinds):
            referring |= kind.broken_elsewhere(step)
    return sorted(referring - {*steps})


def _is_outgrown(step: Step) -> bool:
    """Whether a table has doubled or halved since its near rules were looked for."""
    near, rows = step.after.near, step.after.table.rows
    return near is not None and not near.rows / 2 < max(rows, 1) < max(near.rows, 1) * 2
