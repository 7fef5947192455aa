"""Looking for evidence: pairs of rows that refute candidates.

Three ways, one result: *sample* compares near neighbours of some rows, *search* goes through all
pairs that could agree on a candidate, *probe* looks the rows of a batch up in the indexes. Each
returns the maximal masks it found, with witnesses.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets, evidence, index
from holdfast.tasks.parcel import Parcel
from holdfast.tasks.segments import (
    ROWS,
    Segment,
    live_positions,
    look_up,
    map_dead,
    map_words,
    row_codes,
)
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_REACH = 2


@dataclass(frozen=True)
class Sample:
    """Compare some rows of these segments with their neighbours in every column."""

    view: View
    rows: int  # per segment


@dataclass(frozen=True)
class Search:
    """Find pairs that violate candidates, all of which contain ``column``, which is indexed.

    Looks only at the rows whose code in that column is from ``low`` to below ``high``.
    """

    view: View
    column: int
    low: int
    high: int | None
    candidates: U64
    order: tuple[int, ...]  # columns, most selective first


@dataclass(frozen=True)
class Probe:
    """Find pairs of a batch row and an earlier row that violate candidates.

    ``lookups`` has one entry for every group of candidates that share their indexed columns; of
    those, each batch row uses the one that returns the fewest rows. ``filters[c]`` are columns of
    which every candidate with ``c`` has at least one.
    """

    view: View
    batch: tuple[Segment, ...]
    candidates: U64
    lookups: tuple[tuple[int, ...], ...]
    filters: dict[int, tuple[int, ...]]
    twins: bool = True


def sample(item: Sample) -> Iterator[Parcel]:
    """Evidence from near neighbours."""
    view = item.view
    found = evidence.findings(view.shape.full.size)
    everything = np.zeros((1, view.shape.full.size), np.uint64)
    for segment in item.view.segments:
        live = live_positions(view.path, segment)
        if live.size > item.rows:
            chosen = np.random.default_rng(segment.number).choice(live.size, item.rows, False)
            live = live[np.sort(chosen)]
        rows = view.rows(segment, live)
        evidence.neighbours(rows, live + segment.base, view.shape, _REACH, everything, found)
    yield _parcel(found)


def search(item: Search) -> Iterator[Parcel]:
    """All evidence against the candidates, in one part of the rows."""
    view = item.view
    rows, ids = view.between(item.column, item.low, item.high)
    found = evidence.findings(view.shape.full.size)
    partial = np.zeros(len(item.candidates), np.bool_)
    trie = _trie(item.candidates, item.order)
    evidence.search(rows, ids, view.shape, trie, item.candidates, found, partial)
    yield _parcel(found, partial)


def differ(view: View) -> Iterator[Parcel]:
    """One pair of rows that differ: the evidence against the empty candidate."""
    found = evidence.findings(view.shape.full.size)
    first: U64 | None = None
    everything = np.zeros((1, view.shape.full.size), np.uint64)
    mask = np.empty(view.shape.full.size, np.uint64)
    for segment in view.segments:
        live = live_positions(view.path, segment)
        if not live.size:
            continue
        words = map_words(view.path, segment)
        if first is None:
            first = view.rows(segment, live[:1])[0]
            first_id = int(live[0]) + segment.base
        unlike = (words != first).any(axis=1)
        if not view.nulls_equal:
            unlike |= (words[:, view.shape.owner.size :] != 0).any(axis=1)
        unlike[live[0]] &= segment.base + live[0] != first_id
        others = live[unlike[live]]
        if others.size:
            other = view.rows(segment, others[:1])[0]
            evidence.pair_mask(first, other, view.shape, mask)
            id_ = int(others[0]) + segment.base
            evidence.record(mask, first_id, id_, everything, view.shape.full, found)
            break
    yield _parcel(found)


def probe(item: Probe) -> Iterator[Parcel]:
    """Evidence between a batch and these segments (the batch's own may be among them)."""
    view = item.view
    found = evidence.findings(view.shape.full.size)
    twin_of: list[I64] = []
    twin: list[I64] = []
    compared = 0
    columns = np.arange(view.columns)
    for arrived in item.batch:
        rows = view.rows(arrived, np.arange(arrived.rows))
        ids = np.arange(arrived.rows) + arrived.base
        codes = row_codes(rows)
        for segment in view.segments:
            if segment.number > arrived.number or not segment.live:
                continue
            words = map_words(view.path, segment)
            dead = map_dead(view.path, segment)
            for column, (lo, hi, positions) in _ranges(item, segment, rows).items():
                compared += index.probe(
                    rows, ids, column, lo, hi, positions, words, segment.base, dead,
                    np.array(item.filters[column], np.int64), view.shape, item.candidates, found,
                )  # fmt: skip
            if item.twins:
                lo, hi, positions = look_up(view.path, segment, ROWS, codes)
                out = np.empty(arrived.rows, np.int64)
                index.twins(
                    rows, ids, lo, hi, positions, words, segment.base, dead, columns,
                    view.shape, out,
                )  # fmt: skip
                has = np.flatnonzero(out >= 0)
                twin_of.append(ids[has])
                twin.append(out[has])
    parcel = _parcel(found)
    parcel.facts["compared"] = compared
    none = [np.empty(0, np.int64)]
    parcel.arrays["twin_of"] = np.concatenate(twin_of or none)
    parcel.arrays["twin"] = np.concatenate(twin or none)
    yield parcel


def _ranges(item: Probe, segment: Segment, rows: U64) -> dict[int, tuple[Any, Any, Any]]:
    """The look-ups to follow: per column the ranges, emptied where another column's serves."""
    view = item.view
    indexed = sorted({column for group in item.lookups for column in group})
    ranges = {}
    for column in indexed:
        codes = np.ascontiguousarray(rows[:, view.shape.first[column]])
        ranges[column] = look_up(view.path, segment, str(column), codes)
    needed = {column: np.zeros(len(rows), np.bool_) for column in indexed}
    for group in item.lookups:
        sizes = np.stack([ranges[c][1] - ranges[c][0] for c in group])
        best = sizes.argmin(axis=0)
        for k, column in enumerate(group):
            needed[column] |= (best == k) & (sizes[k] > 0)
    for column, (lo, hi, positions) in ranges.items():
        ranges[column] = (lo, np.where(needed[column], hi, lo), positions)
    return ranges


def _parcel(found: evidence.Findings, partial: NDArray[np.bool_] | None = None) -> Parcel:
    masks, witnesses, seen, complete = evidence.harvest(found)
    keep = np.flatnonzero(bitsets.is_member(masks, bitsets.maximal(masks)))
    arrays: dict[str, NDArray[Any]] = {
        "masks": masks[keep],
        "witnesses": witnesses[keep],
        "seen": seen[keep],
    }
    if partial is not None:
        arrays["partial"] = partial
    return Parcel({"complete": complete, "distinct": len(masks)}, arrays)


def _trie(candidates: U64, order: tuple[int, ...]) -> evidence.Trie:
    """Candidates as paths, sharing their beginnings."""
    rank = {column: place for place, column in enumerate(order)}
    column, child, sibling, ends = [-1], [-1], [-1], [-1]
    nodes: dict[tuple[int, int], int] = {}
    for k, columns in enumerate(bitsets.to_columns(candidates)):
        at = 0
        for c in sorted(columns, key=rank.__getitem__):
            if (at, c) not in nodes:
                nodes[at, c] = len(column)
                column.append(c)
                ends.append(-1)
                sibling.append(child[at])
                child[at] = nodes[at, c]
                child.append(-1)
            at = nodes[at, c]
        ends[at] = k
    arrays = [np.array(part, np.int64) for part in (column, child, sibling, ends)]
    return evidence.Trie(*arrays)
