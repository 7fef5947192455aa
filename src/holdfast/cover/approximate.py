"""Approximate constraints from counted evidence: all minimal ones within a bound, with errors.

The pairs that agree on X only get fewer as X grows, so what is within the bound is closed upwards,
and a set is minimal iff it is within the bound and none of the sets with one atom less is.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from holdfast.cover.counts import EvidenceCounts
from holdfast.kernels import approximate as kernels
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.kernels.cover import MOST, TooMany


@dataclass(frozen=True)
class Approximate:
    """Minimal sets, and the pairs of rows that violate each; all of them unless the search was
    stopped."""

    masks: U64
    violations: I64
    complete: bool = True


@dataclass(frozen=True)
class Atoms:
    """The atoms that sets are made of.

    A limit on the size of sets counts the groups that they touch; by default every atom is one of
    its own. Sets that contain one of ``trivial`` are left out, although nothing violates them.
    """

    number: int
    without: int | None = None
    groups: I64 | None = None
    trivial: U64 | None = None


def allowed(pairs: int, max_error: float) -> int:
    """The most violating pairs that are still within a bound on the error."""
    most = int(max_error * pairs)
    # A share that is written as a decimal may fall just below the count that it names.
    return most + 1 if pairs and (most + 1) / pairs <= max_error else most


def within(
    sets: EvidenceCounts,
    atoms: Atoms,
    most: int,
    max_size: int | None,
    stop: Callable[[], bool] = lambda: False,
) -> Approximate:
    """The minimal sets that at most ``most`` pairs violate: they satisfy all their atoms, and not
    the one that the sets are without, if there is one. ``stop`` is as in
    :func:`minimal_within`."""
    masks, counts, right = sets.masks, sets.counts, atoms.without
    if right is not None:
        lacks = masks[:, right // 64] >> np.uint64(right % 64) & np.uint64(1) == 0
        masks, counts = masks[lacks], counts[lacks]
    return minimal_within(masks, counts, atoms, most, max_size, stop=stop)


def minimal_within(
    masks: U64,
    weights: I64,
    atoms: Atoms,
    most: int,
    limit: int | None = None,
    threads: int = 1,
    stop: Callable[[], bool] = lambda: False,
) -> Approximate:
    """The minimal sets of at most ``limit`` groups that lie inside evidences which weigh at most
    ``most`` together. ``stop`` is asked several times a second; what was found until then is
    minimal, but not all there is.

    >>> evidence = bitsets.from_columns([(0, 1), (1, 2), (2,)], 3)
    >>> minimal = minimal_within(evidence, np.array([5, 1, 7]), Atoms(3), most=1)
    >>> bitsets.to_columns(minimal.masks), minimal.violations.tolist()
    ([(0, 2), (1, 2)], [0, 1])
    """
    if most < 0 or (limit is not None and limit < 0):
        raise ValueError("neither a bound on violations nor a limit on groups can be negative")
    words, total = bitsets.words_for(atoms.number), int(weights.sum())
    if total <= most:
        return Approximate(np.zeros((1, words), np.uint64), np.array([total], np.int64))
    usable = np.array([a for a in range(atoms.number) if a != atoms.without], np.int64)
    groups = np.arange(atoms.number) if atoms.groups is None else atoms.groups
    if limit == 0 or not len(usable):
        return Approximate(bitsets.empty(atoms.number), np.empty(0, np.int64))
    evidence = kernels.evidence(masks, weights)
    alone = kernels.sums(evidence, usable)
    few = alone <= most
    singles = bitsets.from_columns([(int(a),) for a in usable[few]], atoms.number)
    # An atom that all evidences hold is never needed.
    possible = usable[~few & (alone < total)]
    search = _Search(possible, groups[possible], atoms, most, limit)
    blocks = [search.nontrivial(singles, alone[few])]
    complete = True
    if len(possible):
        more, complete = search.run(kernels.confined(evidence, possible), total, threads, stop)
        blocks += more
    answers = np.concatenate([masks for masks, _ in blocks])
    violations = np.concatenate([weights for _, weights in blocks])
    order = bitsets.canonical_order(answers)
    return Approximate(answers[order], violations[order], complete)


class _Search:
    """The search among the atoms that are within the bound neither alone nor in no set at all."""

    def __init__(
        self, possible: I64, groups: I64, atoms: Atoms, most: int, limit: int | None
    ) -> None:
        self.possible, self.atoms = possible, atoms
        _, group, sizes = np.unique(groups, return_inverse=True, return_counts=True)
        limit = len(sizes) if limit is None else min(limit, len(sizes))
        last = limit - 1 if (sizes == 1).all() else len(possible)
        self.bound = kernels.Bound(most, limit, last)
        self.together = bitsets.from_flags(group[:, None] == group[None, :])
        self.blocks: list[tuple[U64, I64]] = []
        self.total = 0
        self.halted = False  # an error or an interrupt in one thread ends the others

    def run(
        self,
        evidence: kernels.WeightedEvidence,
        weight: int,
        threads: int,
        stop: Callable[[], bool],
    ) -> tuple[list[tuple[U64, I64]], bool]:
        """Blocks of minimal sets with their weights, and whether the search came to its end."""
        whole = kernels.start(evidence, len(self.possible), weight)
        if threads == 1:
            return self.blocks, self._finish(whole, stop)
        # The branches at the empty set share nothing, and kernels leave the interpreter free.
        whole = self._step(whole, steps=1)
        waiting, lock = kernels.split(whole), threading.Lock()

        def work() -> bool:
            return all(self._finish(one, stop) for one in _shared(waiting, lock))

        with ThreadPoolExecutor(threads) as pool:
            ends = [pool.submit(work) for _ in range(threads)]
            try:
                # One may have ended early because of another's error: every one is asked.
                complete = [end.result() for end in ends]
                return self.blocks, all(complete)
            finally:
                self.halted = True

    def _finish(self, stack: kernels.WeightStack, stop: Callable[[], bool]) -> bool:
        while kernels.goes_on(stack):
            if self.halted or stop():
                return False
            stack = self._step(stack)
        return True

    def _step(self, stack: kernels.WeightStack, steps: int = kernels.STEPS) -> kernels.WeightStack:
        stack, masks, weights = kernels.search(stack, self.together, self.bound, steps)
        if len(masks):
            self.blocks.append(self.nontrivial(self._named(masks), weights))
            self.total += len(masks)
            if self.total > MOST:
                self.halted = True
                raise TooMany
        return stack

    def _named(self, masks: U64) -> U64:
        """Sets of the kept atoms as sets of all."""
        flags = np.zeros((len(masks), self.atoms.number), np.bool_)
        flags[:, self.possible] = bitsets.to_flags(masks, len(self.possible))
        return bitsets.from_flags(flags)

    def nontrivial(self, masks: U64, weights: I64) -> tuple[U64, I64]:
        """Without the sets that contain a trivial one. No evidence contains those, so at most the
        trivial sets themselves are answers, and leaving them out afterwards costs nothing."""
        if self.atoms.trivial is None or not len(masks):
            return masks, weights
        rest = ~bitsets.any_subset(masks, self.atoms.trivial)
        return masks[rest], weights[rest]


def _shared(
    waiting: Iterator[kernels.WeightStack], lock: threading.Lock
) -> Iterator[kernels.WeightStack]:
    """The searches that no other thread has taken."""
    while True:
        with lock:
            one = next(waiting, None)
        if one is None:
            return
        yield one
