"""Texts that are one edit away from others: a character more, less or changed, or two neighbours
that have changed places.

Of two such texts, one without some character is the other, or the other without some character.
So the *variants* of the wanted texts, which are these with no or one character left out, are
entered in a table by their hashes, and the variants of other texts are looked up there. What is
found is compared character by character.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64, U32, U64
from holdfast.kernels.hashing import mix
from holdfast.kernels.jit import allocating, inlined, kernel

_BASE = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that a hash depends on every character."""


class Texts(NamedTuple):
    """Texts, one after the other."""

    characters: U32
    starts: I64  # where each begins; the last one is the end

    @staticmethod
    def of(texts: Sequence[str]) -> Texts:
        """Texts as they are in Python."""
        encoded = "".join(texts).encode("utf-32-le", "surrogatepass")
        lengths = np.fromiter(map(len, texts), np.int64, len(texts))
        return Texts(np.frombuffer(encoded, np.uint32), np.concatenate([[0], np.cumsum(lengths)]))


class Neighbours(NamedTuple):
    """Wanted texts, and what was found one edit away from each."""

    texts: Texts
    slots: I32  # wanted texts by the hashes of their variants; -1: free
    variants: U64  # these hashes
    found: I64  # how many different texts, or 2 if there are more
    hashes: U64  # (n, 2): of the first two
    ids: I64  # (n, 2): their numbers

    @staticmethod
    def of(texts: Sequence[str]) -> Neighbours:
        """Of these nothing is found yet."""
        wanted, size = Texts.of(texts), len(texts)
        variants = len(wanted.characters) + size
        slots = 1 << max(4, (2 * variants - 1).bit_length())
        neighbours = Neighbours(
            wanted,
            np.full(slots, -1, np.int32),
            np.zeros(slots, np.uint64),
            np.zeros(size, np.int64),
            np.zeros((size, 2), np.uint64),
            np.full((size, 2), -1, np.int64),
        )
        _enter(neighbours)
        return neighbours

    def look_at(self, texts: Sequence[str], ids: I64) -> None:
        """Look at further texts, which have numbers.

        >>> neighbours = Neighbours.of(["rmoe", "lyons"])
        >>> neighbours.look_at(["rome", "lyon", "bonn"], np.array([5, 6, 7]))
        >>> neighbours.found.tolist(), neighbours.ids[:, 0].tolist()
        ([1, 1], [5, 6])
        """
        others = Texts.of(texts)
        longest = int(np.diff(others.starts).max(initial=0))
        _look_up(others, ids, self, np.empty(longest + 1, np.uint64))


@inlined
def _variants(characters: Any, low: int, high: int, out: Any) -> int:
    """The hashes of a text, and then of those that lack one of its characters; how many these
    are."""
    whole, shorter = np.uint64(0), np.uint64(0)  # the text, and what lacks the first character
    power, before = np.uint64(1), np.uint64(0)
    for at in range(low, high):
        character = np.uint64(characters[at]) + np.uint64(1)
        whole += character * power
        shorter += character * before
        power, before = power * _BASE, power
    out[0] = mix(whole)
    size, power = 1, np.uint64(1)
    for at in range(low, high):
        if at > low:
            shorter += (np.uint64(characters[at - 1]) - np.uint64(characters[at])) * power
            power *= _BASE
            if characters[at - 1] == characters[at]:
                continue
        out[size] = mix(shorter)
        size += 1
    return size


@allocating
def _enter(neighbours: Any) -> None:
    characters, starts = neighbours.texts
    slots, variants = neighbours.slots, neighbours.variants
    last = np.uint64(slots.size - 1)
    longest = 0
    for k in range(starts.size - 1):
        longest = max(longest, starts[k + 1] - starts[k])
    hashes = np.empty(longest + 1, np.uint64)
    for k in range(starts.size - 1):
        for h in hashes[: _variants(characters, starts[k], starts[k + 1], hashes)]:
            slot = h & last
            while slots[slot] >= 0:
                slot = (slot + np.uint64(1)) & last
            slots[slot], variants[slot] = k, h


@kernel
def _look_up(others: Any, ids: Any, neighbours: Any, hashes: Any) -> None:
    wanted, slots, variants, found, known, numbers = neighbours
    last = np.uint64(slots.size - 1)
    for other in range(ids.size):
        low, high = others.starts[other], others.starts[other + 1]
        size = _variants(others.characters, low, high, hashes)
        for h in hashes[:size]:
            slot = h & last
            while slots[slot] >= 0:
                k = slots[slot]
                if variants[slot] == h and found[k] < 2:
                    start, stop = wanted.starts[k], wanted.starts[k + 1]
                    is_new = found[k] == 0 or known[k, 0] != hashes[0]
                    if is_new and _is_one_edit(
                        wanted.characters[start:stop], others.characters[low:high]
                    ):
                        known[k, found[k]], numbers[k, found[k]] = hashes[0], ids[other]
                        found[k] += 1
                slot = (slot + np.uint64(1)) & last


@inlined
def _is_one_edit(one: Any, other: Any) -> bool:
    shorter = min(one.size, other.size)
    low = 0
    while low < shorter and one[low] == other[low]:
        low += 1
    high = 0
    while high < shorter - low and one[one.size - 1 - high] == other[other.size - 1 - high]:
        high += 1
    rest, other_rest = one.size - low - high, other.size - low - high
    if rest == 2 and other_rest == 2:
        return bool(one[low] == other[low + 1] and one[low + 1] == other[low])
    return max(rest, other_rest) == 1
