"""The law: for any table and any sequence of changes, the kept profile is that of the rows."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast import upkeep
from holdfast.options import Options
from tests import oracle
from tests.pipeline.tables import Shop
from tests.strategies import Rows, changes, tables

EXAMPLES = int(os.environ.get("HOLDFAST_EXAMPLES", "150"))


def assert_exact(shop: Shop, rows: Rows, options: Options) -> None:
    """The profile says what the oracle says, and every witness shows what it should."""
    now = shop.now
    assert now.rows == len(rows)
    assert shop.places(now.keys) == oracle.keys(
        rows, shop.columns, options.nulls, options.max_columns
    )
    assert now.duplicates == oracle.duplicates(rows, options.nulls)
    if options.max_columns is None:
        assert shop.places(now.non_keys) == oracle.non_keys(rows, shop.columns, options.nulls)
    left = {row: rows.count(row) for row in rows}
    for non_key in now.non_keys:
        assert non_key.witness is not None
        one, two = (tuple(row[f"c{c}"] for c in range(shop.columns)) for row in non_key.witness)
        assert one in left
        assert two in left
        assert one != two or (left[one] > 1 and None in one)
        agreed = {c for c in range(shop.columns) if oracle._agree(one[c], two[c], options.nulls)}
        assert agreed == {int(name[1:]) for name in non_key.columns}
    if now.duplicates:
        (row,) = now.duplicated
        assert left[tuple(row[f"c{c}"] for c in range(shop.columns))] > 1


@settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=[HealthCheck.too_slow],
    print_blob=True,
)  # fmt: skip
@given(
    data=st.data(),
    table=tables(),
    nulls=st.sampled_from(["equal", "unequal"]),
    most=st.sampled_from([None, None, 1, 2]),
    tasks=st.integers(1, 3),
    quota=st.sampled_from([0, 8]),
    start=st.sampled_from(["full", "sample"]),
)
def test_kept_equals_fresh(
    data: st.DataObject,
    table: tuple[int, Rows],
    nulls: str,
    most: int | None,
    tasks: int,
    quota: int,
    start: str,
) -> None:
    columns, rows = table
    options = Options(nulls=nulls, max_columns=most, index_quota=quota, start=start)
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        # Merge early, so that short sequences reach it.
        patch.setattr(upkeep, "_FAN", 3)
        shop = Shop(Path(folder) / "p", columns, rows, options, tasks)
        assert_exact(shop, rows, options)
        for _ in range(data.draw(st.integers(1, 4))):
            inserts, deletes, after = data.draw(changes(columns, rows))
            before = shop.now
            told = shop.apply(inserts=inserts, deletes=deletes)
            assert_exact(shop, after, options)
            now = shop.now
            assert set(told.gained) == set(now.keys) - set(before.keys)
            assert {lost.key for lost in told.lost} == set(before.keys) - set(now.keys)
            rows = after
