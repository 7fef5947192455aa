"""Witnessed evidence: masks that matter, each with a few pairs of living rows that show it.

For keys those are the maximal masks; for functional dependencies the masks that are maximal for
some rhs.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.evidence import WITNESSES


@dataclass(frozen=True)
class Evidence:
    """Masks ``(n, W)``, and for each up to ``WITNESSES`` pairs of row ids; -1 where none."""

    masks: U64
    witnesses: I64  # (n, WITNESSES, 2)

    @staticmethod
    def none(atoms: int) -> Evidence:
        """No evidence at all."""
        return Evidence(bitsets.empty(atoms), np.empty((0, WITNESSES, 2), np.int64))

    @staticmethod
    def found(masks: U64, witnesses: I64, seen: I64) -> Evidence:
        """What a task found; only the first ``seen`` witnesses of each are set."""
        unset = np.arange(WITNESSES)[None, :] >= seen[:, None]
        pairs = witnesses.copy()
        pairs[unset] = -1
        return Evidence(masks.copy(), pairs)

    @staticmethod
    def of_pairs(masks: U64, pairs: I64) -> Evidence:
        """Masks with one pair of rows each."""
        witnesses = np.full((len(masks), WITNESSES, 2), -1, np.int64)
        witnesses[:, 0] = pairs
        return Evidence(masks, witnesses)

    def joined(self, others: list[Evidence]) -> Evidence:
        """All masks, with the first few distinct pairs of equal ones; in canonical order."""
        masks = np.concatenate([self.masks, *(o.masks for o in others)])
        pairs = np.concatenate([self.witnesses, *(o.witnesses for o in others)])
        order = np.lexsort(masks.T)
        masks, pairs = masks[order], pairs[order]
        starts = bitsets.begins_run(masks)
        owner = np.repeat(np.cumsum(starts) - 1, WITNESSES)
        flat = pairs.reshape(-1, 2)
        real = flat[:, 0] >= 0
        owner, flat = owner[real], flat[real]
        _, first = np.unique(np.column_stack([owner, flat]), axis=0, return_index=True)
        first.sort()
        owner, flat = owner[first], flat[first]
        rank = np.arange(len(owner)) - np.searchsorted(owner, owner)
        out = np.full((int(starts.sum()), WITNESSES, 2), -1, np.int64)
        few = rank < WITNESSES
        out[owner[few], rank[few]] = flat[few]
        distinct = masks[starts]
        canonical = bitsets.canonical_order(distinct)
        return Evidence(distinct[canonical], out[canonical])

    def only(self, masks: U64) -> Evidence:
        """Only some of the masks."""
        keep = bitsets.is_member(self.masks, masks)
        return Evidence(self.masks[keep], self.witnesses[keep])

    def outside(self, masks: U64) -> Evidence:
        """Without some of the masks."""
        keep = ~bitsets.is_member(self.masks, masks)
        return Evidence(self.masks[keep], self.witnesses[keep])

    def followed(self, older: Evidence) -> Evidence:
        """With other masks after these."""
        older = older.outside(self.masks)
        masks = np.concatenate([self.masks, older.masks])
        return Evidence(masks, np.concatenate([self.witnesses, older.witnesses]))

    def first(self, count: int) -> Evidence:
        """At most so many of the masks."""
        return Evidence(self.masks[:count], self.witnesses[:count])

    def without(self, deleted: NDArray[np.bool_]) -> tuple[Evidence, U64]:
        """The evidence that still has a living witness, and the masks that have none; ``deleted``
        says which rows of :attr:`witnesses` are."""
        gone = deleted.any(axis=2) | (self.witnesses[:, :, 0] < 0)
        # Living witnesses move to the front, because the first pair is the one that is shown.
        order = np.argsort(gone, axis=1, kind="stable")
        pairs = np.take_along_axis(self.witnesses, order[:, :, None], axis=1)
        pairs[np.take_along_axis(gone, order, axis=1)] = -1
        dead = gone.all(axis=1)
        return Evidence(self.masks[~dead], pairs[~dead]), self.masks[dead]

    def renumbered(self, old: I64, new: I64) -> Evidence:
        """The same evidence after rows moved from ``old`` ids to ``new`` ones."""
        if not old.size:
            return self
        order = np.argsort(old)
        at = np.searchsorted(old[order], self.witnesses).clip(max=old.size - 1)
        moved = old[order][at] == self.witnesses
        return Evidence(self.masks, np.where(moved, new[order][at], self.witnesses))

    @property
    def ids(self) -> I64:
        """Every row that is a witness."""
        ids = np.unique(self.witnesses)
        return ids[ids >= 0]

    def violating(self, mask: U64, rhs: int | None) -> tuple[int, int] | None:
        """Two rows that agree on ``mask`` and not in the rhs, if it has one; None where no
        evidence shows such rows."""
        inside = ((mask[None, :] & ~self.masks) == 0).all(axis=1)
        if rhs is not None:
            inside &= self.masks[:, rhs // 64] >> np.uint64(rhs % 64) & np.uint64(1) == 0
        hits = np.flatnonzero(inside)
        if not hits.size:
            return None
        one, two = self.witnesses[hits[0], 0].tolist()
        return one, two

    def against(self, mask: U64) -> int:
        """The first evidence that contains ``mask``, or -1."""
        inside = ((mask[None, :] & ~self.masks) == 0).all(axis=1)
        hits = np.flatnonzero(inside)
        return int(hits[0]) if hits.size else -1
