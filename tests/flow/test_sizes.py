"""Files of a profile, counted: they follow the rows, and not the partitions they came in."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from holdfast.evidence.agreement.search_plans import IndexSearch
from holdfast.evidence.scope import Scope
from holdfast.kernels import bitsets
from holdfast.kernels.evidence import Candidates
from holdfast.model.comparisons import agreements
from holdfast.runtime.runner import InProcess, piles
from tests.flow.tables import Shop, small_limits
from tests.strategies import Rows
from tests.tasks.test_rows import stored


def data_files(shop: Shop) -> Counter[str]:
    """Files of rows by their kind."""
    kinds = (path.name.partition("-")[0] for path in Path(shop.store.path, "data").iterdir())
    return Counter(kind for kind in kinds if kind in ("words", "raw", "index"))


@pytest.mark.slow
def test_many_small_partitions_leave_few_files(tmp_path: Path) -> None:
    rows: Rows = [(i, i % 7, i // 7) for i in range(128)]
    with small_limits():
        few = Shop(tmp_path / "few", 3, rows, tasks=1)
        many = Shop(tmp_path / "many", 3, rows, tasks=64)
        assert data_files(many) == data_files(few)
        many.assert_exact(rows)
        new: Rows = [(1_000 + i, i % 5, i) for i in range(64)]
        many.apply(inserts=new)
        assert len(many.store.read().tables["t"].segments) == 1
        many.assert_exact([*rows, *new])
        assert many.verify().equal


def test_a_few_small_partitions_are_left_as_they_are(tmp_path: Path) -> None:
    """Joining them would be a job for nothing."""
    rows: Rows = [(i, i % 7) for i in range(64)]
    with small_limits():
        shop = Shop(tmp_path / "p", 2, rows, runner=InProcess(8))
        assert len(shop.store.read().tables["t"].segments) == 8


@pytest.mark.parametrize("others", [1, 8])
@pytest.mark.parametrize("value", [7, (1 << 63) - 1])
def test_a_heavy_value_that_is_brought_together_is_a_call_of_its_own(
    tmp_path: Path, value: int, others: int
) -> None:
    """Of a range of codes there are parts; of one value there are none, not even if it is the last
    there is."""
    with small_limits(undivided_rows=2, light_rows=9):
        rows: Rows = [(value, i) for i in range(9)] + [(-(i // 2), i) for i in range(2 * others)]
        view = stored(str(tmp_path), rows, 1, names=("0",))
        lhs = bitsets.from_columns([(0,)], 2)
        candidates = Candidates(lhs, np.zeros((1, 2), np.uint64))
        look = IndexSearch(candidates, (0,), (0, 1), "0", False, whole=True)
        scope = Scope(InProcess(4), view, pa.schema([]), agreements(2), "")
        calls = look.calls(scope)
        works = [item.work for _, item in calls]
        brought = [len(view.between("0", item.low, item.high).ids) for _, item in calls]
        assert sum(brought) == 9 + 2 * others
        heavy = brought.index(9)
        assert works[heavy] == 9 + 2 * others
        assert [heavy] in piles([*calls, *calls], 1)


def test_wide_rows_are_divided_by_their_bytes(tmp_path: Path) -> None:
    """Searches too: what a task takes at once is bounded as a segment is."""
    rows: Rows = [(i % 5, i % 7, i % 11, i) for i in range(60)]
    with small_limits(segment_bytes=10 * 5 * 8, undivided_rows=0):
        shop = Shop(tmp_path / "p", 4, rows, tasks=1)
        assert {s.rows for s in shop.store.read().tables["t"].segments} == {10}
        shop.assert_exact(rows)
        shop.apply(deletes=rows[:30], inserts=[(9, 9, 9, 9_000)])
        shop.assert_exact([*rows[30:], (9, 9, 9, 9_000)])
