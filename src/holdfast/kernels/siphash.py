"""SipHash-2-4 with 128 bits (Aumasson and Bernstein, INDOCRYPT 2012): a hash with a key.

Without the key nobody can compute a hash, so nobody can test a guess against one, find the bytes
behind it, or choose two texts that have the same. Words are little-endian, as in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from holdfast.kernels.encode import rotl
from holdfast.kernels.jit import inlined, kernel

_S0 = np.uint64(0x736F6D6570736575)
_S1 = np.uint64(0x646F72616E646F6D)
_S2 = np.uint64(0x6C7967656E657261)
_S3 = np.uint64(0x7465646279746573)
_WIDE = np.uint64(0xEE)  # tells a hash of 128 bits from one of 64
_SECOND = np.uint64(0xDD)
_ALL = np.uint64(0xFFFFFFFFFFFFFFFF)
_ZERO = np.uint64(0)
_U8 = np.uint64(8)
_U13 = np.uint64(13)
_U16 = np.uint64(16)
_U17 = np.uint64(17)
_U21 = np.uint64(21)
_U32 = np.uint64(32)
_U56 = np.uint64(56)


@inlined
def _round(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> Any:
    v0 += v1
    v2 += v3
    v1 = rotl(v1, _U13) ^ v0
    v3 = rotl(v3, _U16) ^ v2
    v0 = rotl(v0, _U32)
    v2 += v1
    v0 += v3
    v1 = rotl(v1, _U17) ^ v2
    v3 = rotl(v3, _U21) ^ v0
    return v0, v1, rotl(v2, _U32), v3


@inlined
def _begin(key: Any) -> Any:
    return key[0] ^ _S0, key[1] ^ _S1 ^ _WIDE, key[0] ^ _S2, key[1] ^ _S3


@inlined
def _absorb(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64, word: np.uint64) -> Any:
    v0, v1, v2, v3 = _round(v0, v1, v2, v3 ^ word)
    v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return v0 ^ word, v1, v2, v3


@inlined
def _finish(v0: np.uint64, v1: np.uint64, v2: np.uint64, v3: np.uint64) -> Any:
    v2 ^= _WIDE
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    first = v0 ^ v1 ^ v2 ^ v3
    v1 ^= _SECOND
    for _ in range(4):
        v0, v1, v2, v3 = _round(v0, v1, v2, v3)
    return first, v0 ^ v1 ^ v2 ^ v3


@kernel
def of_bytes(key: Any, eights: Any, offsets: Any, word0: Any, word1: Any) -> None:
    """Hash the bytes from ``offsets[i]`` to ``offsets[i + 1]`` into two words.

    ``key`` has two words; ``eights[p]`` holds the eight bytes from position p, as for
    :func:`holdfast.kernels.encode.bytes_words`.
    """
    for row in range(word0.size):
        at = np.uint64(offsets[row])
        size = np.uint64(offsets[row + 1]) - at
        left = size
        v0, v1, v2, v3 = _begin(key)
        while left >= _U8:
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, eights[at])
            at += _U8
            left -= _U8
        last = size << _U56  # of the length its lowest byte
        if left > _ZERO:
            last |= eights[at] & (_ALL >> (_U8 * (_U8 - left)))
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, last)
        first, second = _finish(v0, v1, v2, v3)
        word0[row] = np.int64(first)
        word1[row] = np.int64(second)


@kernel
def of_words(key: Any, messages: Any, word0: Any, word1: Any) -> None:
    """Hash the words of each row of ``messages``, as the bytes that they are."""
    last = np.uint64(8 * messages.shape[1]) << _U56
    for row in range(word0.size):
        v0, v1, v2, v3 = _begin(key)
        for w in range(messages.shape[1]):
            v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, messages[row, w])
        v0, v1, v2, v3 = _absorb(v0, v1, v2, v3, last)
        first, second = _finish(v0, v1, v2, v3)
        word0[row] = np.int64(first)
        word1[row] = np.int64(second)
