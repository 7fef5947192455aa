"""Handing a command to the session that ``holdfast session start`` started, if it is running.

There are few imports, so that a command takes hardly longer than the session needs for it. The
session gets the standard streams, folder and environment of the command, so that there is no other
difference. ``docs/decisions/22-session.md`` explains why it is a process of our own.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from holdfast.model.records import JsonObject

SPARK_COMMANDS = (
    "profile", "apply", "check", "expect", "explain", "suspects", "verify", "predicates", "add",
    "alter",
)  # fmt: skip
"""The commands that run Spark; the others answer immediately."""

INTERRUPT = b"interrupt\n"

_OWN = ("--master", "--remote", "--conf")
_ELSEWHERE = ("PYSPARK_GATEWAY_PORT", "SPARK_REMOTE")
_LOST = (
    "error: the session ended during this command; `holdfast history` shows whether a "
    "version was committed, and running the command again starts a new Spark\n"
)


def main() -> None:
    """Run the command line."""
    arguments = sys.argv[1:]
    code = handed_on(arguments) if _fits(arguments) else None
    if code is not None:
        sys.exit(code)
    from holdfast.cli import program

    program.main()


def folder() -> Path:
    """The folder of the session's files, which no other user can open."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return Path(runtime or tempfile.gettempdir()) / f"holdfast-session-{os.getuid()}"


def is_private(path: Path) -> bool:
    """Whether a folder belongs to this user alone, and was not created by another user."""
    try:
        status = path.lstat()
    except OSError:
        return False
    ours = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid()
    return ours and not status.st_mode & 0o077


def identity() -> dict[str, str]:
    """What must be equal on both sides: the program, down to its latest edit, and Python."""
    root = Path(__file__).parent.parent
    from holdfast import __version__

    edited = max(path.stat().st_mtime_ns for path in root.rglob("*.py"))
    return {
        "Holdfast": __version__,
        "Python": sys.version,
        "installation": f"{sys.prefix} {root} {edited}",
        "umask": f"{_umask():03o}",  # workers write files, too
    }


def ask(question: JsonObject) -> dict[str, Any] | None:
    """The answer of the session to a short question; None without a session."""
    session = _connected()
    if session is None:
        return None
    with session as connection, suppress(OSError, ValueError):
        connection.sendall(_line(question))
        answer: dict[str, Any] = json.loads(_Lines(connection).next())
        return answer
    return None


def handed_on(arguments: Sequence[str]) -> int | None:
    """The exit code of a command that the session ran; None if this process has to run it."""
    connection = _connected(None if _quiet(arguments) else _note)
    if connection is None:
        return None
    request: JsonObject = {
        "ask": "run",
        "identity": identity(),
        "arguments": list(arguments),
        "folder": str(Path.cwd()),
        "environment": dict(os.environ),
        "encodings": [sys.stdout.encoding, sys.stderr.encoding],
    }
    with connection, _handing_on(connection) as interruptible:
        lines = _Lines(connection)
        try:
            # Streams must be sent with at least one byte; the rest follows.
            socket.send_fds(connection, [b" "], [0, 1, 2])
            connection.sendall(_line(request))
            interruptible()
            first = json.loads(lines.next())
        except (OSError, ValueError):
            return None  # it ended before it took the command
        if "refused" in first:
            if not _quiet(arguments):
                _note(f"{first['refused']}; starting Spark for this command only")
            return None
        try:
            return int(json.loads(lines.next())["code"])
        except (OSError, ValueError):
            sys.stderr.write(_LOST)
            return 70


@contextmanager
def _handing_on(connection: socket.socket) -> Iterator[Callable[[], None]]:
    """Forward interrupts to the session once the whole command has been sent, which the caller
    reports with the function that it gets. In this process interrupts raise nothing."""
    state = {"sent": False, "interrupted": False}

    def interrupt(*_: object) -> None:
        state["interrupted"] = True
        if state["sent"]:
            with suppress(OSError):
                connection.sendall(INTERRUPT)

    def sent() -> None:
        state["sent"] = True
        if state["interrupted"]:
            interrupt()

    before = signal.signal(signal.SIGINT, interrupt)
    try:
        yield sent
    finally:
        signal.signal(signal.SIGINT, before)


def _fits(arguments: Sequence[str]) -> bool:
    """Whether a command runs Spark, and neither arguments nor environment say which one."""
    if not arguments or arguments[0] not in SPARK_COMMANDS or _engine(arguments) != "spark":
        return False
    if os.environ.get("HOLDFAST_SESSION") == "off" or any(n in os.environ for n in _ELSEWHERE):
        return False
    return not any(argument.partition("=")[0] in _OWN for argument in arguments)


def _engine(arguments: Sequence[str]) -> str:
    """Which engine a command uses."""
    given = os.environ.get("HOLDFAST_ENGINE") or "spark"
    for place, argument in enumerate(arguments):
        name, equals, value = argument.partition("=")
        if name == "--engine":
            given = value if equals else "".join(arguments[place + 1 : place + 2])
    return given


def _connected(note: Any = None) -> socket.socket | None:
    path = folder() / "socket"
    if not is_private(path.parent) or not path.exists():
        return None
    connection = socket.socket(socket.AF_UNIX)
    try:
        connection.connect(str(path))
    except ConnectionRefusedError:
        # Its process was killed: a live session listens before its socket gets this name.
        connection.close()
        with suppress(OSError):
            path.unlink()
        if note:
            note("the session has ended; starting Spark for this command only")
        return None
    except OSError:
        connection.close()
        return None
    return connection


class _Lines:
    """Lines from a connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._rest = b""

    def next(self) -> bytes:
        while b"\n" not in self._rest:
            piece = self._connection.recv(1 << 16)
            if not piece:
                raise ConnectionError("closed")
            self._rest += piece
        line, _, self._rest = self._rest.partition(b"\n")
        return line


def _line(form: JsonObject) -> bytes:
    return json.dumps(form).encode() + b"\n"


def _umask() -> int:
    """The file mode mask, which can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _quiet(arguments: Sequence[str]) -> bool:
    return "-q" in arguments or "--quiet" in arguments


def _note(message: str) -> None:
    sys.stderr.write(f"note: {message}\n")
