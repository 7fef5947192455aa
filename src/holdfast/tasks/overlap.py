"""How many values columns of one table have in common, with how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holdfast.kernels import values
from holdfast.tasks.result import TaskResult
from holdfast.tasks.values import Cells


@dataclass(frozen=True)
class Overlap:
    """The values of one part of the codes."""

    cells: Cells
    part: int
    parts: int


def overlap(item: Overlap) -> Iterator[TaskResult]:
    """``common[a, b]`` is the sum, over all values, of how often each occurs in both columns: the
    lesser of the two numbers. On the diagonal stands how many values a column has."""
    held = [
        block[block[:, 0] % np.uint64(item.parts) == np.uint64(item.part)]
        for block in item.cells.blocks()
    ]
    columns = len(item.cells.attributes)
    common = np.zeros((columns, columns), np.int64)
    values.in_common(values.merged(held), common)
    yield TaskResult({}, {"common": common})
