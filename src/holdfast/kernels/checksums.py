"""Blocks of mapped files, each compared with its CRC-32 when it is first used.

Whoever reads a part of a file calls one of these with the bytes, the entries or the rows that it
will read. What does not match is noted in ``Blocks.damaged``, for the caller to look at: until then
nothing that was read may be used as an index.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I64, U8, U32, U64
from holdfast.kernels.jit import inlined, kernel

_ONES = np.uint64(0xFFFFFFFF)
_BYTE = np.uint64(255)


class Blocks(NamedTuple):
    """A mapped file in blocks of ``2 ** shift`` bytes. What lies behind the last block has been
    compared already; where everything has, there are no blocks."""

    content: U64  # the bytes of all blocks
    sums: U32  # the CRC-32 of each
    checked: U8  # 1: compared
    shift: int
    damaged: I64  # the block that does not match; -1: none
    tables: U32  # (16, 256), of CRC-32


class Place(NamedTuple):
    """Where in a file the entries of an array lie."""

    blocks: Blocks
    offset: int  # of the first entry, in bytes
    size: int  # of an entry, in bytes


def blocks(content: U64, sums: U32, shift: int, tables: Any) -> Blocks:
    """The blocks of a file, none of them compared yet."""
    # Numba compiles for maps, which cannot be written to, and nothing else.
    content.setflags(write=False)
    return Blocks(content, sums, np.zeros(len(sums), np.uint8), shift, np.full(1, -1), tables)


def in_memory() -> Place:
    """The place of data that is in no file and needs no check."""
    none = np.empty(0, np.uint32)
    return Place(blocks(np.empty(0, np.uint64), none, 0, none.reshape(0, 256)), 0, 1)


@kernel
def _crc32(words: Any, start: int, stop: int, tables: Any) -> Any:
    """The CRC-32 of some words, an even number of them."""
    crc = _ONES
    for i in range(start, stop, 2):
        one = words[i] ^ crc
        two = words[i + 1]
        sums = np.uint32(0)
        for k in range(8):
            shift = np.uint64(8 * k)
            sums ^= tables[15 - k, (one >> shift) & _BYTE] ^ tables[7 - k, (two >> shift) & _BYTE]
        crc = np.uint64(sums)
    return np.uint32(crc ^ _ONES)


@kernel
def _compare(file: Any, block: int) -> bool:
    """Compare a block with its checksum."""
    shift = file.shift - 3
    crc = _crc32(file.content, block << shift, (block + 1) << shift, file.tables)
    if crc != file.sums[block]:
        file.damaged[0] = block
        return False
    file.checked[block] = 1
    return True


@inlined
def check(place: Any, start: int, stop: int) -> bool:
    """Compare the blocks of the entries from ``start`` to before ``stop``; False: damaged."""
    first = (place.offset + start * place.size) >> place.blocks.shift
    last = (place.offset + stop * place.size - 1) >> place.blocks.shift
    for block in range(first, min(last + 1, place.blocks.checked.size)):
        if place.blocks.checked[block] == 0 and not _compare(place.blocks, block):
            return False
    return True


@kernel
def check_entries(place: Any, starts: Any, stops: Any) -> None:
    """Compare the blocks of stretches of entries, of which some may be empty."""
    for i in range(starts.size):
        if starts[i] < stops[i] and not check(place, starts[i], stops[i]):
            return


@kernel
def check_each(place: Any, positions: Any) -> None:
    """Compare the blocks of single entries."""
    for i in range(positions.size):
        if not check(place, positions[i], positions[i] + 1):
            return


@kernel
def check_ranged(place: Any, ranges: Any) -> None:
    """Compare the blocks of the rows that look-ups returned."""
    for i in range(ranges.lo.size):
        for at in range(ranges.lo[i], ranges.hi[i]):
            position = np.int64(ranges.positions[at])
            if not check(place, position, position + 1):
                return


@inlined
def _before(codes: Any, at: int, wanted: Any, right: int) -> bool:
    """Whether a code is less than the wanted one; for the right end, or equal to it."""
    return codes[at] < wanted or (right == 1 and codes[at] == wanted)


@kernel
def search(place: Any, codes: Any, rungs: Any, step: int, wanted: Any, lo: Any, hi: Any) -> None:
    """For each wanted code the entries of ``codes``, which ascend, that equal it: from ``lo`` to
    before ``hi``. Only the blocks on the way there are compared; ``rungs``, every ``step``-th code
    from the first on or none, make it short."""
    for i in range(wanted.size):
        for right in range(2):
            low, high = 0, rungs.size
            while low < high:
                middle = (low + high) >> 1
                if _before(rungs, middle, wanted[i], right):
                    low = middle + 1
                else:
                    high = middle
            start = max(lo[i] * right, (low - 1) * step + 1 if low else 0)
            stop = low * step if low < rungs.size else codes.size
            while start < stop:
                middle = (start + stop) >> 1
                if not check(place, middle, middle + 1):
                    return
                if _before(codes, middle, wanted[i], right):
                    start = middle + 1
                else:
                    stop = middle
            if right == 0:
                lo[i] = start
            else:
                hi[i] = start
