"""Jobs that count pairs of rows: all, those of a batch, those that agree on given columns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import NDArray

from holdfast.cover.counts import EvidenceCounts
from holdfast.evidence import devices, tiles
from holdfast.evidence.devices import Speed
from holdfast.kernels import bitsets
from holdfast.kernels import counts as kernels
from holdfast.kernels.arrays import I64, U64
from holdfast.model.comparisons import Space
from holdfast.model.limits import Time
from holdfast.runtime.result import TaskResult
from holdfast.runtime.run import Run
from holdfast.runtime.runner import Call, Runner
from holdfast.table.change import RowChange
from holdfast.table.exchange import exchanged
from holdfast.table.placement import parts, shares
from holdfast.table.state import Table
from holdfast.tasks import agree as tasks
from holdfast.tasks.coding import Coding, comparisons_of
from holdfast.tasks.view import View


class TooManyEvidences(Exception):
    """There are more distinct evidences in a space than can be counted."""

    def __init__(self, space: str) -> None:
        super().__init__(space)
        self.space = space


@dataclass(frozen=True)
class Recounted:
    """Evidence of a space after a batch, and what it changed of it."""

    sets: EvidenceCounts
    change: tuple[U64, I64]
    """Evidence with the change in its number of pairs."""

    appeared: U64
    """The evidence that no pair showed before."""

    pairs: I64
    """The ids of two rows that show each of those; -1 where none were asked for."""

    vanished: U64
    """The evidence that no pair shows any more."""

    speed: Speed | None
    """What counted, and how fast; None where there was nothing to count."""


def count_all(
    run: Run, table: Table, spaces: Sequence[Space], time: Time, with_pairs: bool = False
) -> dict[str, Recounted]:
    """All pairs of the living rows, by space; with pairs, one is given for every evidence.
    :class:`OutOfTime` if that takes too long."""
    nobody = tiles.Line(())
    rows = tiles.living(table.segments)
    before = {space.name: EvidenceCounts.none(space.atoms) for space in spaces}
    return _counted(run, table, spaces, before, (nobody, rows, nobody), time, with_pairs)


def count_batch(
    run: Run,
    change: RowChange,
    spaces: Sequence[Space],
    before: Mapping[str, EvidenceCounts],
    time: Time,
) -> dict[str, Recounted]:
    """The pairs that a batch brought and took, by space. A pair is given for every evidence that
    appeared: only new rows bring those. :class:`OutOfTime` if that takes too long."""
    return _counted(run, change.after, spaces, before, lines_of(change), time, with_pairs=True)


def change_of(
    run: Run, change: RowChange, rules: Sequence[tuple[Space, Iterable[int]]]
) -> list[int]:
    """By how much a batch changes the number of ordered pairs that satisfy all of some atoms, for
    several such sets, each in a space of its own."""
    spaces = [replace(space, name=f"{k}") for k, (space, _) in enumerate(rules)]
    results = _results(run, change.after, spaces, lines_of(change), Time(), with_pairs=False)
    differences = []
    for space, (_, atoms) in zip(spaces, rules, strict=True):
        of_space = [result.arrays for result in results if result.facts.get("space") == space.name]
        masks, numbers = ([arrays[name] for arrays in of_space] for name in ("masks", "counts"))
        sums = kernels.total(masks, numbers, bitsets.words_for(space.atoms))
        differences.append(EvidenceCounts(*sums).satisfying(atoms) * (2 if space.symmetric else 1))
    return differences


def lines_of(change: RowChange) -> tuple[tiles.Line, tiles.Line, tiles.Line]:
    """The rows that stay, that came and that went."""
    added = {segment.number for segment in change.added}
    segments = change.after.segments
    staying = tiles.living([segment for segment in segments if segment.number not in added])
    new = tiles.living([segment for segment in segments if segment.number in added])
    return staying, new, tiles.deleted(change)


def agreeing(
    runner: Runner, view: View, sets: tuple[tuple[int, ...], ...], prefix: str
) -> list[int]:
    """The pairs of living rows that agree on each of some sets of columns, by grouping; in two jobs
    where the rows are worth several tasks, with files whose paths begin with the prefix."""
    count = parts(runner, view)
    if count == 1:
        [[result]] = runner.run([(tasks.agreeing, tasks.CountAgreeing(view, sets))])
        return list(result.facts["pairs"])
    writing: list[Call] = [
        (tasks.agreeing, tasks.CountAgreeing(share, sets, prefix)) for share in shares(view, count)
    ]
    with exchanged(runner, view.root, writing) as written:
        files = tuple(zip(*written, strict=True))
        calls: list[Call] = [
            (tasks.agreeing_in, tasks.CountAgreeingIn(view.root, files, part, count))
            for part in range(count)
        ]
        pairs_by_part = [p.facts["pairs"] for result in runner.run(calls) for p in result]
    return [sum(pairs) for pairs in zip(*pairs_by_part, strict=True)]


def _counted(
    run: Run,
    table: Table,
    spaces: Sequence[Space],
    before: Mapping[str, EvidenceCounts],
    lines: tuple[tiles.Line, tiles.Line, tiles.Line],
    time: Time,
    with_pairs: bool,
) -> dict[str, Recounted]:
    results = _results(run, table, spaces, lines, time, with_pairs)
    speed = devices.speed(results)
    return {
        space.name: _added(
            before[space.name],
            [result.arrays for result in results if result.facts.get("space") == space.name],
            speed,
        )
        for space in spaces
    }


def _results(
    run: Run,
    table: Table,
    spaces: Sequence[Space],
    lines: tuple[tiles.Line, tiles.Line, tiles.Line],
    time: Time,
    with_pairs: bool,
) -> list[TaskResult]:
    """What tasks count of rows that stay, that came and that went."""
    run.progress("count", rows=table.rows)
    view = replace(table.view(run.store.path, run.options), segments=())
    compared = comparisons_of([space.comparisons for space in spaces])
    coding = Coding.of(table.columns.schema, compared)
    device = devices.chosen(run, tiles.pairs_of(*lines), len(compared))
    what = tasks.Count(view, tuple(spaces), coding, with_pairs, device)
    calls: list[Call] = [(tasks.count, item) for item in tiles.deal(what, *lines, run.runner.tasks)]
    results = [result for of_call in run.within(time).run(calls) for result in of_call]
    for result in results:
        if "too_many" in result.facts:
            raise TooManyEvidences(result.facts["too_many"])
    return results


def _added(
    before: EvidenceCounts, results: list[dict[str, NDArray[Any]]], speed: Speed | None
) -> Recounted:
    """What tasks counted, added to what there was."""
    masks, numbers = ([arrays[name] for arrays in results] for name in ("masks", "counts"))
    change = kernels.total(masks, numbers, before.masks.shape[1])
    sets, appeared, vanished = before.changed([change[0]], [change[1]])
    with_pairs = [arrays for arrays in results if "pairs" in arrays]
    pairs = kernels.pairs_showing(
        appeared, [e["masks"] for e in with_pairs], [e["pairs"] for e in with_pairs]
    )
    return Recounted(sets, change, appeared, pairs, vanished, speed)
