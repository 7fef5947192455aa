"""The files of values: clusters, shared values, and n-ary candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.families.inclusion_dependencies.n_ary import Candidate, Verdict, Verdicts
from holdfast.kernels import bitsets
from holdfast.model.commits import InclusionRecord
from holdfast.model.constraints import Attribute
from holdfast.store import Lease, Store
from holdfast.store.codecs import masks_of, matrix_of, stored, write
from holdfast.store.differences import saved


def record(state: Inclusion) -> InclusionRecord:
    """What a commit stores."""
    attributes = tuple((each.table, each.column) for each in state.attributes)
    return InclusionRecord(attributes, state.families, state.runs, state.files)


def save(store: Store, lease: Lease, state: Inclusion, before: Inclusion | None) -> Inclusion:
    """Write what changed."""
    files = dict(before.files) if before else {}
    if before is None or not (
        np.array_equal(before.masks, state.masks) and np.array_equal(before.counts, state.counts)
    ):
        clusters = pa.table({"mask": masks_of(state.masks), "values": state.counts})
        files["clusters"] = saved(store, lease, "clusters", clusters, files.get("clusters", ()))
    if before is None or not np.array_equal(before.overlaps, state.overlaps):
        one, two = np.nonzero(np.triu(state.overlaps))
        shared = {
            "one": one.astype(np.int32),
            "two": two.astype(np.int32),
            "values": state.overlaps[one, two],
        }
        known = files.get("inclusions", ())
        files["inclusions"] = saved(store, lease, "inclusions", pa.table(shared), known)
    if state.tuples and (before is None or before.tuples != state.tuples):
        files["tuples"] = (write(store, lease, "tuples", _tuples(state.tuples)),)
    elif not state.tuples:
        files.pop("tuples", None)
    return replace(state, files=files)


def _tuples(verdicts: Verdicts) -> pa.Table:
    numbers = pa.list_(pa.int32())
    return pa.table(
        {
            "table": [each.table for each in verdicts],
            "columns": pa.array([each.columns for each in verdicts], numbers),
            "other": [each.other for each in verdicts],
            "others": pa.array([each.others for each in verdicts], numbers),
            "status": pa.array([v.status for v in verdicts.values()], pa.int8()),
            "code": pa.array([v.missing[0] for v in verdicts.values()], pa.uint64()),
            "rest": pa.array([v.missing[1] for v in verdicts.values()], pa.uint64()),
            "rows": pa.array([v.rows for v in verdicts.values()], pa.int64()),
        }
    )


def _verdicts(kept: pa.Table) -> Verdicts:
    return {
        Candidate(row["table"], tuple(row["columns"]), row["other"], tuple(row["others"])): Verdict(
            row["status"], (row["code"], row["rest"]), row["rows"]
        )
        for row in kept.to_pylist()
    }


def load(store: Store, record: InclusionRecord) -> Inclusion:
    """The state that a commit stored."""
    count, files = len(record.attributes), record.files
    clusters = stored(store, files["clusters"])
    shared = stored(store, files["inclusions"])
    overlaps = np.zeros((count, count), np.int64)
    one, two = shared.column("one").to_numpy(), shared.column("two").to_numpy()
    overlaps[one, two] = overlaps[two, one] = shared.column("values").to_numpy()
    return Inclusion(
        tuple(Attribute(table, column) for table, column in record.attributes),
        record.families,
        record.runs,
        matrix_of(clusters.column("mask"), bitsets.words_for(count)),
        clusters.column("values").to_numpy().astype(np.int64),
        overlaps,
        _verdicts(stored(store, files["tuples"])) if "tuples" in files else {},
        files,
    )
