"""Has this batch been applied? Answered from a few files, however long the log is.

Every 256th commit names a block: a data file with the batch ids of the 256 commits up to it, and
at every 16th such place (then every 256th, ...) a block that takes in those before it. A look-up
reads the commits since the last block, then follows the blocks back; each commit that names a
block says where it begins. A log of 100,000 commits has at most 255 commits and some 30 blocks
to read, and every id is written once per tier. An id is known as long as its version is there.

A block is a line ``{"checksum":...,"first":...,"last":...}`` and per batch and table that it
changed a line ``["table","id",version]``, in canonical JSON, so that a batch is found by searching
for bytes.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from holdfast.model.commits import Header, Summary
from holdfast.model.errors import StoreError
from holdfast.store.log import Log, canonical
from holdfast.store.storage import Storage

SPAN = 256
_GROWTH = 16


def find(log: Log, storage: Storage, table: str, batch_id: str) -> Summary | None:
    """The version that applied the batch of that id to a table, or None."""
    version = log.head()
    first = log.first()
    since = max(version - version % SPAN, first - 1)
    for header in log.each(range(version, since, -1), Header):
        if header.batch and header.batch.id == batch_id and table in header.batch.tables:
            return log.read(header.version, Summary)
    version = since
    needle = b"\n" + canonical([table, batch_id])[:-1] + b","
    for lines in _blocks(log, storage, version, first):
        at = lines.find(needle)
        if at >= 0:
            applied = json.loads(lines[at + 1 : lines.index(b"\n", at + 1)])[2]
            return log.read(applied, Summary) if applied >= first else None
    return None


def block(log: Log, storage: Storage, commit: Header) -> tuple[int, bytes]:
    """First version and content of the block that ends with a commit."""
    last = commit.version
    first = max(last - _span(last) + 1, log.first())
    recent = [_line(commit)]
    version = max((last - 1) - (last - 1) % SPAN, log.first() - 1)
    recent += [_line(header) for header in log.each(range(last - 1, version, -1), Header)]
    # Blocks nest, so following them back ends exactly before ``first``, if that did not expire.
    older = [lines[1:] for lines in _blocks(log, storage, version, first)]
    lines = b"\n" + b"".join([*reversed(older), *reversed(recent)])
    checksum = hashlib.sha256(lines).hexdigest()
    return first, canonical({"checksum": checksum, "first": first, "last": last}) + lines


def _span(version: int) -> int:
    span = SPAN
    while version % (span * _GROWTH) == 0:
        span *= _GROWTH
    return span


def _line(commit: Header) -> bytes:
    batch = commit.batch
    if not batch or batch.id is None:
        return b""
    lines = [canonical([table, batch.id, commit.version]) for table in batch.tables]
    return b"\n".join([*lines, b""])


def _blocks(log: Log, storage: Storage, version: int, first: int) -> Iterator[bytes]:
    """The checked lines of the blocks from ``version`` back to ``first``, newest first."""
    while version >= first:
        named = log.read(version, Header).batches
        if named is None:
            raise _damaged(log.path(version), "it names no list of batches")
        path = f"{storage.path}/{named.file}"
        try:
            header, newline, lines = storage.read(named.file).partition(b"\n")
        except OSError as error:
            raise _damaged(path, str(error.strerror)) from error
        lines = newline + lines
        expected: dict[str, int | str] = {"first": named.first, "last": version}
        expected["checksum"] = hashlib.sha256(lines).hexdigest()
        if header != canonical(expected):
            raise _damaged(path, "its content does not match its checksum")
        yield lines
        version = named.first - 1


def _damaged(path: str, why: str) -> StoreError:
    return StoreError(
        f"{path}: this list of applied batches is damaged: {why}. Restore the file from a copy, "
        "or rebuild the profile: holdfast profile SOURCE... --into NEW_DIRECTORY"
    )
