"""Most rows that a look-up returns are dismissed by their signatures; where there are none, as in
segments of an earlier version of Holdfast, all are read, and the outcome is the same."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.kernels.index import Ranges
from holdfast.model.options import Options
from holdfast.tasks.segments import Matrix
from tests.flow.tables import Shop, rewrite, small_limits
from tests.strategies import Rows

ROWS: Rows = [(i % 43, i % 101, i % 2, i % 3, i % 4, i % 5) for i in range(4_000)]
NEW: Rows = [(i % 43, i % 101, 0, 0, 0, 0) for i in range(4_000, 4_060)] + [(7, 7, 7, 7, 7, 7)]
"""They fit in, but for the last one."""


def without_signatures(shop: Shop) -> None:
    """As earlier versions wrote the segments."""

    def forget(arrays: dict[str, np.ndarray[Any, Any]]) -> None:
        del arrays["signatures"]

    for segment in shop.store.read().tables["t"].segments:
        rewrite(shop.store, segment.indexes["rows"], forget)


def test_rows_that_look_ups_return_are_hardly_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranged = Matrix.ranged
    rows, told = [0], []

    def counted(words: Matrix, ranges: Ranges) -> Any:
        rows[-1] += int((ranges.hi - ranges.lo).sum())
        return ranged(words, ranges)

    monkeypatch.setattr(Matrix, "ranged", counted)
    for signed in (True, False):
        with small_limits(segment_rows=1_000):
            shop = Shop(tmp_path / str(signed), 6, ROWS, Options(kinds=("keys",)))
            assert "t: key(c0, c1)" in map(str, shop.now.keys)
            if not signed:
                without_signatures(shop)
            rows.append(0)
            changes = shop.apply(inserts=NEW)
            rows.append(0)
        broken = [str(each.constraint) for each in changes["keys"].broken]
        assert "t: key(c0, c1)" in broken
        told.append((broken, [*map(str, shop.now.keys)]))
        assert shop.verify().equal
    assert told[0] == told[1]
    _, few, _, many, _ = rows
    assert 10 * few < many
