"""Pairs that try rules, against a loop over evidence and predicates."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels import bitsets
from holdfast.kernels.tested import Predicates, RulesAsked, sums

ATOMS = 70
SETS = st.frozensets(st.integers(0, ATOMS - 1), max_size=4)
PREDICATES = st.lists(st.tuples(SETS, SETS, SETS, SETS), min_size=1, max_size=5)
EVIDENCE = st.lists(
    st.tuples(st.frozensets(st.integers(0, ATOMS - 1), min_size=20), st.integers(1, 9)),
    max_size=150,
)
Four = tuple[frozenset[int], frozenset[int], frozenset[int], frozenset[int]]


@given(EVIDENCE, PREDICATES, st.data())
def test_sums_are_those_of_a_loop(
    evidence: list[tuple[frozenset[int], int]], predicates: list[Four], data: st.DataObject
) -> None:
    places = st.lists(st.integers(0, len(predicates) - 1), max_size=4, unique=True)
    rules = data.draw(st.lists(places, max_size=4))
    masks = [bitsets.from_columns([e[k] for e in predicates], ATOMS) for k in range(4)]
    starts = np.cumsum([0, *map(len, rules)]).astype(np.int64)
    asked = np.array([place for rule in rules for place in rule], np.int64)
    others, could = sums(
        bitsets.from_columns([shown for shown, _ in evidence], ATOMS),
        np.array([number for _, number in evidence], np.int64),
        Predicates(*masks),
        RulesAsked(starts, asked),
    )

    def satisfied(shown: frozenset[int], place: int) -> bool:
        wanted, lacked, _, _ = predicates[place]
        return wanted <= shown and not lacked & shown

    def tries(shown: frozenset[int], place: int) -> bool:
        return predicates[place][2] <= shown or predicates[place][3] <= shown

    assert could.tolist() == [
        sum(number for shown, number in evidence if all(tries(shown, each) for each in rule))
        for rule in rules
    ]
    assert others.tolist() == [
        sum(
            number
            for shown, number in evidence
            if [place for place in rule if not satisfied(shown, place)] == [each]
        )
        for rule in rules
        for each in rule
    ]
