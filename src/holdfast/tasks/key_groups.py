"""How the groups of rows that agree on a key change when rows come and go: by looking these rows
up, so that nothing is kept for the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holdfast.kernels import index
from holdfast.kernels.arrays import I64, U64
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks.rows import grouped, look_up_rows
from holdfast.tasks.segments import Segment, deleted_since, live_positions, row_codes
from holdfast.tasks.view import View

_BLOCK = 1 << 16
"""Rows of a batch that are read at once."""


@dataclass(frozen=True)
class LookedUpKey:
    """The columns of a key, and the index by which rows are looked up; None: no index serves it."""

    columns: tuple[int, ...]
    index: str | None


@dataclass(frozen=True)
class ChangedGroups:
    """Compare the groups of some keys before and after a batch, as far as the hashes of their
    tuples lie in one of several parts."""

    view: View  # all rows after it
    added: tuple[Segment, ...]
    gone: tuple[tuple[Segment, Segment | None], ...]  # segments before it, and what is left of them
    keys: tuple[LookedUpKey, ...]
    part: int
    parts: int


def changed_groups(item: ChangedGroups) -> Iterator[TaskResult]:
    """For each key by how much the rows change that are not the first of their group, and the
    groups of several rows, and the rows in these."""
    changes = np.array([_change(item, key) for key in item.keys], np.int64).reshape(-1, 3)
    yield TaskResult({}, {"changes": changes})


def _change(item: ChangedGroups, key: LookedUpKey) -> I64:
    look()
    came = [rows for s in item.added for rows in _tuples(item, s, _living(item, s), key)]
    went = [rows for s, later in item.gone for rows in _tuples(item, s, _dead(item, s, later), key)]
    every = np.concatenate([np.empty((0, item.view.words), np.uint64), *came, *went])
    rows, _, of_rows = grouped(every)
    signs = np.where(np.arange(len(every)) < sum(map(len, came)), 1, -1)
    more = np.bincount(of_rows, signs, len(rows)).astype(np.int64)
    after = _numbers(item.view, key, rows)
    return _sums(after) - _sums(after - more)


def _living(item: ChangedGroups, segment: Segment) -> I64:
    return live_positions(item.view.path, segment)


def _dead(item: ChangedGroups, segment: Segment, later: Segment | None) -> I64:
    return deleted_since(item.view.path, segment, later)


def _tuples(
    item: ChangedGroups, segment: Segment, positions: I64, key: LookedUpKey
) -> Iterator[U64]:
    """Rows with zeros in the columns that are not of the key; of those whose hashes are in the
    part. A row with a null has a group of its own where nulls are unequal."""
    view = item.view
    shape = view.shape
    own = np.zeros(view.words, np.uint64)
    nulls = own.copy()
    for column in key.columns:
        own[shape.first[column] : shape.first[column + 1]] = ~np.uint64(0)
        nulls[shape.owner.size + column // 64] |= np.uint64(1) << np.uint64(column % 64)
    for start in range(0, positions.size, _BLOCK):
        rows = view.rows(segment, positions[start : start + _BLOCK]) & (own | nulls)
        if not view.nulls_equal:
            rows = rows[~(rows & nulls).any(axis=1)]
        if item.parts > 1:
            rows = rows[row_codes(rows) % np.uint64(item.parts) == np.uint64(item.part)]
        yield rows


def _numbers(view: View, key: LookedUpKey, rows: U64) -> I64:
    """How many living rows have each tuple."""
    numbers, none = np.zeros(len(rows), np.int64), np.zeros(len(rows), np.int64)
    columns = np.array(key.columns, np.int64)
    for segment in view.segments if len(rows) else ():
        ranges = look_up_rows(view, segment, key.index, key.columns, rows)
        stored = view.looked_up(segment, ranges)
        index.match(rows, none, ranges, stored, columns, view.shape, numbers, none[:0])
    return numbers


def _sums(rows: I64) -> I64:
    """Of groups of so many rows each."""
    shared = rows > 1
    return np.array([(rows[shared] - 1).sum(), shared.sum(), rows[shared].sum()], np.int64)
