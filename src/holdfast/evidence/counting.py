"""Jobs that count pairs of rows: all, those of a batch, those that agree on given columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.agree import AgreeSets
from holdfast.evidence import tiles
from holdfast.kernels import agree as kernels
from holdfast.model.progress import Progress
from holdfast.table.change import RowChange
from holdfast.table.placement import living, parts
from holdfast.tasks import agree as tasks
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Recounted:
    """Agree-sets after a batch, and what it changed of them."""

    sets: AgreeSets
    change: tuple[U64, I64]
    """Agree-sets with the change in their numbers of pairs."""

    appeared: U64
    """The agree-sets that no pair had before."""

    pairs: I64
    """The ids of two rows that have each of those; -1 where none were asked for."""

    vanished: U64
    """The agree-sets that no pair has any more."""


def count_all(
    runner: Runner, view: View, progress: Progress, with_pairs: bool = False
) -> Recounted:
    """All pairs of the living rows; with pairs, one is told for every agree-set."""
    progress("count", rows=living(view))
    nobody = tiles.Line(())
    rows = tiles.living(view.segments)
    calls = tiles.deal(view, nobody, rows, nobody, runner.tasks, with_pairs)
    return _counted(runner, calls, AgreeSets.none(view.columns))


def count_batch(
    runner: Runner, before: AgreeSets, view: View, change: RowChange, progress: Progress
) -> Recounted:
    """The pairs that a batch brought and took; ``view`` has the rows after it. A pair is told for
    every agree-set that appeared: only new rows bring those."""
    progress("count", rows=living(view))
    added = {segment.number for segment in change.added}
    kept = tiles.living([s for s in view.segments if s.number not in added])
    new = tiles.living([s for s in view.segments if s.number in added])
    calls = tiles.deal(view, kept, new, tiles.deleted(change), runner.tasks, True)
    return _counted(runner, calls, before)


def agreeing(runner: Runner, view: View, sets: tuple[tuple[int, ...], ...]) -> list[int]:
    """The pairs of living rows that agree on each of some sets of columns, by grouping."""
    count = parts(runner, view)
    calls: list[Call] = [
        (tasks.agreeing, tasks.Agreeing(view, sets, part, count)) for part in range(count)
    ]
    told = [p.facts["pairs"] for result in runner.run(calls) for p in result]
    return [sum(each) for each in zip(*told, strict=True)]


def _counted(runner: Runner, counts: list[tasks.Count], before: AgreeSets) -> Recounted:
    calls: list[Call] = [(tasks.count, each) for each in counts]
    task_results = [task_result.arrays for result in runner.run(calls) for task_result in result]
    masks, numbers = ([each[name] for each in task_results] for name in ("masks", "counts"))
    change = kernels.total(masks, numbers, before.masks.shape[1])
    sets, appeared, vanished = before.changed([change[0]], [change[1]])
    told = [each for each in task_results if "pairs" in each]
    pairs = kernels.shown(appeared, [e["masks"] for e in told], [e["pairs"] for e in told])
    return Recounted(sets, change, appeared, pairs, vanished)
