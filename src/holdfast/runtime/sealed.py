"""Sealed files: their names end with their size and checksum, so that any damage shows.

``data/words-4f1c09a2be77-d25be1f6430c-48322-9a3c01de.arrow`` has 48,322 bytes with the CRC-32
9a3c01de. Whoever has a file's name can therefore check it, and as commits name files, sizes and
checksums stand in commits. The checksum is computed while the file is written. The file gets its
sealed name when it is whole, and is flushed before its name is handed on (:func:`flushed`). On an
object store it is written to this machine's cache and uploaded in place of that, and what is read
is the copy in the cache (:mod:`holdfast.runtime.cached`).
``docs/decisions/15-checksums.md`` says why CRC-32.
"""

from __future__ import annotations

import errno
import os
import re
import socket
import uuid
import zlib
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from functools import cache, lru_cache
from io import FileIO
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa

from holdfast.model import thresholds
from holdfast.model.errors import HoldfastError, MissingFileError, StoreError
from holdfast.runtime import cached, objects
from holdfast.runtime.blocks import Sums

T = TypeVar("T")

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

_COPIES = 3
"""How often a copy in the cache is fetched again, because it is damaged or another worker took it
away to make room."""

_flushing: deque[Future[None]] = deque()
_uploading: deque[Future[None]] = deque()

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
        self._size = 0
        self._sums = Sums(thresholds.current.block_bytes)
        self._remote = objects.is_remote(root / name)
        self._file = cached.spool() if self._remote else FileIO(root / name, "xb")

    @property
    def closed(self) -> bool:
        """Whether it was sealed."""
        return self._file.closed

    def write(self, data: Any) -> int:
        """Append bytes."""
        rest = memoryview(data).cast("B")
        length = len(rest)
        self._sums.add(rest)
        self._size += length
        while rest:
            rest = rest[self._file.write(rest) :]
        return length

    def write_table(self) -> None:
        """Append the checksums of all whole blocks, in an Arrow file before its footer
        (:mod:`holdfast.runtime.blocks`)."""
        self.write(self._sums.table())

    def tell(self) -> int:
        """How many bytes were written."""
        return self._size

    def flush(self) -> None:
        """Nothing is held back here."""

    def close(self) -> None:
        """Close the file, which keeps its first name, so that nobody will read it."""
        if self._remote and not self._file.closed:
            cached.abandon(self._file)
        self._file.close()

    def seal(self) -> str:
        """End the file and begin to flush it; its name from now on."""
        sealed = sealed_name(self._name, Seal(self._size, self._sums.whole))
        self.end(sealed)
        return sealed

    def end(self, name: str) -> None:
        """End the file under a name that has its seal, and begin to flush or to upload it."""
        path = self._root / name
        if self._remote:
            cached.keep(self._file, path, self._size)
            uploading = _threads(os.getpid()).submit(self._upload, path)
            _uploading.append(uploading)
            _flushing.append(uploading)
        else:
            (self._root / self._name).rename(path)
            _flushing.append(_threads(os.getpid()).submit(self._flush))

    def _flush(self) -> None:
        with self._file:
            flush(self._file.fileno())

    def _upload(self, path: Path) -> None:
        with self._file:
            self._file.seek(0)
            try:
                objects.upload(path, self._file, self._size)
            except OSError as error:
                raise StoreError(
                    f"{objects.shown(path)}: cannot be uploaded ({error.strerror or error}); "
                    "nothing was committed, the last version is unchanged."
                ) from error


def flush(descriptor: int) -> None:
    """Write a file through to the disk, or to the server that others read it from."""
    os.fsync(descriptor)


def flushed() -> None:
    """Wait until all files that this process has sealed are flushed; an error if one cannot be."""
    _uploading.clear()
    _ended(_flushing)


def uploaded() -> None:
    """Wait until all files that this process has sealed are where others see them: on a file system
    they are."""
    _ended(_uploading)


def _ended(flushing: deque[Future[None]]) -> None:
    uploads = []
    with suppress(IndexError):
        # One by one: other threads add to them, and wait for them, at the same time.
        while True:
            uploads.append(flushing.popleft())
    wait(uploads)
    for upload in uploads:
        upload.result()


@cache
def _threads(_process: int) -> ThreadPoolExecutor:
    """Files are flushed at the same time, because the file system then does it together. A process
    that was forked has none of its parent's threads."""
    return ThreadPoolExecutor(_FLUSH_THREADS, "flush")


def local(path: Path) -> Path:
    """Where a sealed file lies on this machine: itself, or its copy in the cache."""
    if not objects.is_remote(path):
        return path
    try:
        return cached.local(path, *_seal(path))
    except cached.WrongContentError as wrong:
        _compare(path, wrong.size, wrong.checksum)
        raise
    except OSError as error:
        raise _unreadable(path, error) from error


def is_here(path: Path) -> bool:
    """Whether a file, or a copy of it, lies on this machine."""
    return (cached.copy_of(path) if objects.is_remote(path) else path).exists()


def _with_copy(path: Path, use: Callable[[Path], T]) -> T:
    """Use a file where it lies on this machine. A copy that is damaged, or that another worker has
    taken away since, is fetched again."""
    copy = local(path)
    if copy is path:
        return use(path)
    for _ in range(_COPIES):
        try:
            return use(copy)
        except StoreError:
            cached.drop(path)
            copy = local(path)
    return use(copy)


def read(path: Path) -> bytes:
    """The content of a sealed file; an error that names it when it is damaged or not there."""
    return _with_copy(path, _read)


def _read(path: Path) -> bytes:
    try:
        content = path.read_bytes()
    except OSError as error:
        raise _unreadable(path, error) from error
    _compare(path, len(content), zlib.crc32(content))
    return content


def mapped(path: Path) -> pa.Buffer:
    """The content of a sealed file in mapped memory, all of which is checked when this process
    first maps it, and again when the file has changed since."""
    return _with_copy(path, _mapped)


def _mapped(path: Path) -> pa.Buffer:
    _check(path, _stamp(path))
    return _map(path)


def opened(path: Path, find: Callable[[memoryview, int], T | None]) -> tuple[pa.Buffer, T | None]:
    """The same, unless ``find``, given the content and its checksum, finds what to check parts of
    it by, when they are used.

    A copy in the cache is always checked as a whole: one that is damaged is fetched again, which
    has to happen before anybody uses a part of it.
    """
    if objects.is_remote(path):
        return mapped(path), None
    content, seal = _map(path), _seal(path)
    if content.size != seal.size:
        raise damaged(path, f"it has {content.size} bytes, not {seal.size}")
    table = find(memoryview(content), seal.checksum) if content.size else None
    return (mapped(path) if table is None else content), table


def check_whole(path: Path) -> None:
    """Compare a file with its seal, unless this process has done so and it has not changed."""
    _with_copy(path, lambda copy: _check(copy, _stamp(copy)))


def discard(path: Path) -> None:
    """Remove a file that nobody reads any more, and its copy on this machine, if they are there."""
    if objects.is_remote(path):
        cached.drop(path)
        objects.delete(path)
    else:
        path.unlink(missing_ok=True)


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
    return _with_copy(path, _stamp)


def _stamp(path: Path) -> tuple[int, int, int]:
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
        if objects.is_remote(path):
            _compare(path, *cached.check(path, _seal(path).size))
            return
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


def _seal(path: Path) -> Seal:
    seal = seal_of(path.name)
    if seal is None:
        raise damaged(path, "its name does not end with its size and checksum")
    return seal


def _compare(path: Path, size: int, checksum: int) -> None:
    seal = _seal(path)
    if size != seal.size:
        raise damaged(path, f"it has {size} bytes, not {seal.size}")
    if checksum != seal.checksum:
        raise mismatch(path)


def _unreadable(path: Path, error: OSError) -> StoreError:
    where, said = objects.shown(path), error.strerror or error
    if error.errno in (errno.ENOENT, errno.ENOTDIR):
        return MissingFileError(
            f"{where}: this data file is missing, as {socket.gethostname()} sees it. {REBUILD}"
        )
    if isinstance(error, ConnectionError):
        return StoreError(
            f"{where}: the object store does not answer ({said}). Nothing was changed; run again."
        )
    return StoreError(f"{where}: this data file cannot be read ({said}). {REBUILD}")


def mismatch(path: Path) -> StoreError:
    """The error that says that a file is not as it was written."""
    return damaged(path, "its content does not match its checksum")


def damaged(path: Path, why: str) -> StoreError:
    """The error that says that a file is damaged."""
    return StoreError(f"{objects.shown(path)}: this data file is damaged: {why}. {REBUILD}")


def unique(prefix: str, kind: str) -> str:
    """A file name that no other task, retry or run will use; ``prefix`` comes from the lease.

    It is sealed in the end.
    """
    return f"{prefix.replace('*', kind)}{uuid.uuid4().hex[:12]}.arrow"
