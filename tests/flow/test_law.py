"""The law: for any table and any sequence of changes, the kept profile is that of the rows.

``HOLDFAST_EXAMPLES`` says how many small tables to try; a failure prints how to replay it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from holdfast.input.batch_files import CHANGES
from holdfast.kernels import search
from holdfast.model.options import Options
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import BIGINT, KINDS, Shop, folder, small_limits
from tests.strategies import INTERPRETED, Rows, examples, rows_of

LIMITS: st.SearchStrategy[dict[str, Any]] = st.fixed_dictionaries(
    {
        "segment_rows": st.sampled_from([1 << 20, 5, 2]),
        "undivided_rows": st.sampled_from([10_000, 0]),
        "part_from_rows": st.sampled_from([1 << 18, 0]),
        "part_from_candidates": st.sampled_from([64, 0]),
        "mask_room": st.sampled_from([1 << 15, 4, 1]),
        "merged_segments": st.sampled_from([2, 3, 8]),
        "sample_rows": st.sampled_from([40_000, 2]),
        "subkey_pairs_expected": st.sampled_from([1_000, 1e18]),
        "listed_pairs_a_mask": st.sampled_from([16, 1]),
        "few_combinations": st.sampled_from([4_096, 0, 2]),
        "frequent_rows": st.sampled_from([10_000, 1]),
        "sparse_rows": st.sampled_from([0.125, 4.0, 1e9]),
        "sparse_indexes": st.sampled_from([8, 1]),
        "column_cost": st.sampled_from([2.5, 1e9]),
        "large_groups": st.sampled_from([64, 0, 1]),
        "own_index_rows": st.sampled_from([64, 0, 1]),
        "lookup_rows": st.sampled_from([4_096, 0, 1]),
        "representatives": st.sampled_from([1 << 13, 4]),
        "group_rows": st.sampled_from([4_096, 1]),
        "narrowed_rows": st.sampled_from([64, 0]),
        "tile_rows": st.sampled_from([32_767, 3, 1]),
        "tile_pairs": st.sampled_from([1 << 16, 4, 1]),
    }
)
PROBES: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [{}, {}, {"cheap_probe": -1, "search_cost": 0}, {"cheap_probe": 3, "search_cost": 0.2}]
)
OPTIONS = st.builds(
    Options,
    kinds=st.sampled_from([("keys", "inds"), ("keys", "fds")]),
    evidence=st.sampled_from(["witnessed", "witnessed", "counted"]),
    nulls=st.sampled_from(["equal", "unequal"]),
    max_columns=st.sampled_from([None, None, 1, 2]),
    index_quota=st.sampled_from([0, 8]),
    start=st.sampled_from(["full", "sample"]),
    keep_rows=st.just(True),
)


def law(number: int) -> Callable[[Any], Any]:
    """A law that `make test` tries on so many examples, and `make test-long` on many more."""
    several = settings(
        max_examples=examples(number),
        deadline=None,
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
        print_blob=True,
    )
    return lambda test: pytest.mark.law(several(test))


def keep(
    data: st.DataObject, columns: list[Any], rows: Rows, options: Options, tasks: int, steps: int
) -> None:
    """Profile the rows, apply batches, and look after each that all is as it should be."""
    limits: dict[str, Any] = data.draw(LIMITS) | data.draw(PROBES)
    with folder() as path, small_limits(**limits) as patch:
        if INTERPRETED:
            # Constants of compiled kernels; here they can be so low that groups split deeply.
            patch.setattr(search, "_SMALL", data.draw(st.sampled_from([32, 2])))
            patch.setattr(search, "_PAIRS_PER_CANDIDATE", data.draw(st.sampled_from([2000, 2])))
        shop = Shop(Path(path) / "p", columns, rows, options, tasks)
        shop.assert_exact(rows)
        for _ in range(steps):
            change = data.draw(batches(len(columns), rows))
            before = shop.now
            told = shop.apply(**change.batch)
            rows = change.after
            shop.assert_exact(rows)
            assert {what: getattr(told, what) for what in change.counts} == change.counts
            now = shop.now
            old, new = set(before.keys), set(now.keys)
            if bool(now.duplicates) != bool(before.duplicates):
                # Repeated rows leave no key.
                old, new = (old, set()) if now.duplicates else (set(), new)
            changes = told["keys"]
            assert set(changes.gained) == new - old
            assert set(changes.lost) == old - new
            shown = oracle.agree_sets(rows, len(columns), options.nulls)
            for broken in changes.broken:
                key = {int(name[1:]) for name in broken.constraint.columns}  # type: ignore[attr-defined]
                violated = any(key <= set(each) for each in shown if len(each) < len(columns))
                assert broken.repeated != violated
                assert len(broken.witness) == 2
            if now.duplicates and not before.duplicates:
                assert len(changes.broken) == len(changes.lost)
            for shorter in changes.superseded:
                assert shorter.by in new
            assert (told.rows, told.duplicates) == (now.rows, now.duplicates)


def small_tables(
    data: st.DataObject, options: Options, tasks: int, most_rows: int, most_columns: int
) -> None:
    kinds = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=most_columns))
    rows = data.draw(rows_of(len(kinds), most_rows))
    keep(data, kinds, rows, options, tasks, data.draw(st.integers(1, 4)))


@law(40)
@given(data=st.data(), options=OPTIONS, tasks=st.integers(1, 3))
def test_kept_equals_fresh(data: st.DataObject, options: Options, tasks: int) -> None:
    small_tables(data, options, tasks, 14, 5)


@pytest.mark.long
@pytest.mark.parametrize("nulls", ["equal", "unequal"])
@law(40)
@given(data=st.data(), options=OPTIONS, tasks=st.integers(1, 3))
def test_kept_equals_fresh_many_times(
    nulls: str, data: st.DataObject, options: Options, tasks: int
) -> None:
    small_tables(data, replace(options, nulls=nulls), tasks, 20, 6)


@pytest.mark.slow
@law(5)
@given(data=st.data(), options=OPTIONS, tasks=st.integers(1, 3))
def test_more_columns_than_a_word_has_bits(
    data: st.DataObject, options: Options, tasks: int
) -> None:
    """Most of 64 or 70 columns are constant, so that there are few keys to compare."""
    columns = data.draw(st.sampled_from([64, 70]))
    places = [c for c in (0, 1, 5, 62, 63, 64, 65, 69) if c < columns]
    varied = data.draw(st.lists(st.sampled_from(places), unique=True, min_size=1))

    def wide(narrow: Rows) -> Rows:
        return [
            tuple(row[varied.index(c)] if c in varied else c % 3 or None for c in range(columns))
            for row in narrow
        ]

    def assert_dependencies(shop: Shop, narrow: Rows) -> None:
        """Where nulls are equal, those of the columns that vary; the others are constant."""
        told = shop.now.functional_dependencies
        if told is None or options.nulls != "equal":
            return
        places = {(tuple(int(c[1:]) for c in fd.lhs), int(fd.rhs[1:])) for fd in told}
        few = oracle.dependencies(narrow, len(varied), "equal", options.max_columns)
        named = {(tuple(sorted(varied[c] for c in left)), varied[right]) for left, right in few}
        constant = {((), c) for c in range(columns) if c not in varied}
        assert places == named | constant

    limits = data.draw(LIMITS)
    with folder() as path, small_limits(**limits):
        narrow = data.draw(rows_of(len(varied), 8))
        kinds = [KINDS[c % len(KINDS)] for c in range(columns)]
        shop = Shop(Path(path) / "p", kinds, wide(narrow), options, tasks)
        shop.assert_exact(wide(narrow))
        assert_dependencies(shop, narrow)
        for _ in range(2):
            change = data.draw(batches(len(varied), narrow))
            batch: dict[str, Any] = {
                name: wide(value) if name in CHANGES else value
                for name, value in change.batch.items()
            }
            if batch.get("row_key"):
                batch["row_key"] = tuple(f"c{varied[int(name[1:])]}" for name in batch["row_key"])
            shop.apply(**batch)
            narrow = change.after
            shop.assert_exact(wide(narrow))
            assert_dependencies(shop, narrow)


@law(5)
@pytest.mark.slow
@given(data=st.data(), options=OPTIONS, seed=st.integers(0, 2**32 - 1))
def test_groups_larger_than_are_compared_in_full(
    data: st.DataObject, options: Options, seed: int
) -> None:
    random = np.random.default_rng(seed)
    columns = int(random.integers(2, 6))
    # Few values and copies of rows: groups of more than 24 rows, with more and fewer distinct ones.
    most = random.integers(1, 5, columns)
    count = int(random.integers(10, 25) if INTERPRETED else random.integers(40, 90))
    cells = random.integers(0, most + 1, (count, columns))
    rows = [tuple(None if cell == 4 else cell for cell in row) for row in cells.tolist()]
    rows += [rows[0]] * (count // 2)
    keep(data, [BIGINT] * columns, rows, options, 2, 2)
