"""Rows that violate rules by themselves."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from holdfast.kernels import domains, violations
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.ranks import Codes
from holdfast.kernels.violations import Term
from holdfast.runtime.result import TaskResult
from holdfast.tasks.coding import Coding
from holdfast.tasks.literals import whole
from holdfast.tasks.segments import Segment, read_column
from holdfast.tasks.values import positions_of
from holdfast.tasks.view import View

_CHUNK = 1 << 16
"""Rows whose cells are compared at a time."""


@dataclass(frozen=True)
class Cells:
    """The cells of some rows."""

    view: View
    segment: Segment
    positions: I64  # in order
    rows: U64
    codes: Codes | None  # of the columns that are compared with others

    def nulls(self, column: int) -> Flags:
        """Where a column has no value."""
        word = self.rows[:, self.view.shape.owner.size + column // 64]
        flags: Flags = word >> np.uint64(column % 64) & np.uint64(1) == 1
        return flags

    def words(self, column: int) -> U64:
        """The words of a column; those of nulls are 0."""
        first = self.view.shape.first
        return np.ascontiguousarray(self.rows[:, int(first[column]) : int(first[column + 1])])

    def raw(self, column: int) -> pa.ChunkedArray:
        """The values of a column as they were read."""
        return read_column(self.view.path, self.segment, column, self.positions)


class RowRule(ABC):
    """What a row must not be."""

    terms: tuple[Term, ...] = ()
    """Comparisons of its cells with each other."""

    @abstractmethod
    def violated(self, cells: Cells) -> Flags:
        """Which rows are so."""


@dataclass(frozen=True)
class IsNull(RowRule):
    """Null in a column."""

    column: int

    def violated(self, cells: Cells) -> Flags:
        """By the null mask."""
        return cells.nulls(self.column)


@dataclass(frozen=True)
class Satisfies(RowRule):
    """Such that its cells satisfy some terms."""

    terms: tuple[Term, ...]

    def violated(self, cells: Cells) -> Flags:
        """By codes of the cells."""
        assert cells.codes is not None
        return violations.within_rows([*cells.codes], self.terms, cells.view.nulls_equal)


@dataclass(frozen=True)
class IsForeign(RowRule):
    """With a value in a column that is not in a domain."""

    column: int
    domain: tuple[tuple[int, ...], ...]  # the words of each value

    def violated(self, cells: Cells) -> Flags:
        """By the words of the values."""
        domain = np.array(self.domain, np.int64).view(np.uint64)
        return ~(domains.among(cells.words(self.column), domain) | cells.nulls(self.column))


@dataclass(frozen=True)
class IsOutside(RowRule):
    """With a value in a column that is below or above some bounds, as the words of the column are
    integers: of one word, or of two."""

    column: int
    lowest: int | None
    highest: int | None

    def violated(self, cells: Cells) -> Flags:
        """By the order of words, which is that of the values."""
        words = cells.words(self.column)
        outside = np.zeros(len(words), np.bool_)
        if self.lowest is not None:
            outside |= _less(words, self.lowest)
        if self.highest is not None:
            outside |= ~_less(words, self.highest + 1)
        return outside & ~cells.nulls(self.column)


@dataclass(frozen=True)
class IsUnlike(RowRule):
    """With a text in a column that a regular expression does not match as a whole."""

    column: int
    pattern: str

    def violated(self, cells: Cells) -> Flags:
        """By the texts themselves; a null is none."""
        texts = cells.raw(self.column).cast(pa.large_string())
        matched = pc.match_substring_regex(texts, whole(self.pattern))
        flags: Flags = pc.invert(matched).fill_null(False).to_numpy()
        return flags


def _less(words: U64, bound: int) -> Flags:
    """Which integers are less than a bound, which may be larger than any of them."""
    flags: Flags
    if words.shape[1] == 1:
        flags = words.view(np.int64)[:, 0] < bound
    else:
        high, low = words.view(np.int64)[:, 1], words[:, 0]
        flags = (high < bound >> 64) | ((high == bound >> 64) & (low < bound % (1 << 64)))
    return flags


@dataclass(frozen=True)
class RowTests:
    """Rows that violate rules about single rows: the living ones, or those that had been deleted
    ``later``."""

    view: View
    schema: pa.Schema
    rules: tuple[RowRule, ...]
    most: int  # ids that are given of each rule
    later: tuple[Segment, ...] | None = None
    weight: int = 1  # -1: the rows are gone


def check_rows(item: RowTests) -> Iterator[TaskResult]:
    """How many rows violate each rule, and the ids of a few of them."""
    number = np.zeros(len(item.rules), np.int64)
    first = [np.empty(0, np.int64)]
    for rule, ids in violating_rows(item):
        room = item.most - int(number[rule])
        number[rule] += len(ids)
        if room > 0:
            first.append(ids[:room])
    yield TaskResult({}, {"number": item.weight * number, "ids": np.concatenate(first)})


def violating_rows(item: RowTests) -> Iterator[tuple[int, I64]]:
    """The ids of rows that violate a rule, by its place, a chunk of rows at a time."""
    view = item.view
    compared = [each for rule in item.rules for each, _ in rule.terms]
    coding = Coding.of(item.schema, compared)
    for segment in view.segments:
        positions = positions_of(view, segment, None, item.later)
        for start in range(0, len(positions), _CHUNK):
            chosen = positions[start : start + _CHUNK]
            rows = view.rows(segment, chosen)
            codes = coding.codes(rows, view.shape.first) if compared else None
            cells = Cells(view, segment, chosen, rows, codes)
            for place, rule in enumerate(item.rules):
                yield place, chosen[rule.violated(cells)] + segment.base
