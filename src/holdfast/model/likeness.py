"""How alike the name of a column is to that of one that it may refer to."""

from __future__ import annotations

from difflib import SequenceMatcher

from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.names import words_of


def alike(one: Attribute, two: Attribute) -> float:
    """How alike a column's name is to the one that it may refer to: 0 to 1.

    >>> alike(Attribute("orders", "customer_id"), Attribute("customers", "id"))
    1.0
    >>> alike(Attribute("lineitem", "l_orderkey"), Attribute("orders", "o_orderkey"))
    1.0
    """
    mine, theirs = _words(one), _words(two)
    table = [_singular(word) for word in words_of(two.table)]
    whole = max(_ratio(mine, theirs), _ratio(mine, table + theirs), _ratio(mine, table) * 0.9)
    # A name such as "id" says the same of every table: it is the table's name that counts.
    if mine == theirs and len("".join(mine)) <= 3:
        return min(whole, 0.5)
    return whole


def _ratio(one: list[str], two: list[str]) -> float:
    if one == two:
        return 1.0
    return SequenceMatcher(None, "".join(one), "".join(two), autojunk=False).ratio() ** 2


def _words(attribute: Attribute) -> list[str]:
    """The words of a column's name, without a prefix that abbreviates its table's."""
    words = words_of(attribute.column)
    table = "".join(words_of(attribute.table))
    if len(words) > 1 and len(words[0]) <= 3 and _abbreviates(words[0], table):
        words = words[1:]
    return [_singular(word) for word in words]


def _abbreviates(short: str, long: str) -> bool:
    """Whether the letters occur in this order, beginning with the first."""
    rest = iter(long)
    return long.startswith(short[:1]) and all(letter in rest for letter in short)


def _singular(word: str) -> str:
    if len(word) > 3 and word.endswith("ies"):
        return word[:-3] + "y"
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
