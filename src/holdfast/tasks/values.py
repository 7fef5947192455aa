"""Tasks over the values of segments: which values attributes have, and how a batch moves them.

A *run* is a file of entries (:mod:`holdfast.kernels.values`) in order. *Count* writes runs of the
values of rows. *Move* takes the changed entries of a range of codes, looks up the existing entries
of the same codes, and returns how many values move from which cluster to which: the merge and
extract of the paper (Incremental Discovery of Inclusion Dependencies, definitions 4.4 and 4.8) for
all values at once. A first profile is a change of nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at
from numpy.typing import NDArray

from holdfast.kernels import values
from holdfast.kernels.arrays import I64, U64
from holdfast.model import thresholds
from holdfast.model.commits import ValueRun
from holdfast.runtime.reads import note
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import seal_of, unique
from holdfast.runtime.timed import look
from holdfast.tasks.coding import word_form
from holdfast.tasks.encode import layout
from holdfast.tasks.segments import (
    Segment,
    deleted_since,
    live_positions,
    map_words,
    open_arrays,
    write_sorted,
)
from holdfast.tasks.view import View

CODES = 1 << 64
"""First words of codes are below this."""


@dataclass(frozen=True)
class ValueColumns:
    """An attribute: its number, its column (or several, whose values are tuples), and the families
    of their types. Only values of one family are equal."""

    number: int
    columns: tuple[int, ...]
    families: tuple[str, ...]
    within: bool = False  # tuples that agree but for the last column have the same first word


_BLOCK = 1 << 16
"""Rows whose codes are held at a time, where attributes share columns."""

CellCodes = tuple[U64, NDArray[np.bool_]]
"""The codes of cells, and which of them are values."""

KnownCodes = dict[tuple[int, str], CellCodes]
"""The codes of columns, by their place and what their type compares with."""


@dataclass(frozen=True)
class RowValues:
    """Rows of a table and the attributes whose values count: the living rows; with ``later`` (the
    same segments in a later version) those deleted in between; with ``ids`` the rows with these
    ids."""

    view: View
    schema: pa.Schema
    attributes: tuple[ValueColumns, ...]
    nulls: bool  # whether a null is a value
    weight: int = 1  # -1: the rows are gone
    ids: I64 | None = None
    later: tuple[Segment, ...] | None = None

    @cached_property
    def columns(self) -> list[list[values.CodedColumn]]:
        """The columns of each attribute in the form for kernels."""
        where = layout(self.schema)
        return [
            [
                values.CodedColumn(
                    attribute.number, kind, where.offsets[c], scale, where.value_words + c // 64,
                    c % 64, self.nulls, salt(family_),
                )
                for c, family_ in zip(attribute.columns, attribute.families, strict=True)
                for kind, scale in [word_form(self.schema.field(c).type)]
            ]
            for attribute in self.attributes
        ]  # fmt: skip

    @property
    def count(self) -> int:
        """The number of rows."""
        if self.ids is not None:
            return self.ids.size
        numbers = {segment.number for segment in self.view.segments}
        alive_later = (later.live for later in self.later or () if later.number in numbers)
        return self.view.live - sum(alive_later)

    def positions(self, segment: Segment) -> I64:
        """The positions of the rows in a segment."""
        return positions_of(self.view, segment, self.ids, self.later)

    def blocks(self) -> Iterator[U64]:
        """Entries, attribute by attribute, unsorted."""
        weight = np.uint64(self.weight % (1 << 64))
        is_single = all(len(columns) == 1 for columns in self.columns)
        for segment in self.view.segments:
            every = self.positions(segment)
            rows = map_words(self.view.path, segment).at(every)
            step = max(1, every.size) if is_single else _BLOCK
            for start in range(0, every.size, step):
                positions = every[start : start + step]
                room = np.empty((positions.size, 4), np.uint64)
                known: KnownCodes = {}
                for place, columns in enumerate(self.columns):
                    look()
                    with np.errstate(over="ignore"):
                        if is_single:
                            size = values.tally(rows, positions, columns[0], weight, room)
                        else:
                            codes, present = self._codes(rows, positions, place, known)
                            number = columns[0].attribute
                            size = values.tally_codes(codes, present, number, weight, room)
                    yield room[:size].copy()

    def codes(self, place: int) -> Iterator[tuple[Segment, I64, U64]]:
        """The codes of one attribute, segment by segment, with the positions of the rows that have
        them."""
        for segment in self.view.segments:
            look()
            positions = self.positions(segment)
            rows = map_words(self.view.path, segment).at(positions)
            codes, present = self._codes(rows, positions, place)
            yield segment, positions[present], codes[present]

    def aligned(self) -> Iterator[tuple[Segment, I64, U64, NDArray[np.bool_]]]:
        """The codes of the first attribute for all positions, segment by segment, and which of them
        are values."""
        for segment in self.view.segments:
            positions = self.positions(segment)
            rows = map_words(self.view.path, segment).at(positions)
            yield segment, positions, *self._codes(rows, positions, 0)

    def _codes(
        self, rows: U64, positions: I64, place: int, known: KnownCodes | None = None
    ) -> CellCodes:
        """The codes of one attribute for all positions, and which of them are values. What is
        ``known`` of columns that attributes have in common is not computed again."""
        known = {} if known is None else known
        attribute = self.attributes[place]
        by_column = []
        with np.errstate(over="ignore"):
            where = zip(attribute.columns, attribute.families, strict=True)
            for cells, column in zip(where, self.columns[place], strict=True):
                if cells not in known:
                    codes = np.empty((positions.size, 2), np.uint64)
                    present = np.zeros(positions.size, np.bool_)
                    values.codes(rows, positions, column, codes, present)
                    known[cells] = codes, present
                by_column.append(known[cells])
            (first, values_there) = by_column[0]
            codes, present = first.copy(), values_there.copy()
            last = len(by_column) - 1 if attribute.within else len(by_column)
            for number, (others, also) in enumerate(by_column[1:], 1):
                combine = values.combine if number < last else values.combine_within
                combine(codes, present, others, also)
        return codes, present


def positions_of(
    view: View, segment: Segment, ids: I64 | None, later: tuple[Segment, ...] | None
) -> I64:
    """The positions of rows in a segment: the living ones, those deleted by ``later``, or those
    with these ids."""
    if ids is not None:
        positions: I64 = ids[ids >> 32 == segment.number] - segment.base
        return positions
    if later is None:
        return live_positions(view.path, segment)
    now = next((one for one in later if one.number == segment.number), None)
    return deleted_since(view.path, segment, now)


def cut(part: int, parts: int) -> int:
    """The first code of a part."""
    return CODES * part // parts


@dataclass(frozen=True)
class CodeRange:
    """Codes from ``low`` to below ``high``, in files of a profile."""

    root: str
    low: int
    high: int

    def size_of(self, runs: tuple[ValueRun, ...]) -> int:
        """The estimated number of entries of runs in the range: codes are hashes, so they are
        evenly distributed."""
        return sum(run.entries for run in runs) * (self.high - self.low) // CODES

    def largest_of(self, runs: tuple[ValueRun, ...]) -> str | None:
        """The largest file of runs that has entries in the range."""
        files = [file for run in runs for file in _between(run, self.low, self.high)]
        sizes = {file: seal.size for file in files if (seal := seal_of(file))}
        file = min(sizes, key=lambda name: (-sizes[name], name), default=None)
        return None if file is None else f"{self.root}/{file}"

    def slices(self, runs: tuple[ValueRun, ...]) -> list[U64]:
        """The entries of runs in the range."""
        return slices(Path(self.root), runs, self.low, self.high)


@dataclass(frozen=True)
class CountValues:
    """Make runs of the values of some rows."""

    cells: RowValues
    prefix: str

    @property
    def home(self) -> str | None:
        """The file that it reads most of."""
        return self.cells.view.home

    @property
    def work(self) -> int:
        """Values that it counts."""
        return self.cells.count * len(self.cells.attributes)


@dataclass(frozen=True)
class ChangedEntries(CodeRange):
    """Changed entries in a range of codes: in runs, or in rows that are counted here. ``before``
    are the existing runs."""

    prefix: str
    changed: tuple[ValueRun, ...]
    cells: tuple[RowValues, ...]
    before: tuple[ValueRun, ...]

    @property
    def home(self) -> str | None:
        """The file that it reads most of."""
        return self.largest_of(self.before)

    @property
    def work(self) -> int:
        """Entries that changed in the range, about."""
        return self.size_of(self.changed)

    def delta(self) -> U64:
        """The changes of entries."""
        return values.merged([*entries_of(self.cells), *self.slices(self.changed)])

    def entries(self) -> tuple[U64, U64]:
        """The changes of entries, and the existing entries of the same codes."""
        delta = self.delta()
        codes = values.distinct_codes(delta)
        return delta, same_codes(Path(self.root), self.before, self.low, self.high, codes)


@dataclass(frozen=True)
class MoveValues(ChangedEntries):
    """Find out how the changed values in a range of codes move between clusters."""

    words: int  # of a mask over all attributes
    frequencies: bool  # without them only arrivals are kept


@dataclass(frozen=True)
class RunRange(CodeRange):
    """The entries of some runs in a range."""

    runs: tuple[ValueRun, ...]

    @property
    def home(self) -> str | None:
        """The file that it reads most of."""
        return self.largest_of(self.runs)

    @property
    def work(self) -> int:
        """Entries that it goes through, about."""
        return self.size_of(self.runs)


@dataclass(frozen=True)
class MergeRuns(RunRange):
    """Merge a range of several runs into one part."""

    prefix: str
    frequencies: bool


@dataclass(frozen=True)
class CompareRuns(CodeRange):
    """Compare a range of two lists of runs."""

    one: tuple[ValueRun, ...]
    two: tuple[ValueRun, ...]


@dataclass(frozen=True)
class MissingValues(CodeRange):
    """Find values in a range of codes that one attribute has and another lacks, at most
    ``most``."""

    runs: tuple[ValueRun, ...]
    dependent: int
    referenced: int
    most: int | None


@dataclass(frozen=True)
class FindValues:
    """Find a row for each of some codes of the first attribute."""

    cells: RowValues
    codes: U64


@dataclass(frozen=True)
class ContainmentTests(RunRange):
    """Test for pairs of sides, given by attribute numbers, whether the left has a tuple that the
    right lacks."""

    cells: tuple[RowValues, ...]
    left: tuple[int, ...]
    right: tuple[int, ...]


@dataclass(frozen=True)
class CountTuples:
    """Count the rows that have the tuples of ``wanted`` (its first attribute) or the given codes;
    with neither, say whether there is any tuple."""

    wanted: tuple[RowValues, ...]
    codes: U64
    among: tuple[RowValues, ...]


@dataclass(frozen=True)
class Overlap(CodeRange):
    """Count the values that columns of one table have in common: those of some rows, or those of
    runs in a range of codes."""

    columns: int
    most: int  # a value that more cells of a column have does not count in it
    cells: tuple[RowValues, ...] = ()
    runs: tuple[ValueRun, ...] = ()


def family(name: str, type_: pa.DataType) -> str:
    """What a column's values are equal among; ``name`` is what Spark calls the type.

    >>> family("decimal(10,2)", pa.decimal128(10, 2)), family("bigint", pa.int64())
    ('number', 'number')
    """
    if at.is_dictionary(type_):
        type_ = type_.value_type
    if at.is_integer(type_) or at.is_floating(type_) or at.is_decimal(type_):
        return "number"
    if at.is_string(type_) or at.is_large_string(type_) or at.is_string_view(type_):
        # Some types travel as text; theirs is not ordinary text.
        return "text" if name.startswith(("string", "char", "varchar")) else name
    if at.is_binary(type_) or at.is_large_binary(type_) or at.is_binary_view(type_):
        return "binary"
    if at.is_date32(type_):
        return "date"
    if at.is_timestamp(type_):
        return "timestamp" if type_.tz else "timestamp without zone"
    if at.is_time(type_):
        return "time"
    if at.is_duration(type_):
        return "duration"
    if at.is_boolean(type_):
        return "boolean"
    return str(type_)


def salt(family_: str) -> U64:
    """Two words that make the codes of each family different."""
    if family_ == "text":
        return np.zeros(2, np.uint64)
    digest = hashlib.blake2b(family_.encode(), digest_size=16).digest()
    return np.frombuffer(digest, np.uint64).copy()  # writable like the other: one kernel for both


def entries_of(cells: Iterable[RowValues]) -> Iterator[U64]:
    """The entries of rows."""
    return (block for rows in cells for block in rows.blocks())


def count(item: CountValues) -> Iterator[TaskResult]:
    """Write runs of the values, each of at most as many entries as a task holds in memory."""
    blocks: list[U64] = []
    root = item.cells.view.path
    for block in item.cells.blocks():
        blocks.append(block)
        if sum(map(len, blocks)) > thresholds.current.task_entries:
            yield written(root, item.prefix, values.merged(blocks))
            blocks = []
    if any(map(len, blocks)):
        yield written(root, item.prefix, values.merged(blocks))


def move(item: MoveValues) -> Iterator[TaskResult]:
    """Write the changed entries; return how many values move between clusters."""
    delta, old = item.entries()
    with np.errstate(over="ignore"):
        masks, counts, wrong = values.transitions(delta, old, item.words)
    if not item.frequencies:
        delta = delta[values.arrivals(delta, old)]
        delta[:, 3] = 1
    task_result = written(Path(item.root), item.prefix, delta, item.frequencies)
    task_result.facts["wrong"] = bool(wrong)
    yield TaskResult(task_result.facts, {"masks": masks, "counts": counts})


def merge(item: MergeRuns) -> Iterator[TaskResult]:
    """Write the merged part."""
    entries = values.merged(item.slices(item.runs))
    yield written(Path(item.root), item.prefix, entries, item.frequencies)


def compare(item: CompareRuns) -> Iterator[TaskResult]:
    """How many values differ, by attribute."""
    two = item.slices(item.two)
    for block in two:
        block[:, 3] = np.uint64(0) - block[:, 3]
    different = values.merged([*item.slices(item.one), *two])
    attributes, counts = np.unique(different[:, 2], return_counts=True)
    wrong = dict(zip(map(str, attributes.tolist()), counts.tolist(), strict=True))
    yield TaskResult({"wrong": wrong})


def missing(item: MissingValues) -> Iterator[TaskResult]:
    """The codes of the values."""
    wanted = (item.dependent, item.referenced)
    blocks = item.slices(item.runs)
    entries = values.merged([block[np.isin(block[:, 2], wanted)] for block in blocks])
    # A code has one entry here, or two: the one of each attribute.
    same = (entries[1:, :2] == entries[:-1, :2]).all(axis=1)
    single = ~(np.append(same, False) | np.insert(same, 0, False))[: len(entries)]
    lone = single & (entries[:, 2] == item.dependent)
    yield TaskResult({"values": int(lone.sum())}, {"codes": entries[lone, :2][: item.most]})


def find(item: FindValues) -> Iterator[TaskResult]:
    """The ids of rows with their codes, each code at most once per segment."""
    for segment, positions, codes in item.cells.codes(0):
        at = found_at(codes, item.codes)
        places, first = np.unique(at, return_index=True)
        ids = positions[first[places >= 0]] + segment.base
        yield TaskResult({}, {"codes": places[places >= 0], "ids": ids})


def found_at(codes: U64, among: U64) -> I64:
    """The position of each code among others, which are sorted by their first words; -1 if it is
    not there."""
    at = np.full(len(codes), -1, np.int64)
    if len(among):
        first = np.minimum(np.searchsorted(among[:, 0], codes[:, 0]), len(among) - 1)
        near = among[first, 0] == codes[:, 0]
        same = near & (among[first, 1] == codes[:, 1])
        at[same] = first[same]
        # Two codes with one first word are next to each other; there are hardly ever any.
        for row in np.flatnonzero(near & ~same).tolist():
            for k in range(int(first[row]), len(among)):
                if (among[k] == codes[row]).all():
                    at[row] = k
    return at


def trial(item: ContainmentTests) -> Iterator[TaskResult]:
    """For each pair of sides: a code that refutes it, if there is one in the range, and how many
    rows of the left side have it."""
    entries = values.merged([*entries_of(item.cells), *item.slices(item.runs)])
    left, right = np.array(item.left, np.int64), np.array(item.right, np.int64)
    seen = np.zeros(left.size, np.bool_)
    words = max([0, *item.left, *item.right]) // 64 + 1
    at = values.refuted(entries, words, left, right, seen)
    codes, rows = np.zeros((left.size, 2), np.uint64), np.zeros(left.size, np.int64)
    codes[at >= 0] = entries[at[at >= 0], :2]
    rows[at >= 0] = entries[at[at >= 0], 3]
    yield TaskResult({}, {"seen": seen, "rows": rows, "codes": codes})


def count_tuples(item: CountTuples) -> Iterator[TaskResult]:
    """How many rows have each of the tuples."""
    among = (codes for cells in item.among for _, _, codes in cells.codes(0))
    if not item.wanted and not len(item.codes):
        present = any(len(codes) for codes in among)
        codes, rows = np.zeros((1, 2), np.uint64), np.array([int(present)])
        yield TaskResult({}, {"codes": codes, "rows": rows})
        return
    of_batch = (codes for cells in item.wanted for _, _, codes in cells.codes(0))
    wanted = np.concatenate([item.codes, *of_batch])
    wanted = np.unique(wanted, axis=0) if len(wanted) else wanted
    rows = np.zeros(len(wanted), np.int64)
    for codes in among:
        at = found_at(codes, wanted)
        rows += np.bincount(at[at >= 0], minlength=len(wanted))
    yield TaskResult({}, {"codes": wanted, "rows": rows})


def overlap(item: Overlap) -> Iterator[TaskResult]:
    """``common[a, b]`` sums over all values how often each occurs in both columns (the smaller of
    the two numbers). The diagonal has the number of values of each column. Neither has a column's
    value that most of its cells have."""
    entries = values.merged([*entries_of(item.cells), *item.slices(item.runs)])
    common = np.zeros((item.columns, item.columns), np.int64)
    values.in_common(entries, item.most, common)
    yield TaskResult({}, {"common": common})


def written(root: Path, prefix: str, entries: U64, frequencies: bool = True) -> TaskResult:
    if not len(entries):
        return TaskResult({"part": None, "entries": 0})
    arrays: dict[str, NDArray[Any]] = {
        "code": np.ascontiguousarray(entries[:, 0]),
        "rest": np.ascontiguousarray(entries[:, 1]),
        "attribute": entries[:, 2].astype(np.int32),
    }
    if frequencies:
        arrays["count"] = entries[:, 3].astype(np.int64)
    path = write_sorted(root, unique(prefix, "values"), arrays)
    return TaskResult({"part": path, "entries": len(entries)})


def _between(run: ValueRun, low: int, high: int) -> list[str]:
    """The files of a run that may have codes from ``low`` to below ``high``."""
    count = len(run.parts)
    return [
        part
        for k, part in enumerate(run.parts)
        if part and cut(k, count) < high and cut(k + 1, count) > low
    ]


def slices(root: Path, runs: tuple[ValueRun, ...], low: int, high: int) -> list[U64]:
    """The entries of runs in a range of codes."""
    blocks = []
    for run in runs:
        for part in _between(run, low, high):
            file = open_arrays(root / part)
            bounds = np.array([low, min(high, CODES - 1)], np.uint64)
            (first, last), _ = file.search("code", bounds)
            if high >= CODES:
                last = len(file)
            blocks.append(_entries(file.between(int(first), int(last))))
    return blocks


def same_codes(root: Path, runs: tuple[ValueRun, ...], low: int, high: int, codes: U64) -> U64:
    """The entries of runs that have one of the codes."""
    blocks = []
    needles = np.ascontiguousarray(codes[:, 0])
    for run in runs:
        for part in _between(run, low, high) if len(codes) else ():
            file = open_arrays(root / part)
            lo, hi = file.search("code", needles)
            rest = file.stretches("rest", lo, hi)
            positions = values.positions(codes, lo, hi, rest)
            blocks.append(_entries(file.entries(positions)))
    return values.merged(blocks)


def same_first_words(
    root: Path, runs: tuple[ValueRun, ...], low: int, high: int, words: U64
) -> U64:
    """The entries of runs whose codes begin with one of these words, which differ."""
    blocks = []
    for run in runs:
        for part in _between(run, low, high) if len(words) else ():
            file = open_arrays(root / part)
            lo, hi = file.search("code", words)
            counts = hi - lo
            before = np.cumsum(counts) - counts
            positions = np.repeat(lo - before, counts) + np.arange(counts.sum())
            blocks.append(_entries(file.entries(positions)))
    return values.merged(blocks)


def _entries(arrays: dict[str, NDArray[Any]]) -> U64:
    note(sum(array.nbytes for array in arrays.values()))
    out = np.empty((len(arrays["code"]), 4), np.uint64)
    out[:, 0] = arrays["code"]
    out[:, 1] = arrays["rest"]
    out[:, 2] = arrays["attribute"]
    out[:, 3] = arrays["count"].view(np.uint64) if "count" in arrays else 1
    return out
