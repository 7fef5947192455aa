"""Building indexes: sorting the columns of every segment that look-ups and searches need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.model import thresholds
from holdfast.model.limits import OutOfTime
from holdfast.model.options import Options
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, Runner, run_all
from holdfast.table import indexes
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import compaction as tasks
from holdfast.tasks.segments import ROWS, Segment, index_columns, index_name, is_chained
from holdfast.tasks.view import View


def index(run: Run, table: Table, minimal: NDArray[np.uint64], columns: int) -> Table:
    """Build the indexes that these minimal left-hand sides need, or raise :class:`OutOfTime`.

    Inserts only make left-hand sides longer, so existing indexes still cover them. Deletes may
    bring one that no index covers, and then the choice is made again.
    """
    lhs = bitsets.to_flags(bitsets.distinct(minimal), columns)
    sizes = (table.effective, table.rows)
    chosen = tuple(name for name in table.indexed if indexes.is_used(name, lhs, *sizes))
    if not chosen or not indexes.is_reached(lhs, chosen, *sizes).all():
        chosen = _chosen(lhs, replace(table, indexed=chosen), run.options)
    return _built(run, replace(table, indexed=chosen))


def as_it_is(table: Table) -> Table:
    """The table with only those of its indexes that every segment has."""
    there = {
        name
        for name in table.index_names
        if all(name in segment.indexes for segment in table.segments)
    }
    indexed = tuple(name for name in table.indexed if name in there)
    looked_up = tuple(name for name in table.looked_up if name in there)
    return _only_named(replace(table, indexed=indexed, looked_up=looked_up), table.segments)


def look_up_by(run: Run, table: Table, names: Iterable[str]) -> Table:
    """The table with the indexes that look-ups need, in place of earlier ones of theirs; or
    :class:`OutOfTime`."""
    return _built(run, replace(table, looked_up=tuple(dict.fromkeys(names))))


def that_serves(table: Table, columns: tuple[int, ...]) -> str | None:
    """The index of a table by which rows are best looked up that agree on some columns; None: a
    look-up in any would return many rows."""
    own = [
        name
        for name in table.index_names
        if not is_chained(name) and {*index_columns(name)} <= {*columns}
    ]
    few = thresholds.current.own_index_rows
    rows = {name: indexes.returned(name, table.effective, table.rows) for name in own}
    best = min(own, key=lambda name: rows[name], default=None)
    return best if best is not None and (rows[best] <= few or _is_whole(best, columns)) else None


def returned(table: Table, columns: tuple[int, ...]) -> float:
    """About how many rows a look-up returns of those that agree on these columns: by the index that
    serves, or by the one that would be built; without an index all of them."""
    name = that_serves(table, columns)
    if name is None and table.rows > thresholds.current.lookup_rows:
        name = _name(table, columns)
    return table.rows if name is None else indexes.returned(name, table.effective, table.rows)


def looked_up_by(run: Run, table: Table, columns: Sequence[tuple[int, ...]]) -> Table:
    """The table with indexes by which rows are looked up that agree on any of these columns, as far
    as it is worthwhile and there is time."""
    if table.rows <= thresholds.current.lookup_rows:
        return table
    missing = [each for each in columns if that_serves(table, each) is None]
    if not missing:
        return table
    names = [_name(table, each) for each in missing]
    try:
        return look_up_by(run, table, (*table.looked_up, *names))
    except OutOfTime:
        return table


def _name(table: Table, columns: tuple[int, ...]) -> str:
    return table.column_index(columns[0]) if len(columns) == 1 else index_name(columns)


def _is_whole(name: str, columns: tuple[int, ...]) -> bool:
    """Whether an index is over all of some columns."""
    return {*index_columns(name)} == {*columns}


def _built(run: Run, table: Table) -> Table:
    """The table with exactly the indexes that it names, built in every segment."""
    names = (ROWS, *table.index_names)
    if any(name not in segment.indexes for segment in table.segments for name in names):
        run.progress("index", columns=len(table.index_names))
    view = table.view(run.store.path, run.options)
    view = with_indexes(run.within(run.upkeep_time), view, run.destination.prefix, names)
    return _only_named(table, view.segments)


def _only_named(table: Table, segments: Iterable[Segment]) -> Table:
    """The table with these segments, which have only the indexes that it names."""
    names = (ROWS, *table.index_names)
    named = (replace(s, indexes={name: s.indexes[name] for name in names}) for s in segments)
    return replace(table, segments=tuple(named))


def _chosen(lhs: indexes.Sets, table: Table, options: Options) -> tuple[str, ...]:
    """Indexes that cover these left-hand sides, existing ones first."""
    values, rows = table.effective, table.rows
    missing = lhs[~indexes.is_reached(lhs, table.indexed, values, rows)]
    selective = missing[~indexes.is_unselective(missing, values, rows)]
    quota = 0 if table.indexed else options.index_quota
    columns = indexes.choose(selective, values, rows, quota)
    joint = indexes.joint(missing, values, rows, table.indexed)
    # Of one column it is that column's.
    names = [table.column_index(int(name)) if name.isdigit() else name for name in joint]
    return tuple(dict.fromkeys([*table.indexed, *map(table.column_index, columns), *names]))


def with_indexes(runner: Runner, view: View, prefix: str, names: Iterable[str]) -> View:
    """The view with these indexes in every segment; takes one job if any is missing."""
    names = tuple(names)
    lacking = tuple(s for s in view.segments if any(n not in s.indexes for n in names))
    if not lacking:
        return view
    calls: list[Call] = [
        (tasks.build, tasks.Build(share, prefix, names))
        for share in shares(replace(view, segments=lacking), runner.tasks)
    ]
    built: dict[int, dict[str, str]] = {}
    for task_result in run_all(runner, calls):
        built[task_result.facts["number"]] = task_result.facts["indexes"]
    segments = [replace(s, indexes={**s.indexes, **built.get(s.number, {})}) for s in view.segments]
    return replace(view, segments=tuple(segments))
