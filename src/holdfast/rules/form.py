"""The form of a rule: what rows are judged by, whatever kind of constraint says it.

A kind of constraint turns each of its rules into a form (:meth:`holdfast.kinds.base.Kind.form`).
"""

from __future__ import annotations

from abc import ABC
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.input.row_input import Columns
from holdfast.model.commits import unknown_table

Tables = Mapping[str, Columns]
"""The columns of all tables, by name."""


@dataclass(frozen=True)
class TupleSide:
    """Columns of a table whose tuples are counted."""

    table: str
    columns: tuple[str, ...]
    nulls: bool  # whether a null is a value; else a tuple with one is left out
    of: str | None = None  # the rule whose left side it is, of an inclusion


class RuleForm(ABC):
    """How rows are judged by one rule."""

    table: str
    """Whose rows break it."""

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """The columns whose tuples are counted for it."""
        return ()


def columns_of(table: str, tables: Tables) -> Columns:
    """The columns of a table; an unknown one is an error."""
    if table not in tables:
        raise unknown_table(table, tables)
    return tables[table]


def in_order(names: tuple[str, ...], table: str, columns: Columns) -> tuple[str, ...]:
    """Columns in table order, each once; an unknown one is an error."""
    return tuple(sorted(set(names), key=lambda name: columns.position(name, table)))
