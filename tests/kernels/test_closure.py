"""Which sets contain no member of a family; what follows from sets is tested with their reading."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from holdfast.kernels import bitsets, closure
from tests.strategies import families


@given(st.data(), st.sampled_from([1, 5, 70, 130]))
def test_smallest(data: st.DataObject, atoms: int) -> None:
    sets, family = data.draw(families(atoms)), data.draw(families(atoms))
    family += data.draw(st.lists(st.sampled_from(sets))) if sets else []
    found = closure.is_smallest(
        bitsets.from_columns(sets, atoms), bitsets.from_columns(family, atoms)
    )
    assert found.tolist() == [not any(set(x) < set(each) for x in family) for each in sets]
