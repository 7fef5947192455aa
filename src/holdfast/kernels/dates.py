"""Dates as texts have them, in a form that is a list of codes: of bytes, and of the fields of
:mod:`holdfast.model.date_forms`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64, U8
from holdfast.kernels.jit import kernel
from holdfast.model.date_forms import BARE_DAY, BARE_MONTH, DAY, MONTH, YEAR

NO_DAY = np.iinfo(np.int64).min
"""What is no date of a form."""

_ZERO = 48
_NINE = 57
_PIVOT = 69
_EPOCH = 719_468  # days from March of the year 0, with which years of leap days begin
_DAYS_OF_ERA = 146_097  # of 400 years


@kernel
def digits(data: U8, at: int, end: int) -> int:
    """Where the digits that begin at ``at`` end."""
    while at < end and data[at] >= _ZERO and data[at] <= _NINE:
        at += 1
    return at


@kernel
def number(data: U8, at: int, count: int) -> int:
    """The number written by ``count`` digits."""
    value = 0
    for i in range(at, at + count):
        value = value * 10 + np.int64(data[i]) - _ZERO
    return value


@kernel
def is_day(year: int, month: int, day: int) -> bool:
    """Whether there is such a day, in the years from 1 on."""
    if year < 1 or month < 1 or month > 12 or day < 1:
        return False
    days = 31
    if month == 2:
        days = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        days = 30
    return day <= days


@kernel
def _days(year: int, month: int, day: int) -> int:
    """The days since 1970, in the Gregorian calendar."""
    if month <= 2:
        year -= 1
    era = year // 400
    year_of_era = year - era * 400
    day_of_year = (153 * ((month + 9) % 12) + 2) // 5 + day - 1
    day_of_era = year_of_era * 365 + year_of_era // 4 - year_of_era // 100 + day_of_year
    return era * _DAYS_OF_ERA + day_of_era - _EPOCH


@kernel
def day_of(data: U8, begin: int, end: int, form: I64) -> int:
    """The days since 1970 of a date that is written so."""
    at = np.int64(begin)
    stop = np.int64(end)
    year, month, day = 0, 0, 0
    for code in form:
        if code >= 0:
            if at >= stop or data[at] != code:
                return NO_DAY
            at += 1
            continue
        width = 4 if code == YEAR else 2
        last = digits(data, at, min(at + width, stop))
        if code == BARE_DAY or code == BARE_MONTH:
            if last == at or data[at] == _ZERO:
                return NO_DAY
        elif last != at + width:
            return NO_DAY
        value = number(data, at, last - at)
        if code == DAY or code == BARE_DAY:
            day = value
        elif code == MONTH or code == BARE_MONTH:
            month = value
        elif code == YEAR:
            year = value
        else:
            year = value + (1900 if value >= _PIVOT else 2000)
        at = last
    if at != stop or not is_day(year, month, day):
        return NO_DAY
    return _days(year, month, day)


@kernel
def days_of(data: U8, starts: NDArray[Any], form: I64, other: I64, out: I64) -> bool:
    """The days of texts that are dates of one form or the other; whether all but the empty ones
    are."""
    for row in range(starts.size - 1):
        begin, end = np.int64(starts[row]), np.int64(starts[row + 1])
        if begin == end:
            continue
        out[row] = day_of(data, begin, end, form)
        if out[row] == NO_DAY:
            out[row] = day_of(data, begin, end, other)
        if out[row] == NO_DAY:
            return False
    return True
