"""What a batch does to a table's rows, before constraints are looked at."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.table.state import Table
from holdfast.tasks.segments import Segment

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class RowCounts:
    """How many rows a batch inserts, deletes and updates, and how many it need not delete, because
    they are not there."""

    inserted: int = 0
    deleted: int = 0
    updated: int = 0
    skipped: int = 0


@dataclass(frozen=True)
class RowChange:
    """A table before and after a batch. Its deleted rows still have their words in ``before``."""

    before: Table
    after: Table
    added: tuple[Segment, ...]
    gone: I64  # ids of the deleted rows
    counts: RowCounts = RowCounts()
