"""Words are equal iff values are, and ordered iff values are, for every type."""

from __future__ import annotations

import ctypes
import datetime as dt
import math
import struct
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.tasks.encode import RowLayout, UnsupportedType, encode, layout
from holdfast.tasks.segments import row_codes
from tests.strategies import examples

NAN_BITS = [0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000000000000, 0x7FF0000000000001]


def codes(array: pa.Array) -> list[tuple[int, ...]]:
    """Words and null bit of every value of a column."""
    batch = pa.RecordBatch.from_arrays([array], names=["c"])
    shape = layout(batch.schema)
    words = encode(batch, shape)
    assert words.shape == (shape.total, len(array))
    assert words.flags.c_contiguous
    return [tuple(int(word) for word in row) for row in words.T]


def sliced(array: pa.Array, before: int) -> pa.Array:
    """The same values behind an offset, with other values around them."""
    if len(array) == 0:
        return array
    around = pa.concat_arrays([*[array.slice(0, 1)] * before, array, array])
    return around.slice(before, len(array))


def canonical(value: Any) -> Any:
    """A hashable form that is equal iff the value is, by our semantics."""
    if isinstance(value, float):
        return "nan" if math.isnan(value) else value + 0.0
    if isinstance(value, dict):
        return tuple((name, canonical(part)) for name, part in value.items())
    if isinstance(value, list) and value and all(isinstance(part, tuple) for part in value):
        return frozenset((canonical(key), canonical(item)) for key, item in value)
    if isinstance(value, list):
        return tuple(canonical(part) for part in value)
    return value


def assert_equal_iff(array: pa.Array, values: list[Any]) -> None:
    found = codes(array)
    for a, code_a in zip(values, found, strict=True):
        for b, code_b in zip(values, found, strict=True):
            assert (code_a == code_b) == (a == b), (a, b)


def integers(bits: int) -> st.SearchStrategy[int]:
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    edges = st.sampled_from([low, low + 1, -1, 0, 1, high - 1, high])
    return edges | st.integers(low, high)


@pytest.mark.parametrize(
    ("bits", "type_"),
    [
        (8, pa.int8()),
        (16, pa.int16()),
        (32, pa.int32()),
        (64, pa.int64()),
        (32, pa.date32()),
        (64, pa.timestamp("us")),
        (64, pa.timestamp("us", "Europe/Berlin")),
        (64, pa.duration("us")),
        (64, pa.time64("us")),
        (64, pa.time64("ns")),
    ],
    ids=str,
)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(30))
def test_integers_keep_equality_and_order(bits: int, type_: pa.DataType, data: Any) -> None:
    values = data.draw(st.lists(st.none() | integers(bits), min_size=1, max_size=12))
    array = pa.array(values, f"int{bits}").view(type_)
    found = codes(sliced(array, data.draw(st.integers(0, 9))))
    assert found == [(0, 1) if v is None else (v, 0) for v in values]


@given(st.lists(st.none() | st.booleans(), min_size=1, max_size=30), st.integers(0, 9))
@settings(deadline=None)
def test_booleans(values: list[bool | None], before: int) -> None:
    found = codes(sliced(pa.array(values, pa.bool_()), before))
    assert found == [(0, 1) if v is None else (int(v), 0) for v in values]


@given(
    st.lists(
        st.none()
        | st.floats().map(lambda x: struct.unpack("<Q", struct.pack("<d", x))[0])
        | st.sampled_from([*NAN_BITS, 1 << 63, 0]),
        min_size=1,
        max_size=12,
    ),
    st.integers(0, 9),
)
@settings(deadline=None)
def test_doubles(bits: list[int | None], before: int) -> None:
    raw = np.array([b or 0 for b in bits], np.uint64).view(np.float64)
    array = pa.array(raw, mask=np.array([b is None for b in bits]), from_pandas=False)
    found = codes(sliced(array, before))
    keys = [
        None if b is None else (math.isnan(v), 0.0 if math.isnan(v) else float(v))
        for b, v in zip(bits, raw, strict=True)
    ]
    for (word_a, null_a), a in zip(found, keys, strict=True):
        assert null_a == (a is None)
        for (word_b, null_b), b in zip(found, keys, strict=True):
            assert ((word_a, null_a) == (word_b, null_b)) == (a == b)
            if a is not None and b is not None:
                assert (word_a < word_b) == (a < b)


@given(st.lists(st.floats(width=32), min_size=1, max_size=12))
@settings(deadline=None)
def test_floats_are_taken_by_their_double_value(values: list[float]) -> None:
    assert codes(pa.array(values, pa.float32())) == codes(pa.array(values, pa.float64()))


@pytest.mark.parametrize(("precision", "scale"), [(5, 2), (18, 18), (19, 0), (38, 10), (38, 38)])
@given(data=st.data())
@settings(deadline=None, max_examples=examples(40))
def test_decimals(precision: int, scale: int, data: Any) -> None:
    limit = 10**precision - 1
    edges = [-limit, limit, 0, 1, -1, min(limit, 1 << 64), min(limit, (1 << 64) - 1)]
    number = st.sampled_from(edges) | st.integers(-limit, limit)
    values = data.draw(st.lists(st.none() | number, min_size=1, max_size=12))
    exact = [
        None if v is None else Decimal((int(v < 0), tuple(map(int, str(abs(v)))), -scale))
        for v in values
    ]
    array = pa.array(exact, pa.decimal128(precision, scale))
    found = codes(sliced(array, data.draw(st.integers(0, 5))))
    if precision <= 18:
        assert found == [(0, 1) if v is None else (v, 0) for v in values]
    else:
        unsigned = [(low % (1 << 64), high, null) for low, high, null in found]
        assert unsigned == [(0, 0, 1) if v is None else (v % (1 << 64), v >> 64, 0) for v in values]


TEXT = st.text(max_size=20) | st.sampled_from(
    ["", "\0", "\0\0", "a", "a\0", "é", "e\u0301", "𝄞", "x" * 15, "x" * 16, "x" * 17, "x" * 33]
)


@pytest.mark.parametrize(
    "type_",
    [
        pa.string(),
        pa.large_string(),
        pa.string_view(),
        pa.binary(),
        pa.large_binary(),
        pa.binary_view(),
        pa.dictionary(pa.int8(), pa.string()),
    ],
    ids=str,
)
@given(data=st.data())
@settings(deadline=None, max_examples=examples(30))
def test_text(type_: pa.DataType, data: Any) -> None:
    values = data.draw(st.lists(st.none() | TEXT, min_size=1, max_size=12))
    plain = pa.array(values, pa.string())
    before = data.draw(st.integers(0, 9))
    if pa.types.is_dictionary(type_):
        array = pa.concat_arrays([plain, plain]).dictionary_encode().slice(len(values))
    else:
        array = sliced(plain.cast(type_), before)
    assert_equal_iff(array, values)
    assert codes(array) == codes(plain), "the same text has the same words in every type"


@given(st.lists(st.none() | st.binary(min_size=3, max_size=3), min_size=1), st.integers(0, 5))
@settings(deadline=None)
def test_fixed_size_binary(values: list[bytes | None], before: int) -> None:
    fixed = sliced(pa.array(values, pa.binary(3)), before)
    assert_equal_iff(fixed, values)
    assert codes(fixed) == codes(pa.array(values, pa.binary()))


@given(st.lists(st.none() | st.tuples(integers(32), integers(32), integers(64)), min_size=1))
@settings(deadline=None)
def test_calendar_intervals(values: list[Any]) -> None:
    raw = [struct.pack("<iiq", *(v or (0, 0, 0))) for v in values]
    valid = pa.array([v is not None for v in values])
    array = pa.Array.from_buffers(
        pa.month_day_nano_interval(),
        len(values),
        [valid.buffers()[1], pa.py_buffer(b"".join(raw))],
    )
    assert_equal_iff(array, values)


def month_interval() -> pa.DataType:
    """Arrow's year-month interval, which PyArrow can hold but has no name for."""

    class Schema(ctypes.Structure):
        _fields_ = (
            ("format", ctypes.c_char_p),
            ("name", ctypes.c_char_p),
            ("metadata", ctypes.c_char_p),
            ("flags", ctypes.c_int64),
            ("n_children", ctypes.c_int64),
            ("children", ctypes.c_void_p),
            ("dictionary", ctypes.c_void_p),
            ("release", ctypes.c_void_p),
            ("private_data", ctypes.c_void_p),
        )

    def forget(schema: Any) -> None:
        schema.contents.release = None

    release = ctypes.CFUNCTYPE(None, ctypes.POINTER(Schema))(forget)

    schema = Schema(b"tiM", b"", None, 2, 0, None, None, ctypes.cast(release, ctypes.c_void_p))
    return pa.DataType._import_from_c(ctypes.addressof(schema))


def test_year_month_intervals_alone_and_inside() -> None:
    months = month_interval()
    plain = pa.array(
        [{"m": m, "l": [m, None], "t": str(m)} for m in (7, None, -3, 7)],
        pa.struct([("m", pa.int32()), ("l", pa.list_(pa.int32())), ("t", pa.string())]),
    )
    seen = plain.view(pa.struct([("m", months), ("l", pa.list_(months)), ("t", pa.string())]))
    batch = pa.RecordBatch.from_struct_array(seen).slice(1)
    assert batch.schema.field("m").type == months
    expected = pa.RecordBatch.from_struct_array(plain).slice(1)
    assert np.array_equal(
        encode(batch, layout(batch.schema)), encode(expected, layout(expected.schema))
    )


def test_a_column_of_nulls() -> None:
    assert codes(pa.nulls(3)) == [(0, 1)] * 3


LEAVES: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-1, 1)),
    (pa.string(), st.sampled_from(["", "a", "b", "ab"])),
    (pa.float64(), st.sampled_from([0.0, -0.0, math.nan, 1.5])),
    (pa.decimal128(38, 10), st.sampled_from([Decimal(0), Decimal("1.5"), Decimal(10**20)])),
    (pa.bool_(), st.booleans()),
    (pa.null(), st.none()),
]


def nested(parts: Any) -> Any:
    """Types made of other types, each with a strategy of its values."""

    def of(kind: str, part: Any) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
        type_, values = part
        values = st.none() | values
        if kind == "list":
            return pa.list_(type_), st.lists(values, max_size=3)
        if kind == "large":
            return pa.large_list(type_), st.lists(values, max_size=3)
        if kind == "fixed":
            return pa.list_(type_, 2), st.lists(values, min_size=2, max_size=2)
        if kind == "map":
            pairs = st.dictionaries(st.sampled_from("abc"), values, max_size=3)
            return pa.map_(pa.string(), type_), pairs.flatmap(
                lambda d: st.permutations(list(d.items()))
            )
        fields = pa.struct([("x", type_), ("y", pa.int8())])
        return fields, st.fixed_dictionaries({"x": values, "y": st.none() | st.just(1)})

    return st.builds(of, st.sampled_from(["list", "large", "fixed", "map", "struct"]), parts)


NESTED = nested(st.recursive(st.sampled_from(LEAVES), nested, max_leaves=3))


@given(st.data())
@settings(max_examples=examples(150), deadline=None)
def test_nested_values(data: Any) -> None:
    type_, one = data.draw(NESTED)
    values = data.draw(st.lists(st.none() | one, min_size=1, max_size=8))
    array = pa.array(values, type_)
    before = data.draw(st.integers(0, 3))
    seen = sliced(array, before)
    # Arrow's own reading of the values: fixed_dictionaries and tuples become what it makes of them.
    assert_equal_iff(seen, [canonical(v) for v in seen.to_pylist()])
    assert codes(seen) == codes(array)


def test_null_empty_and_a_list_of_null_differ() -> None:
    array = pa.array([None, [], [None], [None, None], [0], [[]][0]], pa.list_(pa.int64()))
    found = codes(array)
    assert len(set(found)) == 5
    assert found[1] == found[5]


def test_what_lies_below_a_null_does_not_matter() -> None:
    mask = pa.array([False, True, True])
    valid = pa.array([True, False, False]).buffers()[1]
    for values in (
        pa.array([1, 2, 3]),
        pa.array(["a", "b", "c"]),
        pa.array([1.5, math.nan, 2.0]),
        pa.array([Decimal(1), Decimal(2), Decimal(3)], pa.decimal128(38, 0)),
        pa.array([True, True, False]),
    ):
        array = pa.Array.from_buffers(values.type, 3, [valid, *values.buffers()[1:]])
        clean = pa.array([values[0].as_py(), None, None], values.type)
        assert codes(array) == codes(clean)
    parts = pa.array([1, 2, 3])
    rows = pa.StructArray.from_arrays([parts], names=["x"], mask=mask)
    assert codes(rows) == codes(pa.array([{"x": 1}, None, None]))
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), parts, mask=mask)
    assert codes(lists) == codes(pa.array([[1], None, None]))
    entries = pa.MapArray.from_arrays([0, 1, 2, 3], pa.array(["a", "b", "c"]), parts)
    hidden = pa.Array.from_buffers(
        entries.type, 3, [valid, entries.buffers()[1]], children=[entries.values]
    )
    assert codes(hidden) == codes(pa.array([[("a", 1)], None, None], entries.type))


def test_columns_are_laid_out_one_after_the_other() -> None:
    names = [f"c{i}" for i in range(70)]
    columns = [pa.array([i, None]) if i % 2 else pa.array([str(i), None]) for i in range(70)]
    batch = pa.RecordBatch.from_arrays(columns, names=names)
    shape = layout(batch.schema)
    assert shape.widths == (2, 1) * 35
    assert (shape.columns, shape.mask_words, shape.value_words, shape.total) == (70, 2, 105, 107)
    assert shape.offsets[:4] == (0, 2, 3, 5)
    words = encode(batch, shape)
    assert words[shape.offsets[69]].tolist() == [69, 0]
    assert words[105:, 0].tolist() == [0, 0]
    assert words[105:, 1].tolist() == [-1, 0b111111]


@pytest.mark.parametrize("type_", [*(t for t, _ in LEAVES), pa.list_(pa.string()), pa.date32()])
def test_no_rows(type_: pa.DataType) -> None:
    assert codes(pa.array([], type_)) == []
    assert codes(pa.array([None, None], type_).slice(2)) == []


@pytest.mark.parametrize(
    "type_",
    [
        pa.uint64(),
        pa.float16(),
        pa.decimal256(50, 0),
        pa.dense_union([pa.field("a", pa.int64())]),
        pa.struct([("x", pa.list_(pa.uint8()))]),
        pa.list_view(pa.int64()),
    ],
    ids=str,
)
def test_a_type_without_words_is_named(type_: pa.DataType) -> None:
    with pytest.raises(UnsupportedType, match="'odd one'") as caught:
        layout(pa.schema([("odd one", type_)]))
    assert caught.value.column == "odd one"


def test_a_batch_of_another_shape_is_refused() -> None:
    batch = pa.record_batch({"a": ["x"]})
    with pytest.raises(ValueError, match="does not fit"):
        encode(batch, RowLayout((1,), (0,)))


@given(st.lists(st.tuples(st.integers(0, 2), st.sampled_from(["", "a", None])), max_size=12))
@settings(deadline=None)
def test_row_hash_is_that_of_the_whole_row(rows: list[tuple[int, str | None]]) -> None:
    batch = pa.record_batch(
        [pa.array([a for a, _ in rows], pa.int64()), pa.array([b for _, b in rows], pa.string())],
        names=["a", "b"],
    )
    hashes = row_codes(encode(batch, layout(batch.schema)).view(np.uint64).T)
    for row_a, a in zip(rows, hashes, strict=True):
        for row_b, b in zip(rows, hashes, strict=True):
            assert (row_a == row_b) == (a == b)


def test_dates_agree_with_the_calendar() -> None:
    days = [dt.date(1, 1, 1), dt.date(1970, 1, 1), dt.date(9999, 12, 31)]
    words = [code[0] for code in codes(pa.array(days))]
    assert words == [day.toordinal() - dt.date(1970, 1, 1).toordinal() for day in days]
