"""What pairs of a table's rows show, whichever way it is known.

Kinds of constraints read the minimal sets of their right-hand sides from here, and do not ask how
they are known. The right-hand sides of a space are *witnessed* (searched for) or *counted* (from
all pairs of rows); keys are always witnessed, because their non-keys are shown with rows. Pairs are
counted once for all spaces that need it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from holdfast.cover.approximate import Atoms, allowed, within
from holdfast.cover.counts import EvidenceCounts
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence import counting, devices, strategy
from holdfast.evidence.agreement import engine as agreement
from holdfast.evidence.comparison import engine as comparison
from holdfast.evidence.comparison.completion import unsatisfiable
from holdfast.evidence.counted import Counted
from holdfast.evidence.counting import Recounted, TooManyEvidences
from holdfast.evidence.strategy import COUNTED, WITNESSED, Choice
from holdfast.evidence.witnessed import Engine, Goal, Witnessed
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import F64, I64, U64
from holdfast.model.comparisons import Space
from holdfast.model.errors import InputError
from holdfast.model.limits import Limits, OutOfTime, Time
from holdfast.runtime.run import Run
from holdfast.table.change import RowChange
from holdfast.table.compaction import RowMoves
from holdfast.table.state import Table


@dataclass(frozen=True)
class Need:
    """What is asked of a table's pairs: the minimal sets of right-hand sides, in a space."""

    space: Space
    rhs: tuple[int, ...]
    limits: Limits
    left_out: str = ""  # why right-hand sides are not looked for that would be

    def joined(self, other: Need) -> Need:
        """Both, of one space."""
        rhs = tuple(sorted({*self.rhs, *other.rhs}))
        limits = self.limits.within(other.limits)
        return Need(self.space, rhs, limits, self.left_out or other.left_out)


@dataclass(frozen=True)
class PairEvidence:
    """Minimal sets for some right-hand sides of a space, and how they are known."""

    space: Space
    choice: Choice
    limits: Limits  # up to which it is complete, and kept
    witnessed: Witnessed | None = None
    counted: Counted | None = None
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # once written, by role
    cache: dict[float | None, Any] = field(default_factory=dict, compare=False, repr=False)
    """All minimal sets by the bound on their error, as a file holds them."""

    read: dict[str, pa.Table] = field(default_factory=dict, compare=False, repr=False)
    """What its files hold, by role, of those that were read."""

    @property
    def covers(self) -> Covers:
        """The covers of all right-hand sides."""
        covers = [known.covers for known in (self.witnessed, self.counted) if known is not None]
        return covers[0].joined(covers[1]) if len(covers) == 2 else covers[0]

    @property
    def counts(self) -> EvidenceCounts | None:
        """All evidence with its numbers of pairs, where pairs are counted."""
        return None if self.counted is None else self.counted.sets

    @property
    def evidence(self) -> Evidence:
        """What is shown with pairs of rows."""
        return (
            Evidence.none(self.space.atoms) if self.witnessed is None else self.witnessed.evidence
        )

    @property
    def witness_ids(self) -> I64:
        """Every row that is referred to."""
        return self.evidence.ids if self.witnessed is None else self.witnessed.ids

    def renumbered(self, moves: RowMoves) -> PairEvidence:
        """The same after rows got other ids; evidence that a batch brought is shown no more."""
        witnessed, counted = self.witnessed, self.counted
        if witnessed is not None:
            witnessed = witnessed.renumbered(moves)
        if counted is not None:
            counted = replace(counted, shown=Evidence.none(self.space.atoms))
        return replace(self, witnessed=witnessed, counted=counted)

    def violating_pair(self, mask: U64, rhs: int) -> tuple[int, int] | None:
        """Two rows that satisfy a set and, unless it is a key's, not the rhs; None where
        no such rows are known. Until a batch is committed they are, for all that it broke: where
        pairs are counted, an evidence that appeared with it did."""
        differing = None if rhs == KEY else rhs
        pair = self.evidence.violating(mask, differing)
        if pair is None and self.counted is not None:
            pair = self.counted.shown.violating(mask, differing)
        return pair

    def approximate(self, rhs: int, max_error: float, time: Time) -> tuple[U64, F64]:
        """The minimal sets that some pairs violate, but at most this share, with their errors;
        :class:`OutOfTime` if they are not found in time."""
        sets = self.counts
        if sets is None:
            raise InputError("errors need all pairs of rows to be counted")
        if not sets.pairs:
            return bitsets.empty(self.space.atoms), np.empty(0)
        longest = self.limits.keys if rhs == KEY else self.limits.dependencies
        groups = np.array(self.space.comparison_of, np.int64)
        without = None if rhs == KEY else rhs
        atoms = Atoms(self.space.atoms, without, groups, unsatisfiable(self.space))
        most = allowed(sets.pairs, max_error)
        minimal = within(sets, atoms, most, longest, lambda: time.is_over)
        if not minimal.complete:
            raise OutOfTime
        violated = minimal.violations > 0
        return minimal.masks[violated], minimal.violations[violated] / sets.pairs

    def error(self, rows: int, lhs: Iterable[int], rhs: int) -> float | None:
        """The share of the pairs of so many rows that satisfy the atoms of the lhs and not that of
        the rhs, or, for a key, satisfy the lhs at all; None: pairs are not counted."""
        if self.counts is None:
            return None
        lhs = {*lhs}
        pairs = rows * (rows - 1) // (2 if self.space.symmetric else 1)
        satisfying = self.counts.satisfying(tuple(sorted(lhs)))
        if rhs != KEY:
            satisfying -= self.counts.satisfying(tuple(sorted({*lhs, rhs})))
        return float(satisfying / pairs) if pairs else 0.0


ByName = dict[str, PairEvidence]
"""Evidence by the name of its space."""


def discover(run: Run, table: Table, needs: Sequence[Need]) -> tuple[ByName, Table]:
    """From the rows of a table that has no evidence yet; the table then has the indexes and
    duplicates that were found."""
    plans = [_Plan.of(run, table, need) for need in needs]
    return _discovered(run, table, plans, sample=run.options.start == "sample")


def rediscover(
    run: Run, table: Table, evidence: Mapping[str, PairEvidence]
) -> tuple[ByName, Table]:
    """The same way, to the same limits, from nothing but the rows."""
    plans = [
        _Plan(before.space, tuple(before.covers.by_rhs), before.limits, before.choice)
        for before in evidence.values()
    ]
    return _discovered(run, table, plans, for_batches=False)


def changed(
    run: Run, change: RowChange, before: Mapping[str, PairEvidence]
) -> tuple[ByName, RowChange]:
    """After a batch: deletes first, then what the new rows bring. The change then has the indexes
    and duplicates that were found."""
    plans = {name: _Plan.again(run, change.after, evidence) for name, evidence in before.items()}
    witnessed: dict[str, Witnessed] = {}
    fresh: list[_Plan] = []  # of which other right-hand sides were witnessed so far
    for name, plan in plans.items():
        known = before[name].witnessed
        if not set(plan.witnessed_rhs) <= set(known.covers.by_rhs if known else ()):
            fresh.append(plan)
        elif known is not None and plan.witnessed_rhs:
            witnessed[name], table = _engine(plan).changed(run, change, known, plan.goal(run))
            change = replace(change, after=table)
    others = [plan for plan in plans.values() if plan not in fresh]
    counted, failed = _recounted(run, change, others, before)
    evidence, table = _together(run, change.after, others, witnessed, counted, failed)
    more, table = _discovered(run, table, fresh)
    evidence |= more
    return {name: evidence[name] for name in before}, replace(change, after=table)


@dataclass(frozen=True)
class _Plan:
    """How the right-hand sides of a space are to be known."""

    space: Space
    rhs: tuple[int, ...]
    limits: Limits
    choice: Choice

    @staticmethod
    def of(run: Run, table: Table, need: Need) -> _Plan:
        """For a table that has no evidence yet."""
        if need.space.agreement and need.rhs == (KEY,):
            choice = strategy.keys_alone(run.options, need.left_out or "not looked for")
        else:
            choice = _chosen(run, table, need.space, None)
        return _Plan(need.space, need.rhs, need.limits, choice)

    @staticmethod
    def again(run: Run, table: Table, evidence: PairEvidence) -> _Plan:
        """For a table that a batch changed."""
        choice = _chosen(run, table, evidence.space, evidence.choice)
        return _Plan(evidence.space, tuple(evidence.covers.by_rhs), evidence.limits, choice)

    @property
    def witnessed_rhs(self) -> tuple[int, ...]:
        """What is searched for."""
        return tuple(rhs for rhs in self.rhs if rhs not in self.counted_rhs)

    @property
    def counted_rhs(self) -> tuple[int, ...]:
        """What is read from the counts of all pairs."""
        if self.choice.strategy != COUNTED:
            return ()
        return tuple(rhs for rhs in self.rhs if not (self.space.agreement and rhs == KEY))

    def goal(self, run: Run, from_sample: bool = False) -> Goal:
        """What to search for; what is counted comes after it."""
        time = run.time.first(0.5) if self.counted_rhs else run.time
        return Goal(self.space, self.witnessed_rhs, self.limits, time, from_sample)

    def evidence(self, witnessed: Witnessed | None, counted: Counted | None) -> PairEvidence:
        """What came of it."""
        limits = self.limits
        for known in (witnessed, counted):
            limits = limits if known is None else limits.within(known.covers.limits)
        choice = self.choice
        if counted is not None and counted.speed is not None:
            device, rate = counted.speed
            choice = replace(choice, device=device, pairs_per_second=rate)
        return PairEvidence(self.space, choice, limits, witnessed, counted)

    def for_good(self, reason: str) -> _Plan:
        """The same, witnessed whatever its size."""
        choice = Choice(WITNESSED, self.choice.seconds, self.choice.limit, reason)
        return replace(self, choice=choice)


def _chosen(run: Run, table: Table, space: Space, now: Choice | None) -> Choice:
    comparisons, tasks = len(space.comparisons), run.runner.tasks
    choice = strategy.choose(
        table.name, table.rows, comparisons, tasks, run.options, now, devices.gpu_rate(run)
    )
    if now is not None and choice.strategy == COUNTED:
        # What counted so far, until something is counted again.
        choice = replace(choice, device=now.device, pairs_per_second=now.pairs_per_second)
    return choice


def _discovered(
    run: Run,
    table: Table,
    plans: Sequence[_Plan],
    sample: bool = False,
    for_batches: bool = True,
) -> tuple[ByName, Table]:
    witnessed: dict[str, Witnessed] = {}
    for plan in plans:
        if plan.witnessed_rhs:
            witnessed[plan.space.name], table = _engine(plan).discover(
                run, table, plan.goal(run, sample), for_batches=for_batches
            )
    counted, failed = _counted(run, table, plans, run.time)
    return _together(run, table, plans, witnessed, counted, failed)


def _engine(plan: _Plan) -> Engine:
    """What searches for the evidence of a space."""
    return agreement if plan.space.agreement else comparison


def _together(
    run: Run,
    table: Table,
    plans: Sequence[_Plan],
    witnessed: Mapping[str, Witnessed],
    counted: Mapping[str, Counted],
    failed: Mapping[str, str],
) -> tuple[ByName, Table]:
    """What is witnessed beside what is counted. Where counting failed, all of a space is witnessed,
    for good."""
    evidence: ByName = {}
    for plan in plans:
        name = plan.space.name
        if name in failed:
            again, table = _discovered(run, table, [plan.for_good(failed[name])])
            evidence |= again
        else:
            evidence[name] = plan.evidence(witnessed.get(name), counted.get(name))
    return evidence, table


_Counts = tuple[dict[str, Counted], dict[str, str]]
"""Counted evidence by space, and why that of other spaces cannot be had."""


def _counted(
    run: Run, table: Table, plans: Sequence[_Plan], time: Time, with_pairs: bool = False
) -> _Counts:
    """From all pairs of rows."""
    by_name: dict[str, Counted] = {}
    counts, failed = _tried(
        plans, lambda spaces: counting.count_all(run, table, spaces, time, with_pairs), run
    )
    for plan in plans:
        name = plan.space.name
        if name in counts:
            try:
                by_name[name] = Counted.of_pairs(
                    run, counts[name], plan.space, plan.counted_rhs, plan.limits, time.first(0.5)
                )
            except OutOfTime:
                failed[name] = strategy.NO_TIME
    if strategy.NO_TIME in failed.values() and _asked_for(run):
        raise InputError(strategy.no_time(table.name, run.options))
    return by_name, failed


def _asked_for(run: Run) -> bool:
    """Whether nothing but counts will do."""
    return run.options.evidence == COUNTED or run.options.max_error is not None


def _recounted(
    run: Run, change: RowChange, plans: Sequence[_Plan], before: Mapping[str, PairEvidence]
) -> _Counts:
    """After a batch: what was counted changes, other spaces begin."""
    counted_before = {
        name: evidence.counted for name, evidence in before.items() if evidence.counted is not None
    }
    going_on = [plan for plan in plans if plan.space.name in counted_before]
    sets = {name: evidence.sets for name, evidence in counted_before.items()}
    # A table whose counts are asked for keeps them, however long its batches take.
    time = Time() if _asked_for(run) else run.time
    counts, failed = _tried(
        going_on, lambda spaces: counting.count_batch(run, change, spaces, sets, time), run
    )
    changed_counts = {
        plan.space.name: counted_before[plan.space.name].changed(
            run, counts[plan.space.name], plan.limits
        )
        for plan in going_on
        if plan.space.name in counts
    }
    others = [plan for plan in plans if plan.space.name not in counted_before]
    more, not_these = _counted(run, change.after, others, time, with_pairs=True)
    return changed_counts | more, failed | not_these


def _tried(
    plans: Sequence[_Plan],
    count: Callable[[Sequence[Space]], dict[str, Recounted]],
    run: Run,
) -> tuple[dict[str, Recounted], dict[str, str]]:
    """Count the pairs of rows for all spaces that need it, but those that have too many."""
    spaces = [plan.space for plan in plans if plan.counted_rhs]
    failed: dict[str, str] = {}
    while spaces:
        try:
            with run.stage("count"):
                return count(spaces), failed
        except TooManyEvidences as error:
            failed[error.space] = strategy.TOO_MANY
            spaces = [space for space in spaces if space.name != error.space]
        except OutOfTime:
            failed |= {space.name: strategy.NO_TIME for space in spaces}
            spaces = []
    return {}, failed
