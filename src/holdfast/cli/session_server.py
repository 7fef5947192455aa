"""The process behind ``holdfast session start``: it has a Spark session and runs commands in it.

It runs one command at a time, with the standard streams, the folder and the environment of the
process that asks. A second command at the same time is refused, and starts a Spark of its own.
"""

from __future__ import annotations

import fcntl
import gc
import io
import json
import logging
import os
import queue
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from holdfast.cli import session
from holdfast.model.errors import HoldfastError, SetupError
from holdfast.model.records import JsonObject

log = logging.getLogger("holdfast")

WORKERS = {"spark.python.daemon.module": "holdfast.preloaded"}
"""Spark ends idle workers after a minute; new ones are forked from one that has all kernels."""

clock = time.monotonic
"""The clock for idle time."""

_POLL = 0.5
_REST = 60.0  # seconds without a command until files are closed; then Spark ends its workers, too
_PATIENCE = 10.0  # seconds for a request to arrive completely
_KEPT = ("SPARK", "PYSPARK", "PYTHON_UNIX_DOMAIN", "JAVA_HOME")
_MOST = 1 << 24


class _Request(NamedTuple):
    connection: socket.socket
    form: dict[str, Any]
    streams: list[int]


def main() -> None:
    """Start Spark, say ``{"ready": …}`` or ``{"error": …}`` on standard output, and serve."""
    master, settings, idle = json.loads(sys.argv[1])
    try:
        with _only_one() as place:
            _serve(place, master, settings, idle)
    except HoldfastError as error:
        _tell({"error": str(error)})
        sys.exit(2)


def _serve(place: Path, master: str | None, settings: Mapping[str, str], idle: float) -> None:
    from holdfast.spark.session import open_session

    spark = open_session(master, None, {**WORKERS, **settings})
    try:
        _rehearse()
        with _listening(place) as listener:
            server = Server(listener, idle)
            _tell({"ready": os.getpid()})
            with open(os.devnull, "r+b") as nothing:  # noqa: PTH123  a file descriptor is meant
                os.dup2(nothing.fileno(), 1)
            server.serve(lambda: spark.range(1).collect())
    finally:
        spark.stop()


def _tell(form: JsonObject) -> None:
    sys.stdout.write(json.dumps(form) + "\n")
    sys.stdout.flush()


@contextmanager
def _only_one() -> Iterator[Path]:
    """The folder of this user's session, locked while the block runs."""
    place = session.folder()
    with suppress(FileExistsError):
        place.mkdir(mode=0o700, parents=True)
    if not session.is_private(place):
        raise SetupError(
            f"{place}: must be a folder that only this user can open (mode 0700); remove it, or "
            "set XDG_RUNTIME_DIR to a folder of this user"
        )
    with (place / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise SetupError("another session is starting or running already") from None
        yield place


@contextmanager
def _listening(place: Path) -> Iterator[socket.socket]:
    """A socket that gets its name when it listens: a name without a listener is left over."""
    path, first = place / "socket", place / "starting"
    first.unlink(missing_ok=True)
    with socket.socket(socket.AF_UNIX) as listener:
        before = os.umask(0o177)
        try:
            listener.bind(str(first))
        finally:
            os.umask(before)
        listener.listen(16)
        first.rename(path)
        try:
            yield listener
        finally:
            path.unlink(missing_ok=True)


def _rehearse() -> None:
    """Profile a small table and apply batches, so that the JVM, the workers and this process have
    loaded everything before the first command."""
    from holdfast.api import Profile

    with tempfile.TemporaryDirectory(prefix="holdfast-") as name:
        rows = [f"{i},{i % 7},{i % 5}.5,2026-01-{i % 28 + 1:02},n{i % 11}\n" for i in range(300)]
        first, second = Path(name, "rows.csv"), Path(name, "more.csv")
        first.write_text("id,a,b,day,name\n" + "".join(rows[:250]))
        second.write_text("id,a,b,day,name\n" + "".join(rows[250:]))
        profile = Profile.create(Path(name, "profile"), first)
        profile.check("rows", inserts=second)
        profile.apply("rows", inserts=second)
        profile.apply("rows", deletes=second)


class Server:
    """Answers questions in a thread of its own, and runs commands in the main thread, as Spark
    sessions and interrupts require."""

    def __init__(self, listener: socket.socket, idle: float) -> None:
        self._listener = listener
        self._idle = idle  # seconds; 0: for ever
        self._identity = session.identity()
        self._waiting: queue.Queue[_Request] = queue.Queue()
        self._busy = threading.Lock()
        self._stopping = threading.Event()
        self._started = self._used = clock()
        self._rested = False  # since the last command
        self._commands = 0
        self._interruptible = False

    def serve(self, alive: Any) -> None:
        """Serve until stopped, idle for too long, or ``alive`` fails because Spark has ended."""
        signal.signal(signal.SIGINT, self._interrupt)
        signal.signal(signal.SIGTERM, lambda *_: self._stopping.set())
        threading.Thread(target=self._answer, name="answers", daemon=True).start()
        while not self._stopping.is_set() and not self._was_idle():
            try:
                request = self._waiting.get(timeout=_POLL)
            except queue.Empty:
                self.rest()
                continue
            code = self._run(request)
            if code not in (0, 1):
                alive()

    def rest(self) -> None:
        """Close the files of profiles after a minute without a command: commands leave them mapped
        for the next one, and a file system with a file in use cannot be unmounted."""
        if self._rested or clock() - self._used < _REST:
            return
        from holdfast.tasks.segments import close_maps

        close_maps()
        gc.collect()  # objects of a failed command may still refer to maps
        self._rested = True

    def _interrupt(self, *_: Any) -> None:
        """An interrupt stops the running command; one that comes too late has no effect."""
        if self._interruptible:
            raise KeyboardInterrupt

    def _was_idle(self) -> bool:
        if not self._idle or clock() - self._used < self._idle:
            return False
        # Not between the acceptance of a command and its start.
        return self._busy.acquire(blocking=False)

    def _answer(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return  # the listener was closed
            try:
                connection.settimeout(_PATIENCE)
                self._hear(connection)
            except (OSError, ValueError, KeyError) as wrong:
                log.warning("a request was not understood: %s", wrong)
                connection.close()

    def _hear(self, connection: socket.socket) -> None:
        """Answer a question, or accept a command, which is answered when it is done."""
        form, streams = _received(connection)
        if form["ask"] == "run":
            refused = self._refused(form["identity"])
            if refused is None:
                connection.sendall(b'{"accepted": true}\n')
                connection.settimeout(None)
                self._waiting.put(_Request(connection, form, streams))
                return
            answer: JsonObject = {"refused": refused}
        elif form["ask"] == "stop":
            self._stopping.set()
            answer = {"pid": os.getpid(), "busy": self._busy.locked()}
        else:
            now = clock()
            answer = {
                "pid": os.getpid(),
                "busy": self._busy.locked(),
                "commands": self._commands,
                "seconds": now - self._started,
                "idle_seconds": now - self._used,
                "idle_limit": self._idle,
                "identity": self._identity,
            }
        for stream in streams:
            os.close(stream)
        with connection:
            connection.sendall(json.dumps(answer).encode() + b"\n")

    def _refused(self, identity: dict[str, str]) -> str | None:
        for name, here in self._identity.items():
            if identity.get(name) != here:
                return (
                    f"the session runs another {name} than this command "
                    "(`holdfast session stop` ends it)"
                )
        if self._stopping.is_set() or not self._busy.acquire(blocking=False):
            return "the session is busy with another command"
        return None

    def _run(self, request: _Request) -> int:
        connection = request.connection
        done = threading.Event()

        def watch() -> None:
            """An interrupt of the client, or its end, interrupts the command here."""
            gone = False
            while not gone and not done.is_set():
                try:
                    gone = not connection.recv(64)
                except OSError:
                    gone = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        watcher = threading.Thread(target=watch, name="interrupts", daemon=True)
        code = 70
        try:
            with _in_place_of(request):
                self._interruptible = True
                watcher.start()
                code = _command(request.form["arguments"])
        except KeyboardInterrupt:
            code = 130  # in between; a command catches its own
        except Exception:
            log.exception("a command failed")
        finally:
            self._interruptible = False
            done.set()
            self._commands += 1
            self._used = clock()
            self._rested = False
            self._busy.release()
            with suppress(OSError):
                connection.sendall(json.dumps({"code": code}).encode() + b"\n")
                connection.shutdown(socket.SHUT_RDWR)
            watcher.join()
            connection.close()
        return code


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    text, streams, _, _ = socket.recv_fds(connection, 1 << 16, 3)
    while not text.endswith(b"\n"):
        piece = connection.recv(1 << 16)
        if not piece or len(text) > _MOST:
            raise ValueError("it ended early")
        text += piece
    form = json.loads(text)
    if not isinstance(form, dict):
        raise ValueError("it is not a question")
    return form, streams


def _command(arguments: Sequence[str]) -> int:
    """The exit code of a command in this process."""
    from holdfast.cli import program

    sys.argv = ["holdfast", *arguments]
    try:
        program.run()
    except SystemExit as exit_:
        return exit_.code if isinstance(exit_.code, int) else int(exit_.code is not None)
    return 0


@contextmanager
def _in_place_of(request: _Request) -> Iterator[None]:
    """Work with the streams, folder and environment of the process that asks."""
    form = request.form
    own_streams = [os.dup(number) for number in (0, 1, 2)]
    streams = sys.stdin, sys.stdout, sys.stderr
    environment = dict(os.environ)
    try:
        for number, stream in enumerate(request.streams):
            os.dup2(stream, number)
            os.close(stream)
        own = {name: value for name, value in environment.items() if name.startswith(_KEPT)}
        theirs = form["environment"].items()
        given = {name: value for name, value in theirs if not name.startswith(_KEPT)}
        _set_environment({**given, **own})
        os.chdir(form["folder"])
        out, err = form["encodings"]
        sys.stdin = _text(0, "r", "utf-8")
        sys.stdout, sys.stderr = _text(1, "w", out), _text(2, "w", err)
        yield
    finally:
        for text in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                text.flush()
        sys.stdin, sys.stdout, sys.stderr = streams
        for number, copy in enumerate(own_streams):
            os.dup2(copy, number)
            os.close(copy)
        os.chdir("/")
        _set_environment(environment)


def _set_environment(environment: Mapping[str, str]) -> None:
    for name in [name for name in os.environ if name not in environment]:
        del os.environ[name]
    os.environ.update(environment)
    tempfile.tempdir = None  # it is read from the environment only once


def _text(number: int, mode: str, encoding: str | None) -> io.TextIOWrapper:
    # On a terminal, lines appear as they are written, as from any program.
    file = io.open(number, mode + "b", closefd=False)  # noqa: UP020, SIM115
    return io.TextIOWrapper(
        file, encoding or "utf-8", "backslashreplace", line_buffering=os.isatty(number)
    )


if __name__ == "__main__":
    main()
