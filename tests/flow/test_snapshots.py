"""A snapshot has all rows as they are now; what changed is found."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import flow
from holdfast.model.errors import BatchError
from holdfast.model.expectations import Expectation
from holdfast.model.options import Options
from holdfast.model.progress import no_progress
from holdfast.tasks.segments import ROWS
from tests.flow.tables import KINDS, Shop, folder, living_words, small_limits
from tests.flow.test_law import LIMITS, OPTIONS, law
from tests.strategies import Rows, rows_of

EIGHT: Rows = [(n, n % 3, None if n % 2 else 7) for n in range(8)]


@law(40)
@given(data=st.data(), options=OPTIONS, tasks=st.integers(1, 3), keeps=st.sampled_from("rvn"))
def test_the_rows_are_those_of_the_snapshot(
    data: st.DataObject, options: Options, tasks: int, keeps: str
) -> None:
    """Whatever was there before, with raw rows, without, and without values."""
    options = replace(options, keep_rows=keeps == "r", keep_values=keeps != "v")
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=4))
    limits = data.draw(LIMITS) | {"piece_bytes": data.draw(st.sampled_from([1 << 26, 100]))}
    with folder() as path, small_limits(**limits):
        rows = data.draw(rows_of(len(kinds), 10))
        shop = Shop(Path(path) / "p", kinds, rows, options, tasks)
        for _ in range(data.draw(st.integers(1, 3))):
            after = data.draw(rows_of(len(kinds), 10)) + data.draw(
                st.lists(st.sampled_from(rows), max_size=12) if rows else st.just([])
            )
            told = shop.apply(snapshot=after, allow_shrink=True)
            new, gone = Counter(after) - Counter(rows), Counter(rows) - Counter(after)
            assert (told.inserted, told.deleted) == (new.total(), gone.total())
            assert told.rows == len(after)
            rows = after
            with shop.opened() as (run, table):
                words = living_words(table.view(run.store.path, run.options))
            fresh = Shop(Path(path) / f"fresh{told.version}", kinds, after, options, tasks)
            with fresh.opened() as (run, table):
                own = living_words(table.view(run.store.path, run.options))
            if options.keep_values:  # else the hashes of each have a salt of their own
                assert Counter(map(bytes, words.values())) == Counter(map(bytes, own.values()))
            assert shop.verify().equal
            assert shop.places(shop.now.keys) == fresh.places(fresh.now.keys)


def test_unchanged_rows_stay_where_they_are(tmp_path: Path) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 3, EIGHT)
        with shop.opened() as (_, before):
            pass
        told = shop.apply(snapshot=[(9, 9, 9), *EIGHT[1:]])
        assert (told.inserted, told.deleted, told.updated) == (1, 1, 0)
        with shop.opened() as (_, after):
            pass
        old = {segment.number: segment.words for segment in before.segments}
        kept = {s.number: s.words for s in after.segments if s.number in old}
        assert kept == old
        new = [segment for segment in after.segments if segment.number not in old]
        assert [segment.rows for segment in new] == [1]
        assert set(new[0].indexes) == {ROWS, *after.index_names}


def test_the_same_rows_change_nothing(tmp_path: Path) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 3, EIGHT)
        told = shop.apply(snapshot=EIGHT[::-1], batch_id="today")
        assert (told.version, told.inserted, told.deleted) == (2, 0, 0)
        assert shop.apply(snapshot=EIGHT, batch_id="today").applied_before
        with pytest.raises(BatchError, match="already used for other rows"):
            shop.apply(snapshot=EIGHT[1:], batch_id="today")


def test_a_check_changes_nothing(tmp_path: Path) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 3, EIGHT)
        told = shop.apply(snapshot=EIGHT[4:], dry_run=True)
        assert (told.deleted, told.applied) == (4, False)
        shop.assert_exact(EIGHT)


@pytest.mark.parametrize("few", [0, 3])
def test_less_than_half_of_the_rows_are_refused(tmp_path: Path, few: int) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 3, EIGHT)
        with pytest.raises(
            BatchError,
            match=f"snapshot: table 't': the snapshot has {few} rows, but the table 8, so more "
            "than half of them would be deleted; if it has all rows, give --allow-shrink",
        ):
            shop.apply(snapshot=EIGHT[:few])
        assert shop.store.head() == 1
        assert shop.apply(snapshot=EIGHT[:few], allow_shrink=True).rows == few


@pytest.mark.parametrize(
    ("batch", "why"),
    [
        ({"inserts": EIGHT}, "there is nothing beside it to insert, delete or update"),
        ({"row_key": ("c0",)}, "compared row by row, so leave --row-key out"),
    ],
)
def test_a_snapshot_is_alone(tmp_path: Path, batch: dict[str, Any], why: str) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 3, EIGHT)
        with pytest.raises(BatchError, match=why):
            shop.apply(snapshot=EIGHT, **batch)
        with pytest.raises(BatchError, match="--allow-shrink is about snapshots"):
            shop.apply(inserts=EIGHT, allow_shrink=True)


def test_a_quarantine_needs_the_rows_that_are_gone(tmp_path: Path) -> None:
    with small_limits():
        shop = Shop(tmp_path / "p", 3, EIGHT, Options(keep_rows=False))
        expect = [Expectation("t: key(c0)")]
        flow.expect(shop.runner, shop.store, expect, no_progress)
        batch = {"t": shop.batch(snapshot=EIGHT)}
        with pytest.raises(BatchError, match=r"keeps no rows \(--no-rows\); leave --quarantine"):
            flow.apply_together(
                shop.runner, shop.store, batch, no_progress, quarantine=str(tmp_path / "q")
            )
