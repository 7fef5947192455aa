"""Forms of dates that a person names, as ``strptime`` has them: ``%d/%m/%Y``.

A form has one day, one month and one year, each with so many digits, so a day is written in one way
and different texts are different days.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import pairwise

# What is read at a place, where that is no byte of the form itself.
DAY = -1
MONTH = -2
YEAR = -3  # four digits
SHORT_YEAR = -4  # two digits: of 1969 to 2068
BARE_DAY = -5  # without a leading zero
BARE_MONTH = -6

USUAL = (
    "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%Y", "%m.%d.%Y", "%d-%m-%Y", "%m-%d-%Y",
    "%-d/%-m/%Y", "%-m/%-d/%Y", "%-d.%-m.%Y", "%d/%m/%y", "%m/%d/%y", "%d.%m.%y", "%Y/%m/%d",
)  # fmt: skip
"""Forms that dates often have."""

_FIELDS = {
    "%d": DAY,
    "%m": MONTH,
    "%Y": YEAR,
    "%y": SHORT_YEAR,
    "%-d": BARE_DAY,
    "%-m": BARE_MONTH,
}
_PARTS = (
    ("day, %d or %-d", (DAY, BARE_DAY)),
    ("month, %m or %-m", (MONTH, BARE_MONTH)),
    ("year, %Y or %y", (YEAR, SHORT_YEAR)),
)
_TOKEN = re.compile(r"%-?.|[^%]|%", re.DOTALL)
_ISO = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)


@dataclass(frozen=True)
class DateForm:
    """How dates are written; what cannot be read is a ValueError that says what was expected.

    >>> DateForm("%d.%y")
    Traceback (most recent call last):
    ValueError: the date format '%d.%y' is no such as '%d/%m/%Y': it needs one month, %m or %-m
    """

    text: str

    def __post_init__(self) -> None:
        codes = self.codes
        for name, fields in _PARTS:
            if sum(code in fields for code in codes) != 1:
                raise self._wrong(f"it needs one {name}")
        for one, other in pairwise(codes):
            if one in (BARE_DAY, BARE_MONTH) and (other < 0 or chr(other).isdigit()):
                raise self._wrong("digits follow %-d or %-m")
        if re.search(r'["\r\n\0]|\A\s|\s\Z', self.text):
            raise self._wrong("it has a quote, a line break or a blank at an end")

    @cached_property
    def codes(self) -> tuple[int, ...]:
        """What stands at each place: a byte, or a field."""
        codes: list[int] = []
        for token in _TOKEN.findall(self.text):
            if token == "%%" or not token.startswith("%"):
                codes += token[-1].encode()
            elif token in _FIELDS:
                codes.append(_FIELDS[token])
            else:
                raise self._wrong(f"{token!r} is none of {', '.join(_FIELDS)}")
        return tuple(codes)

    @property
    def has_iso(self) -> bool:
        """Whether dates of ISO 8601 are read, too: unless those of this form look like them, and
        are other days."""
        text = self.written(date(2011, 12, 10))
        return not _ISO.fullmatch(text) or text == "2011-12-10"

    def written(self, day: date) -> str:
        """A date in this form; as ISO 8601 has it where two digits tell another year."""
        if SHORT_YEAR in self.codes and not 1969 <= day.year <= 2068:
            return day.isoformat()
        fields = {
            "%d": f"{day.day:02}",
            "%m": f"{day.month:02}",
            "%Y": f"{day.year:04}",
            "%y": f"{day.year % 100:02}",
            "%-d": str(day.day),
            "%-m": str(day.month),
            "%%": "%",
        }
        return "".join(fields.get(token, token) for token in _TOKEN.findall(self.text))

    def _wrong(self, why: str) -> ValueError:
        return ValueError(f"the date format {self.text!r} is no such as '%d/%m/%Y': {why}")


ISO = DateForm("%Y-%m-%d")
"""The form of ISO 8601."""
