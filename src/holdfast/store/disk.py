"""A profile on a file system that the driver and all executors see under the same path.

A commit is a hard link that fails if its name is taken, or a rename under a lock. A lease is a
small file whose modification time is renewed. Files are flushed before a commit names them.
"""

from __future__ import annotations

import logging
import os
import secrets
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from holdfast.model.errors import StoreError
from holdfast.runtime import sealed
from holdfast.store import files
from holdfast.store.storage import Claim

FOLDERS = ("log", "data", "leases")
MARKER = "holdfast.json"
"""The file that says that this is a profile."""

_SYNC_THREADS = 8
_OLD_S = 600.0

_log = logging.getLogger("holdfast")


@dataclass(frozen=True)
class Disk:
    """The files of a profile in a folder, by its absolute path."""

    path: str

    @property
    def at_once(self) -> int:
        """A file system is not waited for."""
        return 1

    def read(self, name: str) -> bytes:
        """What a file holds."""
        with open(self._at(name), "rb") as file:
            return file.read()

    def prefetch(self, names: Sequence[str]) -> None:
        """Reading a file is as fast."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""
        return os.path.exists(self._at(name))

    def entries(self, folder: str) -> list[str]:
        """The names in a folder. Copies made with git or zip lose empty folders: none then."""
        try:
            return os.listdir(self._at(folder))
        except FileNotFoundError:
            return []

    def size(self, folder: str) -> int:
        """The bytes of the files in a folder."""
        with os.scandir(self._at(folder)) as entries:
            return sum(entry.stat().st_size for entry in entries)

    def write(self, name: str, data: memoryview) -> None:
        """Write a new file in place."""
        files.write_new(self._at(name), data)

    def settle(self, names: Iterable[str], own: Iterable[str]) -> None:
        """See that all files are there, and whole, and flush this run's and their names."""
        sealed.flushed()
        for name in names:
            path, seal = Path(self._at(name)), sealed.seal_of(name)
            _, size, _ = sealed.stamp(path)
            if seal is not None and size != seal.size:
                raise sealed.damaged(path, f"it has {size} bytes, not {seal.size}")
        paths = [self._at(name) for name in own]
        # At the same time, because the file system then flushes them together.
        with ThreadPoolExecutor(_SYNC_THREADS) as pool:
            list(pool.map(files.sync_file, paths))
        for folder in {folder for path in paths for folder in self._folders_above(path)}:
            files.sync_directory(folder)

    def create(self, name: str, data: bytes, run: str) -> None:
        """Write under a temporary name, flush, and link; that decides who was first."""
        target = self._at(name)
        folder = os.path.dirname(target)
        temporary = os.path.join(folder, files.temporary_name(run))
        files.write_synced(temporary, data)
        files.publish_exclusively(temporary, target)
        # It is visible, so from here on nothing may look like a failure.
        try:
            os.unlink(temporary)
        except OSError as error:
            _log.debug("%s stays for the next clean-up: %s", temporary, error)
        try:
            files.sync_directory(folder)
        except OSError as error:
            _log.warning("%s is written, but a power failure now could undo it: %s", target, error)

    def replace(self, name: str, data: bytes) -> None:
        """Write under a temporary name, flush, and rename."""
        target = self._at(name)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        temporary = os.path.join(
            os.path.dirname(target), files.temporary_name(secrets.token_hex(6))
        )
        files.write_synced(temporary, data)
        os.replace(temporary, target)

    def leave(self, name: str, instead_of: Sequence[str]) -> Callable[[], None]:
        """Done at once."""
        try:
            os.close(os.open(self._at(name), os.O_WRONLY | os.O_CREAT, 0o666))
            for other in instead_of:
                with suppress(FileNotFoundError):
                    os.unlink(self._at(other))
        except OSError as error:
            _log.debug("%s is not written: %s", self._at(name), error)
        return _nothing

    def delete(self, name: str) -> None:
        """Remove a file or a folder."""
        path = self._at(name)
        if os.path.isdir(path):
            shutil.rmtree(path)
        else:
            os.unlink(path)

    def local(self, name: str) -> Path:
        """The file itself."""
        return Path(self._at(name))

    def leftovers(self) -> list[tuple[str, str]]:
        """Temporary files in the folders where we write any.

        Those of runs that have no lease only if they are old: in the root, where the directory is
        made, and in that of feeds.
        """
        leftovers = []
        for folder in ("", "feeds", "log", "leases"):
            for name in self.entries(folder):
                if not name.startswith("."):
                    continue
                run = files.temporary_run(name)
                path = os.path.join(folder, name)
                if run is not None and (folder in ("log", "leases") or self._is_old(path)):
                    leftovers.append((path, run))
        return leftovers

    def hold(self, name: str, content: bytes) -> None:
        """Write in place: a lease that is found half written counts by its age, so as alive."""
        path = self._at(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "wb", buffering=0) as file:
            file.write(content)

    def renew(self, name: str) -> None:
        """Set the modification time."""
        os.utime(self._at(name))

    def claims(self, folder: str) -> list[Claim]:
        """All leases in a folder, and how old they are by the clock of the file system."""
        now_ns = self._time_ns(folder)
        claims = []
        for entry in self.entries(folder):
            if files.lease_run(entry) is None:
                continue
            name = f"{folder}/{entry}"
            try:
                beat_ns = os.stat(self._at(name)).st_mtime_ns
                content = self.read(name)
            except FileNotFoundError:
                continue
            claims.append(Claim(name, content, beat_ns, (now_ns - beat_ns) / 1e9))
        return claims

    def take_away(self, claim: Claim, gone: bool) -> str | None:
        """Rename it: either its holder then finds none, or we find that it was renewed."""
        lease = self._at(claim.name)
        name = os.path.splitext(claim.name)[0] + ".dead"
        grave = self._at(name)
        try:
            os.rename(lease, grave)
        except FileNotFoundError:
            return None
        if gone or os.stat(grave).st_mtime_ns == claim.beat:
            return name
        os.rename(grave, lease)
        return None

    def names(self) -> list[str]:
        """What lies in the folder, which is made if it is not there."""
        if os.path.exists(self.path) and not os.path.isdir(self.path):
            raise StoreError(f"{self.path}: this is a file. Choose a new or empty directory.")
        os.makedirs(self.path, exist_ok=True)
        return [name for name in os.listdir(self.path) if files.temporary_run(name) is None]

    def expect(self) -> None:
        """An error where there is no folder."""
        if not os.path.isdir(self.path):
            what = "this is a file, not" if os.path.exists(self.path) else "there is no"
            raise StoreError(
                f"{self.path}: {what} profile directory. "
                f"Make one with: holdfast profile SOURCE... --into {self.path}"
            )

    def make_folders(self, first: bool) -> None:
        """Make the folders that are not there."""
        missing = [name for name in FOLDERS if not os.path.isdir(self._at(name))]
        for name in missing:
            os.makedirs(self._at(name), exist_ok=True)
        if missing:
            files.sync_directory(self.path)
        if first:
            files.sync_directory(os.path.dirname(self.path))

    def missing(self) -> list[str]:
        """The folders that are not there up to and with this one, the innermost first."""
        missing, folder = [], self.path
        while not os.path.lexists(folder):
            missing.append(folder)
            folder = os.path.dirname(folder)
        return missing

    def remove_unfinished(self, missing: Sequence[str], begun: bool) -> None:
        """Take away what was made, and the folders that were missing before."""
        if begun:
            self._remove_begun()
        for folder in missing:
            try:
                os.rmdir(folder)
            except OSError as error:
                _log.debug("%s stays: %s", folder, error)

    def _remove_begun(self) -> None:
        if self.entries("log"):
            return
        marker = self._at(MARKER)
        aside = self._at(files.temporary_name(secrets.token_hex(6)))
        try:
            # The marker is first: who takes a lease after that sees that it is gone, and writes it.
            os.rename(marker, aside)
        except OSError as error:
            _log.debug("%s stays: %s", marker, error)
            return
        try:
            for name in ("leases", "log", "data"):
                os.rmdir(self._at(name))
        except OSError as error:
            _log.debug("%s stays: %s", self.path, error)
            os.replace(aside, marker)
            return
        os.unlink(aside)

    def _at(self, name: str) -> str:
        return os.path.join(self.path, name) if name else self.path

    def _folders_above(self, path: str) -> Iterator[str]:
        """The folders from a file up to, and without, the root."""
        while (path := os.path.dirname(path)) != self.path:
            yield path

    def _is_old(self, name: str) -> bool:
        try:
            return time.time() - os.stat(self._at(name)).st_mtime > _OLD_S
        except FileNotFoundError:
            return False

    def _time_ns(self, folder: str) -> int:
        """Now, by the clock that stamps the files there, which may be another machine's."""
        probe = os.path.join(self._at(folder), files.temporary_name(secrets.token_hex(6)))
        try:
            with open(probe, "wb"):
                now = os.stat(probe).st_mtime_ns
            os.unlink(probe)
        except OSError:
            return time.time_ns()
        return now


def _nothing() -> None:
    pass
