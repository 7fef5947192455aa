"""Counted tuples: how often rows have which values together, and what follows from that.

A *side* is some columns of a table; its tuples are entries in runs, like the values of inclusion
dependencies (:mod:`holdfast.tasks.values`). Rows that come and go change the counts of their own
tuples alone, so the sums over all tuples (how many there are, how many pairs of rows have the
same one, how much of a side is found in another) change by what these tuples add to them. The
counts also tell which rows take part in violations, at the cost of looking up their tuples.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from holdfast.kernels import values
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.tuples import side_sums
from holdfast.model.commits import Segment, ValueRun
from holdfast.runtime.result import TaskResult
from holdfast.tasks.segments import live_positions
from holdfast.tasks.values import (
    CODES,
    ChangedEntries,
    RowValues,
    found_at,
    same_codes,
    same_first_words,
    written,
)
from holdfast.tasks.view import View


@dataclass(frozen=True)
class Recount(ChangedEntries):
    """Change the counts of tuples whose codes are in a range."""

    lhs: tuple[int, ...]  # by side: the side that it is within, or -1
    nulls: tuple[bool, ...]  # by side: whether a null is a value
    fresh: tuple[int, ...]  # the sides of which nothing is counted yet
    references: tuple[tuple[int, int], ...]
    shown: int  # codes of each side and reference that are shown, of tuples that violate something

    def entries(self) -> tuple[U64, U64]:
        """The changes of entries, and the existing ones of the same first words, so that groups of
        rows are whole; all that there are where a side is counted for the first time."""
        delta = self.delta()
        if self.fresh:
            return delta, values.merged(self.slices(self.before))
        words = np.unique(delta[:, 0])
        return delta, same_first_words(Path(self.root), self.before, self.low, self.high, words)


@dataclass(frozen=True)
class AgreeingRows:
    """Rows that agree with others on one side and, where there is another, not on that. All rows
    agree on no columns."""

    view: View
    lhs: RowValues | None
    both: RowValues | None
    rows: int  # of the table


@dataclass(frozen=True)
class ReferringRows:
    """Rows of one side whose tuples another side, by its number, lacks."""

    left: RowValues
    right: int


@dataclass(frozen=True)
class InvolvedRows:
    """Which rows take part in violations of a rule; the counted tuples are in runs."""

    root: str
    runs: tuple[ValueRun, ...]
    rule: AgreeingRows | ReferringRows


@dataclass(frozen=True)
class NeededRows:
    """Which rows that went had tuples that no row of their side has any more, but some row of
    another side."""

    root: str
    runs: tuple[ValueRun, ...]
    gone: RowValues
    right: int
    left: int


@dataclass(frozen=True)
class RequestsFor:
    """Which requests mean some rows: those that have the same tuple."""

    asked: RowValues
    taken: RowValues


@dataclass(frozen=True)
class RowsWith:
    """Rows that have some tuples of a side: how many, and of each a few that differ in the other
    side, or any where there is none."""

    view: View
    lhs: RowValues | None
    both: RowValues | None
    codes: U64
    most: int


def recount(item: Recount) -> Iterator[TaskResult]:
    """Write what changed, and tell by how much the sums changed."""
    delta, old = item.entries()
    new = values.merged([old, delta]) if len(old) else delta
    task_result = written(Path(item.root), item.prefix, delta)
    task_result.facts["wrong"] = bool((new[:, 3].view(np.int64) < 0).any())
    (before, merged_before), (after, merged_after) = (_sums(each, item) for each in (old, new))
    # What groups explain of a side of which nothing is counted yet is nothing.
    before["sides"][list(item.fresh)] = 0
    task_result.facts["merged"] = merged_before or merged_after
    arrays = {name: after[name] - before[name] for name in after}
    yield TaskResult(task_result.facts, {**arrays, **_violating(new, delta, item)})


def _sums(entries: U64, item: Recount) -> tuple[dict[str, I64], bool]:
    """Sums over some tuples, by side and by reference; and whether groups were taken for one."""
    sums, merged = side_sums(entries, np.array(item.lhs, np.int64), np.array(item.nulls))
    count = entries[:, 3].view(np.int64)
    contained = np.zeros((len(item.references), 2), np.int64)
    for place, (of_left, is_contained) in enumerate(_references(entries, item.references)):
        contained[place] = is_contained.sum(), count[of_left][is_contained].sum()
    return {"sides": sums, "references": contained}, merged


def _references(entries: U64, references: Iterable[tuple[int, int]]) -> Iterator[tuple[I64, Flags]]:
    """Of each reference the entries of its left side, and whether the right side has the tuple."""
    references = tuple(references)
    if not references:
        return
    first = np.ones(len(entries), np.bool_)
    first[1:] = (entries[1:, :2] != entries[:-1, :2]).any(axis=1)
    group = np.cumsum(first) - 1
    for left, right in references:
        has = np.zeros(len(entries), np.bool_)
        has[group[entries[:, 2] == right]] = True
        of_left = np.flatnonzero(entries[:, 2] == left)
        yield of_left, has[group[of_left]]


def _violating(new: U64, delta: U64, item: Recount) -> dict[str, U64]:
    """Some codes of tuples that more rows than one have, by side, of those that changed; and of
    tuples that a right side lacks, by reference."""
    if not item.shown:
        return {}
    none = np.empty((0, 3), np.uint64)
    shared, lacking = [none], [none]
    are_shared = new[:, 3].view(np.int64) > 1
    if new is not delta:
        are_shared &= _is_member(new, delta)
    several = new[are_shared]
    shared += [several[several[:, 2] == s][: item.shown, :3] for s in np.unique(several[:, 2])]
    for number, (of_left, is_contained) in enumerate(_references(new, item.references)):
        codes = new[of_left[~is_contained][: item.shown], :3].copy()
        codes[:, 2] = number
        lacking.append(codes)
    return {"shared": np.concatenate(shared), "lacking": np.concatenate(lacking)}


def _is_member(entries: U64, among: U64) -> Flags:
    """Which entries have a code and a side that others have."""
    out = np.ones(len(entries), np.bool_)
    out[values.arrivals(entries, among)] = False
    return out


def involved_rows(item: InvolvedRows) -> Iterator[TaskResult]:
    """The ids of the rows, and their codes on the left side; those of a rule about agreement also
    have codes of the other side."""
    root = Path(item.root)
    rule = item.rule
    if isinstance(rule, ReferringRows):
        for segment, positions, codes, present in rule.left.aligned():
            missing = present.copy()
            missing[present] = _counts(root, item.runs, rule.right, codes[present]) == 0
            ids = positions[missing] + segment.base
            yield TaskResult({}, {"ids": ids, "codes": codes[missing]})
        return
    for segment, positions, lhs, both in _both(rule.view, rule.lhs, rule.both):
        agreeing = np.full(len(positions), rule.rows, np.int64)
        present = np.ones(len(positions), np.bool_)
        if rule.lhs is not None:
            present = lhs[1]
            number = rule.lhs.attributes[0].number
            agreeing[present] = _counts(root, item.runs, number, lhs[0][present])
        same = np.ones(len(positions), np.int64)
        if rule.both is not None:
            number = rule.both.attributes[0].number
            same[both[1]] = _counts(root, item.runs, number, both[0][both[1]])
        wrong = present & (agreeing > same)
        ids = positions[wrong] + segment.base
        yield TaskResult(
            {}, {"ids": ids, "codes": lhs[0][wrong], "others": _other(both, ids, wrong)}
        )


def needed_rows(item: NeededRows) -> Iterator[TaskResult]:
    """The ids of the rows, and their codes."""
    root = Path(item.root)
    for segment, positions, codes, present in item.gone.aligned():
        taken = present.copy()
        present_codes = codes[present]
        taken[present] = (_counts(root, item.runs, item.right, present_codes) == 0) & (
            _counts(root, item.runs, item.left, present_codes) > 0
        )
        yield TaskResult({}, {"ids": positions[taken] + segment.base, "codes": codes[taken]})


def requests_for(item: RequestsFor) -> Iterator[TaskResult]:
    """The ids of the requests, and of one row that each means."""
    rows = [(codes, positions + s.base) for s, positions, codes, _ in item.taken.aligned()]
    codes, first = np.unique(
        np.concatenate([codes for codes, _ in rows]), axis=0, return_index=True
    )
    taken = np.concatenate([ids for _, ids in rows])[first]
    for segment, positions, own_codes, _ in item.asked.aligned():
        at = found_at(own_codes, codes)
        ids = positions[at >= 0] + segment.base
        yield TaskResult({}, {"ids": ids, "taken": taken[at[at >= 0]]})


RowCodes = tuple[U64, Flags]
"""Codes of rows, and which of them have one."""


def _both(
    view: View, lhs: RowValues | None, both: RowValues | None
) -> Iterator[tuple[Segment, I64, RowCodes, RowCodes]]:
    """Rows with their codes on both sides, segment by segment; a side of no columns has one."""
    sides = [None if side is None else side.aligned() for side in (lhs, both)]
    for segment in view.segments:
        positions = live_positions(view.path, segment)
        coded: list[RowCodes] = []
        for side in sides:
            none = np.zeros((len(positions), 2), np.uint64), np.ones(len(positions), np.bool_)
            coded.append(none if side is None else next(side)[2:])
        yield segment, positions, coded[0], coded[1]


def _other(both: RowCodes, ids: I64, chosen: Flags) -> U64:
    """Codes of the other side; a row without one differs from every row, also in its code."""
    codes = both[0][chosen].copy()
    absent = ~both[1][chosen]
    codes[absent, 0] = ids[absent].astype(np.uint64)
    codes[absent, 1] = np.uint64(CODES - 1)
    return codes


def _counts(root: Path, runs: tuple[ValueRun, ...], number: int, codes: U64) -> I64:
    """How many rows of a side have each code."""
    if not len(codes):
        return np.empty(0, np.int64)
    distinct, inverse = np.unique(codes, axis=0, return_inverse=True)
    entries = same_codes(root, runs, 0, CODES, distinct)
    entries = entries[entries[:, 2] == number]
    at = found_at(np.ascontiguousarray(entries[:, :2]), distinct)
    counts = np.zeros(len(distinct), np.int64)
    counts[at] = entries[:, 3].view(np.int64)
    by_row: I64 = counts[inverse.reshape(-1)]
    return by_row


def rows_with(item: RowsWith) -> Iterator[TaskResult]:
    """Of each code the number of rows, and the first row for each of the first codes of the other
    side."""
    for segment, positions, lhs, both in _both(item.view, item.lhs, item.both):
        ids = positions + segment.base
        at = found_at(lhs[0], item.codes)
        at[~lhs[1]] = -1
        others = _other(both, ids, np.ones(len(ids), np.bool_))
        if item.both is None:  # any other row
            others[:, 0], others[:, 1] = ids.astype(np.uint64), 0
        rows = _differing(at, others, item.most)
        yield TaskResult(
            {},
            {
                "number": np.bincount(at[at >= 0], minlength=len(item.codes)),
                "codes": at[rows],
                "ids": ids[rows],
                "others": others[rows],
            },
        )


def _differing(at: I64, others: U64, most: int) -> I64:
    """Of the rows at each place, which -1 is not, the first ``most`` that differ from all before
    them."""
    having = np.flatnonzero(at >= 0)
    order = having[np.lexsort((others[having, 1], others[having, 0], at[having]))]
    fresh = np.ones(len(order), np.bool_)
    fresh[1:] = (at[order[1:]] != at[order[:-1]]) | (others[order[1:]] != others[order[:-1]]).any(1)
    rows = np.sort(order[fresh])
    rows = rows[np.argsort(at[rows], kind="stable")]
    turn = np.arange(len(rows)) - np.searchsorted(at[rows], at[rows])
    chosen: I64 = rows[turn < most]
    return chosen
