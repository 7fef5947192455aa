"""Cells that an event does not give, because they are large and did not change: they are those of
the same row as it was before.

That is in an earlier event of the same step, or it is the stored row of the key, or, where the
key itself changed, of the former key. Change rows say which cells are to be filled in from which
stored row. What stands in the place of such a value is never kept.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64
from holdfast.model.errors import SourceError

if TYPE_CHECKING:
    from holdfast.tasks.change_events import Events
    from holdfast.tasks.event_rows import EventTable

UNAVAILABLE = "_unavailable"
"""The column with the names of the columns whose cells are those of the stored row."""

FORMER_KEY = "_former_key"
"""The column with the row key of that row, if it is another than the one that the row has now."""

_GONE = -1
_STORED = -2


def completed(
    rows: pa.Table,
    missing: NDArray[np.bool_],
    is_new: NDArray[np.bool_],
    of_event: I64,
    events: Events,
    table: EventTable,
    where: str,
) -> tuple[list[Any], list[list[str] | None], pa.Array]:
    """The columns of the rows with missing cells as far as earlier rows have them; the names of
    those that stored rows must give, and the former keys of these."""
    if not table.row_key:
        raise unavailable(table.table, rows, missing, where, "it has no row key to find it by")
    keys = list(zip(*(rows.column(name).to_pylist() for name in table.row_key), strict=True))
    others = _other_keys(events, table)
    sources = np.tile(np.arange(rows.num_rows)[:, None], (1, len(table.names)))
    latest: dict[Any, tuple[int, Any]] = {}  # of a key: its last row, or the key that it had
    removed: dict[Any, tuple[int, Any]] = {}  # of a key that changed: its last row before that
    last_delete: tuple[Any, Any] | None = None
    former: list[Any] = [None] * rows.num_rows
    left = np.zeros_like(missing)
    for row, key in enumerate(keys):
        event = int(of_event[row])
        known = latest.get(key, (_STORED, key))
        if not is_new[row]:
            if _deletes(events, event):
                if known[0] != _GONE:
                    removed[key] = known
                    last_delete = (_moment(events, event), key)
                latest[key] = (_GONE, key)
            continue
        if missing[row].any():
            former_key = others.get(event)
            moment = _moment(events, event)
            if former_key is None and moment and last_delete and last_delete[0] == moment:
                former_key = last_delete[1]
            if former_key is not None and former_key != key:
                if table.divided and former_key not in removed:
                    raise unavailable(
                        table.table, rows.slice(row, 1), missing[row : row + 1], where,
                        "its key changed, and what it was before is in another partition",
                    )  # fmt: skip
                known = removed.get(former_key, (_STORED, former_key))
            if known[0] == _GONE:
                raise unavailable(
                    table.table, rows.slice(row, 1), missing[row : row + 1], where,
                    "the row was deleted before",
                )  # fmt: skip
            if known[0] == _STORED:
                left[row], former[row] = missing[row], known[1]
            else:
                base = known[0]
                sources[row] = np.where(missing[row], sources[base], sources[row])
                left[row] = missing[row] & left[base]
                former[row] = former[base]
        latest[key] = (row, key)
    columns = [
        _taken(rows.column(column), sources[:, column], left[:, column])
        for column in range(len(table.names))
    ]
    names = np.array(table.names, dtype=object)
    cells = [names[flags].tolist() if flags.any() else None for flags in left]
    stored = [
        dict(zip(table.row_key, key, strict=True)) if key is not None and left[row].any() else None
        for row, key in enumerate(former)
    ]
    return columns, cells, pa.array(stored, pa.struct(list(table.key)))


def unavailable(
    table: str, rows: pa.Table, missing: NDArray[np.bool_], where: str, why: str
) -> SourceError:
    """The error about the first cell that nothing can fill in."""
    row, column = (int(place[0]) for place in np.nonzero(missing))
    shown = {
        name: value
        for place, (name, value) in enumerate(rows.slice(row, 1).to_pylist()[0].items())
        if not missing[row, place]
    }
    text = ", ".join(f"{name}={value!r}" for name, value in [*shown.items()][:4])
    return SourceError(
        f"{where}: table {table!r}: the value of column {rows.column_names[column]!r} did not "
        f"change and was not sent, and {why}: {text}; run ALTER TABLE {table} REPLICA IDENTITY "
        "FULL in the source, so that it sends whole rows, and give the rows as they are now as "
        "--snapshot"
    )


def _taken(cells: pa.ChunkedArray, sources: I64, left: NDArray[np.bool_]) -> pa.ChunkedArray:
    """The cells of other rows; null where nothing has one yet."""
    return cells.take(pa.array(sources, mask=left))


def _deletes(events: Events, event: int) -> bool:
    return events.ops[event].as_py() in ("d", "tombstone")


def _moment(events: Events, event: int) -> Any:
    """The transaction and the LSN of an event: those of both events of a changed key."""
    transaction, lsn = events.transaction[event].as_py(), events.lsn[event].as_py()
    return None if lsn is None else (transaction, lsn)


def _other_keys(events: Events, table: EventTable) -> dict[int, Any]:
    """The row keys that headers name, by event, as far as they can be read."""
    out = {}
    for event, text in enumerate(events.other_keys.to_pylist()):
        if text is None or events.ops[event].as_py() != "c":
            continue
        try:
            fields = json.loads(text)
            out[event] = tuple(
                pa.array([fields[name]]).cast(table.columns.field(name).type)[0].as_py()
                for name in table.row_key
            )
        except (ValueError, KeyError, TypeError, pa.ArrowException):
            continue  # the delete before it tells the key as well
    return out
