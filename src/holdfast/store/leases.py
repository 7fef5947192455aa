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
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Literal, NamedTuple

from holdfast.model.errors import ConflictError, StoreError
from holdfast.store.files import (
    DATA,
    data_prefix,
    disk_errors,
    entries,
    lease_run,
    temporary_name,
)

HEARTBEAT_S = 20.0
EXPIRY_S = 600.0

Mode = Literal["read", "write"]

_log = logging.getLogger("holdfast")


class Lease:
    """One run's claim on the files it writes and on the version it reads.

    ``run`` is its unique id, ``version`` the version that it reads, ``committed`` the version
    that it published, if it has. ``folder`` is where its files go: an absolute path when that is
    not in the profile.
    """

    def __init__(self, directory: str, mode: Mode) -> None:
        self.run = secrets.token_hex(6)
        self.mode = mode
        self.version = 0
        self.committed: int | None = None
        self.folder = DATA
        self._directory = directory
        self._path = os.path.join(directory, f"{self.run}.json")
        self._started = datetime.now(UTC).isoformat(timespec="seconds")
        self._counter = itertools.count(1)
        self._ended = threading.Event()
        self._held = False

    def prefix(self, kind: str) -> str:
        """The beginning of the relative paths of this run's files of a kind."""
        return data_prefix(kind, self.run, self.folder)

    @property
    def pattern(self) -> str:
        """The same for all kinds, with a star in the kind's place."""
        return f"{self.folder}/*-{self.run}-"

    def new_path(self, kind: str, suffix: str) -> str:
        """A relative path that nothing else uses: ``data/<kind>-<run>-<counter>.<suffix>``."""
        return f"{self.prefix(kind)}{next(self._counter):04d}.{suffix.lstrip('.')}"

    def take(self, head: Callable[[], int], version: int | None = None) -> None:
        """Write the lease for a version, the last one by default, and start its heartbeat.

        The last version is looked up again once the lease is written: when it is still the same,
        every clean-up that counts it as old lists the leases after that moment, and finds ours.
        """
        self._hold(head() if version is None else version)
        while version is None and (latest := head()) != self.version:
            self._hold(latest)
        if self._held:
            threading.Thread(target=self._beat, name=f"lease-{self.run}", daemon=True).start()

    def confirm(self) -> None:
        """Make the lease fresh now; a ConflictError when it expired and was cleaned away."""
        try:
            with disk_errors(self._path):
                os.utime(self._path)
        except StoreError as error:
            if os.path.exists(self._path):
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
                os.unlink(self._path)
            except FileNotFoundError:
                _log.debug("lease %s had expired and was removed by another run", self._path)

    def _hold(self, version: int) -> None:
        self.version = version
        who = {"run": self.run, "host": _host(), "pid": os.getpid(), "started": self._started}
        content = json.dumps({**who, "version": version, "mode": self.mode}).encode("ascii")
        try:
            with disk_errors(self._directory):
                os.makedirs(self._directory, exist_ok=True)
                # In place: a lease that is found half written counts by its age, so as alive.
                with open(self._path, "wb", buffering=0) as file:
                    file.write(content)
        except StoreError as error:
            self._held = os.path.exists(self._path)
            if self.mode == "write":
                raise
            # Reading must work on a read-only or full disk; see Store.ask.
            _log.debug("reading without a lease: %s", error)
            return
        self._held = True

    def _beat(self) -> None:
        while not self._ended.wait(HEARTBEAT_S):
            try:
                os.utime(self._path)
            except FileNotFoundError:
                return
            except OSError as error:
                _log.warning("the lease %s could not be kept fresh: %s", self._path, error)


class Held(NamedTuple):
    """A lease as another run finds it. ``version`` is None when the file cannot be read."""

    run: str
    mode: str | None
    version: int | None
    path: str
    beat_ns: int
    alive: bool
    gone: bool


def held(directory: str) -> list[Held]:
    """All leases in a directory, and whether their runs are alive.

    A run is dead when its process is gone from this host, or its heartbeat is too old.
    """
    now_ns = _file_system_time_ns(directory)
    leases = []
    for name in entries(directory):
        run = lease_run(name)
        if run is None:
            continue
        path = os.path.join(directory, name)
        try:
            beat_ns = os.stat(path).st_mtime_ns
            with open(path, "rb") as file:
                raw = file.read()
        except FileNotFoundError:
            continue
        mode: str | None = None
        version: int | None = None
        gone = name.endswith(".dead")
        try:
            content = json.loads(raw)
            mode, version = str(content["mode"]), int(content["version"])
            gone = gone or (content["host"] == _host() and _is_gone(int(content["pid"])))
        except (ValueError, KeyError, TypeError):
            _log.debug("lease %s was cut short; its age alone decides", path)
        alive = not gone and now_ns - beat_ns <= EXPIRY_S * 1e9
        leases.append(Held(run, mode, version, path, beat_ns, alive, gone))
    return leases


def bury(lease: Held) -> str | None:
    """Take a dead run's lease away, before its files: the new path, or None when it woke up.

    A run that stood still may wake at any time and commit. Just before that it refreshes its
    lease (``Lease.confirm``): either that finds no lease any more, or we find it fresh here.
    """
    grave = os.path.splitext(lease.path)[0] + ".dead"
    try:
        os.rename(lease.path, grave)
    except FileNotFoundError:
        return None
    if lease.gone or os.stat(grave).st_mtime_ns == lease.beat_ns:
        return grave
    os.rename(grave, lease.path)
    return None


def _file_system_time_ns(directory: str) -> int:
    """Now, by the clock that stamps the files there, which may be another machine's."""
    probe = os.path.join(directory, temporary_name(secrets.token_hex(6)))
    try:
        with open(probe, "wb"):
            now = os.stat(probe).st_mtime_ns
        os.unlink(probe)
    except OSError:
        return time.time_ns()
    return now


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
