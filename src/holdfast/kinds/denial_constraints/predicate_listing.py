"""What denial constraints compare, for people: columns, and pairs of columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from holdfast.model.comparisons import BOTH, EQUALITY, ORDER, Comparison, Space
from holdfast.model.names import listed, quoted
from holdfast.model.records import JsonObject

ORDERED, BY_EQUALITY, OFF = WAYS = ("ordered", "equality", "off")
"""How a column is compared."""

BY_ORDER = ("number", "date", "timestamp", "timestamp without zone")
"""Families of types that are compared by order unless told otherwise."""

WITH_ORDER = (*BY_ORDER, "time", "duration", "boolean")
"""Families that can be: their codes have the order of the values. Those of others are hashes."""

_WAY = {ORDER: ORDERED, EQUALITY: BY_EQUALITY}


@dataclass(frozen=True)
class Predicates:
    """The comparisons of a table that were chosen at its first profile, and those that its rows
    would choose now; None: nobody asked."""

    names: tuple[str, ...]
    stored: Space
    today: Space | None = None

    @property
    def lines(self) -> list[str]:
        """What was chosen, line by line."""
        return list(listing(self.stored, self.names))

    @property
    def otherwise(self) -> list[str]:
        """What today's rows would choose and was not chosen, and the other way round."""
        if self.today is None:
            return []
        old, new = ({*listing(space, self.names)} for space in (self.stored, self.today))
        return [f"+ {line}" for line in sorted(new - old)] + [
            f"- {line}" for line in sorted(old - new)
        ]

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        form: JsonObject = {"chosen": _form(self.stored, self.names)}
        return form if self.today is None else form | {"today": _form(self.today, self.names)}


def _form(space: Space, names: Sequence[str]) -> JsonObject:
    pairs = [pair.to_dict() for pair in pairs_of(space, names)]
    return {"columns": columns_of(space, names), "pairs": pairs, "atoms": space.atoms}


@dataclass(frozen=True)
class Pair:
    """Two columns that are compared with each other."""

    left: str
    right: str
    way: str  # "ordered" or "equality"
    across: bool  # in two rows
    within: bool  # in one row

    def __str__(self) -> str:
        where = ["two rows"] * self.across + ["one row"] * self.within
        return f"{listed((self.left, self.right))}: {self.way}, in {' and in '.join(where)}"

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        return {
            "columns": [self.left, self.right],
            "compared": self.way,
            "across_rows": self.across,
            "within_row": self.within,
        }


def columns_of(space: Space, names: Sequence[str]) -> dict[str, str]:
    """How each column is compared with itself: "ordered", "equality" or "off"."""
    ways = dict.fromkeys(names, OFF)
    for each in space.comparisons:
        if each.left == each.right:
            ways[names[each.left]] = _WAY[each.operators]
    return ways


def pairs_of(space: Space, names: Sequence[str]) -> list[Pair]:
    """The columns that are compared with each other, in column order."""
    rows: dict[tuple[int, int], list[Comparison]] = {}
    for each in space.comparisons:
        if each.left != each.right:
            first, second = sorted((each.left, each.right))
            rows.setdefault((first, second), []).append(each)
    return [
        Pair(
            names[a],
            names[b],
            ORDERED if any(each.operators == ORDER for each in comparisons) else BY_EQUALITY,
            any(each.rows == BOTH for each in comparisons),
            any(each.rows != BOTH for each in comparisons),
        )
        for (a, b), comparisons in sorted(rows.items())
    ]


def listing(space: Space, names: Sequence[str]) -> Iterator[str]:
    """The predicates for people, line by line: each column, then the pairs of columns."""
    width = max((len(quoted(name)) for name in names), default=0)
    for name, way in columns_of(space, names).items():
        yield f"{quoted(name):<{width}}  {way}"
    for pair in pairs_of(space, names):
        yield str(pair)
