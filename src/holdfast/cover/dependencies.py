"""Functional dependencies from evidence: one cover per right side.

For a right side A only the evidences that lack A count. Each is taken together with A, so that A
itself can refute nothing and stays out of every left side; then it is the cover of keys.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.cover import Cover
from holdfast.kernels import bitsets
from holdfast.kernels import rights as kernels

U64 = NDArray[np.uint64]

_MANY = 100_000
"""Left sides from which on a change is worth threads: with fewer they wait for each other."""


@dataclass(frozen=True)
class Dependencies:
    """The covers of all right sides, in column order; and the evidences that are maximal for some
    right side, in canonical order, with the masks of those right sides."""

    covers: tuple[Cover, ...]
    masks: U64
    rights: U64

    @staticmethod
    def build(atoms: int, evidence: U64, max_size: int | None) -> Dependencies:
        """All minimal dependencies of these evidences, each given once."""
        masks, rights = maximal_evidence(atoms, evidence)
        covers = _each(
            atoms,
            lambda right: Cover.of_maximal(atoms, _against(masks, rights, right), max_size),
            os.cpu_count(),
        )
        return Dependencies(covers, masks, rights)

    @staticmethod
    def known(
        atoms: int, masks: U64, rights: U64, minimal: Sequence[U64], max_size: int | None
    ) -> Dependencies:
        """What was built before: the left sides of every right side in canonical order."""
        order = bitsets.canonical_order(masks)
        masks, rights = masks[order], rights[order]
        covers = (
            Cover(atoms, _against(masks, rights, right), sets, max_size)
            for right, sets in enumerate(minimal)
        )
        return Dependencies(tuple(covers), masks, rights)

    def changed(self, appeared: U64, vanished: U64, evidence: U64) -> Dependencies:
        """After evidences appeared and vanished; ``evidence`` is all there is now."""
        if not len(appeared) and not len(vanished):
            return self
        went = bitsets.is_member(self.masks, vanished)
        gone, gone_for = self.masks[went], self.rights[went]
        masks, rights = self.masks[~went], self.rights[~went]
        fresh, fresh_for = self._fresh(masks, appeared, evidence, gone, gone_for)
        rights = kernels.narrowed(masks, rights, appeared)
        masks, rights = _together(masks, rights, fresh, fresh_for)

        def after(right: int) -> Cover:
            lost, found = _against(gone, gone_for, right), _against(fresh, fresh_for, right)
            if not len(lost) and not len(found):
                return self.covers[right]
            cover = copy(self.covers[right])
            cover.exchange(lost, found, _against(masks, rights, right))
            return cover

        many = sum(len(cover.minimal) for cover in self.covers) > _MANY
        covers = _each(len(self.covers), after, os.cpu_count() if many else 1)
        return Dependencies(covers, masks, rights)

    def _fresh(
        self, masks: U64, appeared: U64, evidence: U64, gone: U64, gone_for: U64
    ) -> tuple[U64, U64]:
        """The evidences that have become maximal for a right side, and for which: they appeared,
        or were hidden by a larger one that is gone."""
        opened = kernels.opened(evidence, gone, gone_for)
        hidden = np.flatnonzero(opened.any(axis=1))
        hidden = hidden[~bitsets.is_member(evidence[hidden], appeared)]
        full = bitsets.universe(len(self.covers))
        fresh = np.concatenate([appeared, evidence[hidden]])
        fresh_for = np.concatenate([full & ~appeared, opened[hidden]])
        # Beside older ones first, which few survive; then beside each other.
        fresh_for = kernels.narrowed(fresh, fresh_for, masks)
        some = fresh_for.any(axis=1)
        fresh, fresh_for = fresh[some], fresh_for[some]
        fresh_for = kernels.narrowed(fresh, fresh_for, fresh)
        some = fresh_for.any(axis=1)
        return fresh[some], fresh_for[some]

    @property
    def pairs(self) -> tuple[U64, NDArray[np.int32]]:
        """All dependencies: left sides, and the right side of each."""
        left = np.concatenate([cover.minimal for cover in self.covers])
        sizes = [len(cover.minimal) for cover in self.covers]
        return left, np.repeat(np.arange(len(self.covers), dtype=np.int32), sizes)


def _each(sides: int, work: Callable[[int], Cover], threads: int | None) -> tuple[Cover, ...]:
    """The cover of each right side; they share nothing, and kernels leave the interpreter free."""
    with ThreadPoolExecutor(threads) as pool:
        return tuple(pool.map(work, range(sides)))


def maximal_evidence(atoms: int, evidence: U64) -> tuple[U64, U64]:
    """The evidences that are maximal for some right side, in canonical order, and for which ones,
    as bits. Each evidence is given once."""
    order = bitsets.canonical_order(evidence)[::-1]  # Larger ones before those inside them.
    kept, rights = kernels.maximal_for(evidence[order], bitsets.universe(atoms)[0])
    return evidence[order[kept[::-1]]], rights[::-1]


def _together(masks: U64, rights: U64, fresh: U64, fresh_for: U64) -> tuple[U64, U64]:
    """Right sides of the same evidence united; evidences without any are left out."""
    rows = np.concatenate([masks, fresh])
    order = bitsets.canonical_order(rows)
    rows, sides = rows[order], np.concatenate([rights, fresh_for])[order]
    # An evidence comes at most twice: as an older one, and as one that was hidden from some sides.
    twice = np.zeros(len(rows), np.bool_)
    twice[1:] = (rows[1:] == rows[:-1]).all(axis=1)
    sides[:-1][twice[1:]] |= sides[twice]
    some = ~twice & sides.any(axis=1)
    return rows[some], sides[some]


def _against(masks: U64, rights: U64, right: int) -> U64:
    """The evidences that are maximal for ``right``, with it; their order stays canonical."""
    bit = np.uint64(1) << np.uint64(right % 64)
    out: U64 = masks[rights[:, right // 64] & bit != 0].copy()
    out[:, right // 64] |= bit
    return out
