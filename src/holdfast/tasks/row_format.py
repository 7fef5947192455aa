"""In which form rows come: as lines of text, as JSON records, or typed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import pyarrow as pa

from holdfast.tasks.dialect import Dialect


@dataclass(frozen=True, kw_only=True)
class RowFormat:
    """How rows are read; a row input says it to the tasks that write them."""

    lines: Dialect | None = None  # how they are written, if rows are lines of text
    header: bool = False
    whole: bool = False  # a "line" is a whole file, whose cells may hold newlines
    json: tuple[tuple[str, ...], ...] = ()  # where in a record each column is, if rows are JSON
    given: pa.Schema | None = None  # the types of typed rows as they come, if not the table's
    rounds: bool = False  # nanoseconds become whole microseconds where those are stored
    order: tuple[int, ...] = ()  # of lines where each cell goes, of typed rows where it comes from
    guessed: bool = False  # types were inferred from a sample: report what would fit instead

    @property
    def settings(self) -> dict[str, Any]:
        """The format alone, by field."""
        return {each.name: getattr(self, each.name) for each in fields(RowFormat)}
