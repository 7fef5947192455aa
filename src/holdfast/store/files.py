"""Files that are written once: their names, flushing them, and publishing under a free name.

A data file is called ``data/<kind>-<run>-<rest>``, so that its name alone says what it holds
and which run wrote it. It is written in place: until a commit names it nobody reads it, so only
the commit file needs a temporary name.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from typing import NamedTuple

from holdfast.model.errors import StoreError

# Kinds that hold what every version found. They outlive the rows they were found in.
KEPT_KINDS = (
    "table", "sets", "non_keys", "recount", "batches", "attributes", "distinct", "inclusions",
    "tuples",
)  # fmt: skip

DATA = "data"
"""The folder of the data files."""

_KIND = r"[a-z][a-z0-9_]*"
_RUN = r"[0-9a-f]{12}"
_DATA = re.compile(rf"({_KIND})-({_RUN})-.+", re.DOTALL)
_TEMPORARY = re.compile(rf"\.tmp-({_RUN})")
_LEASE = re.compile(rf"({_RUN})\.(?:json|dead)")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_NO_DIRECTORY_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EBADF)


class DataName(NamedTuple):
    """What the name of a data file says."""

    kind: str
    run: str


def data_name(name: str) -> DataName | None:
    """Read the name of a data file (without its folder); None when it is not one of ours.

    >>> data_name("segment-0123456789ab-0001.arrow")
    DataName(kind='segment', run='0123456789ab')
    """
    match = _DATA.fullmatch(name)
    return DataName(match[1], match[2]) if match else None


def is_kept(relative: str) -> bool:
    """Whether a data file is of a kind that stays for ever.

    >>> is_kept("data/sets-0123456789ab-0001.arrow"), is_kept("data/raw-0123456789ab-0002.arrow")
    (True, False)
    """
    named = data_name(relative.removeprefix(f"{DATA}/"))
    return named is not None and named.kind in KEPT_KINDS


def run_of(relative: str) -> str | None:
    """The run that wrote a data file, which may be a part of a folder.

    >>> run_of("data/raw-0123456789ab-0002/part-1")
    '0123456789ab'
    """
    named = data_name(relative.split("/")[1])
    return named.run if named else None


def data_prefix(kind: str, run: str, folder: str = DATA) -> str:
    """The beginning of the relative paths of one run's data files of one kind."""
    if not re.fullmatch(_KIND, kind):
        raise ValueError(f"a kind of data file is lower-case letters, digits and _, not {kind!r}")
    return f"{folder}/{kind}-{run}-"


def temporary_name(run: str) -> str:
    """The name under which a run writes a file before it is published."""
    return f".tmp-{run}"


def temporary_run(name: str) -> str | None:
    """The run that left a temporary file, or None when the name is not a temporary one."""
    match = _TEMPORARY.fullmatch(name)
    return match[1] if match else None


def lease_run(name: str) -> str | None:
    """The run that a lease file belongs to, or None when the name is not that of a lease."""
    match = _LEASE.fullmatch(name)
    return match[1] if match else None


def write_new(path: str, data: bytes | bytearray | memoryview) -> None:
    """Write a file that must not exist yet. It is flushed later, with all others of its run."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        _write_all(descriptor, data)
    finally:
        os.close(descriptor)


def write_synced(path: str, data: bytes) -> None:
    """Write and flush a temporary file; one left by an earlier attempt of the run is replaced."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    try:
        _write_all(descriptor, data)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _write_all(descriptor: int, data: bytes | bytearray | memoryview) -> None:
    rest = memoryview(data).cast("B")
    while rest:
        rest = rest[os.write(descriptor, rest) :]


def sync_file(path: str) -> None:
    """Flush a file that anyone wrote."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def sync_directory(path: str) -> None:
    """Flush the names in a directory, where the file system can."""
    try:
        sync_file(path)
    except OSError as error:
        if error.errno not in _NO_DIRECTORY_SYNC:
            raise


def publish_exclusively(temporary: str, target: str) -> None:
    """Give a finished file its final name; FileExistsError when the name is taken.

    A hard link does it in one step that readers and rivals see whole. File systems without links
    (exFAT, some network shares) get a rename under a lock that the operating system releases
    when its holder dies.
    """
    try:
        os.link(temporary, target)
    except FileExistsError:
        # NFS may send a request twice and report the second answer: then the link is ours.
        if not os.path.samefile(temporary, target):
            raise
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        _rename_locked(temporary, target)


def _rename_locked(temporary: str, target: str) -> None:
    with open(os.path.join(os.path.dirname(target), ".lock"), "ab") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
        except OSError as error:
            raise StoreError(
                f"{os.path.dirname(target)}: this file system has neither hard links nor locks, "
                "so a version cannot be committed safely; nothing was committed. Keep the "
                "profile on another file system."
            ) from error
        if os.path.lexists(target):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), target)
        os.rename(temporary, target)
