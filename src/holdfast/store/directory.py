"""Store: a profile directory as the rest of Holdfast sees it.

    <profile>/holdfast.json          says that this is a profile, and of which format
    <profile>/log/000000000001.json  one commit per version
    <profile>/log/head-000000000001  a hint that this is the last version
    <profile>/data/                  files that never change, named by the commits
    <profile>/leases/                who is at work
    <profile>/feeds/                 why feeds stopped, where one did

``docs/directory-format.md`` describes it for people.
"""

from __future__ import annotations

import json
import logging
import os
import re
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from holdfast.model.commits import BlockRecord, Commit, FeedRecord, Header, Summary, Tables
from holdfast.model.errors import (
    BatchError,
    ConflictError,
    MissingFileError,
    OvertakenError,
    StoreError,
    disk_errors,
    is_refused,
)
from holdfast.model.following import FeedStop
from holdfast.model.keeping import Keeping
from holdfast.model.records import to_form
from holdfast.runtime import sealed
from holdfast.runtime.objects import is_remote, shown
from holdfast.runtime.sealed import Seal, seal_of, sealed_name
from holdfast.store import batches, clean, files, stops
from holdfast.store.disk import MARKER, Disk
from holdfast.store.leases import Lease
from holdfast.store.log import LOG, Log, canonical, encode
from holdfast.store.objects import Objects
from holdfast.store.storage import Storage, UndecidedError

T = TypeVar("T")

_log = logging.getLogger("holdfast")

FORMAT = 4
"""The format of a profile, unless it needs a later one."""

CONCEALED = 5
"""The format of a profile that keeps no values: who does not know it would add rows with theirs."""

GROUPED = 6
"""The format of a profile that counts tuples within groups of rows: who does not know it would add
the counts of a batch to the wrong ones."""

FOLLOWING = 7
"""The format of a profile that follows feeds: who does not know it would lose their positions."""

EXPIRED = 8
"""The format of a profile whose first versions expired: who does not know it would miss them."""

_OLDEST_FORMAT, _NEWEST_FORMAT = FORMAT, EXPIRED
_RETRIES = 20

# A path object has made one slash of two. A letter alone is no scheme but a drive.
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=/|$)")


def local_path(path: str | os.PathLike[str]) -> str:
    """A profile directory as a path of a file system; an error when it lies anywhere else.

    >>> local_path("shop"), local_path("file:///data/shop"), local_path("./s3:/shop")
    ('shop', '/data/shop', './s3:/shop')
    """
    given = os.fspath(path)
    scheme = _SCHEME.match(given)
    if scheme is None:
        return given
    rest = given[scheme.end() :]
    if scheme[1].lower() == "file" and rest and not re.match(r"//[^/]", rest):
        return "/" + rest.lstrip("/")
    raise StoreError(
        f"{given}: a profile is kept on a file system or an object store (s3://, gs://, abfss://), "
        f"not under {scheme[0]!r}. Give the path of a folder that the driver and all executors "
        "see, such as a mounted one; rows can be read from anywhere that Spark reads."
    )


class Store:
    """A profile directory: read its versions, write files, publish a new version.

    >>> import tempfile
    >>> store = Store.create(tempfile.mkdtemp())
    >>> with store.writing() as lease:
    ...     path = store.write(lease.new_path("sets", "arrow"), b"")
    ...     store.publish(Commit(files=(path,), keep=(path,)), lease)
    1
    >>> store.read().version
    1
    """

    def __init__(self, path: str, storage: Storage | None = None) -> None:
        self.storage = storage or storage_at(path)
        self.path = self.storage.path
        self._commits = Log(self.storage)

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Store:
        """Make a profile directory, or finish one whose first run was cut short."""
        storage = storage_at(path)
        root = storage.path
        with disk_errors(root):
            names = storage.names()
        if MARKER in names:
            _check_format(storage)
            if cls(root, storage).head():
                raise StoreError(
                    f"{root}: there is a profile already. Add rows with: holdfast apply {root}; "
                    "to start over, choose a new directory or remove this one."
                )
        elif names:
            raise StoreError(
                f"{root}: this directory is not empty and not a profile (it holds "
                f"{sorted(names)[0]!r}). Choose a new or empty directory."
            )
        with disk_errors(root):
            # The marker is first: a folder called "data" alone could be anyone's.
            if MARKER not in names:
                _write_marker(storage)
            storage.make_folders(first=True)
        return cls(root, storage)

    @classmethod
    @contextmanager
    def creating(cls, path: str | os.PathLike[str]) -> Iterator[Store]:
        """Make a profile directory for a first version; without one nothing of it is left."""
        storage = storage_at(path)
        missing = storage.missing()
        begun = False
        try:
            store = cls.create(path)
            begun = True
            yield store
        except BaseException:
            storage.remove_unfinished(missing, begun)
            raise

    def require(self, number: int) -> None:
        """Let nobody read this profile who does not know a format; before the first version that
        needs it."""
        if _check_format(self.storage) < number:
            with disk_errors(self.path):
                _write_marker(self.storage, number)

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Open a profile that has at least one version."""
        storage = storage_at(path)
        root = storage.path
        storage.expect()
        _check_format(storage)
        store = cls(root, storage)
        if not store.head():
            raise StoreError(
                f"{root}: this profile has no version yet, its first run did not finish. "
                f"Run it again: holdfast profile SOURCE... --into {root}"
            )
        return store

    def head(self) -> int:
        """The last version, 0 when nothing is committed."""
        return self._commits.head()

    def first(self) -> int:
        """The oldest version that is there, 1 unless some expired."""
        return self._commits.first()

    def versions(self) -> list[int]:
        """All versions, oldest first."""
        return self._commits.versions()

    def read(self, version: int | None = None) -> Commit:
        """What a version's commit says, by default the last one's."""
        return self._commits.read(self.head() if version is None else version, Commit)

    def header(self, version: int) -> Header:
        """Which files a version has, and which of them stay."""
        return self._commits.read(version, Header)

    def files(self, version: int | None = None) -> set[str]:
        """All data files of a version, by default the last one's."""
        return clean.files_of(self.read(version))

    def summaries(self, last: int | None = None) -> list[Summary]:
        """The numbers of all versions, oldest first; only the ``last`` so many if that is given."""
        head = self.head()
        first = self.first() if last is None else max(self.first(), head - last + 1)
        return list(self._commits.each(range(first, head + 1), Summary))

    def overtaken(self, lease: Lease) -> list[Header]:
        """The versions since the one that a writer builds on; it builds on the last one from now
        on."""
        before = lease.version
        lease.confirm()
        lease.follow(self.head)
        return [self.header(version) for version in range(before + 1, lease.version + 1)]

    def find_batch(self, table: str, batch_id: str, digest: str | None = None) -> Summary | None:
        """The version that applied a batch under an id, or None.

        With a ``digest``: a BatchError when the id was used for other content.
        """
        summary = batches.find(self._commits, self.storage, table, batch_id)
        if summary and digest is not None and summary.batch and summary.batch.digest != digest:
            raise BatchError(
                f"table {table}: batch id {batch_id!r} was already used for other rows, in "
                f"version {summary.version}; nothing was applied. Give this batch another id."
            )
        return summary

    @contextmanager
    def writing(self) -> Iterator[Lease]:
        """Be a writer on top of the last version; what is not published is removed at the end."""
        lease = Lease(self.storage, "write")
        with disk_errors(self.path):
            self.storage.make_folders(first=False)
        try:
            lease.take(self.head)
            if not lease.version and not self.storage.exists(MARKER):
                # Another first run failed, and took it away before it could see our lease.
                with disk_errors(self.path):
                    _write_marker(self.storage)
            yield lease
        finally:
            # While the run's files are tidied up, because on an object store it takes requests.
            pointed = self._commits.point(lease.committed) if lease.committed is not None else None
            try:
                self._tidy(lease)
            finally:
                (lease.leave if lease.undecided else lease.release)()
                if pointed is not None:
                    pointed()

    def _tidy(self, lease: Lease) -> None:
        """Remove what a run has written and not committed."""
        try:
            if lease.committed is not None:
                clean.remove_unnamed(self.storage, self._commits, lease.run, lease.committed)
            elif not lease.undecided:
                clean.remove_uncommitted(self.storage, self._commits, lease.run, lease.version)
        except ConnectionError as error:
            _log.warning("%s: what was not committed stays for a clean-up: %s", self.path, error)

    @contextmanager
    def trying(self) -> Iterator[Lease]:
        """Work on top of the last version without publishing: like a writer where the directory
        can be written, else as a reader whose files go to a temporary folder."""
        with ExitStack() as stack:
            try:
                lease = stack.enter_context(self.writing())
            except StoreError as error:
                if not is_refused(error):
                    raise
                folder = tempfile.TemporaryDirectory(prefix="holdfast-")
                lease = stack.enter_context(self.reading())
                lease.folder = stack.enter_context(folder)
            yield lease

    @contextmanager
    def reading(self, version: int | None = None) -> Iterator[Lease]:
        """Be a reader of a version, the last one by default: its files stay until the end."""
        if version is not None:
            self._commits.read(version, Header)
        lease = Lease(self.storage, "read")
        try:
            lease.take(self.head, version)
            yield lease
        finally:
            lease.release()

    @contextmanager
    def asking(self, version: int | None = None) -> Iterator[Lease]:
        """Be a reader of a version, the last one by default, whose tasks write files, which they
        remove unless they fail: in a temporary folder where the directory cannot be written."""
        with self.reading(version) as lease, ExitStack() as stack:
            if not lease.held:
                folder = tempfile.TemporaryDirectory(prefix="holdfast-")
                lease.folder = stack.enter_context(folder)
            try:
                yield lease
            except BaseException:
                if lease.held:
                    self._tidy(lease)
                raise

    def ask(self, question: Callable[[int], T], version: int | None = None) -> T:
        """Ask a version, the last one by default, something that its files answer; they are
        held meanwhile."""

        def asked() -> T:
            with self.reading(version) as lease:
                return question(lease.version)

        return self.retried(asked)

    def retried(self, read: Callable[[], T]) -> T:
        """Do something that reads a version's files; again when they gave way to a newer one's.

        That happens where no lease can be written, so that nothing holds the files until they
        are opened.
        """
        for _ in range(_RETRIES):
            head = self.head()
            try:
                return read()
            except MissingFileError:
                if self.head() == head:
                    raise
        raise ConflictError(
            f"{self.path}: new versions are committed faster than this profile can be read "
            "without a lease, which cannot be written here; run again."
        )

    def file(self, relative: str) -> str:
        """The path of a data file; nothing outside the data folder is ever reached."""
        parts = relative.split("/")
        if len(parts) < 2 or parts[0] != "data" or {"", ".", ".."}.intersection(parts):
            raise StoreError(f"{self.path}: {relative!r} is not the name of a data file.")
        return os.path.join(self.path, *parts)

    def write(self, relative: str, data: bytes | bytearray | memoryview) -> str:
        """Write a new data file; its path, which has a seal more than the one that was asked for.

        Publishing a version that names it flushes it.
        """
        self.file(relative)
        content = memoryview(data).cast("B")
        relative = sealed_name(relative, Seal(len(content), zlib.crc32(content)))
        with disk_errors(self.file(relative)):
            self.storage.write(relative, content)
        return relative

    def content(self, relative: str) -> bytes:
        """What a data file holds; an error that names it when it is damaged or not there."""
        return sealed.read(Path(self.file(relative)))

    def damaged(self, names: Iterable[str]) -> list[StoreError]:
        """What is wrong with some data files."""
        errors = (sealed.damage(Path(self.file(relative))) for relative in names)
        return [error for error in errors if error]

    def publish(self, commit: Commit, lease: Lease) -> int:
        """Commit a version: all of it, flushed and for good, or an error and nothing.

        Its number, time and run are what they are, whatever the commit says of them; and its feeds
        are those of the version before, apart from those that it names.
        """
        if lease.mode != "write" or lease.committed is not None:
            raise ValueError("a version is published once, by the lease of a writer")
        version = lease.version + 1
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        commit = replace(
            commit, version=version, parent=lease.version, run=lease.run, created=now, batches=None
        )
        _check_names(commit)
        lease.confirm()
        if self.head() >= version:
            raise self._conflict(version)
        before = self.header(lease.version) if lease.version else Header()
        commit = replace(commit, feeds=_feeds(before, commit.feeds, version, now))
        if commit.feeds:
            self.require(FOLLOWING)
        commit, new = self._with_manifests(commit, before, lease)
        if version % batches.SPAN == 0:
            commit = self._with_block(commit, lease)

        names = {*commit.files, *commit.keep, *new}
        own = [name for name in names if files.run_of(name) == lease.run]
        content = encode(commit)
        with disk_errors(self.path):
            self.storage.settle(names, own)
            try:
                self.storage.create(self._commits.name(version), content, lease.run)
            except FileExistsError as error:
                raise self._conflict(version) from error
            except UndecidedError as error:
                lease.undecided = True
                raise StoreError(
                    f"{self.path}: the object store did not answer whether version {version} is "
                    f"committed ({error.strerror}). Look with: holdfast history {self.path}; a "
                    "batch with an id can be applied again: it is never applied twice."
                ) from error
        lease.committed = version
        return version

    def committed_by(self, version: int, run: str) -> bool:
        """Whether there is such a version, and a run has committed it."""
        return self.first() <= version <= self.head() and self.header(version).run == run

    def stops(self) -> dict[str, FeedStop]:
        """Why feeds stopped that did not go on yet, by their names."""
        with disk_errors(self.path):
            return stops.read(self.storage)

    def stopped(self, stop: FeedStop) -> None:
        """Keep why a feed stopped."""
        with disk_errors(self.path):
            stops.keep(self.storage, stop)

    def goes_on(self, feed: str) -> None:
        """Forget why a feed stopped."""
        with disk_errors(self.path):
            stops.forget(self.storage, feed)

    def expire(self, keeping: Keeping) -> int:
        """Let the versions that do not stay be there no more, and remove what only they need; the
        first version that is left. Versions that somebody reads stay, too."""
        kept = [self.head()]
        if keeping.versions is not None:
            kept.append(self.head() - keeping.versions + 1)
        if keeping.days is not None:
            since = datetime.now(UTC) - timedelta(days=keeping.days)
            kept.append(self._last_before(since.isoformat(timespec="milliseconds")))
        first = min(kept)
        if first > self.first():
            self.require(EXPIRED)
        with disk_errors(self.path):
            return clean.expire(self.storage, self._commits, first)

    def _last_before(self, moment: str) -> int:
        """The version that was the last one at a moment."""
        low, high = self.first(), self.head()
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (
                (middle, high) if self.header(middle).created <= moment else (low, middle - 1)
            )
        return low

    def clean(self) -> list[str]:
        """Remove what no version and nobody at work needs; what was removed."""
        return clean.clean(self.storage, self._commits)

    def sizes(self) -> dict[str, int]:
        """Bytes of the last version by kind of file, and of the log."""
        sizes: dict[str, int] = {}
        for relative in self.files():
            named = files.data_name(relative.split("/")[1])
            kind = named.kind if named else "other"
            sizes[kind] = sizes.get(kind, 0) + _seal(relative).size
        sizes["log"] = self.storage.size(LOG)
        return sizes

    def _with_manifests(
        self, commit: Commit, before: Header, lease: Lease
    ) -> tuple[Commit, list[str]]:
        """With manifests of the tables that changed; and what these name, together with them."""
        changed = commit.tables.changed
        manifests = {
            name: self.write(lease.new_path("table", "json"), canonical(to_form(record)))
            for name, record in changed.items()
        }
        new = [file for record in changed.values() for file in record.data_files]
        had = [
            file
            for name in changed
            if name in before.tables
            for file in before.tables[name].data_files
        ]
        dropped = {*before.files, *had}.difference(commit.files, commit.keep, new)
        commit = replace(
            commit,
            tables=Tables({**commit.tables.manifests, **manifests}),
            dropped=tuple(sorted(name for name in dropped if not files.is_kept(name))),
        )
        return commit, [*new, *manifests.values()]

    def _with_block(self, commit: Commit, lease: Lease) -> Commit:
        first, content = batches.block(self._commits, self.storage, commit)
        relative = self.write(lease.new_path("batches", "jsonl"), content)
        return replace(
            commit,
            batches=BlockRecord(relative, first),
            files=(*commit.files, relative),
            keep=(*commit.keep, relative),
        )

    def _conflict(self, version: int) -> OvertakenError:
        return OvertakenError(
            f"{self.path}: another writer committed version {version} first; nothing of yours "
            "was applied. Run again."
        )


def _seal(relative: str) -> Seal:
    """The size and checksum in the name of a data file, which all that are committed have."""
    seal = seal_of(relative)
    if seal is None:
        raise ValueError(f"{relative!r} does not end with a size and a checksum")
    return seal


def _feeds(
    before: Header, given: Mapping[str, FeedRecord], version: int, now: str
) -> dict[str, FeedRecord]:
    """The feeds of the version before, with those that this one moves on."""
    moved = {
        name: replace(feed, version=version, last=feed.last and replace(feed.last, time=now))
        for name, feed in given.items()
        if feed != before.feeds.get(name)
    }
    return {**before.feeds, **moved}


def _check_names(commit: Header) -> None:
    for relative in (*commit.files, *commit.keep):
        _seal(relative)
    for relative in commit.keep:
        if not files.is_kept(relative):
            raise ValueError(f"{relative!r} cannot be kept for ever: kinds are {files.KEPT_KINDS}")


def storage_at(path: str | os.PathLike[str]) -> Storage:
    """Where the files of a profile are."""
    if is_remote(os.fspath(path)):
        return Objects(shown(os.fspath(path)))
    return Disk(os.path.abspath(local_path(path)))


def _check_format(storage: Storage) -> int:
    """The format of a profile, which is one that can be read."""
    root = storage.path
    marker = f"{root}/{MARKER}"
    try:
        number = json.loads(storage.read(MARKER))["format"]
        if not isinstance(number, int):
            raise ValueError("the format is not a number")
    except FileNotFoundError as error:
        raise StoreError(
            f"{root}: this directory is not a profile (it has no {MARKER}). "
            "Make one with: holdfast profile SOURCE... --into NEW_DIRECTORY"
        ) from error
    except OSError as error:
        raise StoreError(f"{marker}: cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{marker}: this file is damaged. Restore it from a copy, or rebuild the profile: "
            "holdfast profile SOURCE... --into NEW_DIRECTORY"
        ) from error
    if number > _NEWEST_FORMAT:
        raise StoreError(
            f"{marker}: written by a newer Holdfast (format {number}, this one reads "
            f"{_NEWEST_FORMAT}): upgrade holdfast."
        )
    if number < _OLDEST_FORMAT:
        raise StoreError(
            f"{marker}: written by an older Holdfast (format {number}, this one reads "
            f"{_OLDEST_FORMAT}): rebuild it: holdfast profile SOURCE... --into NEW_DIRECTORY"
        )
    return number


def _write_marker(storage: Storage, number: int = FORMAT) -> None:
    # Imported here because it takes longer than the whole store, and only this needs it.
    import importlib.metadata

    try:
        version = importlib.metadata.version("holdfast")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    content = {
        "format": number,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "holdfast": version,
    }
    storage.replace(MARKER, (json.dumps(content, indent=1) + "\n").encode("ascii"))
