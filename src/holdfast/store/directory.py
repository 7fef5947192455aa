"""Store: a profile directory as the rest of Holdfast sees it.

    <profile>/holdfast.json          says that this is a profile, and of which format
    <profile>/log/000000000001.json  one commit per version
    <profile>/data/                  files that never change, named by the commits
    <profile>/leases/                who is at work

``docs/directory-format.md`` describes it for people.
"""

from __future__ import annotations

import json
import logging
import os
import re
import secrets
import tempfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeVar

from holdfast.model.commits import BlockRecord, Commit, Header, Summary
from holdfast.model.errors import BatchError, ConflictError, MissingFileError, StoreError
from holdfast.store import batches, clean, files
from holdfast.store.leases import Lease
from holdfast.store.log import Log, encode
from holdfast.tasks import sealed
from holdfast.tasks.sealed import Seal, seal_of, sealed_name

T = TypeVar("T")

FORMAT = 2
_OLDEST_FORMAT = 2
_MARKER = "holdfast.json"
_FOLDERS = ("log", "data", "leases")
_SYNC_THREADS = 8
_RETRIES = 20

_log = logging.getLogger("holdfast")

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
        f"{given}: a profile is kept on a file system, not under {scheme[0]!r}. Give the path of "
        "a folder that the driver and all executors see, such as a mounted one; rows can be read "
        "from anywhere that Spark reads."
    )


class Store:
    """A profile directory: read its versions, write files, publish a new version.

    >>> import tempfile
    >>> store = Store.create(tempfile.mkdtemp())
    >>> with store.writing() as lease:
    ...     path = store.write(lease.new_path("keys", "json"), b"[]")
    ...     store.publish(Commit(files=(path,), keep=(path,)), lease)
    1
    >>> store.read().version
    1
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._commits = Log(os.path.join(path, "log"))

    @classmethod
    def create(cls, path: str | os.PathLike[str]) -> Store:
        """Make a profile directory, or finish one whose first run was cut short."""
        root = os.path.abspath(local_path(path))
        if os.path.exists(root) and not os.path.isdir(root):
            raise StoreError(f"{root}: this is a file. Choose a new or empty directory.")
        with files.disk_errors(root):
            os.makedirs(root, exist_ok=True)
            names = [name for name in os.listdir(root) if files.temporary_run(name) is None]
        if _MARKER in names:
            _check_format(root)
            if os.path.isdir(os.path.join(root, "log")) and cls(root).head():
                raise StoreError(
                    f"{root}: there is a profile already. Add rows with: holdfast apply {root}; "
                    "to start over, choose a new directory or remove this one."
                )
        elif names:
            raise StoreError(
                f"{root}: this directory is not empty and not a profile (it holds "
                f"{sorted(names)[0]!r}). Choose a new or empty directory."
            )
        with files.disk_errors(root):
            # The marker is first: a folder called "data" alone could be anyone's.
            if _MARKER not in names:
                _write_marker(root)
            _make_folders(root)
            files.sync_directory(os.path.dirname(root))
        return cls(root)

    @classmethod
    @contextmanager
    def creating(cls, path: str | os.PathLike[str]) -> Iterator[Store]:
        """Make a profile directory for a first version; without one nothing of it is left."""
        root = os.path.abspath(local_path(path))
        missing = _missing_folders(root)
        try:
            store = cls.create(root)
        except BaseException:
            _remove_empty(missing)
            raise
        try:
            yield store
        except BaseException:
            _remove_unfinished(root)
            _remove_empty(missing)
            raise

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Store:
        """Open a profile that has at least one version."""
        root = os.path.abspath(local_path(path))
        if not os.path.isdir(root):
            what = "this is a file, not" if os.path.exists(root) else "there is no"
            raise StoreError(
                f"{root}: {what} profile directory. "
                f"Make one with: holdfast profile SOURCE... --into {root}"
            )
        _check_format(root)
        store = cls(root)
        if not os.path.isdir(store._commits.directory) or not store.head():
            raise StoreError(
                f"{root}: this profile has no version yet, its first run did not finish. "
                f"Run it again: holdfast profile SOURCE... --into {root}"
            )
        return store

    def head(self) -> int:
        """The last version, 0 when nothing is committed."""
        return self._commits.head()

    def versions(self) -> list[int]:
        """All versions, oldest first."""
        return self._commits.versions()

    def read(self, version: int | None = None) -> Commit:
        """What a version's commit says, by default the last one's."""
        return self._commits.read(self.head() if version is None else version, Commit)

    def header(self, version: int) -> Header:
        """Which files a version has, and which of them stay."""
        return self._commits.read(version, Header)

    def summaries(self, last: int | None = None) -> list[Summary]:
        """The numbers of all versions, oldest first; only the ``last`` so many if that is given."""
        head = self.head()
        first = 1 if last is None else max(1, head - last + 1)
        return [self._commits.read(version, Summary) for version in range(first, head + 1)]

    def find_batch(self, table: str, batch_id: str, digest: str | None = None) -> Summary | None:
        """The version that applied a batch under an id, or None.

        With a ``digest``: a BatchError when the id was used for other content.
        """
        summary = batches.find(self._commits, self.path, table, batch_id)
        if summary and digest is not None and summary.batch and summary.batch.digest != digest:
            raise BatchError(
                f"table {table}: batch id {batch_id!r} was already used for other rows, in "
                f"version {summary.version}; nothing was applied. Give this batch another id."
            )
        return summary

    @contextmanager
    def writing(self) -> Iterator[Lease]:
        """Be a writer on top of the last version; what is not published is removed at the end."""
        lease = Lease(os.path.join(self.path, "leases"), "write")
        with files.disk_errors(self.path):
            _make_folders(self.path)
        try:
            lease.take(self.head)
            if not lease.version and not os.path.exists(os.path.join(self.path, _MARKER)):
                # Another first run failed, and took it away before it could see our lease.
                with files.disk_errors(self.path):
                    _write_marker(self.path)
            yield lease
        finally:
            try:
                if lease.committed is None:
                    clean.remove_uncommitted(self.path, self._commits, lease.run, lease.version)
            finally:
                lease.release()

    @contextmanager
    def trying(self) -> Iterator[Lease]:
        """Work on top of the last version without publishing: like a writer where the directory
        can be written, else as a reader whose files go to a temporary folder."""
        with ExitStack() as stack:
            try:
                lease = stack.enter_context(self.writing())
            except StoreError as error:
                if not files.is_refused(error):
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
        lease = Lease(os.path.join(self.path, "leases"), "read")
        try:
            lease.take(self.head, version)
            yield lease
        finally:
            lease.release()

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
        path = self.file(relative)
        with files.disk_errors(path):
            files.write_new(path, content)
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

        Its number, time and run are what they are, whatever the commit says of them.
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
        if version % batches.SPAN == 0:
            commit = self._with_block(commit, lease)

        target = self._commits.path(version)
        folder = os.path.dirname(target)
        temporary = os.path.join(folder, files.temporary_name(lease.run))
        content = encode(commit)
        with files.disk_errors(self.path):
            self._flush([*commit.files, *commit.keep], lease.run)
            files.write_synced(temporary, content)
            try:
                files.publish_exclusively(temporary, target)
            except FileExistsError as error:
                raise self._conflict(version) from error
        lease.committed = version
        self._finish(temporary, folder, version)
        return version

    def clean(self) -> list[str]:
        """Remove what no version and nobody at work needs; what was removed."""
        return clean.clean(self.path, self._commits)

    def sizes(self) -> dict[str, int]:
        """Bytes of the last version by kind of file, and of the log."""
        sizes: dict[str, int] = {}
        commit = self.read()
        for relative in {*commit.files, *commit.keep}:
            named = files.data_name(relative.split("/")[1])
            kind = named.kind if named else "other"
            sizes[kind] = sizes.get(kind, 0) + _seal(relative).size
        with os.scandir(self._commits.directory) as entries:
            sizes["log"] = sum(entry.stat().st_size for entry in entries)
        return sizes

    def _with_block(self, commit: Commit, lease: Lease) -> Commit:
        first, content = batches.block(self._commits, self.path, commit)
        relative = self.write(lease.new_path("batches", "jsonl"), content)
        return replace(
            commit,
            batches=BlockRecord(relative, first),
            files=(*commit.files, relative),
            keep=(*commit.keep, relative),
        )

    def _flush(self, names: Sequence[str], run: str) -> None:
        """See that all files are there, and whole, and flush this run's and their names."""
        sealed.flushed()
        mine: set[str] = set()
        folders: set[str] = set()
        for relative in set(names):
            path = self.file(relative)
            (_, size, _), expected = sealed.stamp(Path(path)), _seal(relative).size
            if size != expected:
                raise sealed.damaged(Path(path), f"it has {size} bytes, not {expected}")
            named = files.data_name(relative.split("/")[1])
            if named is not None and named.run == run:
                mine.add(path)
                folders.update(_folders_between(self.path, path))
        # At the same time, because the file system then flushes them together.
        with ThreadPoolExecutor(_SYNC_THREADS) as pool:
            list(pool.map(files.sync_file, mine))
        for folder in folders:
            files.sync_directory(folder)

    def _finish(self, temporary: str, folder: str, version: int) -> None:
        """After the commit: it is visible, so from here on nothing may look like a failure."""
        try:
            os.unlink(temporary)
        except OSError as error:
            _log.debug("%s stays for the next clean-up: %s", temporary, error)
        try:
            files.sync_directory(folder)
        except OSError as error:
            _log.warning(
                "version %d is committed, but a power failure now could undo it: %s",
                version,
                error,
            )

    def _conflict(self, version: int) -> ConflictError:
        return ConflictError(
            f"{self.path}: another writer committed version {version} first; nothing of yours "
            "was applied. Run again."
        )


def _folders_between(root: str, path: str) -> Iterator[str]:
    """The folders from a file up to, and without, the root."""
    while (path := os.path.dirname(path)) != root:
        yield path


def _seal(relative: str) -> Seal:
    """The size and checksum in the name of a data file, which all that are committed have."""
    seal = seal_of(relative)
    if seal is None:
        raise ValueError(f"{relative!r} does not end with a size and a checksum")
    return seal


def _check_names(commit: Header) -> None:
    for relative in (*commit.files, *commit.keep):
        _seal(relative)
    for relative in commit.keep:
        if not files.is_kept(relative):
            raise ValueError(f"{relative!r} cannot be kept for ever: kinds are {files.KEPT_KINDS}")


def _check_format(root: str) -> None:
    marker = os.path.join(root, _MARKER)
    try:
        with open(marker, "rb") as file:
            number = json.load(file)["format"]
        if not isinstance(number, int):
            raise ValueError("the format is not a number")
    except FileNotFoundError as error:
        raise StoreError(
            f"{root}: this directory is not a profile (it has no {_MARKER}). "
            "Make one with: holdfast profile SOURCE... --into NEW_DIRECTORY"
        ) from error
    except OSError as error:
        raise StoreError(f"{marker}: cannot be read ({error.strerror}).") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{marker}: this file is damaged. Restore it from a copy, or rebuild the profile: "
            "holdfast profile SOURCE... --into NEW_DIRECTORY"
        ) from error
    if number > FORMAT:
        raise StoreError(
            f"{marker}: written by a newer Holdfast (format {number}, this one reads {FORMAT}): "
            "upgrade holdfast."
        )
    if number < _OLDEST_FORMAT:
        raise StoreError(
            f"{marker}: written by an older Holdfast (format {number}, this one reads {FORMAT}): "
            "rebuild it: holdfast profile SOURCE... --into NEW_DIRECTORY"
        )


def _make_folders(root: str) -> None:
    """Make the folders that are not there; a copy of a profile may have lost an empty one."""
    missing = [name for name in _FOLDERS if not os.path.isdir(os.path.join(root, name))]
    for name in missing:
        os.makedirs(os.path.join(root, name), exist_ok=True)
    if missing:
        files.sync_directory(root)


def _missing_folders(root: str) -> list[str]:
    """The folders that are not there up to and with the root, the innermost first."""
    missing = []
    while not os.path.lexists(root):
        missing.append(root)
        root = os.path.dirname(root)
    return missing


def _remove_empty(folders: Sequence[str]) -> None:
    for folder in folders:
        try:
            os.rmdir(folder)
        except OSError as error:
            _log.debug("%s stays: %s", folder, error)


def _remove_unfinished(root: str) -> None:
    """Take away what ``create`` wrote, unless there is a version or somebody at work."""
    if files.entries(os.path.join(root, "log")):
        return
    marker = os.path.join(root, _MARKER)
    aside = os.path.join(root, files.temporary_name(secrets.token_hex(6)))
    try:
        # The marker is first: who takes a lease after that sees that it is gone, and writes it.
        os.rename(marker, aside)
    except OSError as error:
        _log.debug("%s stays: %s", marker, error)
        return
    try:
        for name in ("leases", "log", "data"):
            os.rmdir(os.path.join(root, name))
    except OSError as error:
        _log.debug("%s stays: %s", root, error)
        os.replace(aside, marker)
        return
    os.unlink(aside)


def _write_marker(root: str) -> None:
    # Imported here because it takes longer than the whole store, and only this needs it.
    import importlib.metadata

    try:
        version = importlib.metadata.version("holdfast")
    except importlib.metadata.PackageNotFoundError:
        version = "unknown"
    content = {
        "format": FORMAT,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "holdfast": version,
    }
    temporary = os.path.join(root, files.temporary_name(secrets.token_hex(6)))
    files.write_synced(temporary, (json.dumps(content, indent=1) + "\n").encode("ascii"))
    os.replace(temporary, os.path.join(root, _MARKER))
