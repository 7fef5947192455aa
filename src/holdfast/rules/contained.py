"""Tuples that occur in other columns: what inclusion dependencies are judged by."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.rules.form import RuleForm, TupleSide


@dataclass(frozen=True)
class ContainedTuples(RuleForm):
    """Tuples of the left side that the right side lacks."""

    left: TupleSide
    right: TupleSide

    @property
    def table(self) -> str:  # type: ignore[override]  # a field of the other forms
        """That of the left side."""
        return self.left.table

    @property
    def sides(self) -> tuple[TupleSide, ...]:
        """What is counted."""
        return self.left, self.right
