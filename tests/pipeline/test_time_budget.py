"""A time budget: whatever depth it ends at, the profile is exact up to there, and is kept so."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.api import Profile
from holdfast.cover import deepening
from holdfast.kernels import bitsets, maximal
from holdfast.kernels import cover as kernels
from holdfast.model.limits import Limits
from holdfast.model.options import Options
from holdfast.report import forms
from holdfast.store import run
from tests import oracle
from tests.pipeline.batches import batches
from tests.pipeline.tables import KINDS, Shop, folder, small_limits
from tests.pipeline.test_law import LIMITS, law
from tests.strategies import Rows, rows_of


@contextmanager
def looks() -> Iterator[pytest.MonkeyPatch]:
    """A clock that goes on by a second whenever it is looked at, and searches that look often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "clock", count().__next__)
        patch.setattr(kernels, "STEPS", 3)
        patch.setattr(maximal, "WORK", 1)
        yield patch


def assert_exact(shop: Shop, rows: Rows) -> Limits:
    """What is listed is what the oracle finds up to the depth that is told; returns that."""
    now, nulls, columns = shop.now, shop.options.nulls, shop.columns
    limits = now.limits
    maximal = oracle.maximal_sets(oracle.agree_sets(rows, columns, nulls))
    assert shop.places(now.keys) == oracle.minimal_sets(columns, maximal, limits.keys)
    if limits.keys is None:
        assert shop.places(now.non_keys) == maximal
    if now.functional_dependencies is not None:
        exact = [fd for fd in now.functional_dependencies if fd.error == 0]
        told = {(tuple(int(c[1:]) for c in fd.lhs), int(fd.rhs[1:])) for fd in exact}
        assert told == oracle.dependencies(rows, columns, nulls, limits.dependencies)
    assert now.duplicates == oracle.duplicates(rows, nulls)
    shop.assert_witnessed(now, rows)
    shop.assert_kept_pairs()
    return limits


@pytest.mark.slow
@law(40)
@given(
    data=st.data(),
    kinds=st.sampled_from([("keys",), ("keys", "fds")]),
    evidence=st.sampled_from(["counted", "witnessed", "auto"]),
    nulls=st.sampled_from(["equal", "unequal"]),
    start=st.sampled_from(["full", "full", "sample"]),
    most=st.sampled_from([None, None, 2]),
    seconds=st.sampled_from([1e-9, 3.0, 10.0, 20.0, 40.0, 80.0, 160.0, 1e6]),
)
def test_the_law_holds_at_any_depth(
    data: st.DataObject,
    kinds: tuple[str, ...],
    evidence: str,
    nulls: str,
    start: str,
    most: int | None,
    seconds: float,
) -> None:
    types = data.draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=6))
    rows = data.draw(rows_of(len(types), 14))
    options = Options(
        kinds, nulls, evidence=evidence, start=start, max_columns=most, time_budget=seconds
    )
    with folder() as path, small_limits(**data.draw(LIMITS)), looks():
        shop = Shop(Path(path) / "p", types, rows, options)
        before = assert_exact(shop, rows)
        if seconds > 1e5:
            assert before == Limits.both(most)
        for _ in range(data.draw(st.integers(1, 3))):
            change = data.draw(batches(len(types), rows))
            was = shop.now
            outcome = shop.apply(**change.batch)
            rows = change.after
            limits = assert_exact(shop, rows)
            assert limits.within(before) == limits  # never further than before
            before = limits
            shown = oracle.agree_sets(rows, len(types), nulls)
            now = shop.now
            if bool(now.duplicates) != bool(was.duplicates):
                continue  # repeated rows leave no key, whatever the depth
            changes = outcome["keys"]
            assert set(changes.lost) == set(was.keys) - set(now.keys)
            broken = {each.constraint for each in changes.broken}
            for key in changes.lost:
                columns = {int(name[1:]) for name in key.columns}  # type: ignore[attr-defined]
                if key in changes.unchecked:
                    assert limits.keys is not None
                    assert len(columns) > limits.keys
                else:
                    assert (key in broken) == any(columns <= set(each) for each in shown)
        assert not any(shop.verify().differences.values())


@pytest.mark.slow
@law(10)
@given(data=st.data(), evidence=st.sampled_from(["counted", "witnessed"]))
def test_a_depth_is_kept_with_time_enough(data: st.DataObject, evidence: str) -> None:
    """Once a budget has ended somewhere, batches that it suffices for leave the depth alone."""
    rows = data.draw(rows_of(5, 14))
    options = Options(("keys", "fds"), evidence=evidence, time_budget=12)
    with folder() as path, small_limits(**{**data.draw(LIMITS), "sample_rows": 2}):
        with looks():
            shop = Shop(Path(path) / "p", 5, rows, options)
        limits = shop.now.limits
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run, "clock", lambda: 0.0)
            for _ in range(2):
                change = data.draw(batches(5, rows))
                shop.apply(**change.batch)
                rows = change.after
                assert assert_exact(shop, rows) == limits


def wide_rows(columns: int) -> Rows:
    """Every other row differs from the first in two columns, and a key needs one of each two."""
    pairs = columns // 2
    return [
        (0,) * columns,
        *(tuple(int(c // 2 == k) for c in range(columns)) for k in range(pairs)),
    ]


@pytest.mark.parametrize("evidence", ["counted", "witnessed"])
def test_more_keys_than_can_be_held_end_a_depth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, evidence: str
) -> None:
    """2 to the power of 12 keys, of which the first half of the time meets too many."""
    monkeypatch.setattr(deepening, "WITNESSED", 10)
    monkeypatch.setattr(run, "clock", lambda: 0.0)
    rows = wide_rows(24)
    options = Options(("keys", "fds"), evidence=evidence, time_budget=30)
    shop = Shop(tmp_path / "p", 24, rows, options)
    now = shop.now
    assert now.limits.keys is not None
    assert not now.keys  # all of them have 12 columns
    assert not any(shop.verify().differences.values())
    shop.apply(deletes=rows[5:])
    maximal = oracle.maximal_sets(oracle.agree_sets(rows[:5], 24, "equal"))
    expected = oracle.minimal_sets_stepwise(24, maximal, now.limits.keys)
    assert shop.places(shop.now.keys) == expected


def test_more_agree_sets_than_there_is_time_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The table is witnessed instead, and stays so."""
    clock = iter(range(1_000_000))
    monkeypatch.setattr(maximal, "WORK", 1)
    rows = np.random.default_rng(5).integers(0, 2, (40, 8)).tolist()
    mine: Rows = [tuple(row) for row in rows]

    def late(masks: bitsets.Masks, full: bitsets.Masks, tick: Any = None) -> Any:
        while tick is not None:
            next(clock)
            tick(0)
        return find(masks, full)

    find = maximal.maximal_for
    monkeypatch.setattr(maximal, "maximal_for", late)
    monkeypatch.setattr(run, "clock", lambda: float(next(clock)))
    options = Options(("keys", "fds"), time_budget=100_000)
    shop = Shop(tmp_path / "p", 8, mine, options)
    assert shop.now.choice.strategy == "witnessed"
    assert "no time to compare" in shop.now.choice.reason
    assert_exact(shop, mine)
    shop.apply(deletes=mine[:3])
    assert shop.now.choice.strategy == "witnessed"
    assert_exact(shop, mine[3:])
    assert not any(shop.verify().differences.values())


def test_the_depth_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepening, "WITNESSED", 10)
    monkeypatch.setattr(run, "clock", lambda: 0.0)
    shop = Shop(tmp_path / "p", 24, wide_rows(24), Options(("keys",), time_budget=30))
    most = shop.now.limits.keys
    told = forms.show(Profile.open(shop.store.path).snapshot(), ["keys", "non-keys"])["tables"]["t"]
    assert told["incomplete"] == ["keys", "non_keys"]
    assert told["complete_up_to"] == {"keys": most}
    assert told["max_columns"] is None


def test_a_search_is_left_when_it_is_late(monkeypatch: pytest.MonkeyPatch) -> None:
    """No step is taken once the time is over: not of the search, and not of an extension."""
    monkeypatch.setattr(kernels, "STEPS", 5)
    ticks: list[int] = []

    def tick(found: int) -> None:
        ticks.append(found)
        if len(ticks) > 4:
            raise deepening.OutOfTime

    evidence = np.array([[0b1100], [0b0011]], np.uint64)
    graph = kernels.edges(bitsets.complement(evidence, 30))
    with pytest.raises(deepening.OutOfTime):
        kernels.search(graph, bitsets.universe(30), 30, kernels.groups(30), tick)
    assert len(ticks) == 5
    ticks.clear()
    with pytest.raises(deepening.OutOfTime):
        kernels.extend(np.zeros((1, 1), np.uint64), graph, 30, kernels.groups(30), tick)
    assert len(ticks) == 5
