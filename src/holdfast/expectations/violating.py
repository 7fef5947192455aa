"""Rows that violate a rule, some of them, to be shown: looked for only where it breaks."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from holdfast.expectations import pairs
from holdfast.expectations.rules import Agreeing, Contained, OfPairs, OfRows
from holdfast.expectations.state import SHOWN, Expected, tested
from holdfast.expectations.tuples import cells_of
from holdfast.families.denial_constraints.predicates import atoms_of, denial_of, space_of
from holdfast.model.commits import SideRecord
from holdfast.model.comparisons import agreements
from holdfast.model.constraints import FunctionalDependency, Key, Row
from holdfast.model.expectations import Group
from holdfast.store.run import Run
from holdfast.table.change import Rows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.table.witnesses import rows_as_text
from holdfast.tasks import quarantine as parts
from holdfast.tasks import tuples as tasks
from holdfast.tasks.runner import Call
from holdfast.tasks.segments import Segment
from holdfast.tasks.values import Cells, Missing, cut, missing
from holdfast.tasks.view import View

I64 = NDArray[np.int64]
U64 = NDArray[np.uint64]

ROWS = 10
"""Rows of a group that are shown; their number is given beside."""

_NO_CODES = np.empty((0, 2), np.uint64)
_NOBODY = np.empty(0, np.int64)


New = Mapping[str, tuple[Segment, ...]]
"""The segments that a batch brought, by table."""


def groups(
    run: Run, expected: Expected, place: int, tables: Mapping[str, Table], new: New | None = None
) -> list[Group]:
    """Some rows that violate an expectation, of those that are ``new`` where a batch brought some:
    for a key all rows that share it, as far as :data:`ROWS` go; for a dependency those that agree
    on its left side; pairs for other rules about two rows; and orphans, or other rows that violate
    it by themselves, in one group."""
    rule = expected.measures[place]
    number = expected.standings[place].violations or 0
    if isinstance(rule, OfRows):
        table = tables[rule.table]
        segments = table.segments if new is None else new[rule.table]
        return _single(run, Rows(table, segments), rule, number)
    if isinstance(rule, Contained):
        left, right = (expected.tuples.side(side) for side in rule.sides)
        codes = _lacking(run, expected, (left.number, right.number))
        orphans = _gathered(run, tables[left.table], left, codes)
        ids = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in orphans)])[:ROWS]
        return _shown(run, tables[left.table], [(number, ids)])
    table = tables[rule.table]
    if isinstance(rule, OfPairs):
        return _shown(run, table, [(2, pair) for pair in pairs.some(run, table, rule, SHOWN)])
    return _sharing(run, expected, rule, table, None if new is None else new[rule.table])


def _lacking(run: Run, expected: Expected, reference: tuple[int, int]) -> U64:
    """Codes of tuples that a right side lacks: those that a batch brought or took, if any."""
    codes = expected.tuples.lacking.get(reference, _NO_CODES)
    if len(codes):
        return codes
    runs = expected.tuples.record.runs
    count = max([1, *(len(each.parts) for each in runs)])
    calls: list[Call] = [
        (
            missing,
            Missing(run.store.path, cut(k, count), cut(k + 1, count), runs, *reference, SHOWN),
        )
        for k in range(count)
    ]
    blocks = [each.arrays["codes"] for result in run.runner.run(calls) for each in result]
    return np.concatenate(blocks)[:SHOWN]


def _single(run: Run, rows: Rows, rule: OfRows, number: int) -> list[Group]:
    calls = tested(run, rows, (rule.rule,), ROWS) if rows.count else []
    ids = [each.arrays["ids"] for result in run.runner.run(calls) for each in result]
    return _shown(run, rows.table, [(number, np.concatenate([_NOBODY, *ids])[:ROWS])])


def _sharing(
    run: Run, expected: Expected, rule: Agreeing, table: Table, new: tuple[Segment, ...] | None
) -> list[Group]:
    """Rows that share a key, or agree on the left side of a dependency and not on the right."""
    if not rule.lhs.columns:
        return _shown(run, table, [(2, pair) for pair in _pairs(run, rule, table)])
    side = expected.tuples.side(rule.lhs)
    codes = expected.tuples.shared.get(side.number, _NO_CODES)
    if rule.both is not None and new:
        _, codes, _ = taking_part(run, expected, rule, table, new)
        codes = np.unique(codes, axis=0)[:SHOWN]
    elif rule.both is not None or not len(codes):
        # Not every tuple that rows share has different right sides; and those of a side that was
        # counted before are not at hand.
        seen = _pairs(run, rule, table)
        codes = _codes(run, table, side, seen[:, 0]) if len(seen) else _NO_CODES
    return _shown(run, table, _gathered(run, table, side, codes))


def taking_part(
    run: Run, expected: Expected, rule: Agreeing, table: Table, new: tuple[Segment, ...]
) -> tuple[I64, U64, U64]:
    """The ids of new rows that agree with others on one side and not on the other, and their codes
    in both: by their counts, at the cost of the batch."""
    rows = Rows(table, new)
    calls: list[Call] = []
    for view in shares(table.view(run.store.path, run.options, new), run.runner.tasks):
        lhs, both = (cells_in(run, rows, each, view) for each in sides_of(expected, rule))
        asked = parts.Agreeing(view, lhs, both, table.rows)
        item = parts.Involved(run.store.path, expected.tuples.record.runs, asked)
        calls.append((parts.involved, item))
    results = [each.arrays for result in run.runner.run(calls) for each in result]
    return (
        np.concatenate([_NOBODY, *(each["ids"] for each in results)]),
        np.concatenate([_NO_CODES, *(each["codes"] for each in results)]),
        np.concatenate([_NO_CODES, *(each["others"] for each in results)]),
    )


def sides_of(expected: Expected, rule: Agreeing) -> tuple[SideRecord | None, SideRecord | None]:
    """The two sides of a rule, as they are counted; None: no columns, or no such side."""
    lhs = expected.tuples.side(rule.lhs) if rule.lhs.columns else None
    return lhs, None if rule.both is None else expected.tuples.side(rule.both)


def cells_in(run: Run, rows: Rows, side: SideRecord | None, view: View) -> Cells | None:
    """Some of the rows as tuples of a side."""
    return None if side is None else replace(cells_of(run, rows, [side]), view=view)


def _pairs(run: Run, rule: Agreeing, table: Table) -> I64:
    """A few pairs of rows that agree on one side and not on the other."""
    names = table.columns.names
    lhs = rule.lhs.columns
    differing = () if rule.both is None else [c for c in rule.both.columns if c not in lhs]
    denied = denial_of(
        FunctionalDependency(table.name, lhs, differing[0]) if differing else Key(table.name, lhs)
    )
    space = space_of(denied, table.columns) if denied.predicates else agreements(len(names))
    asked = OfPairs(table.name, space, atoms_of(denied, space, names))
    return pairs.some(run, table, asked, SHOWN)


def _codes(run: Run, table: Table, side: SideRecord, ids: I64) -> U64:
    """The codes that rows have in a side."""
    segments = tuple(s for s in table.segments if s.number in set((ids >> 32).tolist()))
    cells = cells_of(run, Rows(table, segments, ids), [side])
    blocks = [codes for _, _, codes in cells.codes(0)]
    return np.concatenate([_NO_CODES, *blocks])


def _gathered(run: Run, table: Table, side: SideRecord, codes: U64) -> list[tuple[int, I64]]:
    """For each code how many rows have it, and the ids of the first of them."""
    if not len(codes):
        return []
    codes = np.unique(codes, axis=0)
    cells = cells_of(run, Rows.living(table), [side])
    calls: list[Call] = [
        (tasks.gather, tasks.Gather(replace(cells, view=share), codes, ROWS))
        for share in shares(cells.view, run.runner.tasks)
    ]
    numbers = np.zeros(len(codes), np.int64)
    ids: list[list[int]] = [[] for _ in codes]
    for result in run.runner.run(calls):
        for each in result:
            numbers += each.arrays["number"]
            for at, id_ in zip(each.arrays["codes"], each.arrays["ids"], strict=True):
                ids[at].append(int(id_))
    return [
        (int(number), np.array(sorted(mine)[:ROWS], np.int64))
        for number, mine in zip(numbers, ids, strict=True)
        if number
    ]


def _shown(run: Run, table: Table, numbered: Sequence[tuple[int, I64]]) -> list[Group]:
    every = np.concatenate([np.empty(0, np.int64), *(ids for _, ids in numbered)])
    text = rows_as_text(run.store.path, table.segments, table.columns.names, every)

    def row(id_: int) -> Row:
        shown: Row = json.loads(text[id_])
        return shown

    return [
        Group(tuple(row(int(id_)) for id_ in ids), number) for number, ids in numbered if len(ids)
    ]
