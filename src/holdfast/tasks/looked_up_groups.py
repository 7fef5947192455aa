"""How the groups of rows that agree on a key, or on a lhs, change when rows come and go: by looking
these rows up, so that nothing is kept for the others."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from holdfast.kernels import index
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.explained import explained
from holdfast.kernels.numbering import Numbers, numbered, numbered_pairs
from holdfast.kernels.numbering import grouped as grouped_numbers
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks.near import hashed
from holdfast.tasks.rows import grouped, look_up_rows
from holdfast.tasks.segments import Segment, are_dead, deleted_since, live_positions, row_codes
from holdfast.tasks.values import found_at
from holdfast.tasks.view import View

_BLOCK = 1 << 16
"""Rows that are read at once."""


@dataclass(frozen=True)
class LookedUpGroups:
    """The columns that the rows of a group agree on, and the one that these determine but for some
    rows; None: they are a key. Rows are looked up by the index; None: none serves the columns."""

    columns: tuple[int, ...]
    rhs: int | None
    index: str | None


@dataclass(frozen=True)
class ChangedGroups:
    """Compare some groups before and after a batch, as far as the hashes of what their rows agree
    on lie in one of several parts."""

    view: View  # all rows after it
    added: tuple[Segment, ...]
    gone: tuple[tuple[Segment, Segment | None], ...]  # segments before it, and what is left of them
    groups: tuple[LookedUpGroups, ...]
    part: int
    parts: int


def changed_groups(item: ChangedGroups) -> Iterator[TaskResult]:
    """By how much the numbers of each change. Of a key: the rows that are not the first of their
    group, the groups of several rows, and the rows in these. Of a dependency: the groups, the
    explained rows, whole and in fractions, and those with the most frequent value of their
    group."""
    changes = [_change(item, groups) for groups in item.groups]
    yield TaskResult({}, {f"changes{place}": each for place, each in enumerate(changes)})


def _change(item: ChangedGroups, groups: LookedUpGroups) -> I64:
    look()
    came = [rows for s in item.added for rows in _chosen(item, s, _living(item, s), groups)]
    went = [rows for s, to in item.gone for rows in _chosen(item, s, _dead(item, s, to), groups)]
    if groups.rhs is not None:
        return _explained_change(item.view, groups, _joined(came), _joined(went))
    every = [each.agreeing[each.may_agree] for each in (*came, *went)]
    rows, _, of_rows = grouped(np.concatenate([np.empty((0, item.view.words), np.uint64), *every]))
    signs = np.where(np.arange(len(of_rows)) < sum(map(len, every[: len(came)])), 1, -1)
    more = np.bincount(of_rows, signs, len(rows)).astype(np.int64)
    after = _numbers(item.view, groups, rows)
    return _sums(after) - _sums(after - more)


def _living(item: ChangedGroups, segment: Segment) -> I64:
    return live_positions(item.view.path, segment)


def _dead(item: ChangedGroups, segment: Segment, later: Segment | None) -> I64:
    return deleted_since(item.view.path, segment, later)


class _Rows(NamedTuple):
    """Rows of a batch."""

    agreeing: U64  # with zeros in the columns that groups do not agree on
    may_agree: Flags  # where nulls are unequal, a row with one has a group of its own
    codes: U64  # of a dependency, two hashes of its lhs and two of its rhs


def _chosen(
    item: ChangedGroups, segment: Segment, positions: I64, groups: LookedUpGroups
) -> Iterator[_Rows]:
    """The rows at some positions whose hashes are in the part."""
    view, shape = item.view, item.view.shape
    own = np.zeros(view.words, np.uint64)
    nulls = own.copy()
    for column in groups.columns:
        own[shape.first[column] : shape.first[column + 1]] = ~np.uint64(0)
        nulls[shape.owner.size + column // 64] |= np.uint64(1) << np.uint64(column % 64)
    for start in range(0, positions.size, _BLOCK):
        some = positions[start : start + _BLOCK]
        agreeing = view.rows(segment, some) & (own | nulls)
        if item.parts > 1:
            is_own = row_codes(agreeing) % np.uint64(item.parts) == np.uint64(item.part)
            some, agreeing = some[is_own], agreeing[is_own]
        may_agree = (agreeing & nulls == 0).all(axis=1) | view.nulls_equal
        yield _Rows(agreeing, may_agree, _codes(view, groups, segment, some))


def _codes(view: View, groups: LookedUpGroups, segment: Segment, positions: I64) -> U64:
    if groups.rhs is None:
        return np.empty((len(positions), 0), np.uint64)
    rows = view.rows(segment, positions)
    every = np.arange(len(positions))
    columns = (*groups.columns, groups.rhs)
    cells = hashed(rows, every, positions + segment.base, view, columns, 2)
    return np.stack([*cells.codes(groups.columns), *cells.codes((groups.rhs,))], axis=1)


def _joined(rows: list[_Rows]) -> _Rows | None:
    if not rows:
        return None
    agreeing, may_agree, codes = (np.concatenate(parts) for parts in zip(*rows, strict=True))
    return _Rows(agreeing, may_agree, codes)


def _explained_change(
    view: View, groups: LookedUpGroups, came: _Rows | None, went: _Rows | None
) -> I64:
    """The numbers of a dependency after a batch less those before it, of the groups that it
    changes."""
    changed = [each for each in (came, went) if each is not None and len(each.codes)]
    if not changed:
        return np.zeros(4, np.int64)
    none = np.empty((0, 4), np.uint64)
    rows, first, _ = grouped(np.concatenate([each.agreeing[each.may_agree] for each in changed]))
    of_groups = np.concatenate([each.codes[each.may_agree] for each in changed])[first, :2]
    found = [*_found(view, groups, rows, np.unique(of_groups, axis=0))] if len(rows) else []
    new = none if came is None else came.codes
    old = none if went is None else went.codes
    # Rows that agree with none are not looked up.
    after = np.concatenate([none, *found, *([] if came is None else [new[~came.may_agree]])])
    before = np.concatenate([after, new, old])
    signs = np.repeat([1, -1, 1], [len(after), len(new), len(old)])
    return _explained(after, np.ones(len(after), np.int64)) - _explained(before, signs)


def _found(view: View, groups: LookedUpGroups, rows: U64, of_groups: U64) -> Iterator[U64]:
    """The codes of the living rows of some groups, given by a row of each and by their codes."""
    for segment in view.segments:
        look()
        lo, hi, entries = look_up_rows(view, segment, groups.index, groups.columns, rows)
        counts = np.maximum(hi - lo, 0)
        before = np.cumsum(counts) - counts
        positions = entries[np.repeat(lo - before, counts) + np.arange(counts.sum())]
        positions = np.unique(positions.astype(np.int64))
        positions = positions[~are_dead(view.path, segment, positions)]
        for start in range(0, positions.size, _BLOCK):
            codes = _codes(view, groups, segment, positions[start : start + _BLOCK])
            yield codes[found_at(codes[:, :2], of_groups) >= 0]


def _explained(codes: U64, signs: I64) -> I64:
    """How many groups rows are in, what is explained of them, whole and in fractions, and how many
    have the most frequent value of their group. Rows that cancel each other out do not count."""
    lhs, rhs = (numbered(*np.ascontiguousarray(codes[:, at : at + 2].T)) for at in (0, 2))
    pairs = numbered_pairs(lhs, rhs)
    numbers = np.bincount(pairs.of_rows, signs, pairs.count).astype(np.int64)
    place = np.empty(pairs.count, np.int64)
    place[pairs.of_rows] = np.arange(len(codes))
    place, numbers = place[numbers != 0], numbers[numbers != 0]
    present, of_pairs = np.unique(lhs.of_rows[place], return_inverse=True)
    groups = grouped_numbers(Numbers(of_pairs.astype(np.int32), len(present)), numbers)
    sums = explained(groups, Numbers(rhs.of_rows[place], rhs.count), numbers, math.inf)
    assert sums is not None
    return np.array([len(present), *sums], np.int64)


def _numbers(view: View, key: LookedUpGroups, rows: U64) -> I64:
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
