"""The whole flow, top to bottom: discover a profile, apply a batch to it, verify it."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast import counting, inclusion, loop, state, upkeep
from holdfast.changes import Changes, Lost, Verification
from holdfast.constraints import Attribute, FunctionalDependency, InclusionDependency, Key, Row
from holdfast.cover.cover import Cover
from holdfast.cover.evidence import Evidence
from holdfast.deletes import Requests, find_rows, with_deleted
from holdfast.errors import BatchError, InputError, SchemaError, UnknownTableError
from holdfast.feed import Columns, Feed, fitted
from holdfast.inclusion import Change, Inclusion
from holdfast.kernels import bitsets
from holdfast.options import Options
from holdfast.placement import Progress, shares
from holdfast.reading import Intake, Place, read
from holdfast.runner import Runner
from holdfast.state import Table
from holdfast.store import Lease, Store, disk_errors
from holdfast.tasks import check as check_tasks
from holdfast.tasks import upkeep as upkeep_tasks
from holdfast.tasks.segments import Segment
from holdfast.tuples import Batch as TupleBatch
from holdfast.tuples import Rows, Search
from holdfast.witnesses import rows_as_text

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_SHOWN_LOST = 100
"""Lost keys whose witness rows a commit keeps; the rest are named without rows."""


@dataclass(frozen=True)
class Batch:
    """Changes to one table, as feeds."""

    inserts: Feed | None = None
    deletes: Feed | None = None
    updates: Feed | None = None
    row_key: tuple[str, ...] = ()
    batch_id: str | None = None


@dataclass
class Run:
    """One run over a profile: where it works, and how long its stages took."""

    runner: Runner
    store: Store
    options: Options
    lease: Lease
    progress: Progress
    seconds: dict[str, float] = field(default_factory=dict)

    @property
    def place(self) -> Place:
        """Where this run writes."""
        return Place(self.store.path, f"data/*-{self.lease.run}-", self.options.keep_rows)

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time a stage."""
        started = time.perf_counter()
        with disk_errors(self.store.path):
            yield
        taken = time.perf_counter() - started
        self.seconds[name] = round(self.seconds.get(name, 0.0) + taken, 4)


# Discover


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
            run = Run(runner, store, options, lease, _about(progress, name))
            tables[name] = _discover_table(run, name, feed)
            seconds[name] = run.seconds
        run = Run(runner, store, options, lease, progress)
        values = _discover_values(run, tables)
        facts = {"seconds": seconds, "values_seconds": run.seconds}
        version = _commit(store, lease, options, tables, {}, values, None, facts)
    store.clean()
    return version


def _discover_table(run: Run, name: str, feed: Feed) -> Table:
    with run.stage("read"):
        run.progress("read")
        intake = read(run.runner, feed, run.place, 1, run.progress, sketches=True)
        run.progress("read", rows=intake.rows)
    if "fds" in run.options.kinds:
        counting.check_size(name, intake.rows, len(intake.columns.names), run.runner)
    distinct = upkeep_tasks.estimate(intake.parcels) or [0.0] * len(intake.columns.names)
    table = _fresh(name, feed, intake, distinct, run.options)
    if not run.options.seeks_keys:
        return _saved(run, table, None)
    if run.options.start == "sample":
        table = _discover_from_sample(run, table)
    else:
        table = _discover_rows(run, table)
    with run.stage("index"):
        table = upkeep.index(run.runner, table, run.place, run.options, run.progress)
    if "fds" in run.options.kinds:
        with run.stage("count"):
            view = table.view(run.store.path, run.options)
            counted = counting.count_all(run.runner, view, run.options, run.progress)
            table = replace(table, counted=counted)
    return _saved(run, table, None)


def _discover_values(run: Run, tables: dict[str, Table]) -> Inclusion | None:
    """The values of all tables together, if inclusion dependencies are looked for."""
    if "inds" not in run.options.kinds:
        return None
    with run.stage("values"):
        none = Inclusion.none({name: table.columns for name, table in tables.items()})
        rows = [Change(table, table.segments) for table in tables.values()]
        found = inclusion.changed(run.runner, none, rows, run.place, run.options, run.progress)
        found = inclusion.with_tuples(_tuples(run, tables, {}), found, {}, None, run.progress)
        return inclusion.save(run.store, run.lease, found, None)


def _tuples(run: Run, tables: dict[str, Table], others: dict[str, Any]) -> Search:
    """All tables as sets of tuples; of those that did not change only the forms are known."""
    rows = {
        name: Rows(
            Columns.from_dict(form["columns"]), tuple(map(Segment.from_dict, form["segments"]))
        )
        for name, form in others.items()
    }
    rows |= {name: Rows(table.columns, table.segments) for name, table in tables.items()}
    return Search(run.runner, run.place, run.options, rows)


def _fresh(name: str, feed: Feed, intake: Intake, distinct: list[float], options: Options) -> Table:
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
        Cover.build(atoms, none.masks, options.max_columns),
        0,
        [],
    )


def _discover_rows(run: Run, table: Table) -> Table:
    """Everything about the living rows of a table, from nothing but them."""
    view = table.view(run.store.path, run.options)
    learned = loop.Learned(view, table.evidence, copy(table.cover))
    with run.stage("sample"):
        run.progress("sample")
        samples = loop.sample_calls(run.runner, view)
        counts = loop.duplicate_calls(run.runner, view)
        results = run.runner.run([*samples, *counts])
        learned.learn([p for result in results[: len(samples)] for p in result])
        counted = [p.facts for result in results[len(samples) :] for p in result]
    with run.stage("search"):
        loop.validate(run.runner, learned, table.distinct, run.place.prefix, run.progress)
    return replace(
        table,
        segments=learned.view.segments,
        evidence=learned.evidence,
        cover=learned.cover,
        duplicates=sum(facts["duplicates"] for facts in counted),
        repeated=[pair for facts in counted for pair in facts["pairs"]][:4],
    )


def _discover_from_sample(run: Run, table: Table) -> Table:
    """SWAN's holistic mode: profile the first segment, then apply the others as inserts."""
    start, rest = table.segments[:1], table.segments[1:]
    table = _discover_rows(run, replace(table, segments=start))
    table = upkeep.index(run.runner, table, run.place, run.options, run.progress)
    for segment in rest:
        with run.stage("index"):
            table = replace(table, segments=(*table.segments, segment))
            table = upkeep.index(run.runner, table, run.place, run.options, run.progress)
        added = table.segments[-1:]
        table = _validated(run, table, table.cover.minimal, added)
    return table


# Apply


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
        run = Run(runner, store, options, lease, _about(progress, name))
        with run.stage("open"):
            before = state.load(store, name, body["tables"][name], options)
            values = inclusion.load(store, body["inclusion"]) if "inclusion" in body else None
        with run.stage("read"):
            intake = _read_batch(run, before, batch)
        digest = intake.digest
        done = store.find_batch(name, batch.batch_id, digest) if batch.batch_id else None
        if done is not None and not dry_run:
            return replace(Changes.from_dict(store.read(done["version"])["changes"]), applied=False)
        after, gone = _changed(run, before, intake)
        others = body["tables"]
        values_after = _changed_values(run, values, before, after, others, intake, gone)
        with run.stage("witnesses"):
            changes = _changes(run, before, after, batch, intake, body["version"], dry_run)
            changes = replace(changes, **_inclusion_changes(values, values_after, options))
        if dry_run:
            return changes
        after = replace(after, segments=tuple(s for s in after.segments if s.live))
        if upkeep.due(after.segments):
            with run.stage("merge"):
                after = upkeep.merge(run.runner, after, run.place, options, run.progress)
        if values_after is not None and inclusion.due(values_after.runs):
            with run.stage("merge"):
                values_after = inclusion.merged(
                    run.runner, values_after, run.place, options, run.progress
                )
        with run.stage("commit"):
            run.progress("commit")
            after = _saved(run, after, before)
            if values_after is not None:
                values_after = inclusion.save(store, lease, values_after, values)
            told = {"table": name, "id": batch.batch_id, "digest": digest}
            changes = replace(changes, version=body["version"] + 1, seconds=run.seconds)
            tables = {name: after}
            _commit(
                store, lease, options, tables, body["tables"], values_after, told,
                {"changes": changes.to_dict()},
            )  # fmt: skip
    store.clean()
    return changes


@dataclass(frozen=True)
class _BatchIntake:
    """The batch as segments."""

    added: tuple[Segment, ...]
    inserted: int
    updated: int
    requests: tuple[Requests, ...]
    digest: str

    @property
    def deleted(self) -> int:
        return sum(r.rows for r in self.requests) - self.updated


def _read_batch(run: Run, table: Table, batch: Batch) -> _BatchIntake:
    """Write the batch's rows beside the table's; nothing refers to them before the commit."""
    run.progress("read")
    number = table.next_number
    names = dict.fromkeys(batch.row_key)
    key = tuple(table.columns.place(name, table.name) for name in names)
    everything = tuple(range(len(table.columns.names)))
    added: tuple[Segment, ...] = ()
    requests: list[Requests] = []
    digests: list[str] = []
    inserted = updated = 0
    if batch.inserts is not None:
        feed = fitted(batch.inserts, table.name, table.columns)
        intake = read(run.runner, feed, run.place, number, run.progress, table.indexed)
        added, inserted = intake.segments, intake.rows
        digests.append(f"inserts={intake.fingerprint}")
    if batch.updates is not None:
        if not key:
            raise BatchError("updates need --row-key: the columns that tell which row is meant")
        feed = fitted(batch.updates, table.name, table.columns)
        intake = read(run.runner, feed, run.place, number + len(added), run.progress, table.indexed)
        added += intake.segments
        updated = intake.rows
        requests.append(Requests("update", feed.label, table.columns, intake.segments, key, key))
        digests.append(f"updates={intake.fingerprint}")
    if batch.deletes is not None:
        whole = set(table.columns.names) <= set(batch.deletes.columns.names)
        wanted = table.columns if whole or not key else table.columns.pick(list(key))
        feed = fitted(batch.deletes, table.name, wanted)
        place = replace(run.place, keep_rows=True)
        intake = read(run.runner, feed, place, number + len(added), run.progress)
        columns = key or everything
        places = columns if wanted is table.columns else tuple(range(len(columns)))
        requests.append(Requests("delete", feed.label, wanted, intake.segments, columns, places))
        digests.append(f"deletes={intake.fingerprint}")
    if not digests:
        raise BatchError("an empty batch: give inserts, deletes or updates")
    if batch.row_key:
        digests.append(f"key={json.dumps(batch.row_key)}")
    return _BatchIntake(added, inserted, updated, tuple(requests), " ".join(digests))


def _changed(run: Run, before: Table, intake: _BatchIntake) -> tuple[Table, I64]:
    """The table after the batch, deletes first, then what the new rows bring; and which rows it
    lost."""
    table = before
    old = before.cover.minimal
    gone = np.empty(0, np.int64)
    if intake.requests:
        with run.stage("locate"):
            run.progress("locate", rows=sum(r.rows for r in intake.requests))
            view = table.view(run.store.path, run.options)
            found = find_rows(run.runner, view, table.name, intake.requests)
            table = with_deleted(run.store, run.lease, table, found)
            gone = found.ids
    table = replace(
        table,
        segments=table.segments + intake.added,
        next_number=table.next_number
        + sum(len(r.segments) for r in intake.requests)
        + len(intake.added),
    )
    if not run.options.seeks_keys:
        return replace(table, duplicates=0), gone
    table = _validated(run, table, old, intake.added)
    if table.counted is not None:
        counting.check_size(table.name, table.rows, len(table.columns.names), run.runner)
        with run.stage("count"):
            counted = counting.count_batch(
                run.runner, table.counted, table.view(run.store.path, run.options),
                intake.added, before.segments, gone, run.progress,
            )  # fmt: skip
            table = replace(table, counted=counted)
    table = _estimated(run, table)
    with run.stage("index"):
        return upkeep.index(run.runner, table, run.place, run.options, run.progress), gone


def _changed_values(
    run: Run,
    values: Inclusion | None,
    before: Table,
    after: Table,
    others: dict[str, Any],
    intake: _BatchIntake,
    gone: I64,
) -> Inclusion | None:
    """The values after the batch: merged with those of the new rows, the deleted ones extracted."""
    if values is None:
        return None
    with run.stage("values"):
        rows = [Change(after, intake.added), inclusion.gone(before, gone)]
        found = inclusion.changed(run.runner, values, rows, run.place, run.options, run.progress)
        came, went = (Rows(each.table.columns, each.segments, each.ids) for each in rows)
        return inclusion.with_tuples(
            _tuples(run, {after.name: after}, others), found, values.tuples,
            TupleBatch(after.name, came, went), run.progress,
        )  # fmt: skip


def _validated(run: Run, table: Table, old: U64, added: tuple[Segment, ...]) -> Table:
    """The table with its cover made exact again, and its duplicates counted."""
    view = table.view(run.store.path, run.options)
    learned = loop.Learned(view, table.evidence, copy(table.cover))
    with run.stage("validate"):
        loop.validate(
            run.runner, learned, table.distinct, run.place.prefix, run.progress,
            old=old, batch=added, indexed=table.indexed,
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
        cover=learned.cover,
        duplicates=duplicates,
        repeated=repeated,
    )


def _estimated(run: Run, table: Table) -> Table:
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


# What changed


def _changes(
    run: Run,
    before: Table,
    after: Table,
    batch: Batch,
    intake: _BatchIntake,
    version: int,
    dry_run: bool,
) -> Changes:
    old, new = before.cover.minimal, after.cover.minimal
    lost = old[~bitsets.is_member(old, new)]
    gained = new[~bitsets.is_member(new, old)]
    names = before.columns.names
    ends = [(mask, after.evidence.against(mask)) for mask in lost]
    shown = [at for _, at in ends if at >= 0][:_SHOWN_LOST]
    pairs = after.evidence.witnesses[shown][:, 0] if shown else np.empty((0, 2), np.int64)
    twice = after.repeated[0] if after.duplicates > before.duplicates else []
    ids = np.concatenate([np.ravel(pairs), np.array(twice, np.int64)])
    text = rows_as_text(run.store.path, after.segments, names, ids)
    told = []
    left = _SHOWN_LOST
    for mask, at in ends:
        key = _key(mask, names)
        if at < 0:
            # It holds, but not as a minimal one: a gained key lies inside it.
            smaller = gained[((gained & ~mask) == 0).all(axis=1)]
            told.append(Lost(key, replaced_by=_key(smaller[0], names)))
        else:
            told.append(Lost(key, _pair(after.evidence, at, text) if left > 0 else None))
            left -= 1
    kept = bitsets.is_member(before.evidence.masks, after.evidence.masks).sum()
    return Changes(
        table=before.name,
        version=version,
        batch_id=batch.batch_id,
        applied=not dry_run,
        inserted=intake.inserted,
        deleted=intake.deleted,
        updated=intake.updated,
        rows=after.rows,
        gained=tuple(_key(mask, names) for mask in gained),
        lost=tuple(told),
        non_keys_gained=int(len(after.evidence.masks) - kept),
        non_keys_lost=int(len(before.evidence.masks) - kept),
        duplicates=after.duplicates,
        duplicates_before=before.duplicates,
        duplicated=tuple(json.loads(text[id_]) for id_ in twice[:1]),
        seconds=run.seconds,
        **_dependency_changes(before, after),
    )


def _dependency_changes(before: Table, after: Table) -> dict[str, Any]:
    """The functional dependencies that came and went: how many, and the shortest of them."""
    if before.counted is None or after.counted is None:
        return {}
    names = before.columns.names
    sides: dict[str, list[FunctionalDependency]] = {"gained": [], "lost": []}
    counts = {"gained": 0, "lost": 0}
    covers = zip(before.counted.dependencies.covers, after.counted.dependencies.covers, strict=True)
    for right, (old, new) in zip(names, covers, strict=True):
        if old is new:
            continue
        for side, mine, others in (("gained", new, old), ("lost", old, new)):
            masks = mine.minimal[~bitsets.is_member(mine.minimal, others.minimal)]
            counts[side] += len(masks)
            some = masks[:_SHOWN_LOST]
            sides[side] += [FunctionalDependency(_key(m, names).columns, right) for m in some]
    told: dict[str, Any] = {f"fds_{side}": count for side, count in counts.items()}
    for side, found in sides.items():
        shortest = sorted(found, key=lambda each: len(each.lhs))[:_SHOWN_LOST]
        told[f"dependencies_{side}"] = tuple(shortest)
    return told


def _inclusion_changes(
    before: Inclusion | None, after: Inclusion | None, options: Options
) -> dict[str, Any]:
    """The inclusion dependencies that came and went, whatever their coverage was."""
    if before is None or after is None or before is after:
        return {}
    lists: list[dict[Any, InclusionDependency]] = [
        {each.sides: each for each in inclusion.dependencies(values, options)}
        for values in (before, after)
    ]
    old, new = lists
    return {
        "inclusions_gained": tuple(each for sides, each in new.items() if sides not in old),
        "inclusions_lost": tuple(each for sides, each in old.items() if sides not in new),
    }


def _pair(evidence: Evidence, at: int, text: dict[int, str]) -> tuple[Row, Row]:
    one, two = (json.loads(text[int(id_)]) for id_ in evidence.witnesses[at, 0])
    return one, two


def _key(mask: U64, names: tuple[str, ...]) -> Key:
    return Key(tuple(names[c] for c in bitsets.to_columns(mask[None, :])[0]))


# Commit


def _saved(run: Run, table: Table, before: Table | None) -> Table:
    """Write the table's files, with the rows that are shown as witnesses."""
    changed = before is None or not np.array_equal(
        before.evidence.witnesses, table.evidence.witnesses
    )
    ids = table.evidence.witnesses[:, 0].ravel() if changed else np.empty(0, np.int64)
    text = rows_as_text(run.store.path, table.segments, table.columns.names, ids)
    return state.save(run.store, run.lease, run.options, table, before, text)


def _commit(
    store: Store,
    lease: Lease,
    options: Options,
    tables: dict[str, Table],
    others: dict[str, Any],
    values: Inclusion | None,
    batch: dict[str, Any] | None,
    facts: dict[str, Any],
) -> int:
    forms = dict(others)
    for name, table in tables.items():
        form = table.to_dict()
        twice = np.array(table.repeated[0][:1] if table.repeated else [], np.int64)
        shown = rows_as_text(store.path, table.segments, table.columns.names, twice)
        form["duplicated"] = [json.loads(text) for text in shown.values()]
        form["key_count"] = len(table.cover.minimal) if options.seeks_keys else 0
        if table.counted is not None:
            covers = table.counted.dependencies.covers
            form["fd_count"] = sum(len(cover.minimal) for cover in covers)
        forms[name] = form
    files, keep = [], []
    for form in forms.values():
        keep += [form[name] for name in ("keys", "fds", "recount") if name in form]
        files += [form[n] for n in ("keys", "evidence", *counting.COUNTED_FILES) if n in form]
        for segment in form["segments"]:
            files += Segment.from_dict(segment).files
    if values is not None:
        facts = {**facts, "inclusion": inclusion.to_dict(values)}
        files += values.data_files
        keep += [values.files[name] for name in ("inclusions", "tuples") if name in values.files]
    body = {
        "options": options.to_dict(),
        "tables": forms,
        "files": files,
        "keep": keep,
        "batch": batch,
        **facts,
    }
    return store.publish(body, lease)


# Ask


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
        held = inclusion.load(store, body["inclusion"])
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
        table = state.load(store, dependent.table, body["tables"][dependent.table], options)
        progress("values", table=dependent.table)
        place = Place(store.path, "", options.keep_rows)
        pair = (dependent, referenced)
        ids = inclusion.missing(runner, held, table, pair, most, place, options)
        names = table.columns.names
        text = rows_as_text(store.path, table.segments, names, ids)
        rows = [json.loads(text[id_]) for id_ in ids.tolist()]
        return [row.get(dependent.column, row) for row in rows]


# Verify


def verify(runner: Runner, store: Store, progress: Progress) -> Verification:
    """Profile the current rows from scratch and compare."""
    with store.writing() as lease:
        body = store.read(lease.version)
        options = Options.from_dict(body["options"])
        kept: dict[str, Table] = {}
        differences: dict[str, list[str]] = {}
        for name, form in body["tables"].items():
            run = Run(runner, store, options, lease, _about(progress, name))
            kept[name] = state.load(store, name, form, options)
            differences[name] = list(_verify_table(run, kept[name]))
        if "inclusion" in body and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            held = inclusion.load(store, body["inclusion"])
            for name, sentence in _verify_values(run, held, kept):
                differences[name].append(sentence)
    found = {name: tuple(sentences) for name, sentences in differences.items()}
    return Verification(body["version"], found)


def _verify_values(
    run: Run, kept: Inclusion, tables: dict[str, Table]
) -> Iterator[tuple[str, str]]:
    """What is wrong with the values, and with which table's."""
    rows = [Change(table, table.segments) for table in tables.values()]
    fresh = inclusion.changed(run.runner, kept.emptied, rows, run.place, run.options, run.progress)
    fresh = inclusion.with_tuples(_tuples(run, tables, {}), fresh, {}, None, run.progress)
    yield from inclusion.differences(run.runner, kept, fresh, run.place)


def _verify_table(run: Run, kept: Table) -> Iterator[str]:
    view = kept.view(run.store.path, run.options)
    run.progress("verify", rows=kept.rows)
    calls = [
        (check_tasks.check, check_tasks.Check(share, kept.columns.schema))
        for share in shares(view, run.runner.tasks)
    ]
    wrong = [line for r in run.runner.run(calls) for p in r for line in p.facts["wrong"]]
    if wrong:
        # What else would be found comes from damaged files.
        yield from wrong
        return
    if not run.options.seeks_keys:
        return
    atoms = len(kept.columns.names)
    none = Evidence.none(atoms)
    cover = Cover.build(atoms, none.masks, run.options.max_columns)
    anew = _discover_rows(run, replace(kept, evidence=none, cover=cover))
    names = kept.columns.names
    pairs = [("key", kept.cover.minimal, anew.cover.minimal)]
    if run.options.max_columns is None:
        pairs.append(("non-key", kept.evidence.masks, anew.evidence.masks))
    for what, mine, fresh in pairs:
        for mask in mine[~bitsets.is_member(mine, fresh)]:
            yield f"the profile has the {what} {_key(mask, names)}, which the rows do not"
        for mask in fresh[~bitsets.is_member(fresh, mine)]:
            yield f"the rows have the {what} {_key(mask, names)}, which the profile lacks"
    real = kept.evidence.witnesses[:, :, 0] >= 0
    shown = check_tasks.Witnesses(
        view, kept.evidence.masks[real.nonzero()[0]], kept.evidence.witnesses[real]
    )
    for parcel in run.runner.run([(check_tasks.check_witnesses, shown)])[0]:
        if parcel.facts["wrong"]:
            yield f"{parcel.facts['wrong']} pairs of rows do not show the non-key they stand for"
    if kept.counted is not None:
        recounted = counting.count_all(run.runner, view, run.options, run.progress)
        yield from _compare_counts(kept.counted, recounted, names)
    if kept.duplicates != anew.duplicates:
        yield f"the profile counts {kept.duplicates} repeated rows, but there are {anew.duplicates}"


def _compare_counts(
    kept: counting.Counted, fresh: counting.Counted, names: tuple[str, ...]
) -> Iterator[str]:
    same = np.array_equal(kept.sets.masks, fresh.sets.masks)
    if not same or not np.array_equal(kept.sets.counts, fresh.sets.counts):
        yield "the profile's agree-sets or their numbers of pairs are not those of the rows"
    covers = zip(kept.dependencies.covers, fresh.dependencies.covers, strict=True)
    for right, (mine, theirs) in zip(names, covers, strict=True):
        for mask in mine.minimal[~bitsets.is_member(mine.minimal, theirs.minimal)]:
            yield f"the profile has {_key(mask, names)} → {right}, which the rows do not"
        for mask in theirs.minimal[~bitsets.is_member(theirs.minimal, mine.minimal)]:
            yield f"the rows have {_key(mask, names)} → {right}, which the profile lacks"


def _about(progress: Progress, table: str) -> Progress:
    def report(stage: str, **facts: Any) -> None:
        progress(stage, table=table, **facts)

    return report
