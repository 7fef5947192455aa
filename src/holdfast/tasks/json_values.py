"""Texts of JSON as values of a type: exactly, or not at all."""

from __future__ import annotations

import base64
import binascii

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at

from holdfast.kernels import json_records as kernels
from holdfast.kernels.arrays import I8
from holdfast.tasks.encode import UnsupportedType
from holdfast.tasks.texts import NAMES, decimals, exactly, in_calendar, inexact, type_label

_ZONE = r"[T ].*(Z|[+-]\d\d(:?\d\d)?)$"


class Unfit(Exception):
    """A value is not of its type; says what was expected."""

    node = 0  # where it stands


def check_types(schema: pa.Schema) -> None:
    """Raise UnsupportedType for a column whose type is not read from JSON."""
    for field in schema:
        shape_of(field)


def shape_of(field: pa.Field) -> int:
    """The shape of a node whose values have this type."""
    type_ = field.type
    if at.is_string(type_):
        return kernels.TEXT
    if at.is_struct(type_) and type_.num_fields:
        check_types(pa.schema(list(type_)))
        return kernels.RECORD
    if at.is_map(type_):
        check_types(pa.schema([type_.key_field, type_.item_field]))
        if not at.is_nested(type_.key_type):
            return kernels.MAP
    if at.is_list(type_):
        check_types(pa.schema([type_.value_field]))
        return kernels.LIST
    if at.is_decimal128(type_) or at.is_binary(type_) or type_ in NAMES:
        return kernels.LEAF
    raise UnsupportedType(field.name, type_)


def expected_name(type_: pa.DataType | None) -> str:
    if type_ is None or at.is_struct(type_) or at.is_map(type_):
        return "a record in braces"
    return "a list" if at.is_list(type_) else type_label(type_)


def converted(type_: pa.DataType, form: I8, texts: pa.Array) -> pa.Array:
    """Texts as values of a type. One that does not fit, or would change, is ``Unfit``."""
    if at.is_string(type_):
        return texts
    if not _written_as(type_, form, texts):
        raise Unfit(expected_name(type_))
    try:
        if at.is_floating(type_):
            if inexact(texts, type_):
                raise Unfit(exactly(type_))
            return texts.cast(type_)
        if at.is_decimal(type_):
            return decimals(texts, type_)
        if at.is_boolean(type_):
            return pc.equal(texts, "true")
        if at.is_binary(type_):
            values = [text and base64.b64decode(text, validate=True) for text in texts.to_pylist()]
            return pa.array(values, type_)
        values = _timestamps(type_, texts) if at.is_timestamp(type_) else texts.cast(type_)
        if (at.is_timestamp(type_) or at.is_date32(type_)) and not in_calendar(values):
            raise Unfit(expected_name(type_))
    except (pa.ArrowInvalid, binascii.Error):
        raise Unfit(expected_name(type_)) from None
    return values


def _written_as(type_: pa.DataType, form: I8, texts: pa.Array) -> bool:
    """Whether values are written as a type asks: numbers without quotes, times with. Decimals may
    be quoted, and so may what is no number in JSON, such as NaN."""
    quoted = (form == kernels.IS_TEXT) | (form == kernels.IS_ESCAPED)
    written = form > kernels.IS_NULL
    if at.is_boolean(type_):
        return bool((form[written] == kernels.IS_WORD).all())
    if at.is_integer(type_):
        return bool((form[written] == kernels.IS_NUMBER).all())
    if at.is_decimal(type_):
        return bool((quoted | (form == kernels.IS_NUMBER))[written].all())
    if at.is_floating(type_):
        other = texts.filter(pa.array(quoted))
        words = pc.match_substring_regex(other, r"^(?i)([+-]?(inf|infinity)|nan)$")
        return not (form == kernels.IS_WORD).any() and pc.all(words).as_py() is not False
    return bool(quoted[written].all())


def _timestamps(type_: pa.DataType, texts: pa.Array) -> pa.Array:
    """Texts as timestamps; where the type has a zone, those without one are in UTC."""
    local_type = pa.timestamp(type_.unit)
    if type_.tz is None:
        return texts.cast(local_type)
    has_zone = pc.match_substring_regex(texts, _ZONE)
    nothing = pa.scalar(None, pa.string())
    zoned = pc.if_else(has_zone, texts, nothing).cast(type_)
    local = pc.if_else(has_zone, nothing, texts).cast(local_type)
    return pc.coalesce(zoned, pc.assume_timezone(local, "UTC").cast(type_))
