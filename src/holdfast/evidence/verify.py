"""Kept evidence beside fresh evidence of the same rows, for ``holdfast verify``."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from holdfast.cover.counts import EvidenceCounts
from holdfast.cover.dependencies import KEY
from holdfast.evidence.pairs import PairEvidence
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.model.comparisons import Space
from holdfast.model.names import listed
from holdfast.runtime.run import Run
from holdfast.tasks import check as check_tasks
from holdfast.tasks.view import View


def evidence_differences(
    run: Run, view: View, names: tuple[str, ...], kept: PairEvidence, fresh: PairEvidence
) -> Iterator[str]:
    """How the evidence of a table that is kept differs from a fresh one; and whether the pairs of
    rows that are kept show what they stand for."""
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
