"""Codes for the comparisons of a space."""

from __future__ import annotations

from datetime import date
from decimal import Decimal

import numpy as np
import pyarrow as pa

from holdfast.model.comparisons import AGREEMENT, EQUALITY, FIRST, ORDER, SECOND, Comparison
from holdfast.tasks import encode
from holdfast.tasks.coding import Coding, comparisons_of

SCHEMA = pa.schema(
    [("a", pa.int64()), ("b", pa.decimal128(5, 1)), ("c", pa.string()), ("d", pa.date32())]
)
ROWS = [
    {"a": 3, "b": Decimal("2.5"), "c": "x", "d": date(2026, 1, 2)},
    {"a": 2, "b": Decimal("3.0"), "c": "y", "d": date(2026, 1, 1)},
    {"a": None, "b": Decimal("-1.0"), "c": "x", "d": None},
]


def codes(comparisons: list[Comparison]) -> np.ndarray:
    layout = encode.layout(SCHEMA)
    batch = pa.RecordBatch.from_pylist(ROWS, SCHEMA)
    rows = np.ascontiguousarray(encode.encode(batch, layout).T).view(np.uint64)
    first = np.array([*layout.offsets, layout.value_words])
    return Coding.of(SCHEMA, comparisons).codes(rows, first)


def test_columns_that_are_compared_are_coded_together() -> None:
    found = codes([Comparison(0, 1, ORDER), Comparison(1, 0, ORDER), Comparison(3, 3, ORDER)])
    assert found[:2].tolist() == [[3, 1, -1], [2, 3, 0]]  # -1 < 2 < 2.5 < 3, and 3 is 3.0
    assert found[2].tolist() == [0, 0, 0]
    assert found[3].tolist() == [1, 0, -1]


def test_columns_alone_and_without_order() -> None:
    found = codes([Comparison(0, 0, AGREEMENT), Comparison(2, 2, EQUALITY)])
    assert found[0].tolist() == [0, 1, -1]
    assert found[2].tolist() == [0, 1, 0]


def test_comparisons_of_several_spaces_have_the_most_operators() -> None:
    one = [Comparison(0, 0, AGREEMENT), Comparison(2, 2, AGREEMENT)]
    two = [Comparison(0, 0, ORDER), *(Comparison(0, 1, ORDER, rows) for rows in (FIRST, SECOND))]
    both = comparisons_of([one, two])
    assert both == [two[0], one[1], *two[1:]]
