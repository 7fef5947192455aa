"""Values that rules are written with, as cells of a column: exactly, or not at all.

A value is first what the column's words hold: an integer (for dates and times, in the unit of the
type), a double, a decimal, a text, true or false.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import Context, Decimal, Inexact
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from holdfast.kernels.arrays import I64, U64
from holdfast.model.literals import BOOLEAN, NUMBER, TEXT, plain_number
from holdfast.tasks.coding import UNITS
from holdfast.tasks.encode import words_of

_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 24 * 60 * 60
_LOW63 = 0x7FFFFFFFFFFFFFFF
_EXACT = Context(prec=1_000, traps=[Inexact])

_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_TIME = r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,9}))?)?"
_CLOCK = re.compile(_TIME, re.ASCII)
_MOMENT = re.compile(rf"({_DATE.pattern})(?:[T ]{_TIME})?(Z|[+-]\d\d:\d\d)?", re.ASCII)


class UnfitLiteral(ValueError):
    """A type does not have such a value; the text says what it has."""


def literal_type(kind: pa.DataType) -> str | None:
    """How values of a type are written in rules; None: they are not."""
    if at.is_boolean(kind):
        return BOOLEAN
    if at.is_integer(kind) or at.is_floating(kind) or at.is_decimal128(kind):
        return NUMBER
    return TEXT if is_text(kind) or _is_moment(kind) else None


def is_text(kind: pa.DataType) -> bool:
    """Whether values of a type are texts."""
    return bool(at.is_string(kind) or at.is_large_string(kind) or at.is_string_view(kind))


def whole(pattern: str) -> str:
    """The pattern of texts that match another one as a whole."""
    return rf"\A(?:{pattern})\z"


def has_bounds(kind: pa.DataType) -> bool:
    """Whether values of a type have an order that their words have."""
    return _is_moment(kind) or literal_type(kind) == NUMBER


def _is_moment(kind: pa.DataType) -> bool:
    return bool(at.is_date32(kind) or at.is_timestamp(kind) or at.is_time(kind))


def value_of(text: str, kind: pa.DataType) -> Any:
    """The value of a type that is written so, in the form of its literals.

    >>> value_of("1.5", pa.decimal128(9, 2)), value_of("1970-01-02", pa.date32())
    (Decimal('1.5'), 1)
    """
    if at.is_boolean(kind):
        return text == "true"
    if at.is_floating(kind):
        number = float(text)
        if kind == pa.float32():
            with np.errstate(over="ignore"):
                number = float(np.float32(number))
        if not np.isfinite(number):
            raise UnfitLiteral("its numbers are smaller")
        return number
    if at.is_integer(kind):
        return _integer(text, kind.bit_width)
    if at.is_decimal128(kind):
        return _decimal(text, kind)
    if at.is_date32(kind):
        return _days(text)
    if at.is_timestamp(kind):
        return _moment(text, kind)
    if at.is_time(kind):
        return _clock(text, kind)
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UnfitLiteral("its texts are Unicode") from error
    return text


def text_of(value: Any, kind: pa.DataType) -> str:
    """How a value is written: of several ways one.

    >>> text_of(0.1, pa.float64()), text_of(86_400_000_001, pa.timestamp("us", "UTC"))
    ('0.1', '1970-01-02 00:00:00.000001Z')
    """
    if at.is_boolean(kind):
        return "true" if value else "false"
    if at.is_floating(kind):
        return plain_number(str(np.float32(value)) if kind == pa.float32() else repr(value))
    if at.is_date32(kind):
        return date.fromordinal(value + _EPOCH).isoformat()
    if at.is_timestamp(kind):
        days, rest = divmod(value, _DAY * 10 ** UNITS[kind.unit])
        zone = "Z" if kind.tz else ""
        return f"{date.fromordinal(days + _EPOCH)} {_clock_text(rest, kind)}{zone}"
    if at.is_time(kind):
        return _clock_text(value, kind)
    return value if isinstance(value, str) else plain_number(str(value))


def words(values: Sequence[Any], kind: pa.DataType) -> I64:
    """The words of cells with some values, a column for each."""
    if at.is_date32(kind) or at.is_time32(kind):
        return words_of(pa.array(values, pa.int32()).view(kind))[0]
    if at.is_timestamp(kind) or at.is_time64(kind):
        return words_of(pa.array(values, pa.int64()).view(kind))[0]
    return words_of(pa.array(values, kind))[0]


def value_at(number: int, kind: pa.DataType) -> Any:
    """The value of an ordered type whose words hold an integer."""
    if at.is_boolean(kind):
        return bool(number)
    if at.is_floating(kind):
        bits = np.int64(number)
        return float((bits ^ ((bits >> 63) & np.int64(_LOW63))).view(np.float64))
    if at.is_decimal128(kind):
        sign, digits, _ = Decimal(number).as_tuple()
        return Decimal((sign, digits, -kind.scale))  # exact, whatever Python's context is
    return number


def text_at(cell: U64, kind: pa.DataType) -> str | None:
    """How the value in the words of a cell is written; None: it is not."""
    low, *high = cell.view(np.int64).tolist()
    value = value_at((high[0] << 64) + low % (1 << 64) if high else low, kind)
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return text_of(value, kind)


# Numbers


def _integer(text: str, bits: int) -> int:
    number = Decimal(text)
    if number != number.to_integral_value(context=_EXACT):
        raise UnfitLiteral("its numbers are whole")
    if not -(1 << bits - 1) <= number < 1 << bits - 1:
        raise UnfitLiteral(f"its numbers are from {-(1 << bits - 1)} to {(1 << bits - 1) - 1}")
    return int(number)


def _decimal(text: str, kind: pa.DataType) -> Decimal:
    number = Decimal(text)
    try:
        number.quantize(Decimal(1).scaleb(-kind.scale), context=_EXACT)
    except Inexact as error:
        raise UnfitLiteral(f"its numbers have {kind.scale} decimal places") from error
    if abs(number) >= Decimal(1).scaleb(kind.precision - kind.scale):
        raise UnfitLiteral(
            f"its numbers have {kind.precision - kind.scale} digits before the point"
        )
    return number


# Dates and times


def _days(text: str) -> int:
    if not _DATE.fullmatch(text):
        raise UnfitLiteral("its dates are written as '2026-11-15'")
    try:
        return date.fromisoformat(text).toordinal() - _EPOCH
    except ValueError as error:
        raise UnfitLiteral("there is no such day") from error


def _clock(text: str, kind: pa.DataType) -> int:
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise UnfitLiteral("its times are written as '08:30:00'")
    return _ticks(match.groups(), kind)


def _moment(text: str, kind: pa.DataType) -> int:
    match = _MOMENT.fullmatch(text)
    if match is None:
        raise UnfitLiteral("its times are written as '2026-11-15 08:30:00'")
    day, *clock, zone = match.groups()
    if zone and not kind.tz:
        raise UnfitLiteral("its times have no zone")
    offset = 0
    if zone and zone != "Z":
        hours, minutes = int(zone[1:3]), int(zone[4:])
        if hours > 23 or minutes > 59:
            raise UnfitLiteral("there is no such zone")
        offset = (hours * 60 + minutes) * (60 if zone[0] == "+" else -60)
    seconds = _days(day) * _DAY - offset
    if not _seconds(datetime.min) <= seconds < _seconds(datetime.max):
        raise UnfitLiteral("its times are in the years 1 to 9999")
    value: int = seconds * 10 ** UNITS[kind.unit] + _ticks(clock, kind)
    if not -(1 << 63) <= value < 1 << 63:
        raise UnfitLiteral("its times are in the years 1678 to 2261")
    return value


def _seconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1)) // timedelta(seconds=1)


def _ticks(clock: Sequence[str | None], kind: pa.DataType) -> int:
    """A time of day in the unit of a type; a day that has none begins."""
    hours, minutes, seconds = (int(part or 0) for part in clock[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise UnfitLiteral("there is no such time of day")
    places = UNITS[kind.unit]
    ticks, rest = divmod(int((clock[3] or "").ljust(9, "0")), 10 ** (9 - places))
    if rest:
        raise UnfitLiteral(f"its seconds have {places} decimal places")
    total: int = ((hours * 60 + minutes) * 60 + seconds) * 10**places + ticks
    return total


def _clock_text(ticks: int, kind: pa.DataType) -> str:
    places = UNITS[kind.unit]
    seconds, fraction = divmod(ticks, 10**places)
    minutes, second = divmod(seconds, 60)
    hour, minute = divmod(minutes, 60)
    digits = f"{fraction:0{places}}".rstrip("0") if fraction else ""
    return f"{hour:02}:{minute:02}:{second:02}" + (f".{digits}" if digits else "")
