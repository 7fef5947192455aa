"""Versions whose content is known from their number, so that any damage shows."""

from __future__ import annotations

from pathlib import Path

from holdfast.model.commits import BatchRecord, Commit, Summary
from holdfast.store import Lease, Store


def content(version: int, kind: str) -> bytes:
    """What a version's file of a kind holds."""
    return f"{kind} of version {version}\n".encode() * 50


def fill(store: Store, lease: Lease, batch_id: str | None = None) -> Commit:
    """Write the files of the lease's version; a commit that names them."""
    version = lease.version + 1
    rows = store.write(lease.new_path("rows", "bin"), content(version, "rows"))
    keys = store.write(lease.new_path("sets", "json"), content(version, "sets"))
    batch = BatchRecord("orders", batch_id, f"digest {version}")
    return Commit(batch=batch, files=(rows, keys), keep=(keys,), changes={"says": version})


def says(commit: Commit | Summary) -> int:
    """The number that a version has by its own words."""
    assert commit.changes is not None
    number: int = commit.changes["says"]
    return number


def commit(store: Store, batch_id: str | None = None) -> int:
    """Add a version."""
    with store.writing() as lease:
        return store.publish(fill(store, lease, batch_id), lease)


def check_exact(store: Store) -> int:
    """The last version is whole: its commit and every file it names are as they were written."""
    for version in store.versions():
        found = store.read(version)
        assert says(found) == found.version == version
        assert found.parent == version - 1
        for path in found.keep[:1]:
            assert Path(store.file(path)).read_bytes() == content(version, "sets")
    head = store.head()
    if head:
        rows, keys = store.read().files[:2]
        assert Path(store.file(rows)).read_bytes() == content(head, "rows")
        assert Path(store.file(keys)).read_bytes() == content(head, "sets")
    return head


def hints(path: str | Path) -> set[int]:
    """The versions that head hints name."""
    return {int(each.name.removeprefix("head-")) for each in Path(path, "log").glob("head-*")}
