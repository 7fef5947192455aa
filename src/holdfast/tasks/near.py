"""How nearly columns determine others: rows in groups that agree on a lhs, counted exactly.

A small table is counted by tasks that see all its rows and some left-hand sides each. Of a long one
tasks write the codes of their rows, and others count ranges of these (:mod:`tasks.exchange`). That
is done for candidates that may pass. Which do is estimated from drawn rows, each of which is
compared with a *partner*: a random one of all rows that agree with it on the lhs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.explained import explained
from holdfast.runtime.result import TaskResult
from holdfast.tasks import exchange
from holdfast.tasks.columns import null_flags
from holdfast.tasks.segments import combined, live_positions, map_words
from holdfast.tasks.view import View


@dataclass(frozen=True)
class NearCandidate:
    """A lhs, the columns that it may determine, and how many rows of each may stay unexplained."""

    lhs: tuple[int, ...]
    rhs: tuple[int, ...]
    unexplained: tuple[float, ...]


@dataclass(frozen=True)
class CountGroups:
    """Count the groups of candidates in all rows of a view."""

    view: View
    candidates: tuple[NearCandidate, ...]

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live * len(self.candidates)


@dataclass(frozen=True)
class WriteGroups:
    """Write the codes of candidates in the rows of a view, a file each, for
    :class:`CountWritten`."""

    view: View
    candidates: tuple[NearCandidate, ...]
    prefix: str
    with_ids: bool = False  # the ids of the rows, too, as the last word

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live


@dataclass(frozen=True)
class CountWritten:
    """Count the groups of a candidate in one range of the codes that tasks have written."""

    root: str
    files: tuple[str, ...]
    candidate: NearCandidate
    part: int
    parts: int


def count_groups(item: CountGroups) -> Iterator[TaskResult]:
    """The counts of each candidate."""
    codes = Codes.of(item.view, _columns(item.candidates))
    for candidate in item.candidates:
        rights = [codes.right(column) for column in candidate.rhs]
        yield _counted(codes.left(candidate.lhs), rights, candidate)


def write_groups(item: WriteGroups) -> Iterator[TaskResult]:
    """The files with two words for the lhs and two for every rhs of each row."""
    codes = Codes.of(item.view, _columns(item.candidates))
    ids = [codes.ids[:, None].view(np.uint64)] if item.with_ids else []
    for candidate in item.candidates:
        words = [codes.left(candidate.lhs), *map(codes.right, candidate.rhs), *ids]
        file = exchange.write(item.view.path, item.prefix, np.concatenate(words, axis=1))
        yield TaskResult({"files": [file]})


def _columns(candidates: Sequence[NearCandidate]) -> list[int]:
    return sorted({column for each in candidates for column in (*each.lhs, *each.rhs)})


def count_written(item: CountWritten) -> Iterator[TaskResult]:
    """The counts in one range."""
    width = 2 + 2 * len(item.candidate.rhs)
    words = exchange.between(Path(item.root), item.files, item.part, item.parts, width)
    rights = [words[:, start : start + 2] for start in range(2, width, 2)]
    yield _counted(words[:, :2], rights, item.candidate)


@dataclass(frozen=True)
class Codes:
    """Hashes of the cells of some columns in some rows; of each two, where one is not enough."""

    words: dict[int, U64]  # by column: (rows, hashes)
    nulls: dict[int, Flags]  # where a null differs from every other
    ids: I64

    @staticmethod
    def of(view: View, columns: Sequence[int]) -> Codes:
        """Those of all living rows of a view."""
        blocks = []
        for segment in view.segments:
            positions = live_positions(view.path, segment)
            rows = map_words(view.path, segment).whole()[positions]
            blocks.append(Codes.of_rows(view, rows, positions + segment.base, columns, 2))
        return Codes(
            {c: np.concatenate([each.words[c] for each in blocks]) for c in columns},
            {c: np.concatenate([each.nulls[c] for each in blocks]) for c in columns},
            np.concatenate([each.ids for each in blocks]),
        )

    @staticmethod
    def of_rows(view: View, rows: U64, ids: I64, columns: Sequence[int], hashes: int) -> Codes:
        """Those of some rows, with so many hashes of a cell."""
        masks = rows[:, view.shape.owner.size :]
        differ = not view.nulls_equal
        return Codes(
            {
                c: np.stack([combined(rows, (c,), view.shape, k) for k in range(hashes)], axis=1)
                for c in columns
            },
            {c: null_flags(masks[:, c // 64], c) & differ for c in columns},
            ids,
        )

    def left(self, lhs: Sequence[int]) -> U64:
        """Hashes of each row that are equal where rows agree on a lhs."""
        hashes = next(iter(self.words.values())).shape[1]
        words = np.zeros((len(self.ids), hashes), np.uint64)
        for column in lhs:
            words = _mixed(words ^ self.words[column])
        return self._apart(words, lhs)

    def right(self, column: int) -> U64:
        """Hashes of each row that are equal where rows agree on a column."""
        return self._apart(self.words[column].copy(), (column,))

    def _apart(self, words: U64, columns: Sequence[int]) -> U64:
        """With hashes of their own for rows whose nulls differ from all others."""
        for column in columns:
            nulls = self.nulls[column]
            if nulls.any():
                words[nulls] = 0
                words[nulls, 0] = _mixed(self.ids[nulls].view(np.uint64))
        return words


def _mixed(words: U64) -> U64:
    """Words whose every bit depends on every bit of others."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


def grouped(left: U64) -> tuple[I64, I64]:
    """The order in which rows that agree on a lhs are together, and where groups start, with the
    number of rows at the end."""
    order = np.argsort(left[:, 0], kind="stable")
    codes = left[order]
    fresh = np.ones(len(codes), np.bool_)
    fresh[1:] = codes[1:, 0] != codes[:-1, 0]
    if (codes[1:, 1] != codes[:-1, 1])[~fresh[1:]].any():
        order = np.lexsort((left[:, 1], left[:, 0]))
        codes = left[order]
        fresh[1:] = (codes[1:] != codes[:-1]).any(axis=1)
    return order, np.append(np.flatnonzero(fresh), len(codes))


def _counted(left: U64, rights: Sequence[U64], candidate: NearCandidate) -> TaskResult:
    """How many groups there are, how many rows lie in groups of two and more, the sum of the
    squares of their sizes, and of every rhs what is explained of it; -1: too little."""
    order, starts = grouped(left)
    sizes = np.diff(starts)
    counts = np.full((len(rights), 3), -1, np.int64)
    for place, (right, most) in enumerate(zip(rights, candidate.unexplained, strict=True)):
        counted = explained(starts, right[order], most)
        if counted is not None:
            counts[place] = counted
    facts = {
        "groups": len(sizes),
        "shared_values": int((sizes > 1).sum()),
        "shared_rows": int(sizes[sizes > 1].sum()),
        "squares": int((sizes**2).sum()),
    }
    return TaskResult(facts, {"explained": counts})
