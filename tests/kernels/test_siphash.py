"""SipHash-2-4 of 128 bits: the reference's test vectors, and a slow twin."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from holdfast.kernels import siphash
from tests.strategies import examples

KEY = bytes(range(16))
VECTORS = {  # of the bytes 0, 1, … with the key 0, 1, … 15, by how many they are
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
    2: "8177228da4a45dc7fca38bdef60affe4",
    7: "a1f1ebbed8dbc153c0b84aa61ff08239",
    8: "3b62a9ba6258f5610f83e264f31497b4",
    9: "264499060ad9baabc47f8b02bb6d71ed",
    15: "5493e99933b0a8117e08ec0f97cfc3d9",
    16: "6ee2a4ca67b054bbfd3315bf85230577",
    17: "473d06e8738db89854c066c47ae47740",
    31: "2939b0183223fafc1723de4f52c43d35",
    32: "7c3956ca5eeafc3e363e9d556546eb68",
    62: "5853542321f567a005d547a4f04759bd",
    63: "5150d1772f50834a503e069a973fbd7c",
}
_ALL = (1 << 64) - 1


def slow(key: bytes, message: bytes) -> bytes:
    """As the paper and the reference describe it, word by word."""
    k0, k1 = struct.unpack("<2Q", key)
    v = [k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE]
    v += [k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573]

    def rotated(word: int, bits: int) -> int:
        return (word << bits | word >> 64 - bits) & _ALL

    def rounds(number: int) -> None:
        for _ in range(number):
            for a, b, turn, half in ((0, 1, 13, 0), (2, 3, 16, 2), (0, 3, 21, 0), (2, 1, 17, 2)):
                v[a] = (v[a] + v[b]) & _ALL
                v[b] = rotated(v[b], turn) ^ v[a]
                if (a, b) in ((0, 1), (2, 1)):
                    v[half] = rotated(v[half], 32)

    padded = message + bytes(-(len(message) + 1) % 8) + bytes([len(message) % 256])
    for (word,) in struct.iter_unpack("<Q", padded):
        v[3] ^= word
        rounds(2)
        v[0] ^= word
    v[2] ^= 0xEE
    rounds(4)
    first = v[0] ^ v[1] ^ v[2] ^ v[3]
    v[1] ^= 0xDD
    rounds(4)
    return struct.pack("<2Q", first, v[0] ^ v[1] ^ v[2] ^ v[3])


def words(content: bytes) -> NDArray[np.uint64]:
    return np.frombuffer(content, np.uint64).copy()


def of_bytes(key: bytes, messages: list[bytes]) -> list[bytes]:
    data = np.frombuffer(b"".join(messages) + bytes(7), np.uint8)
    eights = np.ndarray((data.size - 7,), np.uint64, data.data, strides=(1,))
    offsets = np.cumsum([0, *map(len, messages)]).astype(np.int32)
    out = np.empty((2, len(messages)), np.int64)
    with np.errstate(over="ignore"):
        siphash.of_bytes(words(key), eights, offsets, out[0], out[1])
    return [each.tobytes() for each in np.ascontiguousarray(out.T)]


@pytest.mark.parametrize("length", VECTORS)
def test_vectors_of_the_reference(length: int) -> None:
    message = bytes(range(length))
    assert slow(KEY, message).hex() == VECTORS[length]
    assert [each.hex() for each in of_bytes(KEY, [message])] == [VECTORS[length]]


@given(st.binary(min_size=16, max_size=16), st.lists(st.binary(max_size=300), max_size=5))
@settings(max_examples=examples(100), deadline=None)
def test_bytes_are_hashed_as_by_the_slow_twin(key: bytes, messages: list[bytes]) -> None:
    assert of_bytes(key, messages) == [slow(key, each) for each in messages]


@given(st.binary(min_size=16, max_size=16), st.integers(1, 40), st.integers(0, 3), st.randoms())
@settings(max_examples=examples(50), deadline=None)
def test_words_are_hashed_as_their_bytes(key: bytes, width: int, rows: int, dice: object) -> None:
    messages = [dice.randbytes(8 * width) for _ in range(rows)]  # type: ignore[attr-defined]
    matrix = words(b"".join(messages)).reshape(rows, width)
    out = np.empty((2, rows), np.int64)
    with np.errstate(over="ignore"):
        siphash.of_words(words(key), matrix, out[0], out[1])
    assert [each.tobytes() for each in np.ascontiguousarray(out.T)] == of_bytes(key, messages)
