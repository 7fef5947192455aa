"""Cells as keyed hashes: equal where the values are, whatever their types, and nowhere else."""

from __future__ import annotations

import math
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from holdfast.tasks.concealing import Concealing, concealed
from holdfast.tasks.values import family

KEY = bytes(range(16))


def hashes(array: pa.Array, name: str = "string", key: bytes = KEY) -> list[bytes | None]:
    """What is kept of some cells."""
    batch = pa.record_batch([array], names=["c0"])
    [column] = concealed(batch, Concealing(key, (family(name, array.type),))).columns
    assert column.type == pa.binary(16)
    return column.to_pylist()  # type: ignore[no-any-return]


def one(value: Any, kind: pa.DataType, name: str = "string") -> bytes | None:
    return hashes(pa.array([value], kind), name)[0]


@pytest.mark.parametrize(
    "alike",
    [
        [(1, pa.int8()), (1, pa.int64()), (1.0, pa.float32()), (1.0, pa.float64()),
         (Decimal("1.00"), pa.decimal128(10, 2)), (Decimal("1.0000"), pa.decimal128(38, 4))],
        [(0, pa.int32()), (0.0, pa.float64()), (-0.0, pa.float64()),
         (Decimal("0.0"), pa.decimal128(30, 1))],
        [(-25, pa.int16()), (-25.0, pa.float64()), (Decimal("-25.000"), pa.decimal128(38, 3))],
        [(math.nan, pa.float32()), (math.nan, pa.float64())],
        [(-math.inf, pa.float32()), (-math.inf, pa.float64())],
        [(1 << 62, pa.int64()), (float(1 << 62), pa.float64()),
         (Decimal(1 << 62), pa.decimal128(38, 0))],
        [("Ada", pa.string()), ("Ada", pa.large_string()), ("Ada", pa.string_view()),
         ("Ada", pa.dictionary(pa.int32(), pa.string()))],
        [(b"Ada", pa.binary()), (b"Ada", pa.large_binary()), (b"Ada", pa.binary_view())],
        [(datetime(2026, 11, 15, tzinfo=UTC), pa.timestamp(unit, "UTC"))
         for unit in ("s", "ms", "us", "ns")],
    ],
)  # fmt: skip
def test_equal_values_of_a_family_have_one_hash(alike: list[tuple[Any, pa.DataType]]) -> None:
    assert len({one(value, kind) for value, kind in alike}) == 1


def test_other_values_and_other_families_have_others() -> None:
    cells: list[tuple[Any, pa.DataType, str]] = [
        (1, pa.int64(), "bigint"),
        (2, pa.int64(), "bigint"),
        (-1, pa.int64(), "bigint"),
        ((1 << 53) + 1, pa.int64(), "bigint"),
        (float(1 << 53), pa.float64(), "double"),
        (0.1, pa.float64(), "double"),
        (Decimal("0.1"), pa.decimal128(10, 1), "decimal(10,1)"),
        (math.nan, pa.float64(), "double"),
        (math.inf, pa.float64(), "double"),
        (True, pa.bool_(), "boolean"),
        (date(1970, 1, 2), pa.date32(), "date"),
        (datetime(1970, 1, 2), pa.timestamp("us"), "timestamp_ntz"),
        (datetime(1970, 1, 2, tzinfo=UTC), pa.timestamp("us", "UTC"), "timestamp"),
        ("1", pa.string(), "string"),
        ("", pa.string(), "string"),
        ("1", pa.string(), "variant"),
        (b"1", pa.binary(), "binary"),
        ([1], pa.list_(pa.int64()), "array<bigint>"),
        ([1, None], pa.list_(pa.int64()), "array<bigint>"),
        ({"a": 1}, pa.struct([("a", pa.int64())]), "struct<a:bigint>"),
        ([("a", 1)], pa.map_(pa.string(), pa.int64()), "map<string,bigint>"),
    ]
    assert len({one(*each) for each in cells}) == len(cells)


def test_nulls_stay_nulls_and_parts_of_arrays_are_themselves() -> None:
    texts = pa.array(["a", None, "bc", "", None, "a"])
    whole = hashes(texts)
    assert [each is None for each in whole] == [False, True, False, False, True, False]
    assert whole[0] == whole[5] != whole[3]
    assert hashes(texts.slice(1, 4)) == whole[1:5]
    numbers = pa.array([None, 7, 8, None, 7])
    assert hashes(numbers.slice(2)) == hashes(numbers)[2:]
    assert hashes(pa.nulls(3), "void") == [None] * 3
    assert hashes(pa.array([], pa.string())) == []


def test_another_key_gives_other_hashes() -> None:
    cells = pa.array(["a", "b"])
    assert not {*hashes(cells)} & {*hashes(cells, key=KEY[::-1])}
    assert "0102" not in repr(Concealing(KEY, ("text",)))
    assert repr(KEY) not in repr(Concealing(KEY, ("text",)))
