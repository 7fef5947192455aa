"""Skewed tables, in which most rows share a value: work is divided, results are as ever."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from holdfast.kernels import index
from holdfast.model.options import Options
from holdfast.tasks.segments import map_arrays
from tests import oracle
from tests.flow import brute
from tests.flow.tables import BIGINT, Kind, Shop, small_limits
from tests.strategies import Rows

BOTH = Options(("keys", "fds"), evidence="witnessed")


def hot(random: Any, rows: int, share: float, values: int, value: int = 0) -> brute.Codes:
    """Cells of which a share has one value, and the others any of some."""
    cells = random.integers(1, values, rows)
    cells[random.random(rows) < share] = value
    return np.asarray(cells, np.int64)


def zipf(random: Any, rows: int, values: int) -> brute.Codes:
    """Cells in which the k-th value is 1/k as frequent as the first."""
    weights = 1 / np.arange(1, values + 1)
    return np.asarray(random.choice(values, rows, p=weights / weights.sum()), np.int64)


def skewed(rows: int, seed: int = 0) -> brute.Codes:
    """Columns with one hot value, with nulls in nine of ten rows, of Zipf, and two that follow
    from others."""
    random = np.random.default_rng(seed)
    one, two = hot(random, rows, 0.6, rows), hot(random, rows, 0.6, rows // 4)
    null, many = hot(random, rows, 0.9, rows, -1), zipf(random, rows, rows // 8)
    return np.stack([one, two, null, many, one % 3, zipf(random, rows, 6)], axis=1)


def rows_of(codes: brute.Codes) -> Rows:
    return [tuple(None if cell < 0 else cell for cell in row) for row in codes.tolist()]


def assert_exact(shop: Shop, codes: brute.Codes) -> None:
    """Keys, non-keys and dependencies are those of all pairs of rows."""
    now, columns = shop.now, codes.shape[1]
    equal = shop.options.nulls == "equal"
    shown = brute.agree_sets(codes, equal)
    maximal = oracle.maximal_sets(shown)
    assert (now.rows, now.duplicates) == (len(codes), brute.duplicates(codes, equal))
    assert shop.places(now.keys) == oracle.minimal_sets(columns, maximal)
    assert shop.places(now.non_keys) == maximal
    if now.functional_dependencies is not None:
        found = {
            (tuple(int(c[1:]) for c in fd.lhs), int(fd.rhs[1:]))
            for fd in now.functional_dependencies
        }
        expected = set()
        for rhs in range(columns):
            lacking = [{*each} for each in shown if rhs not in each]
            others = [c for c in range(columns) if c != rhs]
            for lhs in oracle.minimal_sets(columns, [frozenset(each) for each in lacking]):
                if set(lhs) <= set(others):
                    expected.add((lhs, rhs))
        assert found == expected
    shop.assert_kept_pairs()


@pytest.mark.slow
@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_no_task_gets_many_rows_whatever_the_values(
    tmp_path: Path, nulls: str, brought_together: list[int]
) -> None:
    """Six of ten rows have one value in both columns, and nine of ten a null in another; of 64
    tasks none is given much more than one part in 64."""
    codes = skewed(1_280)
    with small_limits(undivided_rows=0, sample_rows=3, few_combinations=0, part_from_rows=1 << 30):
        options = Options(BOTH.kinds, evidence="witnessed", nulls=nulls)
        shop = Shop(tmp_path / "p", codes.shape[1], rows_of(codes), options, 64)
    assert brought_together
    assert max(brought_together) <= 2 * 1_280 // 64
    assert_exact(shop, codes)


@pytest.mark.slow
@pytest.mark.parametrize("broken", ["nothing", "a value", "a null"])
@pytest.mark.parametrize("nulls", ["equal", "unequal"])
def test_what_a_heavy_value_determines(tmp_path: Path, nulls: str, broken: str) -> None:
    """A value, and nulls, that most rows have and that share their code: one row anywhere that has
    something else beside them is found."""
    random = np.random.default_rng(3)
    codes = np.zeros((800, 4), np.int64)
    codes[:, 0] = np.arange(800)
    kind = random.random(800)
    codes[:, 1] = np.where(kind < 0.4, 0, np.where(kind < 0.8, -1, random.integers(1, 200, 800)))
    codes[:, 2] = codes[:, 1] % 7 + 10 * (codes[:, 1] == 0)
    codes[:, 3] = random.integers(0, 3, 800)
    if broken != "nothing":
        at = np.flatnonzero(codes[:, 1] == (0 if broken == "a value" else -1))[-1]
        codes[at, 2] = 99
    with small_limits(undivided_rows=0, sample_rows=3, few_combinations=0):
        options = Options(BOTH.kinds, evidence="witnessed", nulls=nulls)
        shop = Shop(tmp_path / "p", 4, rows_of(codes), options, 8)
    assert_exact(shop, codes)


@pytest.mark.slow
def test_more_combinations_of_heavy_values_than_there_is_room_for(tmp_path: Path) -> None:
    """They are searched undivided then, and the search ends."""
    random = np.random.default_rng(4)
    codes = random.integers(0, 6, (1_200, 4))
    codes[:, 2] = codes[:, 0] * codes[:, 1]
    limits = {"undivided_rows": 0, "few_combinations": 0, "representatives": 4, "sample_rows": 3}
    with small_limits(**limits):
        shop = Shop(tmp_path / "p", 4, rows_of(codes), BOTH, 16)
    assert_exact(shop, codes)


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows a probe compared with each row of a batch, in all."""
    numbers: list[int] = []
    probe = index.probe

    def counted(batch: Any, ranges: Any, *others: Any) -> None:
        numbers.append(int((ranges.hi - ranges.lo).sum()))
        probe(batch, ranges, *others)

    monkeypatch.setattr(index, "probe", counted)
    return numbers


@pytest.mark.slow
@pytest.mark.parametrize("alike", [True, False])
def test_inserts_into_a_half_hot_column(tmp_path: Path, compared: list[int], alike: bool) -> None:
    """They do not go through the half of the table each, be they like the table or all of the one
    value, which would be 100 rows for each row of the table, or 50."""
    random = np.random.default_rng(5)
    most = np.array([2_000, 7, 7, 7, 7])
    codes = random.integers(1, most, (2_000, 5))
    codes[:: 2 if alike else 8, 0] = 0
    fresh = random.integers(1, most, (400, 5))
    fresh[:: 2 if alike else 1, 0] = 0
    with small_limits(cheap_probe=1_600, lookup_rows=64, search_cost=8):
        shop = Shop(tmp_path / "p", 5, rows_of(codes), Options(("keys",), index_quota=0), 2)
        shop.apply(inserts=rows_of(fresh))
    assert sum(compared) <= 20 * len(codes)
    assert_exact(shop, np.concatenate([codes, fresh]))


@pytest.mark.slow
def test_a_half_hot_column_is_looked_up_together_with_another(tmp_path: Path) -> None:
    """An index over both serves every key that has them."""
    random = np.random.default_rng(6)
    few = random.integers(0, 5, (5, 1_500))
    codes = np.stack([*(hot(random, 1_500, 0.4, 1_200) for _ in range(2)), *few], axis=1)
    with small_limits(lookup_rows=64):
        shop = Shop(tmp_path / "p", 7, rows_of(codes), Options(("keys",)), 2)
        assert "0+1" in shop.store.read().tables["t"].indexed
        fresh = codes[:40].copy()
        fresh[:, 2:] = random.integers(0, 5, (40, 5))
        shop.apply(inserts=rows_of(fresh))
    assert_exact(shop, np.concatenate([codes, fresh]))


HUGE = Kind(
    "decimal(38,0)", pa.decimal128(38, 0), tuple(Decimal(k << 64) for k in range(-300, 300))
)


def test_multiples_of_two_to_the_64_have_codes_of_their_own(tmp_path: Path) -> None:
    """A wide decimal is indexed by both its words; rows are looked up, searched and deleted by
    it."""
    random = np.random.default_rng(7)
    codes = np.stack([random.permutation(600), *random.integers(0, 25, (2, 600))], axis=1)
    kinds = [HUGE, HUGE, BIGINT]
    with small_limits(undivided_rows=0):
        shop = Shop(tmp_path / "p", kinds, rows_of(codes[:500]), Options(("keys",)), 4)
        table = shop.store.read().tables["t"]
        assert "0+0" in table.indexed
        for segment in table.segments:
            arrays, _ = map_arrays(Path(shop.store.path) / segment.indexes["0+0"])
            assert len(np.unique(arrays["codes"])) == segment.rows
        shop.apply(inserts=rows_of(codes[500:]))
        assert_exact(shop, codes)
        shop.apply(deletes=rows_of(codes[:90]), row_key=("c0",), key_only=True)
        assert_exact(shop, codes[90:])
        assert shop.verify().equal
    (shown,) = [each for each in shop.now.indexes if each.columns == ("c0",)]
    assert shown.distinct > 300
