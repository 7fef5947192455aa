"""Bitsets and hitting-set searches against plain Python sets."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import bitsets
from holdfast.kernels import cover as kernels
from tests.oracle import maximal_sets, minimal_sets, minimal_sets_stepwise
from tests.strategies import families

Family = list[tuple[int, ...]]

# The first example may have to compile a kernel.
patient = settings(deadline=None)

ATOMS = st.sampled_from([0, 1, 3, 7, 63, 64, 65, 130])


@st.composite
def family_pairs(draw: st.DrawFn) -> tuple[int, Family, Family]:
    """Two families over a few atoms, of which the higher may lie in later words."""
    atoms = draw(ATOMS)
    spread = sorted(draw(st.sets(st.integers(0, atoms - 1), max_size=5))) if atoms else []
    pairs = [
        [tuple(spread[c] for c in each) for each in draw(families(len(spread), 30))]
        for _ in range(2)
    ]
    return atoms, pairs[0], pairs[1]


@given(family_pairs())
@patient
def test_columns_come_back(case: tuple[int, Family, Family]) -> None:
    atoms, family, _ = case
    matrix = bitsets.from_columns(family, atoms)
    assert matrix.shape == (len(family), bitsets.words_for(atoms))
    assert bitsets.to_columns(matrix) == family
    assert bitsets.popcount(matrix).tolist() == [len(each) for each in family]
    assert bitsets.to_columns(bitsets.complement(matrix, atoms)) == [
        tuple(c for c in range(atoms) if c not in each) for each in family
    ]


@given(family_pairs())
@patient
def test_order_and_equality(case: tuple[int, Family, Family]) -> None:
    atoms, family, others = case
    matrix, other = bitsets.from_columns(family, atoms), bitsets.from_columns(others, atoms)
    ordered = sorted(family, key=lambda each: (len(each), each))
    assert bitsets.to_columns(matrix[bitsets.canonical_order(matrix)]) == ordered
    assert bitsets.to_columns(bitsets.distinct(matrix)) == list(dict.fromkeys(ordered))
    assert bitsets.is_member(matrix, other).tolist() == [each in others for each in family]
    assert bitsets.occupied(matrix).tolist() == [bool(each) for each in family]
    once = bitsets.distinct(other)
    held = bitsets.to_columns(once)
    assert bitsets.find(matrix, once).tolist() == [
        held.index(each) if each in held else -1 for each in family
    ]


@given(family_pairs())
@patient
def test_transpose(case: tuple[int, Family, Family]) -> None:
    atoms, family, _ = case
    held = bitsets.transpose(bitsets.from_columns(family * 30, atoms))
    flags = bitsets.to_flags(held, 64 * held.shape[1])
    for column in range(64 * bitsets.words_for(atoms)):
        members = [i for i, each in enumerate(family * 30) if column in each]
        assert np.flatnonzero(flags[column]).tolist() == members


@given(family_pairs())
@patient
def test_containment(case: tuple[int, Family, Family]) -> None:
    atoms, family, others = case
    matrix, other = bitsets.from_columns(family, atoms), bitsets.from_columns(others, atoms)
    assert bitsets.any_superset(matrix, other).tolist() == [
        any(set(each) <= set(one) for one in others) for each in family
    ]
    assert bitsets.any_subset(matrix, other).tolist() == [
        any(set(one) <= set(each) for one in others) for each in family
    ]
    contained = [[i for i, one in enumerate(others) if set(one) <= set(each)] for each in family]
    assert bitsets.first_subset(matrix, other).tolist() == [
        min(each, default=-1) for each in contained
    ]
    assert bitsets.to_columns(bitsets.maximal(matrix)) == maximal_sets(family)
    lacking = [set(range(atoms)) - set(each) for each in family]
    smallest = [tuple(sorted(set(range(atoms)) - set(each))) for each in maximal_sets(lacking)]
    assert sorted(bitsets.to_columns(bitsets.minimal(matrix))) == sorted(smallest)


@pytest.mark.slow
def test_containment_over_many_members() -> None:
    random = np.random.default_rng(7)
    matrix = random.integers(0, 1 << 12, (3000, 2)).astype(np.uint64)
    inside = (matrix[:, None, :] & ~matrix[None, :, :]).any(axis=2)
    same = (matrix[:, None, :] == matrix[None, :, :]).all(axis=2)
    top = matrix[(inside | same).all(axis=1)]
    assert np.array_equal(bitsets.maximal(matrix), bitsets.distinct(top))
    assert bitsets.any_superset(matrix, bitsets.maximal(matrix)).all()


def test_views_and_read_only_arrays_are_taken() -> None:
    matrix = bitsets.from_columns([(0,), (0, 70), (1, 70), (0, 70)], 80)
    matrix.flags.writeable = False
    assert bitsets.to_columns(bitsets.maximal(matrix[::-1])) == [(0, 70), (1, 70)]
    assert bitsets.any_subset(matrix[::2], matrix[1::2]).tolist() == [False, False]
    assert bitsets.to_columns(bitsets.distinct(matrix[::2])) == [(0,), (1, 70)]


@pytest.mark.parametrize("column", [-1, 3])
def test_a_column_out_of_range_is_refused(column: int) -> None:
    with pytest.raises(ValueError, match="0 … 2"):
        bitsets.from_columns([(column,)], 3)


@given(
    families(6, 10),
    families(6, 4),
    st.integers(0, 7),
)
@patient
def test_search_inside_areas(evidence: Family, areas: Family, limit: int) -> None:
    graph = kernels.edges(bitsets.complement(bitsets.from_columns(evidence, 6), 6))
    masks, whole = kernels.search(graph, bitsets.from_columns(areas, 6), limit, kernels.groups(6))
    found = bitsets.to_columns(masks)
    expected = [
        each
        for each in minimal_sets(6, evidence, limit)
        if any(set(each) <= set(area) for area in areas)
    ]
    assert sorted(found) == sorted(expected)
    if whole:
        longer = minimal_sets(6, evidence, 6)
        assert not [each for each in longer if len(each) > limit and set(each) in map(set, areas)]
    if (0, 1, 2, 3, 4, 5) in areas and whole:
        assert sorted(found) == sorted(longer)


@given(families(6, 6), families(6, 6), st.integers(0, 7))
@patient
def test_extend_finds_each_set_once(first: Family, later: Family, limit: int) -> None:
    seeds = [
        each
        for each in minimal_sets(6, first, limit)
        if any(set(each) <= set(one) for one in later)
    ]
    rows = bitsets.complement(bitsets.from_columns(first + later, 6), 6)
    grown = kernels.extend(
        bitsets.from_columns(seeds, 6), kernels.edges(rows), limit, kernels.groups(6)
    )
    expected = set(minimal_sets(6, first + later, limit)) - set(minimal_sets(6, first, limit))
    assert sorted(bitsets.to_columns(grown)) == sorted(expected)


@given(families(6, 8), families(6, 8))
@patient
def test_irredundant(sets: Family, edges: Family) -> None:
    graph = kernels.edges(bitsets.from_columns(edges, 6))
    assert kernels.irredundant(bitsets.from_columns(sets, 6), graph).tolist() == [
        all(any(set(edge) & set(each) == {atom} for edge in edges) for atom in each)
        for each in sets
    ]


def test_an_interrupted_search_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(3)
    evidence = [tuple(sorted(random.permutation(70)[:66].tolist())) for _ in range(5)]
    rows = bitsets.complement(bitsets.from_columns(evidence, 70), 70)
    expected = minimal_sets_stepwise(70, evidence)
    assert len(expected) > 100
    monkeypatch.setattr(kernels, "STEPS", 7)
    monkeypatch.setattr(kernels, "ROOM", 2)
    graph = kernels.edges(rows)
    searched, whole = kernels.search(graph, bitsets.universe(70), 70, kernels.groups(70))
    assert whole
    grown = kernels.extend(bitsets.from_columns([()], 70), graph, 70, kernels.groups(70))
    assert sorted(bitsets.to_columns(searched)) == sorted(expected)
    assert sorted(bitsets.to_columns(grown)) == sorted(expected)
