"""Is the folder the same everywhere? Tried with tokens, by the jobs that work there anyway.

The driver leaves a token in the folder. A worker that finds it leaves another one, which the driver
must find. Each worker process does so once in a run. Tokens are named like the run's other files
(``data/token-<run>-…``), so that clean-up removes what a run that dies leaves.
"""

from __future__ import annotations

import secrets
import socket
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from holdfast.model.errors import SetupError

_answered: dict[Path, str] = {}
"""By folder, the run that this process answered last."""


def leave(prefix: str, content: str = "") -> str:
    """Leave a token whose path begins with the prefix; its path."""
    path = Path(f"{prefix}{secrets.token_hex(6)}")
    path.write_text(content or path.name)
    return str(path)


def answer(prefix: str, token: str) -> dict[str, Any] | None:
    """On a worker: whether it sees the token, and the one that it left; None when this process has
    answered before."""
    folder = Path(token).parent
    if _answered.get(folder) == prefix:
        return None
    reply: dict[str, Any] = {"host": socket.gethostname(), "sees": False}
    try:
        reply["sees"] = Path(token).read_text() == Path(token).name
        if reply["sees"]:
            reply["left"] = leave(prefix, Path(token).name)
            _answered[folder] = prefix
    except OSError as error:
        reply["why"] = error.strerror
    return reply


def compare(token: str, answers: Iterable[dict[str, Any]]) -> None:
    """On the driver: an error when a worker sees another folder under the same path."""
    for each in answers:
        if not each["sees"]:
            raise _apart(token, each, "does not see a file that the driver wrote there")
        if "left" not in each:
            raise _apart(token, each, f"cannot write there ({each['why']})")
        path = Path(each["left"])
        if not path.is_file() or path.read_text() != Path(token).name:
            raise _apart(token, each, "wrote a file there that the driver does not see")
        path.unlink()


def remove(token: str) -> None:
    """Take the driver's token away."""
    Path(token).unlink(missing_ok=True)


def _apart(token: str, answered: dict[str, Any], what: str) -> SetupError:
    return SetupError(
        f"{Path(token).parent}: the worker on {answered['host']} {what}. The driver and all "
        "executors must see this folder under the same path, and may write there: mount it on "
        "every machine, or choose one that is mounted everywhere."
    )
