"""Rules that a row breaks by itself: columns without nulls, comparisons of cells of one row."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.rules.form import RuleForm
from holdfast.tasks.tuples import RowRule


@dataclass(frozen=True)
class SingleRows(RuleForm):
    """Rows that break a rule by themselves."""

    table: str
    rule: RowRule | None  # None: no row can break it
