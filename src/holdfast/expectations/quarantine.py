"""Quarantine: a batch without the rows that break rules, and files of those rows.

Every row that a batch brings and that takes part in a violation of a rule which breaks goes; rows
of the table never do. An update that goes leaves the old row as it was. When no new row takes part,
deletes (and updates) go that take away what rows of the table refer to. What is left is looked at
again, until nothing breaks: what goes can leave others without what they refer to.
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

from holdfast.expectations import pairs, state
from holdfast.expectations.state import Expected
from holdfast.expectations.tuples import cells_of
from holdfast.expectations.violating import orphans, sides_of, taking_part, with_codes
from holdfast.input.row_input import Columns, RowInput
from holdfast.kernels.arrays import I64
from holdfast.kinds.single_rows import violating
from holdfast.model.commits import SideRecord
from holdfast.model.errors import InputError
from holdfast.model.expectations import ExpectationChange, Quarantine
from holdfast.model.lazily import Lazily
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.contained import ContainedTuples
from holdfast.rules.form import RuleForm
from holdfast.rules.pairs import RowPairs
from holdfast.rules.single_rows import SingleRows
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.store.files import sync_directory
from holdfast.store.quarantine import pending_name, reveal, withdraw
from holdfast.table.batch import Batch, BatchIntake, change_rows, without
from holdfast.table.change import RowChange, TableRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import quarantine as tasks
from holdfast.tasks.dialect import Dialect
from holdfast.tasks.segments import Segment

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


@dataclass(frozen=True)
class _Found:
    """Rows of a table's batch that take part in violations of a rule, and what they clash with."""

    table: str
    place: int
    ids: I64
    clashes: I64


def sifted(
    run: Run, before: Expected, intakes: Mapping[str, BatchIntake], tables: Lazily[Table]
) -> Sifted:
    """A batch without the rows that break rules whose severity is an error."""
    left_out: list[LeftOut] = []
    intakes = dict(intakes)
    while True:
        changes = change_rows(run, [(tables[name], each) for name, each in intakes.items()])
        now = tables | {each.after.name: each.after for each in changes}
        with run.stage("expectations"):
            after = state.changed(run, before, changes, now)
        stopping = [
            place
            for place, each in enumerate(after.standings)
            if ExpectationChange(before.standings[place], each).stops
        ]
        with run.stage("quarantine"):
            going = list(_left_out(run, after, stopping, intakes, changes, now))
            left_out += going
            if not going:
                kept = changes if run.options.keep_rows else [_without_raw(e) for e in changes]
                return Sifted(kept, after, tuple(left_out))
            for name, intake in intakes.items():
                mine = [each.ids for each in going if each.table == name]
                if mine:
                    intakes[name] = without(run, tables[name], intake, _positions(mine))


def _positions(ids: Sequence[I64]) -> dict[int, I64]:
    every = np.concatenate(ids)
    return {
        int(number): every[every >> 32 == number] & 0xFFFFFFFF for number in np.unique(every >> 32)
    }


def _without_raw(change: RowChange) -> RowChange:
    """The same without the raw rows, which were kept for the quarantine alone."""
    new = {each.number for each in change.added}
    added = tuple(replace(each, raw=None) for each in change.added)
    kept = tuple(each for each in change.after.segments if each.number not in new)
    return replace(change, added=added, after=replace(change.after, segments=(*kept, *added)))


def _left_out(
    run: Run,
    after: Expected,
    stopping: Sequence[int],
    intakes: Mapping[str, BatchIntake],
    changes: Sequence[RowChange],
    tables: Mapping[str, Table],
) -> Iterator[LeftOut]:
    """The rows that go now: new ones, or else those that take something away."""
    by_table = {each.after.name: each for each in changes}
    breaking = [_new_rows(run, after, place, by_table) for place in stopping]
    if not any(len(each.ids) for each in breaking):
        breaking = [_taken_away(run, after, place, intakes, by_table, tables) for place in stopping]
    shelves = tuple(_shelf(rule, tables) for rule in after.measures)
    for name, change in by_table.items():
        mine = [each for each in breaking if each.table == name]
        ids, clashes = (
            np.concatenate([_NOBODY, *(getattr(each, what) for each in mine)])
            for what in ("ids", "clashes")
        )
        rules = np.concatenate([_NOBODY, *(np.full(len(each.ids), each.place) for each in mine)])
        # A row that breaks several rules goes by the first of them.
        _, first = np.unique(ids, return_index=True)
        for kind, columns, segments in _kinds(change.after.columns, intakes[name]):
            some = first[np.isin(ids[first] >> 32, [s.number for s in segments])]
            if len(some):
                yield LeftOut(
                    name, kind, columns, segments, ids[some], rules[some], clashes[some], shelves
                )


def _kinds(
    columns: Columns, intake: BatchIntake
) -> Iterator[tuple[str, Columns, tuple[Segment, ...]]]:
    """The kinds of changes of a batch, with their segments."""
    asked = {segment.number for request in intake.requests for segment in request.segments}
    yield "inserts", columns, tuple(s for s in intake.added if s.number not in asked)
    for request in intake.requests:
        yield f"{request.what}s", request.own, request.segments


def _shelf(rule: RuleForm, tables: Mapping[str, Table]) -> tasks.Shelf:
    """Where rows lie that those which break a rule clash with: what is taken away clashes with rows
    of the left side."""
    table = tables[rule.left.table if isinstance(rule, ContainedTuples) else rule.table]
    return tasks.Shelf(table.segments, table.columns.names)


# New rows


def _new_rows(run: Run, after: Expected, place: int, changes: Mapping[str, RowChange]) -> _Found:
    """The rows of the batch that take part in violations of a rule."""
    rule = after.measures[place]
    name = rule.left.table if isinstance(rule, ContainedTuples) else rule.table
    if name not in changes or not changes[name].arrived.count:
        return _Found(name, place, _NOBODY, _NOBODY)
    return _Found(name, place, *_violating(run, after, rule, changes[name]))


def _violating(run: Run, after: Expected, rule: RuleForm, change: RowChange) -> tuple[I64, I64]:
    """Rows that violate a rule, and what they clash with."""
    new = change.arrived
    if isinstance(rule, SingleRows):
        assert rule.rule is not None
        _, ids = violating(run, new, rule.rule, new.count)
        return ids, np.full(len(ids), -1)
    if isinstance(rule, RowPairs):
        ids, clashes, _ = pairs.beside(run, change.after, rule, change.added)
        return ids, clashes
    if isinstance(rule, ContainedTuples):
        ids, _ = orphans(run, after, rule, new)
        return ids, np.full(len(ids), -1)
    assert isinstance(rule, AgreeingTuples)
    return _agreeing(run, after, rule, change)


def _agreeing(
    run: Run, after: Expected, rule: AgreeingTuples, change: RowChange
) -> tuple[I64, I64]:
    """Rows that share a tuple with others which differ, and one of those each."""
    table = change.after
    ids, codes, others = taking_part(run, after, rule, table, change.added)
    if not len(ids):
        return _NOBODY, _NOBODY
    wanted, at = np.unique(codes, axis=0, return_inverse=True)
    sides = sides_of(after, rule)
    # Of rows that differ, two are enough: one of them differs from any row.
    candidates = [rows for _, rows in with_codes(run, table, sides, wanted, 2)]
    clashes = [
        next(
            (
                id_
                for id_, other in candidates[code]
                if id_ != mine and (rule.both is None or other != tuple(own))
            ),
            -1,
        )
        for mine, code, own in zip(
            ids.tolist(), at.reshape(-1).tolist(), others.tolist(), strict=True
        )
    ]
    return ids, np.array(clashes, np.int64)


# Rows that take something away


def _taken_away(
    run: Run,
    after: Expected,
    place: int,
    intakes: Mapping[str, BatchIntake],
    changes: Mapping[str, RowChange],
    tables: Mapping[str, Table],
) -> _Found:
    """The requests of the batch that take away the last row which others refer to, and one of those
    others each."""
    rule = after.measures[place]
    name = rule.right.table if isinstance(rule, ContainedTuples) else rule.table
    none = _Found(name, place, _NOBODY, _NOBODY)
    if (
        not isinstance(rule, ContainedTuples)
        or name not in changes
        or not changes[name].departed.count
    ):
        return none
    change = changes[name]
    left, right = (after.tuples.side(side) for side in rule.sides)
    gone = cells_of(run, change.departed, [right])
    runs = after.tuples.record.runs
    calls: list[Call] = [
        (
            tasks.needed,
            tasks.Needed(run.store.path, runs, replace(gone, view=view), right.number, left.number),
        )
        for view in shares(gone.view, run.runner.tasks)
    ]
    results = [each for result in run.runner.run(calls) for each in result]
    taken, codes = (
        np.concatenate([each.arrays[name] for each in results]) for name in ("ids", "codes")
    )
    if not len(taken):
        return none
    wanted, at = np.unique(codes, axis=0, return_inverse=True)
    children = with_codes(run, tables[left.table], (left, None), wanted, 1)
    child = np.array([rows[0][0] for _, rows in children], np.int64)
    ids, of = _asking(run, intakes[name], change, taken)
    return _Found(name, place, ids, child[at.reshape(-1)][of])


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
            cells_of(run, each, [_whole(columns, places)]) for each, columns, places in sides
        )
        calls += [
            (tasks.asking, tasks.Asking(replace(asked, view=view), meant))
            for view in shares(asked.view, run.runner.tasks)
        ]
    results = [each for result in run.runner.run(calls) for each in result]
    ids, meant_ids = (
        np.concatenate([_NOBODY, *(each.arrays[what] for each in results)])
        for what in ("ids", "taken")
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
    texts = tuple(each.rule for each in expected.standings)
    calls: list[Call] = []
    quarantined: dict[str, Quarantine] = {}
    files: list[Path] = []
    for each in left_out:
        known = quarantined.get(each.table, Quarantine(0, {}, {}, ()))
        rules = Counter(texts[place] for place in each.rules.tolist())
        source: RowInput = getattr(batches[each.table], each.kind)
        form = _FILES.get(source.source.format, "parquet")
        layout = tasks.Layout(
            form, each.columns.names, source.lines or Dialect(), source.header or form != "csv"
        )
        names = []
        for segment in each.segments:
            mine = np.flatnonzero(each.ids >> 32 == segment.number)
            if not len(mine):
                continue
            stem = f"{quote(each.table, safe='')}-{run.lease.version + 1}-{run.lease.run}"
            names.append(f"{stem}-{each.kind}-{len(files) + 1}.{form}")
            files.append(Path(folder, pending_name(names[-1])))
            item = tasks.Write(
                run.store.path, segment, each.ids[mine] - segment.base, each.rules[mine],
                each.clashes[mine], texts, each.shelves, layout, str(files[-1]),
            )  # fmt: skip
            calls.append((tasks.write, item))
        quarantined[each.table] = Quarantine(
            known.rows + len(each.ids),
            dict(Counter(known.kinds) + Counter({each.kind: len(each.ids)})),
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
