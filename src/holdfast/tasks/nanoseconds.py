"""Timestamps, times and durations in nanoseconds.

Neither Spark nor Python's ``datetime`` holds them. Spark carries them as the 64-bit integers that
they are, our words are these integers, and their text is written here.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as at

from holdfast.tasks import leaves

_EPOCH = datetime(1970, 1, 1)
_IN_MICROSECOND = 1_000

BOUNDS = "between 1677-09-21 and 2262-04-11 (or a duration of at most 292 years)"
"""What 64-bit nanoseconds hold."""


def is_nano(kind: pa.DataType) -> bool:
    """Whether a type counts nanoseconds.

    >>> is_nano(pa.timestamp("ns")), is_nano(pa.duration("us")), is_nano(pa.int64())
    (True, False, False)
    """
    timed = at.is_timestamp(kind) or at.is_time(kind) or at.is_duration(kind)
    return bool(timed and kind.unit == "ns")


def holds_nanos(kind: pa.DataType) -> bool:
    """Whether a type counts nanoseconds, or one inside it does."""
    return leaves.has(kind, is_nano)


def in_microseconds(kind: pa.DataType) -> pa.DataType:
    """The same type, counting microseconds.

    >>> in_microseconds(pa.timestamp("ns", "UTC"))
    TimestampType(timestamp[us, tz=UTC])
    """
    if at.is_timestamp(kind):
        return pa.timestamp("us", kind.tz)
    return pa.time64("us") if at.is_time(kind) else pa.duration("us")


def rounded_down(array: pa.Array) -> pa.Array:
    """Nanoseconds as whole microseconds, the earlier or smaller ones.

    >>> rounded_down(pa.array([1999, -1], pa.duration("ns"))).cast(pa.int64()).to_pylist()
    [1, -1]
    """
    counts = array.cast(pa.int64())
    whole = counts.fill_null(0).to_numpy() // np.int64(_IN_MICROSECOND)
    nulls = counts.is_null().to_numpy(zero_copy_only=False)
    return pa.array(whole, pa.int64(), mask=nulls).cast(in_microseconds(array.type))


def cells(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column, with a text for each that counts nanoseconds."""
    carried = leaves.replaced(column.type, lambda leaf: pa.int64() if is_nano(leaf) else leaf)
    return [_seen(value, column.type) for value in column.cast(carried).to_pylist()]


def _seen(value: Any, kind: pa.DataType) -> Any:
    if value is None:
        return None
    if at.is_struct(kind):
        return {part.name: _seen(value[part.name], part.type) for part in kind}
    if at.is_map(kind):
        return [(_seen(key, kind.key_type), _seen(item, kind.item_type)) for key, item in value]
    if at.is_nested(kind):
        return [_seen(item, kind.value_type) for item in value]
    return text(value, kind) if is_nano(kind) else value


def text(number: int, kind: pa.DataType) -> str:
    """A count of nanoseconds as people read it: microseconds as Python writes them, followed by the
    other digits if there are any.

    >>> text(1, pa.timestamp("ns")), text(3_600_000_000_000, pa.time64("ns"))
    ('1970-01-01T00:00:00.000000001', '01:00:00')
    >>> text(1_500, pa.timestamp("ns", "UTC")), text(-1, pa.duration("ns"))
    ('1970-01-01T00:00:00.000001500+00:00', '-1 day, 23:59:59.999999999')
    """
    micros, rest = divmod(number, _IN_MICROSECOND)
    span = timedelta(microseconds=micros)
    if at.is_duration(kind):
        return _with_digits(str(span), rest)
    moment = _EPOCH + span
    if at.is_time(kind):
        return _with_digits(moment.time().isoformat(), rest)
    return _with_digits(moment.isoformat(), rest) + ("+00:00" if kind.tz else "")


def _with_digits(written: str, nanos: int) -> str:
    if not nanos:
        return written
    return f"{written if '.' in written else written + '.000000'}{nanos:03d}"
