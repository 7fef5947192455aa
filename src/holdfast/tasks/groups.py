"""Groups of rows, counted from scratch: rows that agree on some columns, and tuples that other
columns lack.

Rows get codes, and a task sorts those of all rows, or those in a range of codes that other tasks
have written. It sends back numbers, and the ids of a few rows to show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.runtime.result import TaskResult
from holdfast.tasks import exchange
from holdfast.tasks.segments import combined, live_positions, map_words
from holdfast.tasks.values import RowValues
from holdfast.tasks.view import View


@dataclass(frozen=True)
class ExampleLimits:
    """How many examples are sent back, and rows of each."""

    groups: int
    rows: int


@dataclass(frozen=True)
class Grouped:
    """Look for rows that agree on some columns and, unless a key is asked for, differ in another;
    with a prefix, write the hashes of these rows for :class:`GroupedIn` instead."""

    view: View
    lhs: tuple[int, ...]
    rhs: int | None
    limits: ExampleLimits
    prefix: str | None = None

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live


@dataclass(frozen=True)
class GroupedIn:
    """The same, of the hashes in files that are in one range."""

    root: str
    files: tuple[str, ...]
    rhs: int | None
    part: int
    parts: int
    limits: ExampleLimits


@dataclass(frozen=True)
class Orphans:
    """Look for values of the first attribute of some rows that those of others do not have."""

    dependent: RowValues
    referenced: RowValues
    limits: ExampleLimits


@dataclass(frozen=True)
class WriteCodes:
    """Write the codes of the first attribute of some rows, and the rows' ids, for
    :class:`OrphansIn`."""

    rows: RowValues
    prefix: str

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.rows.count


@dataclass(frozen=True)
class OrphansIn:
    """The same as :class:`Orphans`, of the codes in files that are in one range."""

    root: str
    dependent: tuple[str, ...]
    referenced: tuple[str, ...]
    part: int
    parts: int
    limits: ExampleLimits


def grouped(item: Grouped) -> Iterator[TaskResult]:
    """How many groups, rows and pairs violate, and how many rows would have to go: of each group
    all but those with its most frequent value on the right."""
    hashes = _hashes(item)
    if item.prefix is None:
        yield _agreeing(hashes, item.rhs, item.limits)
    else:
        yield TaskResult({"files": [exchange.write(item.view.path, item.prefix, hashes)]})


def grouped_in(item: GroupedIn) -> Iterator[TaskResult]:
    """The same, of rows that all tasks have hashed."""
    hashes = exchange.between(Path(item.root), item.files, item.part, item.parts, 5)
    yield _agreeing(hashes, item.rhs, item.limits)


def orphans(item: Orphans) -> Iterator[TaskResult]:
    """How many values there are and how many are missing, in how many rows."""
    yield _missing(_codes(item.dependent), _codes(item.referenced), item.limits)


def write_codes(item: WriteCodes) -> Iterator[TaskResult]:
    """Where the codes are."""
    codes = _codes(item.rows)
    yield TaskResult({"files": [exchange.write(item.rows.view.path, item.prefix, codes)]})


def orphans_in(item: OrphansIn) -> Iterator[TaskResult]:
    """The same as :func:`orphans`, of rows that all tasks have coded."""
    dependent, referenced = (
        exchange.between(Path(item.root), files, item.part, item.parts, 3)
        for files in (item.dependent, item.referenced)
    )
    yield _missing(dependent, referenced, item.limits)


@dataclass(frozen=True)
class _Groups:
    """Rows in the order of their codes and ids, with where each group begins that has one code."""

    codes: U64  # (words, rows)
    ids: I64
    starts: I64
    sizes: I64

    @staticmethod
    def of(table: U64, words: int) -> _Groups:
        """Rows whose last number is their id, in groups by the first words of their codes."""
        ids, codes = table[:, -1].view(np.int64), table[:, :-1].T
        # The first words are the most significant.
        order = np.lexsort((ids, *codes[words:], *codes[:words]))
        codes, ids = codes[:, order], ids[order]
        return _Groups(codes, ids, *_runs(codes[:words]))

    def examples(
        self, violating: Flags, fit: Flags, limits: ExampleLimits
    ) -> dict[str, NDArray[Any]]:
        """The largest groups of those that violate something: their sizes, and the first ids of
        each that are fit to be shown; -1 where there are fewer."""
        firsts = np.minimum.reduceat(self.ids, self.starts) if len(self.starts) else self.ids
        groups = np.flatnonzero(violating)
        order = np.lexsort((firsts[groups], -self.sizes[groups]))
        groups = groups[order[: limits.groups]]
        ids = np.full((len(groups), limits.rows), -1, np.int64)
        for place, group in enumerate(groups.tolist()):
            rows = slice(self.starts[group], self.starts[group] + self.sizes[group])
            first = np.sort(self.ids[rows][fit[rows]])[: limits.rows]
            ids[place, : len(first)] = first
        return {"sizes": self.sizes[groups], "ids": ids}


def _agreeing(hashes: U64, rhs: int | None, limits: ExampleLimits) -> TaskResult:
    groups = _Groups.of(hashes, 2)
    starts, sizes = groups.starts, groups.sizes
    inner_starts, inner_sizes = _runs(groups.codes)
    group_of = np.searchsorted(starts, inner_starts, "right") - 1
    most = np.zeros(len(starts), np.int64)
    np.maximum.at(most, group_of, inner_sizes)
    distinct = np.bincount(group_of, minlength=len(starts))
    violating = sizes > 1 if rhs is None else distinct > 1
    agreeing = int(_pairs(sizes).sum())
    same = 0 if rhs is None else int(_pairs(inner_sizes).sum())
    staying = np.ones(len(starts), np.int64) if rhs is None else most
    facts = {
        "groups": int(violating.sum()),
        "rows": int(sizes[violating].sum()),
        "agreeing": agreeing,
        "pairs": agreeing - same,
        "removed": int((sizes - staying)[violating].sum()),
    }
    # Of a dependency one row of every value on the right, so that what differs is seen.
    fit = np.full(len(groups.ids), rhs is None)
    fit[inner_starts] = True
    return TaskResult(facts, groups.examples(violating, fit, limits))


def _missing(dependent: U64, referenced: U64, limits: ExampleLimits) -> TaskResult:
    groups, others = _Groups.of(dependent, 2), _Groups.of(referenced, 2)
    missing = ~_among(groups.codes[:, groups.starts], others.codes[:, others.starts])
    facts = {
        "values": len(groups.starts),
        "all_rows": len(groups.ids),
        "missing": int(missing.sum()),
        "rows": int(groups.sizes[missing].sum()),
    }
    every = np.ones(len(groups.ids), np.bool_)
    return TaskResult(facts, groups.examples(missing, every, limits))


def _hashes(item: Grouped) -> U64:
    """Of each row two hashes of the cells on the left and two of those on the right, and its id."""
    view, shape = item.view, item.view.shape
    blocks = [np.empty((0, 5), np.uint64)]
    nulls = bitsets.from_columns([item.lhs], view.columns)[0]
    for segment in view.segments:
        rows = map_words(view.path, segment).whole()
        compared = np.zeros(len(rows), np.bool_)
        compared[live_positions(view.path, segment)] = True
        if not view.nulls_equal:
            compared &= (rows[:, shape.owner.size :] & nulls == 0).all(axis=1)
        places = np.flatnonzero(compared)
        block = np.zeros((len(places), 5), np.uint64)
        for seed in (0, 1):
            block[:, seed] = combined(rows, item.lhs, shape, seed)[places]
            if item.rhs is not None:
                block[:, 2 + seed] = combined(rows, (item.rhs,), shape, seed)[places]
        block[:, 4] = (places + segment.base).view(np.uint64)
        if item.rhs is not None and not view.nulls_equal:
            # A null differs from every other: none shares a number with another row.
            empty = _is_null(rows, view, item.rhs)[places]
            block[empty, 2] = block[empty, 4]
            block[empty, 3] = np.uint64(segment.number) ^ np.uint64(0x9E3779B97F4A7C15)
        blocks.append(block)
    return np.concatenate(blocks)


def _is_null(rows: U64, view: View, column: int) -> Flags:
    word = rows[:, view.shape.owner.size + column // 64]
    return (word >> np.uint64(column % 64) & np.uint64(1)).astype(np.bool_)


def _codes(rows: RowValues) -> U64:
    """The codes of the first attribute, two words each, and the ids of their rows."""
    blocks = [np.empty((0, 3), np.uint64)]
    for segment, positions, codes in rows.codes(0):
        ids = (positions + segment.base).view(np.uint64)
        blocks.append(np.column_stack([codes, ids]))
    return np.concatenate(blocks)


def _is_new(codes: U64) -> Flags:
    """Which of sorted codes differ from the one before."""
    is_new = np.ones(codes.shape[1], np.bool_)
    is_new[1:] = (codes[:, 1:] != codes[:, :-1]).any(axis=0)
    return is_new


def _runs(codes: U64) -> tuple[I64, I64]:
    """Where each of sorted codes begins, and how often it is there."""
    starts = np.flatnonzero(_is_new(codes))
    return starts, np.diff(np.append(starts, codes.shape[1]))


def _pairs(sizes: I64) -> I64:
    pairs: I64 = sizes * (sizes - 1) // 2
    return pairs


def _among(codes: U64, known: U64) -> Flags:
    """Which codes occur among others; both are distinct."""
    both = np.concatenate([known, codes], axis=1)
    is_known = np.arange(both.shape[1]) < known.shape[1]
    order = np.lexsort((~is_known, *both))
    is_among = np.zeros(both.shape[1], np.bool_)
    is_among[order] = ~_is_new(both[:, order])
    return is_among[known.shape[1] :]
