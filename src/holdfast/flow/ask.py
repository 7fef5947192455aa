"""Questions that need more than what a version stores: errors, bounds, missing values."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.evidence.storage import sets_table
from holdfast.kinds import registry
from holdfast.kinds.base import Kind
from holdfast.kinds.table_state import TableState, bounded
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Row
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.lazily import Lazily
from holdfast.model.progress import Progress
from holdfast.report.document import Points
from holdfast.rules.question import Question
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.table.state import Table
from holdfast.tasks import points as tasks
from holdfast.values.state import ValueState

_POINTS = 240
"""So many rows are drawn of a table."""


def error(running: Callable[[], Runner], store: Store, rule: Rule, progress: Progress) -> float:
    """The share of row pairs that violate a rule, of one about single rows the share of rows: from
    counted pairs where the profile has them, else counted now."""
    with store.asking() as lease:
        version = store.read(lease.version)
        state = TableState.load(store, version, rule.tables[0])
        tables = {state.table.name: state.table}
        columns = {state.table.name: state.table.columns}
        examiner = registry.examiner(rule)
        rule = examiner.checked(rule, columns)
        share = examiner.counted_error(state, rule)
        if share is not None:
            return share
        run = Run(running(), store, version.options, lease, progress)
        return examiner.form(rule, columns, version.options).error(Question(run, tables))


def violations(
    runner: Runner, store: Store, rule: Rule, limit: int, progress: Progress
) -> list[tuple[Row, ...]]:
    """Pairs of rows that violate a rule, row t first, or rows that do so by themselves; at most so
    many."""
    with store.asking() as lease:
        version = store.read(lease.version)
        run = Run(runner, store, version.options, lease, progress)
        table = TableState.load(store, version, rule.tables[0]).table
        question = Question(run, {table.name: table})
        columns = {table.name: table.columns}
        examiner = registry.examiner(rule)
        form = examiner.form(examiner.checked(rule, columns), columns, version.options)
        if limit < 1:
            return []
        return question.rows(table, [*form.witnesses(question, limit)])


def predicates(
    runner: Runner | None, store: Store, kind: Kind, tables: Sequence[str], progress: Progress
) -> dict[str, Any]:
    """What constraints of a kind compare, and, with a runner, what today's rows would choose."""
    with store.asking() as lease:
        version = store.read(lease.version)
        run = None if runner is None else Run(runner, store, version.options, lease, progress)
        by_table = {}
        for name in tables:
            by_table[name] = kind.predicates(TableState.load(store, version, name), run)
            if by_table[name] is None:
                raise kind.missing(version.options.kinds, name)
        return by_table


def within(store: Store, name: str, max_error: float, space: str = AGREEMENTS) -> pa.Table:
    """All minimal sets of a counted table within a bound on the error, as a file holds them."""
    with store.reading() as lease:
        known = TableState.load(store, store.read(lease.version), name)
        with bounded(name):
            return sets_table(known.evidence[space], max_error)


def missing_values(
    runner: Runner,
    store: Store,
    dependent: Attribute,
    referenced: Attribute,
    most: int | None,
    progress: Progress,
) -> list[Any]:
    """Values of one column that do not occur in another, at most so many."""
    rule = InclusionDependency((dependent,), (referenced,))
    kind = registry.of(rule)
    with store.reading() as lease:
        version = store.read(lease.version)
        if version.inclusion is None:
            raise kind.missing(version.options.kinds)
        tables = Lazily(version.tables, lambda name: Table.stored(name, version.tables[name]))
        columns = Lazily(tables, lambda name: tables[name].columns)
        form = kind.form(kind.canonical(rule, columns), columns, version.options)
        progress("values", table=form.table)
        run = Run(runner, store, version.options, lease, progress)
        question = Question(run, tables, values=ValueState.load(store, version.inclusion))
        rows = question.rows(tables[form.table], [*form.witnesses(question, most)])
        return [row.get(dependent.column, row) for [row] in rows]


def points(
    runner: Runner, store: Store, wanted: Mapping[str, Sequence[str]], version: int
) -> dict[str, Points]:
    """Some columns of a few rows of each table, as numbers to draw; tables that keep no raw rows,
    and columns whose values are no numbers, are left out."""
    with store.reading(version) as lease:
        commit = store.read(lease.version)
        scales: dict[str, dict[int, str]] = {}
        calls = []
        for name, columns in wanted.items():
            table = Table.stored(name, commit.table(name))
            if any(segment.raw is None for segment in table.segments):
                continue
            places = [table.columns.position(column, name) for column in columns]
            types = {place: table.columns.schema.field(place).type for place in places}
            scales[name] = {place: kind for place in places if (kind := tasks.scale(types[place]))}
            view = table.view(store.path, commit.options)
            calls.append((tasks.points, tasks.SomeRows(view, tuple(scales[name]), _POINTS)))
        by_table = {}
        for (name, kinds), (result,) in zip(scales.items(), runner.run(calls), strict=True):
            names = commit.table(name).columns.names
            by_table[name] = Points(
                {names[place]: kind for place, kind in kinds.items()},
                {names[place]: _drawable(result.arrays[str(place)]) for place in kinds},
                result.facts["rows"],
            )
        return by_table


def _drawable(numbers: NDArray[np.float64]) -> list[float | None]:
    """Numbers as JSON has them: whole ones as such, and null for what cannot be drawn."""
    finite = [number if math.isfinite(number) else None for number in numbers.tolist()]
    return [int(x) if x is not None and x.is_integer() and abs(x) < 2**53 else x for x in finite]
