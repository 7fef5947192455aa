"""Readers beside writers: a version that is being read stays, or the newer one is read."""

from __future__ import annotations

import errno
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from holdfast import Profile, flow
from holdfast.model.commits import Commit
from holdfast.model.constraints import FunctionalDependency
from holdfast.model.errors import ConflictError, StoreError
from holdfast.model.inclusion_dependencies import Attribute
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.report.snapshot import agree_sets
from holdfast.runtime.runner import InProcess
from holdfast.store import Store
from holdfast.store.disk import Disk
from tests.flow.tables import BIGINT, Shop, row_input
from tests.limits import varied
from tests.strategies import Rows

ROWS: Rows = [(i, i % 5, i % 3) for i in range(30)]
COUNTED = Options(evidence="counted")
PAIR = (Attribute("t", "c0"), Attribute("t", "c1"))


# Files that the next version needs, too, would still be there; and tasks that answer a question
# leave files for each other.
LIMITS = {"difference_share": 0, "undivided_rows": 0}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    with pytest.MonkeyPatch.context() as patch:
        varied(patch, **LIMITS)
        shop = Shop(tmp_path_factory.mktemp("readers") / "p", 3, ROWS, COUNTED)
        shop.apply(inserts=[(40, 1, 1)], deletes=ROWS[:2])
    return shop


@pytest.fixture
def shop(made: Shop, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shop:
    varied(monkeypatch, **LIMITS)
    return made.copied(tmp_path / "p")


def check(store: Store) -> object:
    batch = flow.Batch(inserts=row_input(3, [(0, 0, 0)]), deletes=row_input(3, ROWS[5:6]))

    def run() -> Any:
        return flow.apply(InProcess(), store, "t", batch, no_progress, dry_run=True)

    return store.retried(run).rows


def verify(store: Store) -> object:
    return store.retried(lambda: flow.verify(InProcess(), store, no_progress)).equal


def missing(store: Store) -> object:
    return store.retried(lambda: flow.missing_values(InProcess(), store, *PAIR, None, no_progress))


def explained(store: Store) -> object:
    rule = FunctionalDependency("t", ("c1",), "c2")
    return store.retried(lambda: flow.explain(InProcess, store, rule, 3, no_progress)).violations


READS: dict[str, Callable[[Store], object]] = {
    "snapshot": lambda store: Profile(store).snapshot().tables["t"].rows,
    "keys": lambda store: Profile(store).keys("t", max_error=0.5),
    "agree_sets": lambda store: Profile(store).agree_sets("t"),
    "agree_sets at": lambda store: Profile(store).agree_sets("t", at=1),
    "clusters": lambda store: Profile(store).clusters(),
    "error": lambda store: Profile(store).error("t: c1 -> c2"),
    "explain": explained,
    "diff": lambda store: Profile(store).diff(1, store.head()),
    "sizes": lambda store: sorted(Profile(store).sizes()),
    "missing values": missing,
    "check": check,
    "verify": verify,
}


def race(
    store: Store, monkeypatch: pytest.MonkeyPatch, times: int, write: Callable[[], object]
) -> list[int]:
    """A writer commits and cleans up as soon as the commit of the last version was read; the
    versions that were."""
    real = store.read
    seen: list[Any] = []

    def read(version: int | None = None) -> Commit:
        commit = real(version)
        if commit.version == store.head() and len(seen) < times:
            seen.append(commit.version)
            write()
        return commit

    monkeypatch.setattr(store, "read", read)
    return seen


def changing(path: str) -> Callable[[], object]:
    """Batches that change every file of a profile, by another writer."""
    other = Shop.__new__(Shop)
    other.kinds, other.columns, other.options = [BIGINT] * 3, 3, COUNTED
    other.runner, other.store = InProcess(), Store.open(path)
    step = iter(range(100))

    def write() -> None:
        k = next(step)
        other.apply(inserts=[(100 + k, k % 4, 9 + k)], deletes=[ROWS[10 + k]])

    return write


def refuse_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """The directory is read-only, as far as a lease is concerned."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Disk, "hold", refused)


def changing_alone(path: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[], object]:
    """The same, and nobody else can write a lease."""
    write, hold = changing(path), Disk.hold
    refuse_leases(monkeypatch)

    def alone() -> None:
        with pytest.MonkeyPatch.context() as allowed:
            allowed.setattr(Disk, "hold", hold)
            write()

    return alone


@pytest.mark.parametrize("name", READS)
def test_a_commit_with_clean_up_in_between(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """The lease keeps the files that are about to be opened."""
    store = Store.open(shop.store.path)
    seen = race(store, monkeypatch, 1, changing(store.path))
    READS[name](store)
    assert seen == [2]
    assert not list(Path(store.path, "leases").iterdir())


@pytest.mark.parametrize("name", READS)
def test_a_read_only_directory(shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Nothing is written there; the answer is the same."""
    store = Store.open(shop.store.path)
    expected = READS[name](store)
    before = {path: path.stat().st_mtime_ns for path in Path(store.path).rglob("*")}
    refuse_leases(monkeypatch)
    assert READS[name](store) == expected
    assert {path: path.stat().st_mtime_ns for path in Path(store.path).rglob("*")} == before


@pytest.mark.slow
@pytest.mark.parametrize("name", READS)
def test_a_race_without_a_lease(shop: Shop, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    """Files go while the directory is read: the newer version is read instead."""
    store = Store.open(shop.store.path)
    seen = race(store, monkeypatch, 2, changing_alone(store.path, monkeypatch))
    READS[name](store)
    assert seen[:1] == [2]


def test_it_is_tried_only_so_often(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("holdfast.store.directory._RETRIES", 3)
    store = Store.open(shop.store.path)
    seen = race(store, monkeypatch, 100, changing_alone(store.path, monkeypatch))
    with pytest.raises(ConflictError, match="committed faster than this profile can be read"):
        agree_sets(store, "t")
    assert seen == [2, 3, 4]


def test_a_file_that_is_just_missing(shop: Shop) -> None:
    """Nobody committed anything: the file is lost."""
    (keys,) = [name for name in shop.store.files() if name.startswith("data/sets-")]
    Path(shop.store.file(keys)).unlink()
    with pytest.raises(StoreError, match=f"{keys}: this data file is missing.*holdfast profile"):
        Profile(shop.store).snapshot()


def test_a_check_of_a_read_only_profile_works_in_a_temporary_folder(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    used: list[str] = []
    sharing = InProcess.sharing

    def noted(self: InProcess, prefix: str) -> Any:
        used.append(prefix)
        return sharing(self, prefix)

    monkeypatch.setattr(InProcess, "sharing", noted)
    refuse_leases(monkeypatch)
    check(shop.store)
    (prefix,) = used
    assert Path(prefix).parent.name.startswith("holdfast-")
    assert Path(prefix).parent.parent == tmp_path
    assert [path.name for path in tmp_path.iterdir()] == ["p"], "it is removed again"
    with pytest.raises(StoreError, match="cannot be written"):
        shop.apply(inserts=[(50, 0, 0)])


def test_a_full_disk_is_not_worked_around(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Disk, "hold", full)
    with pytest.raises(StoreError, match="the disk is full"):
        check(shop.store)
    assert Profile(shop.store).snapshot().version == 2
