"""What deletes bring back: keys and dependencies that held before the rows came which are gone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.kinds.table_state import TableState
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.options import Options
from tests.flow.tables import Shop, small_limits
from tests.flow.test_skew import assert_exact, rows_of

BOTH = Options(("keys", "fds"), evidence="witnessed")


def some_rows(seed: int, rows: int) -> Any:
    """Keys {0} and {1, 2}; 3 follows from 1."""
    random = np.random.default_rng(seed)
    codes = np.zeros((rows, 5), np.int64)
    codes[:, 0] = np.arange(rows) + 10_000 * seed
    codes[:, 1], codes[:, 2] = codes[:, 0] // 7, codes[:, 0] % 7
    codes[:, 3], codes[:, 4] = codes[:, 1] % 5, random.integers(0, 3, rows)
    return codes


@pytest.mark.parametrize("since", [0, 20])
@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_rows_that_broke_keys_go_again(
    tmp_path: Path, searched: list[int], since: int, nulls: str
) -> None:
    """No other row is searched, but those that have come since are looked up."""
    codes = some_rows(1, 400)
    wrong = codes[:30].copy()
    wrong[:, 0] += np.arange(30) % 2 * 5_000  # half of them repeat an id, all a pair
    wrong[:, 3:] = [7, 9]
    later = some_rows(3, since)
    later[since // 2 :, 4] = -1
    options = Options(BOTH.kinds, evidence="witnessed", nulls=nulls)
    with small_limits(few_combinations=0, merged_segments=100, lookup_rows=100):
        shop = Shop(tmp_path / "p", 5, rows_of(codes), options)
        before = shop.places(shop.now.keys)
        shop.apply(inserts=rows_of(wrong))
        assert shop.places(shop.now.keys) != before
        if since:
            shop.apply(inserts=rows_of(later))
        searched.clear()
        shop.apply(deletes=rows_of(wrong))
        assert searched == []
        assert_exact(shop, np.concatenate([codes, later]))
        assert shop.verify().equal


@pytest.mark.parametrize("kinds", [("keys",), ("keys", "fds")])
def test_rows_that_hid_other_evidence_go_again(
    tmp_path: Path, searched: list[int], kinds: tuple[str, ...]
) -> None:
    """New rows agree with old ones in more columns than any two old ones did. What the old ones
    showed is not maximal meanwhile; it is known again when the new ones are gone."""
    codes = np.random.default_rng(4).integers(0, 12, (300, 7))
    rows = codes[:40].copy()
    rows[np.arange(40), np.arange(40) % 7] = 99
    options = Options(kinds, evidence="witnessed")
    with small_limits(few_combinations=0, merged_segments=100, lookup_rows=100):
        shop = Shop(tmp_path / "p", 7, rows_of(codes), options)
        before = {each.columns for each in shop.now.non_keys}
        for part in (rows[:20], rows[20:]):
            shop.apply(inserts=rows_of(part))
        assert len(before & {each.columns for each in shop.now.non_keys}) < len(before) / 2
        searched.clear()
        for part in (rows[20:], rows[:20]):
            shop.apply(deletes=rows_of(part))
        assert searched == []
        assert_exact(shop, codes)
        assert shop.verify().equal


def test_what_has_come_since_breaks_it_too(tmp_path: Path) -> None:
    """A key that one batch broke, and then another: it stays broken without the first."""
    codes = some_rows(1, 300)
    wrong, worse = codes[:20].copy(), codes[40:60].copy()
    wrong[:, 4], worse[:, 4] = 8, 9
    with small_limits(few_combinations=0, merged_segments=100, lookup_rows=100):
        shop = Shop(tmp_path / "p", 5, rows_of(codes), BOTH)
        shop.apply(inserts=rows_of(wrong))
        shop.apply(inserts=rows_of(worse))
        shop.apply(deletes=rows_of(wrong))
        assert_exact(shop, np.concatenate([codes, worse]))
        shop.apply(deletes=rows_of(worse))
        assert_exact(shop, codes)


def test_rows_that_a_non_key_was_always_shown_with_go(
    tmp_path: Path, brought_together: list[int]
) -> None:
    """Few candidates in all rows: these are sorted by several columns, and hardly any is left
    that agrees with another in those."""
    codes = np.random.default_rng(5).integers(0, 650, (1_500, 6))
    with small_limits(part_from_rows=1_000, part_from_candidates=64, listed_subkeys=0):
        shop = Shop(tmp_path / "p", 6, rows_of(codes), Options(("keys",), evidence="witnessed"))
        known = TableState.load(shop.store, shop.store.read(), "t").evidence[AGREEMENTS].evidence
        counts = (known.witnesses[:, :, 0] >= 0).sum(axis=1)
        gone = np.unique(known.witnesses[counts.argmin(), : counts.min(), 0]) & 0xFFFF
        brought_together.clear()
        shop.apply(deletes=rows_of(codes[gone]))
    assert brought_together
    assert sum(brought_together) < len(codes) / 2
    assert_exact(shop, np.delete(codes, gone, axis=0))
