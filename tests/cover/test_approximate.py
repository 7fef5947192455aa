"""All minimal sets within a bound on the weight of the evidences that contain them."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cover import approximate
from holdfast.cover.approximate import Approximate, Atoms, minimal_within
from holdfast.cover.cover import Cover
from holdfast.kernels import approximate as kernels
from holdfast.kernels import bitsets
from holdfast.kernels.cover import TooMany
from tests import oracle
from tests.strategies import examples, families

Family = list[tuple[int, ...]]


@dataclass(frozen=True)
class Problem:
    atoms: int
    evidence: Family
    weights: list[int]
    most: int
    limit: int | None = None
    without: int | None = None
    groups: list[int] | None = None
    trivial: Family | None = None

    def solved(self, threads: int = 1) -> dict[tuple[int, ...], int]:
        found = minimal_within(
            bitsets.from_columns(self.evidence, self.atoms),
            np.array(self.weights, np.int64),
            Atoms(
                self.atoms,
                self.without,
                None if self.groups is None else np.array(self.groups, np.int64),
                None if self.trivial is None else bitsets.from_columns(self.trivial, self.atoms),
            ),
            self.most,
            self.limit,
            threads,
        )
        assert found.complete
        return told(found)

    def slowly(self) -> dict[tuple[int, ...], int]:
        return oracle.minimal_within(
            self.atoms,
            zip(self.evidence, self.weights, strict=True),
            self.most,
            self.limit,
            self.without,
            self.groups,
            self.trivial or [],
        )


def told(found: Approximate) -> dict[tuple[int, ...], int]:
    """The answers by their atoms: each once, in canonical order."""
    sets = bitsets.to_columns(found.masks)
    assert sets == sorted(set(sets), key=lambda one: (len(one), one))
    return dict(zip(sets, found.violations.tolist(), strict=True))


@st.composite
def problems(draw: st.DrawFn, max_atoms: int = 8) -> Problem:
    """Weights are small, and bounds often are sums of them: ties are common."""
    atoms = draw(st.integers(0, max_atoms))
    evidence = draw(families(atoms, 14))
    size = len(evidence)
    weights = draw(st.lists(st.integers(1, 6), min_size=size, max_size=size))
    tied = [sum(weights[:k]) for k in range(size + 1)]
    groups = st.lists(st.integers(0, 3), min_size=atoms, max_size=atoms)
    return Problem(
        atoms,
        evidence,
        weights,
        most=draw(st.just(0) | st.integers(0, 20) | st.sampled_from(tied)),
        limit=draw(st.none() | st.integers(0, 4)),
        without=draw(st.none() | st.integers(0, atoms - 1)) if atoms else None,
        groups=draw(st.none() | groups),
        trivial=draw(st.none() | families(atoms, 3, min_size=1)) if atoms else None,
    )


@given(problems(), st.sampled_from([1, 3]))
@settings(max_examples=examples(400), deadline=None)
def test_against_all_subsets(problem: Problem, threads: int) -> None:
    assert problem.solved(threads) == problem.slowly()


@given(problems(6), st.sampled_from([64, 65, 130]), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_atoms_spread_over_several_words(problem: Problem, atoms: int, random: object) -> None:
    """Among atoms that all evidences hold: those are never needed."""
    places = sorted(random.sample(range(atoms), problem.atoms))  # type: ignore[attr-defined]
    others = set(range(atoms)) - set(places)
    spread = [tuple(sorted(others | {places[a] for a in one})) for one in problem.evidence]
    wide = Problem(atoms, spread, problem.weights, problem.most, problem.limit)
    narrow = Problem(problem.atoms, problem.evidence, problem.weights, problem.most, problem.limit)
    expected = {tuple(places[a] for a in one): n for one, n in narrow.slowly().items()}
    assert wide.solved() == expected


@given(problems())
@settings(max_examples=examples(100), deadline=None)
def test_a_bound_of_zero_gives_the_cover(problem: Problem) -> None:
    exact = Problem(problem.atoms, problem.evidence, problem.weights, 0, problem.limit)
    masks = bitsets.from_columns(problem.evidence, problem.atoms)
    cover = Cover.build(problem.atoms, masks, problem.limit)
    assert list(exact.solved()) == bitsets.to_columns(cover.minimal)


def random_problem(seed: int, atoms: int, evidences: int, share: float, most: int) -> Problem:
    """Too many candidates for one word once cut down, and many answers."""
    random = np.random.default_rng(seed)
    flags = random.random((evidences, atoms)) < share
    evidence = bitsets.to_columns(bitsets.from_flags(flags))
    return Problem(atoms, evidence, random.integers(1, 9, evidences).tolist(), most)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_many_atoms(seed: int) -> None:
    problem = random_problem(seed, 90, 40, 0.3, 20)
    shown = [(frozenset(e), w) for e, w in zip(problem.evidence, problem.weights, strict=True)]
    # Level by level: whatever is above the bound grows by later atoms.
    level: list[tuple[tuple[int, ...], list[tuple[frozenset[int], int]]]] = [((), shown)]
    expected: dict[tuple[int, ...], int] = {}
    while level:
        grown = []
        for chosen, inside in level:
            weight = sum(w for _, w in inside)
            smaller = (chosen[:k] + chosen[k + 1 :] for k in range(len(chosen)))
            if weight > problem.most:
                start = chosen[-1] + 1 if chosen else 0
                grown += [
                    ((*chosen, a), [one for one in inside if a in one[0]])
                    for a in range(start, problem.atoms)
                ]
            elif all(
                sum(w for e, w in shown if e.issuperset(less)) > problem.most for less in smaller
            ):
                expected[chosen] = weight
        level = grown
    assert problem.solved() == problem.solved(threads=4) == expected


def test_a_search_that_is_left_and_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(7, 20, 80, 0.6, 15)
    whole = problem.solved()
    assert len(whole) > 100
    monkeypatch.setattr(kernels, "ROOM", 1)
    search = kernels.search
    calls = 0

    def short(stack: kernels.WeightStack, one: Any, two: Any, *_: object) -> object:
        nonlocal calls
        calls += 1
        return search(stack, one, two, 1)

    monkeypatch.setattr(kernels, "search", short)
    assert problem.solved() == whole
    assert calls > 100


def test_a_search_that_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(7, 20, 80, 0.6, 15)
    whole = problem.solved()
    search = kernels.search
    monkeypatch.setattr(kernels, "search", lambda stack, one, two, *_: search(stack, one, two, 1))
    masks = bitsets.from_columns(problem.evidence, problem.atoms)
    weights = np.array(problem.weights, np.int64)
    for threads in (1, 2):
        answers = chain([False] * 150, repeat(True))
        found = minimal_within(
            masks, weights, Atoms(20), problem.most, threads=threads, stop=answers.__next__
        )
        assert not found.complete
        some = told(found)
        assert 0 < len(some) < len(whole)
        assert some.items() <= whole.items()


def test_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(7, 20, 80, 0.6, 15)
    monkeypatch.setattr(approximate, "MOST", 100)
    for threads in (1, 2):
        with pytest.raises(TooMany):
            problem.solved(threads)


def test_an_error_of_one_thread_is_not_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = random_problem(7, 20, 80, 0.6, 15)
    monkeypatch.setattr(approximate, "MOST", 100)
    usual = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # threads take turns at every chance
    try:
        for _ in range(40):
            with pytest.raises(TooMany):
                problem.solved(2)
    finally:
        sys.setswitchinterval(usual)


def test_comparisons_count_once_and_whole_ones_never_count() -> None:
    """Two ordered comparisons as ≤, ≥, ≠: all three of one are never satisfied."""
    outcomes = [(0, 2), (0, 1), (1, 2)]
    evidence = [(*one, *(a + 3 for a in two)) for one in outcomes for two in outcomes]
    groups = [0, 0, 0, 1, 1, 1]
    trivial: Family = [(0, 1, 2), (3, 4, 5)]
    exact = Problem(6, evidence, [1] * 9, 0, groups=groups)
    assert list(exact.solved()) == trivial
    assert Problem(6, evidence, [1] * 9, 0, groups=groups, trivial=trivial).solved() == {}
    near = Problem(6, evidence, [1] * 9, 3, groups=groups, trivial=trivial)
    pairs = [(0, 1), (0, 2), (1, 2), (3, 4), (3, 5), (4, 5)]
    one_comparison = Problem(6, evidence, [1] * 9, 3, 1, groups=groups)
    assert one_comparison.solved() == dict.fromkeys(pairs, 3)
    assert near.solved() == near.slowly()


def test_refused() -> None:
    for most, limit in ((-1, None), (0, -1)):
        with pytest.raises(ValueError, match="can be negative"):
            Problem(2, [(0,)], [1], most, limit).solved()
