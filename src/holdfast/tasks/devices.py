"""What a task counts pairs with: the processor, or a GPU that is there for it.

Spark hands a task the GPUs that it has scheduled for it (:func:`hand_over` is called where tasks
are run). Where it schedules none, the tasks of a machine take turns on its first one. A GPU that is
not there, or fails, is a sentence and the processor's work.
"""

from __future__ import annotations

import fcntl
import os
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from holdfast.kernels import gpu, pairs
from holdfast.kernels.comparisons import equalities
from holdfast.kernels.gpu import count as gpu_count
from holdfast.kernels.pairs import TilePairs, TileRows, WordCounts, tile_pairs
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look

CPU, GPU = "cpu", "gpu"

_TRIED = 30_000
"""Rows whose pairs a GPU counts to measure its rate."""

_given: list[tuple[str, ...]] = [()]
"""The GPUs that Spark has handed to the task of this process, by their addresses."""


def hand_over(addresses: Sequence[str]) -> None:
    """Say which GPUs are scheduled for the task that comes next; none: it takes turns."""
    _given[0] = tuple(addresses)


def handed_over() -> tuple[str, ...]:
    """What Spark has scheduled for this task."""
    return _given[0]


class CountedPart(NamedTuple):
    """A tile, or where it is too large for the processor a part of it, counted."""

    first: int  # the number of the first of its rows t
    second: int  # and of its rows s
    counted: WordCounts


class Spent(NamedTuple):
    """What a device has counted."""

    device: str  # "cpu", or the name of a card
    pairs: int
    seconds: float


class Device:
    """Counts the tiles of a task: on a GPU for as long as that works, if one is wanted, else on the
    processor, in parts with sides of at most so many rows."""

    def __init__(self, wanted: str, rows: int) -> None:
        self._wanted, self._rows = wanted == GPU, rows
        self._used = False
        self.spent: dict[str, Spent] = {}
        self.missing = ""
        """Why the processor counts though a GPU is wanted: a sentence."""

    def count(self, tile: TilePairs, with_pairs: bool) -> Iterator[CountedPart]:
        """The pairs of a tile, as :func:`holdfast.kernels.pairs.count` counts them."""
        if self._wanted:
            counted = self.on_gpu(tile, with_pairs)
            if counted is not None:
                yield CountedPart(0, 0, counted)
                return
        for first in range(0, len(tile.ends), self._rows):
            for second in range(0, int(tile.ends.max(initial=0)), self._rows):
                part = _part(tile, first, second, self._rows)
                if part.number:
                    count = partial(pairs.count, part, with_pairs, look)
                    yield CountedPart(first, second, self._timed(CPU, part.number, count))

    def on_gpu(self, tile: TilePairs, with_pairs: bool) -> WordCounts | None:
        """The same on the GPU, or None: then it is not asked again."""
        number, self.missing = _number()
        if not self.missing:
            with nullcontext() if handed_over() else turn(number):
                # Looked for only now: what others hold during their turns is free in ours.
                there = gpu.device(number)
                self.missing = there.missing
                if there.usable:
                    self._used = True
                    try:
                        count = partial(gpu_count.count, tile, with_pairs)
                        return self._timed(there.name, tile.number, count)
                    except MemoryError as full:  # CuPy's is one
                        self.missing = f"The memory of {there.name} is full: {gpu.line(full)}."
                    except RuntimeError as failure:  # CUDA's and the compiler's errors are
                        self.missing = f"{there.name} cannot count: {gpu.line(failure)}."
        self._wanted = False
        return None

    def release(self) -> None:
        """Leave the GPU's memory to others."""
        if self._used and not self.missing:
            gpu_count.release()

    def _timed(self, device: str, number: int, count: Callable[[], WordCounts]) -> WordCounts:
        started = time.perf_counter()
        counted = count()
        taken = time.perf_counter() - started
        before = self.spent.get(device, Spent(device, 0, 0.0))
        self.spent[device] = Spent(device, before.pairs + number, before.seconds + taken)
        return counted

    def report(self) -> TaskResult:
        """For the driver: which devices counted how much, and why it was not the wanted one."""
        spent = [list(of_device) for of_device in self.spent.values()]
        return TaskResult({"counted": spent, "missing": self.missing})


@dataclass(frozen=True)
class Measure:
    """Measure how fast a GPU counts pairs of rows with so many columns."""

    columns: int


def measure(item: Measure) -> Iterator[TaskResult]:
    """Pairs per second of the GPU that this task has, of rows with few values in each column; 0,
    and why, where there is none."""
    random = np.random.default_rng(0)
    rows = TileRows(random.integers(0, 16, (item.columns, _TRIED), np.int32))
    tile = tile_pairs(equalities(item.columns), rows, rows, True, np.arange(_TRIED))
    rate = 0.0
    for _ in range(2):  # what is compiled and loaded the first time does not count
        device = Device(GPU, _TRIED)
        if device.on_gpu(tile, False) is None:
            break
        (spent,) = device.spent.values()
        rate = spent.pairs / max(spent.seconds, 1e-9)
        device.release()
    yield TaskResult({"pairs_per_second": 0.0 if device.missing else rate, **device.report().facts})


@contextmanager
def turn(number: int) -> Iterator[None]:
    """Wait until no other process of this user counts on a GPU of this machine. The lock is the
    operating system's: a process that dies gives it back."""
    path = Path(tempfile.gettempdir()) / f"holdfast-gpu-{number}-{os.getuid()}.lock"
    try:
        lock = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        # Nobody waits for anybody then. What that costs is at worst memory, which is looked at.
        yield
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _number() -> tuple[int, str]:
    """CUDA's number of the GPU that this task may use, or why there is none."""
    if not handed_over():
        return 0, ""
    address = handed_over()[0]
    # Where a process sees some devices only, CUDA numbers those, in this order.
    visible = [address.strip() for address in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")]
    if address in visible:
        return visible.index(address), ""
    if address.isdecimal():
        return int(address), ""
    return 0, f"Spark has scheduled the GPU {address!r}, which is no number that CUDA knows."


def _part(tile: TilePairs, first: int, second: int, size: int) -> TilePairs:
    """Up to ``size`` rows t from the first on, beside up to ``size`` rows s from the second on."""
    left, right = _rows(tile.ones, first, size), _rows(tile.others, second, size)
    ends = np.clip(tile.ends[first : first + size] - second, 0, right.codes.shape[1])
    return tile_pairs(tile.layout, left, right, tile.nulls_equal, ends)


def _rows(rows: TileRows, first: int, size: int) -> TileRows:
    if first == 0 and size >= rows.codes.shape[1]:
        return rows
    part = slice(first, first + size)
    return TileRows(rows.codes[:, part], None if rows.own is None else rows.own[part])
