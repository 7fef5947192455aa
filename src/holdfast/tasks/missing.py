"""Rows whose values another table lacks, and those of its values that are one edit away.

Tasks write the codes of both sides (:mod:`tasks.groups`). The next ones take ranges of codes, and
write the rows whose codes are missing. Where values are texts, others go through the texts of the
other table, and write rows that have one which is an edit away from a missing one. The last put the
two together, as findings for :mod:`tasks.suspects`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.edits import Neighbours
from holdfast.kernels.numbering import numbered
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks import exchange
from holdfast.tasks.segments import Segment, live_positions, open_raw, read_raw
from holdfast.tasks.shown import cells
from holdfast.tasks.suspects import NO_ROW, SPREAD, findings
from holdfast.tasks.view import View

_MISSING = 4
"""The words of a row whose value is missing: the first such row, spread evenly; that row; the row
itself; how many there are."""

_NEAR = 4
"""The words of a value that is one edit away: the first row with the missing one, spread evenly;
that row; the hash of the value; a row that has it."""


@dataclass(frozen=True)
class FindMissing:
    """Find the rows of one side whose codes the other side lacks, in one range of codes."""

    root: str
    dependent: tuple[str, ...]
    referenced: tuple[str, ...]
    part: int
    parts: int
    prefix: str


@dataclass(frozen=True)
class FindNear:
    """Find values of a view that are one edit away from missing ones."""

    view: View
    column: int
    missing: tuple[str, ...]  # files of missing values …
    segments: tuple[Segment, ...]  # of these rows …
    missing_column: int  # and this column
    prefix: str

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live


@dataclass(frozen=True)
class SuspectMissing:
    """Make findings of the rows whose values are missing, in one range of rows."""

    root: str
    missing: tuple[str, ...]
    near: tuple[str, ...]
    rule: int
    part: int
    parts: int
    prefix: str


def find_missing(item: FindMissing) -> Iterator[TaskResult]:
    """The file of these rows."""
    dependent, referenced = (
        exchange.between(Path(item.root), files, item.part, item.parts, 3)
        for files in (item.dependent, item.referenced)
    )
    both = np.concatenate([dependent, referenced])
    numbers = numbered(np.ascontiguousarray(both[:, 0]), np.ascontiguousarray(both[:, 1]))
    is_there = np.zeros(numbers.count, np.bool_)
    is_there[numbers.of_rows[len(dependent) :]] = True
    codes = numbers.of_rows[: len(dependent)]
    missing = ~is_there[codes]
    ids, values = dependent[missing, 2], codes[missing]
    order = np.lexsort((ids, values))
    ids, values = ids[order], values[order]
    starts = np.flatnonzero(np.diff(values, prepend=-1))
    sizes = np.diff(np.append(starts, len(ids)))
    firsts, numbers_of = np.repeat(ids[starts], sizes), np.repeat(sizes, sizes)
    words = np.column_stack([firsts * SPREAD, firsts, ids, numbers_of.view(np.uint64)])
    file = exchange.write(Path(item.root), item.prefix, words)
    yield TaskResult({"files": [file]})


def find_near(item: FindNear) -> Iterator[TaskResult]:
    """The file of these values: of each missing one up to two that differ."""
    root = item.view.path
    missing = exchange.between(root, item.missing, 0, 1, _MISSING)
    firsts = np.unique(missing[:, 1].view(np.int64))
    ids, texts = _texts(root, item.segments, item.missing_column, firsts)
    neighbours = Neighbours.of(texts)
    for segment in item.view.segments:
        if not len(texts) or segment.raw is None:
            continue
        live = live_positions(root, segment)
        reader, start = open_raw(root, segment, [item.column]), 0
        for number in range(reader.num_record_batches):
            look()
            column = reader.get_batch(number).column(0)
            low, high = np.searchsorted(live, [start, start + len(column)])
            positions, values = _known(column.take(live[low:high] - start), live[low:high])
            neighbours.look_at(values, positions + segment.base)
            start += len(column)
    places, turns = np.nonzero(np.arange(2) < neighbours.found[:, None])
    words = np.column_stack(
        [
            ids[places].view(np.uint64) * SPREAD,
            ids[places].view(np.uint64),
            neighbours.hashes[places, turns],
            neighbours.ids[places, turns].view(np.uint64),
        ]
    )
    yield TaskResult({"files": [exchange.write(root, item.prefix, words)]})


def _texts(
    root: Path, segments: tuple[Segment, ...], column: int, ids: I64
) -> tuple[I64, list[str]]:
    """The texts that rows have in a column, and their ids, as far as rows are kept."""
    found, texts = [np.empty(0, np.int64)], []
    for segment in segments:
        of_segment = ids[ids >> 32 == segment.number]
        if len(of_segment) and segment.raw is not None:
            rows = read_raw(root, segment, of_segment - segment.base)
            known, more = _known(rows.column(column), of_segment)
            found.append(known)
            texts += more
    return np.concatenate(found), texts


def _known(column: Any, numbers: I64) -> tuple[I64, list[str]]:
    """The texts of a column that are not null, with their numbers."""
    values = cells(column)
    is_known = np.array([value is not None for value in values], np.bool_)
    return numbers[is_known], [value for value in values if value is not None]


def suspect_missing(item: SuspectMissing) -> Iterator[TaskResult]:
    """The file of findings, and how many values are missing. Where one value alone is an edit away,
    a row that has it is the one to compare with."""
    root = Path(item.root)
    missing = exchange.between(root, item.missing, item.part, item.parts, _MISSING)
    near = exchange.between(root, item.near, item.part, item.parts, _NEAR)
    near = near[np.lexsort((near[:, 3], near[:, 2], near[:, 1]))]
    firsts, starts = np.unique(near[:, 1], return_index=True)
    ends = np.append(starts, len(near))[1:] - 1
    is_alone = near[starts, 2] == near[ends, 2]
    firsts, others = firsts[is_alone], near[starts[is_alone], 3].view(np.int64)
    beside = np.full(len(missing), NO_ROW, np.int64)
    if len(firsts):
        at = np.minimum(np.searchsorted(firsts, missing[:, 1]), len(firsts) - 1)
        known = firsts[at] == missing[:, 1]
        beside[known] = others[at[known]]
    sizes: U64 = missing[:, 3]
    values = len(np.unique(missing[:, 1]))
    words = findings(missing[:, 2], item.rule, beside.view(np.uint64), sizes, sizes)
    yield TaskResult({"files": [exchange.write(root, item.prefix, words)], "groups": values})
