"""Sealed files: their names end with their size and checksum, so that any damage shows.

``data/words-4f1c09a2be77-d25be1f6430c-48322-9a3c01de.arrow`` has 48,322 bytes with the CRC-32
9a3c01de. Whoever has a file's name can therefore check it, and as commits name files, sizes and
checksums stand in commits. The checksum is computed while the file is written. The file gets its
sealed name when it is whole, and is flushed before its name is handed on (:func:`flushed`).
``docs/decisions/15-checksums.md`` says why CRC-32.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import zlib
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from holdfast.model.errors import HoldfastError, MissingFileError, StoreError

REBUILD = (
    "Restore it from a copy, or rebuild the profile: "
    "holdfast profile SOURCE... --into NEW_DIRECTORY"
)
"""What to do about a damaged file."""

_SHOWN = 10
"""Damaged files that an error names."""

_PIECE = 1 << 20
"""Bytes of a file that are looked at together."""

_FLUSH_THREADS = 8

_flushing: list[Future[None]] = []

_EMPTY = pa.py_buffer(b"")

_SEAL = re.compile(r"-(\d+)-([0-9a-f]{8})(\.[a-z]+)?")


class Seal(NamedTuple):
    """What a file's name says of its content."""

    size: int
    checksum: int


def seal_of(name: str) -> Seal | None:
    """The seal in a name; None when there is none.

    >>> seal_of("data/keys-4f1c09a2be77-0001-5-3610a686.json")
    Seal(size=5, checksum=907060870)
    """
    stem, dot, suffix = name.rpartition(".")
    ending = name[(stem if dot else suffix).rpartition("-")[0].rfind("-") :]
    match = _SEAL.fullmatch(ending)
    return Seal(int(match[1]), int(match[2], 16)) if match else None


def sealed_name(name: str, seal: Seal) -> str:
    """The name with a seal.

    >>> sealed_name("data/keys-4f1c09a2be77-0001.json", Seal(5, zlib.crc32(b"hello")))
    'data/keys-4f1c09a2be77-0001-5-3610a686.json'
    """
    suffix = Path(name).suffix
    return f"{name.removesuffix(suffix)}-{seal.size}-{seal.checksum:08x}{suffix}"


class Sink:
    """A new file to write to, which is sealed at the end. Arrow takes it for a file object."""

    def __init__(self, root: Path, name: str) -> None:
        self._root, self._name = root, name
        self._size = self._checksum = 0
        self._file = (root / name).open("xb", buffering=0)

    @property
    def closed(self) -> bool:
        """Whether it was sealed."""
        return self._file.closed

    def write(self, data: Any) -> int:
        """Append bytes."""
        rest = memoryview(data).cast("B")
        length = len(rest)
        self._checksum = zlib.crc32(rest, self._checksum)
        self._size += length
        while rest:
            rest = rest[self._file.write(rest) :]
        return length

    def tell(self) -> int:
        """How many bytes were written."""
        return self._size

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """Close the file, which keeps its first name, so that nobody will read it."""
        self._file.close()

    def seal(self) -> str:
        """End the file and begin to flush it; its name from now on."""
        sealed = sealed_name(self._name, Seal(self._size, self._checksum))
        (self._root / self._name).rename(self._root / sealed)
        _flushing.append(_threads(os.getpid()).submit(self._flush))
        return sealed

    def _flush(self) -> None:
        with self._file:
            flush(self._file.fileno())


def flush(descriptor: int) -> None:
    """Write a file through to the disk, or to the server that others read it from."""
    os.fsync(descriptor)


def flushed() -> None:
    """Wait until all files that this process has sealed are flushed; an error if one cannot be."""
    begun = _flushing[:]
    _flushing.clear()
    wait(begun)
    for each in begun:
        each.result()


@cache
def _threads(_process: int) -> ThreadPoolExecutor:
    """Files are flushed at the same time, because the file system then does it together. A process
    that was forked has none of its parent's threads."""
    return ThreadPoolExecutor(_FLUSH_THREADS, "flush")


def read(path: Path) -> bytes:
    """The content of a sealed file; an error that names it when it is damaged or not there."""
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    _compare(path, len(content), zlib.crc32(content))
    return content


def mapped(path: Path) -> pa.Buffer:
    """The content of a sealed file in mapped memory, checked when this process first maps it, and
    again when the file has changed since."""
    _check(path, stamp(path))
    return _map(path)


def damage(path: Path) -> StoreError | None:
    """What is wrong with a file, however often it was checked before; None: nothing."""
    try:
        _look_through(path)
    except StoreError as error:
        return error
    return None


def together(errors: Sequence[HoldfastError]) -> StoreError:
    """One error for several files."""
    kind = MissingFileError if any(isinstance(e, MissingFileError) for e in errors) else StoreError
    sentences = [str(error).removesuffix(f" {REBUILD}") for error in errors[:_SHOWN]]
    more = f" {len(errors) - _SHOWN} more files are damaged." if len(errors) > _SHOWN else ""
    return kind(f"{' '.join(sentences)}{more} {REBUILD}")


def stamp(path: Path) -> tuple[int, int, int]:
    """What changes when a file does."""
    try:
        status = path.stat()
    except OSError as error:
        raise _unreadable(path, error) from error
    return status.st_ino, status.st_size, status.st_mtime_ns


@lru_cache(maxsize=1 << 16)
def _check(path: Path, _stamp: tuple[int, int, int]) -> None:
    _look_through(path)


def _look_through(path: Path) -> None:
    """Compare a file with its seal, piece by piece: a map of it would count as this process's
    memory, all of it, where a few rows are wanted."""
    size = checksum = 0
    piece = bytearray(_PIECE)
    try:
        with path.open("rb", buffering=0) as file:
            while length := file.readinto(piece):
                size += length
                checksum = zlib.crc32(memoryview(piece)[:length], checksum)
    except OSError as error:
        raise _unreadable(path, error) from error
    _compare(path, size, checksum)


def _map(path: Path) -> pa.Buffer:
    try:
        # An empty file cannot be mapped.
        return pa.memory_map(str(path)).read_buffer() if path.stat().st_size else _EMPTY
    except OSError as error:
        raise _unreadable(path, error) from error


def _compare(path: Path, size: int, checksum: int) -> None:
    seal = seal_of(path.name)
    if seal is None:
        raise damaged(path, "its name does not end with its size and checksum")
    if size != seal.size:
        raise damaged(path, f"it has {size} bytes, not {seal.size}")
    if checksum != seal.checksum:
        raise damaged(path, "its content does not match its checksum")


def _unreadable(path: Path, error: OSError) -> StoreError:
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return MissingFileError(
            f"{path}: this data file is missing, as {socket.gethostname()} sees it. {REBUILD}"
        )
    return StoreError(
        f"{path}: this data file cannot be read ({error.strerror or error}). {REBUILD}"
    )


def damaged(path: Path, why: str) -> StoreError:
    """The error that says that a file is damaged."""
    return StoreError(f"{path}: this data file is damaged: {why}. {REBUILD}")
