"""Which decimals a floating-point number holds: those that Python writes for it, and no others."""

from __future__ import annotations

import math
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels.floats import DOUBLE_BITS, FLOAT_BITS, fits
from tests.strategies import DOUBLES, examples, near_doubles

SINGLES = st.one_of(
    st.floats(width=32, allow_nan=False, allow_infinity=False),
    st.integers(-149, 127).map(lambda power: math.ldexp(1.0, power)),
    st.floats(-(2.0**-120), 2.0**-120, width=32),
).map(np.float32)


def fitting(number: Decimal, bits: int) -> bool:
    """What the kernel says of a number that is not 0 and has at most 17 digits."""
    _, digits, exponent = number.as_tuple()
    written = "".join(map(str, digits)).lstrip("0")
    short = written.rstrip("0")
    return fits(np.uint64(int(short)), int(exponent) + len(written) - len(short), bits)


def is_short(number: Decimal) -> bool:
    return number != 0 and len("".join(map(str, number.as_tuple().digits)).strip("0")) <= 17


@settings(deadline=None, max_examples=examples(1000))
@given(near_doubles().map(Decimal).filter(is_short))
def test_a_double_holds_its_shortest_decimal_alone(number: Decimal) -> None:
    assert fitting(number, DOUBLE_BITS) == (Decimal(repr(float(number))) == number)


@settings(deadline=None, max_examples=examples(500))
@given(SINGLES.filter(bool), st.integers(-2, 2))
def test_a_float_holds_its_shortest_decimal_alone(single: np.float32, away: int) -> None:
    _, digits, exponent = Decimal(str(single)).as_tuple()
    near = int("".join(map(str, digits))) + away
    number = Decimal(near).scaleb(int(exponent))
    if number == 0:
        return
    with np.errstate(over="ignore"):
        read = Decimal(str(np.float32(str(number))))
    assert fitting(number, FLOAT_BITS) == (read == number)


@settings(deadline=None, max_examples=examples(500))
@given(DOUBLES.filter(bool))
def test_all_doubles_have_one(double: float) -> None:
    assert fitting(Decimal(repr(double)), DOUBLE_BITS)


@pytest.mark.parametrize("end", [1.7976931348623157e308, 2.2250738585072014e-308, 5e-324])
def test_the_ends_of_the_range(end: float) -> None:
    assert fitting(Decimal(repr(end)), DOUBLE_BITS)


@pytest.mark.parametrize(
    "number", ["1.797693134862316e308", "1e309", "4.9e-324", "2e-324", "1e-325", "9e400", "1e-400"]
)
def test_what_no_double_holds(number: str) -> None:
    assert not fitting(Decimal(number), DOUBLE_BITS)
