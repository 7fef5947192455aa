"""Ordered pairs of rows that satisfy all predicates: what denial constraints are judged by."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.model.comparisons import Space
from holdfast.rules.form import RuleForm


@dataclass(frozen=True)
class RowPairs(RuleForm):
    """Ordered pairs of rows that satisfy all atoms."""

    table: str
    space: Space
    atoms: tuple[int, ...]
