"""Keys and functional dependencies from evidence: one cover per rhs.

For an rhs A only the evidences that lack A count. Each is taken together with A, so that A
itself can refute nothing and stays out of every lhs. A key is an lhs whose rhs no
two rows agree in: all evidence counts there.

An evidence is maximal for the right-hand sides that all larger ones share beyond it. Those bits are
kept with it, so that a change tells every cover just what became maximal for it and what stopped.
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
from holdfast.kernels import maximal as kernels
from holdfast.kernels.arrays import U64
from holdfast.kernels.bitsets import Tick
from holdfast.kernels.cover import AtomGroups
from holdfast.model.limits import Limits

KEY = -1
"""The rhs that no two rows agree in."""

_NEAR = 2_048
"""Evidences that new ones are first held against."""

_MANY = 1_000
"""Left-hand sides from which on a change is worth threads: with fewer they wait for each other."""


@dataclass(frozen=True)
class Covers:
    """The covers of some right-hand sides, :data:`KEY` first, then by column; and the evidences
    that are maximal for some of them, in canonical order, with the bits of those right-hand sides.

    Inside, sets have one atom more than there are columns: it stands for the key's rhs.
    """

    atoms: int
    by_rhs: dict[int, Cover]
    _masks: U64
    _maximal_for: U64
    groups: AtomGroups | None = None  # how atoms belong together; by default each is on its own

    @staticmethod
    def build(atoms: int, wanted: Iterable[int], evidence: U64, limits: Limits) -> Covers:
        """All that is minimal against these evidences."""
        return Covers.begun(atoms, wanted, evidence).to(limits)

    @staticmethod
    def begun(
        atoms: int,
        wanted: Iterable[int],
        evidence: U64,
        groups: AtomGroups | None = None,
        tick: Tick | None = None,
    ) -> Covers:
        """The covers of these evidences, of which no set of an atom or more is known yet."""
        wanted = tuple(wanted)
        # Larger ones before those inside them.
        masks = _wide(bitsets.distinct(_differing(atoms, evidence))[::-1], atoms)
        maximal_masks, maximal_for = kernels.maximal_for(masks, _bits(wanted, atoms), tick)
        masks, maximal_for = masks[maximal_masks[::-1]], maximal_for[::-1]
        maximal = _by_rhs(masks, maximal_for, atoms)
        none = bitsets.empty(atoms)

        def cover(rhs: int) -> Cover:
            if tick is not None:
                tick(0)
            return Cover(atoms, maximal(rhs), none, 0, groups).searched(tick)

        by_rhs = {rhs: cover(rhs) for rhs in wanted}
        return Covers(atoms, by_rhs, masks, maximal_for, groups)

    @staticmethod
    def restored(
        atoms: int,
        masks: U64,
        maximal_for: U64,
        minimal: dict[int, U64],
        limits: Limits,
        groups: AtomGroups | None = None,
    ) -> Covers:
        """The covers that :attr:`parts` and their minimal left-hand sides were taken from."""
        masks = _wide(masks, atoms)
        maximal = _by_rhs(masks, maximal_for, atoms)
        by_rhs = {
            rhs: Cover(atoms, maximal(rhs), lhs, _limit(limits, rhs), groups)
            for rhs, lhs in minimal.items()
        }
        return Covers(atoms, by_rhs, masks, maximal_for, groups)

    def to(self, limits: Limits, tick: Tick | None = None) -> Covers:
        """The same with sets of other lengths."""

        def cover(rhs: int) -> Cover:
            return self.by_rhs[rhs].to(_limit(limits, rhs), tick)

        return replace(self, by_rhs=_each(self.by_rhs, cover, os.cpu_count()))

    def if_whole(self, limits: Limits) -> Covers:
        """With these limits where no set is too long for lower ones; after a search."""
        by_rhs = dict(self.by_rhs)
        for family in ([rhs for rhs in by_rhs if rhs == KEY], self.columns):
            if all(by_rhs[rhs].whole for rhs in family):
                for rhs in family:
                    by_rhs[rhs] = copy(by_rhs[rhs])
                    by_rhs[rhs].max_size = _limit(limits, rhs)
        return replace(self, by_rhs=by_rhs)

    def reach(self, limits: Limits) -> bool:
        """Whether the covers have these limits."""
        return all(cover.max_size == _limit(limits, rhs) for rhs, cover in self.by_rhs.items())

    @property
    def limits(self) -> Limits:
        """The longest sets that are looked for; None also where there is no such cover."""
        sizes = {rhs == KEY: cover.max_size for rhs, cover in self.by_rhs.items()}
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
        positions = bitsets.find(_wide(vanished, atoms), self._masks)
        went = np.zeros(len(self._masks), np.bool_)
        went[positions[positions >= 0]] = True
        gone, gone_for = self._masks[went], self._maximal_for[went]
        masks, maximal_for = self._masks[~went], self._maximal_for[~went]
        evidence = _wide(evidence, atoms) if len(gone) else appeared[:0]
        fresh, fresh_for = self._fresh(masks, appeared, evidence, gone, gone_for, tick)
        maximal_for = kernels.narrowed(masks, maximal_for, appeared, tick)
        masks, maximal_for = kernels.united(masks, maximal_for, fresh, fresh_for)
        lost, gained = _by_rhs(gone, gone_for, atoms), _by_rhs(fresh, fresh_for, atoms)
        maximal = _by_rhs(masks, maximal_for, atoms)

        def after(rhs: int) -> Cover:
            if tick is not None:
                tick(0)
            if not len(lost(rhs)) and not len(gained(rhs)):
                return self.by_rhs[rhs]
            cover = copy(self.by_rhs[rhs])
            cover.exchange(lost(rhs), gained(rhs), maximal(rhs), tick)
            return cover

        many = sum(len(cover.minimal) for cover in self.by_rhs.values()) > _MANY
        by_rhs = _each(self.by_rhs, after, os.cpu_count() if many else 1)
        return Covers(atoms, by_rhs, masks, maximal_for, self.groups)

    def _fresh(
        self,
        masks: U64,
        appeared: U64,
        evidence: U64,
        gone: U64,
        gone_for: U64,
        tick: Tick | None,
    ) -> tuple[U64, U64]:
        """The evidences that have become maximal for an rhs, and for which: they appeared,
        or were hidden by a larger one that is gone."""
        opened = kernels.opened(evidence, gone, gone_for, tick)
        hidden = np.flatnonzero(bitsets.occupied(opened))
        hidden = hidden[~bitsets.is_member(evidence[hidden], appeared)]
        full = _bits(self.by_rhs, self.atoms)
        fresh = np.concatenate([appeared, evidence[hidden]])
        fresh_for = np.concatenate([full & ~appeared, opened[hidden]])
        # Beside the largest of them first, which most of them lie near to and do not survive; then
        # beside older ones, and beside each other.
        largest = fresh[np.argsort(-bitsets.popcount(fresh), kind="stable")[:_NEAR]]
        for family in (largest, masks, None):
            beside = fresh if family is None else family
            fresh_for = kernels.narrowed(fresh, fresh_for, beside, tick)
            occupied = bitsets.occupied(fresh_for)
            fresh, fresh_for = fresh[occupied], fresh_for[occupied]
        order = bitsets.canonical_order(fresh)
        return fresh[order], fresh_for[order]

    def only(self, wanted: Iterable[int]) -> Covers:
        """Some right-hand sides alone."""
        by_rhs = {rhs: self.by_rhs[rhs] for rhs in wanted}
        maximal_for = self._maximal_for & _bits(by_rhs, self.atoms)
        occupied = bitsets.occupied(maximal_for)
        return Covers(self.atoms, by_rhs, self._masks[occupied], maximal_for[occupied], self.groups)

    def joined(self, other: Covers) -> Covers:
        """These, and the other's where both have one."""
        if all(self.by_rhs.get(rhs) is cover for rhs, cover in other.by_rhs.items()):
            return self
        others = self.only(rhs for rhs in self.by_rhs if rhs not in other.by_rhs)
        both = dict(sorted({**others.by_rhs, **other.by_rhs}.items()))
        united = kernels.united(
            others._masks, others._maximal_for, other._masks, other._maximal_for
        )
        return Covers(self.atoms, both, *united, self.groups)

    @property
    def keys(self) -> Cover:
        """The cover of keys."""
        return self.by_rhs[KEY]

    @property
    def columns(self) -> tuple[int, ...]:
        """The right-hand sides that are columns."""
        return tuple(rhs for rhs in self.by_rhs if rhs != KEY)

    def holds(self, columns: Iterable[int], rhs: int | None = None) -> bool:
        """Whether some columns are known to determine another one; None: to be a key."""
        cover = self.by_rhs.get(KEY if rhs is None else rhs)
        mask = bitsets.from_columns([[*columns]], self.atoms)
        return cover is not None and bool(bitsets.any_subset(mask, cover.minimal)[0])

    @property
    def dependencies(self) -> tuple[U64, NDArray[np.int32]]:
        """All functional dependencies: left-hand sides, and the rhs of each."""
        minimal = [self.by_rhs[rhs].minimal for rhs in self.columns]
        lhs = np.concatenate([bitsets.empty(self.atoms), *minimal])
        sizes = np.array([len(masks) for masks in minimal], np.int64)
        return lhs, np.repeat(np.array(self.columns, np.int32), sizes)

    @property
    def minimal(self) -> dict[int, U64]:
        """The minimal left-hand sides of every rhs."""
        return {rhs: cover.minimal for rhs, cover in self.by_rhs.items()}

    @property
    def evidence(self) -> U64:
        """What is maximal for some rhs."""
        return self._masks[:, : bitsets.words_for(self.atoms)]

    @property
    def parts(self) -> tuple[U64, U64]:
        """The evidence, and for which right-hand sides it is maximal: a bit for each column, and
        one more for the key's."""
        return self.evidence, self._maximal_for


def _each(
    wanted: Iterable[int], work: Callable[[int], Cover], threads: int | None
) -> dict[int, Cover]:
    """What the work makes of each rhs. They share nothing, and kernels leave the
    interpreter free."""
    wanted = tuple(wanted)
    with ThreadPoolExecutor(threads) as pool:
        return dict(zip(wanted, pool.map(work, wanted), strict=True))


def _limit(limits: Limits, rhs: int) -> int | None:
    return limits.keys if rhs == KEY else limits.dependencies


def _differing(atoms: int, evidence: U64) -> U64:
    """Without rows that agree everywhere: they refute nothing, and would stand above all others."""
    out: U64 = evidence[(evidence != bitsets.universe(atoms)[0]).any(axis=1)]
    return out


def _wide(masks: U64, atoms: int) -> U64:
    """The same sets, with room for the key's rhs."""
    more = bitsets.words_for(atoms + 1) - masks.shape[1]
    out: U64 = np.pad(masks, ((0, 0), (0, more))) if more else masks
    return out


def _bits(wanted: Iterable[int], atoms: int) -> U64:
    """Right-hand sides as bits."""
    bits = [atoms if rhs == KEY else rhs for rhs in wanted]
    out: U64 = bitsets.from_columns([bits], atoms + 1)[0]
    return out


def _by_rhs(masks: U64, maximal_for: U64, atoms: int) -> Callable[[int], U64]:
    """The evidences that are maximal for an rhs, as its cover takes them: with it. Their
    order stays canonical."""
    rows, starts = kernels.by_rhs(maximal_for)
    narrow = masks[:, : bitsets.words_for(atoms)]

    def against(rhs: int) -> U64:
        at = atoms if rhs == KEY else rhs
        out: U64 = narrow[rows[starts[at] : starts[at + 1]]]
        if rhs != KEY:
            out[:, rhs // 64] |= np.uint64(1) << np.uint64(rhs % 64)
        return out

    return against
