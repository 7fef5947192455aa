"""Discovery of rules that nearly hold: left-hand sides of one column, then of two.

A dependency X -> A is listed where X explains most of A beyond chance and few rows disagree: μ⁺ of
Parciak et al., "Measuring Approximate Functional Dependencies: a Comparative Study" (ICDE 2024),
and *removal*, the rows that would have to go. Removal only falls when X grows, but μ⁺ is not
monotone, so extensions of a lhs that fails are tried all the same; those of one that passes, or
that holds, are not.

In a long table most candidates are ruled out by an estimate (:mod:`rules.near_estimate`), and only
those that may pass are counted. What is listed is exact in any table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from holdfast.kernels.explained import FRACTION
from holdfast.model import thresholds
from holdfast.model.constraints import Constraint, FunctionalDependency, Key
from holdfast.model.near import NearBounds, NearRule, sides_of
from holdfast.rules.near_estimate import estimated
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.exchange import exchanged
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import near as tasks
from holdfast.tasks.near import NearCandidate

Lhs = tuple[int, ...]

_AT_ONCE = 8
"""Left-hand sides of a long table whose codes are written at once."""


@dataclass(frozen=True)
class Grouping:
    """The groups of rows that agree on a lhs."""

    groups: int
    shared_values: int
    shared_rows: int
    squares: int


def near_rules(run: Run, table: Table, bounds: NearBounds) -> list[NearRule]:
    """The keys and dependencies that nearly hold, those that explain most first."""
    search = _NearSearch(run, table, bounds)
    if table.rows >= bounds.repeated_rows:
        for size in range(1, bounds.columns + 1):
            search.look_at([*search.candidates(size)])
    return sorted(search.listed, key=_order)


def measured(run: Run, table: Table, rule: Constraint) -> NearRule:
    """How far a rule of a table is from holding, whatever it is."""
    search, position = _NearSearch(run, table, NearBounds()), table.columns.names.index
    lhs, rhs = sides_of(rule)
    return search.measure(tuple(map(position, lhs)), tuple(map(position, rhs)))


def _order(near: NearRule) -> tuple[float, int, str]:
    strength = 1.0 if near.strength is None else near.strength
    return -strength, near.removal, str(near.rule)


class _NearSearch:
    """What is known of a table while left-hand sides become longer."""

    def __init__(self, run: Run, table: Table, bounds: NearBounds) -> None:
        self._run, self._table, self._bounds = run, table, bounds
        self._rows = table.rows
        self._is_long = self._rows > thresholds.current.grouped_rows
        self._groupings: dict[Lhs, Grouping] = {}
        self._open: set[Lhs] = {()}  # neither constant nor nearly a key, so extensions are tried
        self._determining: dict[int, list[Lhs]] = {}  # by rhs: what determines it, or nearly does
        self.listed: list[NearRule] = []

    def candidates(self, size: int) -> Iterator[NearCandidate]:
        """The left-hand sides of a size with what they may determine."""
        columns = range(len(self._table.columns.names))
        for lhs in combinations(columns, size):
            if all(part in self._open for part in combinations(lhs, size - 1)):
                rhs = tuple(column for column in columns if self._may_determine(lhs, column))
                yield NearCandidate(lhs, rhs, tuple(map(self._most_unexplained, rhs)))

    def look_at(self, candidates: Sequence[NearCandidate]) -> None:
        """List those of some candidates that nearly hold."""
        if not candidates:
            return
        self._run.progress("near", candidates=len(candidates))
        promising = self._promising(candidates) if self._is_long else candidates
        counted = self._counted(promising)
        for candidate, result in counted:
            self._groupings[candidate.lhs] = Grouping(**result.facts)
            self._judge_key(candidate.lhs)
        self._count_groups({(rhs,) for candidate, _ in counted for rhs in candidate.rhs})
        for candidate, result in counted:
            for rhs, counts in zip(candidate.rhs, result.arrays["explained"].tolist(), strict=True):
                if counts[0] >= 0:
                    self._judge_dependency(candidate.lhs, rhs, *counts)
        self._open |= {each.lhs for each in candidates if not self._is_closed(each.lhs)}

    def _may_determine(self, lhs: Lhs, column: int) -> bool:
        if column in lhs or self._disagreement(column) == 0:
            return False
        return not any({*known} <= {*lhs} for known in self._determining.get(column, ()))

    def _most_unexplained(self, column: int) -> float:
        """More rows cannot stay unexplained where a dependency is strong enough."""
        return (1 - self._bounds.strength) * self._disagreement(column) * self._rows + 1

    def _disagreement(self, column: int) -> float:
        """How likely two random rows differ in a column (1 - pdep); 1 where that is not known."""
        grouping = self._groupings.get((column,))
        return 1.0 if grouping is None else 1 - grouping.squares / self._rows**2

    def _is_closed(self, lhs: Lhs) -> bool:
        grouping = self._groupings.get(lhs)
        return grouping is not None and (grouping.groups == 1 or self._is_near_key(grouping))

    def _is_near_key(self, grouping: Grouping) -> bool:
        return self._rows - grouping.groups <= self._bounds.key_removal * self._rows

    # Counting

    def _promising(self, candidates: Sequence[NearCandidate]) -> list[NearCandidate]:
        """The candidates that may pass. A lhs that may be closed has its groups counted first: most
        are closed, so nothing has to be counted of their right-hand sides."""
        estimate = estimated(self._run, self._table, [(), *(each.lhs for each in candidates)])
        uncertain = {
            candidate.lhs
            for place, candidate in enumerate(candidates, 1)
            if estimate.may_share(place, 2 * self._bounds.key_removal)
            or (len(candidate.lhs) == 1 and not estimate.differs(candidate.lhs[0]))
        }
        self._count_groups(uncertain)
        for lhs in sorted(uncertain):
            self._judge_key(lhs)
        promising = []
        for place, candidate in enumerate(candidates, 1):
            rhs = [
                (column, most)
                for column, most in zip(candidate.rhs, candidate.unexplained, strict=True)
                if estimate.may_explain(place, column, 1 - self._bounds.strength)
            ]
            if rhs and not self._is_closed(candidate.lhs):
                chosen, unexplained = zip(*rhs, strict=True)
                promising.append(replace(candidate, rhs=chosen, unexplained=unexplained))
        return promising

    def _count_groups(self, missing: set[Lhs]) -> None:
        """Count the groups of left-hand sides, unless that was done before."""
        wanted = [NearCandidate(lhs, (), ()) for lhs in sorted(missing - {*self._groupings})]
        for candidate, result in self._counted(wanted):
            self._groupings[candidate.lhs] = Grouping(**result.facts)

    def _counted(
        self, candidates: Sequence[NearCandidate]
    ) -> list[tuple[NearCandidate, TaskResult]]:
        """Candidates with their counts."""
        if not self._is_long:
            return self._counted_whole(candidates)
        counted = []
        for start in range(0, len(candidates), _AT_ONCE):
            counted += self._counted_in_parts(candidates[start : start + _AT_ONCE])
        return counted

    def _counted_whole(
        self, candidates: Sequence[NearCandidate]
    ) -> list[tuple[NearCandidate, TaskResult]]:
        """By tasks that see all rows, and some candidates each."""
        view = self._table.view(self._run.store.path, self._run.options)
        tasks_used = min(self._run.runner.tasks, len(candidates))
        dealt = [tuple(candidates[share::tasks_used]) for share in range(tasks_used)]
        calls: list[Call] = [
            (tasks.count_groups, tasks.CountGroups(view, share)) for share in dealt
        ]
        answers = self._run.runner.run(calls) if calls else []
        return [
            pair
            for share, results in zip(dealt, answers, strict=True)
            for pair in zip(share, results, strict=True)
        ]

    def _counted_in_parts(
        self, candidates: Sequence[NearCandidate]
    ) -> list[tuple[NearCandidate, TaskResult]]:
        """By tasks that see some rows of all segments each."""
        run = self._run
        runner, root, prefix = run.runner, run.store.path, run.destination.prefix
        view = self._table.view(root, run.options)
        writes: list[Call] = [
            (tasks.write_groups, tasks.WriteGroups(share, tuple(candidates), prefix))
            for share in shares(view, runner.tasks)
        ]
        number = parts(runner, view)
        with exchanged(runner, root, writes) as files:
            files_of = [*zip(*files, strict=True)]
            calls: list[Call] = [
                (
                    tasks.count_written,
                    tasks.CountWritten(root, files_of[place], candidate, part, number),
                )
                for place, candidate in enumerate(candidates)
                for part in range(number)
            ]
            results = [result for answers in runner.run(calls) for result in answers]
        return [
            (candidate, _sum(results[place * number : (place + 1) * number]))
            for place, candidate in enumerate(candidates)
        ]

    # Judging

    def measure(self, lhs: Lhs, rhs: Lhs) -> NearRule:
        """How far a key, or a dependency, is from holding."""
        [(_, result)] = self._counted([NearCandidate(lhs, rhs, (math.inf,) * len(rhs))])
        self._groupings[lhs] = Grouping(**result.facts)
        if not rhs:
            return self._key(lhs)
        self._count_groups({rhs})
        return self._dependency(lhs, rhs[0], *result.arrays["explained"][0].tolist())

    def _judge_key(self, lhs: Lhs) -> None:
        key = self._key(lhs)
        if key.removal and self._is_near_key(self._groupings[lhs]):
            self.listed.append(key)

    def _judge_dependency(
        self, lhs: Lhs, rhs: int, whole: int, fraction: int, majority: int
    ) -> None:
        grouping, bounds = self._groupings[lhs], self._bounds
        dependency = self._dependency(lhs, rhs, whole, fraction, majority)
        if self._is_near_key(grouping) or dependency.removal > bounds.removal * self._rows:
            return
        least = max(bounds.repeated_rows, bounds.repeated_share * self._rows)
        strength = dependency.strength or 0.0
        if dependency.removal and (grouping.shared_rows < least or strength < bounds.strength):
            return
        self._determining.setdefault(rhs, []).append(lhs)
        if dependency.removal:
            self.listed.append(dependency)

    def _key(self, lhs: Lhs) -> NearRule:
        grouping = self._groupings[lhs]
        rule = Key(self._table.name, self._names(lhs))
        return NearRule(
            rule, rule.table, self._rows - grouping.groups, self._rows,
            values=grouping.shared_values, rows=grouping.shared_rows,
        )  # fmt: skip

    def _dependency(self, lhs: Lhs, rhs: int, whole: int, fraction: int, majority: int) -> NearRule:
        """A dependency with μ⁺, where that is defined: not of what is a key, or constant."""
        rule = FunctionalDependency(
            self._table.name, self._names(lhs), self._table.columns.names[rhs]
        )
        repeated, chance = self._rows - self._groupings[lhs].groups, self._disagreement(rhs)
        strength = 0.0
        if repeated and chance:
            unexplained = (self._rows - whole - fraction / (1 << FRACTION)) / self._rows
            strength = 1 - unexplained / chance * (self._rows - 1) / repeated
        return NearRule(
            rule, rule.table, self._rows - majority, self._rows, round(max(0.0, strength), 6)
        )

    def _names(self, columns: Lhs) -> tuple[str, ...]:
        return tuple(self._table.columns.names[column] for column in columns)


def _sum(results: Sequence[TaskResult]) -> TaskResult:
    """The counts of all parts; what is explained too little in one part is so in all."""
    facts = {name: sum(each.facts[name] for each in results) for name in results[0].facts}
    explained = [each.arrays["explained"] for each in results]
    total = sum(explained[1:], explained[0].copy())
    for counts in explained:
        total[counts[:, 0] < 0] = -1
    return TaskResult(facts, {"explained": total})
