"""Arrays of text: their bytes, and the values of a type that they write, exactly or not at all."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Context, Decimal, Inexact, InvalidOperation
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as at
from numpy.typing import NDArray

from holdfast.kernels import dates
from holdfast.kernels import text as kernels
from holdfast.kernels.arrays import I64
from holdfast.model.date_forms import ISO, DateForm
from holdfast.tasks.votes import TYPES

NAMES = {
    pa.int8(): "tinyint",
    pa.int16(): "smallint",
    pa.int32(): "int",
    pa.float32(): "float",
    **{type_: name for name, type_ in TYPES.items()},
    pa.timestamp("ns"): "timestamp_ntz(9)",
    pa.timestamp("ns", "UTC"): "timestamp(9)",
}
FLOATS = {pa.float32(): kernels.FLOAT_FORM, pa.float64(): kernels.DOUBLE_FORM}
_DECIMAL_DIGITS = 38
_EXACT = Context(prec=_DECIMAL_DIGITS, traps=[Inexact, InvalidOperation])
_DAYS = tuple(pa.scalar(edge, pa.date32()).value for edge in (date.min, date.max))
_INSTANTS = tuple(
    pa.scalar(edge, pa.timestamp("us")).value for edge in (datetime.min, datetime.max)
)


def bytes_of(texts: pa.Array) -> tuple[pa.Buffer, NDArray[Any]]:
    """The bytes of texts, and where each begins; the last start is the end."""
    large = at.is_large_string(texts.type) or at.is_large_binary(texts.type)
    if not (large or at.is_string(texts.type) or at.is_binary(texts.type)):
        raise ValueError(f"lines are text, not {texts.type}")
    _, offsets, buffer = texts.buffers()
    if len(texts) == 0 or buffer is None:
        return pa.py_buffer(b""), np.zeros(1, np.int64)
    starts = np.frombuffer(offsets, np.int64 if large else np.int32)
    own: NDArray[Any] = starts[texts.offset : texts.offset + len(texts) + 1]
    return buffer, own


def type_label(type_: pa.DataType) -> str:
    if at.is_decimal(type_):
        return f"decimal({type_.precision},{type_.scale})"
    if at.is_string(type_):
        return "text in UTF-8"
    return NAMES.get(type_, str(type_))


def exactly(type_: pa.DataType) -> str:
    """What is expected where a floating-point type would change a number."""
    return f"a number that a {type_label(type_)} holds without losing a digit"


def inexact(texts: pa.Array, type_: pa.DataType) -> bool:
    """Whether there is a number among the texts that a floating-point type would change.

    >>> inexact(pa.array(["0.30000000000000004", "1e22", "NaN"]), pa.float64())
    False
    >>> inexact(pa.array(["0.30000000000000005"]), pa.float64())
    True
    """
    buffer, starts = bytes_of(texts.drop_null())
    data = np.frombuffer(buffer, np.uint8)
    return bool(kernels.any_inexact(data, starts, FLOATS[type_]))


def decimals(texts: pa.Array | pa.ChunkedArray, type_: pa.DataType) -> pa.Array | pa.ChunkedArray:
    """Texts as decimals; ArrowInvalid if one is no number, or would lose a digit. PyArrow does not
    notice when its 128 bits overflow, so numbers that come near that are converted one by one.

    >>> decimals(pa.array(["1.50", "2e1"]), pa.decimal128(3, 1)).to_pylist()
    [Decimal('1.5'), Decimal('20.0')]
    """
    chunks = texts.chunks if isinstance(texts, pa.ChunkedArray) else [texts]
    for buffer, starts in (bytes_of(chunk.drop_null()) for chunk in chunks):
        data = np.frombuffer(buffer, np.uint8)
        if not kernels.all_decimals(data, starts, type_.precision, type_.scale):
            raise pa.ArrowInvalid("a text that is no such decimal")
    most = [
        pc.max(pc.binary_length(pc.replace_substring_regex(texts, beside, ""))).as_py() or 0
        for beside in (r"^[+-]?0*|\..*$", r"^[+-]?0*|\.")
    ]
    powers = pc.any(pc.match_substring(texts, "e", ignore_case=True)).as_py()
    if not powers and most[0] + type_.scale <= _DECIMAL_DIGITS >= most[1]:
        return texts.cast(type_)
    unit = Decimal(1).scaleb(-type_.scale)
    values = [
        None if text is None else _EXACT.create_decimal(text).quantize(unit, context=_EXACT)
        for text in texts.to_pylist()
    ]
    return pa.array(values, type_)


def dated(texts: pa.Array, form: DateForm) -> pa.Array:
    """Texts as dates, of a form or of ISO 8601; ArrowInvalid if one is none.

    >>> dated(pa.array(["01/02/2024", "2024-02-01"]), DateForm("%d/%m/%Y")).to_pylist()
    [datetime.date(2024, 2, 1), datetime.date(2024, 2, 1)]
    """
    buffer, starts = bytes_of(texts)
    days = np.zeros(len(texts), np.int64)
    other = codes_of(ISO if form.has_iso else form)
    if not dates.days_of(np.frombuffer(buffer, np.uint8), starts, codes_of(form), other, days):
        raise pa.ArrowInvalid("a text that is no such date")
    nulls = texts.is_null().to_numpy(zero_copy_only=False)
    return pa.array(days.astype(np.int32), pa.int32(), mask=nulls).view(pa.date32())


def codes_of(form: DateForm) -> I64:
    """A form as kernels take it."""
    return np.array(form.codes, np.int64)


def in_calendar(column: pa.Array) -> bool:
    """Whether all dates, or instants as dates in UTC, are in the years 1 to 9999, which other
    programs can show. Instants in nanoseconds always are."""
    if at.is_timestamp(column.type) and column.type.unit == "ns":
        return True
    least, most = _DAYS if at.is_date32(column.type) else _INSTANTS
    edges = pc.min_max(column)
    first, last = edges["min"].value, edges["max"].value
    return first is None or (least <= first and last <= most)


def first_unfit(number: int, fits: Callable[[int, int], bool]) -> int:
    """The number of the first cell or line that does not convert, found by halving; there is one.
    ``fits`` says whether those from a first one to before a last one convert."""
    first, last = 0, number
    while last - first > 1:
        middle = (first + last) // 2
        if fits(first, middle):
            first = middle
        else:
            last = middle
    return first
