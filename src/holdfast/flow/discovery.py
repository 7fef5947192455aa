"""What the rows of a table hold: from nothing, from a sample, and again after a batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from holdfast.cover import deepening
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence import counted as counting
from holdfast.evidence import strategy as ways
from holdfast.evidence import witnessed as loop
from holdfast.evidence.strategy import COUNTED
from holdfast.families.inclusion_dependencies import changes as inclusion_changes
from holdfast.families.inclusion_dependencies import storage as inclusion_storage
from holdfast.families.inclusion_dependencies.changes import Change
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.families.inclusion_dependencies.n_ary import Rows, Search
from holdfast.flow.commits import saved
from holdfast.input.reading import Intake, read
from holdfast.input.row_input import Columns, Feed
from holdfast.kernels.cover import Tick
from holdfast.model.limits import Limits
from holdfast.store.run import Run
from holdfast.table import compaction as upkeep
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import compaction as upkeep_tasks
from holdfast.tasks.segments import Segment


def discover_table(run: Run, name: str, feed: Feed) -> Table:
    with run.stage("read"):
        run.progress("read")
        sketches = run.options.seeks_keys
        intake = read(run.runner, feed, run.place, 1, run.progress, sketches=sketches)
        run.progress("read", rows=intake.rows)
    distinct = upkeep_tasks.estimate(intake.parcels) or [0.0] * len(intake.columns.names)
    limits = Limits.both(run.options.max_columns)
    table = _fresh(name, feed, intake, distinct, limits)
    if not run.options.seeks_keys:
        return saved(run, table, None)
    table = replace(table, choice=chosen(run, table))
    if run.options.start == "sample":
        table = _discover_from_sample(run, table)
    else:
        table = discover_rows(run, table)
    with run.stage("index"):
        table = upkeep.index(run.runner, table, run.place, run.options, run.progress)
    if table.way == COUNTED:
        table = counted_anew(run, table)
    return saved(run, table, None)


def _fresh(name: str, feed: Feed, intake: Intake, distinct: list[float], limits: Limits) -> Table:
    atoms = len(intake.columns.names)
    none = Evidence.none(atoms)
    return Table(
        name,
        intake.columns,
        feed.source,
        intake.segments,
        len(intake.segments) + 1,
        distinct,
        intake.rows,
        (),
        none,
        Covers.build(atoms, [KEY], none.masks, limits),
        0,
        [],
        limits,
    )


def chosen(run: Run, table: Table) -> dict[str, Any]:
    """How the table's functional dependencies are to be known."""
    columns, tasks = len(table.columns.names), run.runner.tasks
    choice = ways.choose(table.name, table.rows, columns, tasks, run.options, table.way)
    return choice.to_dict()


def discover_rows(run: Run, table: Table) -> Table:
    """Everything about the living rows of a table that is witnessed, from nothing but them."""
    view = table.view(run.store.path, run.options)
    none = Evidence.none(view.columns)
    covers = Covers.build(view.columns, table.sides, none.masks, table.limits)
    learned = loop.Learned(view, none, covers)
    depth = witnessed_depth(run, table)
    with run.stage("sample"):
        run.progress("sample")
        samples = loop.sample_calls(run.runner, view, bool(covers.columns))
        counts = loop.duplicate_calls(run.runner, view)
        results = run.runner.run([*samples, *counts])
        learned.learn([p for result in results[: len(samples)] for p in result], depth)
        counted = [p.facts for result in results[len(samples) :] for p in result]
    with run.stage("search"):
        loop.validate(run.runner, learned, table.distinct, run.place.prefix, run.progress, depth)
    return replace(
        table,
        segments=learned.view.segments,
        evidence=learned.evidence,
        covers=learned.covers,
        limits=table.limits.within(learned.covers.limits),
        duplicates=sum(facts["duplicates"] for facts in counted),
        repeated=[pair for facts in counted for pair in facts["pairs"]][:4],
    )


def witnessed_depth(run: Run, table: Table) -> Deepening:
    """How far to search for what is witnessed; dependencies that are counted come after it."""
    time = run.time.first(0.5) if table.way == COUNTED else run.time
    return Deepening(table.limits, time, deepening.WITNESSED)


def counted_anew(run: Run, table: Table) -> Table:
    """The table with all pairs of its rows counted, and the dependencies read from them."""
    view = table.view(run.store.path, run.options)
    with run.stage("count"):
        counted = counting.count_all(run.runner, view, run.progress)
    with run.stage("cover"):
        run.progress("cover", agree_sets=len(counted.sets.masks))
        begun = Covers.begun(view.columns, range(view.columns), counted.sets.masks)
        return with_counted(run, replace(table, counted=counted), begun.to)


def with_counted(run: Run, table: Table, change: Callable[[Limits, Tick], Covers]) -> Table:
    """The table with covers of counted dependencies, as far as there is time for them."""
    depth = Deepening(table.limits, run.time, deepening.COUNTED)
    covers = depth.attempt(table.limits, change)
    while (deeper := depth.deeper(covers)) is not None:
        covers = deeper
    limits = table.limits.within(covers.limits)
    return replace(table, covers=table.covers.joined(covers), limits=limits)


def _discover_from_sample(run: Run, table: Table) -> Table:
    """SWAN's holistic mode: profile the first segment, then apply the others as inserts."""
    start, rest = table.segments[:1], table.segments[1:]
    table = discover_rows(run, replace(table, segments=start))
    table = upkeep.index(run.runner, table, run.place, run.options, run.progress)
    for segment in rest:
        with run.stage("index"):
            table = replace(table, segments=(*table.segments, segment))
            table = upkeep.index(run.runner, table, run.place, run.options, run.progress)
        added = table.segments[-1:]
        table = validated(run, table, table.covers, added, witnessed_depth(run, table))
    return table


def validated(
    run: Run, table: Table, old: Covers, added: tuple[Segment, ...], depth: Deepening
) -> Table:
    """The table with its witnessed covers made exact again, and its duplicates counted; ``old``
    is what held before the rows were added."""
    view = table.view(run.store.path, run.options)
    learned = loop.Learned(view, table.evidence, table.covers.only(table.sides))
    with run.stage("validate"):
        loop.validate(
            run.runner, learned, table.distinct, run.place.prefix, run.progress, depth,
            old=old.only(table.sides).minimal, batch=added, indexed=table.indexed,
        )  # fmt: skip
    twins: dict[int, int] = {}
    for parcel in learned.twins:
        pairs = zip(parcel.arrays["twin_of"].tolist(), parcel.arrays["twin"].tolist(), strict=True)
        twins.update(pairs)
    duplicates = table.duplicates + len(twins)
    # The batch's own first: they are what is shown of it.
    repeated = [*([twin, id_] for id_, twin in twins.items()), *table.repeated][:4]
    if duplicates and not repeated:
        with run.stage("duplicates"):
            results = run.runner.run(loop.duplicate_calls(run.runner, view))
            repeated = [pair for r in results for p in r for pair in p.facts["pairs"]][:4]
    return replace(
        table,
        segments=learned.view.segments,
        evidence=learned.evidence,
        covers=table.covers.joined(learned.covers),
        limits=table.limits.within(learned.covers.limits),
        duplicates=duplicates,
        repeated=repeated,
    )


def estimated(run: Run, table: Table) -> Table:
    """Estimates of distinct values anew, when the table has become another size."""
    if table.estimated_at / 2 <= table.rows <= 2 * table.estimated_at or not table.rows:
        return table
    view = table.view(run.store.path, run.options)
    calls = [
        (upkeep_tasks.describe, upkeep_tasks.Describe(share))
        for share in shares(view, run.runner.tasks)
    ]
    parcels = [parcel for result in run.runner.run(calls) for parcel in result]
    return replace(table, distinct=upkeep_tasks.estimate(parcels), estimated_at=table.rows)


def discover_values(run: Run, tables: dict[str, Table]) -> Inclusion | None:
    """The values of all tables together, if inclusion dependencies are looked for."""
    if "inds" not in run.options.kinds:
        return None
    with run.stage("values"):
        none = Inclusion.none({name: table.columns for name, table in tables.items()})
        rows = [Change(table, table.segments) for table in tables.values()]
        found = inclusion_changes.changed(
            run.runner, none, rows, run.place, run.options, run.progress
        )
        found = inclusion_changes.with_tuples(
            tuples_of(run, tables, {}), found, {}, None, run.progress
        )
        return inclusion_storage.save(run.store, run.lease, found, None)


def tuples_of(run: Run, tables: dict[str, Table], others: dict[str, Any]) -> Search:
    """All tables as sets of tuples; of those that did not change only the forms are known."""
    rows = {
        name: Rows(
            Columns.from_dict(form["columns"]), tuple(map(Segment.from_dict, form["segments"]))
        )
        for name, form in others.items()
    }
    rows |= {name: Rows(table.columns, table.segments) for name, table in tables.items()}
    return Search(run.runner, run.place, run.options, rows)
