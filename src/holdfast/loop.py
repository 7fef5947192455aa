"""Propose → validate → learn: the loop that makes candidates exact.

The cover proposes: its minimal sets hold as far as the known evidence goes. Tasks look for pairs of
rows that violate them; what they find is learned, and the cover proposes again, until nothing is
left to look for.

A set is *settled* when all evidence that contains it is known. A candidate that contains a settled
set therefore holds, without being looked at: every pair that violates an extension violates the
set itself. So one look at each candidate is enough wherever the look was complete.

A candidate that contains a set which was minimal before the batch holds on the old rows, so it is
checked on pairs with a new row only (*probe*); any other is checked on all pairs (*search*).
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from holdfast import indexes
from holdfast.cover.cover import Cover
from holdfast.cover.evidence import Evidence
from holdfast.kernels import bitsets
from holdfast.placement import Progress, living, parts, shares, with_indexes
from holdfast.runner import Call, Runner
from holdfast.tasks import evidence as tasks
from holdfast.tasks import rows as row_tasks
from holdfast.tasks.parcel import Parcel
from holdfast.tasks.segments import ROWS, Segment
from holdfast.tasks.view import View, bounds

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

_LOWEST = -(1 << 63)
_SAMPLE_ROWS = 40_000
_COARSE = 16
"""A first search looks at one part in so many: cheap, and it refutes most that can be refuted."""

_SEARCH_COST = 40
"""Rows that a probe looks at in the time in which a search goes through one."""

_CHEAP_PROBE = 50_000_000
"""Rows that a probe may look at whatever a search would cost."""

_COARSE_FROM = 1 << 18
"""Tables smaller than this are searched in full at once."""


@dataclass
class Learned:
    """What is known of a table while a run works on it."""

    view: View  # its living rows, and what is sorted
    evidence: Evidence
    cover: Cover
    twins: list[Parcel] = field(default_factory=list)  # probes' reports on equal rows

    def learn(self, parcels: list[Parcel]) -> None:
        """Take in what tasks found."""
        found = [
            Evidence.found(p.arrays["masks"], p.arrays["witnesses"], p.arrays["seen"])
            for p in parcels
            if "masks" in p.arrays
        ]
        if any(len(each.masks) for each in found):
            self.evidence = self.evidence.merged(found)
            self.cover.add(self.evidence.masks)


def sample_calls(runner: Runner, view: View) -> list[Call]:
    """Calls that gather the first evidence."""
    return [
        (tasks.sample, tasks.Sample(share, _SAMPLE_ROWS)) for share in shares(view, runner.tasks)
    ]


def duplicate_calls(runner: Runner, view: View) -> list[Call]:
    """Calls that count the rows which repeat another one."""
    count = parts(runner, view)
    return [
        (row_tasks.duplicates, row_tasks.Duplicates(view, part, count)) for part in range(count)
    ]


def validate(
    runner: Runner,
    learned: Learned,
    distinct: list[float],
    prefix: str,
    progress: Progress,
    *,
    old: U64 | None = None,
    batch: tuple[Segment, ...] = (),
    indexed: tuple[int, ...] = (),
) -> None:
    """Go round until every minimal set of the cover holds on all living rows.

    ``old`` are sets that hold on all pairs of rows outside the batch; ``indexed`` are columns that
    are sorted in every segment. A search that needs another sorts it first.
    """
    view = learned.view
    atoms = view.columns
    settled = bitsets.empty(atoms)
    known = bitsets.empty(atoms) if old is None else old
    if not batch:
        settled = known
        first_look = False
    else:
        first_look = True
        if _probe_costs_more(view, batch, known, distinct, indexed):
            known = bitsets.empty(atoms)
    coarse = living(view) >= _COARSE_FROM
    sorted_ = bitsets.from_columns([indexed], atoms)
    number = 0
    while True:
        todo = learned.cover.minimal
        todo = todo[~bitsets.any_subset(todo, settled)]
        fresh = known if first_look else todo[bitsets.any_subset(todo, known)]
        fresh = fresh[(fresh & sorted_).any(axis=1)]
        rest = todo[~bitsets.any_subset(todo, fresh)]
        if not len(todo) and not first_look:
            learned.view = view
            return
        number += 1
        probes = _probes(runner, view, batch, fresh, distinct, indexed, first_look)
        part_only = coarse and len(rest) > 0
        groups = _groups(rest, distinct, _sorted_columns(view))
        view = with_indexes(runner, view, prefix, [str(column) for column, _ in groups])
        searches = _searches(runner, view, groups, distinct, part_only)
        differs: list[Call] = [(tasks.differ, view)] if (bitsets.popcount(rest) == 0).any() else []
        progress("search" if searches else "probe", round=number, candidates=len(todo))
        results = runner.run([*probes, *(call for call, _ in searches), *differs])
        parcels = [parcel for result in results for parcel in result]
        if first_look:
            learned.twins = [p for result in results[: len(probes)] for p in result]
        before = len(learned.cover.minimal)
        learned.learn(parcels)
        settled = np.concatenate(
            [settled, _settled(results, probes, fresh, searches, groups, part_only, differs)]
        )
        refuted = int(bitsets.any_superset(todo, learned.evidence.masks).sum())
        progress("learn", round=number, candidates=before, refuted=refuted)
        first_look = False
        if part_only:
            coarse = False


def _settled(
    results: list[list[Parcel]],
    probes: list[Call],
    fresh: U64,
    searches: list[tuple[Call, int]],
    groups: list[tuple[int, U64]],
    part_only: bool,
    differs: list[Call],
) -> U64:
    """The candidates against which all evidence is known now."""
    done = [fresh[:0]]
    looked = results[: len(probes)]
    if probes and all(p.facts["complete"] for result in looked for p in result):
        done.append(fresh)
    if not part_only:
        partial = [np.zeros(len(candidates), np.bool_) for _, candidates in groups]
        for (_, group), result in zip(searches, results[len(probes) :], strict=False):
            for parcel in result:
                partial[group] |= parcel.arrays["partial"] | (not parcel.facts["complete"])
        for (_, candidates), some in zip(groups, partial, strict=True):
            done.append(candidates[~some])
    if differs and not any(len(p.arrays["masks"]) for p in results[-1]):
        done.append(np.zeros((1, fresh.shape[1]), np.uint64))
    return np.concatenate(done)


def _probes(
    runner: Runner,
    view: View,
    batch: tuple[Segment, ...],
    candidates: U64,
    distinct: list[float],
    indexed: tuple[int, ...],
    twins: bool,
) -> list[Call]:
    if not batch or not (len(candidates) or twins):
        return []
    plan = indexes.plan(bitsets.to_columns(candidates), indexed, distinct)
    return [
        (
            tasks.probe,
            tasks.Probe(share, batch, candidates, plan.lookups, plan.filters, twins),
        )
        for share in shares(view, runner.tasks)
    ]


def _probe_costs_more(
    view: View,
    batch: tuple[Segment, ...],
    keys: U64,
    distinct: list[float],
    indexed: tuple[int, ...],
) -> bool:
    """Whether looking every batch row up would return more rows than a search goes through."""
    rows, new = living(view), sum(segment.live for segment in batch)
    used = {c for key in bitsets.to_columns(keys) for c in key if c in indexed}
    returned = sum(new * rows / max(distinct[c], 1.0) for c in used)
    return returned > _SEARCH_COST * rows * max(1, len(used)) + _CHEAP_PROBE


def _sorted_columns(view: View) -> set[int]:
    """Columns that are sorted in every segment."""
    held = [{int(n) for n in s.indexes if n != ROWS} for s in view.segments]
    return set.intersection(*held) if held else set()


def _groups(candidates: U64, distinct: list[float], has: set[int]) -> list[tuple[int, U64]]:
    """Candidates by the column that their search starts from: a selective one, sorted already
    where possible, and few of them."""
    columns = bitsets.to_columns(candidates)
    starts = {
        c for key in columns for c in key if c in has and distinct[c] >= _best(key, distinct) / 8
    }
    left = [key for key in columns if key and not starts & set(key)]
    starts |= set(indexes.cover(left, distinct))
    members: dict[int, list[int]] = {}
    for k, key in enumerate(columns):
        if key:
            start = max((c for c in key if c in starts), key=lambda c: distinct[c])
            members.setdefault(start, []).append(k)
    return [(column, candidates[chosen]) for column, chosen in sorted(members.items())]


def _best(key: tuple[int, ...], distinct: list[float]) -> float:
    return max(distinct[c] for c in key)


def _searches(
    runner: Runner,
    view: View,
    groups: list[tuple[int, U64]],
    distinct: list[float],
    part_only: bool,
) -> list[tuple[Call, int]]:
    """One call per group and range of codes, each with the number of its group."""
    count = parts(runner, view)
    order = sorted(range(view.columns), key=lambda c: -distinct[c])
    calls: list[tuple[Call, int]] = []
    for number, (column, candidates) in enumerate(groups):
        path = (column, *(c for c in order if c != column))
        cuts = bounds(view, column, count * (_COARSE if part_only else 1))
        ranges = list(zip([_LOWEST, *cuts], [*cuts, None], strict=True))
        # Of a coarse search the ranges lie apart, so that they differ in all that order brings.
        for low, high in ranges[_COARSE // 2 :: _COARSE] if part_only else ranges:
            item = tasks.Search(view, column, low, high, candidates, path)
            calls.append(((tasks.search, item), number))
    return calls
