"""Inclusion dependencies: which values the attributes have, kept as clusters.

An *attribute* is a column of a table. A value's *cluster* is the set of attributes in which it
occurs, and A ⊆ B holds iff every cluster with A has B (Incremental Discovery of Inclusion
Dependencies, lemma 4.2). The values live in runs of entries, in files; the clusters with their
numbers of values live here, and so does what follows from them: how many values every two
attributes share. A batch moves values between clusters, and touches only the values it contains.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.evidence.counted import masks_of, matrix_of
from holdfast.families.inclusion_dependencies import n_ary as tuples
from holdfast.families.inclusion_dependencies.foreign_keys import Shared
from holdfast.families.inclusion_dependencies.n_ary import Candidate, Verdict, Verdicts
from holdfast.input.reading import Place
from holdfast.input.row_input import Columns
from holdfast.kernels import bitsets
from holdfast.kernels import values as kernels
from holdfast.model.constraints import Attribute, InclusionDependency
from holdfast.model.errors import StoreError
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.report.snapshot import EMPTY, HOLDS, stored
from holdfast.store import Lease, Store
from holdfast.table.placement import shares
from holdfast.table.state import Table, write
from holdfast.tasks import values as tasks
from holdfast.tasks.result import Parcel
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import Segment
from holdfast.tasks.values import HELD, Cells, Run, cut, family

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_FAN = 8
"""Runs of one tier that are merged into one of the next."""

_SMALLEST = 1 << 15
"""Entries below which all runs are of the lowest tier."""

_AT_ONCE = 1 << 19
"""Cells that one task counts and settles by itself: a second job would cost more."""


@dataclass(frozen=True)
class Inclusion:
    """What is known of the values of all tables in one version."""

    attributes: tuple[Attribute, ...]
    families: tuple[str, ...]
    runs: tuple[Run, ...]
    masks: U64  # the clusters, over the attributes
    counts: I64  # and how many values each has
    overlaps: I64  # values that two attributes share; with itself: an attribute's distinct values
    tuples: Verdicts = field(default_factory=dict)  # on candidates of several columns
    files: dict[str, str] = field(default_factory=dict)

    @staticmethod
    def none(tables: Mapping[str, Columns]) -> Inclusion:
        """Attributes without values."""
        attributes, families = [], []
        for table, columns in tables.items():
            for c, name in enumerate(columns.names):
                attributes.append(Attribute(table, name))
                families.append(family(columns.types[c], columns.schema.field(c).type))
        return _without_values(tuple(attributes), tuple(families))

    @property
    def emptied(self) -> Inclusion:
        """The same attributes without values."""
        return _without_values(self.attributes, self.families)

    @property
    def data_files(self) -> list[str]:
        """Every file of the state."""
        return [*self.files.values(), *(file for run in self.runs for file in run.files)]

    def moved(self, masks: U64, counts: I64) -> Inclusion:
        """The clusters after values moved: each row has the mask before and the mask after."""
        words = self.masks.shape[1]
        before, after = masks[:, :words], masks[:, words:]
        overlaps = self.overlaps.copy()
        kernels.add_overlaps(np.ascontiguousarray(before), -counts, overlaps)
        kernels.add_overlaps(np.ascontiguousarray(after), counts, overlaps)
        all_masks = np.concatenate([self.masks, before, after])
        all_counts = np.concatenate([self.counts, -counts, counts])
        # The empty cluster is where values come from and go to.
        known = all_masks.any(axis=1)
        together, totals = _grouped(all_masks[known], all_counts[known])
        if (totals < 0).any():
            raise StoreError(
                "the value counts of this profile do not fit its rows; rebuild the profile: "
                "holdfast profile SOURCE... --into NEW_DIRECTORY"
            )
        return replace(
            self, masks=together[totals > 0], counts=totals[totals > 0], overlaps=overlaps
        )


def _without_values(attributes: tuple[Attribute, ...], families: tuple[str, ...]) -> Inclusion:
    count = len(attributes)
    nothing = np.zeros((count, count), np.int64)
    return Inclusion(attributes, families, (), bitsets.empty(count), np.empty(0, np.int64), nothing)


def dependencies(state: Inclusion, options: Options) -> list[InclusionDependency]:
    """The inclusion dependencies that the options ask for."""
    shared = Shared(state.attributes, state.families, state.overlaps)
    found = shared.inclusion_dependencies(options.min_coverage, options.empty_columns)
    names = _names(state.attributes)
    return found + [_named(each, names) for each in _holding(state.tuples, options)]


def _holding(verdicts: Verdicts, options: Options) -> list[Candidate]:
    wanted = (HOLDS, EMPTY) if options.empty_columns else (HOLDS,)
    return [each for each, verdict in verdicts.items() if verdict.status in wanted]


def _names(attributes: tuple[Attribute, ...]) -> dict[str, list[Attribute]]:
    names: dict[str, list[Attribute]] = {}
    for each in attributes:
        names.setdefault(each.table, []).append(each)
    return names


def _named(each: Candidate, names: dict[str, list[Attribute]]) -> InclusionDependency:
    return InclusionDependency(
        tuple(names[each.table][c] for c in each.columns),
        tuple(names[each.other][c] for c in each.others),
    )


def with_tuples(
    search: tuples.Search,
    state: Inclusion,
    before: Verdicts,
    batch: tuples.Batch | None,
    progress: Progress,
) -> Inclusion:
    """The state with its dependencies of several columns, where they are looked for."""
    if search.options.max_arity == 1:
        return state
    place = {
        each: (table, c)
        for table, members in _names(state.attributes).items()
        for c, each in enumerate(members)
    }
    shared = Shared(state.attributes, state.families, state.overlaps)
    unary = []
    for each in shared.inclusion_dependencies(1.0, search.options.empty_columns):
        (table, column), (other, column_of_other) = (
            place[each.dependent[0]],
            place[each.referenced[0]],
        )
        unary.append(Candidate(table, (column,), other, (column_of_other,)))
    return replace(state, tuples=tuples.found(search, unary, before, batch, progress))


@dataclass(frozen=True)
class Change:
    """Rows that came (``ids`` is None: all that live in the segments) or that went."""

    table: Table
    segments: tuple[Segment, ...]
    ids: I64 | None = None

    @property
    def rows(self) -> int:
        """How many."""
        return sum(s.live for s in self.segments) if self.ids is None else self.ids.size


def gone(table: Table, ids: I64) -> Change:
    """Rows that were deleted from a table, which still has their words."""
    numbers = set((ids >> 32).tolist())
    return Change(table, tuple(s for s in table.segments if s.number in numbers), ids)


# Change


def changed(
    runner: Runner,
    before: Inclusion,
    changes: Iterable[Change],
    place: Place,
    options: Options,
    progress: Progress,
) -> Inclusion:
    """The state after rows came and went, in one job, or two where there are many."""
    changes = [change for change in changes if change.rows]
    cells = [(change, _cells(before, change, place, options)) for change in changes]
    size = sum(change.rows * len(each.attributes) for change, each in cells)
    progress("values", cells=size)
    if not size:
        return before
    runs: list[Run] = []
    parts = 1
    if size > _AT_ONCE:
        runs = _counted(runner, [each for _, each in cells], place)
        entries = sum(run.entries for run in runs)
        parts = max(runner.tasks, -(-entries // HELD))
    direct = () if runs else tuple(each for _, each in cells)
    words = before.masks.shape[1]
    calls: list[Call] = [
        (
            tasks.settle,
            tasks.Settle(
                place.root, place.prefix, cut(k, parts), cut(k + 1, parts), tuple(runs), direct,
                before.runs, words, not options.insert_only,
            ),
        )
        for k in range(parts)
    ]  # fmt: skip
    parcels = [parcel for result in runner.run(calls) for parcel in result]
    if any(parcel.facts["wrong"] for parcel in parcels):
        raise StoreError("a batch takes away values that the profile does not have")
    after = before.moved(
        np.concatenate([parcel.arrays["masks"] for parcel in parcels]),
        np.concatenate([parcel.arrays["counts"] for parcel in parcels]),
    )
    added = _run(parcels)
    return replace(after, runs=(*before.runs, *([added] if added.entries else [])))


def _cells(state: Inclusion, change: Change, place: Place, options: Options) -> Cells:
    table = change.table
    numbers = [n for n, each in enumerate(state.attributes) if each.table == table.name]
    attributes = tuple(
        tasks.Attribute(number, (column,), (state.families[number],))
        for column, number in enumerate(numbers)
    )
    return Cells(
        table.view(place.root, options, change.segments),
        table.columns.schema,
        attributes,
        options.inclusion_nulls == "values",
        1 if change.ids is None else -1,
        change.ids,
    )


def _counted(runner: Runner, cells: list[Cells], place: Place) -> list[Run]:
    """Runs of the values of many rows."""
    calls: list[Call] = []
    for each in cells:
        for share in shares(each.view, runner.tasks):
            mine = each.ids
            if mine is not None:
                mine = mine[np.isin(mine >> 32, [s.number for s in share.segments])]
            calls.append(
                (tasks.count, tasks.Count(replace(each, view=share, ids=mine), place.prefix))
            )
    # The large ones first, so that no task is left alone with one at the end.
    calls.sort(key=lambda call: -sum(s.rows for s in call[1].cells.view.segments))
    return [_run([parcel]) for result in runner.run(calls) for parcel in result]


def _run(parcels: list[Parcel]) -> Run:
    return Run(
        tuple(parcel.facts["part"] for parcel in parcels),
        sum(parcel.facts["entries"] for parcel in parcels),
    )


def _grouped(masks: U64, counts: I64) -> tuple[U64, I64]:
    """Distinct masks with the sums of their counts."""
    if not len(masks):
        return masks, counts
    order = np.lexsort(masks.T)
    masks, counts = masks[order], counts[order]
    first = np.ones(len(masks), np.bool_)
    first[1:] = (masks[1:] != masks[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    return masks[starts], np.add.reduceat(counts, starts)


# Missing values


def missing(
    runner: Runner,
    state: Inclusion,
    table: Table,
    pair: tuple[Attribute, Attribute],
    most: int | None,
    place: Place,
    options: Options,
) -> I64:
    """Rows of the dependent's table, one for each value (the first so many) that is missing."""
    dependent, referenced = (state.attributes.index(each) for each in pair)
    parts = max([1, *(len(run.parts) for run in state.runs)])
    calls: list[Call] = [
        (
            tasks.missing,
            tasks.Missing(
                place.root, cut(k, parts), cut(k + 1, parts), state.runs, dependent, referenced,
                most,
            ),
        )
        for k in range(parts)
    ]  # fmt: skip
    parcels = [parcel for result in runner.run(calls) for parcel in result]
    # In the order of their codes, because the parts are, and each in itself.
    codes = np.concatenate([parcel.arrays["codes"] for parcel in parcels])[:most]
    if not len(codes):
        return np.empty(0, np.int64)
    cells = _cells(state, Change(table, table.segments), place, options)
    column = table.columns.names.index(pair[0].column)
    cells = replace(cells, attributes=cells.attributes[column : column + 1])
    calls = [
        (tasks.find, tasks.Find(replace(cells, view=share), codes))
        for share in shares(cells.view, runner.tasks)
    ]
    ids = np.full(len(codes), -1, np.int64)
    for result in runner.run(calls):
        for parcel in result:
            ids[parcel.arrays["codes"]] = parcel.arrays["ids"]
    return ids[ids >= 0]


# Upkeep


def due(runs: tuple[Run, ...]) -> list[tuple[Run, ...]]:
    """The runs to merge, group by group."""
    tiers: dict[int, list[Run]] = {}
    for run in runs:
        tier, entries = 0, run.entries
        while entries > _SMALLEST:
            entries //= _FAN
            tier += 1
        tiers.setdefault(tier, []).append(run)
    return [
        tuple(members[start : start + _FAN])
        for members in tiers.values()
        for start in range(0, len(members) - _FAN + 1, _FAN)
    ]


def merged(
    runner: Runner, state: Inclusion, place: Place, options: Options, progress: Progress
) -> Inclusion:
    """Merge runs where a tier is full."""
    groups = due(state.runs)
    if not groups:
        return state
    progress("merge", runs=sum(map(len, groups)))
    calls: list[Call] = []
    owners: list[int] = []
    for number, group in enumerate(groups):
        entries = sum(run.entries for run in group)
        parts = 1 if entries <= _SMALLEST * _FAN else max(runner.tasks, -(-entries // HELD))
        for k in range(parts):
            item = tasks.Merge(
                place.root, place.prefix, cut(k, parts), cut(k + 1, parts), group,
                not options.insert_only,
            )  # fmt: skip
            calls.append((tasks.merge, item))
            owners.append(number)
    results = runner.run(calls)
    made = []
    for number in range(len(groups)):
        mine = [r for owner, r in zip(owners, results, strict=True) if owner == number]
        made.append(_run([parcel for result in mine for parcel in result]))
    gone = {id(run) for group in groups for run in group}
    kept = [run for run in state.runs if id(run) not in gone]
    return replace(state, runs=tuple(run for run in [*kept, *made] if run.entries))


# Verify


def differences(
    runner: Runner, kept: Inclusion, fresh: Inclusion, place: Place
) -> Iterator[tuple[str, str]]:
    """Where the kept values are not those of the rows: the table, and a sentence about it."""
    wrong = np.argwhere(np.triu(kept.overlaps != fresh.overlaps))
    for one, two in wrong.tolist():
        a, b = kept.attributes[one], kept.attributes[two]
        mine, theirs = int(kept.overlaps[one, two]), int(fresh.overlaps[one, two])
        what = f"{a} has" if one == two else f"{a} and {b} share"
        yield a.table, f"the profile says that {what} {mine} distinct values, but it is {theirs}"
    if len(wrong):
        return
    table = kept.attributes[0].table
    statuses = [{each: v.status for each, v in state.tuples.items()} for state in (kept, fresh)]
    if statuses[0] != statuses[1]:
        yield table, "the profile's inclusions of several columns are not those of the rows"
    same = _grouped(kept.masks, kept.counts), _grouped(fresh.masks, fresh.counts)
    if not all(np.array_equal(a, b) for a, b in zip(*same, strict=True)):
        yield table, "the profile's clusters of attributes are not those of the rows"
    parts = max(len(run.parts) for run in (*kept.runs, *fresh.runs, Run((None,), 0)))
    calls: list[Call] = [
        (
            tasks.compare,
            tasks.Compare(place.root, cut(k, parts), cut(k + 1, parts), kept.runs, fresh.runs),
        )
        for k in range(parts)
    ]
    for result in runner.run(calls):
        for parcel in result:
            for number, count in parcel.facts["wrong"].items():
                each = kept.attributes[int(number)]
                yield each.table, f"the profile counts {count} values of {each} wrongly"


# Store


def to_dict(state: Inclusion) -> dict[str, Any]:
    """The form that a commit stores."""
    return {
        "attributes": [[each.table, each.column] for each in state.attributes],
        "families": list(state.families),
        "runs": [run.to_dict() for run in state.runs],
        **state.files,
    }


def save(store: Store, lease: Lease, state: Inclusion, before: Inclusion | None) -> Inclusion:
    """Write what changed."""
    files = dict(before.files) if before else {}
    if before is None or not (
        np.array_equal(before.masks, state.masks) and np.array_equal(before.counts, state.counts)
    ):
        clusters = pa.table({"mask": masks_of(state.masks), "values": state.counts})
        files["clusters"] = write(store, lease, "clusters", clusters)
    if before is None or not np.array_equal(before.overlaps, state.overlaps):
        one, two = np.nonzero(np.triu(state.overlaps))
        shared = {
            "one": one.astype(np.int32),
            "two": two.astype(np.int32),
            "values": state.overlaps[one, two],
        }
        files["inclusions"] = write(store, lease, "inclusions", pa.table(shared))
    if state.tuples and (before is None or before.tuples != state.tuples):
        files["tuples"] = write(store, lease, "tuples", _tuples(state.tuples))
    elif not state.tuples:
        files.pop("tuples", None)
    return replace(state, files=files)


def _tuples(verdicts: Verdicts) -> pa.Table:
    numbers = pa.list_(pa.int32())
    return pa.table(
        {
            "table": [each.table for each in verdicts],
            "columns": pa.array([each.columns for each in verdicts], numbers),
            "other": [each.other for each in verdicts],
            "others": pa.array([each.others for each in verdicts], numbers),
            "status": pa.array([v.status for v in verdicts.values()], pa.int8()),
            "code": pa.array([v.missing[0] for v in verdicts.values()], pa.uint64()),
            "rest": pa.array([v.missing[1] for v in verdicts.values()], pa.uint64()),
            "rows": pa.array([v.rows for v in verdicts.values()], pa.int64()),
        }
    )


def _verdicts(kept: pa.Table) -> Verdicts:
    return {
        Candidate(row["table"], tuple(row["columns"]), row["other"], tuple(row["others"])): Verdict(
            row["status"], (row["code"], row["rest"]), row["rows"]
        )
        for row in kept.to_pylist()
    }


def load(store: Store, form: dict[str, Any]) -> Inclusion:
    """The state that a commit stored."""
    count = len(form["attributes"])
    clusters = stored(store, form["clusters"])
    shared = stored(store, form["inclusions"])
    overlaps = np.zeros((count, count), np.int64)
    one, two = shared.column("one").to_numpy(), shared.column("two").to_numpy()
    overlaps[one, two] = overlaps[two, one] = shared.column("values").to_numpy()
    return Inclusion(
        tuple(Attribute(table, column) for table, column in form["attributes"]),
        tuple(form["families"]),
        tuple(Run.from_dict(each) for each in form["runs"]),
        matrix_of(clusters.column("mask"), bitsets.words_for(count)),
        clusters.column("values").to_numpy().astype(np.int64),
        overlaps,
        _verdicts(stored(store, form["tuples"])) if "tuples" in form else {},
        {name: form[name] for name in ("clusters", "inclusions", "tuples") if name in form},
    )
