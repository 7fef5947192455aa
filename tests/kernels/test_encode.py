"""The hash is MurmurHash3 to the bit, and the floats' words sort like the floats."""

from __future__ import annotations

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import encode as kernels

M64 = (1 << 64) - 1


def murmur3(data: bytes) -> tuple[int, int]:
    """MurmurHash3_x64_128 with seed 0, as its author wrote it."""

    def rotl(x: int, r: int) -> int:
        return ((x << r) | (x >> (64 - r))) & M64

    def fmix(k: int) -> int:
        k ^= k >> 33
        k = k * 0xFF51AFD7ED558CCD & M64
        k ^= k >> 33
        k = k * 0xC4CEB9FE1A85EC53 & M64
        return k ^ (k >> 33)

    c1, c2 = 0x87C37B91114253D5, 0x4CF5AD432745937F
    h1 = h2 = 0
    for at in range(0, len(data), 16):
        block = data[at : at + 16]
        k1, k2 = struct.unpack("<QQ", block.ljust(16, b"\0"))
        h1 ^= rotl(k1 * c1 & M64, 31) * c2 & M64
        if len(block) == 16:
            h1 = ((rotl(h1, 27) + h2) * 5 + 0x52DCE729) & M64
        h2 ^= rotl(k2 * c2 & M64, 33) * c1 & M64
        if len(block) == 16:
            h2 = ((rotl(h2, 31) + h1) * 5 + 0x38495AB5) & M64
    h1 ^= len(data)
    h2 ^= len(data)
    h1 = (h1 + h2) & M64
    h2 = (h2 + h1) & M64
    h1, h2 = fmix(h1), fmix(h2)
    h1 = (h1 + h2) & M64
    return h1, (h2 + h1) & M64


def hashed(values: list[bytes]) -> list[tuple[int, int]]:
    data = np.frombuffer(b"".join(values) + bytes(8), np.uint8)
    eights = np.ndarray((data.size - 7,), np.uint64, data.data, strides=(1,))
    offsets = np.cumsum([0, *map(len, values)], dtype=np.int32)
    words = np.empty((2, len(values)), np.int64)
    with np.errstate(over="ignore"):
        kernels.bytes_words(eights, offsets, words[0], words[1])
    return [(int(a) & M64, int(b) & M64) for a, b in words.T]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", (0, 0)),
        ("hello", (0xCBD8A7B341BD9B02, 0x5B1E906A48AE1D19)),
        ("hello, world", (0x342FAC623A5EBC8E, 0x4CDCBC079642414D)),
        ("19 Jan 2038 at 3:14:07 AM", (0xB89E5988B737AFFC, 0x664FC2950231B2CB)),
        (
            "The quick brown fox jumps over the lazy dog.",
            (0xCD99481F9EE902C9, 0x695DA1A38987B6E7),
        ),
    ],
)
def test_published_hashes(text: str, expected: tuple[int, int]) -> None:
    assert murmur3(text.encode()) == expected
    assert hashed([text.encode()]) == [expected]


@given(st.lists(st.binary(max_size=50), min_size=1, max_size=8))
@settings(deadline=None)
def test_hash_equals_its_slow_twin(values: list[bytes]) -> None:
    assert hashed(values) == [murmur3(value) for value in values]


def test_one_changed_bit_changes_half_of_the_hash() -> None:
    base = b"0123456789abcdefghijklmno"
    changed = []
    for bit in range(8 * len(base)):
        value = bytearray(base)
        value[bit // 8] ^= 1 << (bit % 8)
        changed.append(bytes(value))
    (a, b), *others = hashed([base, *changed])
    flips = [((a ^ x).bit_count(), (b ^ y).bit_count()) for x, y in others]
    assert all(12 <= x <= 52 and 12 <= y <= 52 for x, y in flips)
    assert 31 < np.mean(flips) < 33


@given(st.lists(st.floats() | st.sampled_from([-0.0, 0.0, math.nan, -math.nan]), min_size=2))
@settings(deadline=None)
def test_float_words_sort_like_floats(values: list[float]) -> None:
    words = np.empty(len(values), np.int64)
    kernels.float_words(np.array(values, np.float64).view(np.int64), words)
    keys = [(math.isnan(v), 0.0 if math.isnan(v) else v) for v in values]
    for x, key_x in zip(words, keys, strict=True):
        for y, key_y in zip(words, keys, strict=True):
            assert (bool(x < y), bool(x == y)) == (key_x < key_y, key_x == key_y)


def test_row_hashes_take_in_every_word_of_every_row() -> None:
    words = np.arange(3 * 2500, dtype=np.uint64).reshape(2500, 3)

    def hashes(words: np.ndarray) -> np.ndarray:
        out = np.empty(len(words), np.uint64)
        with np.errstate(over="ignore"):
            kernels.row_hashes(words, out)
        return out

    base = hashes(words)
    assert np.unique(base).size == base.size
    for word in range(3):
        changed = words.copy()
        changed[1200, word] ^= np.uint64(1)
        assert np.flatnonzero(hashes(changed) != base).tolist() == [1200]
    assert hashes(words[:, ::-1].copy())[0] != base[0]
