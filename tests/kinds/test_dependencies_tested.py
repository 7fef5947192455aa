"""Pairs of rows that could have broken dependencies, estimated."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from holdfast import Options, Profile
from holdfast.kinds.functional_dependencies.tested import estimated
from holdfast.model.constraints import FunctionalDependency
from tests.flow.tables import Shop
from tests.strategies import Rows


def test_the_values_of_columns_tell_how_many_pairs_agree() -> None:
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
