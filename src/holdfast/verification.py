"""Verifying a profile: its files against each other, and all it says against the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from holdfast import counting, inclusion, state
from holdfast.changes import Verification
from holdfast.cover.cover import Cover
from holdfast.cover.evidence import Evidence
from holdfast.differences import key_of
from holdfast.discovery import discover_rows, tuples_of
from holdfast.inclusion import Change, Inclusion
from holdfast.kernels import bitsets
from holdfast.options import Options
from holdfast.placement import Progress, shares
from holdfast.run import Run, about
from holdfast.runner import Runner
from holdfast.state import Table
from holdfast.store import Store
from holdfast.tasks import check as check_tasks


def verify(runner: Runner, store: Store, progress: Progress) -> Verification:
    """Profile the current rows from scratch and compare."""
    with store.writing() as lease:
        body = store.read(lease.version)
        options = Options.from_dict(body["options"])
        kept: dict[str, Table] = {}
        differences: dict[str, list[str]] = {}
        for name, form in body["tables"].items():
            run = Run(runner, store, options, lease, about(progress, name))
            kept[name] = state.load(store, name, form, options)
            differences[name] = list(_verify_table(run, kept[name]))
        if "inclusion" in body and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            held = inclusion.load(store, body["inclusion"])
            for name, sentence in _verify_values(run, held, kept):
                differences[name].append(sentence)
    found = {name: tuple(sentences) for name, sentences in differences.items()}
    return Verification(body["version"], found)


def _verify_values(
    run: Run, kept: Inclusion, tables: dict[str, Table]
) -> Iterator[tuple[str, str]]:
    """What is wrong with the values, and with which table's."""
    rows = [Change(table, table.segments) for table in tables.values()]
    fresh = inclusion.changed(run.runner, kept.emptied, rows, run.place, run.options, run.progress)
    fresh = inclusion.with_tuples(tuples_of(run, tables, {}), fresh, {}, None, run.progress)
    yield from inclusion.differences(run.runner, kept, fresh, run.place)


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
    atoms = len(kept.columns.names)
    none = Evidence.none(atoms)
    cover = Cover.build(atoms, none.masks, run.options.max_columns)
    anew = discover_rows(run, replace(kept, evidence=none, cover=cover))
    names = kept.columns.names
    pairs = [("key", kept.cover.minimal, anew.cover.minimal)]
    if run.options.max_columns is None:
        pairs.append(("non-key", kept.evidence.masks, anew.evidence.masks))
    for what, mine, fresh in pairs:
        for mask in mine[~bitsets.is_member(mine, fresh)]:
            yield f"the profile has the {what} {key_of(mask, names)}, which the rows do not"
        for mask in fresh[~bitsets.is_member(fresh, mine)]:
            yield f"the rows have the {what} {key_of(mask, names)}, which the profile lacks"
    real = kept.evidence.witnesses[:, :, 0] >= 0
    shown = check_tasks.Witnesses(
        view, kept.evidence.masks[real.nonzero()[0]], kept.evidence.witnesses[real]
    )
    for parcel in run.runner.run([(check_tasks.check_witnesses, shown)])[0]:
        if parcel.facts["wrong"]:
            yield f"{parcel.facts['wrong']} pairs of rows do not show the non-key they stand for"
    if kept.counted is not None:
        recounted = counting.count_all(run.runner, view, run.options, run.progress)
        yield from _compare_counts(kept.counted, recounted, names)
    if kept.duplicates != anew.duplicates:
        yield f"the profile counts {kept.duplicates} repeated rows, but there are {anew.duplicates}"


def _compare_counts(
    kept: counting.Counted, fresh: counting.Counted, names: tuple[str, ...]
) -> Iterator[str]:
    same = np.array_equal(kept.sets.masks, fresh.sets.masks)
    if not same or not np.array_equal(kept.sets.counts, fresh.sets.counts):
        yield "the profile's agree-sets or their numbers of pairs are not those of the rows"
    covers = zip(kept.dependencies.covers, fresh.dependencies.covers, strict=True)
    for right, (mine, theirs) in zip(names, covers, strict=True):
        for mask in mine.minimal[~bitsets.is_member(mine.minimal, theirs.minimal)]:
            yield f"the profile has {key_of(mask, names)} → {right}, which the rows do not"
        for mask in theirs.minimal[~bitsets.is_member(theirs.minimal, mine.minimal)]:
            yield f"the rows have {key_of(mask, names)} → {right}, which the profile lacks"
