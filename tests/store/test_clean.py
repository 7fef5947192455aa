"""Leases, and clean-up that never takes what somebody needs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from holdfast.model.errors import ConflictError
from holdfast.store import Lease, Store, leases
from holdfast.store.storage import Storage
from tests.store.versions import check_exact, commit, fill, says


def names(store: Store, folder: str = "data") -> set[str]:
    return {f"{folder}/{path.name}" for path in Path(store.path, folder).iterdir()}


def expire(store: Store, lease: Lease) -> None:
    old = time.time() - leases.EXPIRY_S - 60
    os.utime(Path(store.path, "leases", f"{lease.run}.json"), (old, old))


def abandon(store: Store, pid: int | None = None, host: str | None = None) -> str:
    """A run that wrote and died: its lease and its files stay behind."""
    lease = Lease(store.storage, "write")
    lease.take(store.head)
    fill(store, lease)
    Path(store.path, "log", f".tmp-{lease.run}").write_bytes(b"half a commit")
    path = Path(store.path, "leases", f"{lease.run}.json")
    content = json.loads(path.read_text())
    content["pid"] = gone_pid() if pid is None else pid
    content["host"] = host or content["host"]
    path.write_text(json.dumps(content))
    return lease.run


def gone_pid() -> int:
    child = subprocess.Popen([sys.executable, "-S", "-c", ""])
    child.wait()
    return child.pid


def test_a_lease_says_who_is_at_work(store: Store) -> None:
    with store.writing() as lease:
        content = json.loads(Path(store.path, "leases", f"{lease.run}.json").read_text())
        assert content["run"] == lease.run
        assert content["pid"] == os.getpid()
        assert (content["mode"], content["version"]) == ("write", 0)
    assert names(store, "leases") == set()


def test_a_lease_is_kept_fresh(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "HEARTBEAT_S", 0.01)
    with store.writing() as lease:
        expire(store, lease)
        path = Path(store.path, "leases", f"{lease.run}.json")
        while time.time() - path.stat().st_mtime > 60:
            time.sleep(0.01)
        assert [held.alive for held in leases.held(store.storage)] == [True]


def test_only_the_last_versions_rows_stay(store: Store) -> None:
    for _ in range(3):
        commit(store)
    rows = [store.read(version).files[0] for version in (1, 2, 3)]
    assert store.clean() == sorted(rows[:2])
    assert check_exact(store) == 3
    assert store.clean() == []


def test_a_reader_keeps_its_version(store: Store) -> None:
    commit(store)
    with store.reading() as lease:
        assert lease.version == 1
        commit(store)
        commit(store)
        assert store.clean() == [store.read(2).files[0]]
        with store.reading(1) as second:
            assert second.version == 1
    assert store.clean() == [store.read(1).files[0]]


def test_a_reader_that_starts_during_a_commit(store: Store) -> None:
    """A version that becomes old while its lease is being written is not the one leased."""
    commit(store)
    lease = Lease(store.storage, "read")
    heads = iter([1, 2, 2])
    lease.take(lambda: next(heads))
    assert lease.version == 2
    lease.release()


def test_a_reader_that_starts_during_a_clean_up(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The lease comes too late to be found; then its version was the last one until after that."""
    commit(store)
    other = Store(store.path)
    late: list[Lease] = []
    original = leases.held

    def list_then_race(storage: Storage) -> list[leases.Held]:
        found = original(storage)
        lease = Lease(storage, "read")
        lease.take(other.head)
        late.append(lease)
        commit(other)
        return found

    monkeypatch.setattr("holdfast.store.clean.held", list_then_race)
    assert store.clean() == []
    assert late[0].version == 1
    for path in store.read(1).files:
        assert Path(store.file(path)).exists()
    late[0].release()


def test_a_living_writers_files_stay(store: Store) -> None:
    commit(store)
    with store.writing() as lease:
        body = fill(store, lease)
        rival = Store.open(store.path)
        assert rival.clean() == []
        store.publish(body, lease)
    assert check_exact(store) == 2


def test_a_writer_that_fails_takes_its_files_along(store: Store) -> None:
    commit(store)
    before = names(store)

    def fail() -> None:
        with store.writing() as lease:
            assert set(fill(store, lease).files) == names(store) - before
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert names(store) == before
    assert names(store, "leases") == set()


def test_a_dead_run_is_cleaned_away(store: Store) -> None:
    commit(store)
    before = names(store)
    run = abandon(store)
    removed = store.clean()
    assert names(store) == before
    assert names(store, "log") == {"log/000000000001.json", "log/head-000000000001"}
    assert names(store, "leases") == set()
    assert f"log/.tmp-{run}" in removed
    assert len(removed) == 4


def test_a_run_that_died_after_its_commit(store: Store) -> None:
    """What it committed stays; what it also wrote and did not name goes."""
    lease = Lease(store.storage, "write")
    lease.take(store.head)
    store.publish(fill(store, lease), lease)
    stray = store.write(lease.new_path("evidence", "bin"), b"")
    expire(store, lease)
    assert store.clean() == sorted([stray, f"leases/{lease.run}.dead"])
    assert check_exact(store) == 1
    commit(store)
    assert len(store.clean()) == 1


def test_a_run_on_another_host_has_time(store: Store) -> None:
    """Its process id says nothing here, so only its heartbeat counts."""
    commit(store)
    run = abandon(store, host="elsewhere")
    before = names(store)
    assert store.clean() == []
    assert names(store) == before
    old = time.time() - leases.EXPIRY_S - 60
    os.utime(Path(store.path, "leases", f"{run}.json"), (old, old))
    assert len(store.clean()) == 4
    assert check_exact(store) == 1


def test_a_run_that_slept_too_long_commits_nothing(store: Store) -> None:
    commit(store)
    with store.writing() as lease:
        body = fill(store, lease)
        expire(store, lease)
        assert len(Store.open(store.path).clean()) == 3
        with pytest.raises(ConflictError, match="stood still for more than 10 minutes"):
            store.publish(body, lease)
    assert check_exact(store) == 1
    assert commit(store) == 2


def test_a_run_that_wakes_during_a_clean_up(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store)
    with store.writing() as lease:
        body = fill(store, lease)
        expire(store, lease)
        original = leases.bury

        def wake_first(storage: Storage, held: leases.Held) -> str | None:
            lease.confirm()
            return original(storage, held)

        monkeypatch.setattr("holdfast.store.clean.bury", wake_first)
        assert store.clean() == []
        assert store.publish(body, lease) == 2
    assert check_exact(store) == 2


def test_a_clean_up_that_was_cut_short_is_finished(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit(store)
    before = names(store)
    abandon(store)

    def die(storage: Storage, name: str) -> bool:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("holdfast.store.clean._remove", die)
        with pytest.raises(KeyboardInterrupt):
            store.clean()
    assert names(store) > before
    store.clean()
    assert names(store) == before
    assert names(store, "leases") == set()


def test_a_lease_cut_short_by_a_power_failure(store: Store) -> None:
    commit(store)
    path = Path(store.path, "leases", "0123456789ab.json")
    path.write_bytes(b"")
    assert store.clean() == []
    os.utime(path, (0, 0))
    assert store.clean() == ["leases/0123456789ab.dead"]


def test_what_is_not_ours_stays(store: Store) -> None:
    commit(store)
    for name in ("data/notes.txt", "data/rows-1-1.bin", "leases/notes.json", "log/.DS_Store"):
        Path(store.path, name).write_text("mine")
    os.utime(Path(store.path, "leases/notes.json"), (0, 0))
    assert store.clean() == []
    assert check_exact(store) == 1


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_reading_a_directory_that_cannot_be_written(store: Store) -> None:
    commit(store)
    folder = Path(store.path, "leases")
    folder.chmod(0o500)
    try:
        with store.reading() as lease:
            assert says(store.read(lease.version)) == 1
    finally:
        folder.chmod(0o700)


def test_reading_a_full_or_read_only_disk(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    commit(store)

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "makedirs", refuse)
    with store.reading() as lease:
        assert says(store.read(lease.version)) == 1
