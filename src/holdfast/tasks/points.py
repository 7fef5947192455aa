"""A sample of rows as numbers, to plot two columns against each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from holdfast.runtime.result import TaskResult
from holdfast.tasks.segments import Segment, live_positions, read_raw
from holdfast.tasks.view import View

NUMBER, DATE, TIME = "number", "date", "time"
"""What a number stands for; those of dates and times are milliseconds since 1970."""


@dataclass(frozen=True)
class SomeRows:
    """At most so many living rows, evenly distributed over the table, in some columns."""

    view: View
    columns: tuple[int, ...]
    most: int


def scale(kind: pa.DataType) -> str | None:
    """What the numbers of a column stand for; None if it cannot be plotted."""
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return NUMBER
    if pa.types.is_date(kind):
        return DATE
    return TIME if pa.types.is_timestamp(kind) else None


def points(item: SomeRows) -> Iterator[TaskResult]:
    """An array for each column, of the same rows, with NaN for nulls."""
    rows = item.view.live
    ranks = np.unique(((np.arange(item.most) + 0.5) * rows / item.most).astype(np.int64))
    ranks = ranks[ranks < rows]
    parts = []
    start = 0
    for segment in item.view.segments:
        of_segment = ranks[(ranks >= start) & (ranks < start + segment.live)] - start
        start += segment.live
        if of_segment.size and segment.raw is not None:
            positions = _positions(item.view, segment, of_segment)
            table = read_raw(item.view.path, segment, positions)
            parts.append([_numbers(table.column(column)) for column in item.columns])
    empty = np.empty(0, np.float64)
    arrays = {
        str(column): np.concatenate([empty, *(part[place] for part in parts)])
        for place, column in enumerate(item.columns)
    }
    yield TaskResult({"rows": rows}, arrays)


def _positions(view: View, segment: Segment, ranks: NDArray[np.int64]) -> NDArray[np.int64]:
    """The positions of the living rows of these ranks."""
    return ranks if segment.dead is None else live_positions(view.path, segment)[ranks]


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    kind = column.type
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        unit = pa.timestamp("ms", getattr(kind, "tz", None))
        column = pc.cast(column, unit, safe=False).cast(pa.int64())
    values = pc.cast(column, pa.float64(), safe=False).to_pylist()
    # Through a list, because to_numpy would import pandas, which takes longer than all the rest.
    return np.array([np.nan if value is None else value for value in values], np.float64)
