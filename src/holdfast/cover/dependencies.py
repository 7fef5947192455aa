"""Functional dependencies from evidence: one cover per right side.

For a right side A only the evidences that lack A count. Each is taken together with A, so that A
itself can refute nothing and stays out of every left side; then it is the cover of keys.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.cover import Cover
from holdfast.kernels import agree as kernels
from holdfast.kernels import bitsets

U64 = NDArray[np.uint64]


@dataclass(frozen=True)
class Dependencies:
    """The covers of all right sides, in column order."""

    covers: tuple[Cover, ...]

    @staticmethod
    def build(atoms: int, evidence: U64, max_size: int | None) -> Dependencies:
        """All minimal dependencies of these evidences."""
        masks, rights = maximal_evidence(atoms, evidence)
        covers = []
        for right in range(atoms):
            bit = np.uint64(1) << np.uint64(right % 64)
            mine = masks[rights[:, right // 64] & bit != 0]
            covers.append(Cover.build(atoms, _against(mine, right), max_size))
        return Dependencies(tuple(covers))

    def changed(self, appeared: U64, vanished: U64, evidence: U64) -> Dependencies:
        """After evidences appeared and vanished; ``evidence`` is all there is now."""
        if not len(appeared) and not len(vanished):
            return self
        covers = []
        for right, kept in enumerate(self.covers):
            cover = copy(kept)
            gone = bitsets.distinct(_against(vanished, right))
            gone = gone[bitsets.is_member(gone, cover.evidence)]
            fresh = _against(appeared, right)
            if len(gone):
                # Evidence that was hidden below a vanished one may be maximal now.
                hidden = _against(evidence, right)
                hidden = hidden[bitsets.any_superset(hidden, gone)]
                cover.remove(gone, np.concatenate([hidden, fresh]))
            elif len(fresh):
                cover.add(fresh)
            covers.append(cover)
        return Dependencies(tuple(covers))

    @property
    def pairs(self) -> tuple[U64, NDArray[np.int32]]:
        """All dependencies: left sides, and the right side of each."""
        left = np.concatenate([cover.minimal for cover in self.covers])
        sizes = [len(cover.minimal) for cover in self.covers]
        return left, np.repeat(np.arange(len(self.covers), dtype=np.int32), sizes)


def maximal_evidence(atoms: int, evidence: U64) -> tuple[U64, U64]:
    """The evidences that are maximal for some right side, and for which ones, as bits.

    An evidence e is maximal for A iff A is in every larger one, so the right sides of e are what
    all larger ones share beyond e.
    """
    full = bitsets.universe(atoms)[0]
    # Rows that agree everywhere refute nothing, and would stand above all others.
    evidence = evidence[(evidence != full).any(axis=1)]
    masks = evidence[np.argsort(-bitsets.popcount(evidence), kind="stable")]
    kept, rights = np.empty(len(masks), np.int64), np.empty_like(masks)
    count = kernels.maximal_for(masks, full, kept, rights)
    return masks[kept[:count]], rights[:count]


def _against(evidence: U64, right: int) -> U64:
    """The evidences that lack ``right``, with it."""
    bit = np.uint64(1) << np.uint64(right % 64)
    out: U64 = evidence[evidence[:, right // 64] & bit == 0].copy()
    out[:, right // 64] |= bit
    return out
