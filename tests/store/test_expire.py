"""Old versions expire, and what only they need goes; the others are as they were."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.commits import Commit
from holdfast.model.errors import InputError, StoreError
from holdfast.model.keeping import Keeping
from holdfast.model.options import Options
from holdfast.report.snapshot import snapshot
from holdfast.report.versions import entries
from holdfast.store import EXPIRED, FORMAT, Store, batches
from holdfast.store.clean import files_of
from holdfast.store.storage import Storage
from tests.flow.batches import batches as changes
from tests.flow.tables import Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.formats.test_formats import format_of
from tests.strategies import Rows, rows_of

ROWS: Rows = [(n, n % 3) for n in range(6)]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A profile of six versions."""
    with small_limits():
        shop = Shop(tmp_path / "p", 2, ROWS, Options(kinds=("keys", "fds", "inds")))
        for number in range(5):
            shop.apply(inserts=[(10 + number, number)], batch_id=f"b{number}")
        yield shop


def says(store: Store, version: int) -> tuple[Any, ...]:
    table = snapshot(store, version).tables["t"]
    return table.rows, tuple(map(str, table.keys)), tuple(map(str, table.non_keys))


def size(store: Store) -> int:
    return sum(path.stat().st_size for path in Path(store.path).rglob("*") if path.is_file())


def assert_nothing_is_left_over(store: Store) -> None:
    needed = {file for version in store.versions() for file in kept(store.read(version))}
    needed |= store.files()
    there = {f"data/{path.name}" for path in Path(store.path, "data").iterdir()}
    assert there == needed
    commits = sorted(path.name for path in Path(store.path, "log").glob("*.json"))
    assert commits == [f"{version:012d}.json" for version in store.versions()]


def kept(commit: Commit) -> set[str]:
    """The files that stay as long as the version does."""
    from holdfast.store.files import is_kept

    return {file for file in files_of(commit) if is_kept(file)}


@law(25)
@given(data=st.data())
def test_what_is_left_says_what_it_said(data: st.DataObject) -> None:
    limits = data.draw(LIMITS) | {"swept_tables": data.draw(st.sampled_from([16, 0]))}
    with folder() as path, small_limits(**limits):
        rows = data.draw(rows_of(3, 8))
        kinds = data.draw(st.sampled_from([("keys", "inds"), ("keys", "fds", "inds")]))
        shop = Shop(Path(path) / "p", 3, rows, Options(kinds=kinds, max_arity=2))
        said = {1: says(shop.store, 1)}
        for _ in range(data.draw(st.integers(1, 6))):
            change = data.draw(changes(3, rows))
            version = shop.apply(**change.batch).version
            rows = change.after
            said[version] = says(shop.store, version)
            if data.draw(st.booleans()):
                keep = data.draw(st.integers(1, 4))
                before = shop.store.first()
                first = shop.store.expire(Keeping(keep))
                assert first == max(before, version - keep + 1)
                # Somebody who comes anew sees the same.
                shop.store = Store.open(shop.store.path)
                assert shop.store.versions() == list(range(first, version + 1))
                assert_nothing_is_left_over(shop.store)
            for old in shop.store.versions():
                assert says(shop.store, old) == said[old]
        shop.assert_exact(rows)
        assert shop.verify().equal


def test_the_history_says_from_which_version_on_it_is_there(shop: Shop) -> None:
    assert format_of(shop) < EXPIRED
    assert shop.store.expire(Keeping(2)) == 5
    assert format_of(shop) == EXPIRED
    assert [entry.version for entry in entries(shop.store)] == [5, 6]
    with pytest.raises(StoreError, match=r"no version 4 any more: it expired; .* versions 5 to 6"):
        shop.store.read(4)
    with pytest.raises(StoreError, match="there is no version 7; the profile has versions 5 to 6"):
        shop.store.read(7)
    assert shop.apply(inserts=[(99, 9)]).version == 7
    assert [entry.version for entry in entries(Store.open(shop.store.path))] == [5, 6, 7]


def test_nothing_expires_where_all_stays(shop: Shop) -> None:
    assert shop.store.expire(Keeping(6)) == 1
    assert shop.store.expire(Keeping(days=1)) == 1
    assert format_of(shop) == FORMAT
    assert shop.store.versions() == [1, 2, 3, 4, 5, 6]


def test_days_keep_the_version_that_was_the_last_one_then(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Store.header
    start = datetime.now(UTC)

    def header(store: Store, version: int) -> Any:  # a version each day, the last one now
        found = real(store, version)
        created = (start - timedelta(days=6 - version)).isoformat(timespec="milliseconds")
        object.__setattr__(found, "created", created)
        return found

    monkeypatch.setattr(Store, "header", header)
    assert shop.store.expire(Keeping(days=2.5)) == 3
    assert shop.store.expire(Keeping(versions=1, days=1.5)) == 4
    assert shop.store.expire(Keeping(versions=3, days=0)) == 4


@pytest.mark.parametrize(("versions", "days"), [(0, None), (-1, None), (None, -1.0)])
def test_the_last_version_always_stays(versions: int | None, days: float | None) -> None:
    with pytest.raises(InputError, match=r"the last version always stays|cannot be negative"):
        Keeping.of(versions, days)


def test_a_version_that_somebody_reads_stays(shop: Shop) -> None:
    with shop.store.reading(3):
        assert shop.store.expire(Keeping(1)) == 3
        assert says(shop.store, 3)[0] == 8
    assert shop.store.expire(Keeping(1)) == 6


def test_a_batch_is_known_as_long_as_its_version(shop: Shop) -> None:
    shop.store.expire(Keeping(3))
    assert shop.apply(inserts=[(13, 3)], batch_id="b3").version == 5
    told = shop.apply(inserts=[(11, 1)], batch_id="b1")
    assert (told.applied, told.version) == (True, 7)


@pytest.mark.parametrize("keep", [1, 3, 6, 9])
def test_blocks_of_batches_reach_back_to_the_first_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, keep: int
) -> None:
    monkeypatch.setattr(batches, "SPAN", 4)
    monkeypatch.setattr(batches, "_GROWTH", 2)
    with small_limits():
        shop = Shop(tmp_path / "p", 2, ROWS, Options(kinds=("keys",)))
        for version in range(2, 24):
            shop.apply(inserts=[(20 + version, version)], batch_id=f"b{version}")
            if version % 2:
                shop.store.expire(Keeping(keep))
            for old in range(2, version + 1):
                found = shop.store.find_batch("t", f"b{old}")
                assert (found and found.version) == (old if old >= shop.store.first() else None)


@pytest.mark.parametrize("deletes", range(9))
def test_a_removal_that_was_cut_short_is_finished(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, deletes: int
) -> None:
    said = {version: says(shop.store, version) for version in (5, 6)}
    real = type(shop.store.storage).delete
    done: list[str] = []

    def delete(storage: Storage, name: str) -> None:
        if len(done) == deletes:
            raise KeyboardInterrupt
        done.append(name)
        real(storage, name)

    with monkeypatch.context() as patch:
        patch.setattr(type(shop.store.storage), "delete", delete)
        with pytest.raises(KeyboardInterrupt):
            shop.store.expire(Keeping(2))
    store = Store.open(shop.store.path)
    assert store.versions() == [5, 6]
    assert store.expire(Keeping(2)) == 5
    assert_nothing_is_left_over(store)
    assert {version: says(store, version) for version in (5, 6)} == said


def test_a_commit_that_is_missing_has_not_expired(shop: Shop) -> None:
    shop.store.expire(Keeping(3))
    Path(shop.store.path, "log", f"{4:012d}.json").unlink()
    with pytest.raises(StoreError, match=r"0004\.json: this commit is damaged: it is missing"):
        Store.open(shop.store.path)


@pytest.mark.slow
def test_the_directory_of_a_long_run_is_bounded(tmp_path: Path) -> None:
    assert_bounded(tmp_path, 200)


@pytest.mark.long
def test_the_directory_of_a_longer_run_is_bounded(tmp_path: Path) -> None:
    assert_bounded(tmp_path, 500)


def assert_bounded(path: Path, steps: int) -> None:
    """Rows come and go, so that what a version needs stays as large as it is."""
    with small_limits(differences=8, merged_segments=4):
        rows = [(n, n % 7, n % 5) for n in range(200 + steps)]
        shop = Shop(path / "p", 3, rows[:200])
        sizes = []
        for step in range(steps):
            shop.apply(
                inserts=[rows[200 + step]],
                deletes=[rows[step]],
                batch_id=f"step {step}",
            )
            shop.store.expire(Keeping(10))
            sizes.append(size(shop.store))
        assert len(shop.store.versions()) == 10
        assert max(sizes[steps // 2 :]) <= 1.25 * max(sizes[steps // 4 : steps // 2])
        assert shop.verify().equal
