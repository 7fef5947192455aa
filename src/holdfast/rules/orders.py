"""Order rules that nearly hold: one column never falls, or never rises, when another rises, perhaps
among rows that agree in a third.

How many rows would have to go is counted exactly, in one pass over the columns
(:mod:`tasks.orders`). Most rules are ruled out by pairs of rows that are drawn: of a random row and
a random one that agrees with it, each is one of the rows that would have to go with a probability
of their share, so that no more than twice that share of the pairs violate the rule.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from holdfast.kernels.arrays import F64, I64
from holdfast.kernels.orders import OrderCounts
from holdfast.model import thresholds
from holdfast.model.comparisons import Comparison
from holdfast.model.constraints import Constraint
from holdfast.model.near import NearBounds, NearRule
from holdfast.rules.near_estimate import UNLIKELY, at_most, truly
from holdfast.rules.pairs import RowPairs
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, run_all
from holdfast.table.change import RowChange
from holdfast.table.state import Table
from holdfast.tasks import orders as tasks
from holdfast.tasks.orders import ColumnsInOrder
from holdfast.values.tuples import TupleCounts

MOST_ROWS = 1 << 25
"""Rows of a table up to which order rules that nearly hold are looked for: a task has some columns
of all rows in memory."""


@dataclass(frozen=True)
class OrderedRows(RowPairs):
    """Rows in order, judged by how many of them would have to go."""

    order: ColumnsInOrder = field(kw_only=True)

    @classmethod
    def change(
        cls,
        run: Run,
        forms: Sequence[RowPairs],
        changes: Sequence[RowChange],
        before: Sequence[int | None],
    ) -> list[int | None]:
        """How many rows would have to go: counted again where a table has changed."""
        numbers = [*before]
        for change in changes:
            places = {
                place: form.order
                for place, form in enumerate(forms)
                if isinstance(form, OrderedRows) and form.table == change.after.name
            }
            counts = counted(run, change.after, [*places.values()])
            numbers_now = (each.removal for each in counts)
            for place, number in zip(places, numbers_now, strict=True):
                numbers[place] = number
        return numbers

    def near(
        self,
        rule: Constraint,
        counts: TupleCounts,  # noqa: ARG002
        violations: int | None,
        tables: Mapping[str, Table],
    ) -> NearRule:
        """By the rows that would have to go."""
        return NearRule(rule, self.table, violations or 0, tables[self.table].rows)


def counted(run: Run, table: Table, orders: Sequence[ColumnsInOrder]) -> list[OrderCounts]:
    """How far the rows of a table are from some rules, in one job."""
    if not orders:
        return []
    view, schema = table.view(run.store.path, run.options), table.columns.schema
    tasks_used = min(run.runner.tasks, len(orders))
    calls: list[Call] = [
        (tasks.count_orders, tasks.CountOrders(view, schema, tuple(orders[task::tasks_used])))
        for task in range(tasks_used)
    ]
    by_task = [*run.runner.run(calls)]
    out: dict[ColumnsInOrder, OrderCounts] = {}
    for task, results in enumerate(by_task):
        for order, result in zip(orders[task::tasks_used], results, strict=True):
            out[order] = OrderCounts(**result.facts)
    return [out[order] for order in orders]


def nearly_hold(counts: OrderCounts, rows: int, bounds: NearBounds) -> bool:
    """Whether a rule does so, or holds, and not because one of the columns hardly varies, or by
    chance: of pairs that differ in both columns, half are against any order then."""
    ordered = counts.with_order + counts.against
    varied = max(bounds.repeated_rows, bounds.repeated_share * rows)
    return (
        counts.removal <= bounds.key_removal * rows
        and counts.varied >= varied
        and 2 * counts.against <= (1 - bounds.strength) * ordered
    )


@dataclass(frozen=True)
class DrawnPairs:
    """What drawn pairs of rows show, which agree within a column, or are any."""

    drawn: int
    paired: int  # so many of them have two rows
    own: Mapping[int, int]  # the place of each column in the next two
    with_order: F64  # by two columns: pairs that differ in both in the same direction
    against: F64  # … or against each other
    outcomes: I64  # by comparison of two columns: one cell is less, equal and greater

    def may_hold(self, order: ColumnsInOrder, bounds: NearBounds) -> bool:
        """Whether a rule may nearly hold; if it does, this is false with a probability below that
        of other estimates."""
        deviation = UNLIKELY / self.drawn
        if self.paired / self.drawn < bounds.repeated_share - np.sqrt(
            2 * bounds.repeated_share * deviation
        ):
            return False
        places = self.own[order.lhs], self.own[order.rhs]
        sides = [self.with_order[places], self.against[places]]
        against = sides[not order.falling] / self.drawn
        ordered = truly(sum(sides) / self.drawn, deviation)
        bound = min(2 * bounds.key_removal, (1 - bounds.strength) / 2 * ordered)
        return bool(against <= at_most(bound, deviation))


def drawn_pairs(
    run: Run, table: Table, comparisons: Sequence[Comparison], within: Sequence[int | None]
) -> list[DrawnPairs]:
    """Pairs of rows that agree within columns, compared, in one job."""
    view, schema = table.view(run.store.path, run.options), table.columns.schema
    pairs = thresholds.current.drawn_rows
    calls: list[Call] = [
        (tasks.draw_pairs, tasks.DrawPairs(view, schema, tuple(comparisons), column, pairs))
        for column in within
    ]
    own = [each.left for each in comparisons if each.is_own]
    places = {column: place for place, column in enumerate(own)}
    return [
        DrawnPairs(result.facts["drawn"], result.facts["paired"], places, **result.arrays)
        for result in run_all(run.runner, calls)
    ]
