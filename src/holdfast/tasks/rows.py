"""Finding rows: the ones that a batch deletes or updates, and the ones that occur twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import evidence, index
from holdfast.tasks.result import TaskResult
from holdfast.tasks.segments import (
    ROWS,
    Segment,
    live_positions,
    look_up,
    map_arrays,
    map_words,
    row_codes,
)
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Locate:
    """Find the rows that equal a request in the row key's columns.

    ``requests`` are segments of the batch; ``places`` says where the row key's columns are among
    theirs.
    """

    view: View
    requests: tuple[Segment, ...]
    request_widths: tuple[int, ...]
    columns: tuple[int, ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class Duplicates:
    """Count the rows that have an equal row before them, in one part of the rows."""

    view: View
    part: int
    parts: int


def locate(item: Locate) -> Iterator[TaskResult]:
    """Per request (equal ones grouped) how many rows match, and as many ids as it asks for."""
    view = item.view
    asked = View(view.root, item.requests, item.request_widths, True)
    blocks = [asked.rows(segment, np.arange(segment.rows)) for segment in item.requests]
    wide = _widened(np.concatenate(blocks), asked.shape, view.shape, item)
    wide, first, need = _grouped(wide)
    columns = np.array(item.columns, np.int64)
    whole = item.columns == tuple(range(view.columns))
    counts = np.zeros(len(wide), np.int64)
    ids: list[I64] = []
    owners: list[I64] = []
    for segment in view.segments:
        stored = view.stored(segment)
        ranges = _look_up_request(item, segment, wide, stored.words, whole)
        here = np.zeros(len(wide), np.int64)
        out = np.empty(int(need.sum()), np.int64)
        kept = index.match(wide, need, ranges, stored, columns, view.shape, here, out)
        counts += here
        ids.append(out[:kept] + segment.base)
        owners.append(np.repeat(np.arange(len(wide)), np.minimum(here, need)))
    yield TaskResult(
        {},
        {
            "first": first,
            "need": need,
            "counts": counts,
            "nulls": (wide[:, view.shape.owner.size :] != 0).any(axis=1),
            "ids": np.concatenate(ids or [np.empty(0, np.int64)]),
            "owners": np.concatenate(owners or [np.empty(0, np.int64)]),
        },
    )


def _grouped(rows: U64) -> tuple[U64, I64, I64]:
    """Distinct rows, where each first occurs, and how often."""
    _, first, inverse, need = np.unique(
        row_codes(rows), return_index=True, return_inverse=True,
        return_counts=True,
    )  # fmt: skip
    if (rows != rows[first][inverse]).any():  # two rows with one hash: compare them in full
        distinct, first, need = np.unique(rows, axis=0, return_index=True, return_counts=True)
        return distinct, first, need
    return rows[first], first, need


def _widened(wanted: U64, asked: evidence.Shape, shape: evidence.Shape, item: Locate) -> U64:
    """Requests as rows of the table, with the columns that are not asked for left at zero."""
    wide = np.zeros((len(wanted), shape.owner.size + shape.full.size), np.uint64)
    for place, column in zip(item.places, item.columns, strict=True):
        for k in range(int(shape.first[column + 1] - shape.first[column])):
            wide[:, shape.first[column] + k] = wanted[:, asked.first[place] + k]
        null = wanted[:, asked.owner.size + place // 64] >> np.uint64(place % 64) & np.uint64(1)
        wide[:, shape.owner.size + column // 64] |= null << np.uint64(column % 64)
    return wide


def _look_up_request(
    item: Locate, segment: Segment, wide: U64, words: U64, whole: bool
) -> index.Ranges:
    """Ranges of rows that may match, by an index where there is one, else by one scan."""
    view = item.view
    if whole:
        return look_up(view.path, segment, ROWS, row_codes(wide))
    for column in item.columns:
        if str(column) in segment.indexes:
            codes = np.ascontiguousarray(wide[:, view.shape.first[column]])
            return look_up(view.path, segment, str(column), codes)
    first = view.shape.first[item.columns[0]]
    codes = np.ascontiguousarray(wide[:, first])
    held = np.ascontiguousarray(words[:, first])
    near = index.members(held, codes)
    sorted_codes, order = index.sort(held[near])
    signed = codes.view(np.int64)
    lo = np.searchsorted(sorted_codes, signed, "left")
    hi = np.searchsorted(sorted_codes, signed, "right")
    return index.Ranges(lo, hi, near[order])


def duplicates(item: Duplicates) -> Iterator[TaskResult]:
    """How many rows repeat an earlier one, and a few such pairs."""
    view = item.view
    hashes = [np.empty(0, np.int64)]
    ids = [np.empty(0, np.int64)]
    for segment in view.segments:
        arrays, _ = map_arrays(view.path / segment.indexes[ROWS])
        mine = np.flatnonzero(arrays["codes"] % item.parts == item.part)
        codes, positions = arrays["codes"][mine], arrays["positions"][mine].astype(np.int64)
        alive = np.zeros(segment.rows, np.bool_)
        alive[live_positions(view.path, segment)] = True
        if not view.nulls_equal:
            alive &= (map_words(view.path, segment)[:, view.shape.owner.size :] == 0).all(axis=1)
        hashes.append(codes[alive[positions]])
        ids.append((positions + segment.base)[alive[positions]])
    code, id_ = np.concatenate(hashes), np.concatenate(ids)
    order = np.lexsort((id_, code))
    code, id_ = code[order], id_[order]
    repeats = np.zeros(len(code), np.bool_)
    repeats[1:] = code[1:] == code[:-1]
    near = np.flatnonzero(repeats | np.append(repeats[1:], False))
    rows = _fetch(view, id_[near])
    # Within a run of one hash every row is compared with the run's first; a run whose rows are
    # not all equal is two different rows with one hash, and is compared in full.
    starts = np.maximum.accumulate(np.where(repeats[near], 0, np.arange(len(near))))
    equal = (rows == rows[starts]).all(axis=1)
    pairs = []
    count = 0
    if equal.all():
        again = np.flatnonzero(repeats[near])
        count = len(again)
        pairs = [[int(id_[near[starts[i]]]), int(id_[near[i]])] for i in again[:4]]
    else:
        seen: dict[bytes, int] = {}
        for i in range(len(near)):
            earlier = seen.setdefault(rows[i].tobytes(), i)
            if earlier != i:
                count += 1
                if len(pairs) < 4:
                    pairs.append([int(id_[near[earlier]]), int(id_[near[i]])])
    yield TaskResult({"duplicates": count, "pairs": pairs})


def _fetch(view: View, ids: I64) -> U64:
    """Rows by id, row-major."""
    out = np.empty((len(ids), sum(view.widths) + view.shape.full.size), np.uint64)
    numbers = ids >> 32
    for segment in view.segments:
        mine = np.flatnonzero(numbers == segment.number)
        out[mine] = view.rows(segment, ids[mine] - segment.base)
    return out
