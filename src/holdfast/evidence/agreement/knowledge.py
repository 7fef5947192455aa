"""What is known of a table's pairs of rows while candidates are validated, and what one search
adds to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from holdfast.cover import candidates as cands
from holdfast.cover.candidates import ByRhs
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.agreement.search_plans import (
    IndexSearch,
    SearchPlan,
    SurveyedRows,
)
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.kernels.bitsets import Tick
from holdfast.kernels.evidence import Candidates
from holdfast.model.limits import Limits
from holdfast.runtime.result import TaskResult
from holdfast.runtime.sealed import discard

_AT_ONCE = 16
"""Files that are removed at once."""


@dataclass(frozen=True)
class Known:
    """What is known of pairs of rows."""

    evidence: Evidence
    covers: Covers  # of the right-hand sides that are looked for
    validated: ByRhs  # candidates against which all evidence is known
    underestimated: U64  # left-hand sides with more combinations of values than expected
    undivided: U64  # and those with more of heavy values

    @staticmethod
    def of(evidence: Evidence, covers: Covers, validated: ByRhs) -> Known:
        """Evidence, and the candidates that it is all known against."""
        none = bitsets.empty(covers.atoms)
        return Known(evidence, covers, validated, none, none)

    def with_evidence(self, evidence: list[Evidence], depth: Deepening) -> Known:
        """With more evidence; the covers may have to become shorter for that."""
        none = self.evidence.masks[:0]
        masks = bitsets.distinct(np.concatenate([none, *(more.masks for more in evidence)]))
        if not len(masks):
            return self
        new = masks[~bitsets.is_member(masks, self.evidence.masks)]
        before = self.covers

        def change(limits: Limits, tick: Tick) -> Covers:
            return before.to(limits).changed(new, none, none, tick)

        covers = depth.attempt(before.limits, change)
        joined = self.evidence.joined(evidence).only(covers.evidence)
        return replace(self, evidence=joined, covers=covers)

    def with_validated(self, candidates: ByRhs) -> Known:
        """With further candidates that hold."""
        return replace(self, validated=cands.joined(self.validated, candidates))

    def after(self, plan: SearchPlan, results: Sequence[TaskResult]) -> Known:
        """After a search: with the candidates that it validates, and those that had more
        combinations of values than expected."""
        full = [plan.candidates.lhs[r.arrays["full"]] for r in results if "full" in r.arrays]
        rhs = validated_rhs(plan, results)
        known = self.with_validated(cands.apart(plan.candidates, rhs, self.validated))
        if isinstance(plan, IndexSearch):
            return replace(known, undivided=np.concatenate([known.undivided, *full]))
        return replace(known, underestimated=np.concatenate([known.underestimated, *full]))


@dataclass(frozen=True)
class KeptFiles:
    """Files that searches have written, for later rounds."""

    surveyed: tuple[SurveyedRows, ...] = ()  # rows that are still to be merged
    lists: tuple[str, ...] = ()  # of pairs of rows
    listed_sets: tuple[U64, ...] = ()  # the sets, all pairs that agree in which are listed

    def after(self, plan: SearchPlan, results: Sequence[TaskResult]) -> KeptFiles:
        """With what a search has written."""
        surveyed, lists, listed_sets = self.surveyed, self.lists, self.listed_sets
        written = [result.facts["listed"] for result in results if "listed" in result.facts]
        if written:
            with_all_pairs = validated_rhs(plan, results)[:, -1] != 0
            lists = (*lists, *written)
            listed_sets = (*listed_sets, plan.candidates.lhs[with_all_pairs])
        files = tuple(result.facts["kept"] for result in results if "kept" in result.facts)
        if files:
            compared = Candidates(plan.candidates.lhs, compared_rhs(plan, results))
            surveyed = (*surveyed, SurveyedRows(compared, files))
        return KeptFiles(surveyed, lists, listed_sets)

    def remove(self, root: str) -> None:
        """Remove the files."""
        files = [*(file for rows in self.surveyed for file in rows.files), *self.lists]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            list(pool.map(lambda file: discard(Path(root) / file), files))


@dataclass(frozen=True)
class RepeatedRows:
    """Rows of a batch that repeat an earlier one."""

    count: int = 0
    pairs: tuple[list[int], ...] = ()  # a few of them, each after the one that it repeats

    def after(self, results: Iterable[TaskResult]) -> RepeatedRows:
        """With those that tasks have counted."""
        facts = [result.facts for result in results]
        count = sum(of_task["duplicates"] for of_task in facts)
        pairs = (pair for of_task in facts for pair in of_task["pairs"])
        return RepeatedRows(self.count + count, (*self.pairs, *pairs))


def validated_rhs(plan: SearchPlan, results: Sequence[TaskResult]) -> U64:
    """The right-hand sides against which all evidence is known now, as bits per candidate."""
    rhs = compared_rhs(plan, results)
    return rhs if plan.validates else np.zeros_like(rhs)


def compared_rhs(plan: SearchPlan, results: Sequence[TaskResult]) -> U64:
    """The right-hand sides against which all evidence is known that a search could find, as bits
    per candidate."""
    rhs = plan.candidates.rhs.copy()
    if not all(result.facts["complete"] for result in results):
        rhs[:] = 0
    for result in results:
        rhs[result.arrays["refuted"]] &= ~result.arrays["partial"]
    return rhs


def evidence_of(result: TaskResult) -> Evidence:
    """The evidence that a task found."""
    return Evidence.found(*(result.arrays[name] for name in ("masks", "witnesses", "seen")))
