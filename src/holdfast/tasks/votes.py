"""The types of columns of text: each cell votes for one, and votes are joined.

The vote for a cell is given by :func:`holdfast.kernels.text.kind`.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

VOTES = (
    "null",
    "boolean",
    "bigint",
    "wide_bigint",
    "double",
    "date",
    "timestamp_ntz",
    "timestamp",
    "string",
)
"""What a column of text may be, in the order of the kernel's codes."""

TYPES = {
    "boolean": pa.bool_(),
    "bigint": pa.int64(),
    "double": pa.float64(),
    "date": pa.date32(),
    "timestamp_ntz": pa.timestamp("us"),
    "timestamp": pa.timestamp("us", "UTC"),
    "string": pa.string(),
}


def join(a: str, b: str) -> str:
    """The narrowest type that holds two columns' cells, each kept apart from the others.

    >>> join("bigint", "double"), join("wide_bigint", "double"), join("date", "null")
    ('double', 'string', 'date')
    """
    if a == b or b == "null":
        return a
    if a == "null":
        return b
    wider = {
        frozenset(("bigint", "wide_bigint")): "wide_bigint",
        frozenset(("bigint", "double")): "double",
        frozenset(("date", "timestamp_ntz")): "timestamp_ntz",
    }
    return wider.get(frozenset((a, b)), "string")


JOINS = np.array([[VOTES.index(join(a, b)) for b in VOTES] for a in VOTES], np.int8)


def type_name(vote: str) -> str:
    """The name of the type that a joined vote stands for; a column of nulls alone is text."""
    return {"null": "string", "wide_bigint": "bigint"}.get(vote, vote)


def arrow_type(vote: str) -> pa.DataType:
    """The Arrow type that a joined vote stands for."""
    return TYPES[type_name(vote)]


def settled(votes: Sequence[str], columns: int) -> list[str]:
    """The votes for the types of columns, of joined ones that may have second ones: a column all of
    whose cells are dates of the form that was named is one of dates.

    >>> settled(["string", "bigint", "date", "string"], 2)
    ['date', 'bigint']
    """
    own, dated = votes[:columns], votes[columns:] or ["string"] * columns
    return ["date" if form == "date" else vote for vote, form in zip(own, dated, strict=True)]


def fits(vote: str, type_: pa.DataType) -> bool:
    """Whether a type that was guessed holds all cells that voted so, each apart from the others.

    >>> fits("bigint", pa.float64()), fits("wide_bigint", pa.float64()), fits("date", pa.string())
    (True, False, True)
    """
    return any(
        type_ == kind and type_name(join(name, vote)) == name for name, kind in TYPES.items()
    )
