"""Pairs of rows that could have broken dependencies: counted, and estimated."""

from __future__ import annotations

from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast import Options, Profile
from holdfast.cover.counts import EvidenceCounts
from holdfast.kernels import bitsets
from holdfast.kinds.functional_dependencies.tested import counted, estimated
from holdfast.model.constraints import FunctionalDependency
from tests.flow.tables import Shop
from tests.strategies import Rows

NAMES = ("a", "b", "c")
ROWS = st.lists(st.tuples(*[st.integers(0, 2)] * 3), min_size=2, max_size=9)
LEFT = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)


def counts_of(rows: list[tuple[int, ...]]) -> EvidenceCounts:
    agree = [tuple(c for c in range(3) if t[c] == s[c]) for t, s in combinations(rows, 2)]
    masks = bitsets.from_columns(agree, 3)
    return EvidenceCounts(masks, np.ones(len(masks), np.int64))


@given(ROWS, LEFT)
def test_pairs_that_agree_on_the_left_are_counted(
    rows: list[tuple[int, ...]], left: list[str]
) -> None:
    rhs = next(name for name in NAMES if name not in left)
    [tested] = counted(
        [FunctionalDependency("t", tuple(left), rhs)], NAMES, len(rows), counts_of(rows)
    )
    places = [NAMES.index(name) for name in left]
    assert tested.pairs == sum(all(t[c] == s[c] for c in places) for t, s in combinations(rows, 2))
    assert not tested.estimated


def test_without_counts_the_values_of_columns_tell() -> None:
    dependency = FunctionalDependency("t", ("a", "b"), "c")
    tested = estimated(dependency, {"a": 100.0, "b": 50.0, "c": 1000.0}, 10_000)
    assert tested.pairs == 9_999
    assert tested.strength > 0.9
    assert estimated(dependency, {"a": 5e3, "b": 5e3, "c": 1e3}, 10_000).strength == 0


@pytest.mark.parametrize("evidence", ["counted", "witnessed"])
def test_what_hardly_a_pair_tries_is_chance(tmp_path: Path, evidence: str) -> None:
    """Left sides that repeat, and others that hardly do."""
    draws = np.random.default_rng(3).integers(0, 1000, (400, 3)).tolist()
    rows: Rows = [(i % 20, i % 20 // 4, a, b, c % 3) for i, (a, b, c) in enumerate(draws)]
    options = Options(kinds=("keys", "fds"), evidence=evidence)
    shop = Shop(tmp_path / "p", 5, rows, options)
    ranked = Profile(shop.store).rank("t")["functional_dependencies"]
    alone = [str(each) for each in ranked if each.stands_alone]
    assert alone == ["t: c0 -> c1"]
    assert len(ranked) > 3
    assert sum(each.by_chance for each in ranked) == len(ranked) - 1
