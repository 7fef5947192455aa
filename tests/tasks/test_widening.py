"""Wider types of a family: which cells keep their words, and what the others become."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.input.type_names import is_wider, widens
from holdfast.tasks.encode import encode, layout
from holdfast.tasks.values import family
from holdfast.tasks.widening import keeps_words, widened
from tests.strategies import examples

INTEGERS = [pa.int8(), pa.int16(), pa.int32(), pa.int64()]


@st.composite
def wider(draw: st.DrawFn) -> tuple[pa.DataType, pa.DataType, st.SearchStrategy[Any]]:
    """A type, a wider one of its family, and values of the first."""
    kind = draw(st.sampled_from(["integer", "float", "decimal"]))
    if kind == "integer":
        old, new = sorted(draw(st.sets(st.sampled_from(range(4)), min_size=2, max_size=2)))
        most = 1 << (8 << old) - 1
        return INTEGERS[old], INTEGERS[new], st.integers(-most, most - 1)
    if kind == "float":
        return pa.float32(), pa.float64(), st.floats(width=32)
    precision = draw(st.integers(1, 37))
    scale = draw(st.integers(0, precision))
    more, finer = draw(st.integers(0, 38 - precision)), draw(st.integers(0, 38 - precision))
    if not 0 < more + finer <= 38 - precision:
        more, finer = 1, 0
    old = pa.decimal128(precision, scale)
    new = pa.decimal128(precision + more + finer, scale + finer)
    most = 10**precision - 1
    return old, new, st.integers(-most, most).map(lambda n: Decimal(n).scaleb(-scale))


def words_of(cells: pa.Array) -> np.ndarray[Any, Any]:
    batch = pa.record_batch([cells], names=["c0"])
    return encode(batch, layout(batch.schema))


@settings(max_examples=examples(300), deadline=None)
@given(data=st.data(), types=wider())
def test_words_are_those_of_the_wider_type(data: st.DataObject, types: Any) -> None:
    old, new, values = types
    assert is_wider(old, new)
    assert not is_wider(new, old)
    assert family("", old) == family("", new)
    cells = pa.array(data.draw(st.lists(values | st.none(), max_size=20)), old)
    before, after = words_of(cells), words_of(cells.cast(new))
    assert np.array_equal(before[-1], after[-1])
    rows = np.ascontiguousarray(before[:-1].T).view(np.uint64)
    found = widened(rows, before[-1].view(np.uint64), old, new)
    assert np.array_equal(found.view(np.int64), after[:-1].T)
    if keeps_words(old, new):
        assert np.array_equal(before, after)


@pytest.mark.parametrize(
    ("old", "new", "is_so"),
    [
        ("varchar(9)", "varchar(10)", True),
        ("varchar(9)", "string", True),
        ("char(2)", "varchar(3)", True),
        ("varchar(9)", "varchar(9)", False),
        ("varchar(9)", "varchar(8)", False),
        ("string", "varchar(9)", False),
        ("string", "string", False),
    ],
)
def test_texts_of_bounded_length(old: str, new: str, is_so: bool) -> None:
    assert widens((old, pa.string()), (new, pa.string())) == is_so


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (pa.int64(), pa.int32()),
        (pa.int32(), pa.int32()),
        (pa.int32(), pa.float64()),
        (pa.int32(), pa.decimal128(20, 0)),
        (pa.decimal128(10, 2), pa.decimal128(10, 4)),
        (pa.decimal128(10, 4), pa.decimal128(12, 2)),
        (pa.float64(), pa.float32()),
        (pa.string(), pa.binary()),
        (pa.date32(), pa.timestamp("us")),
    ],
)
def test_what_is_not_wider(old: pa.DataType, new: pa.DataType) -> None:
    assert not is_wider(old, new)
