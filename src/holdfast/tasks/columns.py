"""Facts about columns: the number of nulls, the lowest and highest value, and what occurs.

A value is identified by its *key*, hexadecimal text with the order of the values: the words of
numbers, dates and times, and the first few bytes of texts and binary values. Each lowest or highest
value comes with the number of living rows that have it, so that a delete can tell whether it
removes the last. For a text longer than its key that number is unknown (None).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import columns as kernels
from holdfast.kernels.arrays import I64, U64
from holdfast.model import thresholds
from holdfast.model.records import from_form, to_form
from holdfast.model.samples import Sample
from holdfast.runtime.reads import note
from holdfast.runtime.result import TaskResult
from holdfast.tasks.encode import RowLayout, encode, has_bytes, layout, orders
from holdfast.tasks.samples import Sampler, Samples, text_bytes
from holdfast.tasks.segments import (
    Segment,
    live_positions,
    map_dead,
    map_words,
    open_arrays,
    open_raw,
    read_column,
)
from holdfast.tasks.view import View

LOWEST, HIGHEST = 0, 1
SIDES = (LOWEST, HIGHEST)

_SIGN = 1 << 63
_NOBODY = np.empty(0, np.int64)
_WALK = 1_024
"""Entries of an index that are looked at first."""


class End(NamedTuple):
    """The lowest or highest value of a column in some rows."""

    key: str
    rows: int | None  # that have it; None: not known


Ends = tuple[End | None, End | None]
"""Both; None: there are no values, or none with an order."""


class EndWords(NamedTuple):
    """The lowest or highest value of a column, as the words of cells."""

    column: int
    side: int
    words: tuple[int, ...]
    rows: int  # that have it


@dataclass(frozen=True)
class ColumnSummary:
    """The facts about a column in some rows."""

    nulls: int = 0
    ends: Ends = (None, None)
    samples: Samples = Samples()  # noqa: RUF009  a tuple, which nobody changes

    def joined(self, newer: ColumnSummary) -> ColumnSummary:
        """The facts about these rows and newer ones together."""
        lowest, highest = (joined(side, (self.ends[side], newer.ends[side])) for side in SIDES)
        return ColumnSummary(
            self.nulls + newer.nulls, (lowest, highest), self.samples.joined(newer.samples)
        )

    def to_form(self) -> list[Any]:
        """As a task sends it."""
        return [self.nulls, *self.ends, *map(to_form, self.samples)]

    @staticmethod
    def from_form(form: list[Any]) -> ColumnSummary:
        """What a task sent."""
        return ColumnSummary(form[0], ends_of(form[1:3]), samples_of(form[3:]))


def summary(kind: pa.DataType, raw: bool) -> ColumnSummary:
    """The facts about a column of no rows, where raw rows are kept or not."""
    return ColumnSummary(0, (None, None), Sampler(kind, raw).samples)


def samples_of(form: Sequence[Any]) -> Samples:
    """The samples that a task sent."""
    values, shapes = (None if each is None else from_form(Sample, each) for each in form)
    return Samples(values, shapes)


def ends_of(form: Sequence[Any]) -> Ends:
    """The ends that a task sent."""
    lowest, highest = (None if end is None else End(*end) for end in form)
    return lowest, highest


def joined(side: int, ends: Iterable[End | None]) -> End | None:
    """The lowest or highest of some ends."""
    known = [end for end in ends if end is not None]
    if not known:
        return None
    key = (max if side else min)(end.key for end in known)
    rows = [end.rows for end in known if end.key == key]
    counted = sum(filter(None, rows))
    # A text that is cut is longer than its key: it comes after one that ends there.
    cut = None in rows and (side != LOWEST or not counted)
    return End(key, None if cut else counted)


def words_of(key: str, kind: pa.DataType) -> tuple[int, ...]:
    """The words of cells with a value that is not longer than its key."""
    if has_bytes(kind):
        cell = pa.record_batch([pa.array([bytes.fromhex(key)], pa.binary())], names=["c0"])
        return tuple(encode(cell, layout(cell.schema)).view(np.uint64)[:2, 0].tolist())
    high = (int(key[:16], 16) - _SIGN) % (1 << 64)
    return (high,) if len(key) == 16 else (int(key[16:], 16), high)


def number_of(key: str) -> int:
    """The integer that words hold."""
    high = int(key[:16], 16) - _SIGN
    return high if len(key) == 16 else (high << 64) + int(key[16:], 16)


# Of rows on their way in


class Collected:
    """Collects the facts about all columns while rows are written; about texts only where raw rows
    are kept."""

    def __init__(self, schema: pa.Schema, raw: bool) -> None:
        self._layout = layout(schema)
        self._types = [field.type for field in schema]
        self._raw = raw
        self._facts = [ColumnSummary()] * len(self._types)
        self._samplers = [Sampler(kind, raw) for kind in self._types]

    def add(self, words: U64, batch: pa.RecordBatch) -> None:
        """Take in rows, and their words, which are column-major."""
        for column, kind in enumerate(self._types):
            empty = batch.column(column).null_count
            ends: Ends = (None, None)
            readable, sampler = self._raw or not has_bytes(kind), self._samplers[column]
            has_ends = readable and (orders(kind) or has_bytes(kind))
            if empty < batch.num_rows and (has_ends or not sampler.is_done):
                first = self._layout.offsets[column]
                cells = words[first : first + self._layout.widths[column]]
                array = batch.column(column)
                if empty:
                    mask = words[self._layout.value_words + column // 64]
                    cells = cells[:, ~null_flags(mask, column)]
                    array = array.drop_null()
                if has_ends:
                    ends = word_ends(cells) if orders(kind) else byte_ends(array, cells)
                if not sampler.is_done:
                    sampler.add(cells, array)
            self._facts[column] = self._facts[column].joined(ColumnSummary(empty, ends))

    @property
    def forms(self) -> list[Any]:
        """As a task sends them."""
        return [
            replace(facts, samples=sampler.samples).to_form()
            for facts, sampler in zip(self._facts, self._samplers, strict=True)
        ]


def null_flags(mask: U64, column: int) -> NDArray[np.bool_]:
    """Which rows are null in a column, given its word of the null mask."""
    return (mask >> np.uint64(column % 64) & np.uint64(1)).astype(np.bool_)


def word_ends(words: U64) -> tuple[End, End]:
    """The ends of the cells of at least one row: ``(1 or 2, rows)``."""
    first = words[-1].view(np.int64)  # the upper word of a wide decimal, which is signed
    ends = []
    for side in SIDES:
        most = int(first.max() if side else first.min())
        here = first == most
        key = f"{most + _SIGN:016x}"
        if len(words) == 2:
            rest = words[0][here]
            last = int(rest.max() if side else rest.min())
            key += f"{last:016x}"
            here = rest == np.uint64(last)
        ends.append(End(key, int(np.count_nonzero(here))))
    return ends[0], ends[1]


def byte_ends(array: pa.Array, hashes: U64) -> tuple[End, End]:
    """The ends of at least one text, without nulls, by their bytes; ``hashes`` are their words."""
    ends, data = text_bytes(array)
    out = np.empty(4, np.int64)
    kernels.text_ends(data, ends, hashes, out)
    most = thresholds.current.shown_bytes
    both = []
    for row, rows in out.reshape(2, 2).tolist():
        content = data[ends[row] : ends[row + 1]]
        known = content.size <= most
        both.append(End(content[:most].tobytes().hex(), rows if known else None))
    return both[0], both[1]


# Of rows that are there

Without = Mapping[int, I64]
"""Positions of rows that are left out, by the number of their segment."""


@dataclass(frozen=True)
class Scan:
    """Find the ends of these columns in all living rows, and what occurs in ``sampled`` ones."""

    view: View
    schema: pa.Schema
    columns: tuple[int, ...]
    sampled: tuple[int, ...] = ()


@dataclass(frozen=True)
class Whole:
    """All columns of some segments."""

    view: View
    schema: pa.Schema


def facts(item: Whole) -> Iterator[TaskResult]:
    """The facts about all columns, in the form that tasks return which write rows."""
    numbers = range(len(item.schema))
    forms = [column_facts(item.view, item.schema, column).to_form() for column in numbers]
    yield TaskResult({"columns": forms})


def scan(item: Scan) -> Iterator[TaskResult]:
    """The ends of the columns, and what occurs."""
    yield TaskResult(
        {
            "ends": [column_ends(item.view, item.schema, c) for c in item.columns],
            "samples": [
                [*map(to_form, column_samples(item.view, item.schema, c))] for c in item.sampled
            ],
        }
    )


def column_ends(view: View, schema: pa.Schema, column: int, without: Without | None = None) -> Ends:
    """The lowest and highest value of a column in all living rows but those left out; found in an
    index if there is one."""
    facts = ColumnSummary()
    shape, kind = layout(schema), schema.field(column).type
    for segment in view.segments:
        gone = (without or {}).get(segment.number, _NOBODY)
        if orders(kind) and shape.widths[column] == 1 and str(column) in segment.indexes:
            ends = _indexed_ends(view, segment, shape, column, gone)
        else:
            ends = _segment_facts(view, segment, schema, column, gone).ends
        facts = facts.joined(ColumnSummary(0, ends))
    return facts.ends


def column_facts(
    view: View, schema: pa.Schema, column: int, without: Without | None = None
) -> ColumnSummary:
    """The facts about a column in all living rows but those left out, found without an index."""
    kind = schema.field(column).type
    sampler = Sampler(kind, all(segment.raw is not None for segment in view.segments))
    facts = ColumnSummary()
    for segment in view.segments:
        gone = (without or {}).get(segment.number, _NOBODY)
        facts = facts.joined(_segment_facts(view, segment, schema, column, gone, sampler))
    return replace(facts, samples=sampler.samples)


def column_samples(
    view: View, schema: pa.Schema, column: int, without: Without | None = None
) -> Samples:
    """What occurs in a column in all living rows but those left out; of these no more are read than
    it takes to tell."""
    shape, kind = layout(schema), schema.field(column).type
    keeps_rows = all(segment.raw is not None for segment in view.segments)
    sampler = Sampler(kind, keeps_rows)
    first, mask = shape.offsets[column], shape.value_words + column // 64
    for segment in view.segments:
        live = live_positions(view.path, segment)
        live = live[~np.isin(live, (without or {}).get(segment.number, _NOBODY))]
        for start, stop in _steps(live.size):
            if sampler.is_done:
                return sampler.samples
            rows = live[start:stop]
            words = map_words(view.path, segment).at(rows)
            rows = rows[~null_flags(words[rows, mask], column)]
            cells = np.ascontiguousarray(words[rows, first : first + shape.widths[column]].T)
            texts = None
            if has_bytes(kind) and keeps_rows and rows.size:
                texts = read_column(view.path, segment, column, rows).combine_chunks()
            sampler.add(cells, texts)
    return sampler.samples


def _segment_facts(
    view: View,
    segment: Segment,
    schema: pa.Schema,
    column: int,
    gone: I64,
    sampler: Sampler | None = None,
) -> ColumnSummary:
    shape, kind = layout(schema), schema.field(column).type
    live = live_positions(view.path, segment)
    words = map_words(view.path, segment).at(live)
    if gone.size:
        live = np.setdiff1d(live, gone, assume_unique=True)
    filled = live[~null_flags(words[live, shape.value_words + column // 64], column)]
    nulls = live.size - filled.size
    if not filled.size:
        return ColumnSummary(nulls)
    first = shape.offsets[column]
    cells = np.ascontiguousarray(words[filled, first : first + shape.widths[column]].T)
    if has_bytes(kind) and segment.raw is not None:
        return ColumnSummary(nulls, _raw_ends(view, segment, column, filled, cells, sampler))
    if sampler is not None and not sampler.is_done:
        sampler.add(cells, None)
    return ColumnSummary(nulls, word_ends(cells) if orders(kind) else (None, None))


def _indexed_ends(view: View, segment: Segment, shape: RowLayout, column: int, gone: I64) -> Ends:
    """The first living rows from both ends of a sorted column."""
    index = open_arrays(view.path / segment.indexes[str(column)])
    words, dead = map_words(view.path, segment), map_dead(view.path, segment)

    def lives(lo: int, hi: int) -> NDArray[np.bool_]:
        places = index.between(lo, hi)["positions"].astype(np.int64)
        note(places.nbytes)
        mask = words.at(places)[places, shape.value_words + column // 64]
        there = ~null_flags(mask, column)
        if dead.size:
            there &= (dead[places >> 3] >> (places & 7).astype(np.uint8) & 1) == 0
        return there & ~np.isin(places, gone) if gone.size else there

    ends: list[End | None] = [None, None]
    for side in SIDES:
        for start, stop in _steps(len(index)):
            lo, hi = (len(index) - stop, len(index) - start) if side else (start, stop)
            there = np.flatnonzero(lives(lo, hi))
            if there.size:
                code = int(index.between(lo, hi)["codes"][there[-1 if side else 0]])
                (lo,), (hi,) = index.search("codes", np.array([code]))
                rows = int(np.count_nonzero(lives(lo, hi)))
                ends[side] = End(f"{code + _SIGN:016x}", rows)
                break
    return ends[0], ends[1]


def _steps(total: int) -> Iterator[tuple[int, int]]:
    """Ranges over everything, each twice as long as the one before."""
    start, size = 0, _WALK
    while start < total:
        yield start, min(start + size, total)
        start, size = start + size, 2 * size


def _raw_ends(
    view: View,
    segment: Segment,
    column: int,
    filled: I64,
    hashes: U64,
    sampler: Sampler | None,
) -> Ends:
    """The ends of texts, from raw rows, as their words are hashes; and what occurs."""
    reader = open_raw(view.path, segment, [column])
    facts = ColumnSummary()
    start = 0
    for number in range(reader.num_record_batches):
        array = reader.get_batch(number).column(0)
        lo, hi = np.searchsorted(filled, [start, start + len(array)])
        if hi > lo:
            there = array.take(pa.array(filled[lo:hi] - start))
            facts = facts.joined(ColumnSummary(0, byte_ends(there, hashes[:, lo:hi])))
            if sampler is not None and not sampler.is_done:
                sampler.add(hashes[:, lo:hi], there)
        start += len(array)
    return facts.ends
