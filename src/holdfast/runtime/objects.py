"""Objects: files of profiles that lie on an object store, reached through obstore.

A path of such a file is the address of the object, ``s3://bucket/shop/data/words-….arrow``, with
one slash or two, since a path object makes one of two. Errors are those of a file system: a
FileNotFoundError, a FileExistsError, a PermissionError, and a ConnectionError where the store does
not answer, or not as it should. Credentials come from where the tools of the store look for them:
the environment of the process, the machine's role. None is ever part of a message.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from functools import lru_cache
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict

from holdfast.model.errors import SetupError

if TYPE_CHECKING:
    from concurrent.futures import Executor

_SCHEMES = {"s3": "s3", "s3a": "s3", "gs": "gs", "abfs": "abfss", "abfss": "abfss"}
"""Where a profile can lie, other than on a file system, and how each is called here."""

PATIENCE = "HOLDFAST_STORE_SECONDS"
"""The variable that says for how many seconds a request is tried again."""

_PATIENCE_S = 180.0
_REQUEST_S = 30.0
_TRIES = 1_000_000
"""More than there are in any time: the seconds decide."""

_PART = 8 << 20
"""Bytes of a file that are sent or asked for at once."""

_PARTS = 4
"""Parts of a file that are sent at the same time: each is in memory meanwhile."""

_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9]+):/+([^/]+)(?:/+(.*))?", re.DOTALL)
_VARIABLES = ("AWS_", "GOOGLE_", "AZURE_")
_ENDPOINTS = ("AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL", "AWS_ENDPOINT")
_CHARS = 300
"""Of what a store says of an error."""


class Address(NamedTuple):
    """An object: its bucket (or container), as the address of that, and its key."""

    bucket: str
    key: str


class Object(NamedTuple):
    """What a listing says of an object."""

    key: str
    size: int
    modified: datetime


class ObjectVersion(TypedDict, total=False):
    """By what an object can be replaced on condition that it is still the same."""

    e_tag: str
    version: str


class Content(NamedTuple):
    """What an object holds, and the version of it by which it can be replaced."""

    data: bytes
    version: ObjectVersion
    modified: datetime


def address(path: str | PurePath) -> Address | None:
    """The object that a path names; None when it is a path of a file system.

    >>> address("s3://lake/profiles/shop"), address(PurePath("s3://lake/x")), address("/s3:/x")
    (Address(bucket='s3://lake', key='profiles/shop'), Address(bucket='s3://lake', key='x'), None)
    """
    text = str(path)
    if text.startswith("/"):
        return None
    match = _ADDRESS.fullmatch(text)
    scheme = _SCHEMES.get(match[1].lower()) if match else None
    if match is None or scheme is None:
        return None
    return Address(f"{scheme}://{match[2]}", (match[3] or "").rstrip("/"))


def is_remote(path: str | PurePath) -> bool:
    """Whether a path names an object, or a folder of them, on an object store."""
    return address(path) is not None


def shown(path: str | PurePath) -> str:
    """A path as messages name it.

    >>> shown(PurePath("s3://lake/shop")), shown("/data/shop")
    ('s3://lake/shop', '/data/shop')
    """
    there = address(path)
    if there is None:
        return str(path)
    return f"{there.bucket}/{there.key}" if there.key else there.bucket


def get(path: str | PurePath) -> Content:
    """What an object holds."""
    with _errors(path) as (obstore, store, key):
        result = obstore.get(store, key)
        meta = result.meta
        return Content(bytes(result.bytes()), _version(meta), meta["last_modified"])


def modified(path: str | PurePath) -> datetime:
    """When an object was written, by the clock of the store."""
    with _errors(path) as (obstore, store, key):
        when: datetime = obstore.head(store, key)["last_modified"]
        return when


def exists(path: str | PurePath) -> bool:
    """Whether there is such an object."""
    try:
        modified(path)
    except FileNotFoundError:
        return False
    return True


def put(path: str | PurePath, data: bytes | memoryview, mode: Any = "overwrite") -> ObjectVersion:
    """Write an object; its version. The mode ``create`` is for one that is not there, that version
    of it for the only one that may be replaced."""
    with _errors(path) as (obstore, store, key):
        result = obstore.put(store, key, data, mode=mode, use_multipart=False)
        return _version(result)


def delete(path: str | PurePath) -> None:
    """Remove an object, if there is one."""
    with _errors(path) as (obstore, store, key):
        obstore.delete(store, key)


def listing(folder: str | PurePath) -> tuple[list[Object], list[str]]:
    """The objects right in a folder, by their names in it, and the folders in it."""
    with _errors(folder) as (obstore, store, key):
        result = obstore.list_with_delimiter(store, key or None)
        start = len(key) + 1 if key else 0
        objects = [
            Object(entry["path"][start:], entry["size"], entry["last_modified"])
            for entry in result["objects"]
        ]
        return objects, [prefix[start:].rstrip("/") for prefix in result["common_prefixes"]]


def upload(path: str | PurePath, file: Any, size: int) -> None:
    """Write an object from an open file."""
    with _errors(path) as (obstore, store, key):
        parts: dict[str, Any] = {"chunk_size": _PART, "max_concurrency": _PARTS}
        obstore.put(store, key, file, use_multipart=size > _PART, **parts)


def download(path: str | PurePath, descriptor: int, size: int, pool: Executor) -> int:
    """Write an object of a known size into a file, parts of it at the same time; the bytes that
    there were."""

    def part(start: int) -> int:
        length = min(_PART, size - start)
        with _errors(path) as (obstore, store, key):
            data = memoryview(obstore.get_range(store, key, start=start, length=length))
        at = 0
        while at < len(data):
            at += os.pwrite(descriptor, data[at:], start + at)
        return at

    if size <= _PART:
        content = memoryview(get(path).data)
        at = 0
        while at < len(content):
            at += os.pwrite(descriptor, content[at:], at)
        return at
    return sum(pool.map(part, range(0, size, _PART)))


def _version(facts: Any) -> ObjectVersion:
    version = ObjectVersion()
    if facts["e_tag"] is not None:
        version["e_tag"] = facts["e_tag"]
    if facts["version"] is not None:
        version["version"] = facts["version"]
    return version


def patience() -> float:
    """For how many seconds a request is tried again."""
    return float(os.environ.get(PATIENCE) or _PATIENCE_S)


def _environment() -> tuple[tuple[str, str], ...]:
    """What a store is reached by, which may change while a process lives."""
    return tuple((k, v) for k, v in os.environ.items() if k.startswith(_VARIABLES))


@lru_cache(maxsize=64)
def _store(
    bucket: str, _process: int, seconds: float, environment: tuple[tuple[str, str], ...]
) -> Any:
    """The connections of this process to a bucket; one that was forked has none of its parent's."""
    from obstore.store import from_url

    endpoints = (value for name, value in environment if name in _ENDPOINTS)
    http = any(value.startswith("http://") for value in endpoints)

    return from_url(
        bucket,
        client_options={
            "allow_http": http,
            "timeout": timedelta(seconds=min(_REQUEST_S, seconds)),
            "connect_timeout": timedelta(seconds=min(5.0, seconds)),
        },
        retry_config={"retry_timeout": timedelta(seconds=seconds), "max_retries": _TRIES},
    )


@contextmanager
def _errors(path: str | PurePath) -> Iterator[tuple[Any, Any, str]]:
    """The library, the bucket and the key of an object; errors become those of a file system."""
    there = address(path)
    if there is None:
        raise ValueError(f"{path} is not on an object store")
    try:
        import obstore
        from obstore import exceptions
    except ImportError as missing:
        raise SetupError(
            f"{shown(path)}: a profile on an object store needs obstore, and there is none "
            f"({missing}); install it with: pip install 'holdfast[object]', where tasks run, too"
        ) from missing
    try:
        yield obstore, _store(there.bucket, os.getpid(), patience(), _environment()), there.key
    # What the library says may have a signed address in it: the cause stays out of the chain.
    except FileNotFoundError:
        raise _error(FileNotFoundError, errno.ENOENT, path) from None
    except (exceptions.AlreadyExistsError, exceptions.PreconditionError):
        raise _error(FileExistsError, errno.EEXIST, path) from None
    except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
        raise _error(PermissionError, errno.EACCES, path, message_of(error)) from None
    except exceptions.BaseError as error:
        raise _other(path, message_of(error)) from None


def _other(path: str | PurePath, said: str) -> OSError:
    """Errors of listings come without a kind of their own: their status tells."""
    status = re.search(r"status code: (\d+)", said)
    if status and status[1] == "404":
        return _error(FileNotFoundError, errno.ENOENT, path)
    if status and status[1] in ("401", "403"):
        return _error(PermissionError, errno.EACCES, path, said)
    return _error(ConnectionError, errno.EIO, path, said)


def _error(
    kind: type[OSError], number: int, path: str | PurePath, said: str | None = None
) -> OSError:
    return kind(number, said or os.strerror(number), shown(path))


def message_of(error: Exception) -> str:
    """What a store said, on one line, without colours and the part of an address that may be
    signed, and of a page its code alone.

    >>> message_of(Exception("GET http://s3/p?X-Signature=1 - 403: <x><Code>AccessDenied</Code>"))
    'GET http://s3/p - 403: AccessDenied'
    """
    text = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
    text = " ".join(text.split()).partition(" Debug source:")[0]
    code = re.search(r"<Code>(\w+)</Code>", text)
    text = re.sub(r"<.*", code[1] if code else "", text).rstrip(": ")
    text = re.sub(r"\?[^\s\"')]*", "", text)
    text = re.sub(
        r"(?i)\b(authorization|signature|credential|token)\b\S*\s*[:=]\s*\S+", r"\1", text
    )
    return text if len(text) <= _CHARS else f"{text[:_CHARS]}…"
