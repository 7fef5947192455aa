"""Pairs counted on a GPU, for which a stand-in counts here: what is dealt, stored, shown and said;
and the choice between the ways, which a GPU changes. Where there is a card, the same on it."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.evidence import devices, strategy
from holdfast.kernels import gpu
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.errors import InputError
from holdfast.model.options import Options
from holdfast.report import forms, terminal
from holdfast.report.snapshot import snapshot
from holdfast.runtime.runner import InProcess
from holdfast.screen.page import Page
from holdfast.tasks import devices as device_tasks
from tests.card import NAME, Card, stand_in
from tests.flow.tables import BIGINT, Shop, small_limits
from tests.flow.test_law import OPTIONS, keep, law
from tests.limits import varied
from tests.strategies import Rows, rows_of

ROWS: Rows = [(i % 7, i % 5, i % 3, i) for i in range(60)]
COUNTED = Options(kinds=("keys", "fds"), evidence="counted")


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch) -> Card:
    return stand_in(monkeypatch)


def choice(shop: Shop) -> Any:
    return shop.now.evidence[AGREEMENTS].choice


def shown(shop: Shop) -> str:
    out = io.StringIO()
    terminal.show(Page(out), "p", snapshot(shop.store), ["fds"], verbose=True)
    return out.getvalue()


def test_what_counted_is_stored_and_shown(card: Card, tmp_path: Path) -> None:
    shop = Shop(tmp_path / "p", 4, ROWS, replace(COUNTED, device="gpu"))
    shop.assert_exact(ROWS)
    assert card.counted == [60 * 59 // 2]
    assert shop.store.read().options.device == "gpu"
    assert choice(shop).device == NAME
    rate = choice(shop).pairs_per_second
    assert rate > 0
    assert f"counted last on {NAME}: " in shown(shop)
    assert "pairs a second in each task" in shown(shop)
    form = forms.show(snapshot(shop.store), verbose=True)
    told = form["tables"]["t"]["evidence"][AGREEMENTS]
    assert (told["device"], told["pairs_per_second"]) == (NAME, rate)
    assert form["options"]["device"] == "gpu"

    # A batch counts with what is stored, with another device for once, and what it says stays.
    more: Rows = [(9, 9, 9, 100 + i) for i in range(3)]
    shop.apply(inserts=more)
    assert sorted(card.counted[1:]) == [3, 3 * 60]
    shop.apply(inserts=[(8, 8, 8, 200)], device="cpu")
    assert len(card.counted) == 3
    assert choice(shop).device == "cpu"
    assert "counted last on the processor: " in shown(shop)
    assert shop.store.read().options.device == "gpu"
    shop.assert_exact([*ROWS, *more, (8, 8, 8, 200)])
    shop.apply(deletes=[(8, 8, 8, 200)])
    assert choice(shop).device == NAME
    assert shop.verify().equal


def test_a_device_that_there_is_not(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="device can be 'auto', 'cpu' or 'gpu', not 'tpu'"):
        Options(device="tpu")


def test_small_counts_leave_a_gpu_alone(card: Card, tmp_path: Path) -> None:
    """It takes longer to load CUDA than to count."""
    shop = Shop(tmp_path / "p", 4, ROWS, COUNTED)
    assert (card.looked_for, choice(shop).device) == ([], "cpu")


def test_larger_counts_use_a_gpu_where_it_is_quicker(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(strategy, "seconds_on_cpu", lambda *_: 30.0)
    monkeypatch.setattr(devices, "_rates", {(True, 4): 1e12})
    assert choice(Shop(tmp_path / "p", 4, ROWS, COUNTED)).device == NAME
    monkeypatch.setattr(devices, "_rates", {(True, 4): 10.0})
    assert choice(Shop(tmp_path / "q", 4, ROWS, COUNTED)).device == "cpu"


def test_without_cupy_nobody_looks_for_a_gpu(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "holdfast")
    monkeypatch.setattr(devices, "_has_cupy", lambda: False)
    monkeypatch.setattr(strategy, "seconds_on_cpu", lambda *_: 30.0)
    assert choice(Shop(tmp_path / "p", 4, ROWS, COUNTED)).device == "cpu"
    assert not card.looked_for
    assert not caplog.records


@pytest.mark.parametrize(("device", "level"), [("gpu", "WARNING"), ("auto", "INFO")])
def test_why_a_gpu_is_not_used_is_said_once(
    card: Card,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    device: str,
    level: str,
) -> None:
    """Whoever finds out: the driver, when it measures, or a task."""
    caplog.set_level(logging.INFO, "holdfast")
    monkeypatch.setattr(strategy, "seconds_on_cpu", lambda *_: 30.0)
    card.missing = "A card is full: 100 MiB free of 1,024 at least."
    shop = Shop(tmp_path / "p", 4, ROWS, replace(COUNTED, device=device), tasks=3)
    shop.apply(inserts=[(9, 9, 9, 99)])
    shop.assert_exact([*ROWS, (9, 9, 9, 99)])
    assert choice(shop).device == "cpu"
    said = [(each.levelname, each.getMessage()) for each in caplog.records]
    assert said == [(level, f"Pairs are counted on the processor. {card.missing}")]


def test_a_gpu_that_becomes_full_is_a_sentence(
    card: Card, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    card.failure = MemoryError("8 GiB were asked for")
    with small_limits(tile_rows=7):
        shop = Shop(tmp_path / "p", 4, ROWS, replace(COUNTED, device="gpu"))
        shop.apply(inserts=[(9, 9, 9, 99)])
    shop.assert_exact([*ROWS, (9, 9, 9, 99)])
    assert choice(shop).device == "cpu"
    assert [each.getMessage() for each in caplog.records] == [
        "Pairs are counted on the processor. The memory of A card is full: 8 GiB were asked for."
    ]


def test_a_gpu_has_large_tiles_and_few_tasks(card: Card, tmp_path: Path) -> None:
    """The rows are one tile where the processor has many; more of them are cut, too."""
    device = replace(COUNTED, device="gpu")
    with small_limits(tile_rows=7, tile_pairs=1):
        Shop(tmp_path / "p", 4, ROWS, device, tasks=3)
        assert card.rows == [60]
        with pytest.MonkeyPatch.context() as patch:
            varied(patch, gpu_tile_rows=25, gpu_tile_pairs=100)
            shop = Shop(tmp_path / "q", 4, ROWS, device, tasks=3)
    shop.assert_exact(ROWS)
    assert len(card.rows) > 6
    assert max(card.rows[1:]) <= 25
    assert sum(card.counted) == 2 * 60 * 59 // 2


@pytest.mark.slow
@law(10)
@given(data=st.data(), options=OPTIONS, workers=st.integers(1, 3))
def test_the_law_with_a_gpu(data: st.DataObject, options: Options, workers: int) -> None:
    """Tiles of any size, and a card that is full now and then."""
    options = replace(options, kinds=("keys", "fds"), evidence="counted", device="gpu")
    with pytest.MonkeyPatch.context() as patch:
        card = stand_in(patch)
        tile_rows = data.draw(st.sampled_from([1, 3, 1 << 20]))
        pairs = data.draw(st.sampled_from([1, 4, 1 << 38]))
        varied(patch, gpu_tile_rows=tile_rows, gpu_tile_pairs=pairs)
        if data.draw(st.booleans()):
            card.failure = MemoryError("full")
        columns = data.draw(st.integers(1, 4))
        rows = data.draw(rows_of(columns, 12))
        keep(data, [BIGINT] * columns, rows, options, workers, 2)


# The choice between the ways.


class Elsewhere(InProcess):
    """Tasks that run on other machines, as far as anybody can tell."""

    def __init__(self) -> None:
        super().__init__(2)
        self.here, self.gpus = False, 4
        self.measured = 0

    def run(self, calls: Any) -> Any:
        named = [getattr(task, "task", task) for task, _ in calls]  # as it was before it reported
        self.measured += named.count(device_tasks.measure)
        return super().run(calls)


@contextmanager
def slow_processors() -> Iterator[None]:
    """Counting takes an hour without a GPU."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strategy, "seconds_on_cpu", lambda *_: 3600.0)
        yield


@pytest.mark.parametrize("here", [True, False])
def test_the_same_table_is_counted_with_a_gpu_and_witnessed_without(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, here: bool
) -> None:
    monkeypatch.setattr(device_tasks, "_TRIED", 100)
    auto = Options(kinds=("keys", "fds"))
    found = {}
    with slow_processors():
        for device in ("auto", "cpu"):
            runner = InProcess(2) if here else Elsewhere()
            options = replace(auto, device=device)
            shop = Shop(tmp_path / device, 4, ROWS, options, runner=runner)
            shop.assert_exact(ROWS)
            found[device] = choice(shop)
            if isinstance(runner, Elsewhere):
                # Asked by the choice and by the count, measured once.
                assert runner.measured == (device == "auto")
    assert (found["auto"].strategy, found["auto"].device) == ("counted", NAME)
    assert found["auto"].seconds < 60
    assert (found["cpu"].strategy, found["cpu"].device) == ("witnessed", None)
    assert found["cpu"].seconds == 3600
    assert list(devices._rates) == [(here, 4)]


def test_a_gpu_is_not_asked_where_it_could_not_help() -> None:
    def never(_columns: int) -> float:
        pytest.fail("nobody need know")

    few, many = 1_000, 100_000_000
    assert strategy.expected_seconds(few, 15, 2, 60.0, never) < 60 / 8
    assert strategy.expected_seconds(many, 15, 2, 60.0, never) > 60
    with pytest.raises(InputError, match="errors need all pairs of rows to be counted"):
        strategy.expect_countable("t", 1_000_000, 15, 2)
    strategy.expect_countable("t", 1_000_000, 15, 2, lambda _columns: 1e11)


# On a device.


@pytest.mark.skipif(not gpu.device().usable, reason=gpu.device().missing or "there is one")
def test_a_profile_on_a_gpu(tmp_path: Path) -> None:
    rows: Rows = [(i % 7, i % 5 or None, i % 3, i // 2) for i in range(500)]
    more: Rows = [(9, 9, 9, 9), (9, 9, None, 9), rows[3]]
    for nulls in ("equal", "unequal"):
        options = replace(COUNTED, device="gpu", nulls=nulls)
        shop = Shop(tmp_path / nulls, 4, rows, options)
        shop.apply(inserts=more, deletes=rows[10:20])
        shop.assert_exact([*rows[:10], *rows[20:], *more])
        assert choice(shop).device == gpu.device().name
        kinds = replace(options, kinds=("keys", "dcs"))
        assert Shop(tmp_path / f"{nulls}-dcs", 4, rows, kinds).verify().equal
