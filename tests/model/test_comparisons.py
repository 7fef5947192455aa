"""Spaces of comparisons: how their atoms are numbered, and mirror images."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.comparisons import (
    EQUALITY,
    FIRST,
    ORDER,
    SECOND,
    Comparison,
    Space,
    agreements,
)
from holdfast.model.records import from_form, to_form

HOLDS = {
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "!=": lambda a, b: a != b,
    "=": lambda a, b: a == b,
}


@st.composite
def spaces(draw: st.DrawFn) -> Space:
    """Two columns that are compared with themselves, with each other, or within a row."""
    found = [Comparison(c, c, draw(st.sampled_from([ORDER, EQUALITY]))) for c in range(2)]
    operators = draw(st.sampled_from([ORDER, EQUALITY]))
    if draw(st.booleans()):
        found += [Comparison(0, 1, operators), Comparison(1, 0, operators)]
    if draw(st.booleans()):
        found += [Comparison(0, 1, operators, FIRST), Comparison(0, 1, operators, SECOND)]
    return Space("drawn", 2, tuple(found))


def satisfied(space: Space, cells: tuple[int, ...]) -> list[int]:
    """The atoms that hold where the cells are t.0, t.1, s.0, s.1."""
    out = []
    for each in space.comparisons:
        left = each.left + (2 if each.rows == SECOND else 0)
        right = each.right + (0 if each.rows == FIRST else 2)
        out += [HOLDS[operator](cells[left], cells[right]) for operator in each.operators]
    return [atom for atom, holds in enumerate(out) if holds]


@given(data=st.data(), space=spaces())
def test_a_mirror_image_is_what_the_other_row_sees(data: st.DataObject, space: Space) -> None:
    cells = data.draw(st.tuples(*[st.integers(0, 2)] * 4))
    other = satisfied(space, (*cells[2:], *cells[:2]))
    assert space.mirrored(satisfied(space, cells)) == tuple(other)


@given(space=spaces())
def test_a_stored_space_is_read_back(space: Space) -> None:
    assert from_form(Space, json.loads(json.dumps(to_form(space)))) == space


def test_agreement_has_an_atom_a_column() -> None:
    space = agreements(3)
    assert (space.atoms, space.symmetric, space.mirror) == (3, True, (0, 1, 2))
    assert not Space("o", 1, (Comparison(0, 0, ORDER),)).symmetric
