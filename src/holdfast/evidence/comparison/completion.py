"""Exact evidence for denial constraints of long tables, without comparing all pairs of rows.

Sampled pairs give evidence, and the cover of it *candidates*: minimal sets of atoms that no sampled
pair satisfies. Then rounds complete the evidence. Candidates that share a selective *region*, such
as an equality, are validated together, by comparing all of its pairs
(:mod:`holdfast.evidence.comparison.regions`); any other one by a search for pairs that violate it.
These are new evidence; once there is none left to find, no candidate is violated, and the maximal
evidences are all known: one that was missed would lie inside no other, so that a candidate would
lie inside it (Hydra, PVLDB 2017, theorem 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace

import numpy as np

from holdfast.cover.counts import EvidenceCounts, SampledPairs
from holdfast.cover.cover import Cover
from holdfast.cover.evidence import Evidence
from holdfast.evidence.comparison import regions
from holdfast.evidence.comparison.batch_indexes import short_segment
from holdfast.evidence.comparison.regions import Region, Sampled
from holdfast.evidence.counted import groups_of
from holdfast.evidence.mirrors import mirrored, one_of_mirrors
from holdfast.evidence.scope import Scope
from holdfast.evidence.strategy import seconds_on_cpu
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.cover import TooMany
from holdfast.model import thresholds
from holdfast.model.batch_indexes import LookUp
from holdfast.model.comparisons import Space
from holdfast.model.limits import OutOfTime, Time
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, run_all
from holdfast.runtime.sealed import discard
from holdfast.runtime.timed import Timed
from holdfast.tasks import batch_indexes as lookup_tasks
from holdfast.tasks import completion as tasks
from holdfast.tasks import row_pairs
from holdfast.tasks.coding import Coding
from holdfast.tasks.completion import Planes
from holdfast.tasks.segments import Segment

_SAMPLED = 0.25
"""The share of its time that a search samples pairs for, at most."""

_LEARNED = 0.25
"""The share of what is left of the time in which what a round finds is learned, at most."""

_SEED = 20_131
"""What the pairs are drawn with that are kept."""


@dataclass(frozen=True)
class Completed:
    """All maximal evidences of a table, with witnesses, and the cover whose minimal sets no pair
    satisfies; with a limit on comparisons, only those evidences that its sets need."""

    evidence: Evidence
    cover: Cover
    rounds: int
    sampled: Sampled


class Late(OutOfTime):
    """The time is over, or there are too many sets; the evidence that was found until then."""

    def __init__(self, evidence: Evidence) -> None:
        super().__init__()
        self.evidence = evidence


def complete(
    scope: Scope,
    known: Evidence | None = None,
    validated: U64 | None = None,
    max_comparisons: int | None = None,
) -> Completed:
    """All that is minimal on all pairs of rows.

    ``known`` is evidence that pairs of living rows show; nothing is sampled then. ``validated`` are
    sets that no other pair satisfies. When the time is over, :class:`Late` has the evidence so far.
    """
    with coded(scope) as planes:
        state = _State(scope, planes, max_comparisons)
        if validated is not None:
            state.add_validated(validated)
        try:
            if known is not None:
                state.learn([known])
            state.begin(sample=known is None)
            while len(candidates := state.candidates()):
                state.round += 1
                state.validate(candidates)
        except (OutOfTime, TooMany) as ended:
            if scope.time.end is None:
                raise
            raise Late(state.evidence) from ended
    return Completed(state.evidence, state.cover, state.round, state.sampled)


def drawn(scope: Scope) -> tuple[SampledPairs, ...]:
    """The evidence of a few random pairs, always the same ones of the same rows."""
    with coded(scope) as planes:
        [results] = scope.runner.run([_drawing(planes)])
    return _drawn(results)


def sampled(scope: Scope) -> Sampled:
    """Random pairs of rows."""
    with coded(scope) as planes:
        state = _State(scope, planes, None)
        state.sample(with_neighbours=False)
    return state.sampled


def validate(scope: Scope, candidates: U64) -> tuple[Evidence, Flags]:
    """Which of some sets are satisfied by a pair of rows, and evidence that shows it."""
    with coded(scope) as planes:
        results = scope.runner.run(_searching(scope, planes, candidates))
    evidence = Evidence.none(scope.space.atoms).joined(_evidence(results))
    return evidence, _refuted(results, len(candidates))


def refuted(scope: Scope, planes: Planes, candidates: U64) -> Flags:
    """Which of some sets are satisfied by a pair of rows."""
    return _refuted(scope.runner.run(_searching(scope, planes, candidates)), len(candidates))


def violating(scope: Scope, atoms: tuple[int, ...], most: int) -> I64:
    """Pairs of rows that satisfy a set of atoms, at most so many, by their ids: row t first."""
    with coded(scope) as planes:
        call: Call = (tasks.shown, tasks.Violating(planes, (atoms,), most))
        pairs = [result.arrays["pairs"] for result in scope.runner.run([call])[0]]
    return np.concatenate([np.empty((0, 2), np.int64), *pairs])[:most]


@dataclass(frozen=True)
class Examined:
    """What violates one set of atoms; None: too many pairs would have to be compared."""

    pairs: int | None
    rows: int | None
    groups: int | None
    matched: int | None  # pairs of rows that have no row in common, as many as could be found
    covering: int | None  # rows without which nothing violates them, as few as could be found
    shown: I64  # pairs of row ids, t first


def examined(scope: Scope, planes: Planes, atoms: tuple[int, ...], most: int) -> Examined:
    """What violates a set of atoms, in numbers and a few pairs."""
    calls: list[Call] = [
        (tasks.shown, tasks.Violating(planes, (atoms,), most)),
        (row_pairs.matched, row_pairs.Matched(planes, atoms)),
        *((row_pairs.opposed_rows, part) for part in _parted(scope, planes, atoms, True)),
    ]
    scope.progress("search")
    examples, [paired], *opposed = scope.runner.run(calls)
    none = np.empty((0, 2), np.int64)
    pairs = np.concatenate([none, *(result.arrays["pairs"] for result in examples)])[:most]
    counts = [result.facts for results in opposed for result in results]
    known = not any("too_many" in facts for facts in counts)

    def total(what: str) -> int | None:
        return sum(facts[what] for facts in counts) if known else None

    matched, covering = paired.facts["matched"], paired.facts["covering"]
    return Examined(total("pairs"), total("rows"), total("groups"), matched, covering, pairs)


def looked_up(scope: Scope, batch: Iterable[Segment], lookups: tuple[LookUp, ...]) -> Evidence:
    """The evidence of all pairs of two rows of a batch, and of all pairs with one that satisfy the
    atoms of a look-up, seen from that row; and of others."""
    runner, batch = scope.runner, tuple(batch)
    how_much = thresholds.current.whole_share, short_segment(lookups)
    rows = sum(segment.live for segment in batch)
    parts = max(1, min(runner.tasks, rows))
    how = (scope.view, batch, scope.schema, scope.space, lookups, *how_much)
    calls: list[Call] = [
        (lookup_tasks.looked_up, lookup_tasks.LookedUp(*how, part, parts)) for part in range(parts)
    ]
    return Evidence.none(scope.space.atoms).joined(_evidence(runner.run(calls)))


def satisfying(scope: Scope, planes: Planes, sets: Sequence[tuple[int, ...]]) -> int | None:
    """How many ordered pairs of rows satisfy each of some sets of atoms, added up; None: too many
    would have to be compared."""
    calls: list[Call] = [
        (row_pairs.opposed_rows, part)
        for atoms in sets
        for part in _parted(scope, planes, atoms, False)
    ]
    counts = [result.facts for result in run_all(scope.runner, calls)]
    if any("too_many" in facts for facts in counts):
        return None
    return int(sum(facts["pairs"] for facts in counts))


def _parted(
    scope: Scope, planes: Planes, atoms: tuple[int, ...], with_rows: bool
) -> list[row_pairs.Opposed]:
    """One part of the rows for each task, where there are enough pairs."""
    parts = parts_of(scope.pairs, scope.rows, scope.runner.tasks)
    return [row_pairs.Opposed(planes, atoms, part, parts, with_rows) for part in range(parts)]


def parts_of(pairs: int, rows: int, tasks: int) -> int:
    """Into how many parts to divide so many pairs of a table's rows. All tasks together bring rows
    together in at most as much time as they then compare them, however many they are.

    >>> parts_of(20_000_000_000, 1_000_000, 2), parts_of(20_000_000_000, 1_000_000, 1_000)
    (2, 157)
    """
    limits = thresholds.current
    return min(tasks, pairs // max(limits.share_pairs, limits.share_pairs_a_row * rows) + 1)


def beside(scope: Scope, batch: Iterable[Segment]) -> Evidence:
    """The evidence of all pairs with at least one row of a batch, which is some of the segments."""
    runner, batch = scope.runner, tuple(batch)
    parts = runner.tasks
    calls: list[Call] = [
        (
            tasks.beside,
            tasks.CompareBatch(scope.view, batch, scope.schema, scope.space, part, parts),
        )
        for part in range(parts)
    ]
    return Evidence.none(scope.space.atoms).joined(_evidence(runner.run(calls)))


@contextmanager
def coded(scope: Scope) -> Iterator[Planes]:
    """The table in planes of codes, in files that are removed afterwards."""
    if not scope.space.comparisons:
        raise ValueError(f"the space {scope.space.name!r} has nothing to compare rows in")
    count = len(Coding.of(scope.schema, scope.space.comparisons).together)
    shares = min(scope.runner.tasks, count)
    scope.progress("code")
    calls: list[Call] = [
        (tasks.code, tasks.Code(scope.view, scope.schema, scope.space, scope.prefix, numbers))
        for numbers in (tuple(range(k, count, shares)) for k in range(shares))
    ]
    written = [result.facts for results in scope.runner.run(calls) for result in results]
    files = {column: facts["file"] for facts in written for column in facts["columns"]}
    try:
        yield Planes(scope.view, scope.space, files)
    finally:
        for facts in written:
            discard(scope.view.path / facts["file"])


class _State:
    """What is known while evidence is completed."""

    def __init__(self, scope: Scope, planes: Planes, max_comparisons: int | None) -> None:
        self.scope, self.planes = scope, planes
        atoms = scope.space.atoms
        self.evidence = Evidence.none(atoms)
        groups = groups_of(scope.space)
        self.cover = Cover.build(atoms, bitsets.empty(atoms), max_comparisons, groups)
        self.validated = [
            bitsets.empty(atoms)
        ]  # sets that no pair satisfies, or only known ones do
        none = EvidenceCounts.none(atoms)
        self.sampled = Sampled(none.masks, none.counts, scope.rows)
        self.round = 0

    def begin(self, sample: bool) -> None:
        """Sample pairs, or compare all where there are few; pairs of every selectivity are needed
        for the cost of groups in any case."""
        scope, left = self.scope, _SAMPLED * self.scope.time.left
        comparisons = len(scope.space.comparisons)
        soon = seconds_on_cpu(scope.pairs, comparisons, scope.runner.tasks) <= left
        if scope.pairs <= max(0, thresholds.current.all_pairs) and soon:
            self.compare_all()
        else:
            self.sample(sample)

    def sample(self, with_neighbours: bool) -> None:
        """Compare random pairs; with the neighbours in the order of every column many of them, and
        learn what they show. In a time that can end it is a smaller sample: what is done with it
        takes longer than to draw it."""
        scope, limits = self.scope, thresholds.current
        count = scope.runner.tasks
        columns = sorted(self.planes.files) if with_neighbours else []
        number = limits.sample_tile_rows**2
        if with_neighbours:
            number = limits.sample_pairs_a_row * scope.rows
        number = min(number, scope.pairs) // count
        time = scope.time.first(_SAMPLED)
        how = (limits.sample_tile_rows, limits.windows, limits.window_rows)
        if time.end is not None:
            how = limits.hurried_sample
        scope.progress("sample")
        words = self._words(time)
        calls: list[Call] = [
            (
                tasks.sample,
                tasks.SamplePairs(self.planes, number, *how, words, tuple(columns[k::count]), k),
            )
            for k in range(count)
        ]
        *results, drawn = Timed(scope.runner, time).run([*calls, _drawing(self.planes)])
        random = [result.arrays for of_call in results for result in of_call]
        self.sampled = Sampled(
            np.concatenate([arrays["random"] for arrays in random]),
            np.concatenate([arrays["counts"] for arrays in random]),
            scope.rows,
            _drawn(drawn),
        )
        if with_neighbours:
            self.learn(_evidence(results))

    def _words(self, time: Time) -> int | None:
        """How many different pairs each task may bring in a time, so that there is as much left to
        find out which of them are maximal; None: any number."""
        if time.end is None:
            return None
        evidences = math.sqrt(thresholds.current.evidences_compared * max(0.0, time.left))
        return int(evidences) // (2 * self.scope.runner.tasks)  # each pair in both orders

    def learn(self, evidence: list[Evidence]) -> None:
        """Take in evidence."""
        none = self.evidence.masks[:0]
        masks = bitsets.distinct(np.concatenate([none, *(known.masks for known in evidence)]))
        new = masks[~bitsets.is_member(masks, self.evidence.masks)]
        self.evidence = self.evidence.joined(evidence)
        self.cover.add(new, self.scope.time.look)
        self.evidence = self.evidence.only(self.cover.evidence)

    def candidates(self) -> U64:
        """The minimal sets that may still be violated, one of two mirror images."""
        space = self.scope.space
        masks = one_of_mirrors(self.cover.minimal, space)
        masks = masks[~bitsets.any_subset(masks, np.concatenate(self.validated))]
        return masks[~bitsets.any_subset(masks, unsatisfiable(space))]

    def validate(self, candidates: U64) -> None:
        """One round, in one job: regions where that is cheaper, and searches for violations of what
        they leave open. In a time that can end, searches end with it: what they have found until
        then is learned, and what they have not come to stays a candidate."""
        scope, limits = self.scope, thresholds.current
        scope.time.look()
        hurried = scope.time.end is not None
        chosen, left = regions.choose(candidates, scope.space, self.sampled, hurried)
        most = limits.task_candidates * scope.runner.tasks
        asked = candidates[left]
        asked = asked[np.argsort(bitsets.popcount(asked), kind="stable")[:most]]
        scope.progress("search", round=self.round, candidates=len(candidates))
        words = self._words(scope.time.first(_LEARNED))
        calls = self.comparing(chosen)
        runner = Timed(scope.runner, scope.time.first(1 - _LEARNED))
        results = runner.run([*calls, *_searching(scope, self.planes, asked, words)])
        searched, refuted = _searched(results[len(calls) :], len(asked))
        self.add_validated(
            bitsets.from_columns([region.atoms for region in chosen], scope.space.atoms)
        )
        self.add_validated(asked[searched & ~refuted])
        self.learn(_evidence(results))
        remaining = int(bitsets.is_member(candidates, self.cover.minimal).sum())
        scope.progress(
            "learn",
            round=self.round,
            candidates=len(candidates),
            refuted=len(candidates) - remaining,
        )

    def compare_all(self) -> None:
        """Compare all pairs of rows."""
        region = regions.everything()
        calls = [*self.comparing([region]), _drawing(self.planes)]
        *results, drawn = self.scope.runner.run(calls)
        self.sampled = replace(self.sampled, drawn=_drawn(drawn))
        self.learn(_evidence(results))
        self.add_validated(bitsets.from_columns([region.atoms], self.scope.space.atoms))

    def add_validated(self, sets: U64) -> None:
        """From now on these, and all that contain them, are validated."""
        self.validated += [sets, mirrored(sets, self.scope.space)]

    def comparing(self, chosen: list[Region]) -> list[Call]:
        """Calls that compare all pairs of some regions."""
        calls: list[Call] = []
        for region in chosen:
            pairs = self.sampled.pairs(self.scope.space, region)
            parts = parts_of(int(pairs), self.scope.rows, self.scope.runner.tasks)
            for part in range(parts):
                if region.equal is not None:
                    inside = tasks.Inside(self.planes, part, parts, region.equal)
                    calls.append((tasks.inside, inside))
                else:
                    together = tasks.Together(self.planes, part, parts, region.atoms)
                    calls.append((tasks.together, together))
        return calls


def _searching(
    scope: Scope, planes: Planes, candidates: U64, words: int | None = None
) -> list[Call]:
    """Calls that search for pairs which satisfy sets of atoms, dealt out in turn; with a number of
    words that are enough for each, they may end before they have searched for all."""
    count = min(scope.runner.tasks, len(candidates))
    atoms, most = bitsets.to_columns(candidates), thresholds.current.shown_pairs
    return [
        (tasks.violating, tasks.Violating(planes, tuple(atoms[k::count]), most, words))
        for k in range(count)
    ]


def _searched(results: list[list[TaskResult]], candidates: int) -> tuple[Flags, Flags]:
    """Which candidates were searched for, and which of them a pair satisfies."""
    searched, refuted = np.zeros((2, candidates), np.bool_)
    for k, [result] in enumerate(results):
        refuted[k :: len(results)] = result.arrays["refuted"]
        searched[k :: len(results)][: result.facts["searched"]] = True
    return searched, refuted


def _refuted(results: list[list[TaskResult]], candidates: int) -> Flags:
    """Which candidates a pair satisfies."""
    return _searched(results, candidates)[1]


def _drawing(planes: Planes) -> Call:
    """A call that draws a few pairs."""
    limits = thresholds.current
    return tasks.draw, tasks.Draw(planes, limits.drawn_pairs, limits.drawn_equal_pairs, _SEED)


def _drawn(results: list[TaskResult]) -> tuple[SampledPairs, ...]:
    return tuple(
        SampledPairs(EvidenceCounts(each.arrays["masks"], each.arrays["counts"]), **each.facts)
        for each in results
    )


def _evidence(results: Iterable[list[TaskResult]]) -> list[Evidence]:
    return [
        Evidence.of_pairs(result.arrays["masks"], result.arrays["pairs"])
        for of_call in results
        for result in of_call
    ]


def unsatisfiable(space: Space) -> U64:
    """The sets of all atoms of a comparison, which no pair satisfies: ``=`` and ``!=``."""
    sets = [
        tuple(range(first, first + len(comparison.operators)))
        for first, comparison in zip(space.first, space.comparisons, strict=True)
        if "!=" in comparison.operators
    ]
    return bitsets.from_columns(sets, space.atoms)
