"""Cells to words: the loops that turn values into integers with the same equality and order.

Text is hashed by MurmurHash3 (x64, 128 bits, seed 0). A nested value is hashed by absorbing the
words of its parts, one after the other, into a state of two lanes built from the same steps.

Every function writes into arrays that the caller has allocated. Integer arithmetic wraps around.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.jit import inlined, kernel

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_M1 = np.uint64(0x52DCE729)
_M2 = np.uint64(0x38495AB5)
_F1 = np.uint64(0xFF51AFD7ED558CCD)
_F2 = np.uint64(0xC4CEB9FE1A85EC53)
_U5 = np.uint64(5)
_U8 = np.uint64(8)
_U16 = np.uint64(16)
_U27 = np.uint64(27)
_U31 = np.uint64(31)
_U33 = np.uint64(33)
_U64 = np.uint64(64)
_ZERO = np.uint64(0)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_LOW63 = np.int64(0x7FFFFFFFFFFFFFFF)
_NAN = np.int64(0x7FF8000000000000)


@inlined
def rotl(x: np.uint64, r: np.uint64) -> np.uint64:
    """The bits of a word, moved to the left in a circle."""
    return (x << r) | (x >> (_U64 - r))


@kernel
def _fmix(x: np.uint64) -> np.uint64:
    x ^= x >> _U33
    x *= _F1
    x ^= x >> _U33
    x *= _F2
    return x ^ (x >> _U33)


@kernel
def _finish(h1: np.uint64, h2: np.uint64, length: np.uint64) -> tuple[np.uint64, np.uint64]:
    h1 ^= length
    h2 ^= length
    h1 += h2
    h2 += h1
    h1 = _fmix(h1)
    h2 = _fmix(h2)
    h1 += h2
    return h1, h2 + h1


@kernel
def _block(
    h1: np.uint64, h2: np.uint64, k1: np.uint64, k2: np.uint64
) -> tuple[np.uint64, np.uint64]:
    h1 ^= rotl(k1 * _C1, _U31) * _C2
    h1 = (rotl(h1, _U27) + h2) * _U5 + _M1
    h2 ^= rotl(k2 * _C2, _U33) * _C1
    h2 = (rotl(h2, _U31) + h1) * _U5 + _M2
    return h1, h2


@kernel
def bytes_words(
    eights: U64,
    offsets: NDArray[Any],
    word0: I64,
    word1: I64,
) -> None:
    """Hash the bytes from ``offsets[i]`` to ``offsets[i + 1]`` into two words.

    ``eights[p]`` holds the eight bytes from position p, little-endian, so that a load and a
    mask replace a loop over bytes. No row may end beyond ``eights.size``: seven bytes must
    follow the last.
    """
    for row in range(word0.size):
        # Unsigned positions spare the check for negative ones: three times as fast.
        at = np.uint64(offsets[row])
        size = np.uint64(offsets[row + 1]) - at
        left = size
        h1 = _ZERO
        h2 = _ZERO
        while left >= _U16:
            h1, h2 = _block(h1, h2, eights[at], eights[at + _U8])
            at += _U16
            left -= _U16
        if left > _U8:
            k2 = eights[at + _U8] & (_ALL >> (_U8 * (_U16 - left)))
            h2 ^= rotl(k2 * _C2, _U33) * _C1
            left = _U8
        if left > _ZERO:
            k1 = eights[at] & (_ALL >> (_U8 * (_U8 - left)))
            h1 ^= rotl(k1 * _C1, _U31) * _C2
        h1, h2 = _finish(h1, h2, size)
        word0[row] = np.int64(h1)
        word1[row] = np.int64(h2)


@kernel
def float_words(bits: I64, word: I64) -> None:
    """The bits of doubles to integers of the same order: -0.0 as 0.0, every NaN alike and last."""
    for row in range(word.size):
        b = bits[row]
        magnitude = b & _LOW63
        if magnitude > np.int64(0x7FF0000000000000):
            word[row] = _NAN
        elif magnitude == 0:
            word[row] = 0
        else:
            word[row] = b ^ ((b >> 63) & _LOW63)


@kernel
def mark_nulls(nulls: Flags, words: I64, mask: I64, bit: int) -> None:
    """Zero the words of nulls, whatever lies below them, and set their bit in the mask."""
    for row in range(mask.size):
        mask[row] |= np.int64(nulls[row]) << np.int64(bit)
    for w in range(words.shape[0]):
        word = words[w]
        for row in range(word.size):
            if nulls[row]:
                word[row] = 0


@kernel
def _absorb(
    h1: np.uint64, h2: np.uint64, words: I64, nulls: Flags, at: int
) -> tuple[np.uint64, np.uint64]:
    """One part of a nested value: whether it is null, then its words."""
    flag = np.uint64(nulls[at])
    h1, h2 = _block(h1, h2, flag, flag)
    for w in range(words.shape[0]):
        k = np.uint64(words[w, at])
        h1, h2 = _block(h1, h2, k, k)
    return h1, h2


@kernel
def absorb_field(words: I64, nulls: Flags, state: I64) -> None:
    """Absorb one field of a struct, row by row, into ``state`` (two words a row)."""
    for row in range(state.shape[1]):
        h1, h2 = _absorb(np.uint64(state[0, row]), np.uint64(state[1, row]), words, nulls, row)
        state[0, row] = np.int64(h1)
        state[1, row] = np.int64(h2)


@kernel
def finish_struct(fields: int, state: I64) -> None:
    """Turn the state after the last field into the hash."""
    for row in range(state.shape[1]):
        h1, h2 = _finish(np.uint64(state[0, row]), np.uint64(state[1, row]), np.uint64(fields))
        state[0, row] = np.int64(h1)
        state[1, row] = np.int64(h2)


@kernel
def list_words(
    starts: I64,
    words: I64,
    nulls: Flags,
    out: I64,
) -> None:
    """Hash lists: elements ``starts[i]`` to ``starts[i + 1]`` in order, then their number."""
    for row in range(out.shape[1]):
        h1 = _ZERO
        h2 = _ZERO
        for at in range(starts[row], starts[row + 1]):
            h1, h2 = _absorb(h1, h2, words, nulls, at)
        h1, h2 = _finish(h1, h2, np.uint64(starts[row + 1] - starts[row]))
        out[0, row] = np.int64(h1)
        out[1, row] = np.int64(h2)


@kernel
def map_words(starts: I64, entries: I64, out: I64) -> None:
    """Hash maps as bags of entries: the sum of the entries' hashes forgets their order."""
    for row in range(out.shape[1]):
        h1 = _ZERO
        h2 = _ZERO
        for at in range(starts[row], starts[row + 1]):
            h1 += np.uint64(entries[0, at])
            h2 += np.uint64(entries[1, at])
        h1, h2 = _finish(h1, h2, np.uint64(starts[row + 1] - starts[row]))
        out[0, row] = np.int64(h1)
        out[1, row] = np.int64(h2)


@kernel
def row_hashes(rows: U64, out: U64) -> None:
    """One 64-bit hash over all words of each row; the words are row-major."""
    for row in range(out.size):
        h = _ZERO
        for w in range(rows.shape[1]):
            h ^= rotl(rows[row, w] * _C1, _U31) * _C2
            h = rotl(h, _U27) * _U5 + _M1
        out[row] = _fmix(h)
