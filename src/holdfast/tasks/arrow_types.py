"""Arrow tables with only those types that Holdfast reads."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from holdfast.model.errors import InputError
from holdfast.tasks import leaves


def known(table: pa.Table, label: str) -> pa.Table:
    """The table without metadata, and with every type that Holdfast does not read replaced by the
    next larger one that has the same values."""
    columns = []
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = leaves.replaced(field.type, known_type)
        try:
            chunks = [as_type(chunk, kind) for chunk in column.chunks]
        except pa.ArrowException as wrong:
            raise InputError(
                f"{label}: column {field.name!r} is {field.type}, which cannot be read as {kind} "
                f"({wrong}); cast it or leave it out"
            ) from wrong
        columns.append(pa.chunked_array(chunks, kind))
    return pa.table(columns, names=table.column_names)


def known_type(kind: pa.DataType) -> pa.DataType:
    """The type as which an innermost type is read."""
    if at.is_dictionary(kind):
        return leaves.replaced(kind.value_type, known_type)
    if at.is_decimal(kind):
        # Values that need more digits are refused.
        return pa.decimal128(min(kind.precision, 38), kind.scale) if kind.scale <= 38 else kind
    if at.is_timestamp(kind) and kind.unit != "ns":
        return pa.timestamp("us", kind.tz)
    if at.is_duration(kind) and kind.unit != "ns":
        return pa.duration("us")
    return {
        pa.uint8(): pa.int16(),
        pa.uint16(): pa.int32(),
        pa.uint32(): pa.int64(),
        pa.uint64(): pa.decimal128(20, 0),
        pa.float16(): pa.float32(),
        pa.string_view(): pa.string(),
        pa.binary_view(): pa.binary(),
        pa.date64(): pa.date32(),
        pa.time32("s"): pa.time64("us"),
        pa.time32("ms"): pa.time64("us"),
    }.get(kind, kind)


def as_type(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """The array as a known type. The casts of Arrow do not take dictionaries of all types."""
    if array.type == kind:
        return array
    if at.is_dictionary(array.type):
        return as_type(array.dictionary, kind).take(array.indices)
    if at.is_list(kind) or at.is_large_list(kind):
        starts = pa.array([0], pa.int64()).cast(array.offsets.type)
        ends = pc.cumulative_sum(array.value_lengths().fill_null(0)).cast(array.offsets.type)
        parts = as_type(array.flatten(), kind.value_type)
        return type(array).from_arrays(
            pa.concat_arrays([starts, ends]), parts, kind, mask=array.is_null()
        )
    if at.is_struct(kind):
        parts = [
            as_type(part, field.type) for part, field in zip(array.flatten(), kind, strict=True)
        ]
        return pa.StructArray.from_arrays(parts, fields=list(kind), mask=array.is_null())
    return array.cast(kind)
