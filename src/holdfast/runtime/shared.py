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
from typing import NamedTuple

from holdfast.model.errors import SetupError


class Answer(NamedTuple):
    """What a worker says of the folder: which machine it is, whether it sees the token there, and
    the one that it left, or why it could not leave one."""

    host: str
    sees: bool = False
    left: str | None = None
    why: str | None = None


_answered: dict[Path, str] = {}
"""By folder, the run that this process answered last."""


def leave(prefix: str, content: str = "") -> str:
    """Leave a token whose path begins with the prefix; its path."""
    path = Path(f"{prefix}{secrets.token_hex(6)}")
    path.write_text(content or path.name)
    return str(path)


def answer_of(prefix: str, token: str) -> Answer | None:
    """On a worker: whether it sees the token, and the one that it left; None when this process has
    answered before."""
    folder = Path(token).parent
    if _answered.get(folder) == prefix:
        return None
    answer = Answer(socket.gethostname())
    try:
        answer = answer._replace(sees=Path(token).read_text() == Path(token).name)
        if answer.sees:
            answer = answer._replace(left=leave(prefix, Path(token).name))
            _answered[folder] = prefix
    except OSError as error:
        return answer._replace(why=error.strerror)
    return answer


def compare(token: str, answers: Iterable[Answer]) -> None:
    """On the driver: an error when a worker sees another folder under the same path."""
    for answer in answers:
        if not answer.sees:
            raise _apart(token, answer, "does not see a file that the driver wrote there")
        if answer.left is None:
            raise _apart(token, answer, f"cannot write there ({answer.why})")
        path = Path(answer.left)
        if not path.is_file() or path.read_text() != Path(token).name:
            raise _apart(token, answer, "wrote a file there that the driver does not see")
        path.unlink()


def remove(token: str) -> None:
    """Take the driver's token away."""
    Path(token).unlink(missing_ok=True)


def _apart(token: str, answer: Answer, what: str) -> SetupError:
    return SetupError(
        f"{Path(token).parent}: the worker on {answer.host} {what}. The driver and all "
        "executors must see this folder under the same path, and may write there: mount it on "
        "every machine, or choose one that is mounted everywhere."
    )
