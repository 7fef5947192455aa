"""Texts that are one edit away from others, beside the definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels.edits import Neighbours
from tests import oracle
from tests.strategies import examples

TEXTS = st.lists(st.text("abö𝄞", max_size=5), max_size=12)


@given(TEXTS, TEXTS)
@settings(max_examples=examples(200))
def test_neighbours_are_those_of_the_definition(wanted: list[str], others: list[str]) -> None:
    neighbours = Neighbours.of(wanted)
    for start in range(0, len(others), 4):
        some = others[start : start + 4]
        neighbours.look_at(some, np.arange(start, start + len(some)))
    for place, text in enumerate(wanted):
        near = {other for other in others if oracle.is_one_edit(text, other)}
        assert neighbours.found[place] == min(2, len(near))
        if len(near) == 1:
            assert others[neighbours.ids[place, 0]] == near.pop()
