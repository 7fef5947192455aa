"""Writing a version: the commit that names the files of all that is known."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from holdfast.evidence.storage import KEPT
from holdfast.families.inclusion_dependencies import storage
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.families.known import Known
from holdfast.store.run import Run
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks.segments import Segment


def commit(
    run: Run,
    known: Mapping[str, Known],
    others: Mapping[str, dict[str, Any]],
    values: Inclusion | None,
    batch: dict[str, Any] | None,
    facts: dict[str, Any],
) -> int:
    """Commit a version: the tables that changed, and the forms of the others."""
    forms = {**others, **{name: _form(run, each) for name, each in known.items()}}
    files: list[str] = []
    keep: list[str] = []
    for form in forms.values():
        for evidence in form["evidence"].values():
            named = evidence["files"]
            keep += [named[name] for name in KEPT if name in named]
            files += named.values()
        for segment in form["segments"]:
            files += Segment.from_dict(segment).files
    if values is not None:
        facts = {**facts, "inclusion": storage.to_dict(values)}
        files += values.data_files
        keep += [values.files[name] for name in ("inclusions", "tuples") if name in values.files]
    body = {
        "options": run.options.to_dict(),
        "tables": forms,
        "files": files,
        "keep": keep,
        "batch": batch,
        **facts,
    }
    return run.store.publish(body, run.lease)


def _form(run: Run, known: Known) -> dict[str, Any]:
    table, form = known.table, known.to_dict()
    twice = np.array(table.repeated[0][:1] if table.repeated else [], np.int64)
    shown = rows_as_text(run.store.path, table.segments, table.columns.names, twice)
    form["duplicated"] = [json.loads(text) for text in shown.values()]
    form["key_count"] = 0
    if "agreement" in known.evidence:
        covers = known.evidence["agreement"].covers
        form["key_count"] = len(covers.keys.minimal)
        if covers.columns:
            form["fd_count"] = len(covers.dependencies[0])
    return form
