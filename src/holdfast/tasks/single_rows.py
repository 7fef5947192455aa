"""Rows that violate rules by themselves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.kernels import violations
from holdfast.kernels.arrays import I64
from holdfast.kernels.violations import Term
from holdfast.runtime.result import TaskResult
from holdfast.tasks.coding import Coding
from holdfast.tasks.segments import Segment
from holdfast.tasks.values import positions_of
from holdfast.tasks.view import View

_CHUNK = 1 << 16
"""Rows whose cells are compared at a time."""


@dataclass(frozen=True)
class RowRule:
    """What a row must not be: null in a column, or such that its cells satisfy some terms."""

    column: int | None
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True)
class RowTests:
    """Rows that violate rules about single rows: the living ones, or those that had been deleted
    ``later``."""

    view: View
    schema: pa.Schema
    rules: tuple[RowRule, ...]
    most: int  # ids that are given of each rule
    later: tuple[Segment, ...] | None = None
    weight: int = 1  # -1: the rows are gone


def check_rows(item: RowTests) -> Iterator[TaskResult]:
    """How many rows violate each rule, and the ids of a few of them."""
    number = np.zeros(len(item.rules), np.int64)
    first = [np.empty(0, np.int64)]
    for rule, ids in violating_rows(item):
        room = item.most - int(number[rule])
        number[rule] += len(ids)
        if room > 0:
            first.append(ids[:room])
    yield TaskResult({}, {"number": item.weight * number, "ids": np.concatenate(first)})


def violating_rows(item: RowTests) -> Iterator[tuple[int, I64]]:
    """The ids of rows that violate a rule, by its place, a chunk of rows at a time."""
    view = item.view
    compared = [each for rule in item.rules for each, _ in rule.terms]
    coding = Coding.of(item.schema, compared)
    for segment in view.segments:
        positions = positions_of(view, segment, None, item.later)
        for start in range(0, len(positions), _CHUNK):
            chosen = positions[start : start + _CHUNK]
            rows = view.rows(segment, chosen)
            codes = coding.codes(rows, view.shape.first) if compared else None
            for place, rule in enumerate(item.rules):
                if rule.column is not None:
                    word = rows[:, view.shape.owner.size + rule.column // 64]
                    wrong = word >> np.uint64(rule.column % 64) & np.uint64(1) == 1
                else:
                    assert codes is not None
                    wrong = violations.within_rows([*codes], rule.terms, view.nulls_equal)
                yield place, chosen[wrong] + segment.base
