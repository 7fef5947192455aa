"""The commit log: one checksummed JSON file per version, numbered from 1 without gaps.

A commit file is ``{"checksum":"<sha256>","body":<canonical JSON>}`` and a newline. The checksum
is that of the body's bytes as they stand in the file, so checking it needs no second encoding.

Next to it lies a *head hint*, an empty file whose name has the number of the last version. It is
written once a version is committed, and shows that the last commits are missing when they are. A
listing of the log has it, so reading it costs nothing. It may be behind, and never moves the head.

Versions expire from the oldest on. ``first-000000000123`` says that those before 123 did: commits
that are there nevertheless wait to be removed, and count no more.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import TypeVar

from holdfast.model.commits import Commit, Header, Summary, TableRecord
from holdfast.model.errors import StoreError
from holdfast.model.records import FormError, from_form, to_form
from holdfast.runtime import sealed
from holdfast.store.storage import Storage

Said = TypeVar("Said", Commit, Header, Summary)
"""How much of a commit is read."""

LOG = "log"
"""The folder of the commits."""

_TOGETHER = 32

_TABLES = 4_096
"""Manifests that are held once they were read."""

_NUMBERED = re.compile(r"(\d{12})\.json")
_HINT = re.compile(r"head-(\d{12})")
_FIRST = re.compile(r"first-(\d{12})")
_ENVELOPE = re.compile(rb'\{"checksum":"([0-9a-f]{64})","body":(\{.*\})\}\n', re.DOTALL)


def canonical(value: object) -> bytes:
    """JSON in one fixed spelling: sorted keys, no spaces, ASCII only, no NaN."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return text.encode("ascii")


def encode(commit: Commit) -> bytes:
    """The bytes of a commit file."""
    inner = canonical(to_form(commit))
    checksum = hashlib.sha256(inner).hexdigest().encode("ascii")
    return b'{"checksum":"' + checksum + b'","body":' + inner + b"}\n"


def unreadable(path: str, error: OSError) -> StoreError:
    """What is said where the log cannot be read, or the store does not answer."""
    if isinstance(error, ConnectionError):
        return StoreError(
            f"{path}: the object store does not answer ({error.strerror}); run again."
        )
    return StoreError(
        f"{path}: the commit log cannot be read ({error.strerror}); "
        "restore the profile from a copy."
    )


def _numbers(pattern: re.Pattern[str], names: Sequence[str]) -> list[int]:
    return sorted(int(match[1]) for name in names if (match := pattern.fullmatch(name)))


def _hint(version: int) -> str:
    """The name of the hint that a version is the last one."""
    return f"{LOG}/head-{version:012d}"


def _first(version: int) -> str:
    """The name of the file that says that the versions before one expired."""
    return f"{LOG}/first-{version:012d}"


class Log:
    """The numbered commits of one profile. Commits are only ever added."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._seen = 0
        self._first = 1
        self._hints: set[int] = set()
        # Unchanged tables have the manifests that they had in earlier versions.
        self._table = lru_cache(_TABLES)(self._manifest)

    def name(self, version: int) -> str:
        """The name of the commit of a version, in the profile."""
        return f"{LOG}/{version:012d}.json"

    def path(self, version: int) -> str:
        """Where the commit of a version is or will be, for messages."""
        return os.path.join(self._storage.path, self.name(version))

    def versions(self) -> list[int]:
        """All versions, oldest first; a StoreError when one in between is missing, or the last."""
        try:
            names = self._storage.entries(LOG)
            self._first = max([1, *_numbers(_FIRST, names)])
            versions = [each for each in _numbers(_NUMBERED, names) if each >= self._first]
            if not versions and self._first > 1:
                raise self._damaged(self._first, "it is missing")
            for expected, version in enumerate(versions, start=self._first):
                if version != expected:
                    raise self._damaged(expected, "it is missing")
            hints = _numbers(_HINT, names)
            self._hints = {*self._hints, *hints}
            self._expect(versions, hints[-1] if hints else 0)
        except OSError as error:
            raise unreadable(f"{self._storage.path}/{LOG}", error) from error
        return versions

    def _expect(self, versions: list[int], hinted: int) -> None:
        """See that the log reaches a hint. A listing that was made while somebody committed may
        have the hint and not the commit, which was there before it."""
        last = versions[-1] if versions else 0
        while last < hinted and self._storage.exists(self.name(last + 1)):
            last += 1
            versions.append(last)
        if last >= hinted:
            return
        hint = f"{self._storage.path}/{_hint(hinted)}"
        instead = f" To go on from version {last} instead, remove {hint}." if last else ""
        raise StoreError(
            f"{self.path(last + 1)}: this commit is missing: {hint} says that version {hinted} was "
            "committed. Restore the log from a copy, or rebuild the profile: "
            f"holdfast profile SOURCE... --into NEW_DIRECTORY.{instead}"
        )

    def first(self) -> int:
        """The oldest version that is there, 1 unless some expired."""
        if not self._seen:
            self.head()
        return self._first

    def expire(self, first: int) -> None:
        """Let the versions before one be there no more."""
        before = self.first()
        self._storage.replace(_first(first), b"")
        self._first = first
        if 1 < before < first:
            self._remove(_first(before))

    def expired(self) -> list[int]:
        """The versions that expired and whose commits are not removed yet, oldest first."""
        first = self.first()
        names = self._storage.entries(LOG)
        return [version for version in _numbers(_NUMBERED, names) if version < first]

    def remove(self, version: int) -> None:
        """Remove the commit of a version that expired."""
        assert version < self._first
        self._remove(self.name(version))

    def _remove(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            self._storage.delete(name)

    def point(self, version: int) -> Callable[[], None]:
        """Leave a hint that a version is committed, which it must be, in place of earlier ones. The
        function that is returned waits until that is done."""
        before = {hint for hint in self._hints if hint < version} | {version - 1}
        self._hints = {version}
        return self._storage.leave(_hint(version), [_hint(hint) for hint in sorted(before) if hint])

    def head(self) -> int:
        """The last version, 0 when there is none.

        The log is listed once; later calls only look for the numbers that follow.
        """
        if not self._seen:
            versions = self.versions()
            self._seen = versions[-1] if versions else 0
            return self._seen
        try:
            self._look_on()
        except OSError as error:
            raise unreadable(f"{self._storage.path}/{LOG}", error) from error
        return self._seen

    def _look_on(self) -> None:
        while self._storage.exists(self.name(self._seen + 1)):
            self._seen += 1

    def each(self, versions: Sequence[int], kind: type[Said]) -> Iterator[Said]:
        """Some commits, in that order, which are fetched together where that is faster."""
        for start in range(0, len(versions), _TOGETHER):
            chunk = versions[start : start + _TOGETHER]
            self._storage.prefetch([self.name(version) for version in chunk])
            for version in chunk:
                yield self.read(version, kind)

    def read(self, version: int, kind: type[Said]) -> Said:
        """A commit, or a part of it, checked against its checksum, its number and its types."""
        if version < 1 or (version > self._seen and version > self.head()):
            raise self._absent(version)
        if version < self._first:
            raise self._absent(version)
        commit = self._read(version, kind)
        return replace(commit, tables=replace(commit.tables, read=self._table))

    def _absent(self, version: int) -> StoreError:
        expired = " any more: it expired" if 1 <= version < self._first else ""
        return StoreError(
            f"{self._storage.path}: there is no version {version}{expired}; "
            f"the profile has versions {self._first} to {self.head()}."
        )

    def read_expired(self, version: int) -> Header:
        """A commit that waits to be removed."""
        commit = self._read(version, Header)
        return replace(commit, tables=replace(commit.tables, read=self._table))

    def _read(self, version: int, kind: type[Said]) -> Said:
        try:
            raw = self._storage.read(self.name(version))
        except FileNotFoundError as error:
            self.versions()
            if version < self._first:  # while this process was looking
                raise self._absent(version) from error
            raise self._damaged(version, "it is missing") from error
        except ConnectionError as error:
            raise unreadable(self.path(version), error) from error
        except OSError as error:
            raise self._damaged(version, str(error.strerror)) from error
        match = _ENVELOPE.fullmatch(raw)
        if match is None:
            raise self._damaged(version, "it is not a whole commit file")
        if hashlib.sha256(match[2]).hexdigest().encode("ascii") != match[1]:
            raise self._damaged(version, "its content does not match its checksum")
        try:
            commit = from_form(kind, json.loads(match[2]))
        except FormError as error:
            raise self._damaged(version, str(error)) from error
        if commit.version != version:
            raise self._damaged(version, f"it holds version {commit.version}")
        return commit

    def _manifest(self, relative: str) -> TableRecord:
        """What a commit says of a table, in a data file of its own."""
        path = Path(os.path.join(self._storage.path, relative))
        try:
            return from_form(TableRecord, json.loads(sealed.read(path)))
        except (FormError, ValueError) as error:
            raise sealed.damaged(path, str(error)) from error

    def _damaged(self, version: int, why: str) -> StoreError:
        return StoreError(
            f"{self.path(version)}: this commit is damaged: {why}. Restore the file from a copy, "
            "or rebuild the profile: holdfast profile SOURCE... --into NEW_DIRECTORY"
        )
