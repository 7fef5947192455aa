"""Everything that Holdfast raises on purpose.

    HoldfastError
    ├── InputError              what the caller gave cannot be used; nothing was changed
    │   ├── SourceError         a file or table that is missing, unreadable or malformed
    │   │   └── UnreachableError  a source that does not answer now, and may later
    │   ├── SchemaError         a column missing, added or retyped, or of a type we cannot compare
    │   ├── BatchError          a change that does not fit the rows: no match, too many, a reused id
    │   ├── RuleError           a rule that cannot be read; two further lines show where
    │   └── UnknownTableError   a table name that the profile does not have
    ├── StoreError              the profile directory: not one, newer than us, damaged, disk full
    │   ├── ConflictError       another writer was first, or this one was taken for dead
    │   │   └── OvertakenError  another writer was first, or another follower of a feed
    │   └── MissingFileError    a data file that a version names is not there
    └── SetupError              Java, Spark or the workers' Python are not what we need

Each message names the table, column, row or file, says what was expected and what to do.
The command line turns all of them into one line (a RuleError into three) and exit code 2, or 75 for
a ConflictError: the same command can succeed if it is run again.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager


class HoldfastError(Exception):
    """Base of every error that Holdfast raises on purpose."""


class InputError(HoldfastError):
    """What the caller gave cannot be used; nothing was changed."""


class SourceError(InputError):
    """A file or table is missing, unreadable or malformed."""


class UnreachableError(SourceError):
    """A source does not answer now; it may later."""


class SchemaError(InputError):
    """A column is missing, added or retyped, or has a type that cannot be compared."""


class BatchError(InputError):
    """A change does not fit the rows it refers to."""


class RuleError(InputError):
    """A rule cannot be read: below the message are the rule and a caret at the place."""


class UnknownTableError(InputError):
    """The profile has no table of that name."""


class StoreError(HoldfastError):
    """The profile directory cannot be used."""


class ConflictError(StoreError):
    """Another writer committed first, or is at work."""


class OvertakenError(ConflictError):
    """Another writer committed the version that this one was about to."""


class MissingFileError(StoreError):
    """A data file that a version names is not there."""


class SetupError(HoldfastError):
    """Java, Spark or the workers' Python are not what Holdfast needs."""


_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def disk_errors(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn an OSError while writing below ``path`` into a StoreError that says what to do."""
    try:
        yield
    except OSError as error:
        where = error.filename or os.fspath(path)
        if error.errno in _FULL:
            raise StoreError(
                f"{where}: the disk is full or the quota is used up; nothing was committed, the "
                "last version is unchanged. Free some space and run again."
            ) from error
        if isinstance(error, ConnectionError):
            raise StoreError(
                f"{where}: the object store does not answer ({error.strerror or error}); nothing "
                "was committed, the last version is unchanged. Run again."
            ) from error
        raise StoreError(
            f"{where}: cannot be written ({error.strerror or error}); nothing was committed, the "
            "last version is unchanged."
        ) from error


def is_refused(error: StoreError) -> bool:
    """Whether something could not be written because we may not write there."""
    return isinstance(error.__cause__, OSError) and error.__cause__.errno in _REFUSED
