"""Writing a version: the files of what changed, then the commit that names them all."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from holdfast.families.inclusion_dependencies import storage as inclusion_storage
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.kernels import bitsets
from holdfast.model.options import Options
from holdfast.store import Lease, Store
from holdfast.store.run import Run
from holdfast.table import state
from holdfast.table.state import Table
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.segments import Segment

KEPT = ("keys", "fds", "recount")
"""The kinds of a table's files that stay readable when later versions have others."""


def saved(run: Run, table: Table, before: Table | None) -> Table:
    """Write the table's files, with the rows that are shown as witnesses of non-keys."""
    text: dict[int, str] = {}
    if before is None or not state.same_evidence(before, table):
        shown = bitsets.is_member(table.evidence.masks, table.covers.keys.evidence)
        ids = table.evidence.witnesses[shown, 0].ravel()
        text = state.shown(run.store, before) if before else {}
        new = ids[~np.isin(ids, [*text])]
        text |= rows_as_text(run.store.path, table.segments, table.columns.names, new)
    return state.save(run.store, run.lease, run.options, table, before, text)


def commit(
    store: Store,
    lease: Lease,
    options: Options,
    tables: dict[str, Table],
    others: dict[str, Any],
    values: Inclusion | None,
    batch: dict[str, Any] | None,
    facts: dict[str, Any],
) -> int:
    forms = dict(others)
    for name, table in tables.items():
        form = table.to_dict()
        twice = np.array(table.repeated[0][:1] if table.repeated else [], np.int64)
        shown = rows_as_text(store.path, table.segments, table.columns.names, twice)
        form["duplicated"] = [json.loads(text) for text in shown.values()]
        form["key_count"] = len(table.covers.keys.minimal) if options.seeks_keys else 0
        if table.way is not None:
            form["fd_count"] = len(table.covers.dependencies[0])
        forms[name] = form
    files, keep = [], []
    for form in forms.values():
        keep += [form["files"][name] for name in KEPT if name in form["files"]]
        files += [form["files"][name] for name in state.FILES if name in form["files"]]
        for segment in form["segments"]:
            files += Segment.from_dict(segment).files
    if values is not None:
        facts = {**facts, "inclusion": inclusion_storage.to_dict(values)}
        files += values.data_files
        keep += [values.files[name] for name in ("inclusions", "tuples") if name in values.files]
    body = {
        "options": options.to_dict(),
        "tables": forms,
        "files": files,
        "keep": keep,
        "batch": batch,
        **facts,
    }
    return store.publish(body, lease)
