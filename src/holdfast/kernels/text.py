"""Lines of CSV, byte by byte: whether they are well formed, and what their cells look like.

RFC 4180 with no liberties: a cell is either bare, and then holds no quote and no line break, or
quoted as a whole, with inner quotes doubled. A line is the bytes from ``starts[i]`` to
``starts[i + 1]`` and ends with a line break.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import floats
from holdfast.kernels.arrays import I8, I64, U8
from holdfast.kernels.dates import NO_DAY, day_of, digits, is_day, number
from holdfast.kernels.jit import inlined, kernel

# What is wrong with a line.
GOOD = 0
UNCLOSED = 1  # a quote is still open at the end of the line
AFTER_QUOTE = 2  # text behind a closing quote
STRAY_QUOTE = 3  # a quote inside a bare cell
STRAY_BREAK = 4  # a line break inside a bare cell
TOO_FEW = 5
TOO_MANY = 6
NO_END = 7  # the line does not end with a line break
CELL = 8  # the cell is not of the column's form
INEXACT = 9  # the cell is a number that the column's type would change

# What a column's cells must look like, beyond what the conversion checks.
ANY = 0
DIGITS = 1  # digits with at most a minus sign
# These have no blank at either end:
DATED = 2  # not of the year 0
FLOAT_FORM = floats.FLOAT_BITS  # no number that so many bits would change
DOUBLE_FORM = floats.DOUBLE_BITS
# Negative: decimals, see decimal_form.

# What a cell looks like; a column's cells are joined by a table.
NULL = 0
BOOLEAN = 1
BIGINT = 2
WIDE_BIGINT = 3  # an integer that a double may not hold
DOUBLE = 4
DATE = 5
TIMESTAMP_NTZ = 6
TIMESTAMP = 7
STRING = 8

_ONE = np.uint64(1)
_TEN = np.uint64(10)
_LF = 10
_CR = 13
_TAB = 9
_SPACE = 32
_QUOTE = 34
_PLUS = 43
_MINUS = 45
_POINT = 46
_ZERO = 48
_NINE = 57
_COLON = 58
_UPPER_T = 84
_UPPER_Z = 90
_LOWER = 32  # the bit that turns an upper-case letter into the lower-case one
_E = 101

_DIGITS_OF_DOUBLE = 15  # decimals of so many digits are told apart by doubles
_DIGITS_OF_FLOAT = 6
_POWERS_OF_DOUBLE = 280  # with so many digits more, still inside the range where that is true
_POWERS_OF_FLOAT = 30
_LARGEST_POWER = 10**15  # no number is so long that it makes up for this
_SCALES = 64  # more than a decimal has
_SCALED_AT_ONCE = 38  # places by which PyArrow can move a point; with more it is undefined
_INT64_LIMIT = 922337203685477580  # the limit without its last digit


def decimal_form(precision: int, scale: int) -> int:
    """The form of decimals that have these places for digits, and that PyArrow can read."""
    return -(precision * _SCALES + scale)


@kernel
def _line_end(data: U8, begin: np.uint64, end: np.uint64) -> np.uint64:
    """Where the text of a line ends: before its line break."""
    if end > begin and data[end - _ONE] == _LF:
        end -= _ONE
        if end > begin and data[end - _ONE] == _CR:
            end -= _ONE
    return end


@kernel
def _cell_end(
    data: U8, at: np.uint64, end: np.uint64, delimiter: np.uint8
) -> tuple[np.uint64, int]:
    """Where the cell that begins at ``at`` ends, or what is wrong with it.

    Positions are unsigned here: without the check for negative ones the walk is faster.
    """
    if at < end and data[at] == _QUOTE:
        at += _ONE
        while True:
            while at < end and data[at] != _QUOTE:
                at += _ONE
            if at == end:
                return at, UNCLOSED
            at += _ONE
            if at == end or data[at] == delimiter:
                return at, GOOD
            if data[at] != _QUOTE:
                return at, AFTER_QUOTE
            at += _ONE
    while at < end:
        byte = data[at]
        if byte == delimiter:
            break
        if byte <= _QUOTE:  # one comparison for nearly all bytes: line breaks are lower still
            if byte == _QUOTE:
                return at, STRAY_QUOTE
            if byte in (_LF, _CR):
                return at, STRAY_BREAK
        at += _ONE
    return at, GOOD


@kernel
def cells(data: U8, begin: int, end: int, delimiter: int, ends: I64) -> int:
    """Where the cells of a line with well-formed ones end; returns how many there are."""
    at = np.uint64(begin)
    last = _line_end(data, at, np.uint64(end))
    count = 0
    while True:
        at, _ = _cell_end(data, at, last, np.uint8(delimiter))
        if count < ends.size:
            ends[count] = np.int64(at)
        count += 1
        if at == last:
            return count
        at += _ONE


@kernel
def record_starts(data: U8, starts: I64) -> int:
    """Where records begin: behind line breaks outside quotes. Returns how many were written."""
    count = 0
    quoted = False
    fresh = True
    for at in range(data.size):
        if fresh:
            starts[count] = at
            count += 1
            fresh = False
        if data[at] == _QUOTE:
            quoted = not quoted
        elif data[at] == _LF:
            fresh = not quoted
    return count


@kernel
def plain(
    data: U8,
    starts: NDArray[Any],
    delimiter: int,
    escape: int,
    nulls: U8,
    null_starts: I64,
    out: U8,
    out_starts: I64,
) -> int:
    """Rewrite lines in the form of RFC 4180; returns the number of bytes written.

    Inside quotes an escaped quote becomes a doubled one and an escaped escape a single one; a cell
    whose text is one of ``nulls`` (with their quotes doubled) becomes ``""``. Everything else is
    copied, also what is malformed. An escape of -1 is none. ``out`` has twice the room of ``data``:
    only a null of one byte grows. A "line" may be a whole file.
    """
    size = 0
    for line in range(starts.size - 1):
        out_starts[line] = size
        at = np.int64(starts[line])
        end = np.int64(starts[line + 1])
        while at < end:
            cell = size
            quoted = data[at] == _QUOTE
            if quoted:
                size, at, closed = _plain_quoted(data, at, end, escape, out, size)
            first = cell + 1 if quoted else cell
            last = size - 1
            rest = at
            while at < end and data[at] != delimiter and data[at] != _LF:
                out[size] = data[at]
                size += 1
                at += 1
            tail = 1 if at < end and data[at] == _LF and at > rest and data[at - 1] == _CR else 0
            if not quoted:
                last = size - tail
            elif not closed or at - rest != tail:
                last = -1  # malformed: to be refused as it stands
            if last > first and _among(out, first, last, nulls, null_starts):
                out[cell] = _QUOTE
                out[cell + 1] = _QUOTE
                size = cell + 2
                if tail:
                    out[size] = _CR
                    size += 1
            if at < end:
                out[size] = data[at]
                size += 1
                at += 1
    out_starts[starts.size - 1] = size
    return size


@kernel
def _plain_quoted(
    data: U8, at: int, end: int, escape: int, out: U8, size: int
) -> tuple[int, int, bool]:
    """Copy a quoted cell; returns where to write and read on, and whether the quote was closed."""
    out[size] = _QUOTE
    size += 1
    at += 1
    while at < end:
        byte = data[at]
        follows = data[at + 1] if at + 1 < end else 0
        if byte == escape and (follows == _QUOTE or follows == escape):
            if follows == _QUOTE:
                out[size] = _QUOTE
                size += 1
            out[size] = follows
            size += 1
            at += 2
        elif byte == _QUOTE and follows == _QUOTE:
            out[size] = _QUOTE
            out[size + 1] = _QUOTE
            size += 2
            at += 2
        else:
            out[size] = byte
            size += 1
            at += 1
            if byte == _QUOTE:
                return size, at, True
    return size, at, False


@kernel
def _among(data: U8, begin: int, end: int, texts: U8, starts: I64) -> bool:
    """Whether some bytes are one of several texts."""
    for i in range(starts.size - 1):
        first = starts[i]
        if starts[i + 1] - first == end - begin:
            same = True
            for k in range(end - begin):
                if data[begin + k] != texts[first + k]:
                    same = False
                    break
            if same:
                return True
    return False


@kernel
def count(data: U8, starts: NDArray[Any]) -> int:
    """How many lines have any text."""
    filled = 0
    for line in range(starts.size - 1):
        at = np.uint64(starts[line])
        if _line_end(data, at, np.uint64(starts[line + 1])) > at:
            filled += 1
    return filled


@kernel
def _bare(data: U8, begin: np.uint64, end: np.uint64) -> tuple[int, int]:
    """The bounds of a well-formed cell without its quotes."""
    quotes = 1 if begin < end and data[begin] == _QUOTE else 0
    return np.int64(begin) + quotes, np.int64(end) - quotes


@kernel
def _blank(byte: int) -> bool:
    return byte in (_SPACE, _TAB)


@inlined
def _scanned(data: U8, at: int, end: int) -> tuple[int, int, int, bool]:
    """Scan a number without its sign: where its whole digits end, where all its digits end, the
    power of ten behind them, and whether nothing follows."""
    point = digits(data, at, end)
    mantissa = point
    if point < end and data[point] == _POINT:
        mantissa = digits(data, point + 1, end)
    at = mantissa
    power = 0
    if at < end and (np.int64(data[at]) | _LOWER) == _E:
        at += 1
        negative = at < end and data[at] == _MINUS
        if at < end and (data[at] == _MINUS or data[at] == _PLUS):
            at += 1
        stop = digits(data, at, end)
        if stop == at:
            return point, mantissa, 0, False
        for i in range(at, stop):
            power = min(power * 10 + np.int64(data[i]) - _ZERO, _LARGEST_POWER)
        if negative:
            power = -power
        at = stop
    return point, mantissa, power, at == end


@kernel
def _significant(data: U8, whole: int, mantissa: int) -> tuple[int, int]:
    """Where the first and the last digit other than 0 are; -1 if all are 0."""
    first = -1
    last = -1
    for i in range(whole, mantissa):
        if data[i] != _POINT and data[i] != _ZERO:
            if first < 0:
                first = i
            last = i
    return first, last


@kernel
def _is_decimal(data: U8, begin: int, end: int, precision: int, scale: int, moved: int) -> bool:
    """Whether a text is a number that a decimal holds without losing a digit. The point of a zero
    is moved by at most so many places."""
    if data[begin] == _MINUS or data[begin] == _PLUS:
        begin += 1
    point, mantissa, power, good = _scanned(data, begin, end)
    if not good or (point == begin and mantissa <= point + 1):
        return False
    first, last = _significant(data, begin, mantissa)
    if first < 0:
        behind = max(mantissa - point - 1, 0)  # those count as digits, even of a zero
        return behind > precision or behind - power <= scale + moved
    highest = power + (point - 1 - first if first < point else point - first)
    lowest = power + (point - 1 - last if last < point else point - last)
    return highest < precision - scale and lowest >= -scale


@kernel
def all_decimals(data: U8, offsets: NDArray[Any], precision: int, scale: int) -> bool:
    """Whether all texts are numbers that a decimal holds without losing a digit."""
    for row in range(offsets.size - 1):
        begin, end = np.int64(offsets[row]), np.int64(offsets[row + 1])
        if begin == end or not _is_decimal(data, begin, end, precision, scale, _LARGEST_POWER):
            return False
    return True


@kernel
def _fits(data: U8, begin: int, end: int, form: int) -> bool:
    """Whether a cell has the form of its column; an empty one always has."""
    if begin >= end:
        return True
    if form == DIGITS:
        if data[begin] == _MINUS:
            begin += 1
        for at in range(begin, end):
            if data[at] < _ZERO or data[at] > _NINE:
                return False
        return begin < end
    if _blank(data[begin]) or _blank(data[end - 1]):
        return False
    if form < 0:
        precision, scale = divmod(-form, _SCALES)
        return _is_decimal(data, begin, end, precision, scale, _SCALED_AT_ONCE)
    if form == DATED and data[begin] == _ZERO and digits(data, begin, end) == begin + 4:
        return number(data, begin, 4) > 0
    return True


@kernel
def _boolean(data: U8, begin: int, end: int) -> int:
    word = np.int64(0)
    if end - begin == 4 or end - begin == 5:
        for at in range(begin, end):
            word = word * 256 + (np.int64(data[at]) | _LOWER)
    if word == 0x74727565 or word == 0x66616C7365:  # "true", "false"
        return BOOLEAN
    return STRING


@kernel
def _is_exact(data: U8, whole: int, point: int, mantissa: int, power: int, bits: int) -> bool:
    """Whether a floating-point number of so many bits holds a scanned number without losing a
    digit."""
    most, powers = _DIGITS_OF_FLOAT, _POWERS_OF_FLOAT
    if bits == floats.DOUBLE_BITS:
        most, powers = _DIGITS_OF_DOUBLE, _POWERS_OF_DOUBLE
    if mantissa - whole <= most and abs(power) <= powers:
        return True  # most numbers: so short that no digit needs to be looked at
    first, last = _significant(data, whole, mantissa)
    if first < 0:
        return True
    count = last - first + 1
    if first < point < last:
        count -= 1
    power += point - first - 1 if first < point else point - first
    if count <= most and abs(power) <= powers:
        return True
    if count > floats.MOST_DIGITS:
        return False
    significand = np.uint64(0)
    for i in range(first, last + 1):
        if data[i] != _POINT:
            significand = significand * _TEN + np.uint64(data[i] - _ZERO)
    return floats.fits(significand, power - count + 1, bits)


@kernel
def _inexact(data: U8, begin: int, end: int, bits: int) -> bool:
    """Whether a cell is a number, however it is written, that so many bits would change."""
    if begin < end and (data[begin] == _MINUS or data[begin] == _PLUS):
        begin += 1
    point, mantissa, power, good = _scanned(data, begin, end)
    return good and not _is_exact(data, begin, point, mantissa, power, bits)


@kernel
def any_inexact(data: U8, offsets: NDArray[Any], bits: int) -> bool:
    """Whether some texts have a number among them that so many bits would change."""
    for row in range(offsets.size - 1):
        if _inexact(data, np.int64(offsets[row]), np.int64(offsets[row + 1]), bits):
            return True
    return False


@kernel
def _numeric(data: U8, begin: int, end: int) -> int:
    whole = begin + 1 if data[begin] == _MINUS else begin
    point, mantissa, power, good = _scanned(data, whole, end)
    if not good or point == whole or mantissa == point + 1:
        return STRING
    if data[whole] == _ZERO and point - whole > 1:
        return STRING  # 007 and 7 are different texts, and may be different things
    if point == end:
        first, last = _significant(data, whole, end)
        if first < 0:
            return BIGINT if data[begin] == _ZERO else DOUBLE  # -0 is no integer of its own
        return _integer(data, whole, end, last, data[begin] == _MINUS)
    return DOUBLE if _is_exact(data, whole, point, mantissa, power, floats.DOUBLE_BITS) else STRING


@kernel
def _integer(data: U8, whole: int, end: int, last: int, negative: bool) -> int:
    """An integer without leading zeros, whose last digit other than 0 is at ``last``."""
    count = end - whole
    if count > 19:
        return STRING
    if count == 19:
        head = number(data, whole, 18)
        digit = np.int64(data[end - 1]) - _ZERO
        if head > _INT64_LIMIT or (head == _INT64_LIMIT and digit > (8 if negative else 7)):
            return STRING
    return WIDE_BIGINT if last - whole + 1 > _DIGITS_OF_DOUBLE else BIGINT


@kernel
def _dated(data: U8, begin: int, end: int) -> int:
    """YYYY-MM-DD, then perhaps a time, then perhaps a zone."""
    if (
        end - begin < 10
        or digits(data, begin, end) != begin + 4
        or digits(data, begin + 5, end) != begin + 7
        or digits(data, begin + 8, end) != begin + 10
        or data[begin + 7] != _MINUS
    ):
        return STRING
    year = number(data, begin, 4)
    if not is_day(year, number(data, begin + 5, 2), number(data, begin + 8, 2)):
        return STRING
    at = begin + 10
    if at == end:
        return DATE
    if data[at] != _SPACE and data[at] != _UPPER_T:
        return STRING
    return _timed(data, at + 1, end, 1 < year < 9999)


@kernel
def _two(data: U8, at: int, end: int, limit: int) -> bool:
    """Whether two digits that write a number below the limit stand at ``at``."""
    return digits(data, at, min(at + 2, end)) == at + 2 and number(data, at, 2) < limit


@kernel
def _timed(data: U8, at: int, end: int, movable: bool) -> int:
    """hh:mm, perhaps :ss, perhaps up to six digits of a second, perhaps a zone.

    An offset may move the first and the last year out of the calendar: those are not ``movable``.
    """
    if not _two(data, at, end, 24) or at + 2 >= end or data[at + 2] != _COLON:
        return STRING
    if not _two(data, at + 3, end, 60):
        return STRING
    at += 5
    if at < end and data[at] == _COLON:
        if not _two(data, at + 1, end, 60):
            return STRING
        at += 3
        if at < end and data[at] == _POINT:
            stop = digits(data, at + 1, end)
            if stop == at + 1 or stop > at + 7:
                return STRING
            at = stop
    if at == end:
        return TIMESTAMP_NTZ
    if data[at] == _UPPER_Z:
        return TIMESTAMP if at + 1 == end else STRING
    if (data[at] != _PLUS and data[at] != _MINUS) or not movable or not _two(data, at + 1, end, 24):
        return STRING
    at += 3
    if at == end:
        return TIMESTAMP
    if data[at] == _COLON:
        at += 1
    return TIMESTAMP if _two(data, at, end, 60) and at + 2 == end else STRING


@kernel
def kind(data: U8, begin: int, end: int) -> int:
    """What a cell without its quotes looks like."""
    if begin >= end:
        return NULL
    first = data[begin]
    if first == _MINUS or (first >= _ZERO and first <= _NINE):
        if end - begin >= 10 and data[begin + 4] == _MINUS:
            return _dated(data, begin, end)
        return _numeric(data, begin, end)
    return _boolean(data, begin, end)


@kernel
def check(
    data: U8,
    starts: NDArray[Any],
    delimiter: int,
    forms: I64,
    table: I8,
    votes: I8,
    dates: I64,
    iso: bool,
) -> tuple[int, int, int]:
    """The first bad line, what is wrong with it, and its column; (-1, GOOD, -1) if there is none.

    Lines without text are passed over. Where ``votes`` has an entry per column, what the cells
    look like is joined to it by ``table``; an empty one asks for no votes. A second entry per
    column says in the same way whether the cells are ``dates`` of a form; dates of ISO 8601 are
    texts then unless ``iso``.
    """
    between = np.uint8(delimiter)
    for line in range(starts.size - 1):
        at = np.uint64(starts[line])
        stop = np.uint64(starts[line + 1])
        end = _line_end(data, at, stop)
        if end == stop and stop > at:
            return line, NO_END, -1
        if at == end:
            continue
        column = 0
        while True:
            begin = at
            at, trouble = _cell_end(data, begin, end, between)
            if trouble != GOOD:
                return line, trouble, column
            if column == forms.size:
                return line, TOO_MANY, column
            if forms[column] != ANY:
                first, last = _bare(data, begin, at)
                if not _fits(data, first, last, forms[column]):
                    return line, CELL, column
                if forms[column] >= FLOAT_FORM and _inexact(data, first, last, forms[column]):
                    return line, INEXACT, column
            if column < votes.size and votes[column] != STRING:
                first, last = _bare(data, begin, at)
                vote = kind(data, first, last)
                votes[column] = table[votes[column], STRING if vote == DATE and not iso else vote]
            if forms.size + column < votes.size and votes[forms.size + column] != STRING:
                first, last = _bare(data, begin, at)
                vote = STRING if day_of(data, first, last, dates) == NO_DAY else DATE
                if first >= last:
                    vote = NULL
                votes[forms.size + column] = table[votes[forms.size + column], vote]
            column += 1
            if at == end:
                break
            at += _ONE
        if column < forms.size:
            return line, TOO_FEW, column
    return -1, GOOD, -1
