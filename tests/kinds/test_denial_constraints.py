"""From the cells of a table to the denial constraints that are reported: against brute force."""

from __future__ import annotations

import math
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast

import numpy as np
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cover.cover import Cover
from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints.reduction import reported
from holdfast.model.comparisons import EQUALITY, FIRST, ORDER, SECOND, Comparison, Space
from holdfast.tasks import encode
from holdfast.tasks.coding import Coding
from tests import oracle
from tests.kinds.spaces import evidence_of, told
from tests.strategies import examples

NUMBERS = {
    pa.int64(): [0, 1, 2, -1],
    pa.float64(): [0.0, -0.0, 1.0, 0.5, math.nan],
    pa.decimal128(10, 1): [Decimal("0.0"), Decimal("0.5"), Decimal("1.0")],
    pa.decimal128(30, 2): [Decimal("0.00"), Decimal("0.50"), Decimal("2.00")],
}
OTHERS = {
    pa.date32(): [date(1969, 12, 31), date(2026, 1, 1), date(2026, 1, 2)],
    pa.timestamp("us"): [datetime(1960, 1, 1), datetime(2026, 1, 1, 0, 0, 1)],
    pa.string(): ["", "a", "b"],
}
CELLS = {**NUMBERS, **OTHERS}
WITHOUT_ORDER = (pa.string(),)


@st.composite
def schemas(draw: st.DrawFn) -> tuple[pa.DataType, ...]:
    """Two columns; often of types whose values can be compared with each other."""
    one = draw(st.sampled_from(list(CELLS)))
    alike = list(NUMBERS) if one in NUMBERS else [one]
    return one, draw(st.sampled_from([*alike, *alike, *CELLS]))


@st.composite
def spaces_of(draw: st.DrawFn, types: tuple[pa.DataType, ...]) -> Space:
    """Columns by order, by equality or off; and across columns and within rows where types fit."""
    comparisons = []

    def operators(*compared: pa.DataType) -> tuple[str, ...]:
        ordered = not any(each in WITHOUT_ORDER for each in compared)
        return draw(st.sampled_from([ORDER, ORDER, EQUALITY])) if ordered else EQUALITY

    for c, each in enumerate(types):
        if draw(st.integers(0, 5)):
            comparisons.append(Comparison(c, c, operators(each)))
    if types[0] == types[1] or all(each in NUMBERS for each in types):
        way = operators(*types)
        if draw(st.booleans()):
            comparisons += [Comparison(0, 1, way), Comparison(1, 0, way)]
        if draw(st.booleans()):
            comparisons += [Comparison(0, 1, way, rows) for rows in (FIRST, SECOND)]
    return Space("drawn", 2, tuple(draw(st.permutations(comparisons))))


def minimal_sets(
    rows: list[tuple[object, ...]], types: tuple[pa.DataType, ...], space: Space, nulls: str
) -> bitsets.Masks:
    """Through the encoder, the codes of a space, the pairs of rows and the cover."""
    schema = pa.schema([(f"c{c}", each) for c, each in enumerate(types)])
    cells = [[row[c] for row in rows] for c in range(len(types))]
    arrays = [pa.array(each, type_) for each, type_ in zip(cells, types, strict=True)]
    layout = encode.layout(schema)
    words = encode.encode(pa.RecordBatch.from_arrays(arrays, schema=schema), layout)
    codes = Coding.of(schema, space.comparisons).codes(
        np.ascontiguousarray(words.T).view(np.uint64),
        np.array([*layout.offsets, layout.value_words]),
    )
    evidence = evidence_of(space, codes, nulls == "equal")
    return Cover.build(space.atoms, evidence).minimal


@given(st.data())
@settings(max_examples=examples(150))
def test_reported_constraints_are_those_of_brute_force(data: st.DataObject) -> None:
    types = data.draw(schemas())
    space = data.draw(spaces_of(types))
    row = st.tuples(*[st.sampled_from([*cast(list[Any], CELLS[each]), None]) for each in types])
    rows = data.draw(st.lists(row, max_size=6))
    nulls = data.draw(st.sampled_from(["equal", "unequal"]))
    kept = reported(minimal_sets(rows, types, space, nulls), space)
    assert bitsets.to_columns(kept) == oracle.denial_constraints(rows, 2, told(space), nulls)
