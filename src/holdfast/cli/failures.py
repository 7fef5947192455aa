"""Errors: one line on standard error, and an exit code.

If a rule cannot be parsed, it is printed below the line with a caret at the position of the error.
Log records of Holdfast are printed in the same way, as notes.
"""

from __future__ import annotations

import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from holdfast.model.errors import ConflictError, HoldfastError, RuleError
from holdfast.screen.text import plain

# docs/cli.md lists them; 70, 75 and 141 are what sysexits.h and shells use.
FOUND, BAD_INPUT, UNEXPECTED, TRY_AGAIN, INTERRUPTED, PIPE_CLOSED = 1, 2, 70, 75, 130, 141


def exit_code(function: Callable[[], int]) -> int:
    """Run a function that returns an exit code; an error has its own, and is printed as a line."""
    try:
        code = function()
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has stopped (head, less); the rest must not be written at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return PIPE_CLOSED
    except (KeyboardInterrupt, Exception) as error:
        if interrupted(error):
            message = str(error) if isinstance(error, KeyboardInterrupt) else ""
            _say(message or "interrupted: nothing was committed")
            return INTERRUPTED
        if isinstance(error, HoldfastError):
            _say(*_lines(error))
            return TRY_AGAIN if isinstance(error, ConflictError) else BAD_INPUT
        if _debugging():
            raise
        first = (str(error).splitlines() or [""])[0]
        _say(
            f"error: unexpected {type(error).__name__}: {first} "
            f"(details in {_write_traceback()}; HOLDFAST_DEBUG=1 shows them)"
        )
        return UNEXPECTED
    return code


def interrupted(error: BaseException) -> bool:
    """Whether an interrupt caused an error: Spark may fail while it cleans up after one."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def hush() -> None:
    """Do not print log records of other libraries, such as the tracebacks of py4j."""
    if not _debugging():
        logging.getLogger().addHandler(logging.NullHandler())


@contextmanager
def notes(*, quiet: bool, verbose: bool) -> Iterator[None]:
    """Print log records on standard error while a block runs."""
    logger = logging.getLogger("holdfast")
    level = logging.ERROR if quiet else logging.INFO if verbose else logging.WARNING
    before, handler = logger.level, _Notes()
    logger.setLevel(logging.DEBUG if _debugging() else level)
    logger.addHandler(handler)
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(before)


class _Notes(logging.Handler):
    """Writes to the current standard error, so that records appear above a progress line."""

    def emit(self, record: logging.LogRecord) -> None:
        _say(f"{record.levelname.lower()}: {record.getMessage()}")


def _debugging() -> bool:
    return os.environ.get("HOLDFAST_DEBUG") == "1"


def _write_traceback() -> str:
    with tempfile.NamedTemporaryFile(
        "w", prefix="holdfast-", suffix=".log", delete=False, encoding="utf-8"
    ) as file:
        traceback.print_exc(file=file)
    return file.name


def _lines(error: HoldfastError) -> list[str]:
    """The message as one line; a rule that cannot be parsed and the caret have their own lines."""
    message = f"error: {error}"
    return message.split("\n") if isinstance(error, RuleError) else [message]


def _say(*lines: str) -> None:
    for line in lines:
        sys.stderr.write(plain(" ".join(line.split("\n"))) + "\n")
    sys.stderr.flush()
