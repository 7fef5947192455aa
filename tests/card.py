"""A stand-in for a GPU, for machines without one: counts like the processor, and takes notes."""

from __future__ import annotations

import pytest

from holdfast.evidence import devices
from holdfast.kernels import gpu, pairs
from holdfast.kernels.arrays import I64
from holdfast.kernels.comparisons import WordLayout
from holdfast.kernels.gpu import count as gpu_count

NAME = "A card"


def counted(
    device: str,
    layout: WordLayout,
    ones: pairs.TileRows,
    others: pairs.TileRows,
    nulls_equal: bool,
    ends: I64 | None = None,
    *,
    with_pairs: bool = False,
) -> pairs.WordCounts:
    """Pairs of rows counted on the processor ("cpu"), or on a GPU that is really there."""
    tile = pairs.tile_pairs(layout, ones, others, nulls_equal, ends)
    count = gpu_count.count if device == "gpu" else pairs.count
    return count(tile, with_pairs)


class Card:
    """What the stand-in is to do, and what it was asked for."""

    def __init__(self) -> None:
        self.counted: list[int] = []  # the pairs of each call
        self.rows: list[int] = []  # the longer side of each call
        self.looked_for: list[int | None] = []  # by which numbers
        self.missing = ""  # why it cannot be used
        self.failure: Exception | None = None  # of every call

    def device(self, number: int | None = None) -> gpu.CudaDevice:
        self.looked_for.append(number)
        return gpu.CudaDevice(NAME, 1 << 34, self.missing)

    def count(self, tile: pairs.TilePairs, with_pairs: bool = False) -> pairs.WordCounts:
        if self.failure is not None:
            raise self.failure
        self.counted.append(tile.number)
        self.rows.append(max(tile.ones.codes.shape[1], tile.others.codes.shape[1]))
        return pairs.count(tile, with_pairs)


def stand_in(patch: pytest.MonkeyPatch) -> Card:
    """A card in this process; CuPy is there, too, and nothing is known of a GPU yet."""
    card = Card()
    patch.setattr(gpu, "device", card.device)
    patch.setattr(gpu_count, "count", card.count)
    patch.setattr(gpu_count, "release", lambda: None)
    patch.setattr(devices, "_has_cupy", lambda: True)
    patch.setattr(devices, "_rates", {})
    patch.setattr(devices, "_said", set())
    return card
