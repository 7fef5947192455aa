"""Keys and functional dependencies from evidence: one cover per right side.

For a right side A only the evidences that lack A count. Each is taken together with A, so that A
itself can refute nothing and stays out of every left side. A key is a left side whose right side no
two rows agree in: all evidence counts there.

An evidence is maximal for the right sides that all larger ones share beyond it. Those bits are kept
with it, so that a change tells every cover just what became maximal for it and what stopped.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.cover.cover import Cover
from holdfast.kernels import bitsets
from holdfast.kernels import rights as kernels
from holdfast.kernels.cover import Groups, Tick
from holdfast.model.limits import Limits

U64 = NDArray[np.uint64]

KEY = -1
"""The right side that no two rows agree in."""

_NEAR = 2_048
"""Evidences that new ones are first held against."""

_MANY = 1_000
"""Left sides from which on a change is worth threads: with fewer they wait for each other."""


@dataclass(frozen=True)
class Covers:
    """The covers of some right sides, :data:`KEY` first, then by column; and the evidences that
    are maximal for some of them, in canonical order, with the bits of those right sides.

    Inside, sets have one atom more than there are columns: it stands for the key's right side.
    """

    atoms: int
    by_side: dict[int, Cover]
    _masks: U64
    _rights: U64
    groups: Groups | None = None  # how atoms belong together; by default each is on its own

    @staticmethod
    def build(atoms: int, sides: Iterable[int], evidence: U64, limits: Limits) -> Covers:
        """All that is minimal against these evidences."""
        return Covers.begun(atoms, sides, evidence).to(limits)

    @staticmethod
    def begun(
        atoms: int,
        sides: Iterable[int],
        evidence: U64,
        groups: Groups | None = None,
        tick: Tick | None = None,
    ) -> Covers:
        """The covers of these evidences, of which no set of an atom or more is known yet."""
        sides = tuple(sides)
        # Larger ones before those inside them.
        masks = _wide(bitsets.distinct(_differing(atoms, evidence))[::-1], atoms)
        kept, rights = kernels.maximal_for(masks, _bits(sides, atoms), tick)
        masks, rights = masks[kept[::-1]], rights[::-1]
        maximal = _by_side(masks, rights, atoms)
        made = {side: Cover.of_maximal(atoms, maximal(side), 0, groups) for side in sides}
        return Covers(atoms, made, masks, rights, groups)

    @staticmethod
    def restored(
        atoms: int,
        masks: U64,
        rights: U64,
        minimal: dict[int, U64],
        limits: Limits,
        groups: Groups | None = None,
    ) -> Covers:
        """The covers that :attr:`parts` and their minimal left sides were taken from."""
        masks = _wide(masks, atoms)
        maximal = _by_side(masks, rights, atoms)
        made = {
            side: Cover(atoms, maximal(side), left, _limit(limits, side), groups)
            for side, left in minimal.items()
        }
        return Covers(atoms, made, masks, rights, groups)

    def to(self, limits: Limits, tick: Tick | None = None) -> Covers:
        """The same with sets of other lengths."""

        def cover(side: int) -> Cover:
            return self.by_side[side].to(_limit(limits, side), tick)

        return replace(self, by_side=_each(self.by_side, cover, os.cpu_count()))

    def if_whole(self, limits: Limits) -> Covers:
        """With these limits where no set is too long for lower ones; after a search."""
        made = dict(self.by_side)
        for family in ([side for side in made if side == KEY], self.columns):
            if all(made[side].whole for side in family):
                for side in family:
                    made[side] = copy(made[side])
                    made[side].max_size = _limit(limits, side)
        return replace(self, by_side=made)

    def reach(self, limits: Limits) -> bool:
        """Whether the covers have these limits."""
        return all(cover.max_size == _limit(limits, side) for side, cover in self.by_side.items())

    @property
    def limits(self) -> Limits:
        """The longest sets that are looked for; None also where there is no such cover."""
        sizes = {side == KEY: cover.max_size for side, cover in self.by_side.items()}
        return Limits(sizes.get(True), sizes.get(False))

    def changed(
        self, appeared: U64, vanished: U64, evidence: U64, tick: Tick | None = None
    ) -> Covers:
        """After evidences appeared and vanished; ``evidence`` is all there is now, which matters
        only where some vanished."""
        atoms = self.atoms
        appeared = _wide(_differing(atoms, appeared), atoms)
        if not len(appeared) and not len(vanished):
            return self
        places = bitsets.find(_wide(vanished, atoms), self._masks)
        went = np.zeros(len(self._masks), np.bool_)
        went[places[places >= 0]] = True
        gone, gone_for = self._masks[went], self._rights[went]
        masks, rights = self._masks[~went], self._rights[~went]
        evidence = _wide(evidence, atoms) if len(gone) else appeared[:0]
        fresh, fresh_for = self._fresh(masks, appeared, evidence, gone, gone_for)
        rights = kernels.narrowed(masks, rights, appeared)
        masks, rights = kernels.united(masks, rights, fresh, fresh_for)
        lost, found = _by_side(gone, gone_for, atoms), _by_side(fresh, fresh_for, atoms)
        maximal = _by_side(masks, rights, atoms)

        def after(side: int) -> Cover:
            if not len(lost(side)) and not len(found(side)):
                return self.by_side[side]
            cover = copy(self.by_side[side])
            cover.exchange(lost(side), found(side), maximal(side), tick)
            return cover

        many = sum(len(cover.minimal) for cover in self.by_side.values()) > _MANY
        made = _each(self.by_side, after, os.cpu_count() if many else 1)
        return Covers(atoms, made, masks, rights, self.groups)

    def _fresh(
        self, masks: U64, appeared: U64, evidence: U64, gone: U64, gone_for: U64
    ) -> tuple[U64, U64]:
        """The evidences that have become maximal for a right side, and for which: they appeared,
        or were hidden by a larger one that is gone."""
        opened = kernels.opened(evidence, gone, gone_for)
        hidden = np.flatnonzero(bitsets.occupied(opened))
        hidden = hidden[~bitsets.is_member(evidence[hidden], appeared)]
        full = _bits(self.by_side, self.atoms)
        fresh = np.concatenate([appeared, evidence[hidden]])
        fresh_for = np.concatenate([full & ~appeared, opened[hidden]])
        # Beside the largest of them first, which most of them lie near to and do not survive; then
        # beside older ones, and beside each other.
        largest = fresh[np.argsort(-bitsets.popcount(fresh), kind="stable")[:_NEAR]]
        for family in (largest, masks, None):
            fresh_for = kernels.narrowed(fresh, fresh_for, fresh if family is None else family)
            some = bitsets.occupied(fresh_for)
            fresh, fresh_for = fresh[some], fresh_for[some]
        order = bitsets.canonical_order(fresh)
        return fresh[order], fresh_for[order]

    def only(self, sides: Iterable[int]) -> Covers:
        """Some right sides alone."""
        by_side = {side: self.by_side[side] for side in sides}
        rights = self._rights & _bits(by_side, self.atoms)
        some = bitsets.occupied(rights)
        return Covers(self.atoms, by_side, self._masks[some], rights[some], self.groups)

    def joined(self, other: Covers) -> Covers:
        """These, and the other's where both have one."""
        if all(self.by_side.get(side) is cover for side, cover in other.by_side.items()):
            return self
        mine = self.only(side for side in self.by_side if side not in other.by_side)
        both = dict(sorted({**mine.by_side, **other.by_side}.items()))
        united = kernels.united(mine._masks, mine._rights, other._masks, other._rights)
        return Covers(self.atoms, both, *united, self.groups)

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
        sizes = np.array([len(each) for each in found], np.int64)
        return left, np.repeat(np.array(self.columns, np.int32), sizes)

    @property
    def minimal(self) -> dict[int, U64]:
        """The minimal left sides of every right side."""
        return {side: cover.minimal for side, cover in self.by_side.items()}

    @property
    def evidence(self) -> U64:
        """What is maximal for some right side."""
        return self._masks[:, : bitsets.words_for(self.atoms)]

    @property
    def parts(self) -> tuple[U64, U64]:
        """The evidence, and for which right sides it is maximal: a bit for each column, and one
        more for the key's."""
        return self.evidence, self._rights


def _each(
    sides: Iterable[int], work: Callable[[int], Cover], threads: int | None
) -> dict[int, Cover]:
    """What the work makes of each right side. They share nothing, and kernels leave the
    interpreter free."""
    sides = tuple(sides)
    with ThreadPoolExecutor(threads) as pool:
        return dict(zip(sides, pool.map(work, sides), strict=True))


def _limit(limits: Limits, side: int) -> int | None:
    return limits.keys if side == KEY else limits.dependencies


def _differing(atoms: int, evidence: U64) -> U64:
    """Without rows that agree everywhere: they refute nothing, and would stand above all others."""
    out: U64 = evidence[(evidence != bitsets.universe(atoms)[0]).any(axis=1)]
    return out


def _wide(masks: U64, atoms: int) -> U64:
    """The same sets, with room for the key's right side."""
    more = bitsets.words_for(atoms + 1) - masks.shape[1]
    out: U64 = np.pad(masks, ((0, 0), (0, more))) if more else masks
    return out


def _bits(sides: Iterable[int], atoms: int) -> U64:
    """Right sides as bits."""
    places = [atoms if side == KEY else side for side in sides]
    out: U64 = bitsets.from_columns([places], atoms + 1)[0]
    return out


def _by_side(masks: U64, rights: U64, atoms: int) -> Callable[[int], U64]:
    """The evidences that are maximal for a right side, as its cover takes them: with it. Their
    order stays canonical."""
    rows, starts = kernels.by_right(rights)
    narrow = masks[:, : bitsets.words_for(atoms)]

    def against(side: int) -> U64:
        at = atoms if side == KEY else side
        out: U64 = narrow[rows[starts[at] : starts[at + 1]]]
        if side != KEY:
            out[:, side // 64] |= np.uint64(1) << np.uint64(side % 64)
        return out

    return against
