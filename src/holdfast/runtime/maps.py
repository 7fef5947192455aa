"""Maps of files that a process keeps from task to task: as many as there are files.

A task goes through the files of a table again and again, in the same order. A cache that has room
for fewer than these forgets each of them just before it is asked for again. So maps stay until
their file is gone, which is looked at whenever twice as many are held as last time, or until there
are as many as a process may well have. A map needs no file descriptor, but a place in the kernel's
table of maps, and its bytes of address space.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Generic, TypeVar

T = TypeVar("T")
Stamp = tuple[int, int, int]
"""Of a file: its inode, its bytes and when it changed."""

_FEW = 512
"""Maps below which nobody looks whether their files are there."""

_SHARE = 8
"""Of the maps that a process may have, one in so many is for these: libraries and threads have
some, too."""

_USUAL_MAPS = 65_530
"""Maps that Linux lets a process have, where nothing else is set."""


class Maps(Generic[T]):
    """What was made of files, by their paths; made again when the file has changed.

    At most ``most`` of them and ``most_bytes`` bytes: what was not asked for longest goes first.
    """

    def __init__(
        self,
        make: Callable[[Path], T],
        is_there: Callable[[Path], bool],
        most: int | None = None,
        most_bytes: int | None = None,
    ) -> None:
        self._make, self._is_there = make, is_there
        self._most = _most_maps() if most is None else most
        self._most_bytes = _most_bytes() if most_bytes is None else most_bytes
        self._held: dict[Path, tuple[Stamp, T]] = {}  # those that were asked for last at the end
        self._bytes = 0
        self._looked = 0  # how many were left when their files were last looked for
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._held)

    def clear(self) -> None:
        """Forget all of them."""
        with self._lock:
            self._held.clear()
            self._bytes = 0

    def get(self, path: Path, stamp: Stamp) -> T:
        """What is made of a file that has this stamp."""
        with self._lock:
            entry = self._held.pop(path, None)
            if entry is not None:
                if entry[0] == stamp:
                    self._held[path] = entry
                    return entry[1]
                self._bytes -= entry[0][1]
        value = self._make(path)
        with self._lock:
            self._forget(path)
            self._held[path] = stamp, value
            self._bytes += stamp[1]
            if len(self._held) > max(_FEW, 2 * self._looked):
                self._forget_what_is_gone()
            while len(self._held) > 1 and (
                len(self._held) > self._most or self._bytes > self._most_bytes
            ):
                self._forget(next(iter(self._held)))
        return value

    def _forget_what_is_gone(self) -> None:
        for path in [path for path in self._held if not self._is_there(path)]:
            self._forget(path)
        self._looked = len(self._held)

    def _forget(self, path: Path) -> None:
        entry = self._held.pop(path, None)
        if entry is not None:
            self._bytes -= entry[0][1]


def _most_maps() -> int:
    try:
        allowed = int(Path("/proc/sys/vm/max_map_count").read_text())
    except (OSError, ValueError):  # not Linux
        allowed = _USUAL_MAPS
    return max(_FEW, allowed // _SHARE)


def _most_bytes() -> int:
    """Bytes to map, where the address space is bounded (``ulimit -v``); else as good as all."""
    try:
        import resource
    except ImportError:  # Windows
        return 1 << 62
    allowed, _ = resource.getrlimit(resource.RLIMIT_AS)
    return 1 << 62 if allowed == resource.RLIM_INFINITY else allowed // 2
