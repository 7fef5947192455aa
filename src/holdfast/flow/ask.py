"""Questions that need more than what a version stores: errors, bounds, missing values."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.cover.dependencies import KEY
from holdfast.evidence import counting, devices, strategy
from holdfast.evidence.comparison import completion
from holdfast.evidence.scope import Scope
from holdfast.evidence.storage import sets_table
from holdfast.kinds.denial_constraints.predicate_listing import Predicates
from holdfast.kinds.denial_constraints.predicates import (
    atoms_of,
    denial_of,
    is_said,
    row_rule,
    space_of,
)
from holdfast.kinds.denial_constraints.show import SPACE
from holdfast.kinds.denial_constraints.space import chosen
from holdfast.kinds.inclusion_dependencies.missing import missing
from holdfast.kinds.registry import REGISTRY
from holdfast.kinds.single_rows import violating
from holdfast.kinds.table_state import TableState, bounded
from holdfast.model.comparisons import AGREEMENTS, agreements
from holdfast.model.constraints import FunctionalDependency, Key, Row
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.errors import InputError, SchemaError
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.limits import Time
from holdfast.model.names import lacking
from holdfast.model.progress import Progress
from holdfast.report.document import Points
from holdfast.runtime.run import Destination, Run
from holdfast.runtime.runner import Runner
from holdfast.store import Store
from holdfast.table.change import TableRows
from holdfast.table.state import Table
from holdfast.tasks import points as tasks
from holdfast.tasks.shown import rows_as_text
from holdfast.values.state import ValueState

_POINTS = 240
"""So many rows are drawn of a table."""


def error(
    running: Callable[[], Runner], store: Store, name: str, left: tuple[str, ...], right: str | None
) -> float:
    """The share of row pairs that agree on the left and differ on the right, or agree at all."""
    with store.asking() as lease:
        version = store.read(lease.version)
        known = TableState.load(store, version, name)
        columns = known.table.columns
        lhs = tuple(columns.position(each, name) for each in left)
        rhs = KEY if right is None else columns.position(right, name)
        pairs = known.evidence.get(AGREEMENTS)
        if pairs is None:
            raise InputError(
                "the profile compares no pairs of rows; profile the tables with --kinds keys"
            )
        view = known.table.view(store.path, version.options)
        return pairs.error(running, view, known.table.rows, lhs, rhs, lease.pattern)


def denial_error(
    running: Callable[[], Runner], store: Store, rule: DenialConstraint, progress: Progress
) -> float:
    """The share of ordered row pairs that satisfy all predicates of a denial constraint, of one
    about single rows the share of rows: from counts where the profile has them, else counted
    now."""
    with store.reading() as lease:
        version = store.read(lease.version)
        known = TableState.load(store, version, rule.table)
        table, names = known.table, known.table.columns.names
        held = known.evidence.get(SPACE)
        alone = rule.is_within_a_row
        # A row that violates a rule by itself does so in all its pairs, if there are any.
        counted = held is not None and held.counts is not None and not (alone and table.rows == 1)
        if held is not None and counted and is_said(rule, held.space, names):
            atoms = atoms_of(rule, held.space, names)
            view = table.view(store.path, version.options)
            return held.error(running, view, table.rows, atoms, KEY, lease.pattern)
        run = Run(running(), store, version.options, lease, progress)
        if alone:
            number, _ = _violating_alone(run, table, rule, 0)
            return number / table.rows if table.rows else 0.0
        space = space_of(rule, table.columns)
        comparisons, tasks = len(space.comparisons), run.runner.tasks
        gpu_rate = devices.gpu_rate(run)
        strategy.expect_countable(table.name, table.rows, comparisons, tasks, gpu_rate)
        counts = counting.count_all(run, table, [space], Time())[space.name].sets
        satisfying = counts.satisfying(atoms_of(rule, space, names))
        return satisfying / counts.pairs if counts.pairs else 0.0


def violations(
    runner: Runner,
    store: Store,
    rule: Key | FunctionalDependency | DenialConstraint,
    limit: int,
    progress: Progress,
) -> list[tuple[Row, ...]]:
    """Pairs of rows that violate a rule, row t first, or rows that do so by themselves; at most so
    many."""
    denied = denial_of(rule)
    with store.asking() as lease:
        version = store.read(lease.version)
        table = TableState.load(store, version, rule.table).table
        names = table.columns.names
        run = Run(runner, store, version.options, lease, progress)
        if limit < 1:
            return []
        if denied.is_within_a_row:
            _, ids = _violating_alone(run, table, denied, limit)
            return _rows_of(store, table, ids[:, None])
        if table.rows < 2:
            return []
        # A set of no atoms is satisfied by every pair, whatever is compared.
        space = space_of(denied, table.columns) if denied.predicates else agreements(len(names))
        pairs = completion.violating(
            Scope.of(run, table, space), atoms_of(denied, space, names), limit
        )
        return _rows_of(store, table, pairs)


def _violating_alone(
    run: Run, table: Table, rule: DenialConstraint, most: int
) -> tuple[int, NDArray[np.int64]]:
    """How many rows violate a rule by themselves, and the ids of the first."""
    asked = row_rule(rule, table.columns)
    if asked is None:
        return 0, np.empty(0, np.int64)
    return violating(run, TableRows.living(table), asked, most)


def _rows_of(store: Store, table: Table, ids: NDArray[np.int64]) -> list[tuple[Row, ...]]:
    """Rows as they are shown, together as their ids are."""
    text = rows_as_text(store.path, table.segments, table.columns.names, np.unique(ids))
    return [tuple(json.loads(text[id_]) for id_ in some) for some in ids.tolist()]


def predicates(
    runner: Runner | None, store: Store, tables: Sequence[str], progress: Progress
) -> dict[str, Predicates]:
    """What denial constraints compare, and, with a runner, what today's rows would choose."""
    with store.asking() as lease:
        version = store.read(lease.version)
        by_table = {}
        for name in tables:
            known = TableState.load(store, version, name)
            if SPACE not in known.evidence:
                raise REGISTRY["dcs"].missing(version.options.kinds, name)
            today = None
            if runner is not None:
                run = Run(runner, store, version.options, lease, progress)
                today = chosen(run, known.table)
            names = known.table.columns.names
            by_table[name] = Predicates(names, known.evidence[SPACE].space, today)
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
    with store.reading() as lease:
        version = store.read(lease.version)
        options = version.options
        if version.inclusion is None:
            raise REGISTRY["inds"].missing(options.kinds)
        held = ValueState.load(store, version.inclusion)
        for each in (dependent, referenced):
            version.table(each.table)
            if each not in held.attributes:
                mine = [other.column for other in held.attributes if other.table == each.table]
                raise SchemaError(lacking(f"table {each.table!r}", "column", each.column, mine))
        families = [held.families[held.attributes.index(each)] for each in (dependent, referenced)]
        if families[0] != families[1]:
            raise SchemaError(
                f"{dependent} has values of the kind {families[0]} and {referenced} of the kind "
                f"{families[1]}, which are never equal"
            )
        table = Table.stored(dependent.table, version.table(dependent.table))
        progress("values", table=dependent.table)
        destination = Destination(store.path, "", options.keep_rows)
        ids = missing(runner, held, table, (dependent, referenced), most, destination, options)
        text = rows_as_text(store.path, table.segments, table.columns.names, ids)
        rows = [json.loads(text[id_]) for id_ in ids.tolist()]
        return [row.get(dependent.column, row) for row in rows]


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
            places = [table.columns.position(each, name) for each in columns]
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
    finite = [each if math.isfinite(each) else None for each in numbers.tolist()]
    return [
        int(each) if each is not None and each.is_integer() and abs(each) < 2**53 else each
        for each in finite
    ]
