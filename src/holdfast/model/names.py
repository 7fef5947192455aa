"""Names of tables and columns as text has them: plain where that is clear, else in backticks."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_UNCHANGED = re.compile(r"[a-z][a-z0-9]*(_[a-z0-9]+)*")
"""Words that a name of plain letters can have as they are; two underscores are between words."""

_NAME_LENGTH = 60
"""The longest name that a constraint gets: every database takes it."""

KEYWORDS = frozenset({"and", "in", "key", "not", "null"})
"""The words of the grammar, in any case; a table or column called so goes in backticks."""


def is_keyword(word: str) -> bool:
    """
    >>> is_keyword("NOT"), is_keyword("nothing")
    (True, False)
    """
    return word.lower() in KEYWORDS


def quoted(name: str) -> str:
    """The name, in backticks where it would be unclear.

    >>> quoted("id"), quoted("first name"), quoted("a.b"), quoted("key"), quoted("`")
    ('id', '`first name`', '`a.b`', '`key`', '````')
    """
    return name if name.isidentifier() and not is_keyword(name) else backticked(name)


def backticked(name: str) -> str:
    """The name in backticks, which tell a column from a word of the grammar."""
    return "`" + name.replace("`", "``") + "`"


def listed(columns: Iterable[str]) -> str:
    """Columns with commas between them; the empty set is an answer, too.

    >>> listed(["id", "first name"]), listed([])
    ('id, `first name`', '{}')
    """
    return ", ".join(map(quoted, columns)) or "{}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The one of some names that may be meant by one which is none of them; case does not matter.

    >>> nearest("custmer", ["id", "customer"]), nearest("ID", ["id"]), nearest("x", ["id"])
    ('customer', 'id', None)
    """
    import difflib  # here, because names are mostly right

    by_folded = {name.casefold(): name for name in known}
    near = difflib.get_close_matches(name.casefold(), by_folded, 1)
    return by_folded[near[0]] if near else None


def lacking(owner: str, noun: str, name: str, known: Iterable[str]) -> str:
    """What is said where there is no such name, with the one that may be meant.

    >>> lacking("the profile", "table", "order", ["orders", "people"])
    "the profile has no table 'order'; did you mean 'orders'? It has orders, people"
    >>> lacking("table 'orders'", "column", "x", ["id"])
    "table 'orders' has no column 'x'; it has id"
    """
    known = list(known)
    near = nearest(name, known)
    has = f"{'it' if near is None else 'It'} has {', '.join(map(quoted, known)) or 'none'}"
    hint = "" if near is None else f"did you mean {near!r}? "
    return f"{owner} has no {noun} {name!r}; {hint}{has}"


def words_of(name: str) -> list[str]:
    """The words of a name, in small letters, however they are put together.

    >>> words_of("OrderLine_no"), words_of("l_orderkey")
    (['order', 'line', 'no'], ['l', 'orderkey'])
    """
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", name)
    return [word for word in re.split(r"[\W_]+", spaced.lower()) if word]


def identifier(words: Sequence[str], ending: str = "") -> str:
    """A name of plain letters for a constraint, a file or an entity, which tells those apart whose
    words differ.

    >>> identifier(["orders", "customer_id"], "fk"), identifier(["a b"]), identifier(["a_b"])
    ('orders__customer_id__fk', 'a_b__9ef6ba', 'a_b')
    """
    parts = [*words, *([ending] if ending else [])]
    whole = "__".join(parts)
    if len(whole) <= _NAME_LENGTH and all(map(_UNCHANGED.fullmatch, words)):
        return whole
    import hashlib  # here, because only exports need it

    digest = hashlib.blake2b("\0".join(words).encode("utf-8", "surrogatepass")).hexdigest()[:6]
    readable = re.sub(r"[^a-z0-9]+", "_", "_".join(words).lower()).strip("_")
    room = _NAME_LENGTH - len(digest) - len(ending) - 4
    start = readable[:room].strip("_")
    if not start or start[0].isdigit():
        start = f"c_{start}".strip("_")
    return "__".join([start, digest, *parts[len(words) :]])


def to_alter(missing: Sequence[str], added: Sequence[str], table: str = "NAME") -> str:
    """What goes on where the columns of a source changed.

    >>> to_alter(["x"], [], "orders")
    '; if it is gone for good: holdfast alter DIR --table orders --drop-column x'
    """
    alter = f"holdfast alter DIR --table {table}"
    if missing and added:
        return f"; if it got another name: {alter} --rename-column {missing[0]}={added[0]}"
    if missing:
        return f"; if it is gone for good: {alter} --drop-column {missing[0]}"
    return (
        f"; --evolve lets it join as nulls in the rows that are there, and so does {alter} "
        f"--add-column {added[0]}=TYPE"
    )
