"""Versions are stored as differences: what a batch writes, and what earlier versions still say."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from holdfast import Profile
from holdfast.model.commits import EvidenceRecord
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.options import Options
from holdfast.report.snapshot import agree_sets, changed_agree_sets, snapshot
from holdfast.store import Store, files
from holdfast.store.files import data_name
from tests.flow.tables import Shop, small_limits
from tests.steps import run_steps
from tests.strategies import Rows


def sizes(shop: Shop) -> dict[str, int]:
    """The bytes of every file of the data and the log."""
    found = [file for part in ("data", "log") for file in Path(shop.store.path, part).iterdir()]
    return {file.name: file.stat().st_size for file in found}


def of_kind(sizes: dict[str, int], kind: str) -> int:
    return sum(size for name, size in sizes.items() if name.startswith(f"{kind}-"))


def with_many_keys(columns: int, differing: int, count: int) -> Rows:
    """Rows that differ from the first one in a few columns each: a key has one of each few."""
    rng = random.Random(4)
    rows: Rows = [(0,) * columns]
    for number in range(1, count + 1):
        few = rng.sample(range(columns), differing)
        rows.append(tuple(number if c in few else 0 for c in range(columns)))
    return rows + [(number,) * columns for number in range(1_000, 3_000)]


@pytest.mark.long
def test_a_batch_that_changes_one_set_of_many_writes_little(tmp_path: Path) -> None:
    columns = 40
    shop = Shop(tmp_path / "p", columns, with_many_keys(columns, 4, 19), Options(kinds="keys"))
    before = sizes(shop)
    keys = shop.now.keys
    assert len(keys) > 50_000
    key = {int(name[1:]) for name in keys[-1].columns}
    # It agrees with the first row in this one key, and breaks no other.
    told = shop.apply(inserts=[tuple(0 if c in key else 5_000 for c in range(columns))])
    assert told["keys"].counts["broken"] == 1
    written = {name: size for name, size in sizes(shop).items() if name not in before}
    assert sum(written.values()) < 0.05 * sum(before.values())
    found = ("sets", "non_keys", "cover", "evidence")
    assert of_kind(written, "sets") > 0
    assert sum(of_kind(written, kind) for kind in found) < 0.05 * of_kind(before, "sets")
    assert shop.now.keys != keys
    assert snapshot(shop.store, 1).tables["t"].keys == keys


def shown(store: Store, version: int | None = None) -> dict[str, Any]:
    """What a version says, apart from witnesses."""
    now = snapshot(store, version)
    table = now.tables["t"]
    assert now.inclusions is not None
    return {
        "rows": table.rows,
        "keys": table.keys,
        "non-keys": [each.columns for each in table.non_keys],
        "approximate": table.approximate_keys,
        "fds": list(table.functional_dependencies or ()),
        "inds": now.inclusions.dependencies(),
    }


def evidence(store: Store, version: int) -> EvidenceRecord:
    return store.read(version).tables["t"].evidence[AGREEMENTS]


def walked(shop: Shop, steps: int) -> tuple[list[dict[str, Any]], list[Any]]:
    """Batch after batch: what was shown of every version when it was the last one."""
    rng = random.Random(11)
    rows = list(start())
    counted = shop.options.evidence == "counted"
    told = [shown(shop.store)]
    counts = [agree_sets(shop.store, "t") if counted else None]
    for step in range(steps):
        gone = rng.sample(rows, 2)
        new: Rows = [tuple(rng.randrange(4) for _ in range(5)) for _ in range(1 + step % 2)]
        for row in gone:
            rows.remove(row)
        rows += new
        shop.apply(inserts=new, deletes=gone)
        shop.assert_exact(rows)
        told.append(shown(shop.store))
        counts.append(agree_sets(shop.store, "t") if counted else None)
    return told, counts


def start() -> Rows:
    rng = random.Random(3)
    return [tuple(rng.randrange(4) for _ in range(5)) for _ in range(24)]


WAYS = {
    "witnessed": Options(evidence="witnessed"),
    "counted": Options(evidence="counted"),
    "approximate": Options(evidence="counted", max_error=0.1),
}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_every_version_says_what_it_said(tmp_path: Path, way: str) -> None:
    """Through several bases and differences, and long after."""
    with small_limits():
        shop = Shop(tmp_path / "p", 5, start(), WAYS[way])
        told, counts = walked(shop, 9)
        store = Store.open(tmp_path / "p")
        assert [shown(store, version) for version in store.versions()] == told
        roles = ["sets", "cover", "evidence"] + (["agree"] if way != "witnessed" else [])
        for role in roles:
            chains = [evidence(store, version).files[role] for version in store.versions()]
            assert len({chain[0] for chain in chains}) > 1, role
            assert max(map(len, chains)) == 4, role
        if way != "witnessed":
            for version, expected in enumerate(counts, 1):
                assert agree_sets(store, "t", version) == expected
                since = {
                    each.columns: each.pairs for each in changed_agree_sets(store, "t", version)
                }
                now = {each.columns: each.pairs for each in counts[-1]}
                for each in expected:
                    now[each.columns] = now.get(each.columns, 0) - each.pairs
                assert since == {columns: pairs for columns, pairs in now.items() if pairs}
        assert shop.verify().equal


def test_what_a_batch_leaves_as_it_was_is_not_written(tmp_path: Path) -> None:
    rows: Rows = [(i, i % 3, i % 2) for i in range(12)]
    shop = Shop(tmp_path / "p", 3, rows, Options(evidence="counted"))
    shop.apply(inserts=[(20, 0, 0), (21, 1, 1)])
    first, second = (evidence(shop.store, version).files for version in (1, 2))
    assert {role for role in first if first[role] == second[role]} >= {"sets", "non_keys", "cover"}
    changed = {role for role in first if first[role] != second[role]}
    assert "agree" in changed
    assert second["agree"][0] == first["agree"][0]
    # Nor is what changes nothing at all: a row goes, and the same row comes.
    shop.apply(inserts=[(20, 0, 0)], deletes=[(20, 0, 0)])
    third = evidence(shop.store, 3).files
    assert {role: third[role] for role in ("sets", "non_keys", "cover", "agree")} == {
        role: second[role] for role in ("sets", "non_keys", "cover", "agree")
    }
    assert changed_agree_sets(shop.store, "t", 2) == []


@pytest.mark.slow
def test_only_files_that_are_needed_stay(tmp_path: Path) -> None:
    """Those of constraints, and the changes of agree-sets, for ever; others while they are used."""
    with small_limits():
        shop = Shop(tmp_path / "p", 5, start(), WAYS["counted"])
        walked(shop, 9)
        store = shop.store
        last = store.files()
        named = {name for version in store.versions() for name in store.files(version)}
        kept = set(filter(files.is_kept, named))
        there = {f"data/{file.name}" for file in Path(store.path, "data").iterdir()}
        assert there == last | kept
        kinds = {data.kind for name in kept - last if (data := data_name(name[5:]))}
        assert kinds == {"table", "sets", "non_keys", "recount", "distinct"}


def test_rows_that_show_many_non_keys_are_read_once(tmp_path: Path) -> None:
    rng = random.Random(2)
    rows: Rows = [tuple(rng.randrange(3) for _ in range(12)) for _ in range(22)]
    with small_limits():
        shop = Shop(tmp_path / "p", 12, rows[:20], WAYS["witnessed"])
        for row in rows[20:]:
            shop.apply(inserts=[row])
    non_keys = shop.now.non_keys
    seen = [row for each in non_keys for row in each.witness or ()]
    assert len(seen) == 2 * len(non_keys) > 5 * len(rows)
    assert len({id(row) for row in seen}) <= 2 * len(rows)


@pytest.mark.slow
def test_looking_at_differences_imports_nothing_that_takes_long(tmp_path: Path) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 5, start(), WAYS["counted"])
        walked(shop, 2)
    assert len(evidence(shop.store, 3).files["sets"]) > 1
    asked = (["show", "p"], ["show", "p", "agree-sets"], ["diff", "p", "1", "3"])
    loaded = "import sys; print(*sys.modules)"
    told = run_steps(tmp_path, [*(["holdfast", *each] for each in asked), loaded])
    assert [code for _, code in told.steps] == [0, 0, 0, 0], told.errors
    modules = set(told.steps[-1][0].split())
    assert "holdfast.report.snapshot" in modules
    assert modules.isdisjoint({"numba", "pandas", "pyarrow.compute"})


class Death(BaseException):
    """The process is killed."""


@pytest.mark.slow
def test_killed_after_the_files_and_before_the_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise Death

    with small_limits():
        shop = Shop(tmp_path / "p", 5, start(), WAYS["counted"])
        told, _ = walked(shop, 3)
        for commit_at in (shop.store.head(), shop.store.head() + 1):
            before = shown(shop.store)
            with monkeypatch.context() as patch:
                patch.setattr(files, "publish_exclusively", die)
                # A process that is killed tidies nothing up, either.
                patch.setattr("holdfast.store.clean.remove_uncommitted", lambda *_: None)
                with pytest.raises(Death):
                    shop.apply(inserts=[(0, 0, 0, 0, 0), (3, 3, 3, 3, 1)])
            store = Store.open(tmp_path / "p")
            assert store.head() == commit_at
            assert shown(store) == before
            shop.apply(inserts=[(commit_at, 0, 1, 2, 3)])
            assert [shown(store, version) for version in (1, 2, 3, 4)] == told
            assert shop.verify().equal


def test_history_opens_no_data_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 5, start(), WAYS["counted"])
        told, _ = walked(shop, 4)

    def refuse(_store: Store, relative: str) -> bytes:
        raise AssertionError(relative)

    monkeypatch.setattr(Store, "content", refuse)
    entries = Profile.open(tmp_path / "p").history()
    assert [entry.keys["t"] for entry in entries] == [len(each["keys"]) for each in told]
    assert [entry.tables["t"] for entry in entries] == [each["rows"] for each in told]
    for version, each in enumerate(told, 1):
        counts = shop.store.read(version).tables["t"].counts
        assert counts == {"keys": len(each["keys"]), "fds": len(each["fds"])}


def test_a_commit_flushes_only_what_it_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = Shop(tmp_path / "p", 5, start(), WAYS["counted"])
    shop.apply(inserts=[(3, 3, 3, 3, 1)])
    flushed: list[str] = []
    real = os.fsync

    def fsync(descriptor: int) -> None:
        real(descriptor)
        flushed.append(Path(f"/proc/self/fd/{descriptor}").readlink().name)

    monkeypatch.setattr(os, "fsync", fsync)
    shop.apply(inserts=[(0, 1, 2, 3, 0)])
    run = shop.store.read().run
    runs = {data.run for name in flushed if (data := data_name(name))}
    assert runs == {run}
    written = {name[5:] for name in shop.store.files() if run in name}
    # A file that a task wrote may have been flushed under the name that it had then.
    assert written & {name for name in flushed if name.startswith(("sets-", "agree-", "recount-"))}
