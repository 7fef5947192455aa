"""Which minimal sets of atoms are reported: against all that values, and nulls, can show."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.cover.cover import Cover
from holdfast.evidence.mirrors import mirrored
from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints.reduction import closed, is_trivial, reported
from holdfast.model.comparisons import (
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
    agreements,
)
from tests import oracle
from tests.data import MISSING, data_dir, read_table
from tests.kinds.spaces import evidence_of, spaces, told
from tests.strategies import examples

ALL = Space(
    "all",
    2,
    (
        *(Comparison(c, c, ORDER) for c in range(2)),
        *(Comparison(c, 1 - c, ORDER) for c in range(2)),
        *(Comparison(0, 1, ORDER, rows) for rows in (FIRST, SECOND)),
    ),
)
THREE = [
    Space(
        "three",
        3,
        (
            *(Comparison(c, c, ORDER) for c in range(3)),
            *(Comparison(a, b, operators) for a, b in [(0, 1), (1, 0), (1, 2), (2, 1)]),
            *(Comparison(0, 2, operators, rows) for rows in (FIRST, SECOND)),
        ),
    )
    for operators in (ORDER, EQUALITY)
]
LARGER = ("abalone", "breast-cancer")
NULLS = st.sampled_from(["equal", "unequal"])


def meaning_of(space: Space, nulls: str) -> oracle.Meaning:
    return oracle.Meaning(space.columns, told(space), nulls)


def covered(space: Space, rows: list[tuple[object, ...]], nulls: str) -> bitsets.Masks:
    """The minimal sets of a table."""
    shown = [oracle.evidence(t, s, told(space), nulls) for t, s in permutations(rows, 2)]
    return Cover.build(space.atoms, bitsets.from_columns(shown, space.atoms)).minimal


@given(data=st.data(), space=spaces(), nulls=NULLS)
@settings(max_examples=examples(300))
def test_what_follows_is_what_no_values_contradict(
    data: st.DataObject, space: Space, nulls: str
) -> None:
    atoms = data.draw(st.sets(st.sampled_from(range(space.atoms)))) if space.atoms else set()
    check_closure(space, atoms, nulls)


@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_ends_of_two_paths_through_different_cells_differ(nulls: str) -> None:
    """t.0 <= t.1 <= s.0 and t.0 <= s.1 <= s.0 and t.1 != s.1: then t.0 != s.0, although no step is
    strict."""
    first = dict(zip(ALL.comparisons, ALL.first, strict=True))
    atoms = {
        first[Comparison(0, 1, ORDER, FIRST)],  # t.0 <= t.1
        first[Comparison(1, 0, ORDER)],  # t.1 <= s.0
        first[Comparison(0, 1, ORDER)],  # t.0 <= s.1
        first[Comparison(0, 1, ORDER, SECOND)] + 1,  # s.0 >= s.1
        first[Comparison(1, 1, ORDER)] + 2,  # t.1 != s.1
    }
    closures, _ = closed(bitsets.from_columns([atoms], ALL.atoms), ALL)
    assert first[Comparison(0, 0, ORDER)] + 2 in bitsets.to_columns(closures)[0]
    check_closure(ALL, atoms, nulls)


def check_closure(space: Space, atoms: set[int], nulls: str) -> None:
    possible = [seen for seen, _ in meaning_of(space, nulls).possible if atoms <= seen]
    closures, satisfiable = closed(bitsets.from_columns([atoms], space.atoms), space)
    assert satisfiable[0] == bool(possible)
    if possible:
        assert bitsets.to_columns(closures)[0] == tuple(sorted(frozenset.intersection(*possible)))


@st.composite
def wide_sets(draw: st.DrawFn) -> tuple[Space, list[set[int]]]:
    """Sets of more atoms than a word has bits: a space again and again, for other columns."""
    small = draw(spaces().filter(lambda each: each.atoms))
    comparisons = tuple(
        replace(each, left=each.left + 2 * k, right=each.right + 2 * k)
        for k in range(draw(st.integers(1, 20)))
        for each in small.comparisons
    )
    wide = Space("wide", 40, comparisons)
    return wide, draw(st.lists(st.sets(st.integers(0, wide.atoms - 1)), max_size=20))


@given(wide_sets())
def test_mirror_images_and_trivial_sets(drawn: tuple[Space, list[set[int]]]) -> None:
    space, sets = drawn
    masks = bitsets.from_columns(sets, space.atoms)
    assert bitsets.to_columns(mirrored(masks, space)) == [space.mirrored(each) for each in sets]
    whole = [
        set(range(first, first + len(each.operators)))
        for first, each in zip(space.first, space.comparisons, strict=True)
    ]
    expected = [any(each <= atoms for each in whole) for atoms in sets]
    assert is_trivial(masks, space).tolist() == expected


CELLS = st.sampled_from([0, 1, 2, None])


@given(space=spaces(), rows=st.lists(st.tuples(CELLS, CELLS), max_size=5), nulls=NULLS)
@example(ALL, [(0, 1), (1, 1), (1, 1), (2, 1)], "equal")
@settings(max_examples=examples(100))
def test_what_is_reported_implies_all_that_holds(
    space: Space, rows: list[tuple[object, ...]], nulls: str
) -> None:
    """And nothing that is reported is implied by another one."""
    minimal = covered(space, rows, nulls)
    kept = bitsets.to_columns(reported(minimal, space))
    meaning = meaning_of(space, nulls)
    for atoms in bitsets.to_columns(minimal):
        assert any(meaning.implies(each, atoms) for each in kept) or not meaning.denied(atoms)
    for atoms in kept:
        assert meaning.denied(atoms)
        assert not any(meaning.implies(each, atoms) for each in kept if each != atoms)
    assert kept == oracle.denial_constraints(rows, 2, told(space), nulls)


@given(
    space=st.sampled_from(THREE),
    rows=st.lists(st.tuples(CELLS, CELLS, CELLS), max_size=4),
    nulls=NULLS,
)
@settings(max_examples=examples(10))
@pytest.mark.long
def test_three_columns(space: Space, rows: list[tuple[object, ...]], nulls: str) -> None:
    minimal = covered(space, rows, nulls)
    kept = bitsets.to_columns(reported(minimal, space))
    assert kept == oracle.denial_constraints(rows, 3, told(space), nulls)


@given(space=spaces(), rows=st.lists(st.tuples(CELLS, CELLS), max_size=5), nulls=NULLS)
def test_half_of_the_mirror_images_will_do(
    space: Space, rows: list[tuple[object, ...]], nulls: str
) -> None:
    """What is reported depends neither on which of two mirror images are given nor on order."""
    minimal = covered(space, rows, nulls)
    images = mirrored(minimal, space)
    half = np.where((np.arange(len(minimal)) % 2 == 0)[:, None], minimal, images)
    both = np.concatenate([half, images])[::-1]
    assert np.array_equal(reported(both, space), reported(minimal, space))


def test_no_sets_and_the_empty_set() -> None:
    for space in (ALL, agreements(3), Space("none", 1, ())):
        assert len(reported(bitsets.empty(space.atoms), space)) == 0
        empty = bitsets.from_columns([()], space.atoms)
        assert bitsets.to_columns(reported(empty, space)) == [()]


@pytest.mark.parametrize(
    "name",
    ["iris", "bridges", *(pytest.param(name, marks=pytest.mark.slow) for name in LARGER)],
)
def test_known_results(name: str) -> None:
    """The number of constraints that independent implementations find."""
    folder = data_dir()
    if folder is None:
        pytest.skip(MISSING)
    header, rows = read_table(folder / f"{name}.csv")
    ordered = [
        all(cell.replace(".", "", 1).lstrip("-").isdigit() for cell in cells)
        for cells in zip(*rows, strict=True)
    ]
    comparisons = [Comparison(c, c, ORDER if ordered[c] else EQUALITY) for c in range(len(header))]
    space = Space("known", len(header), tuple(comparisons))
    codes = np.array(
        [
            np.unique(np.array(cells, np.float64 if each else np.str_), return_inverse=True)[1]
            for cells, each in zip(zip(*rows, strict=True), ordered, strict=True)
        ]
    ).astype(np.int32)
    evidence = evidence_of(space, codes)
    expected = json.loads((folder / "known-results.json").read_text())[name]
    count = expected.get("denial_constraint_count") or len(expected["denial_constraints"])
    assert len(reported(Cover.build(space.atoms, evidence).minimal, space)) == count
