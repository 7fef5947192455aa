"""How much a column is that of an identifier, by its name and its type."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.model.names import words_of

_IDENTIFIERS = (
    "id",
    "ids",
    "key",
    "uuid",
    "guid",
    "pk",
    "no",
    "nr",
    "num",
    "number",
    "code",
    "sku",
)
_ENDINGS = ("key", "number", "uuid", "guid", "code")
_PROSE = (
    "comment", "note", "description", "text", "remark", "message", "address", "title", "body",
)  # fmt: skip


def of_type(column: str, type_: str) -> float:
    """How much a type, and a name that says the same, is that of an identifier."""
    if any(word in _PROSE for word in words_of(column)):
        return 0.1
    if type_ in ("tinyint", "smallint", "int", "bigint"):
        return 1.0
    if type_.startswith("decimal"):
        return 1.0 if type_.endswith(",0)") else 0.1
    if type_ == "string":
        return 0.7
    if type_.startswith(("date", "timestamp")):
        return 0.3
    return 0.1


def of_name(column: str, table: str) -> float:
    """How much a name is that of an identifier."""
    words = words_of(column)
    last = words[-1] if words else ""
    if last in _IDENTIFIERS or last.endswith(_ENDINGS):
        return 1.0
    return 0.7 if last and last.rstrip("s") == table.lower().rstrip("s") else 0.0


def of_set(places: Sequence[int], names: Sequence[str], types: Sequence[str], table: str) -> float:
    """How much columns together, by their places in a table, are those of an identifier."""
    parts = (
        [of_type(names[p], types[p]) for p in places],
        [of_name(names[p], table) for p in places],
    )
    early = [1 - p / len(names) for p in places]
    return 4 * min(parts[0]) + (4 * sum(parts[1]) + sum(early)) / len(places)
