"""What a task counts with: a GPU that is there for it, in turns, and else the processor."""

from __future__ import annotations

import fcntl
import os
import select
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from holdfast.kernels import comparisons, gpu, pairs
from holdfast.kernels.pairs import TileRows
from holdfast.model.comparisons import BOTH, FIRST, SECOND
from holdfast.tasks import devices
from holdfast.tasks.devices import Device, Measure
from tests.card import NAME, Card, stand_in


@pytest.fixture
def card(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Card:
    """A stand-in, with locks of its own."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setattr(devices, "_given", [()])
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return stand_in(monkeypatch)


def a_tile(rows: int) -> pairs.TilePairs:
    """Rows with those before them, compared in order, for equality, and each within itself."""
    random = np.random.default_rng(0)
    codes = random.integers(-1, 4, (3, rows)).astype(np.int32)
    layout = comparisons.layout(
        [(0, 0, BOTH, True), (1, 1, BOTH, False), (0, 2, FIRST, True), (0, 2, SECOND, True)]
    )
    own_t, own_s = comparisons.own_words(codes, layout, True)
    sides = TileRows(codes, own_t), TileRows(codes, own_s)
    return pairs.tile_pairs(layout, *sides, True, np.arange(rows))


def counted(device: Device, rows: int) -> dict[tuple[int, ...], int]:
    """Words with their numbers of pairs, of which one is looked at that is told for each."""
    tile = a_tile(rows)
    found: dict[tuple[int, ...], int] = {}
    for part in device.count(tile, True):
        for word, number in zip(part.counted.words, part.counted.counts.tolist(), strict=True):
            found[tuple(word.tolist())] = found.get(tuple(word.tolist()), 0) + number
        for k, (i, j) in enumerate(part.counted.pairs.tolist()):
            i, j = part.first + i, part.second + j
            assert j < i
            one, other = (
                TileRows(side.codes[:, [at]], side.own[[at]])  # type: ignore[index]
                for side, at in ((tile.ones, i), (tile.others, j))
            )
            alone = pairs.count(pairs.tile_pairs(tile.layout, one, other, True))
            assert alone.words.tolist() == [part.counted.words[k].tolist()]
    return found


def whole(rows: int) -> dict[tuple[int, ...], int]:
    found = pairs.count(a_tile(rows))
    return {
        tuple(word.tolist()): number
        for word, number in zip(found.words, found.counts.tolist(), strict=True)
    }


def test_a_gpu_counts_a_tile_at_once(card: Card) -> None:
    device = Device("gpu", rows=7)
    assert counted(device, 40) == whole(40)
    assert card.counted == [40 * 39 // 2]
    told = device.report().facts
    ((name, number, seconds),) = told["counted"]
    assert (name, number, told["missing"]) == (NAME, 780, "")
    assert seconds > 0


@pytest.mark.parametrize("rows", [1, 7, 39, 40, 1_000])
def test_the_processor_counts_it_in_parts(card: Card, rows: int) -> None:
    device = Device("cpu", rows)
    assert counted(device, 40) == whole(40)
    assert not card.looked_for
    ((name, number, _),) = device.report().facts["counted"]
    assert (name, number) == ("cpu", 780)


@pytest.mark.parametrize(
    ("failure", "says"),
    [
        (MemoryError("8 GiB were asked for\nand more"),
         "The memory of A card is full: 8 GiB were asked for."),
        (RuntimeError("cudaErrorLaunchFailure: unspecified launch failure"),
         "A card cannot count: cudaErrorLaunchFailure: unspecified launch failure."),
    ],
)  # fmt: skip
def test_a_gpu_that_fails_leaves_its_tile_to_the_processor(
    card: Card, failure: Exception, says: str
) -> None:
    """That one and those that follow, in parts of the processor's size."""
    device = Device("gpu", rows=7)
    assert counted(device, 30) == whole(30)
    card.failure = failure
    assert counted(device, 30) == whole(30)
    card.failure = None
    assert counted(device, 30) == whole(30)
    assert device.missing == says
    assert card.counted == [435]
    spent = {name: number for name, number, _ in device.report().facts["counted"]}
    assert spent == {NAME: 435, "cpu": 2 * 435}


def test_a_gpu_that_is_not_there_is_not_asked(card: Card) -> None:
    card.missing = "A card is too old."
    device = Device("gpu", rows=7)
    assert counted(device, 30) == counted(device, 30) == whole(30)
    assert (card.looked_for, card.counted, device.missing) == ([0], [], "A card is too old.")


@pytest.mark.parametrize(
    ("addresses", "visible", "number"),
    [((), None, 0), (("3", "4"), None, 3), (("3",), "1,3", 1), (("GPU-8", "1"), "GPU-7,GPU-8", 1)],
)
def test_the_gpu_that_spark_hands_over_is_used(
    card: Card, monkeypatch: pytest.MonkeyPatch, addresses: Any, visible: str | None, number: int
) -> None:
    if visible is not None:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    devices.hand_over(addresses)
    counted(Device("gpu", rows=7), 5)
    assert card.looked_for == [number]


def test_an_address_that_is_no_number_is_a_sentence(card: Card) -> None:
    devices.hand_over(["GPU-8"])
    device = Device("gpu", rows=7)
    assert counted(device, 5) == whole(5)
    assert "'GPU-8'" in device.missing
    assert not card.looked_for


def test_a_rate_is_measured_on_the_gpu_alone(card: Card, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(devices, "_TRIED", 100)
    (result,) = devices.measure(Measure(3))
    assert result.facts["pairs_per_second"] > 0
    assert card.counted == [4_950, 4_950]
    card.missing = "There is none."
    monkeypatch.setattr(pairs, "count", lambda *_: pytest.fail("the processor need not count"))
    (result,) = devices.measure(Measure(3))
    assert (result.facts["pairs_per_second"], result.facts["missing"]) == (0.0, "There is none.")


# Turns.


def lock_of(folder: Path) -> Path:
    (path,) = folder.glob("holdfast-gpu-0-*.lock")
    return path


def is_free(folder: Path) -> bool:
    lock = os.open(lock_of(folder), os.O_RDWR)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
    return True


HOLD = """
import sys, tempfile
tempfile.tempdir = sys.argv[1]
from holdfast.tasks import devices
with devices.turn(0):
    print("mine", flush=True)
    sys.stdin.read()
"""


def worker(folder: Path) -> subprocess.Popen[str]:
    """A process that takes a turn, says so, and ends it with its input."""
    return subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


@pytest.mark.slow
def test_workers_take_turns_and_one_that_is_killed_ends_its_turn(tmp_path: Path) -> None:
    with worker(tmp_path) as first:
        assert first.stdout is not None
        assert first.stdout.readline() == "mine\n"
        assert not is_free(tmp_path)
        with worker(tmp_path) as second:
            assert second.stdout is not None
            # It has no turn before the first one is gone, however that comes about.
            assert not select.select([second.stdout], [], [], 1.0)[0]
            first.kill()
            assert second.stdout.readline() == "mine\n"
            assert not is_free(tmp_path)
    assert is_free(tmp_path)


def test_a_task_has_its_turn_while_it_counts(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    during: list[bool] = []
    there = gpu.CudaDevice(NAME, 0, "")

    def device(_number: int) -> gpu.CudaDevice:
        during.append(is_free(tmp_path))
        return there

    monkeypatch.setattr(gpu, "device", device)
    counted(Device("gpu", rows=7), 5)
    assert during == [False]
    assert is_free(tmp_path)


def test_who_was_handed_a_gpu_waits_for_nobody(card: Card, tmp_path: Path) -> None:
    devices.hand_over(["0"])
    with devices.turn(0):
        counted(Device("gpu", rows=7), 5)
    assert card.counted == [10]


def test_without_a_folder_for_locks_nobody_waits(
    card: Card, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    counted(Device("gpu", rows=7), 5)
    assert card.counted == [10]
