"""Profiling from nothing: rows become segments, pairs and values become evidence."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast import families
from holdfast.evidence.pairs import PairEvidence
from holdfast.families.inclusion_dependencies import values
from holdfast.families.known import Known, bounded
from holdfast.flow.commits import commit
from holdfast.input.reading import read
from holdfast.input.row_input import RowInput
from holdfast.model.limits import Limits
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.store import Store
from holdfast.store.run import Run, about, watched
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.runner import Runner


def profile(
    runner: Runner,
    store: Store,
    row_inputs: Mapping[str, RowInput],
    options: Options,
    progress: Progress,
) -> int:
    """Profile tables from nothing and commit them as the first version."""
    options = families.completed(options)
    with (
        store.writing() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        known: dict[str, Known] = {}
        seconds: dict[str, dict[str, float]] = {}
        for name, row_input in row_inputs.items():
            run = Run(runner, store, options, lease, about(progress, name))
            with bounded(name):
                known[name] = _discover(run, _read(run, name, row_input)).saved(run, None)
            seconds[name] = run.seconds
        run = Run(runner, store, options, lease, progress)
        found = None
        if "inds" in options.kinds:
            found = values.discover(run, {name: each.table for name, each in known.items()})
            found = values.saved(run, found, None)
        facts = {"seconds": seconds, "values_seconds": run.seconds}
        version = commit(run, known, {}, found, None, facts)
    store.clean()
    return version


def _read(run: Run, name: str, row_input: RowInput) -> Table:
    with run.stage("read"):
        run.progress("read")
        sketches = families.compare_pairs(run.options.kinds)
        intake = read(run.runner, row_input, run.place, 1, run.progress, sketches=sketches)
        run.progress("read", rows=intake.rows)
    distinct = tasks.estimate(intake.task_results) or [0.0] * len(intake.columns.names)
    number = len(intake.segments) + 1
    return Table(
        name, intake.columns, row_input.source, intake.segments, number, distinct, intake.rows
    )


def _discover(run: Run, table: Table) -> Known:
    if not families.compare_pairs(run.options.kinds):
        return Known(table)
    pairs, table = PairEvidence.discover(run, table, Limits.both(run.options.max_columns))
    return Known(table, pairs)
