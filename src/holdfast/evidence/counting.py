"""Jobs that count pairs of rows: all, those of a batch, those that agree on given columns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.agree import AgreeSets
from holdfast.kernels import agree as kernels
from holdfast.model.progress import Progress
from holdfast.table.change import RowChange
from holdfast.table.placement import living, parts
from holdfast.tasks import agree as tasks
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Recounted:
    """Agree-sets after a batch, what it changed of their counts, and which are new or gone."""

    sets: AgreeSets
    change: tuple[U64, I64]
    appeared: U64
    vanished: U64


def count_all(runner: Runner, view: View, progress: Progress) -> AgreeSets:
    """All pairs of the living rows."""
    progress("count", rows=living(view))
    none = AgreeSets.none(view.columns)
    found = _counted(runner, view, (), (), np.empty(0, np.int64), everything=True)
    return none.changed(*found)[0]


def count_batch(
    runner: Runner, before: AgreeSets, view: View, change: RowChange, progress: Progress
) -> Recounted:
    """The pairs that a batch brought and took; ``view`` has the rows after it."""
    progress("count", rows=living(view))
    gone = change.gone
    lost = tuple(s for s in change.before.segments if (gone >> 32 == s.number).any())
    found = _counted(runner, view, change.added, lost, gone, everything=False)
    sets, appeared, vanished = before.changed(*found)
    return Recounted(sets, kernels.total(*found, before.masks.shape[1]), appeared, vanished)


def agreeing(runner: Runner, view: View, sets: tuple[tuple[int, ...], ...]) -> list[int]:
    """The pairs of living rows that agree on each of some sets of columns, by grouping."""
    count = parts(runner, view)
    calls: list[Call] = [
        (tasks.agreeing, tasks.Agreeing(view, sets, part, count)) for part in range(count)
    ]
    told = [p.facts["pairs"] for result in runner.run(calls) for p in result]
    return [sum(each) for each in zip(*told, strict=True)]


def _counted(
    runner: Runner,
    view: View,
    added: tuple[Segment, ...],
    before: tuple[Segment, ...],
    gone: I64,
    everything: bool,
) -> tuple[list[U64], list[I64]]:
    numbers = tuple(segment.number for segment in added)
    shares = runner.tasks if everything or len(gone) + sum(s.rows for s in added) > 1 else 1
    calls: list[Call] = [
        (
            tasks.count,
            tasks.Count(view, numbers, before, gone, everything, share, shares),
        )
        for share in range(shares)
    ]
    parcels = [parcel for result in runner.run(calls) for parcel in result]
    return [p.arrays["masks"] for p in parcels], [p.arrays["counts"] for p in parcels]
