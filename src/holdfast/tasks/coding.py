"""Cells as codes for the pair kernels.

Columns that are compared with each other, directly or through others, are coded together. Where a
comparison needs order, codes are ranks, elsewhere numbers of values.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from holdfast.kernels import ranks
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.ranks import Codes
from holdfast.kernels.values import FLOAT, HASHED, INTEGER, WIDE
from holdfast.model.comparisons import ORDER, Comparison
from holdfast.tasks.encode import layout

UNITS = {"s": 0, "ms": 3, "us": 6, "ns": 9}
"""Decimal places of the units of time."""


@dataclass(frozen=True)
class Coding:
    """How the columns of a table are coded."""

    words: tuple[tuple[int, int], ...]  # how each column's words hold values: kind, scale
    together: tuple[tuple[int, ...], ...]  # the columns that are compared, in groups
    ordered: tuple[bool, ...]  # which groups have an order

    @staticmethod
    def of(schema: pa.Schema, comparisons: Iterable[Comparison]) -> Coding:
        """The coding that some comparisons need."""
        comparisons = tuple(comparisons)
        groups: dict[int, set[int]] = {}
        for comparison in comparisons:
            left, right = comparison.left, comparison.right
            joined = groups.get(left, {left}) | groups.get(right, {right})
            groups |= dict.fromkeys(joined, joined)
        together = tuple(sorted({tuple(sorted(group)) for group in groups.values()}))
        ordered = [comparison for comparison in comparisons if comparison.operators == ORDER]
        with_order = {column for each in ordered for column in (each.left, each.right)}
        words = tuple(word_form(field.type) for field in schema)
        return Coding(words, together, tuple(bool(with_order & {*group}) for group in together))

    def codes(self, rows: U64, first: I64) -> Codes:
        """Codes ``(columns, rows)`` of row-major words; ``first`` is the first value word of each
        column. Columns that are not compared have codes of 0."""
        out = np.zeros((len(self.words), len(rows)), np.int32)
        for group, ordered in zip(self.together, self.ordered, strict=True):
            cells = [ranks.cells(rows, first, column, *self.words[column]) for column in group]
            out[list(group)] = (ranks.ranks if ordered else ranks.numbers)(cells)
        return out


def word_form(type_: pa.DataType) -> tuple[int, int]:
    """How words hold the values of a type: the kind of value, and the scale of numbers."""
    if at.is_dictionary(type_):
        type_ = type_.value_type
    if at.is_floating(type_):
        return FLOAT, 0
    if at.is_decimal(type_):
        return INTEGER if type_.precision <= 18 else WIDE, type_.scale
    if at.is_timestamp(type_) or at.is_time(type_) or at.is_duration(type_):
        return INTEGER, UNITS[type_.unit]
    if type_ == pa.month_day_nano_interval():
        return WIDE, 0
    width = layout(pa.schema([("c", type_)])).widths[0]
    return INTEGER if width == 1 else HASHED, 0


def comparisons_of(spaces: Sequence[Iterable[Comparison]]) -> list[Comparison]:
    """The comparisons of several spaces, each once, with the most operators that any of them
    needs."""
    most: dict[tuple[int, int, int], Comparison] = {}
    for space in spaces:
        for comparison in space:
            cells = (comparison.left, comparison.right, comparison.rows)
            if cells not in most or len(comparison.operators) > len(most[cells].operators):
                most[cells] = comparison
    return list(most.values())
