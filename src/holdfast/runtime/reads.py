"""How much tasks read of the files that they map, so that work which does not divide shows.

Counted where rows and entries are taken from a map: encoded rows, indexes, bitmaps of deleted rows,
planes of codes and runs of values. Whole files that are looked through once by each process, to
compare them with their seals, are not counted, nor are raw rows.
"""

from __future__ import annotations

import threading


class _Count(threading.local):
    """Of a thread, which runs one task at a time."""

    read = 0


_count = _Count()


def note(size: int) -> None:
    """So many bytes more are read."""
    _count.read += int(size)


def taken() -> int:
    """The bytes that this thread has read since it was last asked."""
    size, _count.read = _count.read, 0
    return size
