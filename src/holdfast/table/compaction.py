"""Keeping the number of segments small: small ones are joined after the first read, later ones are
merged in tiers, and mostly deleted ones are rewritten."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from holdfast.kernels.arrays import I64
from holdfast.model import thresholds
from holdfast.model.records import from_form
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.segments import ROWS, Segment, most_rows

_SMALLEST = 4_096
"""Live rows below which all segments are of the lowest tier."""


@dataclass(frozen=True)
class RowMoves:
    """Rows that something refers to and whose ids changed because their segments were merged."""

    old: I64
    new: I64


def merge(run: Run, table: Table, witnesses: I64) -> tuple[Table, RowMoves]:
    """Merge segments where a tier is full, and rewrite those that are mostly deleted.

    ``witnesses`` are the rows that evidence refers to; their new ids are returned.
    """
    table = replace(table, segments=tuple(s for s in table.segments if s.live))
    return _merged(run, table, due(table.segments, table.words), witnesses)


def joined(run: Run, table: Table) -> Table:
    """The table after its first read, with small segments joined if there are many: each would be
    one more file for every later step to open."""
    groups = small(table.segments, table.words)
    if sum(len(group) - 1 for group in groups) < thresholds.current.merged_segments:
        return table
    return _merged(run, table, groups, np.empty(0, np.int64))[0]


def _merged(
    run: Run, table: Table, groups: list[tuple[Segment, ...]], witnesses: I64
) -> tuple[Table, RowMoves]:
    """The table with each group of segments replaced by one."""
    old: list[I64] = [np.empty(0, np.int64)]
    new: list[I64] = [np.empty(0, np.int64)]
    if not groups:
        return table, RowMoves(old[0], new[0])
    run.progress("merge", segments=sum(map(len, groups)))
    ids = np.unique(np.concatenate([witnesses, np.ravel(table.repeated).astype(np.int64)]))
    names = (ROWS, *table.index_names)
    calls: list[Call] = []
    for number, group in enumerate(groups, table.next_number):
        moving = ids[np.isin(ids >> 32, [segment.number for segment in group])]
        view = table.view(run.store.path, run.options, group)
        item = tasks.MergeSegments(view, run.destination.prefix, number, names, moving)
        calls.append((tasks.merge, item))
    merged = []
    for task_result in run_all(run.runner, calls):
        merged.append(from_form(Segment, task_result.facts["segment"]))
        old.append(task_result.arrays["old"])
        new.append(task_result.arrays["new"])
    moves = RowMoves(np.concatenate(old), np.concatenate(new))
    gone = {segment.number for group in groups for segment in group}
    others = tuple(s for s in table.segments if s.number not in gone)
    return replace(
        table.renumbered(moves.old, moves.new),
        segments=others + tuple(merged),
        next_number=table.next_number + len(merged),
    ), moves


def due(segments: tuple[Segment, ...], words: int) -> list[tuple[Segment, ...]]:
    """The groups of segments to merge; ``words`` is the size of a row.

    Segments of similar size are merged when there are several, or when they fill a new one. Larger
    ones stay, so that a row is written about once per tier. A segment of which more than half is
    deleted is rewritten at once.
    """
    most = most_rows(words)
    tiers: dict[int, list[Segment]] = {}
    groups: list[tuple[Segment, ...]] = []
    for segment in segments:
        if 2 * segment.live < segment.rows and segment.rows > _SMALLEST:
            groups.append((segment,))
        elif 2 * segment.live <= most:
            tiers.setdefault(_tier(segment.live), []).append(segment)
    for members in tiers.values():
        *full, last = _packed(members, most, most)
        groups += full
        if len(last) >= thresholds.current.merged_segments:
            groups.append(last)
    return groups


def small(segments: tuple[Segment, ...], words: int) -> list[tuple[Segment, ...]]:
    """Groups of segments that are each too small for a file of their own."""
    worth = thresholds.current.joined_bytes // (8 * words)
    few = [segment for segment in segments if segment.live < worth]
    return [group for group in _packed(few, most_rows(words), worth) if len(group) > 1]


def _packed(segments: Sequence[Segment], most: int, enough: int) -> list[tuple[Segment, ...]]:
    """Segments, in order, in groups of at most ``most`` rows; a group is closed once it has
    ``enough`` rows, so only the last may have fewer."""
    groups: list[list[Segment]] = [[]]
    rows = 0
    for segment in segments:
        if groups[-1] and (rows >= enough or rows + segment.live > most):
            groups.append([])
            rows = 0
        groups[-1].append(segment)
        rows += segment.live
    return [tuple(group) for group in groups]


def _tier(rows: int) -> int:
    tier = 0
    while rows > _SMALLEST:
        rows //= thresholds.current.merged_segments
        tier += 1
    return tier
