"""The files of values: clusters, overlaps, and verdicts on dependencies of several columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from holdfast.model import thresholds
from holdfast.model.commits import InclusionRecord, ValueRun
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.store import Lease, Store
from holdfast.store.codecs import masks_of, stored, write
from holdfast.store.differences import saved
from holdfast.values.clusters import Clusters, differences, grouped
from holdfast.values.compaction import due
from holdfast.values.composite import Keys
from holdfast.values.n_ary import Candidate, Verdict, Verdicts
from holdfast.values.overlaps import (
    Entries,
    Overlaps,
    between,
    changed_entries,
    divided,
    parts,
    shared_by_moved,
    summed,
    table_of,
)

if TYPE_CHECKING:
    from holdfast.values.state import ValueState


def save(store: Store, lease: Lease, state: ValueState, before: ValueState | None) -> ValueState:
    """Write the files that changed."""
    files = dict(before.files) if before else {}
    if before is None or before.attributes != state.attributes:
        files["attributes"] = (write(store, lease, "attributes", _attributes(state)),)
    if "distinct" not in files or state.overlaps.moves is not None:
        distinct = pa.table({"values": state.overlaps.distinct})
        known = files.get("distinct", ())
        files["distinct"] = saved(store, lease, "distinct", distinct, known)
    if state.verdicts and (before is None or before.verdicts != state.verdicts):
        files["tuples"] = (write(store, lease, "tuples", _tuples(state.verdicts)),)
    elif not state.verdicts:
        files.pop("tuples", None)
    if any(state.keys.values()):
        files["keys"] = saved(store, lease, "keys", _keys(state), files.get("keys", ()))
    else:
        files.pop("keys", None)
    clusters = _saved_clusters(store, lease, state.clusters)
    overlaps = _saved_overlaps(store, lease, state.overlaps)
    return replace(state, clusters=clusters, overlaps=overlaps, files=files)


def _saved_clusters(store: Store, lease: Lease, clusters: Clusters) -> Clusters:
    """The clusters with a new run of what moved, and full tiers of runs merged."""
    if clusters.moves is None:
        return clusters
    new = differences(clusters.moves)
    fresh = ValueRun((), len(new[1]))
    runs, groups = _tiers(clusters.runs, fresh)
    for group in groups:
        blocks = [new if run is fresh else clusters.stored(run) for run in group]
        masks, counts = grouped(*map(np.concatenate, zip(*blocks, strict=True)))
        if len(counts):
            table = pa.table({"mask": masks_of(masks), "values": counts})
            runs.append(ValueRun((write(store, lease, "clusters", table),), len(counts)))
    return replace(clusters, runs=tuple(runs), store=store, moves=None)


def _saved_overlaps(store: Store, lease: Lease, overlaps: Overlaps) -> Overlaps:
    """The same for overlaps."""
    moves, count = overlaps.moves, overlaps.count
    if moves is None:
        return overlaps

    def written(of: Callable[[int, int], Entries], files: int) -> ValueRun:
        names: list[str | None] = []
        size = 0
        for low, high in divided(count, files):
            entries = of(low, high)
            table, length = table_of(entries), len(entries[0])
            names.append(write(store, lease, "inclusions", table) if length else None)
            size += length
        return ValueRun(tuple(names), size)

    if not overlaps.runs:
        # All of it, which may be more than fits the memory at once.
        runs = [written(lambda low, high: shared_by_moved(moves, count, low, high), parts(count))]
    else:
        new = changed_entries(moves, count)
        fresh = ValueRun((), len(new[0]))
        runs, groups = _tiers(overlaps.runs, fresh)
        for group in groups:
            few = sum(run.entries for run in group) <= thresholds.current.small_run

            def of(low: int, high: int, group: tuple[ValueRun, ...] = group) -> Entries:
                return summed(
                    [
                        between(new, low, high)
                        if run is fresh
                        else overlaps.entries(run, low, high)
                        for run in group
                    ]
                )

            runs.append(written(of, 1 if few else parts(count)))
    runs = [run for run in runs if run.entries]
    return replace(overlaps, runs=tuple(runs), store=store, moves=None)


def _tiers(
    runs: tuple[ValueRun, ...], fresh: ValueRun
) -> tuple[list[ValueRun], list[tuple[ValueRun, ...]]]:
    """The runs that stay, and the groups of runs that become one each; the new run is in one of
    these groups, or is one itself."""
    groups = due((*runs, fresh))
    if not any(run is fresh for group in groups for run in group):
        groups.append((fresh,))
    merged = {id(run) for group in groups for run in group}
    return [run for run in runs if id(run) not in merged], groups


def _attributes(state: ValueState) -> pa.Table:
    return pa.table(
        {
            "table": [attribute.table for attribute in state.attributes],
            "column": [attribute.column for attribute in state.attributes],
            "family": list(state.families),
        }
    )


def _tuples(verdicts: Verdicts) -> pa.Table:
    numbers = pa.list_(pa.int32())
    return pa.table(
        {
            "table": [candidate.table for candidate in verdicts],
            "columns": pa.array([candidate.columns for candidate in verdicts], numbers),
            "other": [candidate.other for candidate in verdicts],
            "others": pa.array([candidate.others for candidate in verdicts], numbers),
            "status": pa.array([v.status for v in verdicts.values()], pa.int8()),
            "code": pa.array([v.missing[0] for v in verdicts.values()], pa.uint64()),
            "rest": pa.array([v.missing[1] for v in verdicts.values()], pa.uint64()),
            "rows": pa.array([v.rows for v in verdicts.values()], pa.int64()),
        }
    )


def _keys(state: ValueState) -> pa.Table:
    first = {table: low for table, (low, _) in state.stretches.items()}
    numbers = [
        tuple(first[table] + column for column in key)
        for table in sorted(state.keys, key=first.__getitem__)
        for key in state.keys[table]
    ]
    sides = zip(("one", "two"), zip(*numbers, strict=True), strict=True)
    return pa.table({name: pa.array(side, pa.int32()) for name, side in sides})


def keys(store: Store, record: InclusionRecord, attributes: Sequence[Attribute]) -> Keys:
    """The keys of two columns that a commit stored."""
    files = record.files.get("keys")
    if files is None:
        return {}
    first: dict[str, int] = {}
    for number, attribute in enumerate(attributes):
        first.setdefault(attribute.table, number)
    by_table: dict[str, list[tuple[int, int]]] = {}
    for row in stored(store, files).to_pylist():
        table = attributes[row["one"]].table
        key = (row["one"] - first[table], row["two"] - first[table])
        by_table.setdefault(table, []).append(key)
    return {table: tuple(of_table) for table, of_table in by_table.items()}


def verdicts(store: Store, record: InclusionRecord) -> Verdicts:
    """The verdicts that a commit stored."""
    files = record.files.get("tuples")
    rows = stored(store, files).to_pylist() if files else []
    return {
        Candidate(row["table"], tuple(row["columns"]), row["other"], tuple(row["others"])): Verdict(
            row["status"], (row["code"], row["rest"]), row["rows"]
        )
        for row in rows
    }
