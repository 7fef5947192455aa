"""Rows that each say what happened: the one form in which changes arrive, from whatever feed.

A change row has the columns of its table; a column that says what happened to the row; and perhaps
columns whose values give the order of the changes. What happened is a :data:`CHANGE_TYPES`, in
Spark's words or in others that are given:

    insert            the row came
    delete            the row went
    update_preimage   the row went, because it was updated: it is as it was before
    update_postimage  the row came, because it was updated: it is as it is now

With a row key the last change of each key counts, and before images may be left out. Without one
the rows that came and went are added up, so every update needs both of its images.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from holdfast.input.sources import Source
from holdfast.model.errors import InputError
from holdfast.tasks.change_segments import DELETE as DELETE
from holdfast.tasks.change_segments import INSERT as INSERT
from holdfast.tasks.change_segments import POSTIMAGE as POSTIMAGE
from holdfast.tasks.change_segments import PREIMAGE as PREIMAGE

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame

    from holdfast.input.row_input import RowInput
    from holdfast.runtime.runner import Parts, Runner

CHANGE_TYPES = {
    "insert": INSERT,
    "delete": DELETE,
    "update_preimage": PREIMAGE,
    "update_postimage": POSTIMAGE,
}
"""What happened to a row, in the words of Spark, Delta and Databricks."""

USUAL = {
    **CHANGE_TYPES,
    "INSERT": INSERT,
    "DELETE": DELETE,
    "UPDATE_BEFORE": PREIMAGE,
    "UPDATE_AFTER": POSTIMAGE,
}
"""The same with Iceberg's words: what is understood unless others are given."""

CHANGE_TYPE = "_change_type"
"""The column that says what happened, unless another is given."""

SPOKEN = {**CHANGE_TYPES, "update": POSTIMAGE, "before": PREIMAGE, "after": POSTIMAGE}
"""What happened to a row, in the words of options: of most feeds an update has one row, the new
one."""

ORDERS = ("_commit_version", "_change_ordinal")
"""Columns that give the order of changes, where rows have them: of Spark and Delta, of Iceberg."""

METADATA = (*ORDERS, "_commit_timestamp", "_commit_snapshot_id")
"""Columns about a change that belong to no table; those that a table does not have are left out."""


@dataclass(frozen=True)
class ChangeRows:
    """Rows of changes, and which of their columns say what happened, and when.

    Rows of files (several ones are read as one, in the order in which they are given) and of Arrow
    tables have an order. In other rows a key may have one change, or the two images of one
    update, unless the columns of ``order`` tell which of several was the last. Those are whole
    numbers, dates or timestamps without nulls, compared one after the other.
    Where two changes of a key have the same place in this order, what went was there before what
    came: an overwritten table has both in one version.
    """

    rows: DataFrame | pa.Table | Source | tuple[Source, ...] | Parts
    op_column: str | None = CHANGE_TYPE  # None: every row came
    ops: Mapping[str, int] = field(default_factory=lambda: dict(USUAL))  # by the column's values
    order: tuple[str, ...] = ()  # by default those of ORDERS that there are
    ignored: tuple[str, ...] = METADATA  # columns that are left out where the table lacks them
    replaces: bool = False  # all rows that were there before went: the table was truncated
    events: Mapping[str, str] | None = None
    """The rows are events of Debezium in files, and how the columns are written that no schema
    block explains; None: they are change rows."""
    given: Callable[[Runner], RowInput] | None = None
    """The same rows with all the columns that they have, where ``rows`` has only those of the
    table; only the columns count."""

    @property
    def apart(self) -> frozenset[str]:
        """Columns that say something about changes, and belong to no table."""
        told = () if self.op_column is None else (self.op_column,)
        return frozenset((CHANGE_TYPE, *told, *self.order, *ORDERS, *self.ignored))


def ops_of(given: Mapping[str, str | Sequence[str]]) -> dict[str, int]:
    """What the values of a column mean, as in ``{"insert": "I", "update": ["U", "M"]}``.

    >>> ops_of({"insert": "I", "delete": ["D", "X"]})
    {'I': 0, 'D': 1, 'X': 1}
    """
    ops: dict[str, int] = {}
    for name, values in given.items():
        if name not in SPOKEN:
            raise InputError(
                f"what happened to a row cannot be {name!r}; expected one of {', '.join(SPOKEN)}"
            )
        for value in (values,) if isinstance(values, str) else values:
            if ops.setdefault(value, SPOKEN[name]) != SPOKEN[name]:
                raise InputError(f"the operation {value!r} has two meanings; give it one")
    return ops
