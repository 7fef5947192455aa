"""A stand-in for a GPU, for machines without one: counts like the processor, and takes notes."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.evidence import devices
from holdfast.kernels import gpu, pairs
from holdfast.kernels.gpu import count as gpu_count

NAME = "A card"


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

    def attempt(self, layout: Any, ones: Any, others: Any, *rest: Any) -> pairs.WordCounts:
        if self.failure is not None:
            raise self.failure
        found = pairs.count(layout, ones, others, *rest)
        self.counted.append(int(found.counts.sum()))
        self.rows.append(max(ones.codes.shape[1], others.codes.shape[1]))
        return found


def stand_in(patch: pytest.MonkeyPatch) -> Card:
    """A card in this process; CuPy is there, too, and nothing is known of a GPU yet."""
    card = Card()
    patch.setattr(gpu, "device", card.device)
    patch.setattr(gpu_count, "attempt", card.attempt)
    patch.setattr(gpu_count, "release", lambda: None)
    patch.setattr(devices, "_has_cupy", lambda: True)
    patch.setattr(devices, "_rates", {})
    patch.setattr(devices, "_said", set())
    return card
