"""Files of quarantined rows, in a folder of the user's: they have their names once the version that
leaves the rows out is committed.

Until then a file is called ``.NAME.pending``, which readers of a folder pass by. Its name has the
version and the run that is to commit it, so whoever finds it can ask the log whether that was done.
A run that is killed leaves a lease that names the folder, by which a clean-up does the rest. The
folder may hold anything else, and files of other profiles: only those of a run are ever touched.
"""

from __future__ import annotations

import logging
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

_PENDING = re.compile(
    r"\.(.+-(\d+)-([0-9a-f]{12})-[a-z]+-\d+\.[a-z]+)\.pending(\.[0-9a-f]{32})?", re.DOTALL
)

_log = logging.getLogger("holdfast")


class _Pending(NamedTuple):
    path: Path
    name: str  # that it is to have
    version: int
    run: str
    whole: bool


def pending_name(name: str) -> str:
    """What a file is called until its version is committed. Tasks that write it add an ending.

    >>> pending_name("orders-12-9f1c02d4aa10-inserts-1.csv")
    '.orders-12-9f1c02d4aa10-inserts-1.csv.pending'
    """
    return f".{name}.pending"


def reveal(folder: str, run: str) -> None:
    """Give the files of a run that has committed their names; what cannot have one is told."""
    for file in _pending(folder):
        if file.run == run:
            (_rename if file.whole else _remove)(file)


def withdraw(folder: str, run: str) -> None:
    """Remove the files of a run that will not commit."""
    for file in _pending(folder):
        if file.run == run:
            _remove(file)


def finish(folder: str, committed: Callable[[int, str], bool]) -> None:
    """Give all files their names whose version was committed by their run."""
    for run in {file.run for file in _pending(folder) if committed(file.version, file.run)}:
        reveal(folder, run)


def _pending(folder: str) -> Iterator[_Pending]:
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return
    except OSError as error:
        _log.warning("%s: quarantined rows may have pending names: %s", folder, error)
        return
    for name in names:
        match = _PENDING.fullmatch(name) if name.startswith(".") else None
        if match:
            path = Path(folder, name)
            yield _Pending(path, match[1], int(match[2]), match[3], match[4] is None)


def _rename(file: _Pending) -> None:
    try:
        file.path.rename(file.path.with_name(file.name))
    except FileNotFoundError:
        _log.debug("%s was renamed by another run", file.path)
    except OSError as error:
        _log.warning(
            "%s: these quarantined rows are those of version %d, but the file cannot be renamed to "
            "%s: %s. The next batch with this folder tries it again.",
            file.path, file.version, file.name, error,
        )  # fmt: skip


def _remove(file: _Pending) -> None:
    try:
        file.path.unlink(missing_ok=True)
    except OSError as error:
        _log.warning("%s is not needed any more but cannot be removed: %s", file.path, error)
