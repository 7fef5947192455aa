"""Counted evidence: every agree-set with its number of pairs (DynASt, property 1).

A batch adds the pairs of its new rows and takes away those of its deleted rows, each pair once. The
covers are told of the agree-sets that appear and vanish; errors are read from the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover import deepening
from holdfast.cover.agree import AgreeSets
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence import counting
from holdfast.kernels.cover import Tick
from holdfast.model.limits import Limits
from holdfast.store.run import Run
from holdfast.table.change import RowChange
from holdfast.table.state import Table

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """All agree-sets of a table with their counts, what the last batch changed of them, and the
    covers of some right sides."""

    sets: AgreeSets
    change: tuple[U64, I64]
    covers: Covers
    shown: Evidence
    """The agree-sets that the last batch brought, with rows that have them. They are known only
    until the batch is committed: nobody keeps those rows' ids current."""

    @staticmethod
    def discover(
        run: Run, table: Table, rhs: tuple[int, ...], limits: Limits, with_pairs: bool = False
    ) -> Counted:
        """From all pairs of the living rows; with pairs, every agree-set is shown.
        :class:`OutOfTime` if there is no time to find what is maximal among the agree-sets."""
        view = table.view(run.store.path, run.options)
        with run.stage("count"):
            counted = counting.count_all(run.runner, view, run.progress, with_pairs)
            sets, shown = counted.sets, Evidence.none(view.columns)
            if with_pairs:
                shown = Evidence.of_pairs(counted.appeared, counted.pairs)
        with run.stage("cover"):
            run.progress("cover", agree_sets=len(sets.masks))
            depth = _depth(run, limits)
            # Where counts are asked for it takes as long as it takes.
            free = run.options.evidence == "auto" and run.options.max_error is None
            begun = Covers.begun(view.columns, rhs, sets.masks, depth.tick if free else None)
            covers = _searched(depth, limits, begun.to)
            return Counted(sets, counted.change, covers, shown)

    def changed(self, run: Run, change: RowChange, limits: Limits) -> Counted:
        """After a batch: the pairs that it brought, and those that it took."""
        view = change.after.view(run.store.path, run.options)
        with run.stage("count"):
            counted = counting.count_batch(run.runner, self.sets, view, change, run.progress)
        with run.stage("cover"):
            before, masks = self.covers, counted.sets.masks

            def attempt(limits: Limits, tick: Tick) -> Covers:
                known = before.to(limits)
                return known.changed(counted.appeared, counted.vanished, masks, tick)

            covers = _searched(_depth(run, limits), limits, attempt)
            shown = Evidence.of_pairs(counted.appeared, counted.pairs)
            return Counted(counted.sets, counted.change, covers, shown)


def _depth(run: Run, limits: Limits) -> Deepening:
    """How far to search for what is counted."""
    return Deepening(limits, run.time, deepening.COUNTED)


def _searched(depth: Deepening, limits: Limits, change: Callable[[Limits, Tick], Covers]) -> Covers:
    """Covers as far as there is time for them."""
    covers = depth.attempt(limits, change)
    while (deeper := depth.deeper(covers)) is not None:
        covers = deeper
    return covers
