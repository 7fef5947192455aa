"""The rows of a table in a version: their segments, indexes and repeated rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from holdfast.input.row_input import Columns
from holdfast.kernels.arrays import I64
from holdfast.model.commits import ColumnRecord, SourceRecord, TableRecord
from holdfast.model.options import Options
from holdfast.tasks.encode import is_wide, layout
from holdfast.tasks.segments import Segment, column_index
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Table:
    """The rows of one table in one version."""

    name: str
    columns: Columns
    source: SourceRecord
    segments: tuple[Segment, ...]
    next_number: int
    distinct: list[float]  # estimated distinct values per column
    estimated_at: int  # the number of rows when they were estimated
    indexed: tuple[str, ...] = ()  # the names of its indexes, apart from that of whole rows
    duplicates: int = 0  # rows that repeat an earlier one
    repeated: list[list[int]] = field(default_factory=list)  # a few pairs of such rows
    facts: tuple[ColumnRecord, ...] = ()  # of each column; nothing where they are not known
    looked_up: tuple[str, ...] = ()  # the names of the indexes that look-ups go by
    agreeing: list[float] = field(default_factory=list)  # the share of pairs of rows, per column
    changed: str | None = None  # when its rows last did; None: an earlier Holdfast did not say

    @property
    def rows(self) -> int:
        """The number of living rows."""
        return sum(segment.live for segment in self.segments)

    @property
    def words(self) -> int:
        """How many words a row has."""
        return layout(self.columns.schema).total

    @property
    def effective(self) -> list[float]:
        """The effective number of distinct values of each column: with so many equally frequent
        values a look-up would return as many rows as it does on average. It is about 4 if half of
        the rows share one value."""
        known = zip(self.distinct, self.agreeing or [0.0] * len(self.distinct), strict=True)
        return [min(distinct, 1 / max(agreeing, 1e-18)) for distinct, agreeing in known]

    def positions(self, names: Sequence[str]) -> tuple[int, ...]:
        """The positions of some columns."""
        return tuple(map(self.columns.names.index, names))

    def column_index(self, column: int) -> str:
        """The name of the index of one column: over its first word, or over the whole cell where
        the first word does not distinguish values."""
        return column_index(column, is_wide(self.columns.schema.field(column).type))

    @property
    def index_names(self) -> tuple[str, ...]:
        """The indexes that every segment has besides the one of whole rows."""
        return tuple(dict.fromkeys((*self.indexed, *self.looked_up)))

    def view(
        self, root: str, options: Options, segments: tuple[Segment, ...] | None = None
    ) -> View:
        """Some segments (by default all) as tasks see them."""
        chosen = self.segments if segments is None else segments
        return View(root, chosen, layout(self.columns.schema).widths, options.nulls == "equal")

    def renumbered(self, old: I64, new: I64) -> Table:
        """The table after rows got new ids."""
        at = dict(zip(old.tolist(), new.tolist(), strict=True))
        repeated = [[at.get(id_, id_) for id_ in pair] for pair in self.repeated]
        return replace(self, repeated=repeated)

    @property
    def record(self) -> TableRecord:
        """What a commit stores of the rows."""
        return TableRecord(
            self.columns.record,
            self.source,
            self.rows,
            self.segments,
            self.next_number,
            tuple(self.distinct),
            self.estimated_at,
            self.indexed,
            self.duplicates,
            tuple((one, two) for one, two in self.repeated),
            facts=self.facts,
            looked_up=self.looked_up,
            agreeing=tuple(self.agreeing),
            changed=self.changed,
        )

    @staticmethod
    def stored(name: str, record: TableRecord) -> Table:
        """The table that a commit stored."""
        return Table(
            name,
            Columns.stored(record.columns),
            record.source,
            record.segments,
            record.next_number,
            list(record.distinct),
            record.estimated_at,
            record.indexed,
            record.duplicates,
            [list(pair) for pair in record.repeated],
            record.facts,
            record.looked_up,
            list(record.agreeing),
            record.changed,
        )
