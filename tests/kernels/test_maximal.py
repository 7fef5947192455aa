"""For which right-hand sides evidence is maximal, against the definition over plain Python sets."""

from __future__ import annotations

from random import Random

from hypothesis import example, given, settings
from hypothesis import strategies as st

from holdfast.kernels import bitsets, maximal
from tests.strategies import families

Family = list[tuple[int, ...]]

# The first example may have to compile a kernel.
patient = settings(deadline=None)


@st.composite
def cases(draw: st.DrawFn) -> tuple[int, Family, Family]:
    """Two families of distinct sets over a few atoms, of which the higher may lie in later words;
    more than 64 sets at times."""
    atoms = draw(st.sampled_from([1, 3, 65, 130]))
    spread = sorted(draw(st.sets(st.integers(0, atoms - 1), min_size=1, max_size=7)))
    found = []
    for _ in range(2):
        sets = {tuple(spread[c] for c in each) for each in draw(families(len(spread), 90))}
        found.append(sorted(sets, key=lambda each: (-len(each), each)))
    return atoms, found[0], found[1]


def shared(mask: tuple[int, ...], rhs: set[int], family: Family) -> set[int]:
    """What all larger sets share of ``rhs``."""
    for other in family:
        if set(mask) < set(other):
            rhs = rhs & set(other)
    return rhs


def columns(matrix: bitsets.Masks) -> list[set[int]]:
    return [set(each) for each in bitsets.to_columns(matrix)]


@given(cases())
@example((1, [(0,)], []))  # it lacks nothing, and is maximal for nothing
@patient
def test_maximal_for(case: tuple[int, Family, Family]) -> None:
    atoms, family, _ = case
    matrix = bitsets.from_columns(family, atoms)
    kept, rhs = maximal.maximal_for(matrix, bitsets.universe(atoms)[0])
    expected = {
        mask: left for mask in family if (left := shared(mask, set(range(atoms)) - {*mask}, family))
    }
    assert dict(zip([family[i] for i in kept], columns(rhs), strict=True)) == expected


@given(cases(), st.randoms(use_true_random=False))
@patient
def test_narrowed_and_opened(case: tuple[int, Family, Family], chance: Random) -> None:
    atoms, family, others = case
    matrix, other = bitsets.from_columns(family, atoms), bitsets.from_columns(others, atoms)
    rhs = [{c for c in range(atoms) if chance.random() < 0.5} for _ in family]
    told = bitsets.from_columns([sorted(each) for each in rhs], atoms)
    assert columns(maximal.narrowed(matrix, told, other)) == [
        shared(mask, left, others) for mask, left in zip(family, rhs, strict=True)
    ]
    assert columns(maximal.opened(other, matrix, told)) == [
        set().union(*(left for above, left in zip(family, rhs, strict=True) if {*mask} < {*above}))
        for mask in others
    ]


@given(cases(), st.randoms(use_true_random=False))
@patient
def test_united_and_by_rhs(case: tuple[int, Family, Family], chance: Random) -> None:
    atoms, *both = case
    expected: dict[tuple[int, ...], set[int]] = {}
    given_: list[bitsets.Masks] = []
    for family in both:
        ordered = sorted(family, key=lambda each: (len(each), each))
        rhs = [{c for c in range(atoms) if chance.random() < 1 / atoms} for _ in ordered]
        given_ += [bitsets.from_columns([*each], atoms) for each in (ordered, rhs)]
        for mask, mine in zip(ordered, rhs, strict=True):
            expected[mask] = expected.get(mask, set()) | mine
    masks, told = maximal.united(*given_)
    found = list(zip(bitsets.to_columns(masks), columns(told), strict=True))
    assert found == sorted(
        ((mask, rhs) for mask, rhs in expected.items() if rhs),
        key=lambda each: (len(each[0]), each[0]),
    )
    rows, starts = maximal.by_rhs(told)
    for column in range(atoms):
        of_column = [i for i, (_, rhs) in enumerate(found) if column in rhs]
        assert rows[starts[column] : starts[column + 1]].tolist() == of_column
