"""Maintenance of segments: building indexes, merging segments, estimating columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kernels import index
from holdfast.kernels.arrays import I64
from holdfast.model.records import to_form
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.runtime.timed import look
from holdfast.tasks.ingest import Sketches
from holdfast.tasks.segments import (
    RawRows,
    Segment,
    build_indexes,
    live_positions,
    map_words,
    open_arrays,
    open_raw,
    write_words,
)
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Build:
    """Build these indexes where segments lack them."""

    view: View
    prefix: str
    indexes: tuple[str, ...]


@dataclass(frozen=True)
class MergeSegments:
    """Merge segments into one, without their deleted rows.

    ``ids`` are rows that something refers to; the result has their new ids.
    """

    view: View
    prefix: str
    number: int
    indexes: tuple[str, ...]
    ids: I64

    @property
    def work(self) -> int:
        """Rows that it writes."""
        return self.view.live


@dataclass(frozen=True)
class Describe:
    """Estimate the number of distinct values of every column, and how many pairs agree in it."""

    view: View


def build(item: Build) -> Iterator[TaskResult]:
    """Write the missing indexes."""
    view = item.view
    for segment in view.segments:
        look()
        words = map_words(view.path, segment).whole()
        missing = [name for name in item.indexes if name not in segment.indexes]
        built = build_indexes(view.path, item.prefix, words, view.shape, missing)
        yield TaskResult({"number": segment.number, "indexes": built})


def describe(item: Describe) -> Iterator[TaskResult]:
    """Write a sketch of every segment."""
    view = item.view
    for segment in view.segments:
        live = live_positions(view.path, segment)
        sketches = Sketches(view.shape)
        sketches.add(np.ascontiguousarray(view.rows(segment, live).T))
        yield TaskResult({"rows": live.size}, sketches.arrays)


def merge(item: MergeSegments) -> Iterator[TaskResult]:
    """Write the merged segment."""
    view = item.view
    living = [(segment, live_positions(view.path, segment)) for segment in view.segments]
    merged = written(view, living, item.prefix, item.number, item.indexes)
    where, order = [], []
    start = merged.base
    for segment, live in living:
        asked = item.ids[item.ids >> 32 == segment.number]
        where.append(np.searchsorted(live, asked - segment.base) + start)
        order.append(asked)
        start += live.size
    yield TaskResult(
        {"segment": to_form(merged)},
        {"old": np.concatenate(order), "new": np.concatenate(where).astype(np.int64)},
    )


def written(
    view: View,
    rows: Sequence[tuple[Segment, I64]],
    prefix: str,
    number: int,
    indexes: Sequence[str],
    keep_raw: bool = True,
) -> Segment:
    """A new segment of the rows at these positions, which are in order, of some others; with their
    raw rows where there are any, unless these are not kept."""
    raw: RawRows | None = None
    for segment, positions in rows:
        if segment.raw and keep_raw:
            reader = open_raw(view.path, segment)
            raw = raw or RawRows(view.path, prefix, reader.schema)
            _copy_raw(view, segment, positions, reader, raw)
    copied, sizes = (raw.seal(), raw.sizes) if raw else (None, [])
    words = np.concatenate([view.rows(segment, positions) for segment, positions in rows])
    path = write_words(view.path, unique(prefix, "words"), words, sizes)
    built = build_indexes(view.path, prefix, words, view.shape, indexes)
    return Segment(number, len(words), len(words), path, copied, None, built)


def _copy_raw(
    view: View, segment: Segment, live: I64, reader: pa.ipc.RecordBatchFileReader, raw: RawRows
) -> None:
    """Append the living raw rows."""
    sizes = open_arrays(view.path / segment.words).facts["raw_batches"]
    start = 0
    for number, size in enumerate(sizes):
        lo, hi = np.searchsorted(live, [start, start + size])
        if hi > lo:
            batch = reader.get_batch(number)
            if hi - lo < size:
                batch = batch.take(pa.array(live[lo:hi] - start))
            raw.add(batch)
        start += size


class Estimates(NamedTuple):
    """Estimates of every column of a table."""

    distinct: list[float]  # values
    agreeing: list[float]  # the share of the pairs of rows that agree


def estimates(task_results: list[TaskResult], columns: int) -> Estimates:
    """The estimates from the sketches of segments; zeros if there are none."""
    sketched = [result for result in task_results if "sketch" in result.arrays]
    rows = sum(result.facts["rows"] for result in sketched)

    def of_columns(name: str) -> Iterator[list[NDArray[Any]]]:
        return ([result.arrays[name][column] for result in sketched] for column in range(columns))

    return Estimates(
        [index.distinct(sketches) for sketches in of_columns("sketch")],
        [index.agreeing(spreads, rows) for spreads in of_columns("spread")],
    )
