"""Checksums of the blocks of a file, in a table inside the file, which the file's name vouches for.

A sealed file's name holds the CRC-32 of all its bytes. The CRC-32 of a file follows from those of
its blocks, so a table of these needs no checksum of its own: whoever has read the table and the
bytes after the last whole block can compute what the name must say. A process that needs a few rows
of a large file reads this *tail*, and then only the blocks that it uses.

In an Arrow file the table stands between the last batch and the footer, where Arrow readers do not
look: the CRC-32 of every whole block before it (32 bits each, little-endian), zeros up to a
multiple of 8 bytes, then ``HFBLOCKS``, the number of blocks, and the power of two that is the size
of a block (32 bits each). A file without a table, because it is smaller than a block or of an
earlier version of Holdfast, is compared as a whole.

``docs/decisions/15-checksums.md`` has what was measured.
"""

from __future__ import annotations

import struct
import zlib
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.arrays import U32

_POLYNOMIAL = 0xEDB88320
_TRAILER = struct.Struct("<8sII")
_MAGIC = b"HFBLOCKS"
_LARGEST = 30
"""The power of two of the largest block that a table may have."""

_ARROW = b"ARROW1"
_FOOTER_LENGTH = 4
_END_OF_STREAM = 8
"""Bytes between the table and the footer."""


class Table(NamedTuple):
    """The checksums of a file's whole blocks."""

    sums: U32
    shift: int  # a block has 2 ** shift bytes

    @property
    def covered(self) -> int:
        """How many bytes the blocks have together; the file's tail begins there."""
        return len(self.sums) << self.shift


NO_TABLE = Table(np.empty(0, np.uint32), 0)


class Sums:
    """The checksums of a file that is being written."""

    def __init__(self, block_bytes: int) -> None:
        self._shift = block_bytes.bit_length() - 1
        self._sums: list[int] = []
        self._last = self._length = 0  # of the bytes after the last whole block
        self._ended = False

    def add(self, data: memoryview) -> None:
        """Take in the next bytes."""
        size = 1 << self._shift
        while data:
            if not (self._length or self._ended):
                whole = len(data) & -size
                self._sums += [zlib.crc32(data[at : at + size]) for at in range(0, whole, size)]
                data = data[whole:]
            piece = data if self._ended else data[: size - self._length]
            self._last = zlib.crc32(piece, self._last)
            self._length += len(piece)
            if self._length == size and not self._ended:
                self._sums.append(self._last)
                self._last = self._length = 0
            data = data[len(piece) :]

    def table(self) -> bytes:
        """The table of the whole blocks so far, which is then the table of the file; empty where
        there is no whole block."""
        self._ended = True
        if not self._sums:
            return b""
        sums = np.array(self._sums, "<u4").tobytes()
        return sums + bytes(len(sums) % 8) + _TRAILER.pack(_MAGIC, len(self._sums), self._shift)

    @property
    def whole(self) -> int:
        """The CRC-32 of all bytes."""
        blocks = combined(np.array(self._sums, np.uint32), self._shift)
        return _followed(blocks, self._length) ^ self._last


def find_table(content: memoryview, checksum: int) -> Table | None:
    """The table of an Arrow file, whose CRC-32 is ``checksum`` if the tail is as it was written and
    the table is right; None: there is none, or something is damaged."""
    size = len(content)
    if content[-len(_ARROW) :] != _ARROW:
        return None
    end = size - len(_ARROW) - _FOOTER_LENGTH
    footer = int.from_bytes(content[end : end + _FOOTER_LENGTH], "little")
    end -= footer + _END_OF_STREAM + _TRAILER.size
    if end < 0:
        return None
    magic, count, shift = _TRAILER.unpack_from(content, end)
    start = end - (4 * count + 4 * count % 8)
    if magic != _MAGIC or not 4 <= shift <= _LARGEST or count << shift > start:
        return None
    table = Table(np.frombuffer(content, "<u4", count, start).astype(np.uint32), shift)
    tail = content[table.covered :]
    sum_of_table = zlib.crc32(tail, combined(table.sums, shift))
    return table if sum_of_table == checksum else None


def combined(sums: U32, shift: int) -> int:
    """The CRC-32 of blocks of ``2 ** shift`` bytes, one after the other, from that of each.

    >>> halves = [zlib.crc32(b"holdfast"), zlib.crc32(b"tsafdloh")]
    >>> combined(np.array(halves, np.uint32), 3) == zlib.crc32(b"holdfasttsafdloh")
    True
    """
    while len(sums) > 1:
        if len(sums) % 2:
            # Nothing before the first block: its checksum, 0, changes nothing.
            sums = np.concatenate([np.zeros(1, np.uint32), sums])
        sums = _shifted(sums[::2], shift) ^ sums[1::2]
        shift += 1
    return int(sums[0]) if len(sums) else 0


def _followed(checksum: int, length: int) -> int:
    """What a checksum contributes to that of the same bytes followed by others."""
    value = np.array([checksum], np.uint32)
    for power in range(length.bit_length()):
        if length >> power & 1:
            value = _shifted(value, power)
    return int(value[0])


def _shifted(sums: U32, power: int) -> U32:
    """The same for many, followed by ``2 ** power`` bytes."""
    tables = _tables(power)
    out: U32 = tables[0][sums & 255]
    for k in (1, 2, 3):
        out = out ^ tables[k][sums >> np.uint32(8 * k) & 255]
    return out


@cache
def _tables(power: int) -> U32:
    """What each byte of a checksum, by its value, becomes behind ``2 ** power`` more bytes. The
    operation is linear: a checksum is the sum of its bits."""
    if power:
        bits = np.uint32(1) << np.arange(32, dtype=np.uint32)
        for _ in range(2):
            bits = _shifted(bits, power - 1)
    else:
        bits = np.array([_behind_a_byte(1 << bit) for bit in range(32)], np.uint32)
    tables = np.zeros((4, 256), np.uint32)
    for bit, value in enumerate(bits):
        of_byte = np.arange(256) >> bit % 8 & 1 == 1
        tables[bit // 8][of_byte] ^= value
    return tables


def _behind_a_byte(checksum: int) -> int:
    for _ in range(8):
        checksum = checksum >> 1 ^ (_POLYNOMIAL if checksum & 1 else 0)
    return checksum


@cache
def byte_tables() -> NDArray[Any]:
    """What each of sixteen bytes contributes to a CRC-32, by its distance from the last one."""
    tables = np.zeros((16, 256), np.uint32)
    tables[0] = [_behind_a_byte(value) for value in range(256)]
    for k in range(1, 16):
        tables[k] = tables[k - 1] >> np.uint32(8) ^ tables[0][tables[k - 1] & 255]
    return tables
