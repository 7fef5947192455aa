"""Verifying a profile: its files against each other, and all it says against the rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from holdfast.cover.counts import EvidenceCounts
from holdfast.cover.dependencies import KEY
from holdfast.evidence import pairs
from holdfast.evidence.pairs import PairEvidence
from holdfast.expectations import state as expectations
from holdfast.expectations.state import Expected
from holdfast.flow.profile import by_table
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.kinds.table_state import TableState
from holdfast.model.commits import Header
from holdfast.model.comparisons import Space
from holdfast.model.names import listed
from holdfast.model.progress import Progress
from holdfast.model.versions import Verification
from holdfast.runtime.result import error_of
from holdfast.runtime.run import Run, about, watched
from holdfast.runtime.runner import Runner
from holdfast.runtime.sealed import seal_of, together
from holdfast.store import Store
from holdfast.store.files import is_kept
from holdfast.table import columns
from holdfast.table.placement import shares
from holdfast.tasks import check as check_tasks
from holdfast.tasks.view import View
from holdfast.values.state import ValueState


def verify(runner: Runner, store: Store, progress: Progress) -> Verification:
    """Profile the current rows from scratch and compare."""
    with (
        store.trying() as lease,
        watched(runner, store, lease, progress) as (runner, progress),
    ):
        version = store.read(lease.version)
        _verify_files(runner, store, version)
        # However long the search takes: it goes as far as what it is compared with.
        options = replace(version.options, time_budget=None)
        kept = {name: TableState.load(store, version, name) for name in version.tables}

        def anew(runner: Runner, name: str) -> list[str]:
            run = Run(runner, store, options, lease, about(progress, name))
            return list(_verify_table(run, kept[name]))

        differences = by_table(runner, kept, anew, options)
        if version.inclusion and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            tables = {name: each.table for name, each in kept.items()}
            for name, sentence in ValueState.load(store, version.inclusion).compare(run, tables):
                differences[name].append(sentence)
        if version.expectations and not any(differences.values()):
            run = Run(runner, store, options, lease, progress)
            tables = {name: each.table for name, each in kept.items()}
            expected = Expected.stored(version, tables)
            for name, sentence in expectations.differences(run, expected, tables):
                differences[name].append(sentence)
    sentences = {name: tuple(some) for name, some in differences.items()}
    return Verification(version.version, sentences)


def _verify_files(runner: Runner, store: Store, version: Header) -> None:
    """Check every data file that a version names, in one job, and those that stay of the versions
    before it; an error that names all that are damaged, because what else would be found comes
    from them."""
    names = sorted(store.files(version.version))
    piles: list[list[str]] = [[] for _ in range(max(1, min(runner.tasks, len(names))))]
    for name in sorted(names, key=lambda each: -_size(each)):
        min(piles, key=lambda pile: sum(map(_size, pile))).append(name)
    calls = [(check_tasks.check_files, check_tasks.Files(store.path, tuple(p))) for p in piles]
    task_results = [task_result for result in runner.run(calls) for task_result in result]
    wrong = [
        error_of(facts) for task_result in task_results for facts in task_result.facts["wrong"]
    ]
    versions = range(1, version.version)
    earlier = {name for old in versions for name in store.files(old) if is_kept(name)}
    wrong += store.damaged(sorted(earlier.difference(names)))
    if wrong:
        raise together(wrong)


def _size(name: str) -> int:
    seal = seal_of(name)
    return seal.size if seal else 0


def _verify_table(run: Run, kept: TableState) -> Iterator[str]:
    table = kept.table
    view = table.view(run.store.path, run.options)
    run.progress("verify", rows=table.rows)
    calls = [
        (check_tasks.check, check_tasks.Check(share, table.columns.schema))
        for share in shares(view, run.runner.tasks)
    ]
    task_results = [task_result for result in run.runner.run(calls) for task_result in result]
    wrong = [line for task_result in task_results for line in task_result.facts["wrong"]]
    if wrong:
        # What else would be found comes from damaged files.
        yield from wrong
        return
    yield from columns.differences(table, task_results, run.options.keep_rows)
    if not kept.evidence:
        return
    fresh, anew = pairs.rediscover(run, table, kept.evidence)
    for name, evidence in kept.evidence.items():
        yield from _verify_evidence(run, view, table.columns.names, evidence, fresh[name])
    if table.duplicates != anew.duplicates:
        yield (
            f"the profile counts {table.duplicates} repeated rows, but there are {anew.duplicates}"
        )


def _verify_evidence(
    run: Run, view: View, names: tuple[str, ...], kept: PairEvidence, fresh: PairEvidence
) -> Iterator[str]:
    if not _same_counts(kept.counts, fresh.counts):
        what = "agree-sets" if kept.space.agreement else "comparisons of rows"
        yield f"the profile's {what} or their numbers of pairs are not those of the rows"
    mine, theirs = kept.covers, fresh.covers
    for rhs in mine.by_rhs:
        pair = mine.by_rhs[rhs].minimal, theirs.by_rhs[rhs].minimal
        yield from _compare(_what(kept.space, rhs, names), *pair, kept.space, names)
    if kept.space.agreement and kept.limits.keys is None:
        pair = mine.keys.evidence, theirs.keys.evidence
        yield from _compare("non-key", *pair, kept.space, names)
    evidence = kept.evidence
    real = evidence.witnesses[:, :, 0] >= 0
    if kept.space.agreement:
        shown = check_tasks.Witnesses(
            view, evidence.masks[real.nonzero()[0]], evidence.witnesses[real]
        )
        for task_result in run.runner.run([(check_tasks.check_witnesses, shown)])[0]:
            if wrong_pairs := task_result.facts["wrong"]:
                yield f"{wrong_pairs} pairs of rows do not show the evidence they stand for"


def _what(space: Space, rhs: int, names: tuple[str, ...]) -> str:
    if not space.agreement:
        return "minimal set of comparisons"
    return "key" if rhs == KEY else f"dependency of {names[rhs]} on"


def _compare(
    what: str, mine: U64, fresh: U64, space: Space, names: tuple[str, ...]
) -> Iterator[str]:
    """What the profile should not say, and what it should."""

    def written(mask: U64) -> str:
        return listed(space.written(bitsets.to_columns(mask[None, :])[0], names))

    for mask in mine[~bitsets.is_member(mine, fresh)]:
        yield f"the profile has the {what} {written(mask)}, which the rows do not"
    for mask in fresh[~bitsets.is_member(fresh, mine)]:
        yield f"the rows have the {what} {written(mask)}, which the profile lacks"


def _same_counts(kept: EvidenceCounts | None, fresh: EvidenceCounts | None) -> bool:
    if kept is None or fresh is None:
        return kept is fresh
    return np.array_equal(kept.masks, fresh.masks) and np.array_equal(kept.counts, fresh.counts)
