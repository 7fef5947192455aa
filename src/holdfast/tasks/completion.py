"""Evidence of a long table without comparing all pairs: what the tasks of a completion do.

Cells are coded once, over the whole table, into files that all other tasks map: a plane of codes
for each column. From these, tasks sample pairs, compare all pairs inside groups of equal rows, and
look for pairs that violate candidates. Each sends back distinct evidence, of both orders of a pair,
with one pair of row ids that shows it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import comparisons, groups, pairs, ranks, violations
from holdfast.kernels import counts as kernels
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.comparisons import WordLayout
from holdfast.kernels.groups import first_of_each
from holdfast.kernels.ranks import Codes, ColumnCells
from holdfast.model import thresholds
from holdfast.model.comparisons import Space
from holdfast.model.limits import OutOfTime
from holdfast.runtime.reads import note
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.runtime.timed import is_over, look
from holdfast.tasks.coding import Coding
from holdfast.tasks.segments import Segment, live_positions, map_arrays, map_words, write_arrays
from holdfast.tasks.view import View

_UNSORTED = 1 << 16
"""Words that are held before they are sorted."""


@dataclass(frozen=True)
class Code:
    """Code the columns of some groups that are compared with each other."""

    view: View
    schema: pa.Schema
    space: Space
    prefix: str  # "data/*-<run>-": the kind of file goes in for the star
    groups: tuple[int, ...]  # of Coding.together


@dataclass(frozen=True)
class Planes:
    """A table's living rows as codes, in the order of its segments."""

    view: View
    space: Space
    files: dict[int, str]  # by column, of those that are compared

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return sum(segment.live for segment in self.view.segments)

    @property
    def layout(self) -> WordLayout:
        """The words of pairs."""
        return comparisons.layout_of(self.space.comparisons)

    def codes(self) -> list[Codes]:
        """A plane for every column, mapped; zeros where it is not compared."""
        none = np.zeros(self.rows, np.int32)
        root = self.view.path
        planes = {c: map_arrays(root / file)[0][f"c{c}"] for c, file in self.files.items()}
        note(sum(plane.nbytes for plane in planes.values()))
        return [planes.get(c, none) for c in range(self.space.columns)]

    def ids(self) -> I64:
        """The ids of the rows."""
        of_each = [live_positions(self.view.path, s) + s.base for s in self.view.segments]
        return np.concatenate([np.empty(0, np.int64), *of_each])


@dataclass(frozen=True)
class SamplePairs:
    """Compare random pairs, and neighbours in the order of some columns; as many as there is time
    for."""

    planes: Planes
    pairs: int  # random ones
    tile: int  # rows of both sides of a tile of them
    windows: int  # stretches of neighbours, of each column
    window: int  # rows of such a stretch
    words: int | None  # how many different pairs are enough
    columns: tuple[int, ...]
    seed: int


@dataclass(frozen=True)
class Draw:
    """Compare some random pairs, each in one order; and of those that are equal in a column some
    random ones, in both orders. All where there are no more."""

    planes: Planes
    pairs: int
    equal: int  # pairs of each column
    seed: int


@dataclass(frozen=True)
class PartOfPairs:
    """One part of the pairs of a table's rows."""

    planes: Planes
    part: int
    parts: int

    @property
    def work(self) -> int:
        """Rows that it goes through: all, to find those of its part."""
        return self.planes.rows


@dataclass(frozen=True)
class Inside(PartOfPairs):
    """Compare all pairs of a part that are equal in some columns."""

    columns: tuple[int, ...]


@dataclass(frozen=True)
class Together(PartOfPairs):
    """Compare all pairs of a part that satisfy some atoms."""

    atoms: tuple[int, ...]


@dataclass(frozen=True)
class Violating:
    """Look for pairs that satisfy all atoms of each candidate."""

    planes: Planes
    candidates: tuple[tuple[int, ...], ...]
    most: int  # pairs of each
    words: int | None = None  # how many different pairs are enough; then it may end early, too

    @property
    def work(self) -> int:
        """Rows that it goes through, for each candidate anew."""
        return self.planes.rows * len(self.candidates)


@dataclass(frozen=True)
class CompareBatch:
    """Compare the rows of a batch with one part of the others, and with each other."""

    view: View  # of all rows
    batch: tuple[Segment, ...]  # some of its segments
    schema: pa.Schema
    space: Space
    part: int
    parts: int


def code(item: Code) -> Iterator[TaskResult]:
    """Write the planes of some columns; which file has which."""
    coding = Coding.of(item.schema, item.space.comparisons)
    for number in item.groups:
        look()
        columns = coding.together[number]
        cells = [_cells(item.view, column, *coding.words[column]) for column in columns]
        codes = (ranks.ranks if coding.ordered[number] else ranks.numbers)(cells)
        planes = {f"c{c}": plane for c, plane in zip(columns, codes, strict=True)}
        path = write_arrays(item.view.path, unique(item.prefix, "codes"), planes)
        yield TaskResult({"columns": list(columns), "file": path})


def _cells(view: View, column: int, kind: int, scale: int) -> ColumnCells:
    """The cells of a column in all living rows."""
    words, nulls = [], []
    for segment in view.segments:
        cells = ranks.cells(
            map_words(view.path, segment).whole(), view.shape.first, column, kind, scale
        )
        living = live_positions(view.path, segment)
        whole = len(living) == segment.rows
        words.append(cells.words if whole else cells.words[living])
        nulls.append(cells.nulls if whole else cells.nulls[living])
    return ColumnCells(np.concatenate(words), np.concatenate(nulls), kind, scale)


def sample(item: SamplePairs) -> Iterator[TaskResult]:
    """Evidence of sampled pairs; and of the random ones how many showed each, where one order of
    a pair counts for both."""
    planes, codes = item.planes, item.planes.codes()
    dice = np.random.default_rng(item.seed)
    side = min(item.tile, planes.rows // 2)
    distinct = _DistinctWords(planes.layout, planes.space)
    many, numbers = [], []
    tiles = -(-item.pairs // (side * side)) if side else 0
    drawn = 0

    def is_enough() -> bool:
        return is_over() or (item.words is not None and distinct.number > item.words)

    # A first tile, however late: it tells how many pairs satisfy any atoms.
    while drawn < tiles and (drawn == 0 or not is_enough()):
        # No row is on both sides: none is compared with itself.
        rows = dice.choice(planes.rows, 2 * side, replace=False)
        words, counts, row_pairs = _tile(planes, codes, rows[:side], rows[side:])
        distinct.add(words, row_pairs)
        many.append(words)
        numbers.append(counts)
        drawn += 1
        if drawn == 1:
            for neighbours in _windows(item, codes, dice):
                if is_enough():
                    break
                distinct.add(*_triangle(planes, codes, neighbours))
    words, sums = kernels.total(many, numbers, planes.layout.width)
    random = {"random": distinct.evidence(words), "counts": sums}
    yield TaskResult({"pairs": drawn * side * side}, {**distinct.arrays(planes.ids()), **random})


def _windows(item: SamplePairs, codes: list[Codes], dice: np.random.Generator) -> Iterator[I64]:
    """Stretches of neighbours in the order of each column."""
    rows, size = item.planes.rows, item.window
    for column in item.columns:
        # Equal ones in any order.
        order = dice.permutation(rows)
        order = order[np.argsort(codes[column][order], kind="stable")]
        for start in dice.integers(0, max(1, rows - size + 1), item.windows):
            yield order[start : start + size]


def draw(item: Draw) -> Iterator[TaskResult]:
    """The evidence of the pairs, how many show each, and for how many pairs they stand: first of
    all, then of those that are equal in each comparison of a column with itself."""
    planes, rows, codes = item.planes, item.planes.rows, item.planes.codes()
    every, equal = rows * (rows - 1), planes.view.nulls_equal
    dice = np.random.default_rng(item.seed)
    if every <= item.pairs:
        t, s = np.nonzero(~np.eye(rows, dtype=np.bool_))
    else:
        t = dice.integers(0, rows, item.pairs)
        s = (t + dice.integers(1, rows, item.pairs)) % rows
    yield _drawn(planes, codes, np.stack([t, s], axis=1), {"of_pairs": every, "equal": None})
    for number, each in enumerate(planes.space.comparisons):
        if each.is_own:
            look()
            grouped = groups.groups(codes, [each.left], equal)
            drawn = grouped.drawn(item.equal, dice)
            both = np.concatenate([drawn, drawn[:, ::-1]])
            yield _drawn(planes, codes, both, {"of_pairs": 2 * grouped.pairs, "equal": number})


def _drawn(planes: Planes, codes: list[Codes], pairs: I64, facts: dict[str, Any]) -> TaskResult:
    words = comparisons.words_of(codes, planes.layout, pairs, planes.view.nulls_equal)
    words, counts = np.unique(words, axis=0, return_counts=True)
    masks = comparisons.evidence(words, planes.layout, planes.space)
    return TaskResult(facts, {"masks": masks, "counts": counts})


def inside(item: Inside) -> Iterator[TaskResult]:
    """Evidence of all pairs of a part that are equal in some columns."""
    planes = item.planes
    codes, equal = planes.codes(), planes.view.nulls_equal
    grouped = groups.groups(codes, item.columns, equal)
    part = grouped.part(item.part, item.parts)
    distinct = _DistinctWords(planes.layout, planes.space)
    distinct.add(*groups.words_inside(planes.layout, codes, grouped, part, equal, look))
    yield TaskResult({"pairs": grouped.pairs}, distinct.arrays(planes.ids()))


def together(item: Together) -> Iterator[TaskResult]:
    """Evidence of all pairs of a part that satisfy some atoms, and of others near them."""
    planes, codes = item.planes, item.planes.codes()
    asked = violations.terms(planes.space, item.atoms)
    if asked is None:
        raise ValueError("no pair satisfies all atoms of a comparison")
    form = violations.sides(codes, asked, planes.view.nulls_equal)
    distinct = _DistinctWords(planes.layout, planes.space)
    for t, s in violations.together(form, item.part, item.parts, look):
        look()
        # No row is compared with itself: rows of both sides with each other, and all the rest.
        both = np.intersect1d(t, s)
        for ones, others in ((t, np.setdiff1d(s, both)), (np.setdiff1d(t, both), both)):
            if len(ones) and len(others):
                words, _, row_pairs = _tile(planes, codes, ones, others, look)
                distinct.add(words, row_pairs)
        distinct.add(*_triangle(planes, codes, both, look))
    yield TaskResult({}, distinct.arrays(planes.ids()))


def violating(item: Violating) -> Iterator[TaskResult]:
    """Which candidates are violated, and evidence that shows it: that of the pairs that were found,
    and of their rows with each other. How many candidates were searched: all, unless the item may
    end early."""
    planes, codes = item.planes, item.planes.codes()
    equal = planes.view.nulls_equal
    distinct = _DistinctWords(planes.layout, planes.space)
    refuted = np.zeros(len(item.candidates), np.bool_)
    searched = 0
    rows: list[I64] = []
    try:
        for atoms in item.candidates:
            look()
            asked = violations.terms(planes.space, atoms)
            if asked is not None:
                row_pairs = violations.find(codes, asked, equal, item.most, look)
                refuted[searched] = len(row_pairs) > 0
                if len(row_pairs):
                    words = comparisons.words_of(codes, planes.layout, row_pairs, equal)
                    distinct.add(words, row_pairs)
                    rows.append(row_pairs.reshape(-1))
            searched += 1
        if rows:
            violating_rows = np.unique(np.concatenate(rows))
            for start, stop in _stretches(len(violating_rows), item.words, distinct.number):
                distinct.add(*_triangle(planes, codes, violating_rows[start:stop], look))
    except OutOfTime:
        if item.words is None:
            raise
    yield TaskResult({"searched": searched}, {"refuted": refuted, **distinct.arrays(planes.ids())})


def _stretches(rows: int, words: int | None, so_far: int) -> Iterator[tuple[int, int]]:
    """Of so many rows, those that are compared with each other: all, or, if so many words are
    enough, as many as bring no more."""
    most = thresholds.current.violating_rows
    for start in range(0, rows, most):
        stop = min(rows, start + most)
        if words is not None:
            stop = min(stop, start + math.isqrt(2 * max(0, words - so_far)))
            so_far += (stop - start) ** 2 // 2
        if stop - start > 1:
            yield start, stop


def shown(item: Violating) -> Iterator[TaskResult]:
    """The pairs themselves, by the ids of their rows."""
    planes, codes, ids = item.planes, item.planes.codes(), item.planes.ids()
    for atoms in item.candidates:
        asked = violations.terms(planes.space, atoms)
        if asked is not None:
            rows = violations.find(codes, asked, planes.view.nulls_equal, item.most)
            yield TaskResult({}, {"pairs": ids[rows]})


def beside(item: CompareBatch) -> Iterator[TaskResult]:
    """Evidence of all pairs with a row of the batch and, in one part of the others, any other."""
    view = item.view
    compared = ComparedRows(view, item.schema, item.space)
    numbers = {segment.number for segment in item.batch}
    batch = rows_of(view, item.batch)
    if item.part == 0:
        compared.with_each_other(*batch)
    others = [segment for segment in view.segments if segment.number not in numbers]
    chunk = thresholds.current.coded_rows
    chunks = [(s, at) for s in others for at in range(0, s.live, chunk)]
    for segment, at in chunks[item.part :: item.parts]:
        look()
        positions = live_positions(view.path, segment)[at : at + chunk]
        compared.with_others(*batch, view.rows(segment, positions), positions + segment.base)
    yield TaskResult({}, compared.arrays())


class ComparedRows:
    """Distinct words of rows that were compared as they are stored, each with the ids of two."""

    def __init__(self, view: View, schema: pa.Schema, space: Space) -> None:
        self._view = view
        self._layout = comparisons.layout_of(space.comparisons)
        self._coding = Coding.of(schema, space.comparisons)
        self._distinct = _DistinctWords(self._layout, space)

    def with_each_other(self, words: U64, ids: I64) -> None:
        """Compare all pairs of some rows."""
        self._tile(words, ids, len(ids), 0)

    def with_others(self, words: U64, ids: I64, other_words: U64, other_ids: I64) -> None:
        """Compare some rows with all of some others."""
        both = np.concatenate([words, other_words]), np.concatenate([ids, other_ids])
        self._tile(*both, len(ids), len(ids))

    def in_pairs(self, words: U64, ids: I64, row_pairs: I64) -> None:
        """Compare some pairs of some rows, by their places among them."""
        codes = self._coding.codes(words, self._view.shape.first)
        of_pairs = comparisons.words_of([*codes], self._layout, row_pairs, self._view.nulls_equal)
        self._distinct.add(*first_of_each(of_pairs, ids[row_pairs]))

    def own_evidence(self, words: U64) -> U64:
        """What holds in every pair that has one of these rows as t: the atoms of row t alone."""
        codes = self._coding.codes(words, self._view.shape.first)
        own, _ = comparisons.own_words(codes, self._layout, self._view.nulls_equal)
        return self._distinct.evidence(own)

    def arrays(self) -> dict[str, NDArray[Any]]:
        """Evidence of both orders of the pairs, with their row ids."""
        return self._distinct.arrays()

    def _tile(self, words: U64, ids: I64, size: int, first: int) -> None:
        """Rows up to ``size`` with rows from ``first`` on."""
        layout, equal = self._layout, self._view.nulls_equal
        codes = self._coding.codes(words, self._view.shape.first)
        ones, others = groups.sides(layout, codes, equal)
        t = pairs.TileRows(codes[:, :size], None if ones.own is None else ones.own[:size])
        s = pairs.TileRows(codes[:, first:], None if others.own is None else others.own[first:])
        ends = None if first else np.arange(size)
        counted = pairs.count(pairs.tile_pairs(layout, t, s, equal, ends), True, look)
        rows = counted.pairs + np.array([0, first])
        self._distinct.add(counted.words, ids[rows])


def rows_of(
    view: View, segments: Sequence[Segment], part: int = 0, parts: int = 1
) -> tuple[U64, I64]:
    """The living rows of some segments, or one part of them, and their ids."""
    width = view.shape.owner.size + view.shape.full.size
    words, ids = [np.empty((0, width), np.uint64)], [np.empty(0, np.int64)]
    start = 0
    for segment in segments:
        live = live_positions(view.path, segment)
        positions = live[(part - start) % parts :: parts]
        start += len(live)
        words.append(view.rows(segment, positions))
        ids.append(positions + segment.base)
    return np.concatenate(words), np.concatenate(ids)


class _DistinctWords:
    """Distinct words of pairs, each with one pair that shows it."""

    def __init__(self, layout: WordLayout, space: Space) -> None:
        self._layout, self._space = layout, space
        none = np.empty((0, layout.width), np.uint64)
        self._blocks = [(none, np.empty((0, 2), np.int64))]  # the first one is of distinct words
        self._more = 0  # words in the others

    def add(self, words: U64, row_pairs: I64) -> None:
        """Take in words, and a pair of each."""
        self._blocks.append((words, row_pairs))
        self._more += len(words)
        # Each word is sorted a few times, however many are added.
        if self._more > max(_UNSORTED, len(self._blocks[0][0])):
            self._merge()

    @property
    def number(self) -> int:
        """How many words there are, or a few more."""
        return len(self._blocks[0][0]) + self._more

    def _merge(self) -> None:
        words, row_pairs = (np.concatenate(each) for each in zip(*self._blocks, strict=True))
        self._blocks, self._more = [first_of_each(words, row_pairs)], 0

    def evidence(self, words: U64) -> U64:
        """The atoms that hold in pairs with these words."""
        return comparisons.evidence(words, self._layout, self._space)

    def arrays(self, ids: I64 | None = None) -> dict[str, NDArray[Any]]:
        """Evidence of both orders of the pairs, with their row ids; where pairs were added by the
        numbers of rows, these have the ids."""
        self._merge()
        [(words, row_pairs)] = self._blocks
        row_pairs = row_pairs if ids is None else ids[row_pairs]
        masks = self.evidence(np.concatenate([words, comparisons.mirror(words, self._layout)]))
        masks, row_pairs = first_of_each(masks, np.concatenate([row_pairs, row_pairs[:, ::-1]]))
        return {"masks": masks, "pairs": row_pairs}


def _tile(
    planes: Planes, codes: list[Codes], ones: I64, others: I64, look: pairs.Tick = pairs.no_tick
) -> tuple[U64, I64, I64]:
    """The words of some rows with others, how many pairs show each, and one of them."""
    layout, equal = planes.layout, planes.view.nulls_equal
    t, _ = groups.sides(layout, groups.gathered(codes, ones), equal)
    _, s = groups.sides(layout, groups.gathered(codes, others), equal)
    counted = pairs.count(pairs.tile_pairs(layout, t, s, equal), True, look)
    row_pairs = np.stack([ones[counted.pairs[:, 0]], others[counted.pairs[:, 1]]], axis=1)
    return counted.words, counted.counts, row_pairs


def _triangle(
    planes: Planes, codes: list[Codes], rows: I64, look: pairs.Tick = pairs.no_tick
) -> tuple[U64, I64]:
    """The words of some rows with each other, and a pair of each."""
    layout, equal = planes.layout, planes.view.nulls_equal
    t, s = groups.sides(layout, groups.gathered(codes, rows), equal)
    counted = pairs.count(pairs.tile_pairs(layout, t, s, equal, np.arange(len(rows))), True, look)
    return counted.words, rows[counted.pairs]
