"""A profile on an object store: S3 and what speaks like it, Google Cloud Storage, Azure.

A commit is a put that fails if there is such an object. There are no locks and no links: a lease is
an object that its holder replaces every few seconds, on condition that it is still the one that it
wrote, and that a clean-up replaces by a note of its end on the same condition. How old it is, the
clock of the store tells, never that of a machine. Data files are uploaded by who wrote them; what
the store has acknowledged is durable, whole, and seen by all.

An answer can be lost: a request that is sent again then meets its own effect. So what looks like
somebody else's object is read, and is ours if it has our content.
"""

from __future__ import annotations

import json
import logging
import secrets
import threading
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from holdfast.model.errors import StoreError
from holdfast.model.records import JsonObject
from holdfast.runtime import objects, sealed
from holdfast.store.disk import MARKER
from holdfast.store.files import lease_run
from holdfast.store.storage import Claim, UndecidedError

_CLOCK = ".clock"
_COMMITS = "log/"
_KNOWN_BYTES = 64 << 20
_THREADS = 16

_log = logging.getLogger("holdfast")


@dataclass
class _Lease:
    """A lease of this process: what it says, its version on the store, and the marks of renewals
    that it may have there, as their answers were lost."""

    content: JsonObject
    version: objects.ObjectVersion | None = None
    tried: set[str] = field(default_factory=set)


class Objects:
    """The files of a profile below an address."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.at_once = _THREADS
        self._leases: dict[str, _Lease] = {}
        self._known: dict[str, bytes] = {}
        self._lock = threading.Lock()
        self._knowing = threading.Lock()

    def read(self, name: str) -> bytes:
        """What an object holds. Commits never change, so they are asked for once."""
        known = self._known.get(name)
        return self._remembered(name, objects.get(self._at(name)).data) if known is None else known

    def _remembered(self, name: str, data: bytes) -> bytes:
        if name.startswith(_COMMITS):
            with self._knowing:
                if sum(map(len, self._known.values())) + len(data) > _KNOWN_BYTES:
                    self._known.clear()
                self._known[name] = data
        return data

    def prefetch(self, names: Sequence[str]) -> None:
        """Ask for some commits at the same time. What cannot be had is an error when it is read."""

        def fetch(name: str) -> None:
            with suppress(OSError):
                self.read(name)

        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(fetch, names))

    def exists(self, name: str) -> bool:
        """Whether there is such an object."""
        return objects.exists(self._at(name))

    def entries(self, folder: str) -> list[str]:
        """The names of the objects in a folder; folders in it are nobody's."""
        return [entry.key for entry in objects.listing(self._at(folder))[0]]

    def size(self, folder: str) -> int:
        """The bytes of the objects in a folder."""
        return sum(entry.size for entry in objects.listing(self._at(folder))[0])

    def write(self, name: str, data: memoryview) -> None:
        """Write a new file here and begin to upload it."""
        sink = sealed.Sink(Path(self.path), name)
        sink.write(data)
        sink.end(name)

    def settle(self, names: Iterable[str], own: Iterable[str]) -> None:  # noqa: ARG002
        """Wait for the uploads of this process. Tasks have waited for theirs, and the store does
        not lose what it has acknowledged: nothing has to be asked again."""
        sealed.flushed()

    def create(self, name: str, data: bytes, run: str) -> None:  # noqa: ARG002
        """Put an object that must not be there; that decides who was first."""
        path = self._at(name)
        try:
            objects.put(path, data, "create")
        except FileExistsError:
            if self.read(name) != data:
                raise
        except ConnectionError as error:
            self._decide(name, data, error)
        self._remembered(name, data)

    def _decide(self, name: str, data: bytes, error: ConnectionError) -> None:
        """Nobody answered: the object may be there, or come to be there while a server still has
        the request."""
        try:
            there = self.read(name)
        except OSError:
            raise UndecidedError(error.errno, error.strerror, error.filename) from error
        if there != data:
            raise FileExistsError(error.errno, error.strerror, error.filename) from error

    def replace(self, name: str, data: bytes) -> None:
        """Put an object."""
        objects.put(self._at(name), data)

    def leave(self, name: str, instead_of: Sequence[str]) -> Callable[[], None]:
        """In a thread of its own, so that nobody waits for these requests before going on."""

        def put() -> None:
            try:
                objects.put(self._at(name), b"")
                for other in instead_of:
                    objects.delete(self._at(other))
            except OSError as error:
                _log.debug("%s is not written: %s", self._at(name), error)

        thread = threading.Thread(target=put, name="hint")
        thread.start()
        return thread.join

    def delete(self, name: str) -> None:
        """Remove an object."""
        with self._lock:
            self._leases.pop(name, None)
        objects.delete(self._at(name))

    def local(self, name: str) -> Path:
        """The copy in the cache of this machine."""
        return sealed.local(Path(self._at(name)))

    def leftovers(self) -> list[tuple[str, str]]:
        """None: an object is there whole, or not at all."""
        return []

    def hold(self, name: str, content: bytes) -> None:
        """Put a lease."""
        with self._lock:
            lease = self._leases.setdefault(name, _Lease({}))
            lease.content = json.loads(content)
            self._put(name, lease, "overwrite")

    def renew(self, name: str) -> None:
        """Replace a lease by one with another mark, on condition that it is ours."""
        with self._lock:
            lease = self._leases.get(name)
            if lease is None or lease.version is None:
                raise FileNotFoundError(f"no lease is held under {name}")
            try:
                self._put(name, lease, lease.version)
            except FileExistsError:
                self._put(name, lease, self._found(name, lease))

    def _put(self, name: str, lease: _Lease, mode: Any) -> None:
        """Equal content would have the same version: so every lease has a mark of its own."""
        mark = secrets.token_hex(8)
        lease.tried.add(mark)
        content = json.dumps({**lease.content, "mark": mark}).encode("ascii")
        lease.version = objects.put(self._at(name), content, mode)
        lease.tried = {mark}

    def _found(self, name: str, lease: _Lease) -> objects.ObjectVersion:
        """The version of a lease whose answer was lost; an error when it is not ours."""
        there = objects.get(self._at(name))
        if _parsed(there.data).get("mark") not in lease.tried:
            raise FileNotFoundError(f"the lease {name} was taken away")
        return there.version

    def claims(self, folder: str) -> list[Claim]:
        """All leases, and how old they are by the clock of the store."""
        listed = [entry for entry in objects.listing(self._at(folder))[0] if lease_run(entry.key)]
        names = [f"{folder}/{entry.key}" for entry in listed]
        with self._lock:
            others = any(name not in self._leases for name in names)
        # Our own are as fresh as can be; only others' have to be compared with a clock.
        now = self._now(folder) if others else None
        claims = []
        for name in names:
            try:
                there = objects.get(self._at(name))
            except FileNotFoundError:
                continue
            age = (now - there.modified).total_seconds() if now else 0.0
            claims.append(Claim(name, there.data, there.version, age))
        return claims

    def take_away(self, claim: Claim, gone: bool) -> str | None:  # noqa: ARG002
        """Replace it by a note of its end, unless it was renewed: its holder then finds another
        version than its own, and commits nothing."""
        content = {**_parsed(claim.content), "gone": True, "mark": secrets.token_hex(8)}
        try:
            objects.put(self._at(claim.name), json.dumps(content).encode("ascii"), claim.beat)
        except (FileExistsError, FileNotFoundError):
            return None
        return claim.name

    def names(self) -> list[str]:
        """What lies there."""
        try:
            there, folders = objects.listing(self.path)
        except FileNotFoundError as error:
            raise StoreError(f"{self.path}: there is no such bucket; make it first.") from error
        return [*(entry.key for entry in there), *folders]

    def expect(self) -> None:
        """Whether there is a profile, its marker says."""

    def make_folders(self, first: bool) -> None:
        """There are none: the names of objects have slashes in them."""

    def missing(self) -> Sequence[str]:
        """Nothing has to be made."""
        return ()

    def remove_unfinished(self, missing: Sequence[str], begun: bool) -> None:  # noqa: ARG002
        """Take the marker away, unless there is a version or somebody at work."""
        if not begun:
            return
        try:
            if self.entries("log") or self.entries("leases"):
                return
            marker = self.read(MARKER)
            self.delete(MARKER)
            # Who took a lease before that may have seen the marker, and needs it.
            if self.entries("log") or self.entries("leases"):
                self.replace(MARKER, marker)
        except OSError as error:
            _log.debug("%s stays: %s", self.path, error)

    def _at(self, name: str) -> str:
        return f"{self.path}/{name}" if name else self.path

    def _now(self, folder: str) -> Any:
        """Now, by the clock that stamps objects."""
        probe = self._at(f"{folder}/{_CLOCK}")
        while True:
            objects.put(probe, b"")
            try:
                return objects.modified(probe)
            except FileNotFoundError:
                _log.debug("%s was removed by somebody who looked at the clock, too", probe)
            finally:
                objects.delete(probe)


def _parsed(content: bytes) -> JsonObject:
    try:
        parsed = json.loads(content)
    except ValueError:
        return {}
    return parsed if isinstance(parsed, dict) else {}
