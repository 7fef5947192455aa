"""Finding an applied batch: the blocks agree with the log, and few files are read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from holdfast.model.commits import BatchRecord, Commit
from holdfast.model.errors import BatchError, StoreError
from holdfast.store import Store, batches
from holdfast.store.log import Log
from tests.store.versions import commit


@pytest.fixture
def short_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SPAN", 4)
    monkeypatch.setattr(batches, "_GROWTH", 2)


def test_find_batch(store: Store) -> None:
    assert store.find_batch("orders", "a") is None
    commit(store, "a")
    found = store.find_batch("orders", "a")
    assert found is not None
    assert (found.version, found.batch) == (1, BatchRecord("orders", "a", "digest 1"))
    assert store.find_batch("people", "a") is None


@pytest.mark.usefixtures("short_blocks")
def test_a_batch_of_several_tables_is_found_for_each(store: Store) -> None:
    together = BatchRecord("lines", "a", "digest 1", ("orders",))
    with store.writing() as lease:
        store.publish(Commit(batch=together), lease)
    # From the log, and from a block.
    for last in (1, 4):
        for table in ("lines", "orders"):
            found = store.find_batch(table, "a")
            assert found is not None
            assert (found.version, found.batch) == (1, together)
        assert store.find_batch("people", "a") is None
        while store.head() < last + 3:
            commit(store, str(store.head()))


def test_a_reused_id_with_other_content(store: Store) -> None:
    commit(store, "2026-11-15")
    assert store.find_batch("orders", "2026-11-15", digest="digest 1")
    with pytest.raises(BatchError, match=r"table orders: batch id '2026-11-15'.*version 1"):
        store.find_batch("orders", "2026-11-15", digest="other")


@pytest.mark.usefixtures("short_blocks")
def test_blocks_know_what_the_log_knows(store: Store) -> None:
    known = {}
    for version in range(1, 71):
        # Ids that are hard to tell apart in a search for bytes, and batches without one.
        batch_id = None if version % 7 == 0 else f'{version % 60}",\n["{version}'
        commit(store, batch_id)
        known[batch_id] = version
        if version % 5 == 0 or version % 16 < 2:
            fresh = Store.open(store.path)
            for candidate, expected in known.items():
                if candidate is not None:
                    found = fresh.find_batch("orders", candidate)
                    assert found is not None
                    assert found.version == expected
                    assert found.batch is not None
                    assert found.batch.digest == f"digest {expected}"
            for absent in ("", "6", '6"', "None", "null", '6",\n["6"'):
                assert fresh.find_batch("orders", absent) is None
    assert store.clean() != []
    assert Store.open(store.path).find_batch("orders", '1",\n["1') is not None


@pytest.mark.usefixtures("short_blocks")
def test_few_commits_are_read(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for version in range(1, 64):
        commit(store, str(version))
    read: list[int] = []
    original = Log.read

    def noted(log: Log, version: int, kind: type[Any]) -> Any:
        read.append(version)
        return original(log, version, kind)

    monkeypatch.setattr(Log, "read", noted)
    assert store.find_batch("orders", "absent") is None
    assert read == [63, 62, 61, 60, 56, 48, 32]


@pytest.mark.usefixtures("short_blocks")
def test_a_damaged_block_is_noticed(store: Store) -> None:
    for version in range(1, 5):
        commit(store, str(version))
    block = store.read().batches
    assert block is not None
    path = Path(store.file(block.file))
    raw = path.read_bytes()
    for damaged in (raw[:-3], raw.replace(b'"2"', b'"3"'), b""):
        path.write_bytes(damaged)
        with pytest.raises(StoreError, match=rf"{path.name}: this list of applied batches"):
            store.find_batch("orders", "x")
    path.unlink()
    with pytest.raises(StoreError, match="damaged: No such file"):
        store.find_batch("orders", "x")
