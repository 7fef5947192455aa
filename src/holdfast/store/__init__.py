"""The profile directory: its files, its commit log and its leases.

Data files never change, and a version is one commit file that names them. So a reader sees a
version whole or not at all, and a crash leaves only files that nobody names.

    storage.py     where files lie: read, write, create if nobody was first, list, delete
    disk.py        that on a file system
    objects.py     that on an object store
    files.py       names of data files, flushing, publishing under a name that must be free
    log.py         commits: checksummed JSON, numbered without gaps
    batches.py     has this batch been applied? answered without reading the whole log
    leases.py      who is at work, so that nobody's files are cleaned away
    clean.py       removes what no version and nobody at work needs
    quarantine.py  files of quarantined rows, which count once their version is committed
    stops.py       why feeds stopped, which is no part of a version
    directory.py   Store: all of it behind one object
    codecs.py      how arrays and sets of columns are stored
    differences.py what a version changed of them
"""

from __future__ import annotations

from holdfast.store.directory import (
    CONCEALED,
    EXPIRED,
    FOLLOWING,
    FORMAT,
    GROUPED,
    Store,
    local_path,
)
from holdfast.store.files import KEPT_KINDS
from holdfast.store.leases import Lease

__all__ = [
    "CONCEALED",
    "EXPIRED",
    "FOLLOWING",
    "FORMAT",
    "GROUPED",
    "KEPT_KINDS",
    "Lease",
    "Store",
    "local_path",
]
