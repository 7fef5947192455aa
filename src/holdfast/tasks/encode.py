"""Rows to words: every cell becomes one or two 64-bit integers that are equal iff the values are.

A batch of n rows becomes an int64 matrix of shape (total, n): the value words column by column,
then the null-mask words, where bit c of mask word c // 64 says that column c is null. The value
words of a null are 0.

=============================================  =====  =========================================
type                                           words  order
=============================================  =====  =========================================
boolean, integers, date, time, timestamp,      1      that of the value
duration, year-month interval
float, double (float by its double value)      1      that of the value; -0.0 is 0.0, NaN is last
decimal of at most 18 digits                   1      that of the value
wider decimal                                  2      (word 1 signed, word 0 unsigned)
text, binary                                   2      none: a 128-bit hash of the bytes
month-day-nano interval                        2      none: (nanoseconds, months and days)
struct, list, map                              2      none: a 128-bit hash of the parts' words
null                                           1      all null
=============================================  =====  =========================================

Of a hash word 0 alone tells nearly all values apart, so an index over it finds few rows. Neither
word of a wide decimal or an interval does: their indexes are over both (:func:`is_wide`). Parts of
a nested value compare like columns, nulls included; the order of a map's entries does not matter.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at
from numpy.typing import NDArray

from holdfast.kernels import encode as kernels
from holdfast.kernels.arrays import I64, Flags
from holdfast.tasks import leaves

Hashing = Callable[[NDArray[Any], NDArray[Any], I64, I64], None]
"""A kernel that hashes bytes into two words, as :func:`kernels.bytes_words` does."""

_MONTH_INTERVAL = 21  # Arrow's id; PyArrow has no class for year-month intervals
_ROOM = 7  # bytes that a word read at the last byte of a row covers beyond it


class UnsupportedType(ValueError):
    """A column whose type has no words."""

    def __init__(self, column: str, type_: pa.DataType) -> None:
        super().__init__(f"column {column!r} has the type {type_}, which cannot be compared")
        self.column = column
        self.type = type_


@dataclass(frozen=True)
class RowLayout:
    """Where a column's words are: ``widths[c]`` of them from row ``offsets[c]``."""

    widths: tuple[int, ...]
    offsets: tuple[int, ...]

    @property
    def columns(self) -> int:
        """The number of columns."""
        return len(self.widths)

    @property
    def value_words(self) -> int:
        """The number of value words, and so the row of the first mask word."""
        return sum(self.widths)

    @property
    def mask_words(self) -> int:
        """The number of null-mask words."""
        return -(-self.columns // 64)

    @property
    def total(self) -> int:
        """The number of words of a row."""
        return self.value_words + self.mask_words


def layout(schema: pa.Schema) -> RowLayout:
    """How rows of this schema are laid out.

    >>> layout(pa.schema([("id", pa.int64()), ("name", pa.string())])).widths
    (1, 2)
    """
    widths = tuple(_width(field.name, field.type) for field in schema)
    return RowLayout(widths, tuple(sum(widths[:c]) for c in range(len(widths))))


def orders(type_: pa.DataType) -> bool:
    """Whether the words of a type have the order of the values."""
    return bool(
        at.is_boolean(type_)
        or (_integer(type_) and type_.id != _MONTH_INTERVAL)
        or at.is_floating(type_)
        or at.is_decimal128(type_)
    )


def is_wide(type_: pa.DataType) -> bool:
    """Whether both words of a type are needed to tell values apart, because they are no hashes.

    >>> [is_wide(kind) for kind in (pa.decimal128(38), pa.decimal128(9), pa.string())]
    [True, False, False]
    """
    if at.is_dictionary(type_):
        return is_wide(type_.value_type)
    numbers = at.is_decimal128(type_) or type_ == pa.month_day_nano_interval()
    return numbers and _width("", type_) > 1


def has_bytes(type_: pa.DataType) -> bool:
    """Whether values of a type are bytes, of which words are hashes."""
    return bool(
        at.is_string(type_)
        or at.is_binary(type_)
        or at.is_large_string(type_)
        or at.is_large_binary(type_)
        or at.is_fixed_size_binary(type_)
        or at.is_string_view(type_)
        or at.is_binary_view(type_)
    )


def encode(batch: pa.RecordBatch, layout: RowLayout) -> I64:
    """The words of a batch, as a C-contiguous matrix of shape (total, rows)."""
    widths = tuple(_width(field.name, field.type) for field in batch.schema)
    if widths != layout.widths:
        raise ValueError(f"a batch of widths {widths} does not fit the layout {layout.widths}")
    batch = readable(batch)
    words = np.zeros((layout.total, batch.num_rows), np.int64)
    with np.errstate(over="ignore"):
        for c, (offset, width) in enumerate(zip(layout.offsets, layout.widths, strict=True)):
            mask = words[layout.value_words + c // 64]
            _fill(batch.column(c), words[offset : offset + width], mask, c % 64)
    return words


def _width(column: str, type_: pa.DataType) -> int:
    """Words of a type; raises for a type that has none, at any depth."""
    if at.is_dictionary(type_):
        return _width(column, type_.value_type)
    if at.is_decimal128(type_):
        return 1 if type_.precision <= 18 else 2
    if _integer(type_) or at.is_boolean(type_) or at.is_floating(type_) or at.is_null(type_):
        if at.is_float16(type_):
            raise UnsupportedType(column, type_)
        return 1
    if has_bytes(type_) or type_ == pa.month_day_nano_interval():
        return 2
    if at.is_nested(type_) and not at.is_union(type_):
        for part in _parts(column, type_):
            _width(column, part)
        return 2
    raise UnsupportedType(column, type_)


def _integer(type_: pa.DataType) -> bool:
    return bool(
        at.is_signed_integer(type_)
        or at.is_date(type_)
        or at.is_time(type_)
        or at.is_timestamp(type_)
        or at.is_duration(type_)
        or type_.id == _MONTH_INTERVAL
    )


def _parts(column: str, type_: pa.DataType) -> list[pa.DataType]:
    if at.is_struct(type_):
        return [field.type for field in type_]
    if at.is_map(type_):
        return [type_.key_type, type_.item_type]
    if at.is_list(type_) or at.is_large_list(type_) or at.is_fixed_size_list(type_):
        return [type_.value_type]
    raise UnsupportedType(column, type_)


def readable(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with year-month intervals as integers: PyArrow has no arrays for them."""
    fields = [
        field.with_type(leaves.replaced(field.type, _readable_type)) for field in batch.schema
    ]
    schema = pa.schema(fields)
    if schema.types == batch.schema.types:
        return batch
    return pa.RecordBatch.from_struct_array(batch.to_struct_array().view(pa.struct(list(schema))))


def _readable_type(type_: pa.DataType) -> pa.DataType:
    return pa.int32() if type_.id == _MONTH_INTERVAL else type_


def _fill(array: pa.Array, words: I64, mask: I64, bit: int) -> None:
    """Write the words of one column, and its nulls into a bit of the mask."""
    if at.is_dictionary(array.type):
        array = array.dictionary_decode()
    type_ = array.type
    if at.is_boolean(type_):
        words[0] = _bits(array.buffers()[1], array.offset, len(array))
    elif _integer(type_):
        words[0] = _values(array, np.dtype(f"i{type_.bit_width // 8}"))
    elif at.is_floating(type_):
        values = _values(array, np.dtype(f"f{type_.bit_width // 8}"))
        kernels.float_words(values.astype(np.float64, copy=False).view(np.int64), words[0])
    elif at.is_decimal128(type_):
        pairs = _values(array, np.dtype(("i8", 2)))
        words[:] = pairs.T[: len(words)]
    elif at.is_interval(type_):
        pairs = _values(array, np.dtype(("i8", 2)))  # (months and days, nanoseconds)
        words[:] = pairs.T[::-1]
    elif has_bytes(type_):
        hash_bytes(array, words, kernels.bytes_words)
    elif at.is_struct(type_):
        _absorb([array.field(i) for i in range(type_.num_fields)], words)
    elif at.is_map(type_):
        starts = _starts(array)
        entries = np.zeros((2, int(starts[-1] - starts[0])), np.int64)
        _absorb([_between(array.keys, starts), _between(array.items, starts)], entries)
        kernels.map_words(starts - starts[0], entries, words)
    elif at.is_nested(type_):
        starts = _starts(array)
        parts, nulls = words_of(_between(array.values, starts))
        kernels.list_words(starts - starts[0], parts, nulls, words)
    if array.null_count:
        kernels.mark_nulls(nulls_of(array), words, mask, bit)


def hash_bytes(array: pa.Array, words: I64, hashing: Hashing) -> None:
    """Write the hashes of texts or binaries, two words each; those of nulls mean nothing."""
    type_ = array.type
    if at.is_string_view(type_) or at.is_binary_view(type_):
        array = array.cast(pa.large_binary())
        type_ = array.type
    if at.is_fixed_size_binary(type_):
        ends = np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64)
        offsets, buffer = ends * type_.byte_width, array.buffers()[1]
    else:
        large = at.is_large_string(type_) or at.is_large_binary(type_)
        _, raw, buffer = array.buffers()
        offsets = _numbers(raw, np.dtype("i8" if large else "i4"))
        offsets = offsets[array.offset : array.offset + len(array) + 1]
    data = _numbers(buffer, np.dtype("u1"))
    # A word is read at every position, also at the last byte of a row: the rows that end too
    # near the end of the buffer are hashed from a copy with room behind it.
    near = int(np.searchsorted(offsets[1:], data.size - _ROOM, side="right"))
    _hash_bytes(data, offsets[: near + 1], words[:, :near], hashing)
    if near < len(array):
        first = offsets[near]
        copy = np.append(data[first : offsets[-1]], np.zeros(_ROOM, np.uint8))
        _hash_bytes(copy, offsets[near:] - first, words[:, near:], hashing)


def _hash_bytes(data: NDArray[Any], offsets: NDArray[Any], words: I64, hashing: Hashing) -> None:
    if words.shape[1]:
        eights = np.ndarray((data.size - _ROOM,), np.uint64, data.data, strides=(1,))
        hashing(eights, offsets, words[0], words[1])


def _absorb(fields: list[pa.Array], words: I64) -> None:
    """Hash the fields of structs (or the key and value of entries), row by row."""
    for field in fields:
        kernels.absorb_field(*words_of(field), words)
    kernels.finish_struct(len(fields), words)


def words_of(array: pa.Array) -> tuple[I64, Flags]:
    """The words of a column, or of a part of nested values, and which are null."""
    words = np.zeros((_width("", array.type), len(array)), np.int64)
    mask = np.zeros(len(array), np.int64)
    _fill(array, words, mask, 0)
    return words, mask.astype(np.bool_)


def _starts(array: pa.Array) -> I64:
    """Where each list begins among the parts, and where the last one ends."""
    if at.is_fixed_size_list(array.type):
        first = np.arange(array.offset, array.offset + len(array) + 1, dtype=np.int64)
        return first * np.int64(array.type.list_size)
    if len(array) == 0:
        return np.zeros(1, np.int64)
    starts: I64 = array.offsets.to_numpy().astype(np.int64)
    return starts


def _between(parts: pa.Array, starts: I64) -> pa.Array:
    return parts.slice(int(starts[0]), int(starts[-1] - starts[0]))


def nulls_of(array: pa.Array) -> Flags:
    """Which cells of an array are null."""
    if at.is_null(array.type):
        return np.ones(len(array), np.bool_)
    return ~_bits(array.buffers()[0], array.offset, len(array))


def _bits(bitmap: pa.Buffer | None, offset: int, length: int) -> Flags:
    first = offset // 8
    packed = _numbers(bitmap, np.dtype("u1"))[first : (offset + length + 7) // 8]
    bits = np.unpackbits(packed, bitorder="little")
    return bits[offset - 8 * first : offset - 8 * first + length].view(np.bool_)


def _values(array: pa.Array, dtype: np.dtype[Any]) -> NDArray[Any]:
    values = _numbers(array.buffers()[1], dtype)
    return values[array.offset : array.offset + len(array)]


def _numbers(buffer: pa.Buffer | None, dtype: np.dtype[Any]) -> NDArray[Any]:
    """A buffer as an array of numbers, without bytes of padding that fill no number."""
    if buffer is None or buffer.size == 0:
        return np.empty((0, *dtype.shape), dtype.base)
    shape = (buffer.size // dtype.itemsize, *dtype.shape)
    return np.frombuffer(buffer, dtype.base, int(np.prod(shape))).reshape(shape)
