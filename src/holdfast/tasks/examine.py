"""What violates one rule: rows in groups, values that are missing elsewhere, pairs.

Every task looks at one part of the rows and sends back numbers, and the ids of a few rows to show.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets, dominance, opposed, violations
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.violations import Sides
from holdfast.model import thresholds
from holdfast.runtime.result import TaskResult
from holdfast.tasks import exchange
from holdfast.tasks.completion import Planes
from holdfast.tasks.segments import combined, live_positions, map_words
from holdfast.tasks.values import RowValues
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Shown:
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
    shown: Shown
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
    shown: Shown


@dataclass(frozen=True)
class Orphans:
    """Look for values of the first attribute of some rows that those of others do not have."""

    dependent: RowValues
    referenced: RowValues
    shown: Shown


@dataclass(frozen=True)
class Coded:
    """Write the codes of the first attribute of some rows, and the rows' ids, for
    :class:`OrphansIn`."""

    cells: RowValues
    prefix: str

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.cells.count


@dataclass(frozen=True)
class OrphansIn:
    """The same as :class:`Orphans`, of the codes in files that are in one range."""

    root: str
    dependent: tuple[str, ...]
    referenced: tuple[str, ...]
    part: int
    parts: int
    shown: Shown


@dataclass(frozen=True)
class Opposed:
    """Count the pairs of rows that satisfy a set of atoms, and the rows in them: for one part of
    the rows."""

    planes: Planes
    atoms: tuple[int, ...]
    part: int
    parts: int


@dataclass(frozen=True)
class Matched:
    """Pair off rows that satisfy a set of atoms, until no two are left that do."""

    planes: Planes
    atoms: tuple[int, ...]


def grouped(item: Grouped) -> Iterator[TaskResult]:
    """How many groups, rows and pairs violate, and how many rows would have to go: of each group
    all but those with its most frequent value on the right."""
    codes = _codes(item)
    if item.prefix is None:
        yield _grouped(codes, item.rhs, item.shown)
    else:
        yield TaskResult({"files": [exchange.write(item.view.path, item.prefix, codes)]})


def grouped_in(item: GroupedIn) -> Iterator[TaskResult]:
    """The same, of rows that all tasks have hashed."""
    codes = exchange.between(Path(item.root), item.files, item.part, item.parts, 5)
    yield _grouped(codes, item.rhs, item.shown)


def _grouped(codes: U64, rhs: int | None, shown: Shown) -> TaskResult:
    left, right = codes[:, :2].T, codes[:, 2:4].T
    ids = codes[:, 4].view(np.int64)
    order = np.lexsort((ids, *right, *left))
    left, right, ids = left[:, order], right[:, order], ids[order]
    starts, sizes = _runs(_fresh(left))
    inner_starts, inner_sizes = _runs(_fresh(np.concatenate([left, right])))
    group_of = np.searchsorted(starts, inner_starts, "right") - 1
    most = np.zeros(len(starts), np.int64)
    np.maximum.at(most, group_of, inner_sizes)
    inside = np.bincount(group_of, minlength=len(starts))
    violating = sizes > 1 if rhs is None else inside > 1
    agreeing = int(_pairs(sizes).sum())
    same = 0 if rhs is None else int(_pairs(inner_sizes).sum())
    kept = np.ones(len(starts), np.int64) if rhs is None else most
    facts = {
        "groups": int(violating.sum()),
        "rows": int(sizes[violating].sum()),
        "agreeing": agreeing,
        "pairs": agreeing - same,
        "removed": int((sizes - kept)[violating].sum()),
    }
    # Of a dependency one row of every value on the right, so that what differs is seen.
    first = np.ones(len(ids), np.bool_)
    if rhs is not None:
        first[:] = False
        first[inner_starts] = True
    return TaskResult(facts, _examples(starts, sizes, violating, ids, first, shown))


def _codes(item: Grouped) -> U64:
    """Of each row two hashes of the cells on the left and two of those on the right, and its id."""
    view, shape = item.view, item.view.shape
    blocks = [np.empty((0, 5), np.uint64)]
    nulls = bitsets.from_columns([item.lhs], view.columns)[0]
    for segment in view.segments:
        rows = map_words(view.path, segment).whole()
        kept = np.zeros(len(rows), np.bool_)
        kept[live_positions(view.path, segment)] = True
        if not view.nulls_equal:
            kept &= (rows[:, shape.owner.size :] & nulls == 0).all(axis=1)
        places = np.flatnonzero(kept)
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


def _fresh(codes: U64) -> Flags:
    """Which columns of sorted codes differ from the one before."""
    fresh = np.ones(codes.shape[1], np.bool_)
    fresh[1:] = (codes[:, 1:] != codes[:, :-1]).any(axis=0)
    return fresh


def _runs(fresh: Flags) -> tuple[I64, I64]:
    starts = np.flatnonzero(fresh)
    return starts, np.diff(np.append(starts, len(fresh)))


def _pairs(sizes: I64) -> I64:
    pairs: I64 = sizes * (sizes - 1) // 2
    return pairs


def _examples(
    starts: I64, sizes: I64, violating: Flags, ids: I64, fit: Flags, shown: Shown
) -> dict[str, NDArray[Any]]:
    """The largest of some groups: their sizes, and the first ids of each that are fit to be shown;
    -1 where there are fewer."""
    some = np.flatnonzero(violating)
    firsts = np.minimum.reduceat(ids, starts) if len(starts) else ids
    some = some[np.lexsort((firsts[some], -sizes[some]))[: shown.groups]]
    chosen = np.full((len(some), shown.rows), -1, np.int64)
    for place, group in enumerate(some.tolist()):
        inside = slice(starts[group], starts[group] + sizes[group])
        some_ids = np.sort(ids[inside][fit[inside]])[: shown.rows]
        chosen[place, : len(some_ids)] = some_ids
    return {"sizes": sizes[some], "ids": chosen}


def orphans(item: Orphans) -> Iterator[TaskResult]:
    """How many values there are and how many are missing, in how many rows."""
    yield _orphans(_values(item.dependent), _values(item.referenced), item.shown)


def coded(item: Coded) -> Iterator[TaskResult]:
    """Where the codes are."""
    numbers = _values(item.cells)
    yield TaskResult({"files": [exchange.write(item.cells.view.path, item.prefix, numbers)]})


def orphans_in(item: OrphansIn) -> Iterator[TaskResult]:
    """The same as :func:`orphans`, of rows that all tasks have coded."""
    dependent, referenced = (
        exchange.between(Path(item.root), files, item.part, item.parts, 3)
        for files in (item.dependent, item.referenced)
    )
    yield _orphans(dependent, referenced, item.shown)


def _orphans(dependent: U64, referenced: U64, shown: Shown) -> TaskResult:
    codes, ids = dependent[:, :2].T, dependent[:, 2].view(np.int64)
    order = np.lexsort((ids, *codes))
    codes, ids = codes[:, order], ids[order]
    starts, sizes = _runs(_fresh(codes))
    others = referenced[:, :2].T
    others = others[:, np.lexsort(others)]
    others = others[:, _fresh(others)]
    lacking = ~_among(codes[:, starts], others)
    facts = {
        "values": len(starts),
        "all_rows": len(ids),
        "missing": int(lacking.sum()),
        "rows": int(sizes[lacking].sum()),
    }
    every = np.ones(len(ids), np.bool_)
    return TaskResult(facts, _examples(starts, sizes, lacking, ids, every, shown))


def _values(cells: RowValues) -> U64:
    """The codes of the first attribute, two words each, and the ids of their rows."""
    blocks = [np.empty((0, 3), np.uint64)]
    for segment, positions, codes in cells.codes(0):
        ids = (positions + segment.base).view(np.uint64)
        blocks.append(np.column_stack([codes, ids]))
    return np.concatenate(blocks)


def _among(codes: U64, known: U64) -> Flags:
    """Which codes occur among others; both are sorted and distinct."""
    both = np.concatenate([known, codes], axis=1)
    is_known = np.arange(both.shape[1]) < known.shape[1]
    order = np.lexsort((~is_known, *both))
    fresh = _fresh(both[:, order])
    is_among = np.zeros(both.shape[1], np.bool_)
    is_among[order] = ~fresh
    return is_among[known.shape[1] :]


def opposed_rows(item: Opposed) -> Iterator[TaskResult]:
    """The numbers of pairs, of rows in them and, where rows have to be equal in something, of
    groups; or how many pairs would have to be compared, where that is too many."""
    sides = _sides(item.planes, item.atoms)
    if sides is None or (dominance.is_countable(sides) and item.part):
        # One task counts all where it need not compare pairs.
        yield TaskResult({"pairs": 0, "rows": 0, "groups": 0})
        return
    rows = item.planes.rows
    taking_part = np.zeros(rows, np.bool_)
    if dominance.is_countable(sides):
        of_t, of_s = dominance.partners(sides)
        taking_part[sides.t[of_t > 0]] = True
        taking_part[sides.s[of_s > 0]] = True
        pairs, groups = int(of_t.sum()), len(np.unique(sides.t_key[of_t > 0]))
        yield TaskResult({"pairs": pairs, "rows": int(taking_part.sum()), "groups": groups})
        return
    form = opposed.form(sides)
    if form.work > thresholds.current.examined_pairs:
        yield TaskResult({"too_many": form.work})
        return
    low, high = rows * item.part // item.parts, rows * (item.part + 1) // item.parts
    mine = form.of_t((form.t >= low) & (form.t < high))
    partners = opposed.partners(mine, form.s_side, rows)
    taking_part[mine.rows[partners > 0]] = True
    theirs = form.of_s((form.s >= low) & (form.s < high))
    taking_part[theirs.rows[opposed.partners(theirs, form.t_side, 1) > 0]] = True
    in_part = form.of_t(form.t_group % item.parts == item.part)
    hit = opposed.partners(in_part, form.s_side, 1) > 0
    facts = {
        "pairs": int(partners.sum()),
        "rows": int(taking_part.sum()),
        "groups": len(np.unique(in_part.group[hit])),
    }
    yield TaskResult(facts)


def opposed_pairs(item: Opposed) -> Iterator[TaskResult]:
    """The number of pairs alone."""
    sides = _sides(item.planes, item.atoms)
    if sides is None or (dominance.is_countable(sides) and item.part):
        yield TaskResult({"pairs": 0})
        return
    if dominance.is_countable(sides):
        yield TaskResult({"pairs": int(dominance.partners(sides)[0].sum())})
        return
    form = opposed.form(sides)
    if form.work > thresholds.current.examined_pairs:
        yield TaskResult({"too_many": form.work})
        return
    rows = item.planes.rows
    low, high = rows * item.part // item.parts, rows * (item.part + 1) // item.parts
    mine = form.of_t((form.t >= low) & (form.t < high))
    yield TaskResult({"pairs": int(opposed.partners(mine, form.s_side, rows).sum())})


def matched(item: Matched) -> Iterator[TaskResult]:
    """How many rows would have to go, at least and at most: of an order rule, all but the most that
    go together. Otherwise, rows are paired off: as many have to go at least as there are pairs.
    Every violating pair has a row among them, and of these rows, those that are needed for that are
    counted: as many have to go at most. None, where too many pairs would have to be compared."""
    sides = _sides(item.planes, item.atoms)
    if sides is None:
        yield TaskResult({"matched": 0, "covering": 0})
        return
    most = dominance.most_compatible(sides)
    if most is not None:
        fewest = len(sides.t) - most
        yield TaskResult({"matched": fewest, "covering": fewest})
        return
    form = opposed.form(sides)
    if form.work > thresholds.current.examined_pairs:
        yield TaskResult({"matched": None, "covering": None})
        return
    free = np.ones(item.planes.rows, np.bool_)
    matched_pairs = int(opposed.match(form.t_side, form.s_side, free))
    yield TaskResult({"matched": matched_pairs, "covering": opposed.pruned(form, ~free)})


def _sides(planes: Planes, atoms: tuple[int, ...]) -> Sides | None:
    """What is asked of pairs; None: no pair satisfies it."""
    asked = violations.terms(planes.space, atoms)
    if asked is None:
        return None
    return violations.sides(planes.codes(), asked, planes.view.nulls_equal)
