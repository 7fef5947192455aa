"""The cache of a machine: files of profiles on object stores, on this machine's own disk.

Files of a profile never change and are named after their size and checksum, so a copy that fits its
name is the file. A copy is written under a temporary name, compared with its seal and renamed: who
finds it finds all of it, whoever was killed meanwhile. Workers of a machine share the folder, and
fetch a file once: a lock, which the operating system releases when its holder dies, keeps the
others waiting. What a task writes is in the cache before it is uploaded.

``HOLDFAST_CACHE`` is the folder, by default one of the user in the folder for temporary files;
``HOLDFAST_CACHE_GB`` is how much it may hold, by default a quarter of the disk. What was not used
for longest goes first; what is mapped stays readable until it is let go.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import secrets
import shutil
import stat
import tempfile
import time
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import lru_cache
from io import FileIO
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.runtime import objects

FOLDER = "HOLDFAST_CACHE"
LIMIT = "HOLDFAST_CACHE_GB"

_SHARE = 4
"""The part of a disk that the cache may have, if nothing is said."""

_LOCKS = 64
_THREADS = 8
_TEMPORARY = ".tmp-"
_LOCK = ".lock-"
_FORGOTTEN_S = 3600.0
"""After so long without a write nobody is writing a temporary file any more."""

_USED_S = 30.0
"""Uses of a file are noted no more often than that."""

_PIECE = 1 << 20

_LOOKS = 64
"""A process looks at the whole cache whenever it has added this part of the limit."""

_SPARE = 0.9
"""The part of the limit that is left full."""

_log = logging.getLogger("holdfast")

_added: dict[str, int] = {}
"""Bytes that this process has added to a cache since it looked at all of it."""


def local(path: Path, size: int, checksum: int) -> Path:
    """The copy of an object on this machine, fetched if there is none; the object has a size and a
    CRC-32. Another process may take it away before it is opened: ask again then."""
    copy = copy_of(path)
    if _note_use(copy):
        return copy
    with _locked(copy):
        if not _note_use(copy):
            _fetch(path, copy, size, checksum)
    return copy


def drop(path: Path) -> None:
    """Forget a copy, because it is damaged."""
    copy_of(path).unlink(missing_ok=True)


def spool() -> FileIO:
    """A new file to write to, on the disk of the cache."""
    name = f"{_TEMPORARY}{os.getpid()}-{secrets.token_hex(6)}"
    return FileIO(folder() / name, "x+")


def abandon(file: FileIO) -> None:
    """Close a new file and remove it."""
    file.close()
    Path(os.fsdecode(file.name)).unlink(missing_ok=True)


def keep(file: FileIO, path: Path, size: int) -> None:
    """Take a new file into the cache, as the copy of the object that it will be."""
    _make_room(size)
    Path(os.fsdecode(file.name)).rename(copy_of(path))


def check(path: Path, size: int) -> tuple[int, int]:
    """The size and the checksum of an object as it lies on the store, whatever the cache has."""
    with spool() as file:
        Path(os.fsdecode(file.name)).unlink()
        objects.download(path, file.fileno(), size, _threads(os.getpid()))
        return _content(file)


def folder() -> Path:
    """The folder of the cache, which is its user's alone."""
    given = os.environ.get(FOLDER)
    path = Path(given) if given else Path(tempfile.gettempdir(), f"holdfast-cache-{_user()}")
    try:
        status = path.lstat()
    except OSError:
        status = _made(path)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != _user() or status.st_mode & 0o022:
        raise StoreError(
            f"{path}: the cache for files of object stores must be a folder that only its user can "
            f"write to; remove it, or set {FOLDER} to another one"
        )
    return path


def _made(path: Path) -> os.stat_result:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        return path.lstat()
    except OSError as error:
        raise StoreError(
            f"{path}: the cache for files of object stores cannot be made ({error.strerror}); set "
            f"{FOLDER} to a folder on this machine's disk"
        ) from error


def _user() -> int:
    return os.getuid()


def copy_of(path: Path) -> Path:
    """Where the copy of an object lies, if there is one."""
    above = hashlib.sha256(str(path.parent).encode()).hexdigest()[:12]
    return folder() / f"{above}-{path.name}"


def _note_use(copy: Path) -> bool:
    """Whether there is a copy; the time of its last use is noted, which is not that of a change."""
    try:
        status = copy.stat()
    except FileNotFoundError:
        return False
    now = time.time()
    if now - status.st_atime > _USED_S:
        with suppress(FileNotFoundError):
            os.utime(copy, ns=(int(now * 1e9), status.st_mtime_ns))
    return True


@contextmanager
def _locked(copy: Path) -> Iterator[None]:
    number = zlib.crc32(copy.name.encode()) % _LOCKS
    with (copy.parent / f"{_LOCK}{number}").open("ab") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch(path: Path, copy: Path, size: int, checksum: int) -> None:
    _make_room(size)
    file = spool()
    try:
        objects.download(path, file.fileno(), size, _threads(os.getpid()))
        content = _content(file)
        if content != (size, checksum):
            raise WrongContentError(*content)
        Path(os.fsdecode(file.name)).rename(copy)
    except BaseException:
        abandon(file)
        raise
    file.close()


class WrongContentError(Exception):
    """An object does not hold what its name says: its size and its checksum."""

    def __init__(self, size: int, checksum: int) -> None:
        super().__init__(size, checksum)
        self.size, self.checksum = size, checksum


def _content(file: FileIO) -> tuple[int, int]:
    """Size and checksum of a file."""
    size = checksum = 0
    piece = bytearray(_PIECE)
    file.seek(0)
    while length := file.readinto(piece):
        size += length
        checksum = zlib.crc32(memoryview(piece)[:length], checksum)
    return size, checksum


def limit() -> int:
    """How many bytes the cache may hold."""
    given = os.environ.get(LIMIT)
    return int(float(given) * 1e9) if given else shutil.disk_usage(folder()).total // _SHARE


def _make_room(size: int) -> None:
    """Before a file comes: remove what was not used for longest, if there is too much.

    Looking at all of the cache takes time, so a process does that when it has added a part of it.
    """
    place, most = folder(), limit()
    added = _added.get(str(place), most) + size
    if added < most / _LOOKS:
        _added[str(place)] = added
        return
    _added[str(place)] = 0
    files, total = [], size
    for entry in os.scandir(place):
        if entry.name.startswith(_LOCK):
            continue
        try:
            status = entry.stat()
        except FileNotFoundError:
            continue
        if entry.name.startswith(_TEMPORARY):
            if time.time() - status.st_mtime > _FORGOTTEN_S:
                _unlink(entry.path)
            continue
        files.append((status.st_atime, status.st_size, entry.path))
        total += status.st_size
    if total <= most:
        return
    for _, length, path in sorted(files):
        if total <= _SPARE * most:
            break
        _unlink(path)
        total -= length


def _unlink(path: str) -> None:
    try:
        Path(path).unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s: cannot be removed from the cache: %s", path, error)


@lru_cache(maxsize=2)
def _threads(_process: int) -> ThreadPoolExecutor:
    """Parts of a file are fetched at the same time. A process that was forked has none of its
    parent's threads."""
    return ThreadPoolExecutor(_THREADS, "fetch")
