"""Tables of many rows, against NumPy over all pairs, by every way that a search can go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.model.options import Options
from tests import oracle
from tests.flow import brute
from tests.flow.tables import Shop, small_limits
from tests.strategies import Rows

WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "many segments": {"segment_rows": 300, "undivided_rows": 0},
    "coarse first": {"undivided_rows": 0, "part_from_rows": 0},
    "hardly sampled": {"sample_rows": 3},
    "coarse first, hardly sampled": {"undivided_rows": 0, "part_from_rows": 0, "sample_rows": 3},
    "little room": {"mask_room": 8, "sample_rows": 100},
    "searched instead of probed": {"cheap_probe": -1, "search_cost": 0, "segment_rows": 700},
    "merged": {"segment_rows": 4_000, "merged_segments": 2},
}


def rows_of(codes: brute.Codes) -> Rows:
    return [tuple(None if cell < 0 else cell for cell in row) for row in codes.tolist()]


def assert_exact(shop: Shop, codes: brute.Codes) -> None:
    now = shop.now
    equal = shop.options.nulls == "equal"
    maximal = oracle.maximal_sets(brute.agree_sets(codes, equal))
    assert now.rows == len(codes)
    assert now.duplicates == brute.duplicates(codes, equal)
    assert shop.places(now.keys) == oracle.minimal_sets(shop.columns, maximal)
    assert shop.places(now.non_keys) == maximal
    shop.assert_kept_pairs()


@pytest.mark.slow
@pytest.mark.parametrize("nulls", ["equal", "unequal"])
@pytest.mark.parametrize("way", list(WAYS))
def test_keys_of_many_rows(tmp_path: Path, way: str, nulls: str) -> None:
    random = np.random.default_rng(len(way))
    most = np.array([2, 3, 5, 40, 40, 300, 500])
    codes = random.integers(-1, most, (900, len(most)))
    codes[:60] = codes[0]  # a large group of copies
    codes[60:200, :4] = codes[60, :4]  # a large group that agrees in some columns
    with small_limits(**WAYS[way]):
        shop = Shop(tmp_path / "p", len(most), rows_of(codes), Options(nulls=nulls), 2)
        assert_exact(shop, codes)
        fresh = random.integers(-1, most, (60, len(most)))
        fresh[:20, 3:] = codes[200:220, 3:]  # these break keys
        gone = random.choice(len(codes), 120, replace=False)
        shop.apply(inserts=rows_of(fresh), deletes=rows_of(codes[gone]))
        codes = np.concatenate([np.delete(codes, gone, axis=0), fresh])
        assert_exact(shop, codes)
        assert shop.verify().equal


@pytest.mark.slow
def test_when_most_rows_go(tmp_path: Path) -> None:
    """Segments are rewritten, all witnesses are gone, and keys come back."""
    random = np.random.default_rng(5)
    codes = random.integers(0, [3, 4, 30, 60, 900], (9_000, 5))
    with small_limits(segment_rows=5_000):
        shop = Shop(tmp_path / "p", 5, rows_of(codes), tasks=1)
        shop.apply(deletes=rows_of(codes[700:]))
        codes = codes[:700]
        assert_exact(shop, codes)
        assert all(segment.dead is None for segment in shop.store.read().tables["t"].segments)
        shop.apply(deletes=rows_of(codes[1:]), inserts=rows_of(codes[1:3]))
        assert_exact(shop, codes[:3])
        shop.apply(deletes=rows_of(codes[:3]))
        assert_exact(shop, codes[:0])
        assert [key.columns for key in shop.now.keys] == [()]
        shop.apply(inserts=rows_of(codes))
        assert_exact(shop, codes)
