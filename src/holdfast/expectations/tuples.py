"""Counted tuples, kept under batches: what a batch contains is looked up, and nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from holdfast.kernels.arrays import U64
from holdfast.model import thresholds
from holdfast.model.commits import ReferenceRecord, SideRecord, TuplesRecord, ValueRun
from holdfast.model.errors import StoreError
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.contained import ContainedTuples
from holdfast.rules.form import RuleForm, TupleSide
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.change import TableRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import tuples as tasks
from holdfast.tasks import values
from holdfast.tasks.values import RowValues, ValueColumns, cut
from holdfast.values.compaction import merged_runs
from holdfast.values.counting import run_of

SHOWN = 8
"""Tuples that violate a rule and are remembered, to show their rows."""


@dataclass(frozen=True)
class Tuples:
    """The counted tuples of a version, and codes of some that violate rules."""

    record: TuplesRecord
    shared: dict[int, U64] = field(default_factory=dict)  # by side: that several rows have
    lacking: dict[tuple[int, int], U64] = field(default_factory=dict)  # by reference

    def side(self, side: TupleSide) -> SideRecord:
        """The counts of a side."""
        return next(each for each in self.record.sides if _is(each, side))

    def reference(self, rule: ContainedTuples) -> ReferenceRecord:
        """How much of the left side is found."""
        pair = self.side(rule.left).number, self.side(rule.right).number
        return next(each for each in self.record.references if (each.left, each.right) == pair)


def _is(record: SideRecord, side: TupleSide) -> bool:
    mine = record.table, record.columns, record.nulls, record.of
    return mine == (side.table, side.columns, side.nulls, side.of)


def declared(
    run: Run, before: Tuples, measures: Sequence[RuleForm], tables: Mapping[str, Table]
) -> Tuples:
    """With the sides of these rules, all that are expected: the new ones are counted in all
    rows."""
    known = {each.number for each in before.record.sides}
    after = only(before, measures)
    fresh = [each for each in after.record.sides if each.number not in known]
    rows = [TableRows.living(table) for table in tables.values()]
    return _counted(run, after.record, fresh, rows)


def only(before: Tuples, measures: Sequence[RuleForm]) -> Tuples:
    """With the sides of these rules, new ones without counts; entries of sides that nobody asks for
    any more stay in the runs until no others are left."""
    asked = _sides(measures)
    kept = [each for each in before.record.sides if any(_is(each, side) for side in asked)]
    new = [side for side in asked if not any(_is(each, side) for each in kept)]
    if not asked:
        return Tuples(TuplesRecord())
    number = before.record.next_number
    fresh = [
        SideRecord(number + k, side.table, side.columns, side.nulls, side.of)
        for k, side in enumerate(new)
    ]
    record = replace(before.record, sides=(*kept, *fresh), next_number=number + len(fresh))
    pairs = []
    for rule in measures:
        if isinstance(rule, ContainedTuples):
            left, right = (Tuples(record).side(side).number for side in rule.sides)
            pairs.append((left, right))
    known = {(each.left, each.right): each for each in record.references}
    references = tuple(known.get(pair, ReferenceRecord(*pair)) for pair in dict.fromkeys(pairs))
    return Tuples(replace(record, references=references, runs=record.runs if kept else ()))


def changed(run: Run, before: Tuples, rows: Iterable[TableRows]) -> Tuples:
    """After rows came and went."""
    return _counted(run, before.record, before.record.sides, rows)


def _sides(measures: Sequence[RuleForm]) -> list[TupleSide]:
    asked = [
        s
        for each in measures
        if isinstance(each, AgreeingTuples | ContainedTuples)
        for s in each.sides
    ]
    return list(dict.fromkeys(asked))


def _counted(
    run: Run, record: TuplesRecord, sides: Sequence[SideRecord], rows: Iterable[TableRows]
) -> Tuples:
    """CountValues the tuples of some sides in rows, in one job, or two where there are many."""
    parts_of = [(each, cells) for each in rows if each.count for cells in _cells(run, each, sides)]
    size = sum(each.count * len(cells.attributes) for each, cells in parts_of)
    if not size:
        return Tuples(record)
    run.progress("expectations", cells=size)
    cells = tuple(each for _, each in parts_of)
    runs: tuple[ValueRun, ...] = ()
    parts = 1
    if size > thresholds.current.task_cells:
        runs, cells = _runs_of(run, cells), ()
        entries = sum(each.entries for each in runs)
        parts = max(run.runner.tasks, -(-entries // thresholds.current.task_entries))
    references = tuple((each.left, each.right) for each in record.references)
    destination = run.destination
    calls: list[Call] = [
        (
            tasks.recount,
            tasks.Recount(
                destination.root, cut(k, parts), cut(k + 1, parts), destination.prefix,
                runs, cells, record.runs, record.next_number, references, SHOWN,
            ),
        )
        for k in range(parts)
    ]  # fmt: skip
    results = [each for result in run.runner.run(calls) for each in result]
    if any(each.facts["wrong"] for each in results):
        raise StoreError("a batch takes away tuples that the profile does not have")
    return _added(record, results, references)


def _added(
    record: TuplesRecord, results: list[TaskResult], references: tuple[tuple[int, int], ...]
) -> Tuples:
    sums, changes = (
        np.sum([each.arrays[name] for each in results], axis=0) for name in ("sides", "references")
    )
    sides = []
    for side in record.sides:
        distinct, rows, pairs = (int(each) for each in sums[side.number])
        sides.append(
            replace(
                side,
                distinct=side.distinct + distinct,
                rows=side.rows + rows,
                pairs=side.pairs + pairs,
            )
        )
    kept = tuple(
        replace(each, distinct=each.distinct + int(more[0]), rows=each.rows + int(more[1]))
        for each, more in zip(record.references, changes, strict=True)
    )
    run = run_of(results)
    runs = (*record.runs, *([run] if run.entries else []))
    shared, lacking = (
        np.concatenate([each.arrays[name] for each in results]) for name in ("shared", "lacking")
    )
    return Tuples(
        replace(record, sides=tuple(sides), references=kept, runs=runs),
        {side.number: shared[shared[:, 2] == side.number][:SHOWN, :2] for side in sides},
        {
            pair: lacking[lacking[:, 2] == number][:SHOWN, :2]
            for number, pair in enumerate(references)
        },
    )


def _cells(run: Run, rows: TableRows, sides: Iterable[SideRecord]) -> list[RowValues]:
    """The rows as tuples of the sides that are of their table; a null is a value in some."""
    mine = [each for each in sides if each.table == rows.table.name]
    return [
        cells_of(run, rows, [each for each in mine if each.nulls == nulls])
        for nulls in sorted({each.nulls for each in mine})
    ]


def cells_of(run: Run, rows: TableRows, sides: Sequence[SideRecord]) -> RowValues:
    """Rows as tuples of sides that see nulls alike."""
    table = rows.table
    columns, schema = table.columns, table.columns.schema
    attributes = []
    for side in sides:
        places = tuple(columns.names.index(name) for name in side.columns)
        kinds = tuple(map(columns.family, places))
        attributes.append(ValueColumns(side.number, places, kinds))
    view = table.view(run.store.path, run.options, rows.segments)
    nulls = sides[0].nulls
    return RowValues(view, schema, tuple(attributes), nulls, rows.weight, rows.ids, rows.later)


def _runs_of(run: Run, cells: Iterable[RowValues]) -> tuple[ValueRun, ...]:
    """Runs of the tuples of many rows."""
    calls: list[Call] = []
    for each in cells:
        for share in shares(each.view, run.runner.tasks):
            item = values.CountValues(replace(each, view=share), run.destination.prefix)
            calls.append((values.count, item))
    return tuple(run_of([each]) for result in run.runner.run(calls) for each in result)


def compacted(run: Run, record: TuplesRecord) -> TuplesRecord:
    """With runs merged where there are many."""
    runs = merged_runs(run.runner, record.runs, run.destination, True, run.progress)
    return replace(record, runs=runs)
