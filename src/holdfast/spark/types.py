"""Spark's types as Arrow's, and columns that one of them cannot carry as something it can."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import Column
from pyspark.sql import functions as f
from pyspark.sql import types as t

from holdfast.input.type_names import beyond_spark
from holdfast.model.errors import SchemaError
from holdfast.tasks import leaves

_PLAIN: dict[type[t.DataType], pa.DataType] = {
    t.BooleanType: pa.bool_(),
    t.ByteType: pa.int8(),
    t.ShortType: pa.int16(),
    t.IntegerType: pa.int32(),
    t.LongType: pa.int64(),
    t.FloatType: pa.float32(),
    t.DoubleType: pa.float64(),
    t.BinaryType: pa.binary(),
    t.DateType: pa.date32(),
    t.TimestampType: pa.timestamp("us", tz="UTC"),
    t.TimestampNTZType: pa.timestamp("us"),
    t.DayTimeIntervalType: pa.duration("us"),
    t.NullType: pa.null(),
}


def arrow_type(column: str, kind: t.DataType) -> pa.DataType:
    """The Arrow type that stores a column of this type.

    Variants and year-month or calendar intervals are stored as text: see :func:`carried`.
    """
    if type(kind) in _PLAIN:
        return _PLAIN[type(kind)]
    if isinstance(kind, t.StringType) or _as_text(kind):
        return pa.string()
    if isinstance(kind, t.DecimalType):
        return pa.decimal128(kind.precision, kind.scale)
    if isinstance(kind, t.ArrayType):
        return pa.list_(arrow_type(column, kind.elementType))
    if isinstance(kind, t.MapType):
        return pa.map_(arrow_type(column, kind.keyType), arrow_type(column, kind.valueType))
    if isinstance(kind, t.StructType):
        return pa.struct([(field.name, arrow_type(column, field.dataType)) for field in kind])
    if isinstance(kind, t.UserDefinedType):
        return arrow_type(column, type(kind).sqlType())
    if type(kind).__name__ == "TimeType":  # newer than our oldest PySpark
        return pa.time64("ns")
    raise SchemaError(
        f"column {column!r} has the type {kind.simpleString()}, which cannot be compared; "
        "cast it or leave it out"
    )


def through_spark(schema: pa.Schema) -> pa.Schema:
    """Columns as Spark carries them without a loss: what it cannot hold as integers."""

    def change(leaf: pa.DataType) -> pa.DataType:
        if not beyond_spark(leaf):
            return leaf
        return pa.int32() if leaf.bit_width == 32 else pa.int64()

    return pa.schema([field.with_type(leaves.replaced(field.type, change)) for field in schema])


def carried(column: Column, kind: t.DataType) -> Column:
    """A column as it travels to our tasks, with text for the types that have no other form.

    Intervals have a text of their own each; variants compare by their JSON.
    """
    if not _holds_text(kind):
        return column
    if isinstance(kind, t.VariantType):
        return f.to_json(column, {"timeZone": "UTC"})
    if isinstance(kind, t.ArrayType):
        return f.transform(column, lambda element: carried(element, kind.elementType))
    if isinstance(kind, t.MapType):
        column = f.transform_keys(column, lambda key, _: carried(key, kind.keyType))
        return f.transform_values(column, lambda _, value: carried(value, kind.valueType))
    if isinstance(kind, t.StructType):
        parts = [carried(column[x.name], x.dataType).alias(x.name) for x in kind.fields]
        return f.when(column.isNotNull(), f.struct(*parts))
    return column.cast("string")


def _as_text(kind: t.DataType) -> bool:
    return isinstance(kind, t.VariantType | t.YearMonthIntervalType | t.CalendarIntervalType)


def _holds_text(kind: t.DataType) -> bool:
    """Whether a part of this type, at any depth, travels as text."""
    if isinstance(kind, t.ArrayType):
        return _holds_text(kind.elementType)
    if isinstance(kind, t.MapType):
        return _holds_text(kind.keyType) or _holds_text(kind.valueType)
    if isinstance(kind, t.StructType):
        return any(_holds_text(field.dataType) for field in kind.fields)
    return _as_text(kind)
