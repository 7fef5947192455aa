"""Keeping segments few: small ones are merged in tiers, mostly deleted ones written anew."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.model import thresholds
from holdfast.model.records import from_form
from holdfast.store.run import Run
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.runner import Call
from holdfast.tasks.segments import ROWS, Segment

I64 = NDArray[np.int64]

_SMALLEST = 4_096
"""Live rows below which all segments are of the lowest tier."""


@dataclass(frozen=True)
class Moves:
    """Rows that got other ids when their segments were merged: those that something refers to."""

    old: I64
    new: I64


def merge(run: Run, table: Table, witnesses: I64) -> tuple[Table, Moves]:
    """Merge segments where a tier is full, and rewrite those that are mostly deleted.

    ``witnesses`` are the rows that evidence refers to: their moves are returned."""
    table = replace(table, segments=tuple(s for s in table.segments if s.live))
    old: list[I64] = [np.empty(0, np.int64)]
    new: list[I64] = [np.empty(0, np.int64)]
    groups = due(table.segments)
    if not groups:
        return table, Moves(old[0], new[0])
    run.progress("merge", segments=sum(map(len, groups)))
    ids = np.unique(np.concatenate([witnesses, np.ravel(table.repeated).astype(np.int64)]))
    calls: list[Call] = []
    for number, group in enumerate(groups, table.next_number):
        mine = ids[np.isin(ids >> 32, [segment.number for segment in group])]
        names = (ROWS, *table.index_names)
        view = table.view(run.store.path, run.options, group)
        calls.append((tasks.merge, tasks.Merge(view, run.destination.prefix, number, names, mine)))
    merged = []
    for result in run.runner.run(calls):
        for task_result in result:
            merged.append(from_form(Segment, task_result.facts["segment"]))
            old.append(task_result.arrays["old"])
            new.append(task_result.arrays["new"])
    moves = Moves(np.concatenate(old), np.concatenate(new))
    gone = {segment.number for group in groups for segment in group}
    kept = tuple(s for s in table.segments if s.number not in gone)
    return replace(
        table.renumbered(moves.old, moves.new),
        segments=kept + tuple(merged),
        next_number=table.next_number + len(merged),
    ), moves


def due(segments: tuple[Segment, ...]) -> list[tuple[Segment, ...]]:
    """The segments to merge, group by group."""
    fan, most = thresholds.current.merged_segments, thresholds.current.segment_rows
    tiers: dict[int, list[Segment]] = {}
    groups: list[tuple[Segment, ...]] = []
    for segment in segments:
        if 2 * segment.live < segment.rows and segment.rows > _SMALLEST:
            groups.append((segment,))
        else:
            tiers.setdefault(_tier(segment.live), []).append(segment)
    for members in tiers.values():
        small = [segment for segment in members if fan * segment.live <= most]
        starts = range(0, len(small) - fan + 1, fan)
        groups.extend(tuple(small[start : start + fan]) for start in starts)
    return groups


def _tier(rows: int) -> int:
    tier = 0
    while rows > _SMALLEST:
        rows //= thresholds.current.merged_segments
        tier += 1
    return tier
