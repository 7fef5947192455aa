"""Positions of feeds are committed with the rows, and carried on."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from holdfast import flow
from holdfast.flow.apply import Moved
from holdfast.model.changes import BatchChanges
from holdfast.model.commits import FeedRecord
from holdfast.model.errors import OvertakenError
from holdfast.model.progress import no_progress
from tests.flow.tables import Shop
from tests.strategies import Rows

ROWS: Rows = [(i, i % 3) for i in range(6)]


def moved(shop: Shop, after: int, name: str = "changes") -> Moved:
    """From where the profile is to a position."""
    record = FeedRecord("t", "changes/", {"path": "/changes"}, {"at": after})
    return Moved(shop.store.read().feeds.get(name), record, "the first", time.monotonic())


def step(shop: Shop, rows: Rows, moved: Moved, name: str = "changes") -> BatchChanges:
    batch = {"t": shop.batch(inserts=rows, batch_id="changes: 1")}
    return flow.apply_together(shop.runner, shop.store, batch, no_progress, feeds={name: moved})


def test_a_position_is_committed_with_its_rows_and_carried_on(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, ROWS)
    step(shop, [(10, 0)], moved(shop, 1))
    step(shop, [(11, 0)], moved(shop, 7, "others"), "others")
    shop.apply(inserts=[(12, 0)])
    feeds = shop.store.read().feeds
    assert {name: (feed.position, feed.version) for name, feed in feeds.items()} == {
        "changes": ({"at": 1}, 2),
        "others": ({"at": 7}, 3),
    }
    last = feeds["others"].last
    assert last is not None
    assert (last.span, last.rows, last.time) == ("the first", 1, shop.store.header(3).created)
    shop.assert_exact([*ROWS, (10, 0), (11, 0), (12, 0)])


def test_the_id_of_a_step_only_tells(tmp_path: Path) -> None:
    """Steps with one id and other rows are no conflict: positions say what is applied."""
    shop = Shop(tmp_path / "p", 2, ROWS)
    step(shop, [(10, 0)], moved(shop, 1))
    step(shop, [(11, 0)], moved(shop, 2))
    shop.assert_exact([*ROWS, (10, 0), (11, 0)])


def test_of_two_followers_one_wins(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, ROWS)
    one, two = moved(shop, 1), moved(shop, 2)
    step(shop, [(10, 0)], one)
    with pytest.raises(OvertakenError, match="another follower of changes committed first"):
        step(shop, [(10, 0), (11, 0)], two)
    shop.assert_exact([*ROWS, (10, 0)])
    step(shop, [(11, 0)], moved(shop, 2))
    shop.assert_exact([*ROWS, (10, 0), (11, 0)])


def test_a_check_leaves_the_position(tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 2, ROWS)
    batch = {"t": shop.batch(inserts=[(10, 0)])}
    there = {"changes": moved(shop, 1)}
    flow.apply_together(shop.runner, shop.store, batch, no_progress, dry_run=True, feeds=there)
    assert shop.store.read().feeds == {}
