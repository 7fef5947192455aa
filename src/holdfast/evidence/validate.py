"""Propose → validate → learn: the loop that makes candidates exact.

The covers propose: their minimal left sides hold as far as the known evidence goes, each for its
right side; keys are those of the right side that no two rows agree in. Tasks look for pairs of rows
that refute them; what they find is learned, and the covers propose again, until nothing is left to
look for.

A candidate is *settled* when all evidence against it is known. A left side that contains a settled
one therefore holds, without being looked at: every pair that refutes an extension refutes the set
itself, and what refutes no key refutes no dependency. So one look at each candidate is enough
wherever the look was complete.

A search that ends before that is exact up to a number of columns: see :mod:`cover.deepening`.

A candidate that contains one which was minimal before the batch holds on the old rows, so it is
checked on pairs with a new row only (*probe*); any other is checked on all pairs (*search*, or
*survey* where its left side has few combinations of values).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from holdfast.cover import candidates as cands
from holdfast.cover.candidates import Lefts
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.kernels import bitsets
from holdfast.kernels.cover import Tick
from holdfast.kernels.evidence import Candidates
from holdfast.model.limits import Limits
from holdfast.model.progress import Progress
from holdfast.table import indexes
from holdfast.table.indexing import with_indexes
from holdfast.table.placement import living, parts, shares
from holdfast.tasks import evidence as tasks
from holdfast.tasks import rows as row_tasks
from holdfast.tasks.result import Parcel
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View, bounds

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]
Flags = NDArray[np.bool_]

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

_COARSE_CANDIDATES = 64
"""So few candidates are searched in full at once too: mostly that is the last look at them."""

_ROUND = 10_000
"""Candidates that a round looks at where the time is bounded: after it there is a look at the
clock."""

_FEW = 4_096
"""Combinations of values on a left side up to which it is surveyed."""

_LARGE_GROUPS = 64
"""Rows per combination from which a survey is worth more than all pairs of small groups."""


@dataclass
class Learned:
    """What is known of a table while a run works on it."""

    view: View  # its living rows, and what is sorted
    evidence: Evidence
    covers: Covers  # of the right sides that are looked for
    twins: list[Parcel] = field(default_factory=list)  # probes' reports on equal rows

    def learn(self, parcels: list[Parcel], depth: Deepening) -> None:
        """Take in what tasks found; the covers may have to become shorter for that."""
        found = [
            Evidence.found(p.arrays["masks"], p.arrays["witnesses"], p.arrays["seen"])
            for p in parcels
            if "masks" in p.arrays
        ]
        none = self.evidence.masks[:0]
        come = bitsets.distinct(np.concatenate([none, *(each.masks for each in found)]))
        if len(come):
            fresh = come[~bitsets.is_member(come, self.evidence.masks)]
            before = self.covers

            def change(limits: Limits, tick: Tick) -> Covers:
                return before.to(limits).changed(fresh, none, none, tick)

            self.covers = depth.attempt(before.limits, change)
            self.evidence = self.evidence.joined(found).only(self.covers.evidence)


def sample_calls(runner: Runner, view: View, every_side: bool) -> list[Call]:
    """Calls that gather the first evidence."""
    return [
        (tasks.sample, tasks.Sample(share, every_side, _SAMPLE_ROWS))
        for share in shares(view, runner.tasks)
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
    depth: Deepening,
    *,
    old: Lefts | None = None,
    batch: tuple[Segment, ...] = (),
    indexed: tuple[str, ...] = (),
) -> None:
    """Go round until every minimal left side of the covers holds on all living rows, as far as
    ``depth`` lets the covers go.

    ``old`` are candidates that hold on all pairs of rows outside the batch; ``indexed`` are the
    indexes that every segment has. A search that needs another builds it first. A large table is
    first searched in part.
    """
    view = learned.view
    atoms = view.columns
    every_side = bool(learned.covers.columns)
    none = cands.none(learned.covers.by_side, atoms)
    known = none if old is None else old
    settled = none if batch else known
    first_look = bool(batch)
    rows, new = living(view), sum(segment.live for segment in batch)
    coarse = rows >= _COARSE_FROM
    crowded = bitsets.empty(atoms)  # left sides with more combinations than were expected
    number = 0
    while True:
        todo = cands.outside(learned.covers.minimal, settled)
        if not cands.count(todo) and not first_look:
            deeper = depth.deeper(learned.covers)
            if deeper is None:
                break
            learned.covers = deeper
            continue
        if depth.late and not first_look:
            learned.covers = depth.retreat(learned.covers, todo)
            continue
        if depth.bounded:
            todo = cands.shortest(todo, _ROUND)
        number += 1
        fresh = known if first_look else cands.inside(todo, known)
        probed, plan = _probed(cands.together(fresh, atoms), indexed, distinct, rows, new)
        done = cands.apart(probed, probed.sides, none)
        rest = cands.together(cands.outside(todo, done), atoms)
        few = _few(rest, distinct, rows) & ~bitsets.is_member(rest.left, crowded)
        groups = _groups(cands.chosen(rest, ~few), distinct, _sorted_columns(view))
        part_only = coarse and len(rest.left) - int(few.sum()) > _COARSE_CANDIDATES
        view = with_indexes(runner, view, prefix, [str(column) for column, _ in groups])
        looks = [
            *_probes(runner, view, every_side, batch, probed, plan, first_look),
            *_searches(runner, view, every_side, groups, distinct, part_only),
            *_surveys(runner, view, every_side, cands.chosen(rest, few)),
        ]
        stage = "search" if len(rest.left) else "probe"
        progress(stage, round=number, candidates=cands.count(todo))
        results = iter(runner.run([call for look in looks for call in look.calls]))
        found = [[p for _ in look.calls for p in next(results)] for look in looks]
        if first_look:
            learned.twins = [p for parcels in found for p in parcels if "twin" in p.arrays]
        before = cands.count(learned.covers.minimal)
        learned.learn([p for parcels in found for p in parcels], depth)
        for look, parcels in zip(looks, found, strict=True):
            sides = _settled(look, parcels)
            settled = cands.joined(settled, cands.apart(look.candidates, sides, none))
            for parcel in parcels:
                if "full" in parcel.arrays:
                    more = look.candidates.left[parcel.arrays["full"]]
                    crowded = np.concatenate([crowded, more])
        progress("learn", round=number, candidates=before, refuted=_refuted(todo, learned.covers))
        first_look = False
        coarse = coarse and not part_only
    learned.view = view


@dataclass(frozen=True)
class Look:
    """Calls that look for evidence against candidates, for all of it unless ``partly``."""

    candidates: Candidates
    calls: list[Call]
    partly: bool = False


def _settled(look: Look, parcels: list[Parcel]) -> U64:
    """The right sides against which all evidence is known now, as bits per candidate."""
    sides = look.candidates.sides.copy()
    if look.partly or not all(parcel.facts["complete"] for parcel in parcels):
        sides[:] = 0
    for parcel in parcels:
        sides &= ~parcel.arrays["partial"]
    return sides


def _refuted(todo: Lefts, covers: Covers) -> int:
    minimal = covers.minimal
    kept = [bitsets.is_member(masks, minimal[side]).sum() for side, masks in todo.items()]
    return cands.count(todo) - int(sum(kept))


def _probed(
    fresh: Candidates, indexed: tuple[str, ...], distinct: list[float], rows: int, new: int
) -> tuple[Candidates, indexes.Plan]:
    """The candidates that looking the batch up settles, and how; not those for which it would
    return more rows than a search goes through."""
    lefts = bitsets.to_flags(fresh.left, len(distinct))
    plan = indexes.plan(lefts, indexed, distinct, rows)
    used = {column for group in plan.lookups for column in group}
    returned = sum(new * rows / max(distinct[c], 1.0) for c in used)
    if returned > _SEARCH_COST * rows * max(1, len(used)) + _CHEAP_PROBE:
        plan = plan.without_lookups()
    return cands.chosen(fresh, plan.reached), plan


def _probes(
    runner: Runner,
    view: View,
    every_side: bool,
    batch: tuple[Segment, ...],
    candidates: Candidates,
    plan: indexes.Plan,
    twins: bool,
) -> list[Look]:
    if not batch or not (len(candidates.left) or twins):
        return []
    how = (plan.lookups, plan.filters, plan.groups, twins)
    calls: list[Call] = [
        (tasks.probe, tasks.Probe(share, every_side, batch, candidates, *how))
        for share in shares(view, runner.tasks)
    ]
    return [Look(candidates, calls)]


def _sorted_columns(view: View) -> set[int]:
    """Columns that are sorted in every segment."""
    held = [{int(n) for n in s.indexes if n.isdigit()} for s in view.segments]
    return set.intersection(*held) if held else set()


def _few(candidates: Candidates, distinct: list[float], rows: int) -> Flags:
    """Which left sides have few combinations of values, and so large groups."""
    lefts = bitsets.to_flags(candidates.left, len(distinct))
    sizes = np.log(np.maximum(distinct, 1.0))
    combinations = (lefts * sizes).sum(axis=1)
    most = min(math.log(max(_FEW, 1)), math.log(max(rows / max(_LARGE_GROUPS, 1), 1)))
    few: Flags = (combinations <= most) | ~lefts.any(axis=1)
    return few


def _groups(
    candidates: Candidates, distinct: list[float], has: set[int]
) -> list[tuple[int, Candidates]]:
    """Candidates by the column that their search starts from: a selective one, sorted already
    where possible, and few of them."""
    lefts = bitsets.to_flags(candidates.left, len(distinct))
    starts = np.zeros(len(distinct), np.bool_)
    for column in has:
        mine = lefts[lefts[:, column]]
        starts[column] = (distinct[column] >= indexes.best(mine, distinct) / 8).any()
    starts[indexes.cover(lefts[~lefts[:, starts].any(axis=1)], distinct)] = True
    weights = np.where(lefts & starts, np.maximum(distinct, 1.0), 0.0)
    start = weights.argmax(axis=1)
    return [(int(column), cands.chosen(candidates, start == column)) for column in np.unique(start)]


def _searches(
    runner: Runner,
    view: View,
    every_side: bool,
    groups: list[tuple[int, Candidates]],
    distinct: list[float],
    part_only: bool,
) -> list[Look]:
    """One look per group, of a call for every range of codes."""
    count = parts(runner, view)
    order = sorted(range(view.columns), key=lambda c: -distinct[c])
    looks = []
    for column, candidates in groups:
        path = (column, *(c for c in order if c != column))
        cuts = bounds(view, column, count * (_COARSE if part_only else 1))
        ranges = list(zip([_LOWEST, *cuts], [*cuts, None], strict=True))
        if part_only:
            # The ranges lie apart, so that they differ in all that order brings.
            ranges = ranges[_COARSE // 2 :: _COARSE]
        calls: list[Call] = [
            (tasks.search, tasks.Search(view, every_side, column, low, high, candidates, path))
            for low, high in ranges
        ]
        looks.append(Look(candidates, calls, part_only))
    return looks


def _surveys(runner: Runner, view: View, every_side: bool, candidates: Candidates) -> list[Look]:
    """The candidates dealt out to as many looks as there are tasks."""
    place = np.arange(len(candidates.left))
    piles = [cands.chosen(candidates, place % runner.tasks == t) for t in range(runner.tasks)]
    return [
        Look(pile, [(tasks.survey, tasks.Survey(view, every_side, pile))])
        for pile in piles
        if len(pile.left)
    ]
