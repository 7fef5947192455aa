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
from holdfast.evidence.agreement import engine
from holdfast.evidence.agreement.validation import Validation, validate
from holdfast.kernels import bitsets, maximal
from holdfast.kernels import cover as kernels
from holdfast.kinds.table_state import TableState
from holdfast.model import limits as model
from holdfast.model.errors import InputError
from holdfast.model.limits import Limits, OutOfTime
from holdfast.model.options import Options
from holdfast.report import forms
from holdfast.tasks import evidence as evidence_tasks
from tests import oracle
from tests.flow.batches import batches
from tests.flow.tables import KINDS, Shop, folder, small_limits
from tests.flow.test_law import LIMITS, law
from tests.strategies import Rows, rows_of


@contextmanager
def looks() -> Iterator[pytest.MonkeyPatch]:
    """A clock that goes on by a second whenever it is looked at, and searches that look often."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model, "clock", count().__next__)
        patch.setattr(kernels, "STEPS", 3)
        patch.setattr(bitsets, "WORK", 1)
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
        try:
            shop = Shop(Path(path) / "p", types, rows, options)
        except InputError:
            assert evidence == "counted"  # asked for, and not to be had
            assert seconds < 1e5
            return
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
@given(data=st.data(), evidence=st.sampled_from(["auto", "witnessed"]))
def test_a_depth_is_kept_with_time_enough(data: st.DataObject, evidence: str) -> None:
    """Once a budget has ended somewhere, batches that it suffices for leave the depth alone."""
    rows = data.draw(rows_of(5, 14))
    options = Options(("keys", "fds"), evidence=evidence, time_budget=12)
    with folder() as path, small_limits(**{**data.draw(LIMITS), "sample_rows": 2}):
        with looks():
            shop = Shop(Path(path) / "p", 5, rows, options)
        limits = shop.now.limits
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(model, "clock", lambda: 0.0)
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
    monkeypatch.setattr(model, "clock", lambda: 0.0)
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
    monkeypatch.setattr(bitsets, "WORK", 1)
    rows = np.random.default_rng(5).integers(0, 2, (40, 8)).tolist()
    mine: Rows = [tuple(row) for row in rows]

    def late(masks: bitsets.Masks, full: bitsets.Masks, tick: Any = None) -> Any:
        while tick is not None:
            next(clock)
            tick(0)
        return find(masks, full)

    find = maximal.maximal_for
    monkeypatch.setattr(maximal, "maximal_for", late)
    monkeypatch.setattr(model, "clock", lambda: float(next(clock)))
    options = Options(("keys", "fds"), time_budget=100_000)
    shop = Shop(tmp_path / "p", 8, mine, options)
    assert shop.choice.strategy == "witnessed"
    assert "no time to compare" in shop.choice.reason
    assert_exact(shop, mine)
    shop.apply(deletes=mine[:3])
    assert shop.choice.strategy == "witnessed"
    assert_exact(shop, mine[3:])
    assert not any(shop.verify().differences.values())


def test_the_depth_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deepening, "WITNESSED", 10)
    monkeypatch.setattr(model, "clock", lambda: 0.0)
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
            raise OutOfTime

    evidence = np.array([[0b1100], [0b0011]], np.uint64)
    graph = kernels.edges(bitsets.complement(evidence, 30))
    with pytest.raises(OutOfTime):
        kernels.search(graph, bitsets.universe(30), 30, kernels.groups(30), tick)
    assert len(ticks) == 5
    ticks.clear()
    with pytest.raises(OutOfTime):
        kernels.extend(np.zeros((1, 1), np.uint64), graph, 30, kernels.groups(30), tick)
    assert len(ticks) == 5


@pytest.mark.parametrize("asked", [{"evidence": "counted"}, {"max_error": 0.1}])
def test_counts_that_are_asked_for_and_take_too_long(tmp_path: Path, asked: dict[str, Any]) -> None:
    """An error that says what to do, and no profile; a batch takes the time that it needs."""
    rows: Rows = [tuple(row) for row in np.random.default_rng(5).integers(0, 3, (20, 4)).tolist()]
    with looks(), pytest.raises(InputError) as error:
        Shop(tmp_path / "late", 4, rows, Options(("keys", "fds"), time_budget=3, **asked))
    assert "table 't'" in str(error.value)
    assert "did not end in the time budget of 3 s; raise --time-budget" in str(error.value)
    shop = Shop(tmp_path / "p", 4, rows, Options(("keys", "fds"), time_budget=1_000, **asked))
    with looks() as patch:
        patch.setattr(model, "clock", count(step=500).__next__)
        shop.apply(inserts=[(7, 7, 7, 7)])
    assert shop.choice.strategy == "counted"
    assert_exact(shop, [*rows, (7, 7, 7, 7)])


def test_what_later_batches_go_by_is_left_out_when_it_is_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Batches are exact without indexes, and build them when there is time."""
    rows: Rows = [(i, i % 3, i % 2, i // 4) for i in range(12)]
    monkeypatch.setattr(model, "clock", lambda: 0.0)
    options = Options(("keys", "fds"), evidence="witnessed", time_budget=10)
    with small_limits(part_from_rows=0):

        def late(state: Validation) -> Any:
            """The search ends in time, and what comes after it does not."""
            lists = validate(state)
            monkeypatch.setattr(model, "clock", lambda: 1e9)
            return lists

        monkeypatch.setattr(engine, "validate", late)
        shop = Shop(tmp_path / "p", 4, rows, options)
        monkeypatch.setattr(engine, "validate", validate)
        assert shop.now.limits == Limits()
        assert not TableState.load(shop.store, shop.store.read(), "t").table.indexed
        assert_exact(shop, rows)
        monkeypatch.setattr(model, "clock", lambda: 0.0)
        shop.apply(deletes=rows[:2], inserts=[(20, 0, 0, 0)])
        rows = [*rows[2:], (20, 0, 0, 0)]
        assert assert_exact(shop, rows) == Limits()
        assert TableState.load(shop.store, shop.store.read(), "t").table.indexed


@pytest.mark.parametrize("calls", [1, 2, 3, 5])
def test_a_round_that_is_late_leaves_a_depth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, calls: int
) -> None:
    """The time ends within a job of the search, in one of its tasks."""
    rows: Rows = [tuple(row) for row in np.random.default_rng(3).integers(0, 3, (30, 5)).tolist()]
    now = [0.0]
    monkeypatch.setattr(model, "clock", lambda: now[0])
    search, made = evidence_tasks.search, iter(range(1_000))

    def late(item: Any) -> Any:
        if next(made) == calls:
            now[0] += 6.0  # of 10: the first half is over, and then all of it
        return search(item)

    monkeypatch.setattr(evidence_tasks, "search", late)
    options = Options(("keys", "fds"), evidence="witnessed", time_budget=10)
    with small_limits(sample_rows=2):
        shop = Shop(tmp_path / "p", 5, rows, options)
        assert assert_exact(shop, rows) == shop.now.limits
        shop.apply(inserts=[(9, 9, 9, 9, 9)], deletes=rows[:1])
        assert_exact(shop, [row for row in rows if row != rows[0]] + [(9, 9, 9, 9, 9)])
