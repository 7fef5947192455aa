"""Values and numbers as people read them."""

from __future__ import annotations

import json
from typing import Any


def plain(text: str) -> str:
    r"""Text that cannot move the cursor, break a line or reorder what follows.

    >>> plain("a\x1b[2Jb\n")
    'a\\x1b[2Jb\\n'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def value_text(value: Any) -> str:
    """A value of a row; a null differs from the text "null", and spaces at the ends are seen.

    >>> value_text(None), value_text("null"), value_text(" a"), value_text(1.5)
    ('null', "'null'", "' a'", '1.5')
    """
    if not isinstance(value, str):
        return plain(json.dumps(value, ensure_ascii=False))
    if value == "null" or value != value.strip() or not value:
        return f"'{plain(value)}'"
    return plain(value)


def count(number: int, noun: str, plural: str | None = None) -> str:
    """
    >>> count(1, "row"), count(1200, "row"), count(0, "index", "indexes")
    ('1 row', '1,200 rows', '0 indexes')
    """
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def rounded(number: float) -> str:
    """
    >>> rounded(3.47e11), rounded(61_234_567), rounded(1_234)
    ('347 billion', '61.2 million', '1,234')
    """
    for word, factor in (("billion", 10**9), ("million", 10**6)):
        if number >= factor:
            many = number / factor
            return f"{many:,.{1 if many < 100 else 0}f} {word}"
    return f"{number:,.0f}"


def share(number: float) -> str:
    """A share of a whole, with enough digits that nearly all is not shown as all, nor nearly none
    as none.

    >>> share(0.1), share(2 / 3), share(0.9999996), share(0.0)
    ('10%', '66.7%', '99.99996%', '0%')
    """
    digits = 1
    while 0 < number < 1 and digits < 12 and float(f"{number:.{digits + 2}f}") in (0, 1):
        digits += 1
    return f"{number:.{digits}%}".replace(f".{'0' * digits}%", "%")


def moment(created: str) -> str:
    """
    >>> moment("2026-11-15T08:52:11.123+00:00")
    '2026-11-15 08:52:11'
    """
    return created[:19].replace("T", " ")


def size(number: int) -> str:
    """
    >>> size(999), size(1_500_000)
    ('999 bytes', '1.5 MB')
    """
    for unit, factor in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if number >= factor:
            return f"{number / factor:,.1f} {unit}"
    return count(number, "byte")
