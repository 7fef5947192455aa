"""How many values columns of one table have in common, with how often each occurs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.kernels import values
from holdfast.model.commits import ValueRun
from holdfast.runtime.result import TaskResult
from holdfast.tasks.values import CODES, RowValues, slices


@dataclass(frozen=True)
class Overlap:
    """The values of some rows, or those in runs whose codes are in a range."""

    root: str
    columns: int
    cells: tuple[RowValues, ...] = ()
    runs: tuple[ValueRun, ...] = ()
    low: int = 0
    high: int = CODES


def overlap(item: Overlap) -> Iterator[TaskResult]:
    """``common[a, b]`` is the sum, over all values, of how often each occurs in both columns: the
    lesser of the two numbers. On the diagonal stands how many values a column has."""
    held = [block for cells in item.cells for block in cells.blocks()]
    held += slices(Path(item.root), item.runs, item.low, item.high)
    common = np.zeros((item.columns, item.columns), np.int64)
    values.in_common(values.merged(held), common)
    yield TaskResult({}, {"common": common})
