"""Which predicates a table's denial constraints are made of.

Every column is compared with itself: by order where its type is a number, a date or a timestamp, by
equality elsewhere, or not at all. Two columns are compared with each other, in two rows and in one,
where they are of one family of types and share enough of their values (IncDC, section 3). The
choice is made at the first profile and stored: one that followed the data would make a kept profile
differ from a fresh one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.input.row_input import Columns
from holdfast.model.comparisons import (
    AGREEMENT,
    BOTH,
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
)
from holdfast.model.errors import InputError, StoreError
from holdfast.model.names import listed, quoted
from holdfast.tasks.values import family

NAME = "denial"

ORDERED, BY_EQUALITY, OFF = WAYS = ("ordered", "equality", "off")
"""How a column is compared."""

_OPERATORS = {ORDERED: ORDER, BY_EQUALITY: EQUALITY, "agreement": AGREEMENT}
_WAY = {operators: way for way, operators in _OPERATORS.items()}
_ROWS = {"ts": BOTH, "tt": FIRST, "ss": SECOND}
_WHOSE = {rows: whose for whose, rows in _ROWS.items()}

_BY_ORDER = ("number", "date", "timestamp", "timestamp without zone")
"""Families that are compared by order unless told otherwise."""

_WITH_ORDER = (*_BY_ORDER, "time", "duration", "boolean")
"""Families that can be: their codes have the order of the values. Those of others are hashes."""

Counts = tuple[NDArray[Any], NDArray[np.int64]]
"""The values of a column, as codes of one or several words, and how many rows have each."""


@dataclass(frozen=True)
class Choice:
    """What a user says of the predicates of a table."""

    ways: Mapping[str, str] = field(default_factory=dict)  # "ordered", "equality" or "off"
    across: bool = True  # whether columns are compared with each other, in two rows
    within: bool = True  # and in one
    min_share: float = 0.3  # the share of values that two such columns have in common

    def __post_init__(self) -> None:
        for column, way in self.ways.items():
            if way not in WAYS:
                raise InputError(
                    f"column {column!r} can be compared as {', '.join(WAYS[:-1])} or {WAYS[-1]}, "
                    f"not {way!r}"
                )
        if not 0 <= self.min_share <= 1:
            raise InputError(f"min_share must be a share from 0 to 1, not {self.min_share}")


# --- choosing -----------------------------------------------------------------------------


def ways(table: str, columns: Columns, choice: Choice) -> tuple[str, ...]:
    """How each column is compared with itself."""
    for name in choice.ways:
        columns.place(name, table)
    out = []
    for name, type_, kind in zip(columns.names, columns.types, _families(columns), strict=True):
        way = choice.ways.get(name, ORDERED if kind in _BY_ORDER else BY_EQUALITY)
        if way == ORDERED and kind not in _WITH_ORDER:
            raise InputError(
                f"column {name!r} of table {table!r} is of type {type_}, which has no order; "
                f"choose {BY_EQUALITY} or {OFF}"
            )
        out.append(way)
    return tuple(out)


def comparable(table: str, columns: Columns, choice: Choice) -> list[tuple[int, int]]:
    """The pairs of columns that would be compared if they share enough of their values."""
    if not (choice.across or choice.within):
        return []
    way, kind = ways(table, columns, choice), _families(columns)
    usable = [c for c in range(len(way)) if way[c] != OFF]
    return [(a, b) for a, b in combinations(usable, 2) if kind[a] == kind[b]]


def share(one: Counts, two: Counts) -> float:
    """How much of their values two columns have in common: the sum of the smaller counts over that
    of the larger ones, over all values of both. Nulls are no values.

    >>> share((np.array([1, 2]), np.array([4, 1])), (np.array([2, 5]), np.array([2, 4])))
    0.1
    """
    if not len(one[0]) or not len(two[0]):
        return 0.0
    codes = np.concatenate([codes.reshape(len(codes), -1) for codes, _ in (one, two)])
    order = np.lexsort(codes.T)
    fresh = np.ones(len(codes), np.bool_)
    fresh[1:] = (codes[order[1:]] != codes[order[:-1]]).any(axis=1)
    value = np.empty(len(codes), np.int64)
    value[order] = np.cumsum(fresh) - 1
    counts = np.zeros((2, np.count_nonzero(fresh)), np.int64)
    np.add.at(counts[0], value[: len(one[0])], one[1])
    np.add.at(counts[1], value[len(one[0]) :], two[1])
    return float(counts.min(axis=0).sum() / counts.max(axis=0).sum())


def space(
    table: str, columns: Columns, shares: Mapping[tuple[int, int], float], choice: Choice
) -> Space:
    """The predicates of a table; ``shares`` are those of the pairs that are comparable."""
    way = ways(table, columns, choice)
    comparisons = [Comparison(c, c, _OPERATORS[each]) for c, each in enumerate(way) if each != OFF]
    for a, b in comparable(table, columns, choice):
        if shares[a, b] < choice.min_share:
            continue
        operators = ORDER if way[a] == way[b] == ORDERED else EQUALITY
        if choice.across:
            comparisons += [Comparison(a, b, operators), Comparison(b, a, operators)]
        if choice.within:
            comparisons += [Comparison(a, b, operators, rows) for rows in (FIRST, SECOND)]
    return Space(NAME, len(way), tuple(comparisons))


def _families(columns: Columns) -> list[str]:
    return [
        family(name, each.type) for name, each in zip(columns.types, columns.schema, strict=True)
    ]


# --- storing ------------------------------------------------------------------------------


def to_dict(space: Space) -> dict[str, Any]:
    """The form that a commit stores."""
    comparisons = [
        {
            "left": each.left,
            "right": each.right,
            "rows": _WHOSE[each.rows],
            "compared": _WAY[each.operators],
        }
        for each in space.comparisons
    ]
    return {"name": space.name, "columns": space.columns, "comparisons": comparisons}


def from_dict(form: dict[str, Any]) -> Space:
    """The space that a commit stored."""
    comparisons = []
    for each in form["comparisons"]:
        if each["compared"] not in _OPERATORS or each["rows"] not in _ROWS:
            raise StoreError(
                f"the stored predicates have a comparison of an unknown kind, {each}; it was "
                "written by a newer version of Holdfast, or is damaged"
            )
        operators, rows = _OPERATORS[each["compared"]], _ROWS[each["rows"]]
        comparisons.append(Comparison(each["left"], each["right"], operators, rows))
    return Space(form["name"], form["columns"], tuple(comparisons))


# --- showing ------------------------------------------------------------------------------


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

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "columns": [self.left, self.right],
            "compared": self.way,
            "across_rows": self.across,
            "within_row": self.within,
        }


def columns_of(space: Space, names: Sequence[str]) -> dict[str, str]:
    """How each column is compared with itself: "ordered", "equality" or "off"."""
    found = dict.fromkeys(names, OFF)
    for each in space.comparisons:
        if each.left == each.right:
            found[names[each.left]] = _WAY[each.operators]
    return found


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
            ORDERED if any(each.operators == ORDER for each in found) else BY_EQUALITY,
            any(each.rows == BOTH for each in found),
            any(each.rows != BOTH for each in found),
        )
        for (a, b), found in sorted(rows.items())
    ]


def listing(space: Space, names: Sequence[str]) -> Iterator[str]:
    """The predicates for people, line by line: each column, then the pairs of columns."""
    width = max((len(quoted(name)) for name in names), default=0)
    for name, way in columns_of(space, names).items():
        yield f"{quoted(name):<{width}}  {way}"
    for pair in pairs_of(space, names):
        yield str(pair)
