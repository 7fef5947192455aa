"""What a batch means: whole or not at all, once per id, and a check tells what it would do."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast import flow
from holdfast.kinds import registry
from holdfast.model.changes import SHOWN, Changes
from holdfast.model.errors import BatchError, ConflictError, SchemaError, UnknownTableError
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.runtime.result import TaskResult
from holdfast.runtime.runner import Call, InProcess, Reader
from holdfast.store import Store
from holdfast.tasks.ingest import Ingest
from tests.flow.tables import KINDS, Shop, row_input, small_limits
from tests.strategies import Rows

ROWS: Rows = [(1, 1, 0), (2, 1, 1), (3, 2, 0), (4, 2, 0)]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    with small_limits():
        return Shop(tmp_path_factory.mktemp("batches") / "p", 3, ROWS)


@pytest.fixture
def shop(made: Shop, tmp_path: Path) -> Shop:
    return made.copied(tmp_path / "p")


def files(shop: Shop) -> list[str]:
    root = Path(shop.store.path)
    return sorted(str(path.relative_to(root)) for path in root.rglob("*"))


def untimed(changes: Changes) -> Changes:
    return replace(changes, version=0, applied=False, applied_before=False, seconds={})


# Once per id


def test_the_same_batch_again_is_a_no_op(shop: Shop) -> None:
    first = shop.apply(inserts=[(5, 1, 0), (6, 3, 0)], deletes=[(1, 1, 0)], batch_id="a")
    before = files(shop)
    # The order of rows does not make it another batch.
    again = shop.apply(inserts=[(6, 3, 0), (5, 1, 0)], deletes=[(1, 1, 0)], batch_id="a")
    assert first.applied
    assert (again.applied, again.applied_before) == (False, True)
    assert untimed(again) == untimed(first)
    assert again.version == first.version
    assert shop.store.head() == 2
    assert files(shop) == before
    shop.apply(inserts=[(7, 7, 7)])
    assert (
        shop.apply(inserts=[(5, 1, 0), (6, 3, 0)], deletes=[(1, 1, 0)], batch_id="a").version == 2
    )
    shop.assert_exact([*ROWS[1:], (5, 1, 0), (6, 3, 0), (7, 7, 7)])


@pytest.mark.parametrize(
    "other",
    [
        {"inserts": [(5, 1, 1)]},
        {"inserts": [(5, 1, 0), (5, 1, 0)]},
        {"inserts": []},
        {"deletes": [(1, 1, 0)]},
        {"inserts": [(5, 1, 0)], "deletes": [(1, 1, 0)]},
        {"inserts": [(5, 1, 0)], "deletes": [], "row_key": ("c0",)},
        {"updates": [(1, 1, 0)], "row_key": ("c0",)},
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_an_id_means_one_content(shop: Shop, other: dict[str, Any], dry_run: bool) -> None:
    shop.apply(inserts=[(5, 1, 0)], batch_id="a")
    before = files(shop)
    with pytest.raises(
        BatchError, match=r"batch id 'a' was already used for other rows, in version 2"
    ):
        shop.apply(**other, batch_id="a", dry_run=dry_run)
    assert files(shop) == before


def test_a_batch_without_an_id_is_new_every_time(shop: Shop) -> None:
    shop.apply(inserts=[(5, 1, 0)])
    told = shop.apply(inserts=[(5, 1, 0)])
    assert (told.applied, told.version, told.duplicates) == (True, 3, 1)
    assert told.duplicated == ({"c0": 5, "c1": 1, "c2": 0},)


# Nothing, or nothing that fits


def test_empty_batches(shop: Shop) -> None:
    with pytest.raises(BatchError, match="an empty batch: give inserts, deletes, updates"):
        shop.apply()
    told = shop.apply(inserts=[], deletes=[], updates=[], row_key=("c0",))
    assert (told.version, told.rows) == (2, 4)
    assert not any(each.any for each in told.kinds.values())
    shop.assert_exact(ROWS)


@pytest.mark.parametrize(
    ("batch", "error", "message"),
    [
        ({"updates": [(1, 9, 9)]}, BatchError, "updates need --row-key"),
        (
            {"deletes": [(1, 1, 1)]},
            BatchError,
            r"""deletes: table 't': this delete matches no row: {"c0": 1, "c1": 1, "c2": 1}""",
        ),
        (
            {"deletes": [(2, 1, 1), (1, 1, 0), (1, 1, 0)]},
            BatchError,
            r"""this delete is there 2 times, but the table has 1 such rows: {"c0": 1, "c1": 1,""",
        ),
        (
            {"deletes": [(9, 2, 9)], "row_key": ("c1",), "key_only": True},
            BatchError,
            r"""matches 2 rows, so the row key does not tell which is meant: {"c1": 2}""",
        ),
        (
            {"updates": [(9, 2, 9)], "row_key": ("c1",)},
            BatchError,
            r"""this update matches 2 rows, so the row key .* meant: {"c0": 9, "c1": 2, "c2": 9}""",
        ),
        (
            {"updates": [(1, 2, 9), (1, 2, 8)], "row_key": ("c0",)},
            BatchError,
            "this update is there 2 times, but the table has 1 such rows",
        ),
        (
            {"updates": [(8, 2, 9)], "row_key": ("c0",)},
            BatchError,
            "this update matches no row",
        ),
        (
            {"updates": [(1, 5, 5)], "deletes": [(1, 1, 0)], "row_key": ("c0",)},
            BatchError,
            r"""the batch deletes and updates the same row: {"c0": 1, "c1": 1, "c2": 0}""",
        ),
        ({"deletes": [(None, 1, 0)]}, BatchError, "matches no row"),
        ({"upserts": [(1, 9, 9)]}, BatchError, "upserts need --row-key"),
        (
            {"upserts": [(9, 2, 9)], "row_key": ("c1",)},
            BatchError,
            r"""this upsert matches 2 rows, so the row key .* meant: {"c0": 9, "c1": 2, "c2": 9}""",
        ),
        (
            {"upserts": [(8, 2, 9), (8, 2, 8)], "row_key": ("c0",)},
            BatchError,
            r"""this upsert is one of 2 with the same row key, .* meant: {"c0": 8, "c1": 2,""",
        ),
        (
            {"upserts": [(1, 5, 5)], "deletes": [(1, 1, 0)], "row_key": ("c0",)},
            BatchError,
            r"""the batch deletes and upserts the same row: {"c0": 1, "c1": 1, "c2": 0}""",
        ),
        ({"inserts": [(9, 9, 9)], "if_exists": True}, BatchError, "--if-exists is about deletes"),
        (
            {"deletes": [(9, 2, 9)], "row_key": ("c1",), "if_exists": True},
            BatchError,
            "matches 2 rows, so the row key does not tell which is meant",
        ),
        (
            {"updates": [(1, 5, 5)], "row_key": ("id",)},
            SchemaError,
            "table 't' has no column 'id'; it has c0, c1, c2",
        ),
        # Deletes and updates refer to the rows before the batch.
        ({"inserts": [(9, 9, 9)], "deletes": [(9, 9, 9)]}, BatchError, "matches no row"),
    ],
)
@pytest.mark.parametrize("dry_run", [False, True])
def test_what_does_not_fit_is_refused_and_changes_nothing(
    shop: Shop, batch: dict[str, Any], error: type[Exception], message: str, dry_run: bool
) -> None:
    before = files(shop)
    with pytest.raises(error, match=message):
        shop.apply(**batch, dry_run=dry_run)
    assert files(shop) == before
    shop.assert_exact(ROWS)


def test_upserts_update_and_insert(shop: Shop) -> None:
    told = shop.apply(upserts=[(1, 7, 7), (9, 9, 9)], row_key=("c0",), dry_run=True)
    assert (told.inserted, told.updated, told.rows) == (1, 1, 5)
    upserts = [(1, 7, 7), (9, 9, 9), (None, 1, 1)]
    batch: dict[str, Any] = {"upserts": upserts, "row_key": ("c0",), "batch_id": "x"}
    told = shop.apply(**batch)
    assert (told.inserted, told.deleted, told.updated, told.rows) == (2, 0, 1, 6)
    rows = [row for row in ROWS if row[0] != 1] + upserts
    shop.assert_exact(rows)
    assert shop.apply(**batch).applied_before
    with pytest.raises(BatchError, match="'x'"):
        shop.apply(**{**batch, "upserts": upserts[:1]})
    # The same rows again change nothing, and a null is a row key like any other.
    told = shop.apply(upserts=upserts, row_key=("c0",))
    assert (told.inserted, told.updated, told.unchanged) == (0, 0, 3)
    shop.assert_exact(rows)


@pytest.mark.parametrize("kind", ["updates", "upserts"])
def test_rows_that_come_as_they_are_do_not_count_as_changed(shop: Shop, kind: str) -> None:
    batch: dict[str, Any] = {
        kind: [(1, 1, 0), (2, 1, None), (4, 2, 0)],
        "row_key": ("c0",),
        "batch_id": "x",
    }
    counts = {"inserted": 0, "deleted": 0, "updated": 1, "unchanged": 2, "skipped": 0}
    for dry_run in (True, False):
        told = shop.apply(dry_run=dry_run, **batch)
        assert counts.items() <= told.to_dict().items()
        assert "updated 1, unchanged 2" in repr(told)
        assert "1 updated, 2 unchanged" in told._repr_html_()
    again = shop.apply(**batch)
    assert (again.applied_before, again.updated, again.unchanged) == (True, 1, 2)
    # A batch that changes nothing is a version and has its id.
    same = shop.apply(**{**batch, kind: [(3, 2, 0)], "batch_id": "y"})
    assert (same.applied, same.version, same.updated, same.unchanged) == (True, 3, 0, 1)
    assert shop.apply(**{**batch, kind: [(3, 2, 0)], "batch_id": "y"}).applied_before
    shop.assert_exact([(1, 1, 0), (2, 1, None), (3, 2, 0), (4, 2, 0)])


def test_a_version_from_before_unchanged_rows_were_counted(shop: Shop) -> None:
    form = shop.apply(inserts=[(9, 9, 9)]).to_dict()
    del form["unchanged"]
    assert Changes.from_dict(form, registry.makers()).unchanged == 0


def test_upserts_into_an_empty_table(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [])
    with pytest.raises(BatchError, match="with the same row key"):
        shop.apply(upserts=[(1, 1), (1, 2)], row_key=("c0",))
    told = shop.apply(upserts=[(1, 1), (2, 1)], row_key=("c0",))
    assert (told.inserted, told.updated) == (2, 0)
    shop.assert_exact([(1, 1), (2, 1)])


def test_deletes_of_rows_that_are_not_there(shop: Shop) -> None:
    deletes = [(1, 1, 0), (1, 1, 0), (7, 7, 7)]
    told = shop.apply(deletes=deletes, if_exists=True, batch_id="x")
    assert (told.deleted, told.skipped, told.rows) == (1, 2, 3)
    rows = [row for row in ROWS if row != (1, 1, 0)]
    shop.assert_exact(rows)
    # The id is that of the rows, however often they are replayed.
    assert shop.apply(deletes=deletes, batch_id="x").applied_before
    told = shop.apply(deletes=[(1, 9, 9)], row_key=("c0",), key_only=True, if_exists=True)
    assert (told.deleted, told.skipped, told.to_dict()["skipped"]) == (0, 1, 1)
    shop.assert_exact(rows)
    empty = shop.apply(deletes=rows)
    assert (empty.deleted, empty.skipped) == (3, 0)
    assert shop.apply(deletes=rows, if_exists=True).skipped == 3


def test_a_row_key_named_twice_is_a_row_key(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 1), (1, 2)])
    with pytest.raises(BatchError, match="matches 2 rows"):
        shop.apply(deletes=[(1, 1)], row_key=("c0", "c0"))


def test_an_unknown_table_is_named(shop: Shop) -> None:
    batch = flow.Batch(inserts=row_input(3, []))
    with pytest.raises(UnknownTableError, match="the profile has no table 'u'; it has t"):
        flow.apply(shop.runner, shop.store, "u", batch, no_progress)


def test_the_columns_of_a_batch_may_come_in_another_order(shop: Shop) -> None:
    rows = row_input(3, [(5, 6, 7)])
    names = ["c2", "c0", "c1"]
    mixed = replace(rows, columns=rows.columns.pick([2, 0, 1]), rows=rows.rows.select(names))
    mixed = replace(mixed, columns=replace(mixed.columns, names=tuple(names)))
    flow.apply(shop.runner, shop.store, "t", flow.Batch(inserts=mixed), no_progress)
    shop.assert_exact([*ROWS, (5, 6, 7)])


# What is right


def test_duplicates_go_one_by_one(tmp_path: Path) -> None:
    rows: Rows = [(1, None)] * 4 + [(2, 0)]
    for nulls in ("equal", "unequal"):
        shop = Shop(tmp_path / nulls, 2, rows, Options(nulls=nulls), 3)
        left = rows
        for _ in range(4):
            left = left[1:]
            told = shop.apply(deletes=[(1, None)])
            shop.assert_exact(left)
            assert told.deleted == 1
        assert shop.now.duplicates == 0


def test_two_rows_swap_their_keys(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 3, [(1, 10, 0), (2, 20, 0), (3, 30, 1)])
    told = shop.apply(updates=[(1, 20, 0), (2, 10, 0)], row_key=("c0",))
    assert not any(each.any for each in told.kinds.values())
    assert (told.updated, told.inserted, told.deleted) == (2, 0, 0)
    shop.assert_exact([(3, 30, 1), (1, 20, 0), (2, 10, 0)])


def test_an_update_may_break_a_key_and_the_next_may_mend_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 10), (2, 20), (3, 30)])
    told = shop.apply(updates=[(1, 20)], row_key=("c0",))
    (broken,) = told["keys"].broken
    assert sorted(row["c0"] for row in broken.witness) == [1, 2]
    told = shop.apply(updates=[(1, 10)], row_key=("c0",))
    assert [str(key) for key in told["keys"].gained] == ["t: key(c1)"]
    shop.assert_exact([(2, 20), (3, 30), (1, 10)])


@pytest.mark.slow
def test_more_keys_broken_than_are_shown_with_rows(tmp_path: Path) -> None:
    """A row that agrees with another in all but one column breaks all keys without that one."""
    columns = 20
    cells = np.random.default_rng(1).integers(0, 2, (14, columns))
    rows: Rows = [tuple(row) for row in cells.tolist()]
    with small_limits():
        shop = Shop(tmp_path / "p", columns, rows)
    twin = (1 - cells[0, 0].item(), *rows[0][1:])
    told = shop.apply(inserts=[twin])
    keys = told["keys"]
    assert keys.counts["broken"] > SHOWN + 1
    assert len(keys.broken) == SHOWN
    assert all(len(broken.witness) == 2 for broken in keys.broken)
    assert shop.verify().equal


def test_the_duplicated_row_that_is_told_is_the_batchs_own(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 1), (1, 1), (2, 2)])
    told = shop.apply(inserts=[(2, 2)])
    assert (told.duplicates_before, told.duplicates) == (1, 2)
    assert told.duplicated == ({"c0": 2, "c1": 2},)


def test_a_key_that_shrinks_says_what_replaces_it(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, [(1, 1), (1, 2), (2, 1)])
    changes = shop.apply(deletes=[(1, 1)])["keys"]
    assert not changes.broken
    (shorter,) = changes.superseded
    assert (str(shorter.constraint), str(shorter.by)) == ("t: key(c0, c1)", "t: key(c0)")


# Checking


@pytest.mark.parametrize(
    "batch",
    [
        {"inserts": [(1, 1, 1), (9, 9, 9)]},
        {"deletes": [(3, 2, 0)]},
        {"inserts": [(4, 2, 0)]},
        {"updates": [(1, 2, 0), (4, 1, 1)], "row_key": ("c0",), "inserts": [(2, 2, 2)]},
        {"deletes": [(1, 0, 0), (2, 0, 0)], "row_key": ("c0",), "key_only": True},
    ],
)
def test_a_check_says_what_apply_does_and_does_nothing(shop: Shop, batch: dict[str, Any]) -> None:
    before = files(shop)
    checked = shop.apply(**batch, batch_id="x", dry_run=True)
    assert files(shop) == before
    assert (checked.applied, checked.version) == (False, 1)
    shop.assert_exact(ROWS)
    applied = shop.apply(**batch, batch_id="x")
    assert (applied.applied, applied.version) == (True, 2)
    assert untimed(applied) == untimed(checked)


# Failing


class Failing(InProcess):
    """Raises at its n-th job, before, in or after it."""

    def __init__(self, fail_at: int, late: bool) -> None:
        super().__init__(2)
        self.jobs = 0
        self.fail_at = fail_at
        self.late = late

    def step(self) -> None:
        self.jobs += 1
        if self.jobs == self.fail_at:
            raise KeyboardInterrupt if self.late else RuntimeError("the cluster is gone")

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        results = []
        for call in calls:
            results += super().run([call])
            if self.late:
                self.step()
        if not self.late:
            self.step()
        return results

    def read(self, task: Reader, rows: Any, spec: Ingest) -> list[TaskResult]:
        task_results = super().read(task, rows, spec)
        self.step()
        return task_results


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_an_apply_that_fails_anywhere_leaves_nothing(tmp_path: Path, late: bool) -> None:
    """Every job of a batch with inserts, deletes, updates, a new index and a merge fails once."""
    rows: Rows = [(i, i // 2, i % 3, i % 2) for i in range(8)]
    batch: dict[str, Any] = {
        "inserts": [(0, 9, 9, 9), (1, 9, 9, 9)],
        "deletes": rows[4:6],
        "updates": [(2, 8, 8, 8)],
        "row_key": ("c0",),
    }
    after = [*rows[:2], rows[3], *rows[6:], *batch["inserts"], *batch["updates"]]
    with small_limits(merged_segments=2, undivided_rows=0):
        shop = Shop(tmp_path / "p", 4, rows)
        before = files(shop)
        fail_at = 0
        while True:
            fail_at += 1
            shop.runner = Failing(fail_at, late)
            try:
                shop.apply(**batch, batch_id="x")
            except (RuntimeError, KeyboardInterrupt):
                assert files(shop) == before
                assert Store.open(shop.store.path).head() == 1
                continue
            break
        assert fail_at > 5
        shop.assert_exact(after)
        shop.runner = InProcess()
        assert shop.verify().equal
        assert not list((tmp_path / "p" / "leases").iterdir())


def test_a_profile_that_fails_can_be_made_again(tmp_path: Path) -> None:
    for fail_at in (1, 2, 3):
        store = Store.create(tmp_path / "p")
        with pytest.raises(RuntimeError):
            flow.profile(
                Failing(fail_at, False), store, {"t": row_input(3, ROWS)}, Options(), no_progress
            )
        assert not list((tmp_path / "p" / "data").iterdir())
    Shop(tmp_path / "p", 3, ROWS).assert_exact(ROWS)


# Others


class Overtaken(Store):
    """Another writer commits between the moment that a run begins and its lease."""

    other: Shop

    def writing(self) -> Any:
        if self.head() == 1:
            self.other.apply(inserts=[(5, 5, 5)])
        return super().writing()


def test_a_batch_builds_on_the_version_that_its_lease_names(shop: Shop) -> None:
    store = Overtaken(shop.store.path)
    store.other = shop
    assert store.head() == 1
    batch = flow.Batch(inserts=row_input(3, [(6, 6, 6)]))
    told = flow.apply(InProcess(), store, "t", batch, no_progress)
    assert (told.version, told.rows) == (3, 6)
    shop.assert_exact([*ROWS, (5, 5, 5), (6, 6, 6)])


class Meanwhile(InProcess):
    """Another writer commits while this one works."""

    other: Shop
    done = False

    def run(self, calls: Sequence[Call]) -> list[list[TaskResult]]:
        if not self.done:
            self.done = True
            self.other.apply(inserts=[(5, 5, 5)])
        return super().run(calls)


def test_of_two_writers_one_wins_and_the_other_is_told(shop: Shop) -> None:
    runner = Meanwhile()
    runner.other = shop
    batch = flow.Batch(inserts=row_input(3, [(6, 6, 6)]))
    with pytest.raises(ConflictError, match="another writer committed version 2 first"):
        flow.apply(runner, Store(shop.store.path), "t", batch, no_progress)
    shop.assert_exact([*ROWS, (5, 5, 5)])
    flow.apply(runner, Store(shop.store.path), "t", batch, no_progress)
    shop.assert_exact([*ROWS, (5, 5, 5), (6, 6, 6)])


def test_tables_of_one_profile_do_not_touch_each_other(tmp_path: Path) -> None:
    store = Store.create(tmp_path / "p")
    row_inputs = {
        "t": row_input(2, [(1, 1), (2, 1)]),
        "u": row_input(KINDS[1:4], [(1, 1, 1), (2, 1, 1)]),
    }
    flow.profile(InProcess(), store, row_inputs, Options(), no_progress)
    u = store.read().tables["u"]
    for number in range(3, 15):
        batch = flow.Batch(inserts=row_input(2, [(number, number)]), batch_id=str(number))
        flow.apply(InProcess(), store, "t", batch, no_progress)
    assert store.read().tables["u"] == u
    # An id belongs to a table.
    batch = flow.Batch(inserts=row_input(KINDS[1:4], [(3, 1, 1)]), batch_id="5")
    assert flow.apply(InProcess(), store, "u", batch, no_progress).applied
    assert flow.verify(InProcess(), store, no_progress).equal


def test_a_profile_can_be_copied(shop: Shop, tmp_path: Path) -> None:
    shutil.copytree(shop.store.path, tmp_path / "copy")
    shop.store = Store.open(tmp_path / "copy")
    shop.apply(inserts=[(9, 9, 9)])
    shop.assert_exact([*ROWS, (9, 9, 9)])


def test_without_raw_rows_witnesses_are_row_numbers(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 3, ROWS, Options(keep_rows=False))
    told = shop.apply(inserts=[(1, 9, 9)], deletes=[(4, 2, 0)])
    (broken,) = told["keys"].broken
    assert [set(row) for row in broken.witness] == [{"row"}, {"row"}]
    shop.assert_kept_pairs()
    assert not [path for path in files(shop) if path.startswith("data/raw")]
    assert shop.verify().equal
