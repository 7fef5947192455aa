"""Quarantine: a batch without the rows that break rules, and files of those rows.

Every row that a batch brings and that takes part in a violation of a rule which breaks goes; rows
of the table never do. An update that goes leaves the old row as it was. When no new row takes part,
deletes (and updates) go that take away what rows of the table refer to. What is left is looked at
again, until nothing breaks: what goes can leave others without what they refer to. A rule about a
whole table may break all the same: no row does that, and the batch is refused.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from urllib.parse import quote

import numpy as np

from holdfast.input.row_input import Columns
from holdfast.kernels.arrays import I64
from holdfast.model.commits import SideRecord
from holdfast.model.errors import InputError
from holdfast.model.expectations import ExpectationChange, Quarantine
from holdfast.model.lazily import Lazily
from holdfast.rules.expectations import Expected
from holdfast.rules.form import Clashes, RuleForm
from holdfast.rules.question import Question
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.store.files import sync_directory
from holdfast.store.quarantine import pending_name, reveal, withdraw
from holdfast.table.batch import Batch, BatchIntake, change_rows, without
from holdfast.table.change import RowChange, TableRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import quarantine as tasks
from holdfast.tasks import tuples as tuple_tasks
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.segments import Segment
from holdfast.values.tuples import tuples_of

_NOBODY = np.empty(0, np.int64)

_FILES = {"csv": "csv", "json": "json", "orc": "orc"}
"""The formats that are written as they came; all others are Parquet."""


@dataclass(frozen=True)
class Sifted:
    """What a batch does, or what is left of it, and the rows that go."""

    changes: Sequence[RowChange]
    expected: Expected
    left_out: tuple[LeftOut, ...] = ()


@dataclass(frozen=True)
class LeftOut:
    """Rows of one kind of change that go, each by a rule, and rows that they clash with."""

    table: str
    kind: str  # inserts, deletes, updates or upserts
    columns: Columns
    segments: tuple[Segment, ...]
    ids: I64
    rules: I64  # the places of their rules
    clashes: I64  # -1: there is none
    shelves: tuple[tasks.Shelf, ...]  # where these lie, of each rule


def sifted(
    run: Run, before: Expected, intakes: Mapping[str, BatchIntake], tables: Lazily[Table]
) -> Sifted:
    """A batch without the rows that break rules whose severity is an error."""
    left_out: list[LeftOut] = []
    intakes = dict(intakes)
    while True:
        changes = change_rows(run, [(tables[name], intake) for name, intake in intakes.items()])
        now = tables | {change.after.name: change.after for change in changes}
        with run.stage("expectations"):
            after = before.change(run, changes, now)
        stopping = [
            place
            for place, standing in enumerate(after.standings)
            if ExpectationChange(before.standings[place], standing).stops
        ]
        with run.stage("quarantine"):
            going = list(_left_out(run, after, stopping, intakes, changes, now))
            left_out += going
            if not going:
                if not run.options.keep_rows:
                    changes = [_without_raw(change) for change in changes]
                return Sifted(changes, after, tuple(left_out))
            for name, intake in intakes.items():
                ids = [rows.ids for rows in going if rows.table == name]
                if ids:
                    intakes[name] = without(run, tables[name], intake, _positions(ids))


def _positions(ids: Sequence[I64]) -> dict[int, I64]:
    every = np.concatenate(ids)
    return {
        int(number): every[every >> 32 == number] & 0xFFFFFFFF for number in np.unique(every >> 32)
    }


def _without_raw(change: RowChange) -> RowChange:
    """The same without the raw rows, which were kept for the quarantine alone."""
    new = {segment.number for segment in change.added}
    added = tuple(replace(segment, raw=None) for segment in change.added)
    old = tuple(segment for segment in change.after.segments if segment.number not in new)
    return replace(change, added=added, after=replace(change.after, segments=(*old, *added)))


def _left_out(
    run: Run,
    after: Expected,
    stopping: Sequence[int],
    intakes: Mapping[str, BatchIntake],
    changes: Sequence[RowChange],
    tables: Mapping[str, Table],
) -> Iterator[LeftOut]:
    """The rows that go now: new ones, or else those that take something away."""
    question = after.question(run, tables)
    by_table = {change.after.name: change for change in changes}
    breaking: dict[tuple[str, int], Clashes] = {}
    for find in (_new_rows, _taken_away):
        for name, change in by_table.items():
            for place in stopping:
                clashes = find(question, after.forms[place], change, intakes[name])
                if clashes is not None and len(clashes.ids):
                    breaking[name, place] = clashes
        if breaking:
            break
    # Rows that are taken away clash with rows of the table that they break the rule of.
    shelves = tuple(
        tasks.Shelf(tables[form.table].segments, tables[form.table].columns.names)
        for form in after.forms
    )
    for name, change in by_table.items():
        places = np.array([p for p in stopping if (name, p) in breaking], np.int64)
        of_table = [breaking[name, place] for place in places.tolist()]
        ids, clashing = (
            np.concatenate([_NOBODY, *(clashes[which] for clashes in of_table)]) for which in (0, 1)
        )
        rules = np.repeat(places, [len(clashes.ids) for clashes in of_table])
        # A row that breaks several rules goes by the first of them.
        _, first = np.unique(ids, return_index=True)
        for kind, columns, segments in _kinds(change.after.columns, intakes[name]):
            of_kind = first[np.isin(ids[first] >> 32, [s.number for s in segments])]
            if len(of_kind):
                yield LeftOut(
                    name, kind, columns, segments, ids[of_kind], rules[of_kind],
                    clashing[of_kind], shelves,
                )  # fmt: skip


def _kinds(
    columns: Columns, intake: BatchIntake
) -> Iterator[tuple[str, Columns, tuple[Segment, ...]]]:
    """The kinds of changes of a batch, with their segments."""
    asked = {segment.number for request in intake.requests for segment in request.segments}
    yield "inserts", columns, tuple(s for s in intake.added if s.number not in asked)
    for request in intake.requests:
        yield f"{request.what}s", request.own, request.segments


def _new_rows(
    question: Question, form: RuleForm, change: RowChange, _intake: BatchIntake
) -> Clashes | None:
    """The rows of the batch that take part in violations of a rule."""
    if form.table != change.after.name or not change.arrived.count:
        return None
    return form.taking_part(question, change.arrived)


def _taken_away(
    question: Question, form: RuleForm, change: RowChange, intake: BatchIntake
) -> Clashes | None:
    """The requests of the batch that take away rows which others need, and one of those others
    each."""
    taken = form.taken_away(question, change)
    if taken is None:
        return None
    ids, of = _asking(question.run, intake, change, taken.ids)
    return Clashes(ids, taken.with_rows[of])


def _asking(run: Run, intake: BatchIntake, change: RowChange, taken: I64) -> tuple[I64, I64]:
    """The ids of all requests that mean rows which were taken away, and which of these it is."""
    rows = TableRows.at(change.before, taken)
    table = replace(change.before, segments=rows.segments)
    calls: list[Call] = []
    for request in intake.requests:
        own = replace(table, columns=request.own, segments=request.segments)
        sides = (
            (rows, change.before.columns, request.columns),
            (TableRows(own, request.segments), request.own, request.places),
        )
        meant, asked = (
            tuples_of(run, side, [_whole(columns, places)]) for side, columns, places in sides
        )
        calls += [
            (tuple_tasks.requests_for, tuple_tasks.RequestsFor(replace(asked, view=view), meant))
            for view in shares(asked.view, run.runner.tasks)
        ]
    results = run_all(run.runner, calls)
    ids, meant_ids = (
        np.concatenate([_NOBODY, *(result.arrays[name] for result in results)])
        for name in ("ids", "taken")
    )
    _, first = np.unique(ids, return_index=True)
    order = np.argsort(taken)
    of: I64 = order[np.searchsorted(taken, meant_ids[first], sorter=order)]
    return ids[first], of


def _whole(columns: Columns, places: tuple[int, ...]) -> SideRecord:
    """Some columns of rows, in which a null is a value."""
    return SideRecord(0, "", tuple(columns.names[c] for c in places), True, None)


# Files


@contextmanager
def written(
    run: Run,
    folder: str | None,
    left_out: Sequence[LeftOut],
    expected: Expected,
    batches: Mapping[str, Batch],
) -> Iterator[dict[str, Quarantine]]:
    """With files of the rows that go, in the format in which they came, written by tasks; how many
    rows they are, by table. They have their names once a version is committed, and are removed
    where none is."""
    if folder is None or not left_out:
        yield {}
        return
    texts = tuple(standing.rule for standing in expected.standings)
    calls: list[Call] = []
    quarantined: dict[str, Quarantine] = {}
    files: list[Path] = []
    for rows in left_out:
        known = quarantined.get(rows.table, Quarantine(0, {}, {}, ()))
        rules = Counter(texts[place] for place in rows.rules.tolist())
        source = batches[rows.table].source(rows.kind)
        form = _FILES.get(source.source.format, "parquet")
        layout = tasks.Layout(
            form, rows.columns.names, source.lines or Dialect(), source.header or form != "csv"
        )
        names = []
        for segment in rows.segments:
            of_segment = np.flatnonzero(rows.ids >> 32 == segment.number)
            if not len(of_segment):
                continue
            stem = f"{quote(rows.table, safe='')}-{run.lease.version + 1}-{run.lease.run}"
            names.append(f"{stem}-{rows.kind}-{len(files) + 1}.{form}")
            files.append(Path(folder, pending_name(names[-1])))
            item = tasks.Write(
                run.store.path, segment, rows.ids[of_segment] - segment.base,
                rows.rules[of_segment], rows.clashes[of_segment], texts, rows.shelves, layout,
                str(files[-1]),
            )  # fmt: skip
            calls.append((tasks.write, item))
        quarantined[rows.table] = Quarantine(
            known.rows + len(rows.ids),
            dict(Counter(known.kinds) + Counter({rows.kind: len(rows.ids)})),
            dict(Counter(known.rules) + rules),
            (*known.files, *names),
        )
    lease = run.lease
    lease.quarantines(folder)
    try:
        run.runner.run(calls)
        _settled(folder, files)
        yield quarantined
    finally:
        if not lease.undecided:
            # An interrupt may have come after the commit, before it was known here.
            done = lease.committed is not None or run.store.committed_by(
                lease.version + 1, lease.run
            )
            (reveal if done else withdraw)(folder, lease.run)


def _settled(folder: str, files: Sequence[Path]) -> None:
    """See that the driver, which gives files their names, has what workers wrote."""
    missing = [path for path in files if not path.exists()]
    if missing:
        raise InputError(
            f"{missing[0]}: workers have written quarantined rows there, but the driver does not "
            "see them; name a folder that the driver and all workers see"
        )
    try:
        sync_directory(folder)
    except OSError as error:
        raise InputError(
            f"{folder}: quarantined rows cannot be written there ({error.strerror or error})"
        ) from error


def expect_possible(expected: Expected, tables: Iterable[Table], folder: str) -> None:
    """See that there is something to go by, and that the files can have their columns."""
    if not expected:
        raise InputError(
            "--quarantine leaves out the rows that break expected rules, and none is expected; "
            "declare some with holdfast expect"
        )
    tables = tuple(tables)
    for table in tables:
        if table.columns.concealed:
            raise InputError(
                "--quarantine keeps the rows that it leaves out, and this profile keeps no values "
                "(--no-values); use --strict, or leave them out of the batch"
            )
    for table, name in product(tables, (tasks.RULE, tasks.CLASH)):
        if name in table.columns.names:
            raise InputError(
                f"table {table.name!r} has a column {name!r}, which files of quarantined rows have "
                "for themselves; rename it"
            )
    if Path(folder).exists() and not Path(folder).is_dir():
        raise InputError(f"{folder}: this is not a folder, so it cannot have quarantined rows")
