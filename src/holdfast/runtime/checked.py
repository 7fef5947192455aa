"""Mapped files that are compared with their checksums block by block, when a block is first used.

A batch looks up a few rows in large files. To compare these as a whole would make its cost follow
the table, in every new process (:mod:`holdfast.runtime.blocks`).
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import checksums
from holdfast.kernels.arrays import I64
from holdfast.kernels.checksums import Place
from holdfast.runtime import sealed
from holdfast.runtime.blocks import NO_TABLE, byte_tables, find_table


class CheckedFile:
    """A sealed file in mapped memory. :attr:`content` may be read where it has been compared."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.content, table = sealed.opened(path, find_table)
        self._whole = table is None
        sums, shift = table or NO_TABLE
        content = np.frombuffer(self.content, np.uint64, (len(sums) << shift) // 8)
        self._blocks = checksums.blocks(content, sums, shift, byte_tables())

    def place(self, array: NDArray[Any], size: int | None = None) -> Place:
        """Where an array that is a view of this file lies in it; its entries, or its rows, have so
        many bytes."""
        offset = array.ctypes.data - self.content.address if array.size else 0
        if not 0 <= offset <= self.content.size - array.nbytes:
            raise ValueError("the file describes an array that is not in it")
        return Place(self._blocks, offset, size or array.itemsize)

    def check(self, start: int, stop: int) -> None:
        """Compare the bytes from ``start`` to before ``stop``."""
        self.check_entries(Place(self._blocks, 0, 1), start, stop)

    def check_entries(self, place: Place, start: int, stop: int) -> None:
        """Compare a stretch of entries."""
        self.check_stretches(place, np.array([start]), np.array([stop]))

    def check_stretches(self, place: Place, starts: I64, stops: I64) -> None:
        """Compare stretches of entries."""
        if not self._whole:
            checksums.check_entries(place, starts, stops)
            self.require_undamaged()

    def check_each(self, place: Place, positions: NDArray[Any]) -> None:
        """Compare single entries, or rows."""
        if not self._whole:
            checksums.check_each(place, positions)
            self.require_undamaged()

    def check_ranged(self, place: Place, ranges: Any) -> None:
        """Compare the rows that look-ups returned."""
        if not self._whole:
            checksums.check_ranged(place, ranges)
            self.require_undamaged()

    def check_whole(self) -> None:
        """Compare all that has not been compared yet."""
        if not self._whole:
            sealed.check_whole(self.path)
            self._blocks.checked[:] = 1
            self._whole = True

    def require_undamaged(self) -> None:
        """After a kernel has compared blocks: an error if one does not match."""
        if self._blocks.damaged[0] >= 0:
            raise sealed.mismatch(self.path)


class CheckedReader(io.RawIOBase):
    """A checked file to read from, for Arrow: what is read has been compared."""

    def __init__(self, file: CheckedFile) -> None:
        self._file = file
        self._at = 0

    def readable(self) -> bool:
        """It is for reading."""
        return True

    def seekable(self) -> bool:
        """Arrow reads here and there."""
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a byte."""
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.content.size}
        self._at = start[whence] + offset
        return self._at

    def tell(self) -> int:
        """The byte that is read next."""
        return self._at

    def read(self, size: int = -1) -> Any:
        """The next bytes, without a copy."""
        left = max(0, self._file.content.size - self._at)
        size = left if size < 0 else min(size, left)
        if size:
            self._file.check(self._at, self._at + size)
        piece = self._file.content.slice(self._at, size)
        self._at += size
        return piece
