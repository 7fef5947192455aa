"""Which values and which shapes occur in a column, until there are too many to list.

Both kernels go on where they stopped: what they know is in arrays that the caller keeps, and that
have room for as many as are listed.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.hashing import mix
from holdfast.kernels.jit import inlined, kernel

_FACTOR = np.uint64(0xFF51AFD7ED558CCD)

OTHER, DIGIT, UPPER, LOWER = 0, 1, 2, 3
EMAIL, UUID, URL = 1, 2, 3
"""The shapes that have a name; 0: texts that have no shape."""


def codes(cells: U64) -> U64:
    """The codes of cells ``(1 or 2, rows)``: their word, or both as one."""
    out = np.empty(cells.shape[1], np.uint64)
    with np.errstate(over="ignore"):
        _codes(cells, out)
    return out


@kernel
def _codes(cells: Any, out: Any) -> None:
    for row in range(out.size):
        out[row] = _code(cells, row)


@inlined
def _code(cells: Any, row: int) -> np.uint64:
    first = cells[0, row]
    return first if cells.shape[0] == 1 else mix(first) + cells[1, row]


@kernel
def tally(cells: Any, codes_: Any, rows: Any, firsts: Any, slots: Any, known: int) -> Any:
    """Count rows by their codes, up to the first row with one too many.

    ``codes_`` and ``rows`` have the ``known`` codes and their numbers of rows, which ``slots``, a
    power of two of them, find; ``firsts`` gets the first rows with new ones. How many are known
    then, and how many rows were counted, come back.
    """
    last = np.uint64(slots.size - 1)
    for row in range(cells.shape[1]):
        code = _code(cells, row)
        at = np.int64(mix(code) & last)
        while slots[at] >= 0 and codes_[slots[at]] != code:
            at = (at + 1) & np.int64(last)
        entry = slots[at]
        if entry < 0:
            if known == codes_.size:
                return known, row
            entry = known
            slots[at] = entry
            codes_[entry] = code
            firsts[entry] = row
            known += 1
        rows[entry] += 1
    return known, cells.shape[1]


class Shaped:
    """The shapes that occur in texts, each with the first few rows that have it."""

    def __init__(self, shapes: int, each: int) -> None:
        self.hashes = np.empty(shapes, np.uint64)
        self.codes = np.empty((shapes, each), np.uint64)
        self.numbers = np.zeros(shapes, np.int64)
        self.known = 0
        self.full = False

    def add(self, data: Any, ends: I64, cells: U64, longest: int, named: int) -> I64:
        """Take in texts; the first row of each new shape. Text k is ``data[ends[k]:ends[k + 1]]``
        and its cell is ``cells[:, k]``."""
        firsts = np.empty(self.hashes.size, np.int64)
        before = self.known
        with np.errstate(over="ignore"):
            self.known, self.full = _shapes(
                data, ends, cells, self.hashes, self.codes, self.numbers, firsts, self.known,
                longest, named,
            )  # fmt: skip
        return firsts[before : self.known]


@kernel
def _shapes(
    data: Any, ends: Any, cells: Any, hashes: Any, codes_: Any, numbers: Any, firsts: Any,
    known: int, longest: int, named: int,
) -> Any:  # fmt: skip
    last = 0
    for row in range(cells.shape[1]):
        shape = _shape(data, ends[row], ends[row + 1], longest, named)
        if last >= known or hashes[last] != shape:
            last = 0
            while last < known and hashes[last] != shape:
                last += 1
            if last == known:
                if known == hashes.size:
                    return known, True
                hashes[known] = shape
                firsts[known] = row
                known += 1
        if numbers[last] < codes_.shape[1]:
            code = _code(cells, row)
            is_new = True
            for one in range(numbers[last]):
                is_new &= codes_[last, one] != code
            if is_new:
                codes_[last, numbers[last]] = code
                numbers[last] += 1
    return known, False


@inlined
def _shape(data: Any, start: int, stop: int, longest: int, named: int) -> np.uint64:
    """A number that two texts share if, and in all likelihood only if, they have one shape."""
    size = stop - start
    if size == 0 or size > named:
        return np.uint64(0)
    h = _FACTOR ^ np.uint64(size)
    for at in range(start, stop):
        byte = data[at]
        if byte >= 127 or byte < 32:
            return np.uint64(0)
        class_ = _class(byte)
        h = (h ^ np.uint64(class_ if class_ else byte)) * _FACTOR
        h ^= h >> np.uint64(29)
    if _is_email(data, start, stop):
        return np.uint64(EMAIL)
    if _is_uuid(data, start, stop):
        return np.uint64(UUID)
    if _is_url(data, start, stop):
        return np.uint64(URL)
    return h if size <= longest else np.uint64(0)


@inlined
def _class(byte: int) -> int:
    if 48 <= byte <= 57:
        return DIGIT
    if 65 <= byte <= 90:
        return UPPER
    return LOWER if 97 <= byte <= 122 else OTHER


@inlined
def _is_email(data: Any, start: int, stop: int) -> bool:
    sign = -1
    for at in range(start, stop):
        byte = data[at]
        if byte == 64:  # @
            if sign >= 0:
                return False
            sign = at
        elif not (_class(byte) or byte == 46 or byte == 45):  # . and -
            if sign >= 0 or not (byte == 95 or byte == 37 or byte == 43):  # _, % and +
                return False
    letters = 0
    while letters < stop - start and _class(data[stop - 1 - letters]) >= UPPER:
        letters += 1
    dot = stop - 1 - letters
    return sign > start and letters >= 2 and dot > sign + 1 and data[dot] == 46


@inlined
def _is_uuid(data: Any, start: int, stop: int) -> bool:
    if stop - start != 36:
        return False
    for place in range(36):
        byte = data[start + place]
        if place == 8 or place == 13 or place == 18 or place == 23:
            if byte != 45:
                return False
        elif not (48 <= byte <= 57 or 65 <= byte <= 70 or 97 <= byte <= 102):
            return False
    return True


@inlined
def _is_url(data: Any, start: int, stop: int) -> bool:
    """``http://`` or ``https://``, and then no space."""
    if stop - start < 8:
        return False
    at = start
    if not (
        data[at] == 104 and data[at + 1] == 116 and data[at + 2] == 116 and data[at + 3] == 112
    ):
        return False
    at += 4
    if data[at] == 115:
        at += 1
    if not (data[at] == 58 and data[at + 1] == 47 and data[at + 2] == 47) or at + 3 >= stop:
        return False
    for rest in range(at + 3, stop):
        if data[rest] == 32:
            return False
    return True
