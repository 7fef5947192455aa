"""Rows that violate a rule, some of them, to be shown: looked for only where it breaks.

Where a batch brought rows that take part in violations, these come first. Of rows that agree on the
left side of a dependency one is shown for each value on the right, so that what differs is seen.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from holdfast.expectations import pairs
from holdfast.expectations.state import SHOWN, Expected
from holdfast.expectations.tuples import cells_of
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kinds.denial_constraints.predicates import atoms_of, denial_of, space_of
from holdfast.kinds.single_rows import violating
from holdfast.model.commits import SideRecord
from holdfast.model.comparisons import agreements
from holdfast.model.constraints import FunctionalDependency, Key, Row
from holdfast.model.expectations import Group
from holdfast.rules.agreeing import AgreeingTuples
from holdfast.rules.contained import ContainedTuples
from holdfast.rules.pairs import RowPairs
from holdfast.rules.single_rows import SingleRows
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call
from holdfast.table.change import TableRows
from holdfast.table.placement import shares
from holdfast.table.state import Table
from holdfast.tasks import quarantine as parts
from holdfast.tasks.segments import Segment
from holdfast.tasks.shown import rows_as_text
from holdfast.tasks.values import MissingValues, RowValues, cut, missing
from holdfast.tasks.view import View

ROWS = 10
"""Rows of a group that are shown; their number is given beside."""

_NO_CODES = np.empty((0, 2), np.uint64)
_NOBODY = np.empty(0, np.int64)


New = Mapping[str, tuple[Segment, ...]]
"""The segments that a batch brought, by table."""

Sides = tuple[SideRecord | None, SideRecord | None]
"""The two sides of a rule, as they are counted; None: no columns, or no such side."""

Candidate = tuple[int, tuple[int, int]]
"""The id of a row that may be shown, and a code that other rows like it have, too."""


def groups(
    run: Run, expected: Expected, place: int, tables: Mapping[str, Table], new: New | None = None
) -> list[Group]:
    """Some rows that violate an expectation: for a key all rows that share it, as far as
    :data:`ROWS` go; for a dependency those that agree on its left side, one for each value on the
    right; pairs for other rules about two rows, row t first; and orphans, or other rows that
    violate it by themselves, in one group. Where rows that a batch brought take part, their groups
    or pairs, and in a group they come first."""
    rule = expected.measures[place]
    number = expected.standings[place].violations
    table = tables[rule.left.table if isinstance(rule, ContainedTuples) else rule.table]
    added = (new or {}).get(table.name, ())
    if isinstance(rule, SingleRows):
        shown = [(number or 0, _alone(run, rule, table, added))]
    elif isinstance(rule, ContainedTuples):
        shown = [(number or 0, _orphans(run, expected, rule, table, added))]
    elif isinstance(rule, RowPairs):
        some = _pairs(run, rule, table, added, is_counted=number is not None)
        shown = [(2, pair) for pair in some]
    else:
        assert isinstance(rule, AgreeingTuples)
        shown = _sharing(run, expected, rule, table, added)
    return _shown(run, table, added, shown)


def _alone(run: Run, rule: SingleRows, table: Table, added: tuple[Segment, ...]) -> I64:
    """Rows that violate a rule by themselves: new ones, if there are any."""
    assert rule.rule is not None
    for rows in (TableRows(table, added), TableRows.living(table)):
        _, ids = violating(run, rows, rule.rule, ROWS)
        if len(ids):
            return ids
    return _NOBODY


def _orphans(
    run: Run, expected: Expected, rule: ContainedTuples, table: Table, added: tuple[Segment, ...]
) -> I64:
    """Rows whose tuples the right side lacks: new ones first, then one of each tuple."""
    left, right = (expected.tuples.side(side) for side in rule.sides)
    _, codes = orphans(run, expected, rule, TableRows(table, added))
    if not len(codes):
        codes = _lacking(run, expected, (left.number, right.number))
    candidates: list[tuple[bool, int, int]] = []
    for _, rows in with_codes(run, table, (left, None), np.unique(codes, axis=0)[:SHOWN], ROWS):
        ids = _new_first([id_ for id_, _ in rows], added)
        is_new = _are_new(np.array(ids, np.int64), added).tolist()
        candidates += [(not flag, turn, ids[turn]) for turn, flag in enumerate(is_new)]
    return np.array([id_ for *_, id_ in sorted(candidates)[:ROWS]], np.int64)


def orphans(
    run: Run, expected: Expected, rule: ContainedTuples, rows: TableRows
) -> tuple[I64, U64]:
    """The ids of rows of the left side whose tuples the right side lacks, and their codes: by its
    counts, at the cost of these rows."""
    if not rows.count:
        return _NOBODY, _NO_CODES
    left, right = (expected.tuples.side(side) for side in rule.sides)
    cells = cells_of(run, rows, [left])
    runs = expected.tuples.record.runs
    calls: list[Call] = [
        (
            parts.involved,
            parts.Involved(
                run.store.path, runs, parts.Referring(replace(cells, view=view), right.number)
            ),
        )
        for view in shares(cells.view, run.runner.tasks)
    ]
    results = [each.arrays for result in run.runner.run(calls) for each in result]
    return (
        np.concatenate([_NOBODY, *(each["ids"] for each in results)]),
        np.concatenate([_NO_CODES, *(each["codes"] for each in results)]),
    )


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
            MissingValues(
                run.store.path, cut(k, count), cut(k + 1, count), runs, *reference, SHOWN
            ),
        )
        for k in range(count)
    ]
    blocks = [each.arrays["codes"] for result in run.runner.run(calls) for each in result]
    return np.concatenate(blocks)[:SHOWN]


def _pairs(
    run: Run, rule: RowPairs, table: Table, added: tuple[Segment, ...], *, is_counted: bool
) -> I64:
    """A few pairs of rows, t first: with new rows, if there are any. A search may find others
    alone; then the new rows are compared with all, unless that is too much to count, too."""
    found = pairs.some(run, table, rule, SHOWN)
    with_new = found[_are_new(found, added).any(axis=1)]
    if not len(with_new) and added and is_counted:
        ids, clashes, is_t = pairs.beside(run, table, rule, added)
        with_new = np.where(is_t[:, None], np.stack([ids, clashes], 1), np.stack([clashes, ids], 1))
    return with_new[:SHOWN] if len(with_new) else found


def _sharing(
    run: Run, expected: Expected, rule: AgreeingTuples, table: Table, added: tuple[Segment, ...]
) -> list[tuple[int, I64]]:
    """Rows that share a key, or agree on the left side of a dependency and not on the right."""
    sides = sides_of(expected, rule)
    _, codes, _ = taking_part(run, expected, rule, table, added)
    if not len(codes):
        codes = _shared(run, expected, rule, table)
    codes = np.unique(codes, axis=0)[:SHOWN]
    found = with_codes(run, table, sides, codes, ROWS)
    return [(number, _one_of_each(rows, added)) for number, rows in found if number]


def _shared(run: Run, expected: Expected, rule: AgreeingTuples, table: Table) -> U64:
    """Codes of tuples of the left side that rows share which do not agree on the right."""
    if not rule.lhs.columns:
        return np.zeros((1, 2), np.uint64)  # that all rows have
    side = expected.tuples.side(rule.lhs)
    codes = expected.tuples.shared.get(side.number, _NO_CODES)
    if rule.both is None and len(codes):
        return codes
    # Not every tuple that rows share has different right sides; and those of a side that was
    # counted before are not at hand.
    names, lhs = table.columns.names, rule.lhs.columns
    differing = () if rule.both is None else [c for c in rule.both.columns if c not in lhs]
    denied = denial_of(
        FunctionalDependency(table.name, lhs, differing[0]) if differing else Key(table.name, lhs)
    )
    space = space_of(denied, table.columns) if denied.predicates else agreements(len(names))
    seen = pairs.some(
        run, table, RowPairs(table.name, space, atoms_of(denied, space, names)), SHOWN
    )
    rows = TableRows.at(table, seen[:, 0])
    blocks = [codes for _, _, codes in cells_of(run, rows, [side]).codes(0)] if len(seen) else []
    return np.concatenate([_NO_CODES, *blocks])


def taking_part(
    run: Run, expected: Expected, rule: AgreeingTuples, table: Table, new: tuple[Segment, ...]
) -> tuple[I64, U64, U64]:
    """The ids of new rows that agree with others on one side and not on the other, and their codes
    in both: by their counts, at the cost of the batch."""
    rows = TableRows(table, new)
    if not rows.count:
        return _NOBODY, _NO_CODES, _NO_CODES
    calls: list[Call] = []
    for view in shares(table.view(run.store.path, run.options, new), run.runner.tasks):
        lhs, both = (_cells_in(run, rows, each, view) for each in sides_of(expected, rule))
        asked = parts.Agreeing(view, lhs, both, table.rows)
        item = parts.Involved(run.store.path, expected.tuples.record.runs, asked)
        calls.append((parts.involved, item))
    results = [each.arrays for result in run.runner.run(calls) for each in result]
    return (
        np.concatenate([_NOBODY, *(each["ids"] for each in results)]),
        np.concatenate([_NO_CODES, *(each["codes"] for each in results)]),
        np.concatenate([_NO_CODES, *(each["others"] for each in results)]),
    )


def sides_of(expected: Expected, rule: AgreeingTuples) -> Sides:
    """The two sides of a rule."""
    lhs = expected.tuples.side(rule.lhs) if rule.lhs.columns else None
    return lhs, None if rule.both is None else expected.tuples.side(rule.both)


def _cells_in(run: Run, rows: TableRows, side: SideRecord | None, view: View) -> RowValues | None:
    """Some of the rows as tuples of a side."""
    return None if side is None else replace(cells_of(run, rows, [side]), view=view)


def with_codes(
    run: Run, table: Table, sides: Sides, codes: U64, most: int
) -> list[tuple[int, list[Candidate]]]:
    """For each code of the first side how many rows have it, and, by id, the first row for each
    code that they have in the other side; of one that there is not, any rows. At least ``most`` of
    them, if there are so many."""
    everybody = TableRows.living(table)
    calls: list[Call] = []
    for view in shares(table.view(run.store.path, run.options), run.runner.tasks):
        lhs, both = (_cells_in(run, everybody, each, view) for each in sides)
        calls.append((parts.clashing, parts.Clashing(view, lhs, both, codes, most)))
    numbers = np.zeros(len(codes), np.int64)
    candidates: list[list[Candidate]] = [[] for _ in codes]
    for result in run.runner.run(calls) if len(codes) else ():
        for each in result:
            numbers += each.arrays["number"]
            for code, id_, (one, two) in zip(
                each.arrays["codes"].tolist(), each.arrays["ids"].tolist(),
                each.arrays["others"].tolist(), strict=True,
            ):  # fmt: skip
                candidates[code].append((id_, (one, two)))
    return [
        (number, sorted(rows)) for number, rows in zip(numbers.tolist(), candidates, strict=True)
    ]


def _one_of_each(rows: Sequence[Candidate], added: tuple[Segment, ...]) -> I64:
    """One row of each kind that differs from the others, new ones first; and of those that were
    there at least one, if they have their own."""
    kind_of = dict(rows)
    firsts: dict[tuple[int, int], int] = {}
    for id_ in _new_first([id_ for id_, _ in rows], added):
        firsts.setdefault(kind_of[id_], id_)
    ids = np.array([*firsts.values()], np.int64)
    number_new = int(_are_new(ids, added).sum())
    if number_new >= ROWS:
        ids = np.concatenate([ids[: ROWS - 1], ids[number_new:], ids[ROWS - 1 :]])
    return ids[:ROWS]


def _new_first(ids: Sequence[int], added: tuple[Segment, ...]) -> list[int]:
    numbers = {segment.number for segment in added}
    return sorted(ids, key=lambda id_: (id_ >> 32 not in numbers, id_))


def _are_new(ids: I64, added: tuple[Segment, ...]) -> Flags:
    flags: Flags = np.isin(ids >> 32, [segment.number for segment in added])
    return flags


def _shown(
    run: Run, table: Table, added: tuple[Segment, ...], numbered: Sequence[tuple[int, I64]]
) -> list[Group]:
    every = np.concatenate([_NOBODY, *(ids for _, ids in numbered)])
    text = rows_as_text(run.store.path, table.segments, table.columns.names, every)

    def row(id_: int) -> Row:
        shown: Row = json.loads(text[id_])
        return shown

    return [
        Group(tuple(map(row, ids.tolist())), number, tuple(_are_new(ids, added).tolist()))
        for number, ids in numbered
        if len(ids)
    ]
