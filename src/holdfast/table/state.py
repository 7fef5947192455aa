"""A table's rows in a version: where they lie, what is indexed, what is repeated."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.input.row_input import Columns
from holdfast.model.options import Options
from holdfast.tasks.encode import layout
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View

I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Table:
    """The rows of one table in one version."""

    name: str
    columns: Columns
    source: dict[str, Any]
    segments: tuple[Segment, ...]
    next_number: int
    distinct: list[float]  # estimated distinct values per column
    estimated_at: int  # the number of rows when they were estimated
    indexed: tuple[str, ...] = ()  # the names of its indexes, apart from that of whole rows
    duplicates: int = 0  # rows that repeat an earlier one
    repeated: list[list[int]] = field(default_factory=list)  # a few pairs of such rows

    @property
    def rows(self) -> int:
        """The number of living rows."""
        return sum(segment.live for segment in self.segments)

    def view(
        self, root: str, options: Options, segments: tuple[Segment, ...] | None = None
    ) -> View:
        """Some segments (by default all) as tasks see them."""
        chosen = self.segments if segments is None else segments
        return View(root, chosen, layout(self.columns.schema).widths, options.nulls == "equal")

    def renumbered(self, old: I64, new: I64) -> Table:
        """The same after rows moved."""
        at = dict(zip(old.tolist(), new.tolist(), strict=True))
        repeated = [[at.get(id_, id_) for id_ in pair] for pair in self.repeated]
        return replace(self, repeated=repeated)

    def to_dict(self) -> dict[str, Any]:
        """The form that a commit stores."""
        return {
            "columns": self.columns.to_dict(),
            "source": self.source,
            "rows": self.rows,
            "segments": [segment.to_dict() for segment in self.segments],
            "next_number": self.next_number,
            "distinct": self.distinct,
            "estimated_at": self.estimated_at,
            "indexed": list(self.indexed),
            "duplicates": self.duplicates,
            "repeated": self.repeated,
        }

    @staticmethod
    def from_dict(name: str, form: dict[str, Any]) -> Table:
        """The table that a commit stored."""
        return Table(
            name,
            Columns.from_dict(form["columns"]),
            form["source"],
            tuple(Segment.from_dict(each) for each in form["segments"]),
            form["next_number"],
            form["distinct"],
            form["estimated_at"],
            tuple(form["indexed"]),
            form["duplicates"],
            form["repeated"],
        )
