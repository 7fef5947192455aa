"""Starting, stopping and querying the session that commands of a user share."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass

from holdfast.cli import session
from holdfast.model.errors import InputError, SetupError
from holdfast.model.records import JsonObject

_POLL = 0.1


@dataclass(frozen=True)
class Status:
    """Whether a session is running, and its state."""

    running: bool
    what: str  # one sentence
    pid: int | None = None
    busy: bool = False
    commands: int = 0
    idle_seconds: float = 0.0
    usable: bool = False  # by this Holdfast, on this Python

    def __str__(self) -> str:
        return self.what

    def to_dict(self) -> JsonObject:
        """The JSON form."""
        return {
            "running": self.running,
            "pid": self.pid,
            "busy": self.busy,
            "commands": self.commands,
            "idle_seconds": round(self.idle_seconds, 1),
            "usable": self.usable,
        }


def status() -> Status:
    """The session as it is now."""
    answer = session.ask({"ask": "status"})
    if answer is None:
        return Status(False, "no session is running")
    usable = answer["identity"] == session.identity()
    now = "running a command" if answer["busy"] else f"idle for {answer['idle_seconds']:.0f} s"
    limit = answer["idle_limit"]
    ends = f", ends after {limit / 60:g} min without a command" if limit else ""
    other = (
        ""
        if usable
        else "; it has another version of Holdfast or Python, so commands do not use it"
    )
    return Status(
        True,
        f"a session is running (process {answer['pid']}): {answer['commands']} commands so far, "
        f"{now}{ends}{other}",
        answer["pid"],
        answer["busy"],
        answer["commands"],
        answer["idle_seconds"],
        usable,
    )


def start(master: str | None, settings: Mapping[str, str], idle_minutes: float) -> Status:
    """Start a session unless one is running; returns when commands can use it."""
    if idle_minutes < 0:
        raise InputError(f"--idle-minutes must be 0 (never) or more, not {idle_minutes:g}")
    current = status()
    if current.running:
        if not current.usable or master is not None or settings:
            raise InputError(f"{current.what}; end it first with `holdfast session stop`")
        return current
    from holdfast.spark.session import check_java, log_file

    check_java()
    form = json.dumps([master, dict(settings), idle_minutes * 60])
    file = os.open(log_file(), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    try:
        # In a folder that always exists, and outside the process group of a terminal.
        server = subprocess.Popen(
            [sys.executable, "-m", "holdfast.cli.session_server", form],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=file,
            cwd="/",
            start_new_session=True,
        )
    finally:
        os.close(file)
    assert server.stdout is not None
    try:
        with server.stdout as output:
            answer = json.loads(output.readline() or b"{}")
    except BaseException:
        server.terminate()
        raise
    if "ready" not in answer:
        server.wait()
        why = answer.get("error", f"it ended early, see {log_file()}")
        raise SetupError(f"the session could not be started: {why}")
    # Nobody waits for it: it outlives this process.
    server.returncode = 0
    return status()


def stop() -> Status:
    """End the session after its current command; returns when it has ended."""
    answer = session.ask({"ask": "stop"})
    if answer is None:
        return Status(False, "no session is running")
    while session.ask({"ask": "status"}) is not None:
        time.sleep(_POLL)
    return Status(False, f"the session (process {answer['pid']}) has ended")
