"""Rows with other columns: some left out, others added as nulls or of a wider type."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.kernels.arrays import I64, U64
from holdfast.model.records import to_form
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import unique
from holdfast.runtime.timed import look
from holdfast.tasks.encode import layout
from holdfast.tasks.segments import (
    ROWS,
    RawRows,
    Segment,
    build_indexes,
    live_positions,
    most_rows,
    open_arrays,
    open_raw,
    write_words,
)
from holdfast.tasks.view import View
from holdfast.tasks.widening import widened

Places = tuple[int | None, ...]
"""For each column afterwards, which one it is before; None: it is new, and null in all rows."""


@dataclass(frozen=True)
class Reshape:
    """Write the living rows of segments with other columns."""

    view: View
    before: pa.Schema  # of the stored cells
    schema: pa.Schema  # of those afterwards
    places: Places
    prefix: str

    @property
    def work(self) -> int:
        """Rows that it writes."""
        return self.view.live


def reshape(item: Reshape) -> Iterator[TaskResult]:
    """The segments, which have no numbers yet."""
    view, after = item.view, layout(item.schema)
    shape = View(view.root, (), after.widths, view.nulls_equal).shape
    most = most_rows(after.total)
    for segment in view.segments:
        look()
        living = live_positions(view.path, segment)
        for start in range(0, living.size, most):
            positions = living[start : start + most]
            words = _words(item, segment, positions)
            raw, sizes = _raw(item, segment, positions) if segment.raw else (None, [])
            path = write_words(view.path, unique(item.prefix, "words"), words, sizes)
            built = build_indexes(view.path, item.prefix, words, shape, (ROWS,))
            rows = len(words)
            yield TaskResult({"segment": to_form(Segment(0, rows, rows, path, raw, None, built))})


def recast(item: Reshape) -> Iterator[TaskResult]:
    """The raw rows of segments, deleted ones too, with columns of wider types, whose words are the
    same: by the number of their segment the new file."""
    for segment in item.view.segments:
        look()
        yield TaskResult(
            {"number": segment.number, "raw": _raw(item, segment, np.arange(segment.rows))[0]}
        )


def _words(item: Reshape, segment: Segment, positions: I64) -> U64:
    before, after = item.view.shape, layout(item.schema)
    rows = item.view.rows(segment, positions)
    words = np.zeros((len(rows), after.total), np.uint64)
    for column, place in enumerate(item.places):
        mask, bit = after.value_words + column // 64, np.uint64(column % 64)
        if place is None:
            words[:, mask] |= np.uint64(1) << bit
            continue
        start, width = after.offsets[column], after.widths[column]
        cells = np.ascontiguousarray(rows[:, before.first[place] : before.first[place + 1]])
        nulls = rows[:, before.owner.size + place // 64] >> np.uint64(place % 64) & np.uint64(1)
        kinds = item.before.field(place).type, item.schema.field(column).type
        words[:, start : start + width] = widened(cells, nulls, *kinds)
        words[:, mask] |= nulls << bit
    return words


def _raw(item: Reshape, segment: Segment, positions: I64) -> tuple[str, list[int]]:
    """The raw rows, and the sizes of their batches."""
    raw = RawRows(item.view.path, item.prefix, item.schema)
    reader = open_raw(item.view.path, segment)
    start = 0
    for number, size in enumerate(open_arrays(item.view.path / segment.words).facts["raw_batches"]):
        lo, hi = np.searchsorted(positions, [start, start + size])
        if hi > lo:
            batch = reader.get_batch(number)
            if hi - lo < size:
                batch = batch.take(pa.array(positions[lo:hi] - start))
            cells = [
                pa.nulls(batch.num_rows, field.type)
                if place is None
                else batch.column(place).cast(field.type)
                for place, field in zip(item.places, item.schema, strict=True)
            ]
            raw.add(pa.record_batch(cells, schema=item.schema))
        start += size
    return raw.seal(), raw.sizes
