"""What pairs of a table's rows show, whichever way it is known.

Kinds of constraints read the minimal sets of their right sides from here, and do not ask how they
are known. Right sides are *witnessed* (searched for) or *counted* (from all pairs of rows); keys
are always witnessed, because their non-keys are shown with rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.cover import deepening
from holdfast.cover.agree import AgreeSets
from holdfast.cover.approximate import allowed, within
from holdfast.cover.deepening import Deepening, OutOfTime
from holdfast.cover.dependencies import KEY, Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence import counting, strategy
from holdfast.evidence.counted import Counted
from holdfast.evidence.strategy import COUNTED, Choice
from holdfast.evidence.witnessed import Witnessed
from holdfast.kernels import bitsets
from holdfast.model.errors import InputError
from holdfast.model.limits import Limits
from holdfast.store.run import Run
from holdfast.table.change import RowChange
from holdfast.table.compaction import Moves
from holdfast.table.state import Table
from holdfast.tasks.runner import Runner
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
F64 = NDArray[np.float64]


@dataclass(frozen=True)
class PairEvidence:
    """Minimal sets for some right sides, and how they are known."""

    choice: Choice
    limits: Limits  # up to which it is complete, and kept
    witnessed: Witnessed
    counted: Counted | None = None
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # once written, by role
    cache: dict[float | None, Any] = field(default_factory=dict, compare=False, repr=False)
    """All minimal sets by the bound on their error, as a file holds them."""

    @property
    def covers(self) -> Covers:
        """The covers of all right sides."""
        mine = self.witnessed.covers
        return mine if self.counted is None else mine.joined(self.counted.covers)

    @property
    def counts(self) -> AgreeSets | None:
        """All agree-sets with their numbers of pairs, where pairs are counted."""
        return None if self.counted is None else self.counted.sets

    @property
    def evidence(self) -> Evidence:
        """What is shown with pairs of rows."""
        return self.witnessed.evidence

    @property
    def witness_ids(self) -> I64:
        """Every row that is referred to."""
        return self.evidence.ids

    def renumbered(self, moves: Moves) -> PairEvidence:
        """The same after rows got other ids; agree-sets that a batch brought are shown no more."""
        evidence = self.evidence.renumbered(moves.old, moves.new)
        counted = self.counted
        if counted is not None:
            counted = replace(counted, shown=Evidence.none(self.covers.atoms))
        witnessed = replace(self.witnessed, evidence=evidence)
        return replace(self, witnessed=witnessed, counted=counted)

    @staticmethod
    def discover(run: Run, table: Table, limits: Limits) -> tuple[PairEvidence, Table]:
        """From the rows of a table that has none yet."""
        choice = _chosen(run, table, None)
        return _discover(run, table, choice, limits, sample=run.options.start == "sample")

    def anew(self, run: Run, table: Table) -> tuple[PairEvidence, Table]:
        """The same way, to the same limits, from nothing but the rows."""
        return _discover(run, table, self.choice, self.limits, sample=False)

    def changed(self, run: Run, change: RowChange) -> tuple[PairEvidence, RowChange]:
        """After a batch: deletes first, then what the new rows bring."""
        depth = _depth(run, self.choice, self.limits)
        witnessed = self.witnessed
        if len(change.gone):
            witnessed = witnessed.without(change.gone, depth)
        table = change.after
        choice = _chosen(run, table, self.choice)
        rhs = _witnessed_rhs(choice, len(table.columns.names))
        if not set(rhs) <= set(witnessed.covers.by_side):
            found, table = _discover(run, table, choice, self.limits, sample=False)
            return found, replace(change, after=table)
        witnessed, table = witnessed.only(rhs).validated(
            run, table, self.witnessed.covers, change.added, depth
        )
        with run.stage("index"):
            table = witnessed.indexed(run, table)
        change = replace(change, after=table)
        if choice.strategy != COUNTED:
            return _found(choice, self.limits, witnessed, None), change
        if self.counted is not None:
            counted = self.counted.changed(run, change, self.limits)
            return _found(choice, self.limits, witnessed, counted), change
        found, table = _with_counts(run, table, choice, self.limits, witnessed, with_pairs=True)
        return found, replace(change, after=table)

    def violating_pair(self, mask: U64, rhs: int) -> tuple[int, int] | None:
        """Two rows that agree on a set and, unless it is a key's, not on the right side; None where
        no such rows are known. Until a batch is committed they are, for all that it broke: where
        pairs are counted, an agree-set that appeared with it did."""
        if rhs == KEY:
            return self.evidence.violating(mask, None)
        found = self.evidence.violating(mask, rhs)
        if found is None and self.counted is not None:
            found = self.counted.shown.violating(mask, rhs)
        return found

    def approximate(self, rhs: int, max_error: float) -> tuple[U64, F64]:
        """The minimal sets that some pairs violate, but at most this share, with their errors."""
        sets = self.counts
        if sets is None:
            raise InputError("errors need all pairs of rows to be counted")
        if not sets.pairs:
            return bitsets.empty(self.covers.atoms), np.empty(0)
        longest = self.limits.keys if rhs == KEY else self.limits.dependencies
        target = None if rhs == KEY else rhs
        most = allowed(sets.pairs, max_error)
        found = within(sets, self.covers.atoms, target, most, longest)
        some = found.violations > 0
        return found.masks[some], found.violations[some] / sets.pairs

    def error(
        self, running: Callable[[], Runner], view: View, rows: int, lhs: Iterable[int], rhs: int
    ) -> float:
        """The share of row pairs that agree on the lhs and differ on the rhs, or, for a key, agree
        at all."""
        lhs = tuple(sorted(set(lhs)))
        pairs = rows * (rows - 1) // 2
        if not pairs:
            return 0.0
        wanted = (lhs,) if rhs == KEY else (lhs, tuple(sorted({*lhs, rhs})))
        if self.counts is not None:
            agreeing = [self.counts.agreeing(each) for each in wanted]
        else:
            agreeing = counting.agreeing(running(), view, wanted)
        return float((agreeing[0] - sum(agreeing[1:])) / pairs)


def _discover(
    run: Run, table: Table, choice: Choice, limits: Limits, sample: bool
) -> tuple[PairEvidence, Table]:
    rhs = _witnessed_rhs(choice, len(table.columns.names))
    search = Witnessed.discover_from_sample if sample else Witnessed.discover
    witnessed, table = search(run, table, rhs, limits, _depth(run, choice, limits))
    with run.stage("index"):
        table = witnessed.indexed(run, table)
    if choice.strategy != COUNTED:
        return _found(choice, limits, witnessed, None), table
    return _with_counts(run, table, choice, limits, witnessed)


def _with_counts(
    run: Run,
    table: Table,
    choice: Choice,
    limits: Limits,
    witnessed: Witnessed,
    with_pairs: bool = False,
) -> tuple[PairEvidence, Table]:
    """All pairs counted, beside what is witnessed; all is witnessed, for good, if there is no time
    for that."""
    try:
        counted = Counted.discover(run, table, _columns(table), limits, with_pairs)
    except OutOfTime:
        choice = replace(choice, strategy=strategy.WITNESSED, reason=strategy.TOO_MANY)
        return _discover(run, table, choice, limits, sample=False)
    return _found(choice, limits, witnessed, counted), table


def _found(
    choice: Choice, limits: Limits, witnessed: Witnessed, counted: Counted | None
) -> PairEvidence:
    limits = limits.within(witnessed.covers.limits)
    if counted is not None:
        limits = limits.within(counted.covers.limits)
    return PairEvidence(choice, limits, witnessed, counted)


def _chosen(run: Run, table: Table, now: Choice | None) -> Choice:
    if now is not None and now.reason == strategy.TOO_MANY:
        return now
    columns, tasks = len(table.columns.names), run.runner.tasks
    known = None if now is None else now.strategy
    return strategy.choose(table.name, table.rows, columns, tasks, run.options, known)


def _columns(table: Table) -> tuple[int, ...]:
    return tuple(range(len(table.columns.names)))


def _witnessed_rhs(choice: Choice, columns: int) -> tuple[int, ...]:
    return (KEY, *range(columns)) if choice.strategy == strategy.WITNESSED else (KEY,)


def _depth(run: Run, choice: Choice, limits: Limits) -> Deepening:
    """How far to search for what is witnessed; dependencies that are counted come after it."""
    time = run.time.first(0.5) if choice.strategy == COUNTED else run.time
    return Deepening(limits, time, deepening.WITNESSED)
