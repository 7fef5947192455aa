"""What a user imports: a profile that is created, opened, changed and asked."""

from __future__ import annotations

import json
import logging
import os
import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import fields, replace
from itertools import accumulate
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar, overload

from holdfast.export.files import Exported
from holdfast.input.sources import Source, files_in, local_file
from holdfast.input.validation import (
    batch_by_table,
    change_rows,
    checked_batch,
    label_of,
    readable,
    rules_with_settings,
    tables_by_name,
)
from holdfast.kinds import registry
from holdfast.kinds.ranking import TableRanking, pasts_in, ranked
from holdfast.model import concealment, engine, markup
from holdfast.model.changes import BatchChanges, Changes
from holdfast.model.columns import ColumnFacts
from holdfast.model.commits import SourceRecord, TableRecord, unknown_table
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import AgreeSet, FunctionalDependency, Key, NonKey, Row
from holdfast.model.denial_constraints import DenialConstraint
from holdfast.model.errors import ConflictError, HoldfastError, InputError, StoreError
from holdfast.model.expectations import (
    Expectation,
    ExpectationChange,
    Standing,
    Suggestion,
)
from holdfast.model.explanation import EXAMPLES, Explanation
from holdfast.model.following import FeedFailure, FeedRun, FeedStatus, FeedStep
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import (
    Attribute,
    Cluster,
    ForeignKey,
    InclusionDependency,
)
from holdfast.model.keeping import Keeping
from holdfast.model.names import lacking
from holdfast.model.near import SHOWN, NearRule, Suspect, Suspects
from holdfast.model.options import Options, expect_device
from holdfast.model.ranking import Grain, Ranked
from holdfast.model.records import JsonObject
from holdfast.model.results import Results
from holdfast.model.versions import Entry, TableDiff, Verification
from holdfast.report.document import LIMIT, LOOKED_THROUGH, document, ordered_columns
from holdfast.report.snapshot import (
    Snapshot,
    TableSnapshot,
    agree_sets,
    changed_agree_sets,
    is_counted,
    snapshot,
)
from holdfast.report.versions import differences, entries
from holdfast.report.written import write_list, writer_of
from holdfast.store import Store, local_path

# Spark and the kernels are imported where they are needed, so that looking at a profile is quick.
if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from holdfast.feeds.followed import Followed
    from holdfast.flow import Asked
    from holdfast.input.change_reading import ChangeInput
    from holdfast.input.change_rows import ChangeRows
    from holdfast.input.row_input import RowInput
    from holdfast.input.validation import Batch, Readable, Rows
    from holdfast.kinds.base import Kind
    from holdfast.kinds.denial_constraints.predicate_listing import Predicates
    from holdfast.kinds.denial_constraints.reading import Denials
    from holdfast.kinds.functional_dependencies.reading import Dependencies
    from holdfast.kinds.inclusion_dependencies.reading import Inclusions
    from holdfast.report.serve import Server
    from holdfast.runtime.runner import Runner

    Session = SparkSession | Callable[[], SparkSession]

Progress = Callable[..., None]
T = TypeVar("T")

log = logging.getLogger("holdfast")


class Profile:
    """The constraints of some tables, kept in a directory.

    Rows are given as DataFrames (classic or Spark Connect), paths, :class:`Source` values, or
    tables of pandas, Polars or Arrow.
    Without a session the active one is used, or a local one is started when it is first needed; a
    function that opens one is called then, too. Work is divided into as many tasks as the session
    runs at once, or into ``parallelism`` tasks.
    With ``engine="process"`` (or ``HOLDFAST_ENGINE=process``) the work is done in this process, on
    all cores, without Spark: rows are then paths, :class:`Source` values or tables in memory.
    A profile that keeps no values needs the secret that it was made with for every batch:
    ``secret``, or what the environment says (``HOLDFAST_SECRET``, or ``HOLDFAST_SECRET_FILE``).
    """

    def __init__(
        self,
        store: Store,
        session: Session | None = None,
        progress: Progress | None = None,
        parallelism: int | None = None,
        secret: str | bytes | None = None,
        engine: str | None = None,
    ) -> None:
        _expect_parallelism(parallelism)
        self._engine = _engine(engine, session)
        self._store = store
        self._secret = secret
        self._opener: Callable[[], SparkSession] | None = None
        self._session: SparkSession | None = None
        if callable(session):
            self._opener = session
        else:
            self._session = session
        self._progress = progress or _silent
        self._parallelism = parallelism
        self._runner: Runner | None = None
        self._page: str | None = None  # where a report was written

    @classmethod
    def create(
        cls,
        path: str | os.PathLike[str],
        tables: Mapping[str, Rows] | Source | str | os.PathLike[str],
        *,
        options: Options | None = None,
        session: Session | None = None,
        progress: Progress | None = None,
        parallelism: int | None = None,
        secret: str | bytes | None = None,
        engine: str | None = None,
        **settings: Any,
    ) -> Profile:
        """Profile tables from nothing, as version 1 of a new profile directory.

        ``tables`` has the rows of each table by its name; a single path or :class:`Source` is a
        table called after its file. What is looked for, and how, are :class:`Options`, or keywords
        with their names: ``Profile.create("shop", "orders.csv", kinds=["keys"])``. With
        ``keep_values=False`` the cells are kept as hashes that are keyed with the ``secret``.
        """
        # What needs no Spark is checked first: a session takes its seconds to start.
        _expect_parallelism(parallelism)
        _engine(engine, session)
        options = registry.completed(_options(options, settings))
        key = None if options.keep_values else concealment.expected(concealment.given(secret))
        given = {
            name: readable(rows, f"table {name!r}") for name, rows in tables_by_name(tables).items()
        }
        with Store.creating(path) as store:
            profile = cls(store, session, progress, parallelism, secret, engine)
            row_inputs = {
                name: profile._row_input(rows, f"table {name!r}") for name, rows in given.items()
            }
            runner = profile._running()
            from holdfast import flow

            with profile._plain_interrupts():
                flow.profile(runner, store, row_inputs, options, profile._progress, key)
        return profile

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str],
        *,
        session: Session | None = None,
        progress: Progress | None = None,
        parallelism: int | None = None,
        secret: str | bytes | None = None,
        engine: str | None = None,
    ) -> Profile:
        """Open a profile directory."""
        return cls(Store.open(path), session, progress, parallelism, secret, engine)

    @property
    def path(self) -> str:
        """The profile directory."""
        return self._store.path

    @property
    def tables(self) -> tuple[str, ...]:
        """The names of the tables, in alphabetical order."""
        return tuple(self._store.read().tables)

    def __repr__(self) -> str:
        try:
            now = f", version {self._store.head()}: {', '.join(self.tables)}"
        except StoreError:  # what is looked at while something is wrong should not fail, too
            now = ""
        return f"<Profile {self.path!r}{now}>"

    def _repr_html_(self) -> str:
        from holdfast.report.notebook import version_in_notebook

        try:
            return version_in_notebook(self, self._page)
        except StoreError:
            return markup.code(repr(self))

    # Changing

    @overload
    def apply(
        self,
        table: str,
        *,
        inserts: Rows | None = None,
        deletes: Rows | None = None,
        updates: Rows | None = None,
        upserts: Rows | None = None,
        snapshot: Rows | None = None,
        changes: Rows | ChangeRows | None = None,
        row_key: Sequence[str] | None = None,
        op_column: str | None = None,
        op: Mapping[str, str | Sequence[str]] | None = None,
        order: Sequence[str] = (),
        debezium: bool | Mapping[str, str] = False,
        if_exists: bool = False,
        allow_shrink: bool = False,
        batch_id: str | None = None,
        retries: int = 0,
        device: str | None = None,
        strict: bool = False,
        quarantine: str | os.PathLike[str] | None = None,
        evolve: bool = False,
        keep_versions: int | None = None,
        keep_days: float | None = None,
    ) -> Changes: ...

    @overload
    def apply(
        self,
        table: Batch,
        *,
        if_exists: bool = False,
        allow_shrink: bool = False,
        batch_id: str | None = None,
        retries: int = 0,
        device: str | None = None,
        strict: bool = False,
        quarantine: str | os.PathLike[str] | None = None,
        evolve: bool = False,
        keep_versions: int | None = None,
        keep_days: float | None = None,
    ) -> BatchChanges: ...

    def apply(
        self,
        table: str | Batch,
        *,
        inserts: Rows | None = None,
        deletes: Rows | None = None,
        updates: Rows | None = None,
        upserts: Rows | None = None,
        snapshot: Rows | None = None,
        changes: Rows | ChangeRows | None = None,
        row_key: Sequence[str] | None = None,
        op_column: str | None = None,
        op: Mapping[str, str | Sequence[str]] | None = None,
        order: Sequence[str] = (),
        debezium: bool | Mapping[str, str] = False,
        if_exists: bool = False,
        allow_shrink: bool = False,
        batch_id: str | None = None,
        retries: int = 0,
        device: str | None = None,
        strict: bool = False,
        quarantine: str | os.PathLike[str] | None = None,
        evolve: bool = False,
        keep_versions: int | None = None,
        keep_days: float | None = None,
    ) -> Changes | BatchChanges:
        """Apply a batch whole, or raise and change nothing; says what was gained and lost.

        Deletes and updates refer to the rows before the batch. Deletes hold whole rows or, with
        ``row_key``, only its columns; updates hold whole new rows, each matching exactly one old
        row in ``row_key``, and upserts such rows or new ones, which are inserted. With
        ``if_exists`` deletes of rows that are not there are skipped and counted. A ``snapshot`` has
        all rows as they are now; what changed is found by comparing it with the rows of the table,
        and with less than half as many it is refused unless they are meant to go
        (``allow_shrink``). The same ``batch_id`` with the same content again changes nothing.
        ``changes`` are rows that say what happened to them, in ``op_column`` (by default
        ``_change_type``, in Spark's words; others are given by ``op``, as in ``{"insert": "I",
        "update": "U", "delete": "D"}``). With a ``row_key`` the last change of each key counts, in
        the ``order`` of these columns, of the rows of a file, or of a table in memory; without one
        the rows that came and went are added up.
        With ``debezium`` they are files of events in JSON; where no schema block explains how a
        column is written, as in ``debezium={"amount": "base64:2"}``.
        When another writer commits first, that is a :class:`ConflictError`, or the batch is tried
        again on top of that version, up to ``retries`` times. ``device`` says what this batch's
        pairs of rows are counted with, ``auto``, ``cpu`` or ``gpu``, in place of the profile's own.
        A ``strict`` batch that breaks an expected rule whose severity is an error (without
        expectations, a constraint that held) is not applied: ``refused`` says so. With a folder
        as ``quarantine`` the rows that break such a rule are left out and written there, and the
        others are applied; ``quarantined`` says how many. With ``evolve`` new columns of the source
        join the table first, null in the rows that are there, and its columns get the wider types
        that the source has: in a version of its own, which stays whatever becomes of the batch.
        With ``keep_versions`` or ``keep_days``
        older versions :meth:`expire` afterwards.

        Several tables change together, in one version: ``apply({"orders": {"inserts": new},
        "lines": {"deletes": gone, "row_key": ["id"]}})``, whose outcome has the changes of each.
        """
        if retries < 0:
            raise InputError(f"retries cannot be negative, but is {retries}")
        keeping = Keeping.of(keep_versions, keep_days)
        folder = None if quarantine is None else _folder(quarantine)
        changed = change_rows(changes, op_column, op, order, debezium)
        rows = (inserts, deletes, updates, upserts, snapshot, changed)
        batch = batch_by_table(table, rows, row_key, if_exists, allow_shrink)

        def change() -> Changes | BatchChanges:
            done = self._change(
                batch, batch_id, device=device, strict=strict, quarantine=folder, evolve=evolve
            )
            if keeping is not None:
                self._expire(keeping)
            return done.alone(table) if isinstance(table, str) else done

        for attempt in range(1, retries + 1):
            try:
                return change()
            except ConflictError as conflict:
                log.info("%s (trying again, %d of %d)", conflict, attempt, retries)
        return change()

    @overload
    def check(
        self,
        table: str,
        *,
        inserts: Rows | None = None,
        deletes: Rows | None = None,
        updates: Rows | None = None,
        upserts: Rows | None = None,
        snapshot: Rows | None = None,
        changes: Rows | ChangeRows | None = None,
        row_key: Sequence[str] | None = None,
        op_column: str | None = None,
        op: Mapping[str, str | Sequence[str]] | None = None,
        order: Sequence[str] = (),
        debezium: bool | Mapping[str, str] = False,
        if_exists: bool = False,
        allow_shrink: bool = False,
        batch_id: str | None = None,
        device: str | None = None,
    ) -> Changes: ...

    @overload
    def check(
        self,
        table: Batch,
        *,
        if_exists: bool = False,
        allow_shrink: bool = False,
        batch_id: str | None = None,
        device: str | None = None,
    ) -> BatchChanges: ...

    def check(
        self,
        table: str | Batch,
        *,
        inserts: Rows | None = None,
        deletes: Rows | None = None,
        updates: Rows | None = None,
        upserts: Rows | None = None,
        snapshot: Rows | None = None,
        changes: Rows | ChangeRows | None = None,
        row_key: Sequence[str] | None = None,
        op_column: str | None = None,
        op: Mapping[str, str | Sequence[str]] | None = None,
        order: Sequence[str] = (),
        debezium: bool | Mapping[str, str] = False,
        if_exists: bool = False,
        allow_shrink: bool = False,
        batch_id: str | None = None,
        device: str | None = None,
    ) -> Changes | BatchChanges:
        """What :meth:`apply` would do, without doing it."""
        changed = change_rows(changes, op_column, op, order, debezium)
        rows = (inserts, deletes, updates, upserts, snapshot, changed)
        batch = batch_by_table(table, rows, row_key, if_exists, allow_shrink)
        done = self._change(batch, batch_id, True, device)
        return done.alone(table) if isinstance(table, str) else done

    def follow(
        self,
        feeds: Followed | Sequence[Followed] | str | os.PathLike[str],
        *,
        forever: bool = False,
        every: float = 10.0,
        max_rows: int | None = None,
        max_files: int | None = None,
        max_versions: int | None = None,
        on_violation: str = "continue",
        quarantine: str | os.PathLike[str] | None = None,
        reset_position: bool = False,
        device: str | None = None,
        publish: str | os.PathLike[str] | None = None,
        evolve: bool = False,
        keep_versions: int | None = None,
        keep_days: float | None = None,
        told: Callable[[FeedStep | FeedFailure], None] | None = None,
        stop: threading.Event | None = None,
    ) -> FeedRun:
        """Follow feeds of changes to their heads, or ``forever``, until ``stop`` is set; or those
        of a YAML file, given by its path.

        Each step is read from the position that the profile has, at most so many rows, files or
        versions of it, and committed together with the position after it: nothing is applied twice
        or left out, whenever this is killed. ``told`` is called with each step. What a step does
        that breaks what it should not is said by ``on_violation``: ``continue`` applies it,
        ``stop`` does not and stops the feed, and ``quarantine`` leaves out the rows that break
        expected rules and writes them to the folder ``quarantine``. With ``reset_position`` feeds
        are followed from their beginning. After each version :meth:`publish` writes it to a folder;
        with ``evolve`` new columns of a feed join its table as nulls, and wider types are taken;
        with ``keep_versions`` or ``keep_days`` older ones :meth:`expire` then.
        """
        from holdfast import flow
        from holdfast.feeds.contract import Bounds

        keeping = Keeping.of(keep_versions, keep_days)
        folder = None if quarantine is None else _folder(quarantine)
        flow.expect_violations(on_violation, folder)
        if device is not None:
            expect_device(device)
        version = self._store.read()
        follower = flow.Follower(
            self._running(),
            self._store,
            self._change_input,
            self._progress,
            Bounds(max_rows, max_files, max_versions),
            on_violation,
            folder,
            concealment.given(self._secret) if version.secret else None,
            device,
            self._as_given if evolve else None,
        )

        def after(step: FeedStep | FeedFailure) -> None:
            if isinstance(step, FeedStep) and step.applied:
                if publish is not None:
                    self._published(publish)
                if keeping is not None:
                    self._expire(keeping)
            if told is not None:
                told(step)

        if publish is not None:
            self._published(publish)  # what a run before this one was killed over
        return flow.follow(
            follower,
            _feeds(feeds),
            after,
            forever=forever,
            every=every,
            reset=reset_position,
            stop=stop,
        )

    def feeds(
        self, feeds: Followed | Sequence[Followed] | str | os.PathLike[str] = ()
    ) -> Results[FeedStatus]:
        """How far the profile follows its feeds; how far it is behind is said of those that are
        given."""
        from holdfast import flow

        return Results(FeedStatus, flow.status(self._store, _feeds(feeds), self._running))

    def alter(
        self,
        table: str,
        *,
        add: Mapping[str, str] | None = None,
        drop: Sequence[str] = (),
        rename: Mapping[str, str] | None = None,
    ) -> None:
        """Change the columns of a table, in a version of its own, as in ``profile.alter("orders",
        add={"channel": "string"}, drop=["note"], rename={"amt": "amount"})``. A new column comes
        last and is null in all rows. A column that an expected rule is about stays until the rule
        is forgotten."""
        from holdfast import flow

        drop = [drop] if isinstance(drop, str) else [*drop]
        from holdfast.input.type_names import type_of

        added = {name: type_of(name, kind) for name, kind in (add or {}).items()}
        alteration = flow.Alteration(added, drop, dict(rename or {}))
        # What is wrong with it is reported before a session is started.
        flow.planned(self._store.read(), table, alteration)
        runner = self._running()
        with self._plain_interrupts():
            flow.alter(runner, self._store, table, alteration, self._progress)

    def publish(self, folder: str | os.PathLike[str]) -> int:
        """Write what holds now, how expected rules stand, and what each version changed that is not
        in the folder yet, as Parquet files, or at ``delta:PATH`` as Delta tables; says how many
        versions these were."""
        from holdfast.report.published import publish, target_at

        target = target_at(os.fspath(folder))
        version, last = self._store.head(), target.last()
        if version == last:
            return 0
        holding = json.loads(str(self.export("json", everything=True, version=version)))
        new = [each for each in entries(self._store, version - last) if each.version <= version]
        publish(target, holding, list(self.expectations(version)), new)
        return len(new)

    def _published(self, folder: str | os.PathLike[str]) -> None:
        """Publish, and log why that failed, if it did."""
        try:
            self.publish(folder)
        except (HoldfastError, OSError) as error:
            log.error("%s: not published: %s", os.fspath(folder), error)

    def verify(self) -> Verification:
        """Profile the current rows from scratch and compare."""
        from holdfast import flow

        runner = self._running()
        return self._read(lambda: flow.verify(runner, self._store, self._progress))

    def add_kinds(self, kinds: str | Sequence[str], **options: Any) -> None:
        """Look for further kinds of constraints in the rows that the profile holds, and keep them
        from now on; ``options`` are those that concern these kinds alone."""
        names = kinds.split(",") if isinstance(kinds, str) else kinds
        names = [name.strip() for name in names]
        registry.expect(names)
        now = self._store.read().options
        new = [name for name in names if name not in now.kinds]
        known = {option for kind in registry.named(new) for option in kind.options}
        if new and (others := [name for name in options if name not in known]):
            raise InputError(
                f"{others[0]} does not concern {', '.join(new)}; what does: "
                f"{', '.join(sorted(known)) or 'nothing'}"
            )
        if not new:
            return
        registry.completed(replace(now, kinds=(*now.kinds, *new), **options))
        from holdfast import flow

        runner = self._running()
        with self._plain_interrupts():
            flow.extend(runner, self._store, new, options, self._progress)

    def expect(
        self,
        *rules: str | Suggestion,
        severity: str = "error",
        max_error: float = 0.0,
        max_rows: int | None = None,
        name: str | None = None,
        file: str | os.PathLike[str] | None = None,
    ) -> Results[ExpectationChange]:
        """Expect rules to hold from now on, as in ``profile.expect("orders: key(id)")``, those of a
        YAML ``file``, or what is suggested, as in ``profile.expect(*profile.suggest())``; a rule
        that is expected already gets these settings.

        With expectations :meth:`check` and a strict :meth:`apply` are about them alone. How the
        rules stand is returned, with rows that violate those which do not hold. ``severity`` is
        ``error`` or ``warn``; ``max_error`` is the share of pairs, rows or (of an inclusion)
        distinct values that may violate a rule, and ``max_rows`` how many rows may have to go
        before it holds; give one of them.
        """
        from holdfast import flow

        wanted, where = rules_with_settings(rules, severity, max_error, max_rows, name, file)
        # What is wrong with a rule is reported before a session is started.
        flow.expected(self._store, wanted, where)
        runner = self._running()
        with self._plain_interrupts():
            changes = flow.expect(runner, self._store, wanted, self._progress)
        return Results(ExpectationChange, changes)

    def suggest(self) -> Results[Suggestion]:
        """Rules that are worth expecting, of those that hold and that nobody has declared yet: a
        few of each table, by their scores. No Spark is started."""
        return Results(Suggestion, self._suggestions(self.snapshot()))

    def _suggestions(self, snapshot: Snapshot) -> list[Suggestion]:
        from holdfast.kinds.suggested import suggested

        version = self._store.read(snapshot.version)
        return suggested(snapshot, self.ranking_of(snapshot), version)

    def expectations(self, version: int | None = None) -> Results[Standing]:
        """The rules that are expected, with how they stand now or in another version."""
        return Results(Standing, self._store.read(version).expectations)

    def forget(self, rule: str) -> Expectation:
        """Expect a rule no more: by its name, or by itself. Returns which it was."""
        from holdfast import flow

        return flow.forget(self._store, rule)

    def _change(
        self,
        batch: Batch,
        batch_id: str | None,
        dry_run: bool = False,
        device: str | None = None,
        strict: bool = False,
        quarantine: str | None = None,
        evolve: bool = False,
    ) -> BatchChanges:
        if device is not None:
            expect_device(device)
        version = self._store.read()
        # What needs no Spark is checked first, of all tables.
        secret = concealment.given(self._secret) if version.secret else None
        if version.secret:
            concealment.opened(version.secret, secret, self.path)
        checked = checked_batch(batch, version, batch_id)

        def inputs_of(table: str) -> dict[str, RowInput]:
            stored = version.table(table).source
            return {
                kind: self._row_input(rows, label_of(kind, table, batch), stored)
                for kind, rows in checked[table].changes.items()
            }

        row_inputs = {table: inputs_of(table) for table in checked}
        runner = self._running()
        from holdfast import flow

        for table, each in checked.items() if evolve else ():
            record = version.table(table)
            whole = [
                self._learned(each.changes[kind], rows, record.source)
                for kind, rows in row_inputs[table].items()
                if kind != "deletes"
            ]
            apart: Collection[str] = ()
            if each.changed is not None:
                changed = self._of_events(each.changed, table, record, each.row_key)
                whole, apart = self._as_given(changed, table, record), changed.apart
            alteration = flow.evolution(runner, self._store, version, table, whole, apart)
            if alteration is not None:
                with self._plain_interrupts():
                    flow.alter(runner, self._store, table, alteration, self._progress)
                version = self._store.read()
                row_inputs[table] = inputs_of(table)
        batches = {
            table: flow.Batch(
                **row_inputs[table],
                changed=None
                if each.changed is None
                else self._change_input(
                    self._of_events(each.changed, table, version.table(table), each.row_key),
                    table,
                    version.table(table),
                ),
                row_key=each.row_key,
                if_exists=each.if_exists,
                allow_shrink=each.allow_shrink,
                batch_id=batch_id,
            )
            for table, each in checked.items()
        }

        def run() -> BatchChanges:
            return flow.apply_together(
                runner, self._store, batches, self._progress, dry_run, device, strict, quarantine,
                secret,
            )  # fmt: skip

        if dry_run:
            return self._read(run)
        with self._plain_interrupts():
            return run()

    # Asking

    def snapshot(self, version: int | None = None) -> Snapshot:
        """Everything that a version (by default the current one) says."""
        return snapshot(self._store, version)

    def show(
        self,
        part: str | None = None,
        *,
        table: str | None = None,
        version: int | None = None,
        min_coverage: float | None = None,
        limit: int | None = None,
        everything: bool = False,
    ) -> None:
        """Print what ``holdfast show`` prints: what matters first in each table, or one ``part`` of
        it, such as ``"fds"``, of all tables or one, now or in another version; ``limit`` entries of
        each list, or ``everything``. Notebooks show the same of a profile by itself."""
        from holdfast.report.shown import short_path, version_shown
        from holdfast.screen.page import Page

        if limit is not None and (limit < 0 or everything):
            raise InputError(
                f"limit cannot be negative, but is {limit}"
                if limit < 0
                else "limit shortens lists and everything shows all of them: give only one"
            )
        shown = version_shown(
            self,
            short_path(self.path),
            None if part is None else [part],
            table=table,
            version=version,
            min_coverage=min_coverage,
            limit=limit,
            everything=everything,
        )
        shown.text(Page(sys.stdout, everything=everything, limit=limit))

    def columns(self, table: str | None = None) -> Results[ColumnFacts]:
        """What is known of each column's values: nulls, distinct values, minimum and maximum. Here
        and below the table need not be named where there is just one."""
        return Results(ColumnFacts, self._table(table).facts)

    def rank(self, table: str | None = None) -> dict[str, Results[Ranked]]:
        """The constraints about a table by their kind, those that matter most first, each with its
        score; among them rules that nearly hold, which have a ``near``."""
        ranking = self._ranking(self._name(table))
        return {kind: Results(Ranked, ranking.together(kind)) for kind in ranking.kinds}

    def grain(self, table: str | None = None) -> Grain:
        """What one row of a table stands for, and why."""
        return self._ranking(self._name(table)).grain

    def _ranking(self, table: str) -> TableRanking:
        now = self.snapshot()
        return ranked(now, [table], pasts_in(self._store, now.version))[table]

    def ranking_of(self, snapshot: Snapshot) -> dict[str, TableRanking]:
        """What matters first in every table of a snapshot."""
        return ranked(snapshot, snapshot.tables, pasts_in(self._store, snapshot.version))

    def keys(self, table: str | None = None, max_error: float = 0.0) -> Results[Key]:
        """The minimal keys of a table, shortest first.

        Where rows are duplicated, no set of columns is a key, and the list is empty; the keys of
        the distinct rows are in :meth:`snapshot`. With ``max_error`` then those that at most this
        share of row pairs agrees on; pairs of rows have to be counted for that.
        """
        now = self._table(table)
        exact = [] if now.duplicates else list(now.keys)
        if not max_error:
            return Results(Key, exact)
        if max_error == now.max_error:
            return Results(Key, [*exact, *now.approximate_keys])
        return Results(Key, [*exact, *self._within(registry.KEYS, now, max_error).approximate_keys])

    def non_keys(self, table: str | None = None) -> Results[NonKey]:
        """The maximal non-keys of a table, each with two rows that show it."""
        return Results(NonKey, self._table(table).non_keys)

    def functional_dependencies(
        self, table: str | None = None, max_error: float = 0.0
    ) -> Dependencies | Results[FunctionalDependency]:
        """The minimal functional dependencies of a table, shortest first.

        With ``max_error`` also those that at most this share of row pairs violates, and of whose
        left side no part does; pairs of rows have to be counted for that.
        """
        found: Dependencies | Results[FunctionalDependency] = self._found(
            registry.FDS, table, FunctionalDependency, max_error
        )
        return found

    def denial_constraints(
        self, table: str | None = None, max_error: float = 0.0
    ) -> Denials | Results[DenialConstraint]:
        """The minimal denial constraints of a table over two rows, order rules first.

        With ``max_error`` also those that at most this share of ordered row pairs violates; pairs
        of rows have to be counted for that.
        """
        found: Denials | Results[DenialConstraint] = self._found(
            registry.DCS, table, DenialConstraint, max_error
        )
        return found

    def _found(self, kind: Kind, table: str | None, of: type, max_error: float) -> Any:
        """What a kind finds in a table, within a bound on the error."""
        now = self._table(table)
        table = now.name
        if kind.name not in now.found:
            kinds = self._store.read().options.kinds
            raise kind.missing(kinds, table, kind.left_out(now) if kind.name in kinds else "")
        constraints = now.found[kind.name]
        if max_error == (now.max_error or 0.0):
            return constraints
        if not max_error:
            return Results(of, [constraint for constraint in constraints if not constraint.error])
        return self._within(kind, now, max_error)

    def predicates(self, table: str | None = None, *, today: bool = True) -> dict[str, Predicates]:
        """What the denial constraints of tables compare, as it was chosen at their first profile,
        and what ``today``'s rows would choose."""
        from holdfast import flow

        if table is not None:
            self._store.read().table(table)
        tables, kind = self.tables if table is None else (table,), registry.REGISTRY["dcs"]
        stored = self._store.retried(
            lambda: flow.predicates(None, self._store, kind, tables, self._progress)
        )
        if not today:
            return stored
        runner = self._running()
        return self._read(
            lambda: flow.predicates(runner, self._store, kind, tables, self._progress)
        )

    def _within(self, kind: Kind, table: TableSnapshot, max_error: float) -> Any:
        """What a kind finds in a table with another bound on the error than the profile's."""
        from holdfast import flow

        if not 0 <= max_error <= 1:
            raise InputError(f"max_error must be from 0 to 1, not {max_error}")
        self._counted(table.name, kind.space)
        sets = self._store.retried(
            lambda: flow.within(self._store, table.name, max_error, kind.space)
        )
        return kind.within(sets, table)

    def error(self, rule: str) -> float:
        """The share of row pairs that violate a rule, as in ``"people: zip -> city"``: that agree
        on the left side and differ on the right, or for ``"people: key(id)"`` that agree on it;
        for ``"people: not (t.born < s.born and t.id > s.id)"`` the share of ordered pairs, and for
        a rule about single rows, such as ``"people: not (t.born > t.died)"``, the share of rows.
        """
        from holdfast import flow

        parsed = parse(rule)
        if not registry.of(parsed).compares_rows:
            raise InputError(
                f"{parsed}: errors are those of keys, functional dependencies and denial "
                "constraints, as in 'orders: key(id)' and 'orders: zip -> city'"
            )
        self._store.read().table(parsed.tables[0])
        return self._read(lambda: flow.error(self._running, self._store, parsed, self._progress))

    def violations(self, rule: str, limit: int = 10) -> list[tuple[Row, ...]]:
        """Pairs of rows that violate a rule, at most ``limit`` of them: rows that share a key, that
        agree on a left side and differ on the right, or that satisfy all predicates of a denial
        constraint, row t first. A denial constraint about single rows has these alone, each in a
        tuple of one. Rows are as JSON output shows them, and by number where the profile keeps
        none."""
        parsed = parse(rule)
        if not registry.of(parsed).compares_rows:
            raise InputError(
                f"{parsed}: pairs of rows violate keys, functional dependencies and denial "
                "constraints, as in 'orders: key(id)' and 'orders: zip -> city'"
            )
        self._store.read().table(parsed.tables[0])
        from holdfast import flow

        runner = self._running()
        return self._read(
            lambda: flow.violations(runner, self._store, parsed, limit, self._progress)
        )

    def explain(self, rule: str, limit: int = EXAMPLES, mask: bool = False) -> Explanation:
        """All that can be said of a rule, as in ``"orders: key(customer, day)"``: whether it holds
        and since when, which rows violate it (``limit`` examples) and how many would have to go,
        what holds instead of it, and which part of it is enough. With ``mask`` the rows of examples
        have numbers in place of values."""
        parsed = parse(rule)
        if limit < 0:
            raise InputError(f"limit cannot be negative, but is {limit}")
        from holdfast import flow

        return self._read(
            lambda: flow.explain(self._running, self._store, parsed, limit, self._progress, mask)
        )

    def near(self, table: str | None = None) -> Results[NearRule]:
        """The rules of a table (by default of all) that a few rows break, the best first, at most
        20 of each table: how many rows would have to go, and how much of its right side the left
        side of a dependency explains beyond chance."""
        commit = self._store.read()
        lists = [commit.table(name).near for name in self._named(table)]
        looked_for = [near for near in lists if near is not None]
        if lists and not looked_for:
            raise InputError(
                "the profile does not look for rules that nearly hold; "
                f"holdfast add {self.path} --near makes it do so"
            )
        return Results(NearRule, [rule for near in looked_for for rule in near.listed])

    def look_for_near(self, table: str | None = None, **options: Any) -> None:
        """Look for rules that nearly hold in the rows of a table (by default of all), and keep them
        from now on; ``options`` are those that concern them, such as ``near_columns=3``."""
        known = [option.name for option in fields(Options) if option.name.startswith("near_")]
        if others := [name for name in options if name not in known]:
            raise InputError(
                f"{others[0]} does not concern rules that nearly hold; what does: "
                f"{', '.join(known)}"
            )
        replace(self._store.read().options, **options)
        from holdfast import flow

        tables, runner = self._named(table), self._running()
        with self._plain_interrupts():
            flow.look_for_near(runner, self._store, tables, options, self._progress)

    def dismiss(self, rule: str, undo: bool = False) -> None:
        """Neither list a rule as nearly holding nor suspect cells because of it any more, as in
        ``profile.dismiss("orders: city -> country")``; with ``undo`` allow it again, which counts
        from the next time that near rules are looked for."""
        from holdfast import flow

        flow.dismiss(self._store, parse(rule), undo)

    def suspects(
        self, rule: str | None = None, table: str | None = None, limit: int | None = None
    ) -> Suspects:
        """The cells that break a key, a dependency or an inclusion, as in
        ``"orders: city -> country"``, with the value that most rows of their group have, or the
        existing one that is an edit away from a missing one; without a rule, of all rules of a
        table (by default of all tables) that nearly hold. A cell scores the sum of the strengths of
        the rules that suspect it; those with the highest scores come first, ``limit`` of them."""
        from holdfast import flow

        asked, runner = self._whose_cells(rule, table, limit), self._running()
        return self._read(lambda: flow.suspects(runner, self._store, asked, self._progress))

    def write_suspects(
        self,
        path: str | os.PathLike[str],
        rule: str | None = None,
        table: str | None = None,
        limit: int | None = None,
    ) -> int:
        """Write what :meth:`suspects` returns into a file, of which there can be any number: CSV,
        JSON lines or Parquet, as the path ends (``.csv``, ``.jsonl``, ``.parquet``). Says how many
        they were."""
        from holdfast import flow

        asked = self._whose_cells(rule, table, limit)
        writer_of(Path(path))  # before a session is started
        runner = self._running()

        def write() -> int:
            with flow.streamed(runner, self._store, asked, self._progress) as (_, cells):
                return write_list(path, Suspect, cells)

        return self._read(write)

    def _whose_cells(self, rule: str | None, table: str | None, limit: int | None) -> Asked:
        """What is asked for, if that can be."""
        if limit is not None and limit < 0:
            raise InputError(f"limit cannot be negative, but is {limit}")
        if rule is not None and table is not None:
            raise InputError("give a rule or a table, not both: a rule names its table")
        from holdfast import flow

        return flow.Asked(None if rule is None else parse(rule), self._named(table), limit)

    def _named(self, table: str | None) -> list[str]:
        """One table, which the profile has, or all."""
        commit = self._store.read()
        if table is None:
            return [*commit.tables]
        commit.table(table)
        return [table]

    def agree_sets(
        self, table: str | None = None, since: int | None = None, at: int | None = None
    ) -> Results[AgreeSet]:
        """Every agree-set with its number of row pairs, shortest first, now or ``at`` a version;
        with ``since`` only those whose number changed after that version, with the change."""
        if since is not None and at is not None:
            raise InputError("give since or at, not both")
        table = self._name(table)
        self._counted(table)
        if since is not None:
            return Results(AgreeSet, changed_agree_sets(self._store, table, since))
        return Results(AgreeSet, agree_sets(self._store, table, at))

    def counts_pairs(self, table: str | None = None) -> bool:
        """Whether all pairs of a table's rows are counted, so that it has agree-sets."""
        return is_counted(self._store.read().table(self._name(table)))

    def _counted(self, table: str, space: str = AGREEMENTS) -> None:
        """See that a table has counted pairs."""
        if not is_counted(self._store.read().table(table), space):
            raise InputError(
                f"the profile does not count the pairs of rows of {table!r}; "
                "profile it with --kinds keys,fds --evidence counted"
            )

    def inclusion_dependencies(
        self, min_coverage: float | None = None
    ) -> Results[InclusionDependency]:
        """Which columns of all tables are contained in which, the highest coverage first.

        ``min_coverage`` asks also for those of whose distinct values such a share is contained;
        without it, what the profile was created with, which is 1 unless given.
        """
        return Results(InclusionDependency, self._inclusions(min_coverage).dependencies())

    def foreign_keys(self, min_coverage: float | None = None) -> Results[ForeignKey]:
        """Inclusions in a minimal key of another table, the likeliest first."""
        return Results(ForeignKey, self._inclusions(min_coverage).foreign_keys())

    def clusters(self) -> Results[Cluster]:
        """The sets of columns that have values in common which no other column has, with how
        many: every value belongs to one. Those of most values first."""
        self._inclusions()
        return Results(Cluster, registry.INDS.clusters(self._store))

    def missing_values(
        self, dependent: Attribute | str, referenced: Attribute | str, limit: int | None = 100
    ) -> list[Any]:
        """Distinct values of one column that do not occur in another, at most ``limit`` of them.

        A column is an :class:`Attribute`, as :meth:`foreign_keys` has them, or text such as
        ``"orders.customer_id"``. Values are as JSON output shows them, and rows by number where
        the profile keeps no rows.
        """
        self._inclusions()
        pair = Attribute.of(dependent), Attribute.of(referenced)
        from holdfast import flow

        runner = self._running()
        return self._read(
            lambda: flow.missing_values(runner, self._store, *pair, limit, self._progress)
        )

    def _inclusions(self, min_coverage: float | None = None) -> Inclusions:
        now = self.snapshot()
        if min_coverage is not None:
            now = now.asked_with({"min_coverage": min_coverage})
        if now.inclusions is None:
            raise registry.INDS.missing(now.options["kinds"])
        return now.inclusions

    def export(
        self,
        to: str,
        *,
        dialect: str = "spark",
        everything: bool = False,
        tables: Sequence[str] | None = None,
        namespace: Sequence[str] = (),
        create: bool = False,
        version: int | None = None,
    ) -> Exported:
        """The constraints of a version in the form of another tool: ``sql``, ``queries`` (that
        find violations), ``dbt``, ``gx``, ``soda``, ``odcs``, ``mermaid``, ``markdown``, ``json``.

        What is expected and holds, and what is suggested, or ``everything`` that holds, of all
        ``tables`` or some; without either the grain of each table, and foreign keys. SQL is in a
        ``dialect``, with tables in a ``namespace`` such as ``["main", "sales"]``; with ``create``
        it makes them, too. ``str`` of the result is its text, ``write`` stores it.
        """
        from holdfast.export import contract_of, exported

        name, now = Path(self.path).name, self.snapshot(version)
        wanted = [
            each.expectation
            for each in self.expectations(now.version)
            if each.violations == 0 or (each.holds and each.expectation.max_rows)
        ]
        wanted += [
            Expectation(each.rule, max_rows=each.max_rows) for each in self._suggestions(now)
        ]
        chosen = contract_of(
            now,
            name,
            everything=everything,
            tables=tables,
            namespace=namespace,
            chosen=[each.constraint for each in wanted],
            bounds={each.constraint: each.max_rows for each in wanted if each.max_rows},
        )
        return exported(chosen, to, dialect, create=create)

    def history(self) -> list[Entry]:
        """Every version, oldest first."""
        return entries(self._store)

    def expire(self, keep_versions: int | None = None, keep_days: float | None = None) -> int:
        """Let old versions be there no more, and remove what only they need; the oldest version
        that is left. The last ``keep_versions`` stay, and those that were the last one at some time
        in the last ``keep_days`` days."""
        keeping = Keeping.of(keep_versions, keep_days)
        if keeping is None:
            raise InputError("say what stays: keep_versions, keep_days, or both")
        return self._store.expire(keeping)

    def _expire(self, keeping: Keeping) -> None:
        """After a commit, which stands whatever becomes of older versions."""
        try:
            self._store.expire(keeping)
        except StoreError as error:
            log.warning("versions do not expire: %s", error)

    def diff(self, one: int, two: int) -> dict[str, TableDiff]:
        """What was gained and lost between two versions, per table."""
        return differences(self.snapshot(one), self.snapshot(two))

    def document(
        self, *, limit: int | None = LIMIT, values: bool = True, version: int | None = None
    ) -> dict[str, Any]:
        """All that the report page shows, as a JSON object: at most ``limit`` constraints of each
        list (None: all), and without ``values`` no cell of the data. No Spark is started."""
        return self._store.retried(lambda: self._document(limit, values, version))

    def _document(self, limit: int | None, values: bool, version: int | None) -> JsonObject:
        now = self.snapshot(version)
        entries = [entry for entry in self.history() if entry.version <= now.version]
        columns = ordered_columns(now, limit) if values else {}
        points = {}
        if columns:
            from holdfast import flow
            from holdfast.runtime.runner import InProcess

            # A few rows of files that the driver sees: that is no work for a cluster.
            points = flow.points(InProcess(), self._store, columns, now.version)
        suspects = self._suspects_on_page(now) if values else {}
        name = Path(self.path).name or self.path
        return document(
            name,
            now,
            entries,
            limit=limit,
            points=points,
            values=values,
            ranking=self.ranking_of(now),
            expectations=self.expectations(now.version),
            suspects=suspects,
        )

    def _suspects_on_page(self, now: Snapshot) -> dict[str, Suspects]:
        """The first suspects of tables in the last version, those with the least work first; none
        where there are no rows to show."""
        from holdfast import flow
        from holdfast.runtime.runner import InProcess

        if now.version != self._store.head() or not now.options["keep_rows"]:
            return {}
        near = [each for each in now.tables.values() if each.near_rules]
        work = sorted((table.rows * len(table.near_rules), table.name) for table in near)
        sums = accumulate(rows for rows, _ in work)
        asked = [
            flow.Asked(None, [name], SHOWN, now.version)
            for (_, name), rows in zip(work, sums, strict=True)
            if rows <= LOOKED_THROUGH
        ]
        return {
            each.tables[0]: flow.suspects(InProcess(), self._store, each, self._progress)
            for each in asked
        }

    def report(
        self,
        file: str | os.PathLike[str] | None = None,
        *,
        limit: int | None = LIMIT,
        values: bool = True,
    ) -> str:
        """Write the report, one HTML file that needs nothing else, and tell its path; without a
        ``file`` it is called after the profile, in the current folder.

        At most ``limit`` constraints of each list are in it (None: all), and without ``values`` no
        cell of the data. A file that is no report is overwritten only if it is named.
        """
        from holdfast.report.page import page, write

        self._progress("report")
        text = page(self.document(limit=limit, values=values))
        written = write(text, self.path, file)
        self._page = str(Path(written).absolute())
        return written

    def serve(
        self,
        host: str = "127.0.0.1",
        port: int = 8400,
        *,
        limit: int | None = LIMIT,
        values: bool = True,
        ready: Callable[[str], None] | None = None,
    ) -> None:
        """Serve the report as a page that follows the profile, until an interrupt; ``ready`` is
        called with its address. It only reads, and takes a token wherever it can be reached from
        elsewhere."""
        self._server(host, port, limit, values).run(ready)

    def _server(self, host: str, port: int, limit: int | None, values: bool) -> Server:
        from holdfast.report import forms
        from holdfast.report.serve import Answers, Server

        def shown(most: int | None) -> JsonObject:
            now = self.snapshot()
            return forms.show(now, limit=most, ranking=self.ranking_of(now))

        answers = Answers(
            version=self._store.head,
            document=lambda: self.document(limit=limit, values=values),
            diff=lambda one, two: forms.diff(one, two, self.diff(one, two)),
            show=shown if values else None,
            history=(lambda: forms.history(self.history())) if values else None,
        )
        return Server(answers, host, port)

    def sizes(self) -> dict[str, int]:
        """Bytes of the current version by kind of file."""
        return self._store.sizes()

    def _table(self, name: str | None) -> TableSnapshot:
        tables = self.snapshot().tables
        return tables[_meant(name, tables)]

    def _name(self, table: str | None) -> str:
        return _meant(table, self._store.read().tables)

    # Running

    def _running(self) -> Runner:
        if self._runner is None and self._engine == engine.PROCESS:
            from holdfast.process.runner import in_threads

            self._runner = in_threads(self._parallelism)
        if self._runner is None:
            from holdfast.spark.runner import SparkRunner

            self._runner = SparkRunner(self._spark(), self._parallelism)
        return self._runner

    def _plain_interrupts(self) -> AbstractContextManager[None]:
        """Between Spark's jobs, too, an interrupt is Python's own and leaves the caller's jobs
        alone."""
        if self._engine == engine.PROCESS:
            return nullcontext()
        from holdfast.spark.jobs import plain_interrupts

        return plain_interrupts()

    def _read(self, work: Callable[[], T]) -> T:
        """What work on a version's files says; again when they gave way to a newer one's."""
        with self._plain_interrupts():
            return self._store.retried(work)

    def _spark(self) -> SparkSession:
        if self._session is None:
            if self._opener is None:
                from holdfast.spark.session import open_session

                self._opener = open_session
            self._session = self._opener()
        return self._session

    def _of_events(
        self, changes: ChangeRows, table: str, record: TableRecord, row_key: tuple[str, ...]
    ) -> ChangeRows:
        """Change rows, if need be from files of events."""
        if changes.events is None:
            return changes
        from holdfast.feeds import events
        from holdfast.feeds.contract import EventForm, Given
        from holdfast.input.change_reading import no_changes
        from holdfast.input.row_input import Columns

        assert isinstance(changes.rows, Source)
        files = [str(path) for path in files_in(local_file(changes.rows.path).absolute())]
        columns = Columns.stored(record.columns)
        form = EventForm(changes.events)
        given = Given(table, columns, row_key, events=form, run=self._running().run)
        found, _ = events.changes(files, [given], {})
        return found[table] or no_changes(columns)

    def _change_input(self, changes: ChangeRows, table: str, record: TableRecord) -> ChangeInput:
        """Change rows to be read. Files that tasks can read are; Spark reads everything else, whose
        rows have no order."""
        from holdfast.input.change_reading import ChangeInput, can_read
        from holdfast.input.row_input import Columns
        from holdfast.runtime.runner import Parts

        columns, stored, rows = Columns.stored(record.columns), record.source, changes.rows
        if isinstance(rows, Parts):
            return ChangeInput.of_parts(changes, rows, f"the changes of {table!r}", columns)
        if isinstance(rows, Source):
            rows = (rows,)
        if isinstance(rows, tuple) and all(can_read(source, stored) for source in rows):
            return ChangeInput.of_files(changes, rows, stored, columns)
        if isinstance(rows, tuple):
            if len(rows) > 1:
                raise InputError(f"{rows[0].path}: give one source of changes, not {len(rows)}")
            return ChangeInput(changes, self._row_input(rows[0], rows[0].path, stored), False)
        ordered = not hasattr(rows, "mapInArrow")
        row_input = self._row_input(rows, f"the changes of {table!r}", stored)
        return ChangeInput(changes, row_input, ordered)

    def _as_given(self, changes: ChangeRows, table: str, record: TableRecord) -> list[RowInput]:
        """Change rows with all the columns that they have."""
        from holdfast.input.change_reading import ChangeInput
        from holdfast.input.row_input import Columns
        from holdfast.runtime.runner import Parts

        rows, label = changes.rows, f"the changes of {table!r}"
        stored = replace(record.source, schema=None)
        if changes.given is not None:
            return [changes.given(self._running())]
        if isinstance(rows, Parts):
            columns = Columns.stored(record.columns)
            return [ChangeInput.as_given(changes, rows, label, columns)]
        sources = rows if isinstance(rows, tuple) else (rows,)
        return [
            self._row_input(each, each.path if isinstance(each, Source) else label, stored)
            for each in sources
        ]

    def _learned(self, rows: Readable, given: RowInput, stored: SourceRecord) -> RowInput:
        """Rows with all the columns that they have: records of JSON are read for them."""
        if not (given.is_json and isinstance(rows, Source)):
            return given
        return self._row_input(rows, given.label, replace(stored, schema=None))

    def _row_input(
        self, rows: Readable, label: str, stored: SourceRecord | None = None
    ) -> RowInput:
        from holdfast.runtime.compiling import noted

        with noted(self._progress):
            return self._read_by_engine(rows, label, stored)

    def _read_by_engine(self, rows: Readable, label: str, stored: SourceRecord | None) -> RowInput:
        if self._engine == engine.PROCESS:
            from holdfast.process.source import from_rows

            return from_rows(self._running(), rows, label, stored)
        if isinstance(rows, Source):
            from holdfast.spark.source import from_source

            return from_source(self._spark(), rows, stored)
        from holdfast.spark.source import from_arrow, from_frame

        if not hasattr(rows, "mapInArrow"):
            rounds = stored is not None and stored.round_nanoseconds
            return replace(from_arrow(self._spark(), rows, label), rounds=rounds)
        if self._session is None:
            # The caller's DataFrame knows its session, which may not be the active one.
            self._session = rows.sparkSession
        return from_frame(rows, label)


def _meant(table: str | None, tables: Collection[str]) -> str:
    """The table that is named, or the only one."""
    if table is None and len(tables) == 1:
        (table,) = tables
    if table is None:
        raise InputError(f"say which table: the profile has {', '.join(tables)}")
    if table not in tables:
        raise unknown_table(table, tables)
    return table


def _engine(given: str | None, session: Session | None) -> str:
    """The engine to use: whoever gives a session wants Spark."""
    if session is None:
        return engine.chosen(given)
    if given is not None and engine.chosen(given) == engine.PROCESS:
        raise InputError("give a session or engine='process', not both: it runs without Spark")
    return engine.SPARK


def _options(options: Options | None, settings: dict[str, Any]) -> Options:
    """The options of a new profile: a value, or keywords."""
    if options is not None and settings:
        raise InputError(f"give options or {next(iter(settings))}, not both: it is one of them")
    known = [option.name for option in fields(Options) if "help" in option.metadata]
    for name in settings:
        if name not in known:
            raise InputError(lacking("a profile", "option", name, known))
    return Options(**settings) if options is None else options


def _expect_parallelism(tasks: int | None) -> None:
    if tasks is not None and tasks < 1:
        raise InputError(f"parallelism must be a number of tasks, 1 or more, not {tasks}")


def _feeds(feeds: Followed | Sequence[Followed] | str | os.PathLike[str]) -> list[Followed]:
    """Feeds to follow, perhaps from a file."""
    from holdfast.feeds import followed

    if isinstance(feeds, str | os.PathLike):
        return followed.read(feeds)
    return [feeds] if isinstance(feeds, followed.Followed) else list(feeds)


def _folder(path: str | os.PathLike[str]) -> str:
    """A folder that workers write to, which may have been started in another one."""
    try:
        return str(Path(local_path(path)).absolute())
    except StoreError as error:
        raise InputError(
            f"{os.fspath(path)}: quarantined rows are written to a folder that the driver and all "
            "executors see, such as a mounted one"
        ) from error


def _silent(_stage: str, **_facts: Any) -> None:
    pass
