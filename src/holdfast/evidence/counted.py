"""Counted evidence: every evidence of a space with its number of pairs (DynASt, property 1).

A batch adds the pairs of its new rows and takes away those of its deleted rows, each pair once. The
covers take in the evidence that appears and vanishes; errors are read from the counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from holdfast.cover import deepening
from holdfast.cover.counts import EvidenceCounts
from holdfast.cover.deepening import Deepening
from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.counting import Recounted
from holdfast.evidence.devices import Speed
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.bitsets import Tick
from holdfast.kernels.cover import AtomGroups, groups
from holdfast.model.comparisons import Space
from holdfast.model.limits import Limits, Time
from holdfast.runtime.run import Run


@dataclass(frozen=True)
class Counted:
    """All evidence of a table with its counts, what the last batch changed of it, and the covers of
    some rhs."""

    sets: EvidenceCounts
    change: tuple[U64, I64]
    covers: Covers
    shown: Evidence
    """The evidence that the last batch brought, with rows that show it. They are known only until
    the batch is committed: nobody keeps those rows' ids current."""

    speed: Speed | None = None
    """What the last batch was counted with, and how fast; None: nothing, or by an earlier run."""

    @staticmethod
    def of_pairs(
        run: Run,
        counted: Recounted,
        space: Space,
        rhs: tuple[int, ...],
        limits: Limits,
        time: Time,
    ) -> Counted:
        """From all pairs of the living rows; :class:`OutOfTime` if there is no time to find what is
        maximal among them. How far the covers then go is a matter of the run's time."""
        with run.stage("cover"):
            run.progress("cover", evidence=len(counted.sets.masks))
            masks = counted.sets.masks
            begun = Covers.begun(space.atoms, rhs, masks, groups_of(space), time.look)
            covers = _searched(_depth(run, limits), limits, begun.to)
            new_evidence = Evidence.of_pairs(counted.appeared, counted.pairs)
            return Counted(counted.sets, counted.change, covers, new_evidence, counted.speed)

    def changed(self, run: Run, counted: Recounted, limits: Limits) -> Counted:
        """After a batch: the pairs that it brought, and those that it took."""
        with run.stage("cover"):
            before, masks = self.covers, counted.sets.masks

            def attempt(limits: Limits, tick: Tick) -> Covers:
                known = before.to(limits)
                return known.changed(counted.appeared, counted.vanished, masks, tick)

            covers = _searched(_depth(run, limits), limits, attempt)
            new_evidence = Evidence.of_pairs(counted.appeared, counted.pairs)
            return Counted(counted.sets, counted.change, covers, new_evidence, counted.speed)


def groups_of(space: Space) -> AtomGroups:
    """The atoms of a comparison belong together: a limit counts the comparisons of a set."""
    return groups(space.atoms, np.array(space.comparison_of, np.int64))


def _depth(run: Run, limits: Limits) -> Deepening:
    """How far to search for what is counted."""
    return Deepening(limits, run.time, deepening.COUNTED)


def _searched(depth: Deepening, limits: Limits, change: Callable[[Limits, Tick], Covers]) -> Covers:
    """Covers as far as there is time for them."""
    covers = depth.attempt(limits, change)
    while (deeper := depth.deeper(covers)) is not None:
        covers = deeper
    return covers
