"""Rows that agree on some columns: what keys and functional dependencies are judged by."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.input.row_input import Columns
from holdfast.model.options import Options
from holdfast.rules.form import RuleForm, TupleSide, in_order


@dataclass(frozen=True)
class AgreeingTuples(RuleForm):
    """Pairs of rows that agree on a side and, where there is another, not on that."""

    table: str
    lhs: TupleSide
    both: TupleSide | None = None  # the left side together with the right one
    ordered: bool = False  # a pair counts twice, once for each order of its rows

    @staticmethod
    def of(
        table: str,
        lhs: tuple[str, ...],
        rhs: str | None,
        columns: Columns,
        options: Options,
        ordered: bool = False,
    ) -> AgreeingTuples:
        """Of a key, which has no right side, or of a functional dependency."""
        nulls = options.nulls == "equal"
        side = TupleSide(table, in_order(lhs, table, columns), nulls)
        if rhs is None:
            return AgreeingTuples(table, side, None, ordered)
        both = TupleSide(table, in_order((*lhs, rhs), table, columns), nulls)
        return AgreeingTuples(table, side, both, ordered)

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """What is counted; all rows agree on no columns."""
        return tuple(side for side in (self.lhs, self.both) if side is not None and side.columns)
