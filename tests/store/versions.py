"""Versions whose content is known from their number, so that any damage shows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from holdfast.store import Lease, Store


def content(version: int, kind: str) -> bytes:
    """What a version's file of a kind holds."""
    return f"{kind} of version {version}\n".encode() * 50


def fill(store: Store, lease: Lease, batch_id: str | None = None) -> dict[str, Any]:
    """Write the files of the lease's version; a body that names them."""
    version = lease.version + 1
    rows = store.write(lease.new_path("rows", "bin"), content(version, "rows"))
    keys = store.write(lease.new_path("sets", "json"), content(version, "sets"))
    batch = {"table": "orders", "id": batch_id, "digest": f"digest {version}"}
    return {"batch": batch, "files": [rows, keys], "keep": [keys], "says": version}


def commit(store: Store, batch_id: str | None = None) -> int:
    """Add a version."""
    with store.writing() as lease:
        return store.publish(fill(store, lease, batch_id), lease)


def check_exact(store: Store) -> int:
    """The last version is whole: its commit and every file it names are as they were written."""
    for version in store.versions():
        body = store.read(version)
        assert body["says"] == body["version"] == version
        assert body["parent"] == version - 1
        for path in body["keep"][:1]:
            assert Path(store.file(path)).read_bytes() == content(version, "sets")
    head = store.head()
    if head:
        rows, keys = store.read()["files"][:2]
        assert Path(store.file(rows)).read_bytes() == content(head, "rows")
        assert Path(store.file(keys)).read_bytes() == content(head, "sets")
    return head
