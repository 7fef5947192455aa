"""How nearly columns rise or fall with each other, perhaps among rows that agree in another: pairs
of rows that are drawn, and counts in all rows.

A task sees some columns of all rows, as small integers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.kernels import ranks
from holdfast.kernels.arrays import I64
from holdfast.kernels.numbering import Numbers, grouped
from holdfast.kernels.orders import order_counts
from holdfast.kernels.ranks import Codes
from holdfast.kernels.values import HASHED
from holdfast.model.comparisons import Comparison
from holdfast.runtime.result import TaskResult
from holdfast.runtime.timed import look
from holdfast.tasks.coding import Coding, word_form
from holdfast.tasks.segments import live_positions, map_words
from holdfast.tasks.view import View


@dataclass(frozen=True)
class ColumnsInOrder:
    """The second column never falls when the first rises; or, with ``falling``, never rises; among
    rows that agree ``within`` a column, if there is one."""

    lhs: int
    rhs: int
    falling: bool
    within: int | None = None


@dataclass(frozen=True)
class CountOrders:
    """Count how far the rows of a view are from some rules."""

    view: View
    schema: pa.Schema
    orders: tuple[ColumnsInOrder, ...]

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live * len(self.orders)


@dataclass(frozen=True)
class DrawPairs:
    """Draw so many pairs of rows, of those that agree within a column if there is one, and compare
    them."""

    view: View
    schema: pa.Schema
    comparisons: tuple[Comparison, ...]  # of columns with themselves, and with others
    within: int | None
    pairs: int

    @property
    def work(self) -> int:
        """Rows that it goes through."""
        return self.view.live


def count_orders(item: CountOrders) -> Iterator[TaskResult]:
    """The counts of each rule."""
    cells = _Cells(item.view, item.schema)
    for order in item.orders:
        look()
        lhs, rhs = cells.coded(order.lhs), cells.coded(order.rhs)
        kept = (lhs >= 0) & (rhs >= 0)  # a null is in no order
        group = np.zeros_like(lhs)
        if order.within is not None:
            group = cells.coded(order.within) + np.int32(1)
            kept &= item.view.nulls_equal | (group > 0)
        if order.falling:
            rhs = rhs.max(initial=0) - rhs
        yield TaskResult(order_counts(group[kept], lhs[kept], rhs[kept])._asdict())


class _Cells:
    """Columns of all living rows of a view, each coded once: with ranks, or numbers where values
    have no order."""

    def __init__(self, view: View, schema: pa.Schema) -> None:
        self._view, self._schema = view, schema
        self._known: dict[int, Codes] = {}

    def coded(self, column: int) -> Codes:
        """The codes of a column; a null is -1."""
        if column not in self._known:
            look()
            first, values = self._view.shape.first, self._view.shape.owner.size
            kind, scale = word_form(self._schema.field(column).type)
            words, nulls = [], []
            for segment in self._view.segments:
                positions = live_positions(self._view.path, segment)
                rows = map_words(self._view.path, segment).at(positions)
                words.append(rows[positions, int(first[column]) : int(first[column + 1])])
                masks = rows[positions, values + column // 64]
                nulls.append(masks >> np.uint64(column % 64) & np.uint64(1) == 1)
            cells = ranks.ColumnCells(np.concatenate(words), np.concatenate(nulls), kind, scale)
            code = ranks.numbers if kind == HASHED else ranks.ranks
            [self._known[column]] = code([cells])
        return self._known[column]


def draw_pairs(item: DrawPairs) -> Iterator[TaskResult]:
    """How many of the pairs have two rows; by two comparisons of columns with themselves how many
    differ in both, in the same direction or against each other; and by each other comparison in how
    many the one row's cell is less, equal and greater."""
    view = item.view
    ids = _ids(view)
    one, two = _drawn(item, len(ids))
    rows = view.rows_with(ids[np.concatenate([one, two])])
    codes = Coding.of(item.schema, item.comparisons).codes(rows, view.shape.first)
    t, s = codes[:, : len(one)], codes[:, len(one) :]
    own = [each.left for each in item.comparisons if each.is_own]
    signs = np.sign(t[own] - s[own]) * ((t[own] >= 0) & (s[own] >= 0))
    up, down = ((signs == sign).astype(np.float64) for sign in (1, -1))
    outcomes = []
    for each in item.comparisons:
        if not each.is_own:
            left, right = t[each.left], s[each.right]
            known = (left >= 0) & (right >= 0)
            outcomes.append([int((known & (np.sign(left - right) == k)).sum()) for k in (-1, 0, 1)])
    yield TaskResult(
        {"drawn": len(one), "paired": int((one != two).sum())},
        {
            "with_order": up @ up.T + down @ down.T,
            "against": up @ down.T + down @ up.T,
            "outcomes": np.array(outcomes, np.int64).reshape(-1, 3),
        },
    )


def _ids(view: View) -> I64:
    of_segments = [live_positions(view.path, each) + each.base for each in view.segments]
    return np.concatenate([np.empty(0, np.int64), *of_segments])


def _drawn(item: DrawPairs, rows: int) -> tuple[I64, I64]:
    """Random rows, and for each a random one of the others that agree with it; itself where there
    is none. Where there are few rows, all of them with all."""
    if item.within is None and rows**2 <= item.pairs:
        every = np.arange(rows)
        return np.repeat(every, rows), np.tile(every, rows)
    rng = np.random.default_rng(0 if item.within is None else 1 + item.within)
    at = rng.integers(rows, size=item.pairs)
    if item.within is None:
        return at, (at + rng.integers(1, max(2, rows), size=item.pairs)) % rows
    codes = _Cells(item.view, item.schema).coded(item.within)
    groups = grouped(Numbers(codes + np.int32(1), int(codes.max(initial=-1)) + 2))
    one = groups.order[at].astype(np.int64)
    own = codes[one].astype(np.int64) + 1
    start, size = groups.starts[own], groups.sizes[own]
    step = 1 + (rng.random(item.pairs) * np.maximum(size - 1, 1)).astype(np.int64)
    two = groups.order[start + (at - start + step) % size].astype(np.int64)
    if not item.view.nulls_equal:
        two = np.where(own == 0, one, two)
    return one, two
