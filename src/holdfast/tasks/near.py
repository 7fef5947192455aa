"""How nearly columns determine others: rows in groups that agree on a lhs, counted exactly.

A table that fits into a task is counted by tasks that see all its rows and some left-hand sides
each. Of a longer one tasks write the hashes of their rows, equal ones once with their number, and
others count ranges of these (:mod:`tasks.exchange`). In a long table that is done for candidates
that may pass: which do is estimated from drawn rows (:mod:`tasks.partners`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path

import numpy as np

from holdfast.kernels.arrays import I32, I64, U64
from holdfast.kernels.explained import explained
from holdfast.kernels.numbering import (
    Grouped,
    Numbers,
    cell_hashes,
    numbered,
    numbered_pairs,
    tallied,
)
from holdfast.kernels.numbering import grouped as grouped_numbers
from holdfast.model.near import NearBounds
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks import exchange
from holdfast.tasks.segments import live_positions, map_words
from holdfast.tasks.view import View

BLOCK = 1 << 16
"""Rows whose hashes are held at a time, where that is enough."""

_REPEATING = 0.8
"""The share of rows that may be left where equal ones are counted together."""

_HASHES = 1 << 23
"""Hashes of all rows that are held at a time."""

_HELD = 1 << 25
"""Bytes of a candidate that are held before they are written."""


@dataclass(frozen=True)
class NearCandidate:
    """A lhs, the columns that it may determine, and how many rows of each may stay unexplained."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...] = ()
    unexplained: tuple[float, ...] = ()
    in_doubt: bool = False  # whether the lhs may nearly be a key, which determines everything


@dataclass(frozen=True)
class CountGroups:
    """Count the groups of candidates in all rows of a view."""

    view: View
    candidates: tuple[NearCandidate, ...]
    bounds: NearBounds | None = None  # what does not pass is not counted further

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live * len(self.candidates)


@dataclass(frozen=True)
class WriteGroups:
    """Write the hashes of candidates in the rows of a view for :class:`CountWritten`."""

    view: View
    candidates: tuple[NearCandidate, ...]
    prefix: str
    with_ids: bool = False  # every row with its id, and none of them counted together
    parts: int = 0  # to be read in so many parts; 0: in any number

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live * len(self.candidates)


@dataclass(frozen=True)
class CountWritten:
    """Count the groups of a candidate in one range of the hashes that tasks have written."""

    root: str
    files: tuple[str, ...]
    candidate: NearCandidate
    part: int
    parts: int


def count_groups(item: CountGroups) -> Iterator[TaskResult]:
    """The counts of each candidate."""
    rows, live = NumberedRows(item.view), item.view.live
    rows.number(column for candidate in item.candidates for column in candidate.lhs)
    for candidate in item.candidates:
        look()
        groups = grouped_numbers(rows.agreeing(candidate.lhs))
        repeated, most = live - len(groups.sizes), candidate.unexplained
        if item.bounds is not None and repeated <= item.bounds.key_removal * live:
            yield _counted(groups, [None] * len(candidate.rhs), None, most)
            continue
        rows.number(candidate.rhs)
        if item.bounds is not None:
            share = (1 - item.bounds.strength) * repeated
            most = tuple(
                min(bound, share * rows.disagreement(rhs) + slack(live))
                for rhs, bound in zip(candidate.rhs, most, strict=True)
            )
        rights = [rows.agreeing((column,)) for column in candidate.rhs]
        yield _counted(groups, rights, None, most, [*map(rows.squares, candidate.rhs)])


def slack(rows: int) -> float:
    """Rows by which what is unexplained may exceed a bound, as what is reported is rounded."""
    return 1 + rows * 1e-6


def hashes(candidate: NearCandidate) -> int:
    """The words that are written of a row: two hashes of each side, and a number."""
    return 3 + 2 * len(candidate.rhs)


def write_groups(item: WriteGroups) -> Iterator[TaskResult]:
    """The files, each with the place of its candidate, with two hashes for the lhs and two for
    every rhs of each row, and then how many rows have these, or the id of the row."""
    writers = [_GroupWriter(candidate, item.with_ids) for candidate in item.candidates]
    for block in blocks(item.view, _columns(item.candidates), BLOCK, 2):
        look()
        for place, writer in enumerate(writers):
            writer.add(block)
            if writer.bytes >= _HELD:
                yield _written(item, place, writer)
    for place, writer in enumerate(writers):
        if writer.bytes:
            yield _written(item, place, writer)


def _written(item: WriteGroups, place: int, writer: _GroupWriter) -> TaskResult:
    """A file of what a writer has."""
    root, prefix, words = item.view.path, item.prefix, writer.taken()
    file = (
        exchange.write_parts(root, prefix, words, item.parts)
        if item.parts
        else exchange.write(root, prefix, words)
    )
    return TaskResult({"place": place, "files": [file]})


class _GroupWriter:
    """The hashes of a candidate, as far as they are known and not written."""

    def __init__(self, candidate: NearCandidate, with_ids: bool) -> None:
        self._candidate = candidate
        self._with_ids = with_ids
        self._repeats = True  # so that it is worth counting equal rows together
        self._words: list[U64] = []
        self.bytes = 0

    def add(self, block: HashedRows) -> None:
        """Add rows."""
        codes = block.codes(self._candidate.lhs)
        for column in self._candidate.rhs:
            codes += block.codes((column,))
        if self._with_ids:
            words = np.stack([*codes, block.ids.view(np.uint64)], axis=1)
        elif self._repeats:
            words = tallied(np.stack(codes, axis=1))
            self._repeats = len(words) <= _REPEATING * len(block.ids)
        else:
            words = np.stack([*codes, np.ones(len(block.ids), np.uint64)], axis=1)
        self._words.append(words)
        self.bytes += words.nbytes

    def taken(self) -> U64:
        """All of them, which are forgotten."""
        words = np.concatenate(self._words)
        self._words, self.bytes = [], 0
        return words


def count_written(item: CountWritten) -> Iterator[TaskResult]:
    """The counts in one range."""
    look()
    width = hashes(item.candidate)
    words = exchange.between(Path(item.root), item.files, item.part, item.parts, width)
    weights = words[:, -1].astype(np.int64)
    groups = grouped_numbers(_numbered(words[:, :2]), weights)
    rights = [_numbered(words[:, start : start + 2]) for start in range(2, width - 1, 2)]
    yield _counted(groups, rights, weights, item.candidate.unexplained)


def _columns(candidates: Sequence[NearCandidate]) -> list[int]:
    return sorted({column for each in candidates for column in (*each.lhs, *each.rhs)})


@dataclass(frozen=True)
class HashedRows:
    """Hashes of the cells of some rows, by column; of each as many as there are seeds."""

    columns: tuple[int, ...]
    hashes: U64  # (seeds, columns, rows)
    ids: I64

    def codes(self, columns: Sequence[int]) -> list[U64]:
        """Hashes of each row that are equal where rows agree on some columns, by seed."""
        places = [self.columns.index(column) for column in columns]
        return [*self.hashes[:, places].sum(axis=1, dtype=np.uint64)]


def hashed(
    words: U64, positions: I64, ids: I64, view: View, columns: Sequence[int], seeds: int
) -> HashedRows:
    """The rows at some positions of a matrix."""
    hashes = np.empty((seeds, len(columns), len(positions)), np.uint64)
    cell_hashes(words, positions, ids, np.array(columns, np.int64), view.shape, hashes)
    return HashedRows(tuple(columns), hashes, ids)


def blocks(view: View, columns: Sequence[int], size: int, seeds: int) -> Iterator[HashedRows]:
    """All living rows of a view, so many at a time."""
    for segment in view.segments:
        positions = live_positions(view.path, segment)
        words = map_words(view.path, segment).whole()
        for start in range(0, len(positions), size):
            some = positions[start : start + size]
            yield hashed(words, some, some + segment.base, view, columns, seeds)


class NumberedRows:
    """All living rows of a view, with numbers that are equal where they agree on columns."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._columns: dict[int, Numbers] = {}
        self._squares: dict[int, int] = {}

    def number(self, columns: Iterable[int]) -> None:
        """Number the rows by each of some columns, unless that was done before."""
        missing = sorted({*columns} - {*self._columns})
        at_once = max(1, _HASHES // (2 * max(1, self._view.live)))
        for start in range(0, len(missing), at_once):
            look()
            some = missing[start : start + at_once]
            parts = [block.hashes for block in blocks(self._view, some, self._view.live, 2)]
            for place, column in enumerate(some):
                codes = [part[:, place] for part in parts]
                self._columns[column] = numbered(*np.concatenate(codes, axis=1))

    def agreeing(self, columns: Sequence[int]) -> Numbers:
        """The numbers of rows that agree on some numbered columns."""
        first, *others = (self._columns[column] for column in columns)
        return reduce(numbered_pairs, others, first)

    def disagreement(self, column: int) -> float:
        """How likely two random rows differ in a column (1 - pdep)."""
        return 1 - self.squares(column) / self._view.live**2

    def squares(self, column: int) -> int:
        """The sum of the squares of how often each value of a column occurs."""
        if column not in self._squares:
            sizes = np.bincount(self._columns[column].of_rows)
            self._squares[column] = int((sizes**2).sum())
        return self._squares[column]


def grouped(codes: U64) -> tuple[I32, I64]:
    """The order in which rows that agree on two hashes are together, and where groups start, with
    the number of rows at the end."""
    groups = grouped_numbers(_numbered(codes))
    return groups.order, groups.starts


def _numbered(codes: U64) -> Numbers:
    return numbered(*(np.ascontiguousarray(code) for code in codes.T))


def _counted(
    groups: Grouped,
    rights: Sequence[Numbers | None],
    weights: I64 | None,
    most: Sequence[float],
    squares: Sequence[int] | None = None,
) -> TaskResult:
    """How many groups there are, how many rows lie in groups of two and more, the sum of the
    squares of their sizes; and of every rhs what is explained of it, and the sum of the squares of
    how often each value occurs; -1: too little, or not counted."""
    counts = np.full((len(rights), 3), -1, np.int64)
    for place, (right, bound) in enumerate(zip(rights, most, strict=True)):
        if right is None:
            continue
        counted = explained(groups, right, weights, bound)
        if counted is not None:
            counts[place] = counted
    sizes = groups.sizes
    facts = {
        "groups": len(sizes),
        "shared_values": int((sizes > 1).sum()),
        "shared_rows": int(sizes[sizes > 1].sum()),
        "squares": int((sizes**2).sum()),
    }
    every = np.full(len(rights), -1) if squares is None else np.array(squares, np.int64)
    return TaskResult(facts, {"explained": counts, "squares": every})
