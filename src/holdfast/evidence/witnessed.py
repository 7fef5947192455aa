"""Witnessed evidence: what is maximal, with pairs of rows that show it, found by searching.

Two engines find it, one for spaces in which only agreement counts (:mod:`evidence.agreement`), one
for any other space (:mod:`evidence.comparison`); :class:`Engine` is what they have in common.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from holdfast.cover.dependencies import Covers
from holdfast.cover.evidence import Evidence
from holdfast.evidence.agreement.listed_pairs import ListedPairs, StoredLists
from holdfast.evidence.upkeep import Upkeep
from holdfast.kernels.arrays import I64
from holdfast.model.comparisons import Space
from holdfast.model.limits import Limits, Time
from holdfast.runtime.run import Run
from holdfast.table.change import RowChange
from holdfast.table.compaction import RowMoves
from holdfast.table.state import Table


@dataclass(frozen=True)
class Witnessed:
    """Maximal evidences of a table, each with witnesses, and the covers of some rhs."""

    evidence: Evidence
    covers: Covers
    upkeep: Upkeep | None = None  # None: nothing is kept for batches
    stored_lists: StoredLists | None = None  # of pairs of rows, by an earlier version
    new_lists: ListedPairs | None = None  # which replace those

    @staticmethod
    def none(atoms: int, rhs: tuple[int, ...], limits: Limits) -> Witnessed:
        """Of no rows."""
        none = Evidence.none(atoms)
        return Witnessed(none, Covers.build(atoms, rhs, none.masks, limits))

    @property
    def ids(self) -> I64:
        """Every row that is a witness."""
        hidden = self.upkeep.hidden.ids if self.upkeep else np.empty(0, np.int64)
        return np.union1d(self.evidence.ids, hidden)

    def renumbered(self, moves: RowMoves) -> Witnessed:
        """The same after rows got other ids."""
        upkeep = self.upkeep
        if upkeep is not None:
            upkeep = replace(upkeep, hidden=upkeep.hidden.renumbered(moves.old, moves.new))
        evidence = self.evidence.renumbered(moves.old, moves.new)
        return replace(self, evidence=evidence, upkeep=upkeep)

    def only(self, rhs: tuple[int, ...]) -> Witnessed:
        """What some right-hand sides need."""
        covers = self.covers.only(rhs)
        return Witnessed(self.evidence.only(covers.evidence), covers)


@dataclass(frozen=True)
class Goal:
    """What is to be found in the rows of a table: the minimal sets of some right-hand sides, no
    longer than limits say, as far as there is time."""

    space: Space
    rhs: tuple[int, ...]
    limits: Limits
    time: Time
    from_sample: bool = False  # profile the first segment, then apply the others as inserts


class Engine(Protocol):
    """A way to find witnessed evidence. The table that comes back has the indexes that a search
    built, and those that batches are looked up in."""

    def discover(
        self, run: Run, table: Table, goal: Goal, *, for_batches: bool = True
    ) -> tuple[Witnessed, Table]:
        """From nothing but the rows."""

    def changed(
        self, run: Run, change: RowChange, before: Witnessed, goal: Goal
    ) -> tuple[Witnessed, Table]:
        """After a batch: deletes first, then what the new rows bring."""
