"""Keeping segments in order: indexes that are missing, small segments merged in tiers."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from holdfast.kernels import bitsets
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.store.run import Place
from holdfast.table import indexes
from holdfast.table.placement import with_indexes
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.ingest import SEGMENT_ROWS
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import ROWS, Segment

_FAN = 8
"""Segments of one tier that are merged into one of the next."""

_SMALLEST = 4_096
"""Live rows below which all segments are of the lowest tier."""


def index(
    runner: Runner, table: Table, place: Place, options: Options, progress: Progress
) -> Table:
    """Sort the columns that the minimal left sides need and that are not sorted yet.

    Inserts only make left sides longer, so they stay covered. After deletes a new one may have no
    indexed column: then the choice is made again.
    """
    minimal = bitsets.distinct(np.concatenate([*table.covers.only(table.sides).minimal.values()]))
    lefts = bitsets.to_flags(minimal, table.covers.atoms)
    chosen = tuple(name for name in table.indexed if indexes.is_used(name, lefts))
    if not chosen or not indexes.is_reached(lefts, chosen, table.distinct, table.rows).all():
        chosen = _chosen(lefts, replace(table, indexed=chosen), options)
    names = (ROWS, *chosen)
    if any(name not in segment.indexes for segment in table.segments for name in names):
        progress("index", columns=len(chosen))
    view = with_indexes(runner, table.view(place.root, options), place.prefix, names)
    segments = tuple(
        replace(s, indexes={name: s.indexes[name] for name in names}) for s in view.segments
    )
    return replace(table, indexed=chosen, segments=segments)


def _chosen(lefts: indexes.Sets, table: Table, options: Options) -> tuple[str, ...]:
    """The indexes that serve these left sides; as far as possible those that there are."""
    distinct, rows = table.distinct, table.rows
    missing = lefts[~indexes.is_reached(lefts, table.indexed, distinct, rows)]
    narrow = missing[~indexes.is_broad(missing, distinct, rows)]
    quota = 0 if table.indexed else options.index_quota
    columns = indexes.choose(narrow, distinct, rows, quota)
    own = indexes.own(missing, distinct, rows, table.indexed)
    return tuple(dict.fromkeys([*table.indexed, *map(str, columns), *own]))


def merge(
    runner: Runner, table: Table, place: Place, options: Options, progress: Progress
) -> Table:
    """Merge segments where a tier is full, and rewrite those that are mostly deleted."""
    table = replace(table, segments=tuple(s for s in table.segments if s.live))
    groups = due(table.segments)
    if not groups:
        return table
    progress("merge", segments=sum(map(len, groups)))
    ids = table.witness_ids
    calls: list[Call] = []
    for number, group in enumerate(groups, table.next_number):
        mine = ids[np.isin(ids >> 32, [segment.number for segment in group])]
        names = (ROWS, *table.indexed)
        view = table.view(place.root, options, group)
        calls.append((tasks.merge, tasks.Merge(view, place.prefix, number, names, mine)))
    merged = []
    for result in runner.run(calls):
        for parcel in result:
            merged.append(Segment.from_dict(parcel.facts["segment"]))
            table = table.renumbered(parcel.arrays["old"], parcel.arrays["new"])
    gone = {segment.number for group in groups for segment in group}
    kept = tuple(s for s in table.segments if s.number not in gone)
    return replace(
        table,
        segments=kept + tuple(merged),
        next_number=table.next_number + len(merged),
    )


def due(segments: tuple[Segment, ...]) -> list[tuple[Segment, ...]]:
    """The segments to merge, group by group."""
    tiers: dict[int, list[Segment]] = {}
    groups: list[tuple[Segment, ...]] = []
    for segment in segments:
        if 2 * segment.live < segment.rows and segment.rows > _SMALLEST:
            groups.append((segment,))
        else:
            tiers.setdefault(_tier(segment.live), []).append(segment)
    for members in tiers.values():
        small = [segment for segment in members if _FAN * segment.live <= SEGMENT_ROWS]
        starts = range(0, len(small) - _FAN + 1, _FAN)
        groups.extend(tuple(small[start : start + _FAN]) for start in starts)
    return groups


def _tier(rows: int) -> int:
    tier = 0
    while rows > _SMALLEST:
        rows //= _FAN
        tier += 1
    return tier
