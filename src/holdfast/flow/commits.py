"""Writing a version: the commit that names the files of all that is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from holdfast.kinds import registry
from holdfast.kinds.table_state import TableState
from holdfast.model.commits import Commit, TableRecord
from holdfast.runtime.run import Run
from holdfast.store import GROUPED, Lease, Store
from holdfast.store.files import is_kept
from holdfast.tasks.shown import rows_as_text
from holdfast.values.state import ValueState


def commit(
    run: Run,
    known: Mapping[str, TableState],
    values: ValueState | None,
    version: Commit | None = None,
) -> int:
    """Commit a version: the tables that changed, and the others as ``version`` has them, together
    with what else it says."""
    return publish(run.store, run.lease, said(run, known, values, version))


def said(
    run: Run,
    known: Mapping[str, TableState],
    values: ValueState | None,
    version: Commit | None = None,
) -> Commit:
    """What :func:`commit` commits."""
    version = version or Commit()
    tables = version.tables | {name: _record(run, each) for name, each in known.items()}
    record = None if values is None else values.record
    return replace(version, options=run.options, tables=tables, inclusion=record)


def publish(store: Store, lease: Lease, version: Commit) -> int:
    """Commit a version with the files that it names; its tables name theirs."""
    expected = {standing.rule for standing in version.expectations}
    sides = version.tuples.sides if version.tuples else ()
    if any(side.grouped or (side.of is not None and side.of not in expected) for side in sides):
        store.require(GROUPED)
    parts = [version.inclusion, version.tuples]
    files = [file for each in parts if each is not None for file in each.data_files]
    keep = tuple(file for file in files if is_kept(file))
    return store.publish(replace(version, files=tuple(files), keep=keep), lease)


def _record(run: Run, known: TableState) -> TableRecord:
    table = known.table
    twice = np.array(table.repeated[0][:1] if table.repeated else [], np.int64)
    shown = rows_as_text(run.store.path, table.segments, table.columns.names, twice)
    counts = {kind.name: kind.count(known) for kind in registry.REGISTRY.values()}
    return replace(
        known.record,
        duplicated=tuple(json.loads(text) for text in shown.values()),
        counts={name: count for name, count in counts.items() if count is not None},
    )
