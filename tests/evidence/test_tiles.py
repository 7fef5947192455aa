"""Pairs of rows in tiles: each counted once, whatever segments and tiles there are; a task loads no
more rows than its tiles have; and rows that show what a batch broke."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.cover.dependencies import KEY
from holdfast.evidence import strategy, tiles
from holdfast.kernels import bitsets, evidence, ranks
from holdfast.model import thresholds
from holdfast.model.comparisons import AGREEMENTS, agreements
from holdfast.model.options import Options
from holdfast.tasks.agree import Count, RowStretch, Side
from holdfast.tasks.coding import Coding
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import KINDS, Shop, folder, living_words, small_limits
from tests.flow.test_law import LIMITS, law
from tests.strategies import Rows, rows_of

Row = tuple[int, int]

SIZES = st.lists(st.integers(0, 7), max_size=4)


def line(sizes: list[int], first: int) -> tiles.Line:
    """Segments of so many rows, numbered from ``first`` on."""
    return tiles.living([Segment(first + k, rows, rows, "", None) for k, rows in enumerate(sizes)])


def rows_in(side: Side) -> list[Row]:
    return [(part.segment.number, row) for part in side for row in range(part.start, part.stop)]


@law(60)
@given(
    kept=SIZES,
    new=SIZES,
    gone=SIZES,
    calls=st.integers(1, 5),
    tile=st.integers(1, 8),
    few=st.sampled_from([1, 5, 1 << 16]),
)
def test_every_pair_is_in_one_tile(
    kept: list[int], new: list[int], gone: list[int], calls: int, tile: int, few: int
) -> None:
    lines = (line(kept, 0), line(new, 10), line(gone, 20))
    stay, brought, taken = (rows_in(each.stretches) for each in lines)
    expected = {
        sign: {frozenset(p) for p in (*product(changed, stay), *combinations(changed, 2))}
        for changed, sign in ((brought, 1), (taken, -1))
    }
    with small_limits(tile_rows=tile, tile_pairs=few):
        dealt = tiles.deal(counted(with_pairs=True), *lines, calls)
    sizes = []
    found: dict[int, Counter[frozenset[Row]]] = {1: Counter(), -1: Counter()}
    for call in dealt:
        sizes.append(0)
        assert len({id(side) for side in call.sides}) == len(
            set(map(tuple, map(rows_in, call.sides)))
        )
        for each in call.tiles:
            ones, others = (rows_in(call.sides[side]) for side in (each.ones, each.others))
            assert 0 < len(ones) <= tile
            assert 0 < len(others) <= tile
            for i, one in enumerate(ones):
                last = len(others) if each.lead is None else min(max(0, each.lead + i), len(others))
                found[each.sign].update(frozenset((one, other)) for other in others[:last])
                sizes[-1] += last
    for sign, pairs in expected.items():
        assert set(found[sign]) == pairs
        assert set(found[sign].values()) <= {1}
    assert len(dealt) <= calls
    total = sum(map(len, expected.values()))
    assert sum(sizes) == total
    if total < few:
        # Rows that stay, those among the new ones, and those among the deleted ones.
        assert len(dealt) <= 3


@pytest.mark.parametrize("calls", [2, 3, 7, 40])
@pytest.mark.parametrize(
    ("kept", "new", "gone"),
    [(0, 90_000, 0), (90_000, 900, 0), (90_000, 900, 900), (500, 70_000, 20), (70_000, 1, 60_000)],
)
def test_calls_have_as_many_pairs(kept: int, new: int, gone: int, calls: int) -> None:
    lines = line([kept], 0), line([new], 10), line([gone], 20)
    dealt = tiles.deal(counted(with_pairs=False), *lines, calls)
    assert len(dealt) == calls
    sizes = []
    for call in dealt:
        rows = [sum(part.rows for part in side) for side in call.sides]
        assert max(rows) <= thresholds.current.tile_rows
        sizes.append(0)
        for each in call.tiles:
            ends = np.full(rows[each.ones], rows[each.others])
            if each.lead is not None:
                ends = np.clip(each.lead + np.arange(rows[each.ones]), 0, rows[each.others])
            sizes[-1] += int(ends.sum())
    assert sum(sizes) == sum(
        changed * kept + changed * (changed - 1) // 2 for changed in (new, gone)
    )
    assert max(sizes) <= 1.05 * sum(sizes) / calls


def test_stretches_of_a_line() -> None:
    some = line([3, 0, 2], 0)
    assert some.rows == 5
    assert rows_in(some.between(2, 4).stretches) == [(0, 2), (2, 0)]
    assert some.between(2, 4).between(1, 2).stretches == (
        RowStretch(replace(some.stretches[1].segment), None, 0, 1),
    )
    assert some.between(4, 4).stretches == ()


def test_a_task_numbers_no_more_rows_than_two_sides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    numbered: list[int] = []
    number = ranks.numbers

    def noted(columns: Any) -> Any:
        numbered.append(len(columns[0].words))
        return number(columns)

    monkeypatch.setattr(ranks, "numbers", noted)
    rows: Rows = [(i % 7, i % 11, i) for i in range(90)]
    options = Options(kinds=("keys", "fds"), evidence="counted")
    with small_limits(tile_rows=10, tile_pairs=1, segment_rows=25):
        shop = Shop(tmp_path / "p", 3, rows, options, tasks=3)
        assert numbered
        shop.apply(inserts=[(i % 7, i % 5, -i) for i in range(1, 20)], deletes=rows[:30])
    assert max(numbered) <= 20


def counted(with_pairs: bool) -> Count:
    space = agreements(1)
    schema = pa.schema([("c0", pa.int64())])
    coding = Coding.of(schema, space.comparisons)
    return Count(View("", (), (1,), True), (space,), coding, with_pairs)


def assert_shown(shop: Shop, change: dict[str, Any], rows: Rows, nulls: str) -> int:
    """What the batch broke is shown by two living rows; how many dependencies that were."""
    shown = 0
    with shop.tried(**change) as (old, new):
        before, after = old.evidence[AGREEMENTS], new.evidence[AGREEMENTS]
        view = new.table.view(shop.store.path, shop.options)
        words = living_words(view)
        agreed = np.empty(bitsets.words_for(shop.columns), np.uint64)
        known = [
            {(*lhs.tolist(), int(rhs)) for lhs, rhs in zip(*each.covers.dependencies, strict=True)}
            for each in (before, after)
        ]
        for *mask, rhs in known[0] - known[1]:
            lhs = np.array(mask, np.uint64)
            (columns,) = bitsets.to_columns(lhs[None, :])
            pair = after.violating_pair(lhs, rhs)
            if not oracle.violations(rows, columns, rhs, nulls):
                assert pair is None
                continue
            assert pair is not None
            assert pair[0] != pair[1]
            evidence.pair_mask(words[pair[0]], words[pair[1]], view.shape, agreed)
            (alike,) = bitsets.to_columns(agreed[None, :])
            assert set(columns) <= set(alike)
            assert rhs not in alike
            shown += 1
        for *mask, rhs in known[1]:
            assert rhs == KEY or after.violating_pair(np.array(mask, np.uint64), rhs) is None
    return shown


@pytest.mark.slow
@law(40)
@given(
    data=st.data(),
    way=st.sampled_from(["counted", "witnessed", "auto"]),
    nulls=st.sampled_from(["equal", "unequal"]),
    most=st.sampled_from([None, None, 2]),
    workers=st.integers(1, 3),
)
def test_rows_show_every_dependency_that_a_batch_breaks(
    data: st.DataObject, way: Any, nulls: Any, most: int | None, workers: int
) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=2, max_size=5))
    rows = data.draw(rows_of(len(kinds), 12))
    options = Options(kinds=("keys", "fds"), nulls=nulls, evidence=way, max_columns=most)
    with folder() as path, small_limits(**data.draw(LIMITS)) as patch:
        # Where it is left open, a table moves between the two ways when it has about six rows.
        patch.setattr(strategy, "_QUICK", 6.0)
        patch.setattr(strategy, "_SLACK", 1.2)
        patch.setattr(strategy, "expected_seconds", lambda rows, *_: float(rows))
        shop = Shop(Path(path) / "p", kinds, rows, options, workers)
        for _ in range(data.draw(st.integers(1, 3))):
            change = data.draw(batches(len(kinds), rows))
            rows = change.after
            assert_shown(shop, change.batch, rows, nulls)
            shop.apply(**change.batch)


@pytest.mark.parametrize("way", ["counted", "witnessed", "auto"])
def test_rows_that_break_a_dependency_inside_a_non_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: Any
) -> None:
    """Rows that agree in a alone break a → b; no maximal non-key is shown with them, since others
    agree in a and b. Left open, the batch makes the table so short that its pairs are counted."""
    monkeypatch.setattr(strategy, "_QUICK", 6.0)
    monkeypatch.setattr(strategy, "expected_seconds", lambda rows, *_: float(rows))
    kept: Rows = [(1, 1, 1), (1, 1, 2)]
    gone: Rows = [(i, i, i) for i in range(3, 10)]
    options = Options(kinds=("keys", "fds"), evidence=way)
    shop = Shop(tmp_path / "p", 3, kept + gone, options)
    change: dict[str, Any] = {"inserts": [(1, 2, 3)], "deletes": gone}
    assert assert_shown(shop, change, [*kept, (1, 2, 3)], "equal") == 1
    shop.apply(**change)
    kinds = {"auto": "counted"}
    assert shop.choice.strategy == kinds.get(way, way)
