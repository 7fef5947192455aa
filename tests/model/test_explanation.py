"""Masked examples: numbers in place of values, the same for equal ones, in their order."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.explanation import Example, masked

TEXTS = st.sampled_from(
    ["NaN", "nan", "-NaN", "sNaN", "NaN12", "Infinity", "-inf", "1", "1.0", "1.00", "-0", "0",
     "1e999999999999", "-1e999999999999", "1e-999999999999", "1e" + "9" * 30, "2026-01-02", "", "x"]
)  # fmt: skip
CELLS: st.SearchStrategy[Any] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    TEXTS,
    st.text(),
    st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=2),
    st.dictionaries(st.text(max_size=2), st.one_of(st.none(), TEXTS), max_size=2),
)


def shown(values: list[Any]) -> list[Any]:
    """What stands for the values of one column."""
    [example] = masked([Example(len(values), tuple({"a": each} for each in values))])
    return [row["a"] for row in example.shown]


def place(text: Any) -> int:
    assert isinstance(text, str)
    assert text.startswith("value ")
    return int(text.removeprefix("value "))


@given(st.lists(CELLS, max_size=8))
def test_any_values_can_be_masked(values: list[Any]) -> None:
    told = shown(values)
    assert [each is None for each in told] == [each is None for each in values]
    numbers = {place(each) for each in told if each is not None}
    assert numbers == set(range(1, len(numbers) + 1))
    assert shown(values) == told
    backwards = dict(zip(map(repr, values[::-1]), shown(values[::-1]), strict=True))
    assert [backwards[repr(each)] for each in values] == told


@given(st.lists(st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))))
def test_numbers_keep_their_order(values: list[float]) -> None:
    told = [place(each) for each in shown(values)]
    for one, mine in zip(values, told, strict=True):
        for other, theirs in zip(values, told, strict=True):
            assert (mine < theirs) == (one < other) or type(one) is not type(other)


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        (["nan", 1.5, "inf", "-inf", -2.0], [5, 3, 4, 1, 2]),
        (["NaN", "7", "sNaN", "-1"], [3, 2, 4, 1]),
        ([0.0, -0.0, -1.0], [2, 2, 1]),
        ([[0.0], [-0.0]], [1, 1]),
        ([{"x": 0.0, "y": 1}, {"y": 1, "x": -0.0}], [1, 1]),
        (["0", "-0"], [2, 1]),
        (["1e999999999999", "1e-999999999999", "3"], [3, 1, 2]),
        (["0." + "1" * 38, "0." + "1" * 37 + "2"], [1, 2]),
        (["2026-01-02", "2025-12-31"], [2, 1]),
        ([True, False], [2, 1]),
    ],
)
def test_the_order_of_values(values: list[Any], expected: list[int]) -> None:
    assert [place(each) for each in shown(values)] == expected
