"""Versions, writers, leases and clean-up on an object store, without links and locks."""

from __future__ import annotations

import json
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.commits import Commit
from holdfast.model.errors import ConflictError, SetupError, StoreError
from holdfast.runtime import objects
from holdfast.store import Lease, Store, batches, leases
from holdfast.store.objects import Objects
from tests.limits import varied
from tests.store.versions import commit, content, fill, says


def check_exact(store: Store) -> int:
    """Every version says what it should, and the files of the last one are as they were written."""
    for version in store.versions():
        found = store.read(version)
        assert says(found) == found.version == version
        assert store.content(found.keep[0]) == content(version, "sets")
    head = store.head()
    if head:
        assert store.content(store.read().files[0]) == content(head, "rows")
    return head


def expired(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leases count as old at once; but the processes of this host are alive."""
    monkeypatch.setattr(leases, "EXPIRY_S", -1.0)


def names(store: Store, folder: str = "data") -> set[str]:
    return {f"{folder}/{name}" for name in store.storage.entries(folder)}


def test_versions_follow_each_other(store: Store, address: str) -> None:
    assert store.path == address
    assert store.head() == 0
    assert [commit(store) for _ in range(3)] == [1, 2, 3]
    again = Store.open(address)
    assert again.versions() == [1, 2, 3]
    assert check_exact(again) == 3
    assert [says(each) for each in again.summaries()] == [1, 2, 3]
    assert store.sizes()["rows"] == len(content(3, "rows"))
    assert store.sizes()["log"] > 0
    assert names(store, "leases") == set()


def test_a_missing_last_commit_is_noticed(store: Store, address: str) -> None:
    """By the name of an object that the listing of the log has anyhow."""
    for _ in range(3):
        commit(store)
    assert names(store, "log") == {
        *(f"log/{version:012}.json" for version in (1, 2, 3)), "log/head-000000000003",
    }  # fmt: skip
    store.storage.delete("log/000000000003.json")
    with pytest.raises(StoreError, match=r"log/0+3\.json: this commit is missing.* remove .*head-"):
        Store.open(address)
    store.storage.delete("log/head-000000000003")
    assert commit(Store.open(address)) == 3


def test_batches_are_found_however_long_the_log_is(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batches, "SPAN", 3)
    for number in range(1, 8):
        commit(store, f"batch {number}")
    again = Store.open(store.path)
    for number in range(1, 8):
        found = again.find_batch("orders", f"batch {number}")
        assert found is not None
        assert found.version == number
    assert again.find_batch("orders", "another") is None


def test_create_and_open_say_what_is_there(address: str) -> None:
    with pytest.raises(StoreError, match=rf"{address}: this directory is not a profile"):
        Store.open(address)
    commit(Store.create(address))
    with pytest.raises(StoreError, match=rf"{address}: there is a profile already"):
        Store.create(address)
    objects.put(f"{address}-other/notes.txt", b"mine")
    with pytest.raises(StoreError, match=r"not empty and not a profile \(it holds 'notes.txt'\)"):
        Store.create(f"{address}-other")


def test_names_of_addresses(memory: str) -> None:
    """With one slash, as a path object has it, with one at the end, and as Spark calls it."""
    commit(Store.create(Path(memory)))
    for name in (memory, f"{memory}/", memory.replace("s3:", "S3a:")):
        assert Store.open(name).path == memory


def test_two_writers_one_wins(store: Store) -> None:
    commit(store)
    rival = Store.open(store.path)
    with store.writing() as ours, rival.writing() as theirs:
        our_body, their_body = fill(store, ours), fill(rival, theirs)
        assert rival.publish(their_body, theirs) == 2
        with pytest.raises(ConflictError, match=r"committed version 2 first; nothing of yours"):
            store.publish(our_body, ours)
    assert check_exact(store) == 2
    assert store.read().run == theirs.run
    assert not [name for name in names(store) if ours.run in name]
    assert commit(store) == 3


def test_the_put_itself_decides(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rival commits after our last look at the log."""
    with store.writing() as lease:
        body = fill(store, lease)
        commit(Store(store.path))
        with monkeypatch.context() as patch:
            patch.setattr(store, "head", lambda: 0)
            with pytest.raises(ConflictError, match="committed version 1 first"):
                store.publish(body, lease)
    assert check_exact(store) == 1


def test_many_writers_at_once(store: Store) -> None:
    """Every version has one winner, and every loser is told."""
    won: list[int] = []
    lost: list[int] = []

    def work() -> None:
        mine = Store(store.path)
        for _ in range(6):
            try:
                won.append(commit(mine))
            except ConflictError:
                lost.append(1)
            mine.clean()

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(won) == list(range(1, len(won) + 1))
    assert len(won) + len(lost) == 24
    assert check_exact(Store.open(store.path)) == len(won)


def test_a_reader_keeps_its_version(store: Store) -> None:
    commit(store)
    with store.reading() as lease:
        assert lease.version == 1
        commit(store)
        commit(store)
        assert store.clean() == [store.read(2).files[0]]
    assert store.clean() == [store.read(1).files[0]]


def abandon(store: Store, change: Callable[[dict[str, Any]], None] = lambda _: None) -> Lease:
    """A run that wrote and died: its lease and its files stay behind."""
    dead = Store(store.path)
    lease = Lease(dead.storage, "write")
    lease.take(dead.head)
    fill(dead, lease)
    dead.storage.settle((), ())
    name = f"leases/{lease.run}.json"
    said = json.loads(dead.storage.read(name))
    change(said)
    objects.put(f"{store.path}/{name}", json.dumps(said).encode())
    return lease


def test_a_dead_run_is_cleaned_away(store: Store) -> None:
    commit(store)
    before = names(store)
    lease = abandon(store, lambda said: said.update(pid=2**22 + 1))
    removed = store.clean()
    assert names(store) == before
    assert names(store, "leases") == set()
    assert f"leases/{lease.run}.json" in removed
    assert len(removed) == 3


def test_a_run_on_another_host_has_time(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store)
    before = names(store)
    abandon(store, lambda said: said.update(host="elsewhere"))
    assert store.clean() == []
    assert len(names(store)) == len(before) + 2
    expired(monkeypatch)
    assert len(store.clean()) == 3
    assert names(store) == before


def test_a_run_that_slept_too_long_commits_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store)
    expired(monkeypatch)
    with store.writing() as lease:
        body = fill(store, lease)
        store.storage.settle((), ())
        assert len(Store.open(store.path).clean()) == 3
        with pytest.raises(ConflictError, match="stood still for more than"):
            store.publish(body, lease)
    assert check_exact(store) == 1
    assert commit(store) == 2


def test_a_run_that_wakes_during_a_clean_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store)
    expired(monkeypatch)
    with store.writing() as lease:
        body = fill(store, lease)
        original = leases.bury

        def wake_first(storage: Objects, held: leases.Held) -> str | None:
            lease.confirm()
            return original(storage, held)

        monkeypatch.setattr("holdfast.store.clean.bury", wake_first)
        assert Store.open(store.path).clean() == []
        assert store.publish(body, lease) == 2
    assert check_exact(store) == 2


def test_a_clean_up_that_was_cut_short_is_finished(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store)
    before = names(store)
    abandon(store, lambda said: said.update(pid=2**22 + 1))

    def die(*_: object) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("holdfast.store.clean._remove", die)
        with pytest.raises(KeyboardInterrupt):
            store.clean()
    assert names(store) > before
    Store.open(store.path).clean()
    assert names(store) == before
    assert names(store, "leases") == set()


def test_a_lease_is_kept_fresh(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT_S", 0.01)
    with store.writing() as lease:
        name = f"leases/{lease.run}.json"
        first = store.storage.read(name)
        while store.storage.read(name) == first:
            pass
        lease.confirm()
        said = json.loads(store.storage.read(name))
        assert (said["run"], said["pid"], said["mode"]) == (lease.run, os.getpid(), "write")


def test_what_another_first_run_uses_stays(address: str) -> None:
    """Two first runs at one address: one fails, before or while the other one writes."""
    for number, late in enumerate((False, True)):
        root = f"{address}/{number}"
        with Store.creating(root) as other:
            if late:
                with pytest.raises(ValueError, match="failed"), Store.creating(root):
                    raise ValueError("failed")
            with other.writing() as lease:
                if not late:
                    with pytest.raises(ValueError, match="failed"), Store.creating(root):
                        raise ValueError("failed")
                other.publish(Commit(), lease)
        assert Store.open(root).head() == 1


def test_what_has_no_version_in_the_end_is_not_left(address: str) -> None:
    with pytest.raises(ValueError, match="failed"), Store.creating(address):
        raise ValueError("failed")
    assert Objects(address).names() == []


def test_what_versions_no_longer_have_is_removed_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A store does not say whether there was something to remove; so it is asked before."""
    varied(monkeypatch, swept_tables=-1)
    for _ in range(4):
        commit(store)
        store.clean()
    rows = {name for name in names(store) if "/rows-" in name}
    assert rows == {store.read().files[0]}
    deleted: list[str] = []
    monkeypatch.setattr(objects, "delete", deleted.append)
    assert store.clean() == []
    assert deleted == []


def test_a_missing_file_is_named(store: Store, cache: Path) -> None:
    commit(store)
    gone = store.read().files[0]
    store.storage.delete(gone)
    for copy in cache.glob("*-rows-*"):
        copy.unlink()
    with pytest.raises(StoreError, match=rf"{store.path}/{gone}: this data file is missing"):
        store.content(gone)


@pytest.mark.parametrize(
    "address",
    ["s3://bucket/p", "s3a://b/p", "gs://bucket/p", "abfss://box@account.dfs.core.windows.net/p"],
)
def test_every_kind_of_store_can_be_addressed(address: str) -> None:
    """As far as that shows without one: the library takes the address."""
    there = objects.address(address)
    assert there is not None
    assert there.key == "p"
    assert objects._store.__wrapped__(there.bucket, 0, 1.0, ()) is not None


def test_without_the_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "obstore", None)
    with pytest.raises(SetupError, match=r"needs obstore.*pip install 'holdfast\[object\]'"):
        Store.create("s3://bucket/p")
