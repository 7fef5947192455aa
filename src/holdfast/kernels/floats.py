"""Decimal numbers that a floating-point type holds without losing a digit.

A number fits if it is the shortest decimal that is read as its double (of those that are equally
short, the nearest to it). Then the double determines the number, so two different numbers that fit
are two different doubles. A number of at most 15 digits, far from the ends of the range, always
fits: no double is read from two of those, so none has a shorter decimal than its own.

The shortest decimal is found as in R. Giulietti, *The Schubfach way to render doubles* (2021),
section 9, whose names are kept; that of a float is found in the same way, with fewer bits.
"""

from __future__ import annotations

import numpy as np

from holdfast.kernels.arrays import U64
from holdfast.kernels.jit import kernel

FLOAT_BITS = 24
DOUBLE_BITS = 53
"""Bits of the significand."""

MOST_DIGITS = 17
"""The shortest decimal of a double has no more."""

_LEAST, _MOST = -324, 308  # exponents of shortest decimals
_U1 = np.uint64(1)
_U2 = np.uint64(2)
_U4 = np.uint64(4)
_U10 = np.uint64(10)
_U32 = np.uint64(32)
_U62 = np.uint64(62)
_U63 = np.uint64(63)
_LOW_32 = np.uint64(2**32 - 1)
_LOW_63 = np.uint64(2**63 - 1)


def _plain_log2(exponent: int) -> int:
    """The logarithm of a power of ten to the base 2, rounded down."""
    return (exponent * 1741647) >> 19


_log2_of_power_of_10 = kernel(_plain_log2)


@kernel
def _log10_of_power_of_2(exponent: int, closer: bool) -> int:
    """Rounded down; ``closer``: of three quarters of the power."""
    return (exponent * 1262611 - (524031 if closer else 0)) >> 22


def _powers() -> U64:
    """Powers of ten from 10^-324 to 10^324, in 126 bits and rounded up: two words of 63 bits."""
    powers = np.empty((2 * -_LEAST + 1, 2), np.uint64)
    for exponent in range(_LEAST, -_LEAST + 1):
        shift = 125 - _plain_log2(exponent)  # nothing is compiled when this is imported
        above, below = 10 ** max(exponent, 0) << max(shift, 0), 10 ** max(-exponent, 0)
        bits = (above >> max(-shift, 0)) // below + 1
        powers[exponent - _LEAST] = bits >> 63, bits & (2**63 - 1)
    return powers


_POWERS = _powers()


@kernel
def _product(a: np.uint64, b: np.uint64) -> tuple[np.uint64, np.uint64]:
    """The higher and the lower word."""
    a1, a0 = a >> _U32, a & _LOW_32
    b1, b0 = b >> _U32, b & _LOW_32
    lowest = a0 * b0
    left = a1 * b0 + (lowest >> _U32)
    right = a0 * b1 + (left & _LOW_32)
    return a1 * b1 + (left >> _U32) + (right >> _U32), (right << _U32) | (lowest & _LOW_32)


@kernel
def _rounded_to_odd(power: int, factor: np.uint64) -> np.uint64:
    """A power of ten times a factor, without the lower 127 bits; odd if any of those is set."""
    x1, _ = _product(_POWERS[power - _LEAST, 1], factor)
    y1, y0 = _product(_POWERS[power - _LEAST, 0], factor)
    z = (y0 >> _U1) + x1
    return (y1 + (z >> _U63)) | (((z & _LOW_63) + _LOW_63) >> _U63)


@kernel
def _shortest(c: np.uint64, q: int, closer: bool) -> tuple[np.uint64, int]:
    """The shortest decimal that is read as ``c * 2**q``, as digits and exponent; there may be zeros
    at the end. ``closer``: the next number below is only half as far as the one above."""
    k = _log10_of_power_of_2(q, closer)
    h = np.uint64(q + _log2_of_power_of_10(-k) + 2)
    out = c & _U1  # an even number is also read from the ends of its interval
    lower = _rounded_to_odd(-k, (_U4 * c - (_U1 if closer else _U2)) << h) + out
    middle = _rounded_to_odd(-k, (_U4 * c) << h)
    upper = _rounded_to_odd(-k, (_U4 * c + _U2) << h) - out
    s = middle // _U4
    tens = s // _U10
    below, above = lower <= _U4 * _U10 * tens, _U4 * _U10 * (tens + _U1) <= upper
    if below != above:
        return (tens if below else tens + _U1), k + 1
    below, above = lower <= _U4 * s, _U4 * (s + _U1) <= upper
    if below == above:  # both are: the nearer one, or the even one
        half = _U4 * s + _U2
        below = middle < half or (middle == half and s & _U1 == 0)
    return (s if below else s + _U1), k


@kernel
def _is_shortest(digits: np.uint64, exponent: int, c: np.uint64, q: int, closer: bool) -> bool:
    """Whether a decimal that does not end with 0 is the shortest of ``c * 2**q``."""
    theirs, power = _shortest(c, q, closer)
    while power < exponent and theirs % _U10 == 0:
        theirs //= _U10
        power += 1
    return power == exponent and theirs == digits


@kernel
def fits(digits: np.uint64, exponent: int, bits: int) -> bool:
    """Whether ``digits * 10**exponent`` is the shortest decimal of a number of ``bits`` bits.

    There are at most 17 digits, and the last is not 0. The number can only be one of the two next
    to the decimal, so there is no need to read it exactly: both are tried.
    """
    if exponent < _LEAST or exponent > _MOST:
        return False
    lowest = -1074 if bits == DOUBLE_BITS else -149
    highest = 971 if bits == DOUBLE_BITS else 104
    scale = _log2_of_power_of_10(exponent) + 2
    scaled = digits
    while scaled >> _U63 == 0:
        scaled <<= _U1
        scale -= 1
    # The decimal lies from high * 2**scale to (high + 2) * 2**scale; high has 62 or 63 bits.
    high, _ = _product(scaled, _POWERS[exponent - _LEAST, 0])
    width = 62 if high >> _U62 == 0 else 63
    q = max(scale + width - bits, lowest)
    c = high >> np.uint64(min(q - scale, 63))
    first = _U1 << np.uint64(bits - 1)  # the least significand of a normal number
    if c > 0 and q <= highest:
        if _is_shortest(digits, exponent, c, q, c == first and q > lowest):
            return True
    c += _U1
    if c >> np.uint64(bits) != 0:
        c = first
        q += 1
    return q <= highest and _is_shortest(digits, exponent, c, q, c == first and q > lowest)
