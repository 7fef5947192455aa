"""In-memory tables of other libraries as Arrow tables."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from holdfast.model.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


class InMemory(Protocol):
    """A table of pandas, Polars, Arrow or another library that hands out Arrow data."""

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any: ...


def is_table(rows: Any) -> bool:
    """Whether it is one."""
    return hasattr(rows, "__arrow_c_stream__") or _is_pandas(rows)


def as_arrow(rows: Any, label: str) -> pa.Table:
    """The rows as an Arrow table. NaN in a pandas frame is a null, as pandas means it."""
    import pyarrow as pa

    from holdfast.tasks.arrow_types import known

    if _is_pandas(rows):
        rows = _with_index(rows, label)
    try:
        if _is_pandas(rows):
            table = pa.Table.from_pandas(rows, preserve_index=False)
        else:
            table = pa.table(rows)
    except (pa.ArrowException, TypeError, ValueError) as wrong:
        kind = type(rows)
        name = f"{kind.__module__.partition('.')[0]}.{kind.__name__}"
        raise InputError(
            f"{label}: this {name} cannot be read as a table ({wrong}); give each column one type "
            "that Arrow has, and each a name of its own"
        ) from wrong
    return known(table, label)


def _is_pandas(rows: Any) -> bool:
    kind = type(rows)
    return kind.__module__.partition(".")[0] == "pandas" and kind.__name__ == "DataFrame"


def _with_index(frame: Any, label: str) -> Any:
    """A pandas frame with its index as columns if the index has a name. An index without a name
    must only number the rows; whether any other is wanted nobody can tell."""
    index = frame.index
    if all(name is not None for name in index.names):
        try:
            return frame.reset_index()
        except ValueError as wrong:  # there is a column of that name
            raise InputError(
                f"{label}: the index has a name and becomes a column, but {wrong}; rename one of "
                "them, or leave the index out with df.reset_index(drop=True)"
            ) from wrong
    if _counts_rows(index):
        return frame
    raise InputError(
        f"{label}: the index of this pandas frame has no name and is not 0, 1, 2, …; leave it out "
        "with df.reset_index(drop=True), or make it a column with df.rename_axis('name')"
    )


def _counts_rows(index: Any) -> bool:
    if len(index) == 0:
        return True
    return (
        index.nlevels == 1 and index.dtype.kind in "iu" and bool((index == range(len(index))).all())
    )
