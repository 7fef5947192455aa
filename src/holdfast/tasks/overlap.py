"""How many values columns of one table have in common, with how often each occurs."""

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
    """The values of some rows, or those in runs whose codes are in a range."""

    columns: int
    cells: tuple[RowValues, ...] = ()
    runs: tuple[ValueRun, ...] = ()


def overlap(item: Overlap) -> Iterator[TaskResult]:
    """``common[a, b]`` is the sum, over all values, of how often each occurs in both columns: the
    lesser of the two numbers. On the diagonal stands how many values a column has."""
    entries = values.merged([*entries_of(item.cells), *item.slices(item.runs)])
    common = np.zeros((item.columns, item.columns), np.int64)
    values.in_common(entries, common)
    yield TaskResult({}, {"common": common})
