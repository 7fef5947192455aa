"""What occurs in a column: its values and the shapes of its texts, found while rows are written,
and found again where too little is left that shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from holdfast.kernels import samples as kernels
from holdfast.kernels.arrays import I64, U8, U64
from holdfast.model.literals import BOOLEAN, NUMBER, TEXT
from holdfast.model.samples import (
    LONGEST,
    LONGEST_NAMED,
    SHAPES,
    VALUES,
    Entry,
    Sample,
    shape_of,
)
from holdfast.tasks.encode import has_bytes
from holdfast.tasks.literals import literal_type, text_at

_SLOTS = 4
"""So many slots for each code that is known, at least."""


def is_sampled(kind: pa.DataType) -> bool:
    """Whether it is noted which values of a type occur: of numbers, texts, and true and false."""
    return has_bytes(kind) or literal_type(kind) in (BOOLEAN, NUMBER)


def has_shapes(kind: pa.DataType) -> bool:
    """Whether values of a type have shapes: they are texts."""
    return has_bytes(kind) and literal_type(kind) == TEXT


class Samples(NamedTuple):
    """What occurs in a column; None: that is not known."""

    values: Sample | None = None
    shapes: Sample | None = None

    @property
    def codes(self) -> list[int]:
        """All codes that show something, each once."""
        return sorted({code for each in self if each for code, _, _ in each.entries})

    def joined(self, newer: Samples) -> Samples:
        """What occurs in these rows and in newer ones."""
        values, shapes = None, None
        if self.values is not None and newer.values is not None:
            values = self.values.joined(newer.values, VALUES)
        if self.shapes is not None and newer.shapes is not None:
            shapes = self.shapes.joined(newer.shapes, SHAPES)
        return Samples(values, shapes)

    def without(self, gone: Mapping[int, int] | None) -> Samples:
        """What is left when rows go, by their codes; None: all go."""
        left = (each and (Sample() if gone is None else each.without(gone)) for each in self)
        return Samples(*left)

    def show(self, before: Samples) -> bool:
        """Whether it is known what occurs now, where this is what is left of what did."""
        return all(
            now is None or then is None or now.shows(then, listing)
            for now, then, listing in zip(self, before, (VALUES, SHAPES), strict=True)
        )

    def say_the_same(self, other: Samples) -> bool:
        """Whether both say the same."""
        return all(
            one == two if one is None or two is None else one.says_the_same(two, listing)
            for one, two, listing in zip(self, other, (VALUES, SHAPES), strict=True)
        )


class Sampler:
    """Collects what occurs in a column."""

    def __init__(self, kind: pa.DataType, raw: bool) -> None:
        self._kind = kind
        self._sampled = is_sampled(kind)
        self._readable = raw or not has_bytes(kind)
        self._shapely = raw and has_shapes(kind)
        room = VALUES.kept
        self._codes = np.empty(room, np.uint64)
        self._rows = np.zeros(room, np.int64)
        self._slots = np.full(1 << (_SLOTS * room - 1).bit_length(), -1, np.int16)
        self._labels: list[str | None] = []
        self._full = False
        self._shapes = kernels.Shaped(SHAPES.kept, SHAPES.each)
        self._patterns: list[str] = []

    @property
    def is_done(self) -> bool:
        """Whether further rows tell nothing more."""
        return not self._sampled or (self._full and (not self._shapely or self._shapes.full))

    def add(self, cells: U64, array: pa.Array | None) -> None:
        """Take in cells without nulls, by their words ``(1 or 2, rows)``, and, where they are texts
        that can be read, themselves."""
        start = 0
        if not self._full:
            start = self._tally(cells, array)
            self._full = start < cells.shape[1]
        if self._full and self._shapely and not self._shapes.full and array is not None:
            self._add_shapes(cells[:, start:], array.slice(start))

    def _tally(self, cells: U64, array: pa.Array | None) -> int:
        known, firsts = len(self._labels), np.empty(self._codes.size, np.int64)
        with np.errstate(over="ignore"):
            now, counted = kernels.tally(cells, self._codes, self._rows, firsts, self._slots, known)
        for row in firsts[known:now].tolist():
            self._labels.append(self._label(cells[:, row], array, row))
        return int(counted)

    def _label(self, cell: U64, array: pa.Array | None, row: int) -> str | None:
        """A value as rules write it; None: they do not."""
        if not self._readable or literal_type(self._kind) is None:
            return None
        if not has_bytes(self._kind):
            return text_at(cell, self._kind)
        return None if array is None else _text(array[row])

    def _add_shapes(self, cells: U64, array: pa.Array) -> None:
        ends, data = text_bytes(array)
        cells = np.ascontiguousarray(cells)
        firsts = self._shapes.add(data, ends, cells, LONGEST, LONGEST_NAMED)
        self._patterns += [shape_of(_text(array[row]) or "") for row in firsts.tolist()]

    @property
    def samples(self) -> Samples:
        """What occurs in all of them."""
        if not self._sampled:
            return Samples()
        known = len(self._labels)
        listed = zip(self._codes[:known].tolist(), self._rows.tolist(), self._labels, strict=False)
        entries: list[Entry] = list(listed)
        values = Sample.of(entries, VALUES, self._full)
        if not self._shapely:
            return Samples(values)
        shapes: list[Entry] = [(code, rows, shape_of(label or "")) for code, rows, label in entries]
        shapes += self._shape_entries()
        return Samples(values, _summed(shapes, self._shapes.full))

    def _shape_entries(self) -> Iterator[Entry]:
        for place, pattern in enumerate(self._patterns):
            number = int(self._shapes.numbers[place])
            yield from ((code, 1, pattern) for code in self._shapes.codes[place, :number].tolist())


def _summed(entries: list[Entry], more: bool) -> Sample:
    """A sample of shapes in which a value may be listed twice."""
    rows: dict[tuple[int, str | None], int] = {}
    for code, number, label in entries:
        rows[code, label] = rows.get((code, label), 0) + number
    return Sample.of([(code, n, label) for (code, label), n in rows.items()], SHAPES, more)


def _text(cell: pa.Scalar) -> str | None:
    """A text that is not too long to be written down."""
    content = cell.as_buffer()
    if content is None or content.size > LONGEST_NAMED:
        return None
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError:
        return None


def text_bytes(array: pa.Array) -> tuple[I64, U8]:
    """Texts without nulls: where each ends, from the beginning of the first on, and all bytes."""
    array = array.cast(pa.large_binary())
    _, raw, buffer = array.buffers()
    ends = np.frombuffer(raw, np.int64)[array.offset : array.offset + len(array) + 1]
    data = np.frombuffer(buffer, np.uint8) if buffer else np.empty(0, np.uint8)
    return ends, data
