"""Values as rules write them: numbers, text in quotes, ``true`` and ``false``."""

from __future__ import annotations

from decimal import Decimal

NUMBER, TEXT, BOOLEAN = "number", "text", "boolean"
TYPES = (NUMBER, TEXT, BOOLEAN)
"""The types of literals."""

LONGEST = 400
"""Digits of the longest number that is written down; every double has fewer."""


def plain_number(text: str) -> str:
    """A number in its one plain decimal form.

    >>> plain_number("+1.50"), plain_number("-0.0"), plain_number("12e2"), plain_number("5e-3")
    ('1.5', '0', '1200', '0.005')
    """
    number = Decimal(text)
    if not number:
        return "0"
    plain = format(number, "f")
    return plain.rstrip("0").rstrip(".") if "." in plain else plain


def is_long(text: str) -> bool:
    """Whether a number has too many digits to be written down.

    >>> is_long("1e308"), is_long("1e999999999")
    (False, True)
    """
    number = Decimal(text)
    return len(number.as_tuple().digits) > LONGEST or abs(number.adjusted()) > LONGEST


def written(type_: str, value: str) -> str:
    """A literal as the grammar has it.

    >>> written(TEXT, "O'Neill"), written(NUMBER, "1.5")
    ("'O''Neill'", '1.5')
    """
    return "'" + value.replace("'", "''") + "'" if type_ == TEXT else value
