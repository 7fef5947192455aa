"""Keys and functional dependencies from evidence: one cover per right side.

For a right side A only the evidences that lack A count. Each is taken together with A, so that A
itself can refute nothing and stays out of every left side. A key is a left side whose right side no
two rows agree in: all evidence counts there.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.cover import Cover
from holdfast.kernels import agree as kernels
from holdfast.kernels import bitsets

U64 = NDArray[np.uint64]

KEY = -1
"""The right side that no two rows agree in."""


@dataclass(frozen=True)
class Covers:
    """The covers of some right sides, :data:`KEY` first, then by column."""

    atoms: int
    by_side: dict[int, Cover]

    @staticmethod
    def build(
        atoms: int,
        sides: Iterable[int],
        evidence: U64,
        max_size: int | None,
        deadline: float | None = None,
    ) -> Covers:
        """All that is minimal against these evidences. After the deadline no further right side
        is begun."""
        masks, rights = kernels.maximal_evidence(atoms, evidence)
        made: dict[int, Cover] = {}
        for side in sides:
            if deadline is not None and time.monotonic() > deadline:
                break
            if side == KEY:
                made[KEY] = Cover.build(atoms, masks, max_size)
            else:
                bit = np.uint64(1) << np.uint64(side % 64)
                mine = masks[rights[:, side // 64] & bit != 0]
                made[side] = Cover.build(atoms, against(mine, side), max_size)
        return Covers(atoms, made)

    def changed(self, appeared: U64, vanished: U64, evidence: U64) -> Covers:
        """After evidences appeared and vanished; ``evidence`` is all there is now."""
        if not len(appeared) and not len(vanished):
            return self
        full = bitsets.universe(self.atoms)[0]
        appeared, evidence = (m[(m != full).any(axis=1)] for m in (appeared, evidence))
        made = {}
        for side, kept in self.by_side.items():
            cover = copy(kept)
            gone = bitsets.distinct(against(vanished, side))
            gone = gone[bitsets.is_member(gone, cover.evidence)]
            fresh = against(appeared, side)
            if len(gone):
                # Evidence that was hidden below a vanished one may be maximal now.
                hidden = against(evidence, side)
                hidden = hidden[bitsets.any_superset(hidden, gone)]
                cover.remove(gone, np.concatenate([hidden, fresh]))
            elif len(fresh):
                cover.add(fresh)
            made[side] = cover
        return Covers(self.atoms, made)

    def only(self, sides: Iterable[int]) -> Covers:
        """Some right sides alone."""
        return Covers(self.atoms, {side: self.by_side[side] for side in sides})

    def joined(self, other: Covers) -> Covers:
        """These, and the other's where both have one."""
        both = {**self.by_side, **other.by_side}
        return Covers(self.atoms, dict(sorted(both.items())))

    def without(self, lefts: dict[int, U64]) -> Covers:
        """With these minimal left sides left out, which are not known to hold."""
        made = dict(self.by_side)
        for side, masks in lefts.items():
            cover = copy(made[side])
            cover.minimal = cover.minimal[~bitsets.is_member(cover.minimal, masks)]
            made[side] = cover
        return Covers(self.atoms, made)

    def with_minimal(self, lefts: dict[int, U64]) -> Covers:
        """With these back again."""
        made = dict(self.by_side)
        for side, masks in lefts.items():
            cover = copy(made[side])
            minimal = np.concatenate([cover.minimal, masks])
            cover.minimal = minimal[bitsets.canonical_order(minimal)]
            made[side] = cover
        return Covers(self.atoms, made)

    @property
    def keys(self) -> Cover:
        """The cover of keys."""
        return self.by_side[KEY]

    @property
    def columns(self) -> tuple[int, ...]:
        """The right sides that are columns."""
        return tuple(side for side in self.by_side if side != KEY)

    @property
    def dependencies(self) -> tuple[U64, NDArray[np.int32]]:
        """All functional dependencies: left sides, and the right side of each."""
        found = [self.by_side[side].minimal for side in self.columns]
        left = np.concatenate([bitsets.empty(self.atoms), *found])
        return left, np.repeat(
            np.array(self.columns, np.int32), np.array([len(each) for each in found], np.int64)
        )

    @property
    def minimal(self) -> dict[int, U64]:
        """The minimal left sides of every right side."""
        return {side: cover.minimal for side, cover in self.by_side.items()}

    def maximal_for(self, masks: U64) -> U64:
        """For which columns each of these evidences is maximal, as bits; all that are must be
        among them."""
        out = np.zeros_like(masks)
        counts = [len(self.by_side[side].evidence) for side in self.columns]
        sides = np.repeat(np.array(self.columns, np.int64), np.array(counts, np.int64))
        word, bit = sides // 64, np.uint64(1) << (sides % 64).astype(np.uint64)
        own = np.concatenate([masks[:0], *(self.by_side[s].evidence for s in self.columns)])
        own[np.arange(len(own)), word] &= ~bit
        np.bitwise_or.at(out, (bitsets.places(own, masks), word), bit)
        return out

    @staticmethod
    def stored(
        atoms: int, masks: U64, maximal: U64, minimal: dict[int, U64], max_size: int | None
    ) -> Covers:
        """Covers of columns, from what :meth:`maximal_for` said and their minimal left sides."""
        made = {}
        for side, left in minimal.items():
            bit = np.uint64(1) << np.uint64(side % 64)
            mine = against(masks[maximal[:, side // 64] & bit != 0], side)
            mine = mine[bitsets.canonical_order(mine)]
            made[side] = Cover(atoms, mine, left, max_size)
        return Covers(atoms, made)


def against(evidence: U64, side: int) -> U64:
    """The evidences that count for a right side, as its cover takes them."""
    if side == KEY:
        return evidence
    bit = np.uint64(1) << np.uint64(side % 64)
    out: U64 = evidence[evidence[:, side // 64] & bit == 0].copy()
    out[:, side // 64] |= bit
    return out
