"""Who is at work: a small file per run, kept fresh while the run lives.

A lease protects two things from clean-up: the files its run has written and not yet committed,
and the files of the version it reads. It is no lock: writers do not wait for each other, the
commit decides who was first.
"""

from __future__ import annotations

import itertools
import json
import logging
import os
import secrets
import socket
import threading
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from holdfast.model.errors import ConflictError, StoreError, disk_errors
from holdfast.model.records import JsonObject
from holdfast.store.files import DATA, data_prefix, lease_run
from holdfast.store.storage import Claim, Storage

HEARTBEAT_S = 20.0
EXPIRY_S = 600.0
LEASES = "leases"
"""The folder of the leases."""

Mode = Literal["read", "write"]

_log = logging.getLogger("holdfast")


class Lease:
    """One run's claim on the files it writes and on the version it reads.

    ``run`` is its unique id, ``version`` the version that it reads, ``committed`` the version
    that it published, if it has. ``folder`` is where its files go: an absolute path when that is
    not in the profile. ``quarantine`` is the folder of rows that it leaves out. ``moment`` is when
    it began, which its changes of rows are judged by.
    """

    def __init__(self, storage: Storage, mode: Mode) -> None:
        self.run = secrets.token_hex(6)
        self.mode = mode
        self.version = 0
        self.committed: int | None = None
        self.undecided = False  # whether it published: nobody answered
        self.folder = DATA
        self.quarantine: str | None = None
        self._storage = storage
        self._name = f"{LEASES}/{self.run}.json"
        self._path = os.path.join(storage.path, self._name)  # for messages
        self.moment = datetime.now(UTC).isoformat(timespec="milliseconds")
        self._counter = itertools.count(1)
        self._ended = threading.Event()
        self._held = False
        self._who: JsonObject = {"host": _host(), "pid": os.getpid()}

    def prefix(self, kind: str) -> str:
        """The beginning of the relative paths of this run's files of a kind."""
        return data_prefix(kind, self.run, self.folder)

    @property
    def pattern(self) -> str:
        """The same for all kinds, with a star in the kind's place."""
        return f"{self.folder}/*-{self.run}-"

    @property
    def held(self) -> bool:
        """Whether the lease could be written."""
        return self._held

    def new_path(self, kind: str, suffix: str) -> str:
        """A relative path that nothing else uses: ``data/<kind>-<run>-<counter>.<suffix>``."""
        return f"{self.prefix(kind)}{next(self._counter):04d}.{suffix.lstrip('.')}"

    def take(self, head: Callable[[], int], version: int | None = None) -> None:
        """Write the lease for a version, the last one by default, and start its heartbeat.

        The last version is looked up again once the lease is written: when it is still the same,
        every clean-up that counts it as old lists the leases after that moment, and finds ours.
        """
        self._hold(head() if version is None else version)
        if version is None:
            self.follow(head)
        if self._held:
            threading.Thread(target=self._beat, name=f"lease-{self.run}", daemon=True).start()

    def follow(self, head: Callable[[], int]) -> None:
        """Hold the last version from now on."""
        while (latest := head()) != self.version:
            self._hold(latest)

    def quarantines(self, folder: str) -> None:
        """Say where files of this run will lie outside the profile, before there are any: should it
        die, a clean-up looks there."""
        self.quarantine = folder
        self._hold(self.version)

    def confirm(self) -> None:
        """Make the lease fresh now; a ConflictError when it expired and was cleaned away."""
        try:
            with disk_errors(self._path):
                self._storage.renew(self._name)
        except StoreError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            raise ConflictError(
                f"{self._path}: this run stood still for more than {EXPIRY_S / 60:.0f} minutes "
                "and its files were cleaned away; nothing was committed. Run again."
            ) from error

    def release(self) -> None:
        """Stop the heartbeat and remove the lease."""
        self._ended.set()
        if self._held:
            try:
                self._storage.delete(self._name)
            except FileNotFoundError:
                _log.debug("lease %s had expired and was removed by another run", self._path)
            except ConnectionError as error:
                _log.warning("the lease %s stays until it expires: %s", self._path, error)

    def leave(self) -> None:
        """Stop the heartbeat and let the lease expire, whatever becomes of this process: what it
        has begun may still take effect."""
        self._ended.set()
        self._who = {"host": "", "pid": 0}
        try:
            self._hold(self.version)
        except StoreError as error:
            _log.warning("the lease %s may be taken for that of a dead run: %s", self._path, error)

    def _hold(self, version: int) -> None:
        self.version = version
        who = {"run": self.run, **self._who, "started": self.moment}
        form = {**who, "version": version, "mode": self.mode}
        if self.quarantine is not None:
            form["quarantine"] = self.quarantine
        content = json.dumps(form).encode("ascii")
        try:
            with disk_errors(os.path.dirname(self._path)):
                self._storage.hold(self._name, content)
        except StoreError as error:
            self._held = self._storage.exists(self._name)
            if self.mode == "write":
                raise
            # Reading must work on a read-only or full disk; see Store.ask.
            _log.debug("reading without a lease: %s", error)
            return
        self._held = True

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_S):
            try:
                self._storage.renew(self._name)
            except FileNotFoundError:
                return
            except OSError as error:
                _log.warning("the lease %s could not be kept fresh: %s", self._path, error)


class Held(NamedTuple):
    """A lease as another run finds it. ``version`` is None when the file cannot be read."""

    run: str
    mode: str | None
    version: int | None
    claim: Claim
    alive: bool
    gone: bool
    quarantine: str | None = None


def held(storage: Storage) -> list[Held]:
    """All leases of a profile, and whether their runs are alive.

    A run is dead when its process is gone from this host, or its heartbeat is too old.
    """
    leases = []
    for claim in storage.claims(LEASES):
        name = os.path.basename(claim.name)
        run = lease_run(name)
        if run is None:
            continue
        mode: str | None = None
        version: int | None = None
        quarantine: str | None = None
        gone = name.endswith(".dead")
        try:
            content = json.loads(claim.content)
            gone = gone or "gone" in content
            mode, version = str(content["mode"]), int(content["version"])
            quarantine = content.get("quarantine")
            gone = gone or (content["host"] == _host() and _is_gone(int(content["pid"])))
        except (ValueError, KeyError, TypeError):
            _log.debug("lease %s was cut short; its age alone decides", claim.name)
        alive = not gone and claim.age <= EXPIRY_S
        leases.append(Held(run, mode, version, claim, alive, gone, quarantine))
    return leases


def bury(storage: Storage, lease: Held) -> str | None:
    """Take a dead run's lease away, before its files: what is left of it, or None when it woke up.

    A run that stood still may wake at any time and commit. Just before that it refreshes its
    lease (``Lease.confirm``): either that finds no lease any more, or we find it fresh here.
    """
    return storage.take_away(lease.claim, lease.gone)


def _host() -> str:
    """This host; containers that share its name but not its process ids are told apart."""
    try:
        return f"{socket.gethostname()} {os.readlink('/proc/self/ns/pid')}"
    except OSError:
        return socket.gethostname()


def _is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        return False
    return False
