"""The cells of a table from the values of change events, whose forms are those of Kafka Connect.

A number with a fixed scale comes as the bytes of an integer, a time as a number of days, milli-,
micro- or nanoseconds. The schema block of a record says which. Without one an option says it, and
what is not said is refused: ``MDk=`` is 123.45 and 1.2345.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from holdfast.model.errors import InputError, SchemaError
from holdfast.tasks.json_values import Unfit
from holdfast.tasks.texts import decimals, first_unfit, in_calendar, inexact, type_label

PLAIN = "plain"
"""A value is written as in any JSON."""

BASE64 = "base64"
"""A number is the bytes of an integer, in base64; it has a scale."""

VARIABLE = "variable"
"""A number is a record of a scale and the bytes of an integer."""

DAYS, MILLIS, MICROS, NANOS = "days", "ms", "us", "ns"
"""A time is a number of these: since 1970-01-01, or since midnight."""

UNSAID = "unsaid"
"""Nobody says how a value is written: what can be read in several ways is refused."""

_TICKS = {MILLIS: 1_000_000, MICROS: 1_000, NANOS: 1}
_UNITS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
_OF_NAME = {
    "io.debezium.data.VariableScaleDecimal": VARIABLE,
    "io.debezium.time.Date": DAYS,
    "org.apache.kafka.connect.data.Date": DAYS,
    "io.debezium.time.Time": MILLIS,
    "io.debezium.time.Timestamp": MILLIS,
    "org.apache.kafka.connect.data.Time": MILLIS,
    "org.apache.kafka.connect.data.Timestamp": MILLIS,
    "io.debezium.time.MicroTime": MICROS,
    "io.debezium.time.MicroTimestamp": MICROS,
    "io.debezium.time.NanoTime": NANOS,
    "io.debezium.time.NanoTimestamp": NANOS,
}
"""How the values of a named type of Kafka Connect are written."""

_DECIMAL = "org.apache.kafka.connect.data.Decimal"

_PLAIN_TYPES: dict[str, Callable[[pa.DataType], bool]] = {
    "int": lambda kind: at.is_integer(kind) or at.is_floating(kind) or at.is_decimal(kind),
    "float": lambda kind: at.is_floating(kind) or at.is_decimal(kind),
    "double": lambda kind: at.is_floating(kind) or at.is_decimal(kind),
    "boolean": at.is_boolean,
    "string": lambda kind: at.is_string(kind) or at.is_temporal(kind),
    "bytes": at.is_binary,
    "array": at.is_list,
    "struct": at.is_struct,
    "map": at.is_map,
}
"""Which columns take the plain values of a type of Kafka Connect."""


_TARGETS = {
    "int8": pa.int8(), "int16": pa.int16(), "int32": pa.int32(), "int64": pa.int64(),
    "float": pa.float32(), "double": pa.float64(), "boolean": pa.bool_(), "string": pa.string(),
    "bytes": pa.binary(),
}  # fmt: skip
"""The types that hold the plain values of a type of Kafka Connect."""


@dataclass(frozen=True)
class Encoding:
    """How the values of a column are written."""

    kind: str = PLAIN
    scale: int = 0  # of BASE64

    @staticmethod
    def parsed(column: str, text: str) -> Encoding:
        """What an option says of a column: ``base64:2``, ``plain``, ``ms``, ``us`` or ``ns``."""
        kind, _, scale = text.partition(":")
        if kind == BASE64 and scale.isdecimal():
            return Encoding(BASE64, int(scale))
        if kind in (PLAIN, DAYS, MILLIS, MICROS, NANOS) and not scale:
            return Encoding(kind)
        raise InputError(
            f"the encoding of column {column!r} is {text!r}; expected base64:SCALE (the bytes of "
            "an integer, such as base64:2), plain, days, ms, us or ns"
        )

    @staticmethod
    def of_field(given: Mapping[str, Any], column: str, target: pa.DataType) -> Encoding:
        """What a schema block says of a column; an error if it cannot be one of this type."""
        type_, name = str(given.get("type")), given.get("name")
        if name == _DECIMAL:
            scale = int((given.get("parameters") or {}).get("scale", 0))
            encoding, fits = Encoding(BASE64, scale), _is_number(target) or at.is_string(target)
        elif name == "io.debezium.data.VariableScaleDecimal":
            encoding, fits = Encoding(VARIABLE), _is_number(target) or at.is_string(target)
        elif name in _OF_NAME:
            encoding = Encoding(_OF_NAME[name])
            fits = at.is_time(target) if name.endswith("Time") else _is_moment(target, name)
        else:
            encoding = Encoding(PLAIN)
            fits = _PLAIN_TYPES.get(type_.rstrip("0123456789"), lambda _: False)(target)
        if not fits:
            said = f"{type_} ({name})" if name else type_
            raise SchemaError(
                f"column {column!r} is {said} in the feed, but {type_label(target)} in the table"
            )
        return encoding


def target_of(given: Mapping[str, Any]) -> pa.DataType | None:
    """The type that holds all values of a field of a schema block; None: that is not known.

    >>> target_of({"type": "int64", "name": "io.debezium.time.MicroTimestamp"})
    TimestampType(timestamp[us])
    >>> target_of({"type": "int32"}), target_of({"type": "map"})
    (DataType(int32), None)
    """
    name, parameters = given.get("name"), given.get("parameters") or {}
    if name == _DECIMAL:
        scale, digits = (
            int(parameters.get(key, default))
            for key, default in (("scale", 0), ("connect.decimal.precision", 38))
        )
        return pa.decimal128(digits, scale) if 0 <= scale <= digits <= 38 else None
    encoding = _OF_NAME.get(str(name))
    if encoding == DAYS:
        return pa.date32()
    if encoding in (MILLIS, MICROS):
        return pa.time64("us") if str(name).endswith("Time") else pa.timestamp("us")
    if name == "io.debezium.time.ZonedTimestamp":
        return pa.timestamp("us", "UTC")
    return None if encoding else _TARGETS.get(str(given.get("type")))


def _is_number(kind: pa.DataType) -> bool:
    return bool(at.is_decimal128(kind) or at.is_integer(kind) or at.is_floating(kind))


def _is_moment(kind: pa.DataType, name: str) -> bool:
    if name.endswith("Date"):
        return bool(at.is_date32(kind))
    return bool(at.is_timestamp(kind) and kind.tz is None)  # one with a zone comes as text


@dataclass(frozen=True)
class Cells:
    """How the cells of some columns are read: first as JSON in types of its own, then converted."""

    names: tuple[str, ...]
    types: tuple[pa.DataType, ...]  # of the table
    encodings: tuple[Encoding, ...]
    targets: Mapping[str, pa.DataType] = field(default_factory=dict)  # that the feed itself has

    @staticmethod
    def said(
        names: Sequence[str], types: Sequence[pa.DataType], options: Mapping[str, Encoding]
    ) -> Cells:
        """Those of records without a schema block."""
        encodings = [
            options.get(name, Encoding(UNSAID if _has_forms(kind) else PLAIN))
            for name, kind in zip(names, types, strict=True)
        ]
        return Cells(tuple(names), tuple(types), tuple(encodings))

    @staticmethod
    def of_block(
        names: Sequence[str], types: Sequence[pa.DataType], block: Mapping[str, Any]
    ) -> Cells:
        """Those of records whose rows have this schema."""
        fields = {str(given.get("field")): given for given in block.get("fields", ())}
        targets = {name: target_of(given) for name, given in fields.items() if name in names}
        encodings = [
            Encoding.of_field(fields[name], name, kind) if name in fields else Encoding()
            for name, kind in zip(names, types, strict=True)
        ]
        told = {name: kind for name, kind in targets.items() if kind is not None}
        return Cells(tuple(names), tuple(types), tuple(encodings), told)

    def differ(self, column: int) -> str:
        """What is to be said of the types, where the feed has another one than the table."""
        name, kind = self.names[column], self.types[column]
        target = self.targets.get(name, kind)
        if target == kind:
            return ""
        return (
            f"; the feed has {type_label(target)} there, and the table {type_label(kind)}: "
            "--evolve takes a wider type"
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The types in which JSON is read."""
        return pa.schema(
            [
                (name, kind if encoding.kind == PLAIN else pa.string())
                for name, kind, encoding in zip(self.names, self.types, self.encodings, strict=True)
            ]
        )

    def converted(self, column: int, cells: pa.Array) -> pa.Array:
        """The cells of a column in the type of the table; raises Unfit for a value that is not of
        it, and SchemaError where it is not said how values are written."""
        encoding, kind = self.encodings[column], self.types[column]
        if encoding.kind == PLAIN:
            return cells
        try:
            return _converted(cells, encoding, kind, self.names[column])
        except (pa.ArrowException, binascii.Error, ValueError, OverflowError):
            raise Unfit(type_label(kind)) from None

    def first_unfit(self, column: int, cells: pa.Array) -> int:
        """The number of the first cell that does not convert."""

        def converts(first: int, last: int) -> bool:
            try:
                self.converted(column, cells[first:last])
            except Unfit:
                return False
            return True

        return first_unfit(len(cells), converts)


def _has_forms(kind: pa.DataType) -> bool:
    """Whether values of a type are written in several ways, which look alike."""
    return bool(
        at.is_decimal128(kind)
        or at.is_time(kind)
        or at.is_date32(kind)
        or (at.is_timestamp(kind) and kind.tz is None)
    )


def _converted(texts: pa.Array, encoding: Encoding, kind: pa.DataType, name: str) -> pa.Array:
    if texts.null_count == len(texts):
        return pa.nulls(len(texts), kind)
    if encoding.kind == UNSAID:
        encoding = _told(texts, kind, name)
    if encoding.kind in (BASE64, VARIABLE):
        return _number(pa.array(_written(texts, encoding), pa.string()), kind)
    if encoding.kind == PLAIN:
        return decimals(texts, kind) if at.is_decimal(kind) else _calendar(texts.cast(kind))
    counts = texts.cast(pa.int64())
    if encoding.kind == DAYS:
        return _calendar(counts.cast(pa.int32()).cast(pa.date32()))
    unit = _UNITS[kind.unit]
    ticks = _TICKS[encoding.kind]
    if ticks >= unit:
        counts = pc.multiply_checked(counts, ticks // unit)
    else:
        whole = pc.divide(counts, unit // ticks)
        if pc.any(pc.not_equal(pc.multiply(whole, unit // ticks), counts)).as_py():
            raise ValueError("a part of a unit")
        counts = whole
    if at.is_time32(kind):
        counts = counts.cast(pa.int32())
    return _calendar(counts.cast(kind))


def _told(texts: pa.Array, kind: pa.DataType, name: str) -> Encoding:
    """What the values themselves tell, if that is enough."""
    if at.is_decimal(kind):
        if pc.all(pc.starts_with(texts, "{")).as_py() is not False:
            return Encoding(VARIABLE)
        which = "base64:SCALE where it is the bytes of an integer, as in base64:2, or plain"
    else:
        counted = pc.match_substring_regex(texts, r"^-?\d+$")
        if not pc.any(counted).as_py():
            return Encoding(PLAIN)
        if at.is_date32(kind):
            return Encoding(DAYS)
        which = "ms, us or ns"
    raise SchemaError(
        f"column {name!r}: the records have no schema block, so it is not known how its values are "
        f"written; say it with --encoding {name}={which}"
    )


def _written(texts: pa.Array, encoding: Encoding) -> list[str | None]:
    """Numbers with a scale, written with a point."""
    if encoding.kind == BASE64:
        return [
            None if text is None else _with_point(text, encoding.scale)
            for text in texts.to_pylist()
        ]
    out: list[str | None] = []
    for text in texts.to_pylist():
        record = None if text is None else json.loads(text)
        if record is not None and not isinstance(record, dict):
            raise ValueError("no record")
        out.append(None if record is None else _with_point(record["value"], int(record["scale"])))
    return out


def _with_point(text: str, scale: int) -> str:
    """
    >>> _with_point("MDk=", 4), _with_point("/w==", 2), _with_point("fQ==", -1)
    ('1.2345', '-0.01', '1250')
    """
    number = int.from_bytes(base64.b64decode(text, validate=True), "big", signed=True)
    if scale <= 0:
        return str(number * 10**-scale)
    digits = str(abs(number)).zfill(scale + 1)
    return f"{'-' if number < 0 else ''}{digits[:-scale]}.{digits[-scale:]}"


def _number(texts: pa.Array, kind: pa.DataType) -> pa.Array:
    """Numbers that are written with a point, in the type of a column."""
    if at.is_string(kind):
        return texts
    if at.is_decimal(kind):
        return decimals(texts, kind)
    if at.is_floating(kind):
        if inexact(texts, kind):
            raise ValueError("a digit would be lost")
        return texts.cast(kind)
    if pc.any(pc.match_substring_regex(texts, r"\.\d*[1-9]")).as_py():
        raise ValueError("no integer")
    return pc.replace_substring_regex(texts, r"\.0*$", "").cast(kind)


def _calendar(values: pa.Array) -> pa.Array:
    if not at.is_time(values.type) and len(values) and not in_calendar(values):
        raise ValueError("no date")
    return values
