"""Denial constraints: ordered pairs of rows that violate them.

A batch changes their number by the pairs of its new rows with all rows, less those of its deleted
ones. Where that would be too many pairs to compare, a search tells whether there is any violating
pair; their number is then known only where it is 0.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from holdfast.evidence import counting, devices, strategy, tiles
from holdfast.evidence.comparison import completion
from holdfast.evidence.scope import Scope
from holdfast.kernels import violations
from holdfast.kernels.arrays import I64, Flags
from holdfast.model.errors import InputError
from holdfast.rules.pairs import RowPairs
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.change import RowChange
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import quarantine as tasks
from holdfast.tasks.segments import Segment

Counts = list[int | None]
"""Violating pairs of each rule; None: some, and nobody knows how many."""

_MOST = 60.0
"""Seconds that comparing pairs may take before they are searched for instead."""


def declared(run: Run, table: Table, rules: Sequence[RowPairs]) -> Counts:
    """In all rows of a table."""
    return changed(run, _all_rows(table), rules, [0] * len(rules))


def changed(run: Run, change: RowChange, rules: Sequence[RowPairs], before: Counts) -> Counts:
    """After rows came and went."""
    if not rules:
        return []
    counted = [k for k, number in enumerate(before) if number is not None]
    counts = list(before)
    if counted and _quick(run, change, [rules[k] for k in counted]):
        asked = [(rules[k].space, rules[k].atoms) for k in counted]
        for k, more in zip(counted, counting.change_of(run, change, asked), strict=True):
            counts[k] = (before[k] or 0) + more
    else:
        counted = []
    for k in range(len(rules)):
        if k not in counted:
            counts[k] = None if len(some(run, change.after, rules[k], 1)) else 0
    return counts


def _quick(run: Run, change: RowChange, rules: Sequence[RowPairs]) -> bool:
    pairs = tiles.pairs_of(*counting.lines_of(change))
    comparisons = sum(len(each.space.comparisons) for each in rules)
    seconds = strategy.seconds_on_cpu(pairs, comparisons, run.runner.tasks)
    if seconds > _MOST:
        rate = devices.gpu_rate(run)(comparisons)
        seconds = min(seconds, pairs / rate) if rate else seconds
    return seconds <= _MOST


def expect_countable(table: Table, rule: str, counts: int | None) -> None:
    """See that an error can be counted, which a bound on it needs."""
    if counts is None:
        raise InputError(
            f"{rule}: table {table.name!r} has {table.rows:,} rows, too many to count the pairs "
            "that violate it, which --max-error needs; expect it without"
        )


def some(run: Run, table: Table, rule: RowPairs, most: int) -> I64:
    """A few violating pairs, by the ids of their rows: t, then s."""
    if table.rows < 2:
        return np.empty((0, 2), np.int64)
    return completion.violating(Scope.of(run, table, rule.space), rule.atoms, most)


def beside(
    run: Run, table: Table, rule: RowPairs, added: tuple[Segment, ...]
) -> tuple[I64, I64, Flags]:
    """The ids of new rows that violate a rule with another one; of those the one with the least id;
    and whether the new row is row t. All of them are compared with all rows."""
    asked = violations.terms(rule.space, rule.atoms)
    assert asked is not None
    view = table.view(run.store.path, run.options)
    calls: list[Call] = [
        (tasks.beside, tasks.Beside(share, added, table.columns.schema, tuple(asked)))
        for share in shares(view, run.runner.tasks)
    ]
    results = [each for result in run.runner.run(calls) for each in result]
    ids, clashes, is_t = (
        np.concatenate([each.arrays[name] for each in results])
        for name in ("ids", "clashes", "is_t")
    )
    order = np.lexsort((clashes, ids))
    ids, clashes, is_t = ids[order], clashes[order], is_t[order]
    _, first = np.unique(ids, return_index=True)
    return ids[first], clashes[first], is_t[first]


def _all_rows(table: Table) -> RowChange:
    """A table as a batch that brought all its rows."""
    return RowChange(table, table, table.segments)
