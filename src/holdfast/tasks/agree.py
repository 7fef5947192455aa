"""Counting pairs: agree-sets of all pairs of rows, or of those that a batch brings and takes, and
the pairs that agree on given columns."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import agree, bitsets, ranks
from holdfast.kernels.pairs import agree_sets
from holdfast.tasks.result import Parcel
from holdfast.tasks.segments import Segment, combined, live_positions, map_words
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Count:
    """Count one share of the pairs.

    ``view`` has the rows after the batch; ``added`` are those of its segments that are new, and
    ``gone`` are segments as they were before, with the ids of the rows that were deleted from
    them. Without either, all pairs of the view's rows are counted.
    """

    view: View
    added: tuple[int, ...]  # numbers of new segments
    before: tuple[Segment, ...]  # segments that lost rows, as they were
    gone: I64  # ids of the rows that they lost
    everything: bool
    share: int
    shares: int


@dataclass(frozen=True)
class Agreeing:
    """Count the pairs that agree on each of some sets of columns, in one part of the rows."""

    view: View
    sets: tuple[tuple[int, ...], ...]
    part: int
    parts: int


def agreeing(item: Agreeing) -> Iterator[Parcel]:
    """The pairs of rows with equal cells, by grouping on a 128-bit hash of them."""
    view, shape = item.view, item.view.shape
    pairs = []
    for columns in item.sets:
        hashes = [np.empty((2, 0), np.uint64)]
        nulls = bitsets.from_columns([columns], view.columns)[0]
        for segment in view.segments:
            rows = map_words(view.path, segment)
            codes = np.stack([combined(rows, columns, shape, seed) for seed in (0, 1)])
            kept = np.zeros(len(rows), np.bool_)
            kept[live_positions(view.path, segment)] = True
            kept &= codes[0] % np.uint64(item.parts) == item.part
            if not view.nulls_equal:
                kept &= (rows[:, shape.owner.size :] & nulls == 0).all(axis=1)
            hashes.append(codes[:, kept])
        found = np.concatenate(hashes, axis=1)
        found = found[:, np.lexsort(found)]
        starts = np.ones(found.shape[1], np.bool_)
        starts[1:] = (found[:, 1:] != found[:, :-1]).any(axis=0)
        sizes = np.diff(np.append(np.flatnonzero(starts), found.shape[1]))
        pairs.append(int((sizes * (sizes - 1) // 2).sum()))
    yield Parcel({"pairs": pairs})


def count(item: Count) -> Iterator[Parcel]:
    """Agree-sets with the change in their numbers of pairs."""
    view = item.view
    kept, new = _rows(view, item.added)
    lost = _lost(item)
    words = np.concatenate([kept, lost, new])
    shape = view.shape
    columns = np.empty((view.columns, len(words)), np.int32)
    for column in range(view.columns):
        columns[column] = ranks.numbers([ranks.cells(words, shape.first, column)])
    ends = np.cumsum([len(kept), len(lost), len(new)])
    if item.everything:
        changes = [(columns, 0, 1)]
    else:
        before = columns[:, : ends[1]]
        after = np.concatenate([columns[:, : ends[0]], columns[:, ends[1] :]], axis=1)
        changes = [(before, ends[0], -1), (after, ends[0], 1)]
    masks, counts = [], []
    for codes, first, sign in changes:
        # Later rows have more pairs, so neighbours go to different tasks.
        dealt = np.arange(first, codes.shape[1])[item.share :: item.shares]
        found, pairs = agree_sets(codes, dealt, view.nulls_equal)
        masks.append(found)
        counts.append(sign * pairs)
    found, pairs = agree.total(masks, counts, shape.full.size)
    yield Parcel({}, {"masks": found, "counts": pairs})


def _rows(view: View, added: tuple[int, ...]) -> tuple[U64, U64]:
    """Living rows of the older segments, and of the new ones."""
    width = view.shape.owner.size + view.shape.full.size
    piles: tuple[list[U64], list[U64]] = (
        [np.empty((0, width), np.uint64)],
        [np.empty((0, width), np.uint64)],
    )
    for segment in view.segments:
        rows = view.rows(segment, live_positions(view.path, segment))
        piles[segment.number in added].append(rows)
    return np.concatenate(piles[0]), np.concatenate(piles[1])


def _lost(item: Count) -> U64:
    view = item.view
    width = view.shape.owner.size + view.shape.full.size
    rows = [np.empty((0, width), np.uint64)]
    for segment in item.before:
        mine = item.gone[item.gone >> 32 == segment.number] - segment.base
        rows.append(view.rows(segment, mine))
    return np.concatenate(rows)
