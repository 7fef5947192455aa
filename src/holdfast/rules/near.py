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
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from contextlib import nullcontext
from dataclasses import dataclass, field
from itertools import combinations, pairwise

from holdfast.kernels.explained import FRACTION
from holdfast.model import thresholds
from holdfast.model.constraints import Constraint, FunctionalDependency, Key
from holdfast.model.limits import OutOfTime
from holdfast.model.near import GroupSums, NearBounds, NearRule, sides_of, strength
from holdfast.rules.near_estimate import Drawing, Estimate, Lhs, drawn
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.exchange import exchanged_by_place
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import near as tasks
from holdfast.tasks.near import NearCandidate
from holdfast.tasks.segments import most_rows

_AGAIN = 8
"""Times as many rows are drawn to decide what is left undecided."""

_TOGETHER = 512
"""Left-hand sides of all sizes that are estimated in one pass over the rows, if there are no
more."""

_AT_ONCE = 8
"""Left-hand sides of a long table whose hashes are written at once."""

_EXCHANGED = 1 << 32
"""Bytes of hashes that may be written at once, whatever the table."""


@dataclass(frozen=True)
class Exact:
    """Minimal keys and dependencies that hold in a table, by the positions of columns, as far as
    they are known: of these nothing has to be counted. Keys are those of the distinct rows."""

    keys: Sequence[Lhs] = ()
    dependencies: Mapping[int, Sequence[Lhs]] = field(default_factory=dict)  # by rhs


@dataclass(frozen=True)
class NearSearchResult:
    """The rules that nearly hold, those that explain most first: all with at most so many columns
    on the left, or in the key."""

    rules: Sequence[NearRule]
    complete_up_to: int
    left_out: tuple[str, ...] = ()  # kinds of other rules that there was no time for


Dependency = tuple[Lhs, int, NearRule]
"""A near dependency with the positions of its columns."""


@dataclass(frozen=True)
class Grouping:
    """The groups of rows that agree on a lhs."""

    groups: int
    shared_values: int
    shared_rows: int
    squares: int


def near_rules(
    run: Run,
    table: Table,
    bounds: NearBounds,
    exact: Exact | None = None,
    worth_counting: Callable[[Key], bool] | None = None,
) -> NearSearchResult:
    """The keys and dependencies that nearly hold; of the keys only those that are worth counting.
    Ends with the last number of columns that there is time for."""
    run = run.bounded()
    search = _NearSearch(run, table, bounds, exact or Exact(), worth_counting)
    if table.rows < bounds.repeated_rows:
        return NearSearchResult((), bounds.columns)
    listed: list[NearRule] = []
    complete = 0
    is_long = table.rows > thresholds.current.grouped_rows
    try:
        with drawn(run, table) if is_long else nullcontext() as drawing:
            while complete < bounds.columns:
                run.time.look()
                search.look_at(complete + 1, drawing)
                listed, complete = sorted(search.listed, key=_order), complete + 1
    except OutOfTime:
        run.progress("near", complete_up_to=complete)
    return NearSearchResult(tuple(listed), complete)


def measured(run: Run, table: Table, rule: Constraint) -> NearRule:
    """How far a rule of a table is from holding, whatever it is."""
    search, position = _NearSearch(run, table, NearBounds(), Exact()), table.columns.names.index
    lhs, rhs = sides_of(rule)
    return search.measure(tuple(map(position, lhs)), tuple(map(position, rhs)))


def _order(near: NearRule) -> tuple[float, int, str]:
    strength = 1.0 if near.strength is None else near.strength
    return -strength, near.removal, str(near.rule)


class _NearSearch:
    """What is known of a table while left-hand sides become longer."""

    def __init__(
        self,
        run: Run,
        table: Table,
        bounds: NearBounds,
        exact: Exact,
        worth_counting: Callable[[Key], bool] | None = None,
    ) -> None:
        self._run, self._table, self._bounds = run, table, bounds
        self._worth_counting = worth_counting
        self._rows = table.rows
        self._view = table.view(run.store.path, run.options)
        self._is_whole = self._rows <= most_rows(self._view.words)  # a task can see all rows
        self._groupings: dict[Lhs, Grouping] = {}
        self._squares: dict[int, int] = {}  # of how often each value of a column occurs, added up
        self._estimate: Estimate | None = None
        self._open: set[Lhs] = {()}  # neither constant nor nearly a key, so extensions are tried
        self._closed: set[Lhs] = {
            (column,) for column, lhs in exact.dependencies.items() if () in lhs
        }
        self._keys = [{*key} for key in exact.keys if len(key) <= bounds.columns]
        # By rhs: what determines it, or nearly does.
        self._determining = {
            rhs: [{*each} for each in lhs if len(each) < bounds.columns + 1]
            for rhs, lhs in exact.dependencies.items()
        }
        self.listed: list[NearRule] = []

    def look_at(self, size: int, drawing: Drawing | None) -> None:
        """List those rules with so many columns that nearly hold, estimated first if rows were
        drawn."""
        candidates = [*self._candidates(size)]
        self._run.progress("near", candidates=len(candidates))
        wanted = [*self._repeated_keys(size)]
        wanted += self._promising(candidates, drawing) if drawing else candidates
        self._open |= {each.lhs for each in candidates}
        counted = self._counted(wanted, self._bounds)
        self._learn(counted)
        passing = [
            (candidate.lhs, rhs, counts)
            for candidate, result in counted
            for rhs, counts in zip(candidate.rhs, result.arrays["explained"].tolist(), strict=True)
            if counts[0] >= 0
        ]
        self._count_squares({rhs for _, rhs, _ in passing})
        for candidate, _ in counted:
            self._judge_key(candidate.lhs)
        found = [(lhs, rhs, self._dependency(lhs, rhs, *counts)) for lhs, rhs, counts in passing]
        for lhs, rhs, near in self._without_idle_columns([*filter(self._passes, found)]):
            self._determining.setdefault(rhs, []).append({*lhs})
            if near.removal:
                self.listed.append(near)
        self._open -= self._closed

    def _candidates(self, size: int) -> Iterator[NearCandidate]:
        """The left-hand sides of a size that may not be closed, with what they may determine."""
        columns = range(len(self._table.columns.names))
        for lhs in combinations(columns, size):
            if self._is_open(lhs) and not any(key <= {*lhs} for key in self._keys):
                rhs = tuple(column for column in columns if self._may_determine(lhs, column))
                yield NearCandidate(lhs, rhs, tuple(map(self._most_unexplained, rhs)))

    def _is_open(self, lhs: Lhs) -> bool:
        """Whether no smaller lhs is closed, nor it itself, as far as that is known."""
        parts_open = all(part in self._open for part in combinations(lhs, len(lhs) - 1))
        return parts_open and lhs not in self._closed

    def _repeated_keys(self, size: int) -> Iterator[NearCandidate]:
        """The keys of the distinct rows that are near keys of all rows."""
        repeated = self._table.duplicates
        if 0 < repeated <= self._bounds.key_removal * self._rows:
            for key in self._keys:
                lhs = tuple(sorted(key))
                if len(lhs) == size and self._is_open(lhs) and self._is_worth_counting(lhs):
                    yield NearCandidate(lhs)

    def _may_determine(self, lhs: Lhs, column: int) -> bool:
        if column in lhs or self._disagreement(column) == 0:
            return False
        return not any(known <= {*lhs} for known in self._determining.get(column, ()))

    def _most_unexplained(self, column: int) -> float:
        """More rows cannot stay unexplained where a dependency is strong enough, and where few rows
        would have to go: of c rows of a group, m of which agree, c - m² / c at most are."""
        unexplained = (1 - self._bounds.strength) * self._disagreement(column)
        return min(unexplained, 2 * self._bounds.removal) * self._rows + tasks.slack(self._rows)

    def _disagreement(self, column: int) -> float:
        """How likely two random rows differ in a column (1 - pdep); 1 where that is not known."""
        return 1 - self._squares.get(column, 0) / self._rows**2

    def _is_near_key(self, grouping: Grouping) -> bool:
        return self._rows - grouping.groups <= self._bounds.key_removal * self._rows

    def _is_worth_counting(self, lhs: Lhs) -> bool:
        return self._worth_counting is None or self._worth_counting(self._key_of(lhs))

    def _promising(
        self, candidates: Sequence[NearCandidate], drawing: Drawing
    ) -> list[NearCandidate]:
        """The candidates that are to be counted. Where tasks would have to exchange rows for that,
        those that are in doubt are estimated again from more rows."""
        undecided = [*self._undecided(candidates, self._estimated(candidates, drawing))]
        doubtful = [each for each, seems_to_pass in undecided if not seems_to_pass]
        if self._is_whole or not doubtful:
            return [each for each, _ in undecided]
        promising = [each for each, seems_to_pass in undecided if seems_to_pass]
        with drawn(self._run, self._table, _AGAIN) as more:
            again = more.estimated([each.lhs for each in doubtful])
            return [*promising, *(each for each, _ in self._undecided(doubtful, again))]

    def _estimated(self, candidates: Sequence[NearCandidate], drawing: Drawing) -> Estimate:
        """What drawn rows show of candidates, with that of longer left-hand sides where these are
        few."""
        wanted = [each.lhs for each in candidates]
        if self._estimate is None or not {*wanted} <= {*self._estimate.place}:
            columns = sorted({column for lhs in wanted for column in lhs})
            sizes = range(len(wanted[0]) if wanted else 1, self._bounds.columns + 1)
            if sum(math.comb(len(columns), size) for size in sizes) <= _TOGETHER:
                longer = (lhs for size in sizes for lhs in combinations(columns, size))
                wanted = [*dict.fromkeys((*wanted, *longer))]
            self._estimate = drawing.estimated(wanted)
        return self._estimate

    def _undecided(
        self, candidates: Sequence[NearCandidate], estimate: Estimate
    ) -> Iterator[tuple[NearCandidate, bool]]:
        """The candidates that may pass, or may be closed, and whether they seem to be so. Those
        that surely are closed, are closed: most near keys are not worth counting."""
        bounds = self._bounds
        for candidate in candidates:
            lhs = candidate.lhs
            is_near_key = estimate.is_near_key(lhs, bounds.key_removal)
            if is_near_key:
                self._closed.add(lhs)
                if self._is_worth_counting(lhs):
                    yield NearCandidate(lhs), True
                continue
            chosen = [
                (column, most)
                for column, most in zip(candidate.rhs, candidate.unexplained, strict=True)
                if estimate.may_explain(lhs, column, 1 - bounds.strength, bounds.removal)
            ]
            rhs, unexplained = zip(*chosen, strict=True) if chosen else ((), ())
            passing = any(
                estimate.seems_to_explain(lhs, column, 1 - bounds.strength) for column in rhs
            )
            may_be_constant = len(lhs) == 1 and not estimate.differs(lhs[0])
            is_in_doubt = is_near_key is None
            if rhs or may_be_constant or (is_in_doubt and self._matters(lhs)):
                found = NearCandidate(lhs, rhs, unexplained, is_in_doubt)
                yield found, may_be_constant or (passing and not is_in_doubt)

    def _matters(self, lhs: Lhs) -> bool:
        """Whether it matters if a lhs that determines nothing else is nearly a key."""
        return len(lhs) < self._bounds.columns or self._is_worth_counting(lhs)

    # Counting

    def _count_squares(self, columns: set[int]) -> None:
        """Count how often values of columns occur, unless that was done before."""
        self._learn(
            self._counted([NearCandidate((each,)) for each in sorted(columns - {*self._squares})])
        )

    def _learn(self, counted: Sequence[tuple[NearCandidate, TaskResult]]) -> None:
        for candidate, result in counted:
            self._groupings[candidate.lhs] = Grouping(**result.facts)
            if len(candidate.lhs) == 1:
                self._squares[candidate.lhs[0]] = result.facts["squares"]
            squares = result.arrays["squares"].tolist()
            known = zip(candidate.rhs, squares, strict=True)
            self._squares |= {column: number for column, number in known if number >= 0}

    def _counted(
        self, candidates: Sequence[NearCandidate], bounds: NearBounds | None = None
    ) -> list[tuple[NearCandidate, TaskResult]]:
        """Candidates with their counts; with bounds only as far as they pass."""
        if self._is_whole:
            return self._counted_whole(candidates, bounds)
        doubtful = [NearCandidate(each.lhs) for each in candidates if each.in_doubt and each.rhs]
        known = {
            candidate.lhs: (candidate, result)
            for candidate, result in self._counted_in_parts(doubtful)
            if self._is_near_key(Grouping(**result.facts))
        }
        rest = self._counted_in_parts([each for each in candidates if each.lhs not in known])
        return [*known.values(), *rest]

    def _counted_whole(
        self, candidates: Sequence[NearCandidate], bounds: NearBounds | None
    ) -> list[tuple[NearCandidate, TaskResult]]:
        """By tasks that see all rows, and some candidates each."""
        used = min(self._run.runner.tasks, len(candidates))
        cuts = [len(candidates) * task // used for task in range(used + 1)] if used else []
        calls: list[Call] = [
            (
                tasks.count_groups,
                tasks.CountGroups(self._view, tuple(candidates[low:high]), bounds),
            )
            for low, high in pairwise(cuts)
        ]
        results = run_all(self._run.runner, calls)
        return [*zip(candidates, results, strict=True)]

    def _counted_in_parts(
        self, candidates: Sequence[NearCandidate]
    ) -> list[tuple[NearCandidate, TaskResult]]:
        """By tasks that see some rows of all segments each."""
        return [each for lot in self._lots(candidates) for each in self._counted_together(lot)]

    def _lots(self, candidates: Sequence[NearCandidate]) -> Iterator[list[NearCandidate]]:
        """Some candidates at a time: their hashes take no more space than the rows, or little."""
        room = max(_EXCHANGED, self._rows * self._view.words * 8)
        lot: list[NearCandidate] = []
        for candidate in candidates:
            taken = sum(self._rows * tasks.hashes(each) * 8 for each in (*lot, candidate))
            if lot and (len(lot) == _AT_ONCE or taken > room):
                yield lot
                lot = []
            lot.append(candidate)
        if lot:
            yield lot

    def _counted_together(
        self, candidates: Sequence[NearCandidate]
    ) -> list[tuple[NearCandidate, TaskResult]]:
        """The hashes of all rows are written once, and then counted."""
        runner, root = self._run.runner, self._run.store.path
        prefix, view = self._run.destination.prefix, self._view
        number = parts(runner, view)
        writes: list[Call] = [
            (tasks.write_groups, tasks.WriteGroups(share, tuple(candidates), prefix, parts=number))
            for share in shares(view, runner.tasks)
        ]
        with exchanged_by_place(runner, root, writes, len(candidates)) as files:
            calls: list[Call] = [
                (tasks.count_written, tasks.CountWritten(root, own, candidate, part, number))
                for candidate, own in zip(candidates, files, strict=True)
                for part in range(number)
            ]
            results = run_all(runner, calls)
        return [
            (candidate, _sum(results[place * number : (place + 1) * number]))
            for place, candidate in enumerate(candidates)
        ]

    # Judging

    def measure(self, lhs: Lhs, rhs: Lhs) -> NearRule:
        """How far a key, or a dependency, is from holding."""
        counted = self._counted([NearCandidate(lhs, rhs, (math.inf,) * len(rhs))])
        self._learn(counted)
        if not rhs:
            return self._key(lhs)
        self._count_squares({*rhs})
        return self._dependency(lhs, rhs[0], *counted[0][1].arrays["explained"][0].tolist())

    def _judge_key(self, lhs: Lhs) -> None:
        grouping = self._groupings[lhs]
        is_near_key = self._is_near_key(grouping)
        if grouping.groups == 1 or is_near_key:
            self._closed.add(lhs)
        if is_near_key and grouping.groups < self._rows and self._is_worth_counting(lhs):
            self.listed.append(self._key(lhs))

    def _passes(self, found: Dependency) -> bool:
        """Whether a dependency is strong enough, and broken by few rows; or holds."""
        lhs, _, near = found
        grouping, bounds = self._groupings[lhs], self._bounds
        if self._is_near_key(grouping) or near.removal > bounds.removal * self._rows:
            return False
        least = max(bounds.repeated_rows, bounds.repeated_share * self._rows)
        strong = grouping.shared_rows >= least and (near.strength or 0.0) >= bounds.strength
        return not near.removal or strong

    def _without_idle_columns(self, found: Sequence[Dependency]) -> Iterator[Dependency]:
        """The dependencies each of whose columns explains enough of what the others leave open."""
        doubtful = {(lhs, rhs): [*self._parts_in_doubt(lhs, rhs, near)] for lhs, rhs, near in found}
        wanted: dict[Lhs, set[int]] = {}
        for (_, rhs), smaller in doubtful.items():
            for part in smaller:
                wanted.setdefault(part, set()).add(rhs)
        of_parts = self._strengths(wanted)
        for lhs, rhs, near in found:
            left = (1 - of_parts[part, rhs] for part in doubtful[lhs, rhs])
            unexplained, share = 1 - (near.strength or 0.0), 1 - self._bounds.gain
            if all(unexplained <= share * each for each in left):
                yield lhs, rhs, near

    def _parts_in_doubt(self, lhs: Lhs, rhs: int, near: NearRule) -> Iterator[Lhs]:
        """A lhs without one of its columns, where that may explain nearly as much."""
        if not near.removal or len(lhs) == 1:
            return
        estimate, unexplained = self._estimate, 1 - (near.strength or 0.0)
        most = unexplained / (1 - self._bounds.gain)
        for part in combinations(lhs, len(lhs) - 1):
            known = estimate if estimate and part in estimate.place else None
            if known is None or known.may_explain(part, rhs, most, removal=1.0):
                yield part

    def _strengths(self, wanted: Mapping[Lhs, Set[int]]) -> dict[tuple[Lhs, int], float]:
        """How strongly left-hand sides determine columns, whatever the bounds are."""
        candidates = [
            NearCandidate(lhs, tuple(sorted(rhs)), (math.inf,) * len(rhs))
            for lhs, rhs in wanted.items()
        ]
        counted = self._counted(candidates)
        self._learn(counted)
        return {
            (candidate.lhs, rhs): self._dependency(candidate.lhs, rhs, *counts).strength or 0.0
            for candidate, result in counted
            for rhs, counts in zip(candidate.rhs, result.arrays["explained"].tolist(), strict=True)
        }

    def _key(self, lhs: Lhs) -> NearRule:
        grouping = self._groupings[lhs]
        rule = self._key_of(lhs)
        return NearRule(
            rule, rule.table, self._rows - grouping.groups, self._rows,
            values=grouping.shared_values, rows=grouping.shared_rows,
        )  # fmt: skip

    def _dependency(self, lhs: Lhs, rhs: int, whole: int, fraction: int, majority: int) -> NearRule:
        """A dependency with μ⁺, where that is defined: not of what is a key, or constant."""
        rule = FunctionalDependency(
            self._table.name, self._names(lhs), self._table.columns.names[rhs]
        )
        groups, squares = self._groupings[lhs].groups, self._squares[rhs]
        explained = whole + fraction / (1 << FRACTION)
        return NearRule(
            rule, rule.table, self._rows - majority, self._rows,
            strength(self._rows, groups, explained, squares),
            sums=GroupSums(groups, whole, fraction),
        )  # fmt: skip

    def _key_of(self, lhs: Lhs) -> Key:
        return Key(self._table.name, self._names(lhs))

    def _names(self, columns: Lhs) -> tuple[str, ...]:
        return tuple(self._table.columns.names[column] for column in columns)


def _sum(results: Sequence[TaskResult]) -> TaskResult:
    """The counts of all parts; what is explained too little in one part is so in all."""
    facts = {name: sum(each.facts[name] for each in results) for name in results[0].facts}
    explained = [each.arrays["explained"] for each in results]
    total = sum(explained[1:], explained[0].copy())
    for counts in explained:
        total[counts[:, 0] < 0] = -1
    return TaskResult(facts, {"explained": total, "squares": results[0].arrays["squares"]})
