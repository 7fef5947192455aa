"""Which predicates a table's denial constraints are made of.

Every column is compared with itself: by order where its type is a number, a date or a timestamp, by
equality elsewhere and where values are not kept, or not at all. Two columns are compared with each
other, in two rows and in one, where they are of one family of types and share enough of their
values (IncDC, section 3). The choice is made at the first profile and stored: one that followed the
data would make a kept profile differ from a fresh one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from holdfast.input.row_input import Columns
from holdfast.kinds.denial_constraints.predicate_listing import (
    BY_EQUALITY,
    BY_ORDER,
    OFF,
    ORDERED,
    WAYS,
    WITH_ORDER,
)
from holdfast.kinds.denial_constraints.show import SPACE
from holdfast.model.commits import ValueRun
from holdfast.model.comparisons import (
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
)
from holdfast.model.errors import InputError
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.exchange import exchanged
from holdfast.table.placement import parts
from holdfast.table.placement import shares as shared
from holdfast.table.state import Table
from holdfast.tasks.values import CODES, CountValues, Overlap, RowValues, ValueColumns, cut, overlap
from holdfast.tasks.values import count as count_values

_OPERATORS = {ORDERED: ORDER, BY_EQUALITY: EQUALITY}


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


def ways(table: str, columns: Columns, choice: Choice) -> tuple[str, ...]:
    """How each column is compared with itself."""
    for name in choice.ways:
        columns.position(name, table)
    out = []
    for name, type_, kind in zip(columns.names, columns.types, _families(columns), strict=True):
        in_order = kind in BY_ORDER and not columns.concealed
        way = choice.ways.get(name, ORDERED if in_order else BY_EQUALITY)
        if way == ORDERED and columns.concealed:
            raise InputError(
                f"column {name!r} of table {table!r} has no order, because the profile keeps no "
                f"values; choose {BY_EQUALITY} or {OFF}"
            )
        if way == ORDERED and kind not in WITH_ORDER:
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


def shares(common: NDArray[np.int64]) -> dict[tuple[int, int], float]:
    """How much of their values every two columns have in common: the sum of the smaller counts over
    that of the larger ones, over all values of both. Nulls are no values.

    ``common`` has the sums of the smaller counts, on the diagonal the number of a column's values.
    A value that most rows have in a column is not counted there: two columns that are mostly 0 have
    little to do with each other.

    >>> shares(np.array([[4, 1], [1, 6]]))
    {(0, 1): 0.1111111111111111}
    """
    by_pair = {}
    for a, b in combinations(range(len(common)), 2):
        # The smaller and the larger of two counts are their sum.
        larger = int(common[a, a] + common[b, b] - common[a, b])
        by_pair[a, b] = int(common[a, b]) / larger if larger else 0.0
    return by_pair


def chosen(run: Run, table: Table) -> Space:
    """The predicates that the data of a table choose, as the options ask for."""
    options, names = run.options, table.columns.names
    cross = options.cross_columns
    choice = Choice(across=False, within=False) if cross is None else Choice(min_share=cross)
    asked = _asked(table.name, names, options.columns)
    selected = [name for name, way in asked.items() if way is None]
    off = dict.fromkeys([n for n in names if n not in asked], OFF) if selected else {}
    said = {name: way for name, way in asked.items() if way is not None}
    choice = replace(choice, ways={**off, **said})
    some = comparable(table.name, table.columns, choice)
    in_common = dict.fromkeys(some, 0.0)
    if some:
        in_common = shares(_common(run, table))
    return space(table.name, table.columns, in_common, choice)


def _asked(table: str, names: Sequence[str], columns: Sequence[str]) -> dict[str, str | None]:
    """The columns of a table that are named, perhaps after their table's name, with how they are to
    be compared; None: as their type is.

    >>> _asked("staff", ["id", "name"], ["id", "name=equality", "other.id=off"])
    {'id': None, 'name': 'equality'}
    """
    by_name: dict[str, str | None] = {}
    for each in columns:
        name, _, way = each.partition("=")
        name = name.strip().removeprefix(f"{table}.")
        if name in names:
            by_name[name] = way.strip() or None
    return by_name


def _common(run: Run, table: Table) -> NDArray[np.int64]:
    """How many values every two columns have in common; in two jobs where the rows are worth
    several tasks."""
    with run.stage("values"):
        run.progress("values")
        kinds = _families(table.columns)
        attributes = tuple(ValueColumns(c, (c,), (kind,)) for c, kind in enumerate(kinds))
        root, view = run.store.path, table.view(run.store.path, run.options)
        cells = RowValues(view, table.columns.schema, attributes, nulls=False)
        count = parts(run.runner, view)
        whole = Overlap(root, 0, CODES, len(attributes), table.rows // 2, (cells,))
        if count == 1:
            return _summed(run, [(overlap, whole)])
        writing: list[Call] = [
            (count_values, CountValues(replace(cells, view=share), run.destination.prefix))
            for share in shared(view, count)
        ]
        with exchanged(run.runner, root, writing) as written:
            runs = tuple(ValueRun((file,), 0) for mine in written for file in mine)
            whole = replace(whole, cells=(), runs=runs)
            ranges = [(cut(part, count), cut(part + 1, count)) for part in range(count)]
            return _summed(
                run, [(overlap, replace(whole, low=low, high=high)) for low, high in ranges]
            )


def _summed(run: Run, calls: list[Call]) -> NDArray[np.int64]:
    of_parts = [each.arrays["common"] for result in run.runner.run(calls) for each in result]
    common: NDArray[np.int64] = np.sum(of_parts, axis=0)
    return common


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
    return Space(SPACE, len(way), tuple(comparisons))


def _families(columns: Columns) -> list[str]:
    return [columns.family(place) for place in range(len(columns.names))]
