"""The whole flow, top to bottom: discover a profile, apply a batch to it, ask it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from holdfast.evidence import counted as counting
from holdfast.evidence.strategy import COUNTED
from holdfast.families.inclusion_dependencies import compaction as inclusion_compaction
from holdfast.families.inclusion_dependencies import missing as inclusion_missing
from holdfast.families.inclusion_dependencies import storage as inclusion_storage
from holdfast.flow.batches import Batch, changed, changed_values, read_batch
from holdfast.flow.commits import commit, saved
from holdfast.flow.differences import changes_of, inclusion_changes
from holdfast.flow.discovery import discover_table, discover_values
from holdfast.flow.verify import verify
from holdfast.input.row_input import Columns, Feed
from holdfast.kernels.cover import MOST, TooMany
from holdfast.model.changes import Changes
from holdfast.model.constraints import Attribute
from holdfast.model.errors import BatchError, InputError, SchemaError, UnknownTableError
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.store import Store
from holdfast.store.run import Place, Run, about
from holdfast.table import compaction as upkeep
from holdfast.table import state
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.runner import Runner

__all__ = ["Batch", "apply", "discover", "error", "missing_values", "verify", "within"]


def discover(
    runner: Runner,
    store: Store,
    feeds: Mapping[str, Feed],
    options: Options,
    progress: Progress,
) -> int:
    """Profile tables from nothing and commit them as the first version."""
    with store.writing() as lease:
        tables = {}
        seconds: dict[str, dict[str, float]] = {}
        for name, feed in feeds.items():
            run = Run(runner, store, options, lease, about(progress, name))
            with _bounded(name):
                tables[name] = discover_table(run, name, feed)
            seconds[name] = run.seconds
        run = Run(runner, store, options, lease, progress)
        values = discover_values(run, tables)
        facts = {"seconds": seconds, "values_seconds": run.seconds}
        version = commit(store, lease, options, tables, {}, values, None, facts)
    store.clean()
    return version


def apply(
    runner: Runner,
    store: Store,
    name: str,
    batch: Batch,
    progress: Progress,
    dry_run: bool = False,
) -> Changes:
    """Apply a batch to a table whole, or not at all; or only say what it would do."""
    with store.writing() as lease:
        # What this builds on is the version that the lease names, not one that was read before.
        body = store.read(lease.version)
        options = Options.from_dict(body["options"])
        if name not in body["tables"]:
            raise UnknownTableError(
                f"the profile has no table {name!r}; it has {', '.join(body['tables'])}"
            )
        if options.insert_only and (batch.deletes is not None or batch.updates is not None):
            raise BatchError(
                f"table {name!r}: this profile was made with --insert-only and counts no values, "
                "so it takes inserts only; profile the tables anew without it to delete or update"
            )
        run = Run(runner, store, options, lease, about(progress, name))
        with run.stage("open"):
            before = state.load(store, name, body["tables"][name])
            values = (
                inclusion_storage.load(store, body["inclusion"]) if "inclusion" in body else None
            )
        with run.stage("read"):
            intake = read_batch(run, before, batch)
        digest = intake.digest
        done = store.find_batch(name, batch.batch_id, digest) if batch.batch_id else None
        if done is not None and not dry_run:
            return replace(Changes.from_dict(store.read(done["version"])["changes"]), applied=False)
        with _bounded(name):
            after, gone = changed(run, before, intake)
        others = body["tables"]
        values_after = changed_values(run, values, before, after, others, intake, gone)
        with run.stage("witnesses"):
            changes = changes_of(run, before, after, batch, intake, body["version"], dry_run)
            changes = replace(changes, **inclusion_changes(values, values_after, options))
        if dry_run:
            return changes
        after = replace(after, segments=tuple(s for s in after.segments if s.live))
        if upkeep.due(after.segments):
            with run.stage("merge"):
                after = upkeep.merge(run.runner, after, run.place, options, run.progress)
        if values_after is not None and inclusion_compaction.due(values_after.runs):
            with run.stage("merge"):
                values_after = inclusion_compaction.merged(
                    run.runner, values_after, run.place, options, run.progress
                )
        with run.stage("commit"):
            run.progress("commit")
            after = saved(run, after, before)
            if values_after is not None:
                values_after = inclusion_storage.save(store, lease, values_after, values)
            told = {"table": name, "id": batch.batch_id, "digest": digest}
            changes = replace(changes, version=body["version"] + 1, seconds=run.seconds)
            tables = {name: after}
            commit(
                store, lease, options, tables, body["tables"], values_after, told,
                {"changes": changes.to_dict()},
            )  # fmt: skip
    store.clean()
    return changes


@contextmanager
def _bounded(name: str) -> Iterator[None]:
    """A table with more minimal sets than anybody can hold is an error that says what to do."""
    try:
        yield
    except TooMany:
        raise InputError(
            f"table {name!r} has more than {MOST:,} minimal keys, or left sides of one column; "
            "search only for short ones, e.g. --max-columns 3"
        ) from None


def error(
    running: Callable[[], Runner], store: Store, name: str, left: tuple[str, ...], right: str | None
) -> float:
    """The share of row pairs that agree on the left and differ on the right, or agree at all."""
    with store.reading() as lease:
        body = store.read(lease.version)
        options = Options.from_dict(body["options"])
        form = body["tables"][name]
        columns = Columns.from_dict(form["columns"])
        places = tuple(sorted({columns.place(each, name) for each in left}))
        sides = {*places} if right is None else {*places, columns.place(right, name)}
        pairs = form["rows"] * (form["rows"] - 1) // 2
        if not pairs:
            return 0.0
        wanted = (places,) if right is None else (places, tuple(sorted(sides)))
        if form["evidence"]["way"] == COUNTED:
            sets = counting.load_sets(store, form["files"]["agree"], len(columns.names))
            found = [sets.agreeing(each) for each in wanted]
        else:
            table = state.load(store, name, form)
            found = counting.agreeing(running(), table.view(store.path, options), wanted)
        return float((found[0] - sum(found[1:])) / pairs)


def within(store: Store, name: str, max_error: float) -> pa.Table:
    """All dependencies of a counted table, and approximate keys, within a bound on the error."""
    with store.reading() as lease:
        body = store.read(lease.version)
        options = replace(Options.from_dict(body["options"]), max_error=max_error)
        table = state.load(store, name, body["tables"][name])
        assert table.counted is not None
        return counting.dependencies(table.covers, table.counted.sets, options)


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
        body = store.read(lease.version)
        options = Options.from_dict(body["options"])
        if "inclusion" not in body:
            raise InputError(
                "the profile does not look for inclusion dependencies; "
                "profile the tables with --kinds keys,inds"
            )
        held = inclusion_storage.load(store, body["inclusion"])
        for each in (dependent, referenced):
            if each.table not in body["tables"]:
                has = ", ".join(body["tables"])
                raise UnknownTableError(f"the profile has no table {each.table!r}; it has {has}")
            if each not in held.attributes:
                mine = [str(other) for other in held.attributes if other.table == each.table]
                raise SchemaError(f"there is no column {each}; there are {', '.join(mine)}")
        families = [held.families[held.attributes.index(each)] for each in (dependent, referenced)]
        if families[0] != families[1]:
            raise SchemaError(
                f"{dependent} has values of the kind {families[0]} and {referenced} of the kind "
                f"{families[1]}, which are never equal"
            )
        table = state.load(store, dependent.table, body["tables"][dependent.table])
        progress("values", table=dependent.table)
        place = Place(store.path, "", options.keep_rows)
        pair = (dependent, referenced)
        ids = inclusion_missing.missing(runner, held, table, pair, most, place, options)
        names = table.columns.names
        text = rows_as_text(store.path, table.segments, names, ids)
        rows = [json.loads(text[id_]) for id_ in ids.tolist()]
        return [row.get(dependent.column, row) for row in rows]
