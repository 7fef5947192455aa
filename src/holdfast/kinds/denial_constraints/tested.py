"""How many pairs of rows could have broken denial constraints; how far these are from chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from holdfast.cover.counts import EvidenceCounts, SampledPairs
from holdfast.kernels import bitsets
from holdfast.kernels.tested import Predicates, RulesAsked, sums
from holdfast.kinds.chance import repeating, rules_like, strength
from holdfast.kinds.denial_constraints.predicates import atoms_of
from holdfast.model.comparisons import BOTH, Space
from holdfast.model.denial_constraints import DenialConstraint, Predicate

if TYPE_CHECKING:
    from holdfast.kinds.denial_constraints.reading import Denials

Atoms = tuple[int, ...]


@dataclass(frozen=True)
class Tested:
    """What pairs of rows say of a rule."""

    pairs: int  # that could have broken it; of a rule about single rows, rows
    strength: float  # how far it is from chance, from 0 to 1


def known_pairs(denials: Denials, rows: int) -> list[SampledPairs]:
    """What is known of all pairs of so many rows: their evidence, or that of a few, and of a few of
    those that are equal in each column."""
    if denials.counts is not None:
        return [SampledPairs(denials.counts, denials.counts.pairs)]
    if denials.sampled is None:
        return []
    drawn = [SampledPairs(denials.sampled, rows * (rows - 1)), *(denials.equal or ())]
    if denials.equal is not None:
        known = {each.equal for each in drawn}
        own = (k for k, each in enumerate(denials.space.comparisons) if each.is_own)
        none = EvidenceCounts.none(denials.space.atoms)
        drawn += [SampledPairs(none, 0, k) for k in own if k not in known]
    return drawn


@dataclass(frozen=True)
class TryingPairs:
    """The pairs of a table's rows, each set of which stands for more of them."""

    space: Space
    columns: Sequence[str]
    rows: int
    drawn: Sequence[SampledPairs]  # first of all pairs

    def tested(self, rules: Sequence[DenialConstraint]) -> list[Tested]:
        """How pairs try some rules without errors."""
        places: dict[Predicate, int] = {}
        starts, asked = [0], []
        for rule in rules:
            asked += [places.setdefault(each, len(places)) for each in rule.predicates]
            starts.append(len(asked))
        known = [self._known(each) for each in places]
        wanted = RulesAsked(np.array(starts, np.int64), np.array(asked, np.int64))
        written = self._written(list(places), known)
        by_set = [sums(e.sets.masks, e.sets.counts, written, wanted) for e in self.drawn]
        tested = []
        for place, rule in enumerate(rules):
            of_rule = slice(starts[place], starts[place + 1])
            others = [found[of_rule].tolist() for found, _ in by_set]
            could = [float(found[place]) for _, found in by_set]
            predicates = [known[each] for each in asked[of_rule]]
            tested.append(self._judged(rule, predicates, others, could))
        return tested

    def _known(self, predicate: Predicate) -> _Known:
        atoms = atoms_of(DenialConstraint("", (predicate,)), self.space, self.columns)
        k = self.space.comparison_of[atoms[0]]
        comparison, agreeing = self.space.comparisons[k], self.space.agreeing(k)
        differing = float(self.rows)
        if comparison.is_own:
            differing = repeating(self._share(agreeing), self.rows)
        by_chance = self._share(self._of_any_rows(atoms, k))
        return _Known(atoms, k if atoms == agreeing else None, by_chance, differing)

    def _of_any_rows(self, atoms: Atoms, k: int) -> Atoms:
        """Atoms as they are said of two rows, even if they are about the cells of one: where these
        had nothing to do with each other, they could as well be of two."""
        mine = self.space.comparisons[k]
        for other, each in enumerate(self.space.comparisons):
            if each.rows == BOTH and (each.left, each.right) == (mine.left, mine.right):
                shift = self.space.first[other] - self.space.first[k]
                return tuple(atom + shift for atom in atoms)
        return atoms

    def _share(self, atoms: Atoms) -> float:
        """The share of all pairs that satisfy some atoms."""
        every = self.drawn[0].sets
        return every.satisfying(atoms) / every.pairs if every.pairs else 0.0

    def _written(self, predicates: Sequence[Predicate], known: Sequence[_Known]) -> Predicates:
        """Predicates as the kernel reads them: a pair whose cells are compared by order could have
        broken a rule if they differ, one that is compared by equality only if they are equal."""
        atoms = [each.atoms for each in known]
        one, other = [], []
        for predicate, shown in zip(predicates, atoms, strict=True):
            first = self.space.first[self.space.comparison_of[shown[0]]]
            by_order = predicate.op not in ("=", "!=")
            equal = shown if predicate.op == "=" else ()
            one.append((first, first + 2) if by_order else equal)
            other.append((first + 1, first + 2) if by_order else equal)
        masks, ones, others = (
            bitsets.from_columns(some, self.space.atoms) for some in (atoms, one, other)
        )
        return Predicates(masks, np.zeros_like(masks), ones, others)

    def _judged(
        self,
        rule: DenialConstraint,
        predicates: Sequence[_Known],
        others: Sequence[Sequence[float]],
        could: Sequence[float],
    ) -> Tested:
        """By the violations that are expected if one of its columns were shuffled."""
        single = rule.is_within_a_row
        # A row shows what it is in its pairs with all others; and where both orders of a pair break
        # a rule together, they are one test.
        whole = tuple(sorted(atom for each in predicates for atom in each.atoms))
        orders = 2 if self.space.mirrored(whole) == whole else 1
        times = max(1, self.rows - 1) if single else orders
        expected = float(self.rows)
        for place, each in enumerate(predicates):
            rest = [other for other in predicates if other is not each]
            pairs = float(self.rows * (self.rows - 1))
            if rest:
                pairs = self._estimated([shown[place] for shown in others], rest)
            expected = min(expected, pairs * each.by_chance / times, each.differing)
        rules = rules_like(len(self.space.comparisons), len(predicates))
        pairs = self._estimated(could, predicates) if predicates else 0.0
        number = round(pairs / (max(1, self.rows - 1) if single else 2))
        return Tested(number, strength(expected, rules))

    def _estimated(self, shown: Sequence[float], satisfied: Sequence[_Known]) -> float:
        """About how many pairs there are that satisfy some predicates, by those of the drawn ones
        that stand for the fewest."""
        equal = {None, *(each.equal for each in satisfied)}
        usable = [place for place, each in enumerate(self.drawn) if each.equal in equal]
        best = min(usable, key=lambda place: self.drawn[place].of_pairs)
        return self.drawn[best].estimated(shown[best])


@dataclass(frozen=True)
class _Known:
    """What is known of a predicate."""

    atoms: Atoms
    equal: int | None  # the comparison, if it says that its cells are equal
    by_chance: float  # the share of the pairs of any rows that satisfy it
    differing: float  # at least so many rows lack the most frequent value of its column
