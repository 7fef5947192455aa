"""Where the files of a profile lie: one small interface, filled by disks and object stores.

Names are relative to the profile: ``log/000000000001.json``, ``data/sets-….arrow``. Files are read,
written, created if nobody was first, listed and deleted, and leases are held; what is immutable has
a path of its own on this machine, so that it can be mapped. Everything raises ``OSError`` with the
numbers that a file system has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple, Protocol


class Claim(NamedTuple):
    """A lease as another run finds it."""

    name: str
    content: bytes
    beat: object
    """What changes when its holder renews it."""
    age: float
    """Seconds since that, by the clock that stamps it."""


class UndecidedError(ConnectionError):
    """Nobody answered whether a file was created: it may be there now, or later."""


class Storage(Protocol):
    """The files of one profile."""

    @property
    def path(self) -> str:
        """Where it is, as messages name it and tasks are told."""

    @property
    def at_once(self) -> int:
        """How many files are best deleted at the same time."""

    def read(self, name: str) -> bytes:
        """What a file holds; a FileNotFoundError where there is none."""

    def prefetch(self, names: Sequence[str]) -> None:
        """Some files will be read soon: fetch them together where that is faster."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def entries(self, folder: str) -> list[str]:
        """The names in a folder, without it; none where there is no folder."""

    def size(self, folder: str) -> int:
        """The bytes of the files in a folder."""

    def write(self, name: str, data: memoryview) -> None:
        """Write a new file, which nobody reads yet; :meth:`settle` makes it durable."""

    def settle(self, names: Iterable[str], own: Iterable[str]) -> None:
        """See that files are there and whole, and that those of this run are durable."""

    def create(self, name: str, data: bytes, run: str) -> None:
        """Write a file, all of it and for good; a FileExistsError when its name is taken, an
        :class:`UndecidedError` when nobody can say."""

    def replace(self, name: str, data: bytes) -> None:
        """Write a file, all of it and for good, whether or not there is one."""

    def leave(self, name: str, instead_of: Sequence[str]) -> Callable[[], None]:
        """Leave an empty file in place of others. It is not flushed, and may fail without an error.
        Where it takes time it is done in the background; what is returned waits for it."""

    def delete(self, name: str) -> None:
        """Remove a file, or a folder of files; a FileNotFoundError where there is none."""

    def local(self, name: str) -> Path:
        """A path on this machine that has the content of a data file."""

    def leftovers(self) -> list[tuple[str, str]]:
        """Name and run of temporary files that a run which died may have left."""

    def hold(self, name: str, content: bytes) -> None:
        """Write a lease, which may be there already."""

    def renew(self, name: str) -> None:
        """Make a lease that was held here fresh; a FileNotFoundError when it was taken away."""

    def claims(self, folder: str) -> Sequence[Claim]:
        """All leases in a folder."""

    def take_away(self, claim: Claim, gone: bool) -> str | None:
        """Take the lease of a dead run away; the name of what is left of it, which goes last. None
        when the lease was renewed or is gone; ``gone``: its holder cannot renew it any more."""

    def names(self) -> list[str]:
        """What lies there before there is a profile, for which a folder is made."""

    def expect(self) -> None:
        """An error where there is nothing that could be a profile."""

    def make_folders(self, first: bool) -> None:
        """Make the folders that are not there, for the ``first`` time or because a copy of a
        profile may have lost an empty one."""

    def missing(self) -> Sequence[str]:
        """What :meth:`names` will make, for :meth:`remove_unfinished`."""

    def remove_unfinished(self, missing: Sequence[str], begun: bool) -> None:
        """Take away what a first run made, unless there is a version or somebody at work."""
