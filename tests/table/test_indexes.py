"""Index columns: every key has one, chosen as in the paper where all columns are alike."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.kernels import bitsets
from holdfast.model.options import Options
from holdfast.table import indexes
from tests.flow.tables import Shop, small_limits
from tests.strategies import Rows, families


def flags(keys: Sequence[tuple[int, ...]], columns: int = 8) -> indexes.Sets:
    """Sets of columns as rows of flags."""
    return bitsets.to_flags(bitsets.from_columns(keys, columns), columns)


A, B, C, D = range(4)
ALIKE = [100.0] * 4


def greedy(keys: list[tuple[int, ...]]) -> list[int]:
    """SWAN's algorithm 3: the most frequent column of the keys that are left, again and again."""
    chosen = []
    left = [key for key in keys if key]
    while left:
        columns = sorted({column for key in left for column in key})
        best = max(columns, key=lambda c: (sum(c in key for key in left), -c))
        chosen.append(best)
        left = [key for key in left if best not in key]
    return chosen


def test_the_papers_example() -> None:
    """A covers three keys and C the fourth; with room for one more, D joins the look-ups in C."""
    keys = [(A, B), (A, C), (A, D), (C, D)]
    assert indexes.choose(flags(keys, 4), ALIKE, 1_000, 0) == (A, C)
    assert indexes.choose(flags(keys, 4), ALIKE, 1_000, 3) == (A, C, D)


def test_a_quota_is_a_total() -> None:
    keys = [(A, B), (A, C), (A, D), (C, D)]
    for quota in range(6):
        assert len(indexes.choose(flags(keys, 4), ALIKE, 1_000, quota)) <= max(quota, 2)


@settings(deadline=None)
@given(st.integers(1, 8).flatmap(lambda n: families(n, 10)), st.integers(0, 8), st.data())
def test_every_key_is_covered(keys: list[tuple[int, ...]], quota: int, data: st.DataObject) -> None:
    distinct = data.draw(st.lists(st.floats(0, 1e9), min_size=8, max_size=8))
    chosen = indexes.choose(flags(keys), distinct, 1_000, quota)
    assert all(set(key) & set(chosen) for key in keys if key)
    assert list(chosen) == sorted(set(chosen))
    assert len(chosen) <= max(quota, len(indexes.cover(flags(keys), distinct)))


@settings(deadline=None)
@given(st.integers(1, 8).flatmap(lambda n: families(n, 10)))
def test_equal_weights_are_the_papers(keys: list[tuple[int, ...]]) -> None:
    assert indexes.cover(flags(keys), [7.0] * 8) == greedy(keys)


def test_a_selective_column_beats_a_frequent_one() -> None:
    keys = [(A, B), (A, C), (A, D)]
    assert indexes.cover(flags(keys, 4), [2.0, 900.0, 900.0, 900.0]) == [B, C, D]
    assert indexes.cover(flags(keys, 4), [900.0, 900.0, 900.0, 900.0]) == [A]


@settings(deadline=None)
@given(st.integers(1, 8).flatmap(lambda n: families(n, 10, min_size=1)), st.data())
def test_look_ups_miss_no_key(keys: list[tuple[int, ...]], data: st.DataObject) -> None:
    """Rows that agree on a key agree in the column looked up, and in one of its filters."""
    distinct = data.draw(st.lists(st.floats(0, 1e6), min_size=8, max_size=8))
    columns = indexes.choose(flags(keys), distinct, 1_000, data.draw(st.integers(0, 8)))
    plan = indexes.plan(flags(keys), tuple(map(str, columns)), distinct, 1_000)
    own = dict(plan.groups)
    assert plan.reached.all()
    for place, key in enumerate(keys):
        if place in own:
            assert own[place] == "+".join(map(str, key))
            continue
        assert any({*map(int, group)} <= set(key) for group in plan.lookups)
        for column in set(key) & set(columns):
            filters = plan.filters[str(column)]
            assert not filters or set(filters) & (set(key) - {column})


@settings(deadline=None)
@given(st.integers(1, 8).flatmap(lambda n: families(n, 10, min_size=1)), st.data())
def test_unselective_left_sides_share_indexes_over_several_columns(
    sides: list[tuple[int, ...]], data: st.DataObject
) -> None:
    """Each is reached, by an index over it or over some of its columns that are selective together;
    no index is there for nothing."""
    values = data.draw(st.lists(st.floats(0, 40), min_size=8, max_size=8))
    rows = 1_000_000
    names = tuple(indexes.joint(flags(sides), values, rows, ()))
    assert len(set(names)) == len(names)
    assert indexes.is_reached(flags(sides), names, values, rows).all()
    assert all(indexes.is_used(name, flags(sides), values, rows) for name in names)
    plan = indexes.plan(flags(sides), names, values, rows)
    own = dict(plan.groups)
    for place, side in enumerate(sides):
        if place in own:
            assert own[place] == "+".join(map(str, side))
            continue
        served = [group for group in plan.lookups if _columns(group) <= set(side)]
        assert served
        for name in served[0]:
            assert indexes.returned(name, values, rows) <= 4_096
            filters = plan.filters[name]
            assert not filters or set(filters) & (set(side) - _columns((name,)))


def _columns(names: tuple[str, ...]) -> set[int]:
    return {int(column) for name in names for column in name.split("+")}


@pytest.mark.parametrize("quota", [0, 8])
def test_a_key_that_appears_after_deletes_gets_an_index(tmp_path: Path, quota: int) -> None:
    rows: Rows = [(i, 0, 0) for i in range(6)] + [(9, 1, 2), (10, 2, 2)]
    with small_limits():
        shop = Shop(tmp_path / "p", 3, rows, Options(index_quota=quota))
        assert shop.store.read().tables["t"].indexed == ("0",)
        shop.apply(deletes=rows[1:6])
        assert shop.places(shop.now.keys) == [(0,), (1,)]
        stored = shop.store.read().tables["t"]
        assert set(stored.indexed) >= {"0", "1"}
        for segment in stored.segments:
            assert set(segment.indexes) >= {"rows", "0", "1"}
        shop.apply(inserts=[(11, 1, 7)])
        shop.assert_exact([rows[0], *rows[6:], (11, 1, 7)])
