"""Dying at any step, a full disk at any step: the last version stays readable and exact."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast.model.errors import ConflictError, StoreError, disk_errors
from holdfast.store import Store, batches, files
from tests.store.versions import check_exact, commit, fill, hints

STEPS = (
    "open", "write", "fsync", "close", "link", "replace", "rename", "unlink", "mkdir", "utime",
)  # fmt: skip


class Death(BaseException):
    """The process is killed: nothing that comes after has an effect."""


class Faults:
    """Counts the steps that reach the operating system and fails at one of them."""

    def __init__(self, patch: pytest.MonkeyPatch, root: Path, kill: bool) -> None:
        self.root = str(root)
        self.count = 0
        self.fail_at = -1
        self.kill = kill
        self.lock = threading.Lock()
        self.descriptors: set[int] = set()
        for name in STEPS:
            patch.setattr(os, name, self.wrap(name, getattr(os, name)))

    def wrap(self, name: str, original: Callable[..., Any]) -> Callable[..., Any]:
        def step(target: Any, *rest: Any, **options: Any) -> Any:
            ours = (
                target in self.descriptors
                if isinstance(target, int)
                else str(target).startswith(self.root)
            )
            if not ours:
                return original(target, *rest, **options)
            with self.lock:
                self.count += 1
                dead = self.count > self.fail_at and self.kill
                failing = self.fail_at >= 0 and (self.count == self.fail_at + 1 or dead)
            if name == "close":
                self.descriptors.discard(target)
                original(target)
                if failing:
                    self.fail()
                return None
            if failing:
                if name == "write" and not self.kill:
                    original(target, bytes(rest[0][: len(rest[0]) // 2]))
                self.fail()
            result = original(target, *rest, **options)
            if name == "open":
                self.descriptors.add(result)
            return result

        return step

    def fail(self) -> None:
        if self.kill:
            raise Death
        raise OSError(errno.ENOSPC, "No space left on device")


def attempt(root: Path, fail_at: int, kill: bool) -> tuple[int, BaseException | None]:
    """Make versions 1 and 2, then fail at one step of version 3; the step count and the error."""
    store = Store.create(root)
    commit(store, "one")
    commit(store, "two")
    error: BaseException | None = None
    with pytest.MonkeyPatch.context() as patch:
        faults = Faults(patch, root, kill)
        faults.fail_at = fail_at
        try:
            commit(Store.open(root), "three")
        except (Death, StoreError, OSError) as caught:
            error = caught
        return faults.count, error


@pytest.mark.parametrize("span", [256, 3])
def test_killed_at_any_step(tmp_path: Path, span: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "SPAN", span)
    steps, error = attempt(tmp_path / "whole", -1, kill=True)
    assert error is None
    assert steps > 20
    seen = set()
    for step in range(steps):
        root = tmp_path / f"step{step}"
        _, error = attempt(root, step, kill=True)
        assert isinstance(error, Death)
        store = Store.open(root)
        head = check_exact(store)
        seen.add(head)
        found = store.find_batch("orders", "three")
        assert (found is None) == (head == 2)
        # Then life goes on: clean-up leaves nothing behind, the next version is fine.
        for lease in Path(root, "leases").iterdir():
            os.utime(lease, (0, 0))
        store.clean()
        assert check_exact(store) == head
        named = {name for version in store.versions() for name in store.read(version).keep}
        named.update(store.read().files)
        assert {f"data/{path.name}" for path in (root / "data").iterdir()} == named
        assert not list((root / "leases").iterdir())
        assert len(list((root / "log").glob("*.json"))) == head
        assert max(hints(root)) <= head  # a hint that is behind says nothing
        assert len(list((root / "log").iterdir())) == head + len(hints(root))
        assert commit(store) == head + 1
        assert hints(root) == {head + 1}
        assert check_exact(store) == head + 1
    assert seen == {2, 3}


def test_a_full_disk_at_any_step(tmp_path: Path) -> None:
    steps, _ = attempt(tmp_path / "whole", -1, kill=False)
    failures = 0
    for step in range(steps):
        root = tmp_path / f"step{step}"
        _, error = attempt(root, step, kill=False)
        store = Store.open(root)
        head = check_exact(store)
        if error is not None and head == 2:
            failures += 1
            assert isinstance(error, StoreError), step
            assert "nothing was committed" in str(error)
            assert "disk is full" in str(error)
        else:
            # Only tidying up failed, or reading at the end; the version stands.
            assert head == 3, step
        store.clean()
        assert commit(store) == head + 1
        assert check_exact(store) == head + 1
    assert failures > 10


def test_killed_while_creating(tmp_path: Path) -> None:
    for step in range(100):
        root = tmp_path / f"step{step}"
        with pytest.MonkeyPatch.context() as patch:
            faults = Faults(patch, root, kill=True)
            faults.fail_at = step
            try:
                Store.create(root)
                finished = True
            except Death:
                finished = False
        store = Store.create(root)
        assert commit(store) == 1
        assert check_exact(store) == 1
        if finished:
            break
    assert step > 5


def test_files_are_flushed_before_the_commit_and_names_too(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a power failure may take was never named by a visible commit."""
    events: list[tuple[str, str]] = []
    real_fsync, real_link = os.fsync, os.link

    def fsync(descriptor: int) -> None:
        real_fsync(descriptor)
        events.append(("fsync", _path_of(descriptor, store.path)))

    def link(source: str, target: str) -> None:
        real_link(source, target)
        events.append(("link", os.path.relpath(target, store.path)))

    monkeypatch.setattr(os, "fsync", fsync)
    monkeypatch.setattr(os, "link", link)
    with store.writing() as lease:
        body = fill(store, lease)
        store.publish(body, lease)
    linked = events.index(("link", "log/000000000001.json"))
    before = [path for event, path in events[:linked]]
    assert set(before[:2]) == set(body.files)
    assert before[2:] == ["data", f"log/.tmp-{lease.run}"]
    assert events[linked + 1 :] == [("fsync", "log")]


def _path_of(descriptor: int, root: str) -> str:
    wanted = os.fstat(descriptor)
    found = [path for path in Path(root).rglob("*") if os.path.samestat(wanted, path.stat())]
    return str(found[0].relative_to(root))


WRITER = """
import sys
from holdfast.store import Store
from tests.store.versions import commit
store = Store.open(sys.argv[1])
while True:
    sys.stdout.write(f"{commit(store)}\\n")
    sys.stdout.flush()
    store.clean()
"""


def writer(root: str) -> subprocess.Popen[str]:
    here = Path(__file__).parents[2]
    paths = os.pathsep.join([str(here), str(Path(files.__file__).parents[2])])
    return subprocess.Popen(
        [sys.executable, "-c", WRITER, root],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": paths},
    )


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.0, 0.003, 0.011])
def test_a_killed_process(store: Store, delay: float) -> None:
    commit(store)
    child = writer(store.path)
    assert child.stdout is not None
    told = [int(child.stdout.readline()) for _ in range(3)]
    time.sleep(delay)
    child.send_signal(signal.SIGKILL)
    told += [int(line) for line in child.stdout.read().split()]
    child.wait()
    child.stdout.close()
    after = Store.open(store.path)
    head = check_exact(after)
    assert told == list(range(2, told[-1] + 1))
    assert head - told[-1] in (0, 1)
    after.clean()
    # A lease that was just being written says nothing yet; it goes when it is old.
    assert not [path for path in Path(store.path, "leases").iterdir() if path.stat().st_size]
    assert commit(after) == head + 1
    assert check_exact(after) == head + 1


@pytest.mark.parametrize("links", [True, False])
def test_many_writers_at_once(store: Store, links: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every version has one winner, and every loser is told."""
    if not links:
        monkeypatch.setattr(os, "link", _no_links)
    won: list[int] = []
    lost: list[int] = []

    def work() -> None:
        mine = Store(store.path)
        for _ in range(12):
            try:
                won.append(commit(mine))
            except ConflictError:
                lost.append(1)
            mine.clean()

    def look() -> None:
        while not ended.is_set():
            try:
                Store(store.path).versions()
            except StoreError as error:
                wrong.append(error)

    ended, wrong = threading.Event(), list[StoreError]()
    looking = threading.Thread(target=look)
    looking.start()
    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ended.set()
    looking.join()
    assert not wrong, "a reader beside writers takes no commit for missing"
    assert sorted(won) == list(range(1, len(won) + 1))
    assert len(won) + len(lost) == 48
    assert check_exact(Store.open(store.path)) == len(won)
    assert max(hints(store.path)) <= len(won)


def _no_links(*_: object) -> None:
    raise OSError(errno.EPERM, "Operation not permitted")


def test_a_file_system_without_links(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "link", _no_links)
    commit(store)
    with store.writing() as lease:
        body = fill(store, lease)
        commit(Store(store.path))
        with monkeypatch.context() as patch:
            patch.setattr(store, "head", lambda: 1)
            with pytest.raises(ConflictError, match="committed version 2 first"):
                store.publish(body, lease)
    assert check_exact(store) == 2


def test_a_file_system_without_links_and_locks(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_locks(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(os, "link", _no_links)
    monkeypatch.setattr("holdfast.store.files.fcntl.flock", no_locks)
    with pytest.raises(StoreError, match="neither hard links nor locks"):
        commit(store)
    assert store.head() == 0


def test_a_link_that_nfs_reports_twice(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise FileExistsError(errno.EEXIST, "File exists")

    monkeypatch.setattr(os, "link", link)
    assert commit(store) == 1
    assert check_exact(store) == 1


def test_disk_errors_name_the_file() -> None:
    with (
        pytest.raises(StoreError, match=r"/p: the disk is full.*nothing was committed"),
        disk_errors("/p"),
    ):
        raise OSError(errno.EDQUOT, "Quota exceeded")
    with (
        pytest.raises(StoreError, match=r"/q: cannot be written \(Input/output error\)"),
        disk_errors("/p"),
    ):
        raise OSError(errno.EIO, "Input/output error", "/q")


def test_interrupted_right_after_the_commit(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The writer does not know that it has committed; its files must not be taken for leftovers."""
    real = os.link

    def link(source: str, target: str) -> None:
        real(source, target)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(os, "link", link)
        with pytest.raises(KeyboardInterrupt):
            commit(store)
    assert check_exact(store) == 1
    store.clean()
    assert check_exact(store) == 1
