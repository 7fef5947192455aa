"""Profiling: rows become segments, pairs and values become evidence; from nothing, or, for kinds of
constraints that a profile does not look for yet, from the rows that it holds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeVar

from holdfast.evidence import pairs
from holdfast.flow import near
from holdfast.flow.commits import publish, said
from holdfast.input.reading import read
from holdfast.input.row_input import RowInput
from holdfast.kinds import registry
from holdfast.kinds.table_state import TableState, bounded
from holdfast.model import concealment, thresholds
from holdfast.model.commits import Commit
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.report.snapshot import snapshot_of
from holdfast.rules.near import NearSearchResult
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.runtime.together import Work, side_by_side
from holdfast.store import CONCEALED, Store
from holdfast.table import columns, compaction
from holdfast.table.batch import estimated
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.values.composite import Keys
from holdfast.values.state import ValueState

T = TypeVar("T")


def profile(
    runner: Runner,
    store: Store,
    row_inputs: Mapping[str, RowInput],
    options: Options,
    progress: Progress,
    secret: bytes | None = None,
) -> int:
    """Profile tables from nothing and commit them as the first version; the secret is what cells
    are hashed with where values are not kept."""
    options = registry.completed(options)
    record, key = (None, None) if options.keep_values else concealment.made(secret)
    with (
        store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        if record is not None:
            store.require(CONCEALED)
        runs: dict[str, Run] = {}

        def first(runner: Runner, name: str) -> TableState:
            run = runs[name] = Run(runner, store, options, lease, about(progress, name), key=key)
            with bounded(name):
                of_table = discovered(run, TableState(_read(run, name, row_inputs[name])))
                return of_table.save(run, None)

        known = by_table(runner, row_inputs, first, options)
        expect_options(options, known)
        run = Run(runner, store, options, lease, progress)
        version = said(run, known, with_values(run, known), Commit(secret=record))
        version = with_near_rules(run, runs, known, version)
        seconds = {name: each.seconds for name, each in runs.items()}
        version = replace(version, seconds=seconds, values_seconds=run.seconds)
        number = publish(store, lease, version)
    store.clean()
    return number


def extend(
    runner: Runner,
    store: Store,
    kinds: Sequence[str],
    asked: Mapping[str, Any],
    progress: Progress,
) -> int:
    """Look for further kinds of constraints in the rows that a profile holds, with these options;
    the version that has them, or the current one if it has them all."""
    with (
        store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        before = store.read(lease.version)
        if set(kinds) <= set(before.options.kinds):
            return before.version
        names = [kind.name for kind in registry.named({*before.options.kinds, *kinds})]
        options = replace(before.options, kinds=names, **asked)
        runs: dict[str, Run] = {}
        loaded = {name: TableState.load(store, before, name) for name in before.tables}
        expect_options(options, loaded)

        def further(runner: Runner, name: str) -> TableState:
            run = runs[name] = Run(runner, store, options, lease, about(progress, name))
            with bounded(name):
                return discovered(run, loaded[name]).save(run, loaded[name])

        known = by_table(runner, before.tables, further, options)
        run = Run(runner, store, options, lease, progress)
        if before.inclusion is None:
            held = with_values(run, known)
        else:
            loaded_values = ValueState.load(store, before.inclusion)
            held = loaded_values.with_keys(run, *tables_and_keys(options, known))
            held = held.save(run, loaded_values)
        kept = Commit(
            tables=before.tables,
            expectations=before.expectations,
            tuples=before.tuples,
            secret=before.secret,
        )
        version = said(run, known, held, kept)
        version = with_near_rules(run, runs, known, version)
        number = publish(store, lease, version)
    store.clean()
    return number


def by_table(
    runner: Runner, names: Iterable[str], work: Callable[[Runner, str], T], options: Options
) -> dict[str, T]:
    """Do something with every table. Side by side, so that small tables share jobs, unless each
    has a time of its own."""
    names = list(names)
    at_once = thresholds.current.tables_at_once if options.time_budget is None else 1

    def of_table(name: str) -> Work[T]:
        return lambda runner: work(runner, name)

    works = [of_table(name) for name in names]
    return dict(zip(names, side_by_side(runner, works, at_once), strict=True))


def with_near_rules(
    run: Run, runs: Mapping[str, Run], known: Mapping[str, TableState], version: Commit
) -> Commit:
    """A version with the near rules of its tables, which have the rest of each table's time."""
    names = [name for name, state in known.items() if near.is_wanted(run.options, state.table)]
    if not names:
        return version
    now = snapshot_of(run.store, version)

    def look(runner: Runner, name: str) -> NearSearchResult:
        of_table = runs[name].with_runner(runner)
        with of_table.stage("near"):
            return near.found(of_table, known[name], now)

    of_rows = by_table(run.runner, names, look, run.options)
    tables = {name: state.table for name, state in known.items()}
    with run.stage("near"):
        lists = near.listed(run, of_rows, tables, version, now, run.lease.version + 1)
        return near.with_lists(run, version, lists)


def expect_options(options: Options, known: Mapping[str, TableState]) -> None:
    """See that there is what the options name."""
    tables = {name: each.table.columns.names for name, each in known.items()}
    for kind in registry.named(options.kinds):
        kind.expect(options, tables)


def with_values(run: Run, known: Mapping[str, TableState]) -> ValueState | None:
    """The values of all tables, where a kind needs them."""
    if not any(kind.values for kind in registry.named(run.options.kinds)):
        return None
    tables, keys = tables_and_keys(run.options, known)
    values = ValueState.discover(run, tables, keys)
    return values.save(run, None)


def tables_and_keys(
    options: Options, known: Mapping[str, TableState]
) -> tuple[dict[str, Table], Keys]:
    """The tables, and their keys of two columns where what refers to these is looked for."""
    tables = {name: state.table for name, state in known.items()}
    return tables, {} if options.max_arity else {n: each.keys_of_two for n, each in known.items()}


def _read(run: Run, name: str, row_input: RowInput) -> Table:
    with run.stage("read"):
        run.progress("read")
        sketches = registry.compare_pairs(run.options.kinds)
        intake = read(run.runner, row_input, run.destination, 1, run.progress, sketches=sketches)
        run.progress("read", rows=intake.rows)
    known = tasks.estimates(intake.task_results, len(intake.columns.names))
    number = len(intake.segments) + 1
    at = intake.rows if sketches else 0
    facts = columns.records(
        intake.columns,
        columns.collected(intake.columns, intake.task_results, run.options.keep_rows),
    )
    table = Table(
        name, intake.columns, row_input.source, intake.segments, number, known.distinct, at,
        facts=facts, agreeing=known.agreeing, changed=run.lease.moment,
    )  # fmt: skip
    with run.stage("read"):
        return compaction.joined(run, table)


def discovered(run: Run, known: TableState) -> TableState:
    """With what the kinds that are looked for need of columns, and of pairs of rows, each space
    once."""
    needs: dict[str, pairs.Need] = {}
    kinds = registry.named(run.options.kinds)
    if any(kind.samples for kind in kinds):
        known = replace(known, table=columns.completed(run, known.table))
    for kind in kinds:
        need = kind.needs(run, known.table)
        if need is not None:
            other = needs.get(need.space.name, need)
            needs[need.space.name] = other.joined(need)
    missing = [need for name, need in needs.items() if not _has(known, name, need)]
    if not missing:
        return known
    table = estimated(run, known.table)
    evidence, table = pairs.discover(run, table, missing)
    return replace(known, table=table, evidence={**known.evidence, **evidence})


def _has(known: TableState, space: str, need: pairs.Need) -> bool:
    held = known.evidence.get(space)
    return held is not None and set(need.rhs) <= set(held.covers.by_rhs)
