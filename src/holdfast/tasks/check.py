"""Checking stored files against each other: words against raw rows, indexes against words."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.tasks.encode import encode, layout
from holdfast.tasks.parcel import Parcel
from holdfast.tasks.segments import ROWS, Segment, map_arrays, map_words, row_codes
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Check:
    """Check these segments, whose raw rows have this schema."""

    view: View
    schema: pa.Schema


def check(item: Check) -> Iterator[Parcel]:
    """What is wrong with the files, in words."""
    wrong: list[str] = []
    for segment in item.view.segments:
        words = map_words(item.view.path, segment)
        if segment.raw is not None and not _encodes(item, segment, words):
            wrong.append(f"{segment.words}: does not match the raw rows in {segment.raw}")
        for name, path in segment.indexes.items():
            codes = row_codes(words) if name == ROWS else words[:, item.view.shape.first[int(name)]]
            if not _sorts(item.view.path / path, np.ascontiguousarray(codes).view(np.int64)):
                wrong.append(f"{path}: is not the sorted column {name} of {segment.words}")
    yield Parcel({"wrong": wrong})


def _encodes(item: Check, segment: Segment, words: NDArray[np.uint64]) -> bool:
    reader = pa.ipc.open_file(pa.memory_map(str(item.view.path / str(segment.raw))))
    start = 0
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        fresh = encode(batch, layout(item.schema)).view(np.uint64)
        if not np.array_equal(fresh.T, words[start : start + batch.num_rows]):
            return False
        start += batch.num_rows
    return start == segment.rows


def _sorts(path: Path, codes: NDArray[np.int64]) -> bool:
    arrays, _ = map_arrays(path)
    held, positions = arrays["codes"], arrays["positions"]
    whole = np.array_equal(np.sort(positions), np.arange(len(codes)))
    return whole and bool((held[1:] >= held[:-1]).all()) and np.array_equal(held, codes[positions])
