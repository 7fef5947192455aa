"""The cover: the minimal sets of atoms that no evidence contains, kept as evidence comes and goes.

The complements of the evidences are the edges of a hypergraph, and the minimal sets are its
minimal hitting sets. Keys, left-hand sides of functional dependencies and denial constraints are
all read from such a cover; it knows neither rows nor Spark.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels import cover as kernels
from holdfast.kernels.arrays import I64
from holdfast.kernels.bitsets import Masks, Tick
from holdfast.kernels.cover import AtomGroups


@dataclass(frozen=True)
class Change:
    """What one step did to the minimal sets; both sides in canonical order."""

    gained: Masks
    lost: Masks


class Cover:
    """Minimal sets of atoms that lie inside no evidence, under added and removed evidence.

    ``evidence`` holds the maximal evidences and ``minimal`` the minimal sets, both as bit
    matrices in canonical order (by size, then lexicographically). Without evidence the empty set
    is the only minimal set; with the evidence of all atoms there is none.

    >>> cover = Cover.build(3, bitsets.from_columns([(0, 1), (2,)], 3))
    >>> bitsets.to_columns(cover.minimal)
    [(0, 2), (1, 2)]
    >>> change = cover.add(bitsets.from_columns([(1, 2)], 3))
    >>> bitsets.to_columns(change.gained), bitsets.to_columns(change.lost)
    ([], [(1, 2)])

    **Limited size.** With ``max_size`` only the minimal sets of at most that many atoms, or, where
    atoms come in groups, of atoms of at most that many groups, are kept, and they are exact after
    every step, although longer ones are dropped on the way:

    - A set that is minimal after evidence was added contains, at every evidence in between, the
      one set it grew from, which is no longer than itself. So short sets grow from short sets
      only.
    - A set that is minimal after evidence was removed was minimal before, at the same size, or
      lies inside a removed evidence, where it is searched for anew and not among older sets.

    The evidence is always kept whole, since a later removal may need all of it.

    The constructor trusts its arguments and is meant for a cover that was stored; ``build``
    makes one from evidence.
    """

    __slots__ = ("atoms", "evidence", "groups", "max_size", "minimal", "whole")

    def __init__(
        self,
        atoms: int,
        evidence: Masks,
        minimal: Masks,
        max_size: int | None = None,
        groups: AtomGroups | None = None,
    ) -> None:
        self.atoms = atoms
        self.groups = kernels.groups(atoms) if groups is None else groups
        self.evidence = bitsets.plain(evidence)
        self.minimal = bitsets.plain(minimal)
        self.max_size = max_size
        self.whole = False  # whether a search found that no minimal set is longer

    @classmethod
    def build(
        cls,
        atoms: int,
        evidence: Masks,
        max_size: int | None = None,
        groups: AtomGroups | None = None,
    ) -> Cover:
        """The cover of any evidences, maximal or not."""
        if atoms < 0 or (max_size is not None and max_size < 0):
            raise ValueError("the numbers of atoms, and of atoms in a set, cannot be negative")
        cover = cls(atoms, bitsets.empty(atoms), bitsets.empty(atoms), max_size)
        maximal = bitsets.maximal(cover._checked(evidence))
        return cls.of_maximal(atoms, maximal, max_size, groups)

    @classmethod
    def of_maximal(
        cls,
        atoms: int,
        evidence: Masks,
        max_size: int | None = None,
        groups: AtomGroups | None = None,
        tick: Tick | None = None,
    ) -> Cover:
        """The cover of evidences of which none contains another; trusted."""
        cover = cls(atoms, _in_order(evidence), bitsets.empty(atoms), max_size, groups)
        return cover.searched(tick)

    def searched(self, tick: Tick | None = None) -> Cover:
        """The cover of the same evidence, with its minimal sets found anew."""
        cover = Cover(self.atoms, self.evidence, self.minimal, self.max_size, self.groups)
        cover.minimal, cover.whole = cover._search(cover.evidence, tick)
        return cover

    def to(self, max_size: int | None, tick: Tick | None = None) -> Cover:
        """The cover of the same evidence with sets of another size; longer ones are searched for
        anew."""
        if max_size == self.max_size:
            return self
        if max_size is None or (self.max_size is not None and max_size > self.max_size):
            none = bitsets.empty(self.atoms)
            return Cover(self.atoms, self.evidence, none, max_size, self.groups).searched(tick)
        short = self.sizes <= max_size
        return Cover(self.atoms, self.evidence, self.minimal[short], max_size, self.groups)

    @property
    def sizes(self) -> I64:
        """The size of every minimal set: how many groups it touches."""
        return kernels.touched(self.minimal, self.groups)

    def add(self, evidence: Masks, tick: Tick | None = None) -> Change:
        """Take in new evidences, maximal or not."""
        return self._step(bitsets.empty(self.atoms), self._checked(evidence), tick)

    def remove(self, evidence: Masks, replacement: Masks | None = None) -> Change:
        """Drop kept evidences, and take in ``replacement``: those that came to light below them.

        Both happen at once: sets that would appear between the two steps are never built.
        """
        gone = self._checked(evidence)
        if not bitsets.is_member(gone, self.evidence).all():
            raise ValueError("only maximal evidence that the cover keeps can be removed")
        if replacement is None:
            replacement = bitsets.empty(self.atoms)
        return self._step(gone, self._checked(replacement))

    def _step(self, gone: Masks, come: Masks, tick: Tick | None = None) -> Change:
        rest = self.evidence[~bitsets.is_member(self.evidence, gone)]
        fresh = bitsets.maximal(come, tick)
        fresh = fresh[~bitsets.any_superset(fresh, rest, tick)]
        staying = rest[~bitsets.any_superset(rest, fresh, tick)]
        after = _in_order(np.concatenate([staying, fresh]))
        return self.exchange(gone, fresh, after, tick)

    def exchange(self, gone: Masks, fresh: Masks, after: Masks, tick: Tick | None = None) -> Change:
        """Drop kept evidences, and take in others that are maximal now; ``after`` are all maximal
        ones, in canonical order. Trusted."""
        before, old = self.evidence, self.minimal
        gone = gone[~bitsets.any_superset(gone, fresh, tick)]
        broken = bitsets.any_superset(old, fresh, tick)
        if len(fresh) > len(before) and 2 * np.count_nonzero(broken) > len(old):
            # Growing most sets through mostly new edges was measured at two to eight times the
            # cost of a fresh search, which may choose the best edge at every branch.
            minimal, _ = self._search(after, tick)
            gained = minimal[~bitsets.is_member(minimal, old)]
            lost = old[~bitsets.is_member(old, minimal)]
        else:
            staying, lost = old[~broken], old[broken]
            gained = self._extend(lost, before, fresh, tick)
            if len(gone):
                # Whatever is minimal now lies inside a removed evidence, or hits the removed
                # edges too: then it is minimal with them, and needs none of them for its atoms.
                graph = self._graph(after)
                needed = kernels.irredundant(staying, graph)
                staying, lost = staying[needed], np.concatenate([lost, staying[~needed]])
                gained = gained[kernels.irredundant(gained, graph)]
                again, _ = kernels.search(graph, gone, self._limit, self.groups, tick)
                gained = np.concatenate([gained, again])
            minimal = old
            if len(gained) or len(lost):
                minimal = _in_order(np.concatenate([staying, gained]))
        # Only now: an interrupted search leaves the cover as it was.
        self.evidence, self.minimal, self.whole = after, minimal, False
        return Change(_in_order(gained), _in_order(lost))

    def _search(self, evidence: Masks, tick: Tick | None) -> tuple[Masks, bool]:
        if self._limit <= 1 and (self.groups.sizes <= 1).all():
            # Not worth a graph, which takes longer.
            edges = bitsets.complement(evidence, self.atoms)
            return kernels.short(edges, self._limit, self.atoms)
        everywhere = bitsets.universe(self.atoms)
        graph = self._graph(evidence)
        minimal, whole = kernels.search(graph, everywhere, self._limit, self.groups, tick)
        return _in_order(minimal), whole

    def _extend(self, broken: Masks, before: Masks, fresh: Masks, tick: Tick | None) -> Masks:
        """The sets that grow from broken ones until no fresh evidence contains them."""
        if not len(broken):
            return broken
        # The largest evidence first: its edge is the shortest and branches least.
        graph = self._graph(np.concatenate([before, fresh[::-1]]))
        return kernels.extend(broken, graph, self._limit, self.groups, tick)

    def _graph(self, evidence: Masks) -> kernels.Edges:
        return kernels.edges(bitsets.complement(evidence, self.atoms))

    @property
    def _limit(self) -> int:
        groups = int(np.count_nonzero(self.groups.sizes))
        return groups if self.max_size is None else min(groups, self.max_size)

    def _checked(self, matrix: Masks) -> Masks:
        words = bitsets.words_for(self.atoms)
        if matrix.dtype != np.uint64 or matrix.ndim != 2 or matrix.shape[1] != words:
            raise ValueError(
                f"sets of {self.atoms} atoms must be a uint64 matrix of {words} words a row,"
                f" not {matrix.dtype} of shape {matrix.shape}"
            )
        if (matrix & ~bitsets.universe(self.atoms)).any():
            raise ValueError(f"a set holds an atom beyond the {self.atoms} there are")
        return bitsets.plain(matrix)


def _in_order(matrix: Masks) -> Masks:
    return matrix[bitsets.canonical_order(matrix)]
