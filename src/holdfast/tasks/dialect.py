"""How the lines of a text file are written, where that is not plain RFC 4180 in UTF-8."""

from __future__ import annotations

import codecs
from contextlib import suppress
from dataclasses import dataclass

from holdfast.model.date_forms import DateForm

UTF_8 = "utf-8"
_ASCII = "".join(map(chr, range(128)))


@dataclass(frozen=True)
class Dialect:
    """What stands between cells, before a quote, for a null, for a character and for a date.

    Anything that cannot be read is a ValueError that says what was expected.
    """

    delimiter: str = ","
    escape: str | None = None  # inside quotes, before a quote or before itself
    encoding: str = UTF_8
    nulls: tuple[str, ...] = ()  # the cells that mean null besides the empty one
    dates: DateForm | None = None  # how dates are written, if not only as ISO 8601 has them

    def __post_init__(self) -> None:
        _expect_character("delimiter", self.delimiter)
        if self.escape is not None:
            _expect_character("escape", self.escape)
            if self.escape == self.delimiter:
                raise ValueError(f"the delimiter and the escape are the same: {self.escape!r}")

    @property
    def by_lines(self) -> bool:
        """Whether a line break can be found before the text is decoded."""
        try:
            return _ASCII.encode().decode(self.encoding) == _ASCII
        except UnicodeError:
            return False


def canonical(encoding: str) -> str:
    """The one name of an encoding; a byte order mark is dropped whatever the name says.

    >>> canonical("Latin1"), canonical("UTF-8-SIG")
    ('iso8859-1', 'utf-8')
    """
    try:
        name = codecs.lookup(encoding).name
        with suppress(UnicodeError):
            bytes(4).decode(name)  # refuses what encodes no text, such as base64
    except (LookupError, ValueError):
        raise ValueError(
            f"unknown encoding {encoding!r}; expected a name such as utf-8, latin-1, cp1252, utf-16"
        ) from None
    return UTF_8 if name == "utf-8-sig" else name


def _expect_character(role: str, given: str) -> None:
    if len(given) != 1 or not given.isascii() or given in '"\r\n\0':
        raise ValueError(
            f"the {role} must be one ASCII character other than a quote or a line break, "
            f"not {given!r}"
        )
