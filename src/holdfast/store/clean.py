"""Clean-up: removes files that no version and nobody at work needs.

Needed are the files of the last version, of versions that a living run reads, of living runs,
and the kept kinds (``files.KEPT_KINDS``) that a commit names, until it expires. Only a run that
died can leave kept kinds that no commit names, and its lease says which commit to look at. So
however long the log is, a clean-up reads a few commits. Rows that it was to quarantine are settled,
too.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace

from holdfast.model import thresholds
from holdfast.model.commits import Header
from holdfast.model.errors import MissingFileError, StoreError
from holdfast.store.files import DATA, KEPT_KINDS, data_name, is_kept
from holdfast.store.leases import Held, bury, held
from holdfast.store.log import Log
from holdfast.store.quarantine import reveal, withdraw
from holdfast.store.storage import Storage

_KEPT = tuple(f"{kind}-" for kind in KEPT_KINDS)

_SPAN = 64
"""Of so many versions one looks at all files, where there are many tables."""

_log = logging.getLogger("holdfast")


def clean(storage: Storage, log: Log) -> list[str]:
    """Remove what is not needed; the relative paths of what was removed.

    To know all that is needed takes a look at every table. Where there are many, that is done now
    and then, and after a run that died; otherwise what versions say that they no longer have goes.
    """
    oldest = log.head()
    leases = held(storage)
    newest = log.head()
    try:
        return _cleaned(storage, log, oldest, leases, newest)
    except _Unknown as error:
        # What was committed stands, whatever became of a table that it did not change.
        _log.warning("%s: nothing is cleaned up: %s", storage.path, error)
        return []


class _Unknown(Exception):
    """It cannot be known what is needed, because a manifest is damaged."""


def _cleaned(storage: Storage, log: Log, oldest: int, leases: list[Held], newest: int) -> list[str]:
    many = newest and len(log.read(newest, Header).tables) > thresholds.current.swept_tables
    if not many or newest % _SPAN == 0 or not all(lease.alive for lease in leases):
        return _sweep(storage, log)
    if any(lease.version is None for lease in leases):
        return []
    return _drop(storage, log, min(oldest, *(lease.version or oldest for lease in leases), newest))


def _drop(storage: Storage, log: Log, last: int) -> list[str]:
    """Remove what the versions up to one no longer have; those before one for which that was done
    are done, too."""
    removed: list[str] = []
    for version in range(last, max(log.first() - 1, last - _SPAN), -1):
        dropped = log.read(version, Header).dropped
        # Asked for before, because an object store removes what is not there without a word.
        if dropped and not storage.exists(dropped[-1]):
            break
        removed += _remove_all(storage, dropped)
    return sorted(removed)


def _sweep(storage: Storage, log: Log) -> list[str]:
    """Look at all files."""
    # The order matters. A file listed here belongs to a run whose lease we then find, or which
    # has ended: what it committed is in the log by ``newest``. A reader that took its lease too
    # late for us to find reads a version that was the last one between the two looks at the log.
    names = storage.entries(DATA)
    temporary = storage.leftovers()
    oldest = log.head()
    leases = held(storage)
    newest = log.head()

    living = {lease.run for lease in leases if lease.alive}
    read = {lease.version for lease in leases if lease.alive and lease.version}
    needed = _used(log, read.union(range(max(oldest, 1), newest + 1)))
    named_by_dead: dict[str, set[str]] = {}
    graves = []
    for lease in leases:
        if lease.alive:
            continue
        grave = bury(storage, lease)
        if grave is None:
            living.add(lease.run)
            continue
        graves.append(grave)
        if lease.mode == "write" and lease.version is not None:
            done = committed(log, lease.run, lease.version)
            named_by_dead[lease.run] = _used(log, [lease.version + 1] if done else [])
            if lease.quarantine is not None:
                (reveal if done else withdraw)(lease.quarantine, lease.run)

    unneeded = []
    for name in names:
        # There may be one kept file for every commit there ever was: pass them by quickly.
        if not named_by_dead and name.startswith(_KEPT):
            continue
        data = data_name(name)
        if data is None or data.run in living or name in needed:
            continue
        if data.kind in KEPT_KINDS and name in named_by_dead.get(data.run, {name}):
            continue
        unneeded.append(f"{DATA}/{name}")
    unneeded += [name for name, run in temporary if run not in living]
    # Leases go last: a clean-up that is cut short leaves them for the next one.
    return sorted([*_remove_all(storage, unneeded), *_remove_all(storage, graves)])


def expire(storage: Storage, log: Log, first: int) -> int:
    """Remove what only the versions before one need, unless somebody has a lease for one of them;
    the first version that is left. A removal that was cut short is finished."""
    versions = [lease.version for lease in held(storage) if lease.version]
    first = min(first, log.head(), *versions) if versions else min(first, log.head())
    if first > log.first():
        log.expire(first)
    for version in log.expired():
        before = log.read_expired(version)
        last = version + 1 == log.first()
        after = log.read(version + 1, Header) if last else log.read_expired(version + 1)
        gone = _only(before, after)
        manifests = gone.intersection(before.tables.manifests.values())
        # What names others goes after them, so that a removal that is cut short can go on.
        _remove_all(storage, sorted(gone - manifests))
        _remove_all(storage, sorted(manifests))
        log.remove(version)
    return log.first()


def _only(before: Header, after: Header) -> set[str]:
    """The files of kept kinds that a version has and the next one has not; nor has any later one,
    as no file comes back."""
    old, new = before.tables.manifests, after.tables.manifests
    changed = [name for name, path in old.items() if new.get(name) != path]
    gone = {*before.files, *before.keep, *(old[name] for name in changed)}
    for name in changed:
        with suppress(MissingFileError):
            gone |= {*before.tables[name].data_files}
    left = {*after.files, *after.keep}
    left |= {file for name in changed if name in new for file in after.tables[name].data_files}
    return {name for name in gone - left if is_kept(name)}


def remove_uncommitted(storage: Storage, log: Log, run: str, base: int) -> None:
    """Remove the files of a run that ends, unless it committed the version after ``base``."""
    if committed(log, run, base):
        return
    names = [name for name in storage.entries(DATA) if (d := data_name(name)) and d.run == run]
    leftovers = [name for name, owner in storage.leftovers() if owner == run]
    _remove_all(storage, [*(f"{DATA}/{name}" for name in names), *leftovers])


def remove_unnamed(storage: Storage, log: Log, run: str, version: int) -> None:
    """Remove those files of a run that the version which it committed does not name."""
    commit = log.read(version, Header)
    own_manifests = {name: path for name, path in commit.tables.manifests.items() if run in path}
    own = replace(commit, tables=replace(commit.tables, manifests=own_manifests))
    named = {path.split("/")[1] for path in files_of(own)}
    others = [name for name in storage.entries(DATA) if run in name and name not in named]
    names = [name for name in others if (data := data_name(name)) and data.run == run]
    _remove_all(storage, [f"{DATA}/{name}" for name in names])


def files_of(commit: Header) -> set[str]:
    """All data files of a version."""
    of_tables = (file for table in commit.tables.values() for file in table.data_files)
    return {*commit.files, *commit.keep, *commit.tables.manifests.values(), *of_tables}


def committed(log: Log, run: str, base: int) -> bool:
    """Whether the version after ``base`` was committed by this run."""
    return log.head() > base >= log.first() - 1 and log.read(base + 1, Header).run == run


def _used(log: Log, versions: Iterable[int]) -> set[str]:
    """The names in ``data/`` that versions use. A data file may lie in a folder of its own."""
    used: set[str] = set()
    for version in versions:
        commit = log.read(version, Header)
        try:
            used.update(path.split("/")[1] for path in files_of(commit))
        except StoreError as error:
            raise _Unknown(error) from error
    return used


def _remove_all(storage: Storage, names: Sequence[str]) -> list[str]:
    """Remove files; those that were there."""
    if storage.at_once == 1 or len(names) < 2:
        return [name for name in names if _remove(storage, name)]
    with ThreadPoolExecutor(storage.at_once) as pool:
        removed = list(pool.map(lambda name: _remove(storage, name), names))
    return [name for name, was_there in zip(names, removed, strict=True) if was_there]


def _remove(storage: Storage, name: str) -> bool:
    """Remove a file or folder; what cannot be removed stays for the next clean-up."""
    try:
        storage.delete(name)
    except FileNotFoundError:
        return False
    except OSError as error:
        _log.warning(
            "%s/%s is not needed any more but cannot be removed: %s", storage.path, name, error
        )
        return False
    return True
