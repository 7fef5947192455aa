"""How many values the columns of a table have in common, counted with repetition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from holdfast.kernels import values
from holdfast.model.commits import ValueRun
from holdfast.runtime.result import TaskResult
from holdfast.tasks.values import CodeRange, RowValues, entries_of


@dataclass(frozen=True)
class Overlap(CodeRange):
    """The values of some rows, or those of runs in a range of codes."""

    columns: int
    cells: tuple[RowValues, ...] = ()
    runs: tuple[ValueRun, ...] = ()


def overlap(item: Overlap) -> Iterator[TaskResult]:
    """``common[a, b]`` sums over all values how often each occurs in both columns (the smaller of
    the two numbers). The diagonal has the number of values of each column."""
    entries = values.merged([*entries_of(item.cells), *item.slices(item.runs)])
    common = np.zeros((item.columns, item.columns), np.int64)
    values.in_common(entries, common)
    yield TaskResult({}, {"common": common})
