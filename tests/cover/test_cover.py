"""The cover's law: whatever came and went, it equals the cover of what is there."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.cover.cover import Change, Cover
from holdfast.kernels import bitsets
from holdfast.kernels import cover as kernels
from holdfast.kernels.bitsets import Masks
from tests.oracle import maximal_sets, minimal_sets, minimal_sets_stepwise
from tests.strategies import examples, families

Family = list[tuple[int, ...]]


def columns(matrix: Masks) -> Family:
    return bitsets.to_columns(matrix)


def build(
    atoms: int, evidence: Family, max_size: int | None = None, groups: list[int] | None = None
) -> Cover:
    made = None if groups is None else kernels.groups(atoms, np.array(groups, np.int64))
    return Cover.build(atoms, bitsets.from_columns(evidence, atoms), max_size, made)


@dataclass(frozen=True)
class Step:
    """One change: which of the kept evidences go (by position), and what comes."""

    gone: list[int]
    come: Family


@dataclass(frozen=True)
class Story:
    atoms: int
    max_size: int | None
    start: Family
    steps: list[Step]
    groups: list[int] | None = None  # the group of every atom; a set's size is what it touches


@st.composite
def stories(draw: st.DrawFn) -> Story:
    atoms = draw(st.integers(0, 7))
    steps = st.builds(Step, st.lists(st.integers(0, 5), max_size=3), families(atoms, 6))
    return Story(
        atoms=atoms,
        max_size=draw(st.none() | st.integers(0, 5)),
        start=draw(families(atoms, 10)),
        steps=draw(st.lists(steps, max_size=5)),
        groups=draw(st.none() | st.lists(st.integers(0, 3), min_size=atoms, max_size=atoms)),
    )


@st.composite
def wide_stories(draw: st.DrawFn) -> Story:
    """A story whose atoms are spread over several words, among atoms that all evidences hold."""
    story = draw(stories())
    atoms = draw(st.sampled_from([64, 65, 128, 131]))
    size = story.atoms
    places = draw(st.lists(st.integers(0, atoms - 1), min_size=size, max_size=size, unique=True))

    def spread(family: Family) -> Family:
        others = set(range(atoms)) - set(places)
        return [tuple(sorted(others | {places[c] for c in each})) for each in family]

    steps = [Step(step.gone, spread(step.come)) for step in story.steps]
    return Story(atoms, story.max_size, spread(story.start), steps)


def tell(story: Story) -> None:
    """Live through a story, and compare the cover with a slow one after every step."""
    cover = build(story.atoms, story.start, story.max_size, story.groups)

    def slow(evidence: Family) -> Family:
        if story.groups is None:
            found = minimal_sets if story.atoms < 10 else minimal_sets_stepwise
            return found(story.atoms, evidence, story.max_size)
        most = story.atoms if story.max_size is None else story.max_size
        all_of_them = minimal_sets(story.atoms, evidence, None)
        return [each for each in all_of_them if len({story.groups[a] for a in each}) <= most]

    assert columns(cover.evidence) == maximal_sets(story.start)
    assert columns(cover.minimal) == slow(story.start)
    for step in story.steps:
        before, kept = columns(cover.minimal), columns(cover.evidence)
        gone = sorted({i % len(kept) for i in step.gone}) if kept else []
        change = apply(cover, [kept[i] for i in gone], step.come)
        there = [each for i, each in enumerate(kept) if i not in gone] + step.come
        after = slow(there)
        assert columns(cover.evidence) == maximal_sets(there)
        assert columns(cover.minimal) == after
        assert columns(change.gained) == [each for each in after if each not in before]
        assert columns(change.lost) == [each for each in before if each not in after]


def apply(cover: Cover, gone: Family, come: Family) -> Change:
    arriving = bitsets.from_columns(come, cover.atoms)
    if not gone:
        return cover.add(arriving)
    leaving = bitsets.from_columns(gone, cover.atoms)
    return cover.remove(leaving, arriving if come else None)


@given(stories())
@settings(max_examples=examples(300), deadline=None)
def test_law(story: Story) -> None:
    tell(story)


@given(wide_stories())
@settings(max_examples=examples(50), deadline=None)
def test_law_over_several_words(story: Story) -> None:
    tell(story)


@pytest.mark.parametrize("seed", range(4))
def test_law_with_many_sets(seed: int) -> None:
    random = np.random.default_rng(seed)
    family = [tuple(sorted(random.permutation(90)[:87].tolist())) for _ in range(8)]
    tell(Story(90, None, family[:4], [Step([], family[4:6]), Step([0, 3], family[6:])]))


def test_no_evidence() -> None:
    cover = build(3, [])
    assert columns(cover.minimal) == [()]
    change = cover.add(bitsets.from_columns([()], 3))
    assert columns(change.lost) == [()]
    assert columns(change.gained) == [(0,), (1,), (2,)]
    change = cover.remove(cover.evidence)
    assert columns(cover.minimal) == [()]
    assert columns(change.lost) == [(0,), (1,), (2,)]


def test_evidence_of_all_atoms() -> None:
    cover = build(3, [(0, 1, 2), (0,)])
    assert columns(cover.minimal) == []
    assert columns(cover.evidence) == [(0, 1, 2)]
    below = bitsets.from_columns([(0,), (1, 2)], 3)
    change = cover.remove(cover.evidence, replacement=below)
    assert columns(change.gained) == columns(cover.minimal) == [(0, 1), (0, 2)]


def test_replacing_evidence_by_itself_changes_nothing() -> None:
    cover = build(4, [(0, 1), (1, 2, 3)])
    before = cover.minimal
    change = cover.remove(cover.evidence, replacement=cover.evidence)
    assert not len(change.gained)
    assert not len(change.lost)
    assert np.array_equal(cover.minimal, before)


def test_sets_beyond_the_limit_come_back_when_they_fit() -> None:
    cover = build(4, [(0, 1, 2), (0, 1, 3), (0, 2, 3), (1, 2, 3)], max_size=2)
    assert columns(cover.minimal) == []
    cover.remove(bitsets.from_columns([(0, 1, 2), (0, 1, 3)], 4))
    assert columns(cover.minimal) == [(0, 1)]


def test_a_stored_cover_goes_on() -> None:
    first = build(70, [tuple(range(68)), tuple(range(2, 70))])
    for matrix in (first.evidence, first.minimal):
        matrix.flags.writeable = False
    again = Cover(first.atoms, first.evidence, first.minimal, first.max_size)
    again.add(bitsets.from_columns([(0, *range(2, 68), 69)], 70))
    assert columns(again.minimal) == [(0, 68), (1, 68), (1, 69)]
    assert columns(first.minimal) == [(0, 68), (0, 69), (1, 68), (1, 69)]


def test_an_interrupted_step_leaves_the_cover_as_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> Masks:
        raise KeyboardInterrupt

    cover = build(4, [(0, 1), (1, 2, 3)])
    minimal, evidence = columns(cover.minimal), columns(cover.evidence)
    monkeypatch.setattr(kernels, "search", interrupt)
    with pytest.raises(KeyboardInterrupt):
        cover.remove(cover.evidence[:1])
    assert columns(cover.minimal) == minimal
    assert columns(cover.evidence) == evidence


def test_unknown_evidence_is_not_removed() -> None:
    cover = build(3, [(0, 1)])
    with pytest.raises(ValueError, match="only maximal evidence"):
        cover.remove(bitsets.from_columns([(0,)], 3))
    assert columns(cover.evidence) == [(0, 1)]


@pytest.mark.parametrize(
    ("matrix", "message"),
    [
        (np.zeros((1, 2), np.uint64), "1 words a row"),
        (np.zeros((1, 1), np.int64), "not int64"),
        (np.array([[8]], np.uint64), "beyond the 3"),
    ],
)
def test_other_matrices_are_refused(matrix: Masks, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build(3, []).add(matrix)
    with pytest.raises(ValueError, match="cannot be negative"):
        build(3, [], max_size=-1)
