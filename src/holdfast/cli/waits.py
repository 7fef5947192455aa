"""Suggesting what to do about waiting for Spark, the second time that somebody does.

A file in the folder of the session remembers when commands waited; half a day later that is
forgotten.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress

from holdfast.cli import session

LONG_S = 3.0
"""Seconds that somebody notices."""

_REMEMBERED_S = 12 * 3600

_waited: list[float] = []
"""How long this command waited for a Spark of its own."""


def note(seconds: float) -> None:
    """Spark took so long to start."""
    _waited.append(seconds)


def suggest(*, quiet: bool) -> None:
    """Say at the end of a command what would have been quicker, if it is the second that waited;
    somebody has to be there to read it."""
    waited = sum(_waited)
    _waited.clear()
    off = os.environ.get("HOLDFAST_SESSION") == "off"
    if waited < LONG_S or quiet or off or not _is_terminal() or _times() != 2:
        return
    sys.stderr.write(
        f"note: of this command, {waited:.0f} s were Spark's start. `holdfast session start` keeps "
        "a Spark for later commands; with --engine process there is none to start, where all rows "
        "come from files of this machine\n"
    )


def _is_terminal() -> bool:
    return sys.stderr.isatty()


def _times() -> int:
    """How many commands have waited lately, this one included; 0 if that cannot be known."""
    folder = session.folder()
    with suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
    file = folder / "waited"
    if not session.is_private(folder):
        return 0
    try:
        is_old = file.exists() and time.time() - file.stat().st_mtime > _REMEMBERED_S
        with file.open("w" if is_old else "a") as waits:
            waits.write(".")
        return file.stat().st_size
    except OSError:
        return 0
