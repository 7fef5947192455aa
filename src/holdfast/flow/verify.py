"""Verifying a profile: its files against each other, and all it says against the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.dependencies import KEY
from holdfast.evidence.counted import Counted
from holdfast.evidence.strategy import COUNTED
from holdfast.families.inclusion_dependencies import changes as inclusion_changes
from holdfast.families.inclusion_dependencies import storage as inclusion_storage
from holdfast.families.inclusion_dependencies import verify as inclusion_verify
from holdfast.families.inclusion_dependencies.changes import Change
from holdfast.families.inclusion_dependencies.clusters import Inclusion
from holdfast.flow.differences import key_of
from holdfast.flow.discovery import counted_anew, discover_rows, tuples_of
from holdfast.kernels import bitsets
from holdfast.model.changes import Verification
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.store import Store
from holdfast.store.run import Run, about
from holdfast.table import state
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import check as check_tasks
from holdfast.tasks.runner import Runner

U64 = NDArray[np.uint64]


def verify(runner: Runner, store: Store, progress: Progress) -> Verification:
    """Profile the current rows from scratch and compare."""
    with store.writing() as lease:
        body = store.read(lease.version)
        # However long the search takes: it goes as far as what it is compared with.
        options = replace(Options.from_dict(body["options"]), time_budget=None)
        kept: dict[str, Table] = {}
        differences: dict[str, list[str]] = {}
        for name, form in body["tables"].items():
            run = Run(runner, store, options, lease, about(progress, name))
            kept[name] = state.load(store, name, form)
            differences[name] = list(_verify_table(run, kept[name]))
        if "inclusion" in body and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            held = inclusion_storage.load(store, body["inclusion"])
            for name, sentence in _verify_values(run, held, kept):
                differences[name].append(sentence)
    found = {name: tuple(sentences) for name, sentences in differences.items()}
    return Verification(body["version"], found)


def _verify_values(
    run: Run, kept: Inclusion, tables: dict[str, Table]
) -> Iterator[tuple[str, str]]:
    """What is wrong with the values, and with which table's."""
    rows = [Change(table, table.segments) for table in tables.values()]
    fresh = inclusion_changes.changed(
        run.runner, kept.emptied, rows, run.place, run.options, run.progress
    )
    fresh = inclusion_changes.with_tuples(tuples_of(run, tables, {}), fresh, {}, None, run.progress)
    yield from inclusion_verify.differences(run.runner, kept, fresh, run.place)


def _verify_table(run: Run, kept: Table) -> Iterator[str]:
    view = kept.view(run.store.path, run.options)
    run.progress("verify", rows=kept.rows)
    calls = [
        (check_tasks.check, check_tasks.Check(share, kept.columns.schema))
        for share in shares(view, run.runner.tasks)
    ]
    wrong = [line for r in run.runner.run(calls) for p in r for line in p.facts["wrong"]]
    if wrong:
        # What else would be found comes from damaged files.
        yield from wrong
        return
    if not run.options.seeks_keys:
        return
    anew = discover_rows(run, kept)
    names = kept.columns.names
    if kept.way == COUNTED:
        anew = counted_anew(run, replace(anew, counted=None))
        if not _same_counts(kept.counted, anew.counted):
            yield "the profile's agree-sets or their numbers of pairs are not those of the rows"
    mine, fresh = kept.covers, anew.covers
    for side in mine.by_side:
        what = "key" if side == KEY else f"dependency of {names[side]} on"
        pair = mine.by_side[side].minimal, fresh.by_side[side].minimal
        yield from _compare(what, *pair, names)
    if kept.limits.keys is None:
        yield from _compare("non-key", mine.keys.evidence, fresh.keys.evidence, names)
    real = kept.evidence.witnesses[:, :, 0] >= 0
    shown = check_tasks.Witnesses(
        view, kept.evidence.masks[real.nonzero()[0]], kept.evidence.witnesses[real]
    )
    for parcel in run.runner.run([(check_tasks.check_witnesses, shown)])[0]:
        if parcel.facts["wrong"]:
            yield f"{parcel.facts['wrong']} pairs of rows do not show the evidence they stand for"
    if kept.duplicates != anew.duplicates:
        yield f"the profile counts {kept.duplicates} repeated rows, but there are {anew.duplicates}"


def _compare(what: str, mine: U64, fresh: U64, names: tuple[str, ...]) -> Iterator[str]:
    """What the profile should not say, and what it should."""
    for mask in mine[~bitsets.is_member(mine, fresh)]:
        yield f"the profile has the {what} {key_of(mask, names)}, which the rows do not"
    for mask in fresh[~bitsets.is_member(fresh, mine)]:
        yield f"the rows have the {what} {key_of(mask, names)}, which the profile lacks"


def _same_counts(kept: Counted | None, fresh: Counted | None) -> bool:
    if kept is None or fresh is None:
        return kept is fresh
    same = np.array_equal(kept.sets.masks, fresh.sets.masks)
    return same and np.array_equal(kept.sets.counts, fresh.sets.counts)
