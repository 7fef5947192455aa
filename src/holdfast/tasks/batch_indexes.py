"""Looking the rows of a batch up: the rows that satisfy some atoms with each, from indexes.

What is found is compared, so an index may return more than the atoms ask for, and never less: nulls
and hashes are sorted out there. A row with which much of a segment goes is compared with all of it,
because that is quicker.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import bitsets, chains, violations
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.chains import HIGHEST, LOWEST, RangeQueries
from holdfast.model import thresholds
from holdfast.model.batch_indexes import LookUp
from holdfast.model.comparisons import Space
from holdfast.runtime.reads import note
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks.completion import ComparedRows, rows_of
from holdfast.tasks.segments import (
    Segment,
    chain_columns,
    combined,
    index_columns,
    is_chained,
    live_positions,
    look_up,
    map_chains,
)
from holdfast.tasks.view import View


@dataclass(frozen=True)
class LookedUp:
    """Compare one part of a batch's rows with the rows that look-ups find, and with each other."""

    view: View  # of all rows
    batch: tuple[Segment, ...]  # some of its segments
    schema: pa.Schema
    space: Space
    lookups: tuple[LookUp, ...]
    most: float  # of a segment's rows, beyond which a row is compared with all of them
    short: int  # rows of a segment that every row is compared with
    part: int
    parts: int


class _Stretches(NamedTuple):
    """Rows that were found: stretches of an index."""

    t: I64  # the row of the batch of each
    start: I64
    stop: I64
    positions: NDArray[np.int32]  # of the index


def looked_up(item: LookedUp) -> Iterator[TaskResult]:
    """Evidence of all pairs that the look-ups find, and of others."""
    view = item.view
    compared = ComparedRows(view, item.schema, item.space)
    if item.part == 0:
        compared.with_each_other(*rows_of(view, item.batch))
    words, ids = rows_of(view, item.batch, item.part, item.parts)
    numbers = {segment.number for segment in item.batch}
    goes_with_all = _goes_with_all(item, compared, words)
    looked_at = 0
    for segment in view.segments:
        if segment.number in numbers or not segment.live or not len(ids):
            continue
        look()
        if segment.live <= item.short:
            looked_at += len(ids) * segment.live
            _compare_whole(view, segment, compared, words, ids)
            continue
        stretches = [
            _stretches(item, segment, lookup, words) for lookup in item.lookups if lookup.index
        ]
        sizes = sum(
            (np.bincount(f.t, f.stop - f.start, len(ids)) for f in stretches), np.zeros(len(ids))
        )
        whole = goes_with_all | (sizes > item.most * segment.rows)
        looked_at += int(sizes[~whole].sum()) + int(whole.sum()) * segment.live
        _compare_pairs(view, segment, compared, words, ids, _pairs(stretches, whole, segment))
        _compare_whole(view, segment, compared, words[whole], ids[whole])
    yield TaskResult({"pairs": looked_at}, compared.arrays())


def _goes_with_all(item: LookedUp, compared: ComparedRows, words: U64) -> Flags:
    """Which rows satisfy all atoms of a look-up that is about row t alone."""
    asked = [lookup.atoms for lookup in item.lookups if not lookup.index]
    if not asked or not len(words):
        return np.zeros(len(words), np.bool_)
    satisfied: Flags = bitsets.any_subset(
        compared.own_evidence(words), bitsets.from_columns(asked, item.space.atoms)
    )
    return satisfied


def _pairs(stretches: list[_Stretches], whole: Flags, segment: Segment) -> I64:
    """The pairs of rows of the batch and of a segment that were found, each once."""
    keys = [np.empty(0, np.int64)]
    for found_in in stretches:
        not_whole = ~whole[found_in.t]
        start, size = found_in.start[not_whole], (found_in.stop - found_in.start)[not_whole]
        places = np.arange(size.sum()) + np.repeat(start - np.cumsum(size) + size, size)
        keys.append(
            np.repeat(found_in.t[not_whole], size) * segment.rows + found_in.positions[places]
        )
    distinct = np.unique(np.concatenate(keys))
    return np.stack([distinct // segment.rows, distinct % segment.rows], axis=1)


def _compare_pairs(
    view: View, segment: Segment, compared: ComparedRows, words: U64, ids: I64, row_pairs: I64
) -> None:
    """Compare pairs of a row of the batch and a living one of a segment."""
    living = np.zeros(segment.rows, np.bool_)
    living[live_positions(view.path, segment)] = True
    row_pairs = row_pairs[living[row_pairs[:, 1]]]
    chunk = thresholds.current.fetched_pairs
    for start in range(0, len(row_pairs), chunk):
        t, s = row_pairs[start : start + chunk].T
        ones, t = np.unique(t, return_inverse=True)
        others, s = np.unique(s, return_inverse=True)
        rows = np.concatenate([words[ones], view.rows(segment, others)])
        places = np.concatenate([ids[ones], others + segment.base])
        compared.in_pairs(rows, places, np.stack([t, s + len(ones)], axis=1))


def _compare_whole(
    view: View, segment: Segment, compared: ComparedRows, words: U64, ids: I64
) -> None:
    """Compare rows of the batch with all rows of a segment."""
    if not len(ids):
        return
    live, chunk = live_positions(view.path, segment), thresholds.current.coded_rows
    for start in range(0, len(live), chunk):
        positions = live[start : start + chunk]
        compared.with_others(words, ids, view.rows(segment, positions), positions + segment.base)


def _stretches(item: LookedUp, segment: Segment, lookup: LookUp, words: U64) -> _Stretches:
    """What a look-up finds in a segment."""
    view = item.view
    asked = violations.terms(item.space, lookup.atoms)
    if asked is None:
        raise ValueError("no pair satisfies all atoms of a comparison")
    terms = {comparison.right: (comparison.left, op) for comparison, op in asked}
    if is_chained(lookup.index):
        return _Chained(view, segment, lookup.index, terms, words).found()
    columns = [terms[column][0] for column in index_columns(lookup.index)]
    lo, hi, positions = look_up(view.path, segment, lookup.index, _codes(words, columns, view))
    nonempty = np.flatnonzero(lo < hi)
    return _Stretches(nonempty, lo[nonempty], hi[nonempty], positions)


def _codes(words: U64, columns: list[int], view: View) -> U64:
    """The codes of rows t in an index over the columns that theirs are equal to."""
    if len(columns) == 1:
        return np.ascontiguousarray(words[:, view.shape.first[columns[0]]])
    return combined(words, columns, view.shape)


class _Range(NamedTuple):
    """A range of numbers for every row t; where ``tie``, of rows whose first words are those of t,
    and which only count if they are different cells nevertheless."""

    low: I64
    high: I64
    tie: bool


class _Chained:
    """Look-ups in an index of rows in chains."""

    def __init__(
        self, view: View, segment: Segment, name: str, terms: dict[int, tuple[int, str]], words: U64
    ) -> None:
        self._view, self._segment, self._words, self._terms = view, segment, words, terms
        self._index, facts = map_chains(view.path, segment, name)
        self._uniform = {*facts["uniform"]}
        self._groups, self._order, self._falling = chain_columns(name)

    def found(self) -> _Stretches:
        """All rows that the terms ask for."""
        index = self._index
        parts = []
        for rows, lo, hi, differing in self._spans():
            asked = [self._ranges(column, self._words[rows]) for column in self._order]
            for boxes in product(*asked):
                first, second = boxes[0], boxes[1] if len(boxes) > 1 else _everything(len(rows))
                box = RangeQueries(
                    lo, hi, _both_ends(first, False), _both_ends(second, self._falling)
                )
                stretches = chains.fetch(index, box)
                note(index.positions.itemsize * (stretches[:, 2] - stretches[:, 1]).sum())
                t, start, stop = rows[stretches[:, 0]], stretches[:, 1], stretches[:, 2]
                ties = [
                    column
                    for column, asked_of in zip(self._order, boxes, strict=False)
                    if asked_of.tie
                ]
                differing_rows = self._differ([*ties, *differing], t, start)
                parts.append((t[differing_rows], start[differing_rows], stop[differing_rows]))
        none = (np.empty(0, np.int64),) * 3
        t, start, stop = (np.concatenate(blocks) for blocks in zip(none, *parts, strict=True))
        return _Stretches(t, start, stop, index.positions)

    def _spans(self) -> Iterator[tuple[I64, I64, I64, tuple[int, ...]]]:
        """Rows t, the spans of the groups that each goes with, and the columns of groups in which
        the rows found have to be other cells than theirs."""
        codes, rows = self._index.codes, np.arange(len(self._words))
        if not self._groups:
            yield rows, np.zeros_like(rows), np.full_like(rows, len(codes)), ()
            return
        columns = [self._terms[column][0] for column in self._groups]
        own_codes = _codes(self._words, columns, self._view).view(np.int64)
        lo, hi = (
            np.searchsorted(codes, own_codes, "left"),
            np.searchsorted(codes, own_codes, "right"),
        )
        if self._terms[self._groups[0]][1] == "=":
            yield rows, lo, hi, ()
            return
        # All other groups, and this one if it has other cells of the same code.
        yield rows, lo, hi, self._groups if self._groups[0] in self._uniform else ()
        start = 0
        while start < len(codes):
            stop = int(np.searchsorted(codes, codes[start], "right"))
            others = rows[own_codes != codes[start]]
            yield others, np.full(len(others), start), np.full(len(others), stop), ()
            start = stop

    def _ranges(self, column: int, words: U64) -> list[_Range]:
        """The numbers of a column that go with each row t: all, where nothing is asked of it."""
        if column not in self._terms:
            return [_everything(len(words))]
        left, op = self._terms[column]
        value = np.ascontiguousarray(words[:, self._view.shape.first[left]]).view(np.int64)
        lowest, highest = np.full_like(value, LOWEST), np.full_like(value, HIGHEST)
        # Beyond the ends there is nothing: from 1 to 0.
        last, first = value == HIGHEST, value == LOWEST
        above = _Range(np.where(last, 1, value + ~last), np.where(last, 0, highest), tie=False)
        below = _Range(np.where(first, 1, lowest), np.where(first, 0, value - ~first), tie=False)
        if op == "!=":
            uniform = column in self._uniform
            return [below, above, _Range(value, value, tie=uniform)]
        return {
            "<": [above],
            "<=": [_Range(value, highest, tie=False)],
            ">": [below],
            ">=": [_Range(lowest, value, tie=False)],
            "=": [_Range(value, value, tie=False)],
        }[op]

    def _differ(self, columns: list[int], t: I64, start: I64) -> Flags:
        """Of which stretches the first row, and so each, has other cells than row t in some
        columns."""
        differ = np.ones(len(t), np.bool_)
        shape, positions = self._view.shape, self._index.positions
        rows = positions[start].astype(np.int64)
        for column in columns:
            left = self._terms[column][0]
            ours, theirs = self._words[t], self._view.rows(self._segment, rows)
            own, other = (
                _nulls(ours, left, shape.owner.size),
                _nulls(theirs, column, shape.owner.size),
            )
            cells = ours[:, shape.first[left] : shape.first[left + 1]]
            same = (cells == theirs[:, shape.first[column] : shape.first[column + 1]]).all(axis=1)
            same &= own == other
            if not self._view.nulls_equal:
                same &= ~own
            differ &= ~same
        return differ


def _everything(rows: int) -> _Range:
    return _Range(np.full(rows, LOWEST), np.full(rows, HIGHEST), tie=False)


def _both_ends(asked: _Range, falling: bool) -> I64:
    ends = (~asked.high, ~asked.low) if falling else (asked.low, asked.high)
    return np.stack(ends, axis=1)


def _nulls(words: U64, column: int, values: int) -> Flags:
    bits = words[:, values + column // 64] >> np.uint64(column % 64) & np.uint64(1)
    return bits.astype(np.bool_)
