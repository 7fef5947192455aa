"""All minimal sets of atoms that evidences of a bounded weight contain: a depth-first search.

The weight of a set is that of the evidences that contain it, and falls as the set grows. A set
above the bound is *open*; the answers are the sets within the bound whose every smaller set is
open.

The search is at an open set X, with candidates that X may still grow by, and carries two kinds of
evidences, each cut down to the candidates: those that contain X, and for each atom of X those that
lack this one alone. The first give the weight of X with any candidate; with the second that of the
same set without an atom of X, so minimality is known on the spot and no answer is compared with
another. A candidate that takes X to the bound is dropped, since whatever contains both is not
minimal; so is one that all evidences of X hold, since it would never be needed.

No answer lies inside an open set. So one open set is grown from X as far as it goes (by the
candidates in falling order of weight), and X branches only on the candidates outside of it, each
branch with those of the earlier ones: every answer is met once. With a bound of 0 the open set is
an evidence, and this is the search of Murakami and Uno (MMCS) that :mod:`holdfast.kernels.cover`
runs.

Evidences that are equal once cut down are added up as they are copied to the next level, as far as
a small table of recent ones finds them: the sums do not depend on it, only the work does.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64
from holdfast.kernels.bitsets import ONE, ZERO, Masks, lowest
from holdfast.kernels.jit import allocating, kernel

STEPS = 20_000_000
"""Evidences that a kernel visits before it returns to Python: a fraction of a second."""

ROOM = 16_384
"""Answers that a kernel has room for, at least, before it returns to Python."""

RECENT = 12
"""Binary logarithm of the number of recent evidences that the next one is compared with: so few
stay in a fast cache."""

MIX = np.uint64(0x9E3779B97F4A7C15)
HALF = np.uint64(32)


class WeightedEvidence(NamedTuple):
    """Evidences with weights; word ``w`` of all of them is row ``w``, so that loops vectorise."""

    words: Masks
    weights: I64


class Bound(NamedTuple):
    """What an answer may weigh, and how many groups of atoms it may touch."""

    most: int
    groups: int
    # Sets of this many atoms cannot grow and then grow again.
    last: int


class WeightStack(NamedTuple):
    """A search that can be left and resumed; row ``d`` of an array belongs to a set of ``d`` atoms.

    Its evidences stand in ``words`` and ``weights``, level after level, from ``starts[d, 0]`` on:
    those that contain the set, then from ``starts[d, k]`` on those that lack only its ``k``-th
    atom, up to ``starts[d, d + 1]``.
    """

    words: Masks
    weights: I64
    starts: I64
    candidates: Masks
    near: Masks  # the atoms of the groups touched
    touched: I64
    weight: I64
    sums: I64  # the set's weight with one candidate more
    path: I64
    branches: I64
    # branches in all, and those begun
    done: I64
    recent: I64
    # depth, whether the set there is still to be looked at
    state: I64


def evidence(masks: Masks, weights: I64) -> WeightedEvidence:
    """Evidences in the form that the search reads."""
    return WeightedEvidence(
        np.ascontiguousarray(masks.T, np.uint64), np.require(weights, np.int64, ["C", "W"])
    )


def sums(evidences: WeightedEvidence, atoms: I64) -> I64:
    """The weight of each of these atoms alone."""
    return _sums(evidences, np.require(atoms, np.int64, ["C", "W"]))


def confined(evidences: WeightedEvidence, atoms: I64) -> WeightedEvidence:
    """The evidences restricted to these atoms, which are renumbered, without those that hold none
    of them; equal ones are (mostly) added up."""
    size = evidences.weights.size
    words = np.zeros((bitsets.words_for(len(atoms)), size), np.uint64)
    weights = np.empty(size, np.int64)
    _confine(evidences, np.require(atoms, np.int64, ["C", "W"]), words, weights)
    recent = np.zeros(1 << max(RECENT, size.bit_length()), np.int64)
    everything = _Part(0, size, 0, ZERO, ZERO)
    left = _copied(words, weights, recent, everything, bitsets.universe(len(atoms))[0], 0)
    return WeightedEvidence(np.ascontiguousarray(words[:, :left]), weights[:left].copy())


def start(evidences: WeightedEvidence, atoms: int, weight: int) -> WeightStack:
    """A search that begins at the empty set, which is open, and has this weight."""
    words, size = evidences.words.shape
    longest = int(bitsets.popcount(np.ascontiguousarray(evidences.words.T)).max(initial=0))
    depth = min(atoms, longest) + 2
    stack = WeightStack(
        words=np.empty((words, 2 * size), np.uint64),
        weights=np.empty(2 * size, np.int64),
        starts=np.zeros((depth, depth + 1), np.int64),
        candidates=np.zeros((depth, words), np.uint64),
        near=np.zeros((depth, words), np.uint64),
        touched=np.zeros(depth, np.int64),
        weight=np.zeros(depth, np.int64),
        sums=np.zeros((depth, atoms), np.int64),
        path=np.zeros(depth, np.int64),
        branches=np.zeros((depth, atoms), np.int64),
        done=np.zeros((depth, 2), np.int64),
        recent=np.zeros(1 << RECENT, np.int64),
        state=np.array([0, 1], np.int64),
    )
    stack.words[:, :size] = evidences.words
    stack.weights[:size] = evidences.weights
    stack.starts[0, 1] = size
    stack.weight[0] = weight
    stack.candidates[0] = bitsets.universe(atoms)[0]
    return stack


def goes_on(stack: WeightStack) -> bool:
    """Whether anything is left to search."""
    return bool(stack.state[0] >= 0)


def search(
    stack: WeightStack, together: Masks, bound: Bound, steps: int = STEPS
) -> tuple[WeightStack, Masks, I64]:
    """Search for about so many steps: the search to go on with, and the answers found with their
    weights. ``together`` has, for each atom, the atoms of its group."""
    stack = _with_room(stack)
    room = np.empty((max(ROOM, len(together)), together.shape[1]), np.uint64)
    weights = np.empty(len(room), np.int64)
    count = _search(stack, bitsets.plain(together), bound, room, weights, steps)
    return stack, room[:count].copy(), weights[:count].copy()


def split(stack: WeightStack) -> Iterator[WeightStack]:
    """The branches at the empty set, once it was looked at, as searches of their own."""
    allowed = stack.candidates[0].copy()
    size = int(stack.starts[0, 1])
    for at in range(int(stack.done[0, 0])):
        atom = int(stack.branches[0, at])
        one = stack._replace(
            **{name: getattr(stack, name).copy() for name in WeightStack._fields[2:]},
            words=np.ascontiguousarray(stack.words[:, :size]),
            weights=stack.weights[:size].copy(),
        )
        one.candidates[0] = allowed
        one.done[0] = at + 1, at
        yield one
        allowed[atom >> 6] |= ONE << np.uint64(atom & 63)


def _with_room(stack: WeightStack) -> WeightStack:
    """The search with room for another level, which has at most the evidences of the one before."""
    depth = max(int(stack.state[0]), 0)
    first, end = int(stack.starts[depth, 0]), int(stack.starts[depth, depth + 1])
    needed = 2 * end - first
    if needed <= stack.weights.size:
        return stack
    words = np.empty((len(stack.words), 2 * needed), np.uint64)
    weights = np.empty(2 * needed, np.int64)
    words[:, :end] = stack.words[:, :end]
    weights[:end] = stack.weights[:end]
    return stack._replace(words=words, weights=weights)


@kernel
def _weight(words: Any, weights: Any, shift: Any) -> int:
    """The weight of the evidences with a bit. A plain loop over slices: only that vectorises."""
    total = np.int64(0)
    for i in range(words.size):
        total += weights[i] & -np.int64((words[i] >> shift) & ONE)
    return total


@allocating
def _weight_between(words: Any, weights: Any, first: int, end: int, atom: int) -> int:
    return _weight(words[atom >> 6, first:end], weights[first:end], np.uint64(atom & 63))


@allocating
def _sums(evidences: WeightedEvidence, atoms: I64) -> I64:
    out = np.empty(atoms.size, np.int64)
    for i in range(atoms.size):
        out[i] = _weight_between(
            evidences.words, evidences.weights, 0, evidences.weights.size, atoms[i]
        )
    return out


@allocating
def _confine(evidences: WeightedEvidence, atoms: I64, words: Masks, weights: I64) -> None:
    number_of = np.empty(64 * evidences.words.shape[0], np.int64)
    chosen = np.zeros(evidences.words.shape[0], np.uint64)
    for k in range(atoms.size):
        number_of[atoms[k]] = k
        chosen[atoms[k] >> 6] |= ONE << np.uint64(atoms[k] & 63)
    for i in range(weights.size):
        for w in range(chosen.size):
            word = evidences.words[w, i] & chosen[w]
            while word != ZERO:
                k = number_of[64 * w + lowest(word)]
                words[k >> 6, i] |= ONE << np.uint64(k & 63)
                word &= word - ONE
        weights[i] = evidences.weights[i]


class _Part(NamedTuple):
    """Some of the evidences from ``first`` up to ``end``: those where a bit of a word is wanted."""

    first: int
    end: int
    row: int
    bit: np.uint64
    wanted: np.uint64


@kernel
def _copied(
    words: Masks, weights: I64, recent: I64, part: _Part, candidates: Masks, to: int
) -> int:
    """Copy evidences, cut down to the candidates and added up. One that is then empty says nothing
    about larger sets. Returns the end of the copies, which may stand where the evidences do."""
    at = to
    last = np.uint64(recent.size - 1)
    for i in range(part.first, part.end):
        if words[part.row, i] & part.bit != part.wanted:
            continue
        union = h = ZERO
        for w in range(words.shape[0]):
            word = words[w, i] & candidates[w]
            words[w, at] = word
            union |= word
            h = (h ^ word) * MIX
            h ^= h >> HALF
        if union == ZERO:
            continue
        slot = np.int64(h & last)
        other = recent[slot]
        equal = to <= other < at
        w = 0
        while equal and w < words.shape[0]:
            equal = words[w, other] == words[w, at]
            w += 1
        if equal:
            weights[other] += weights[i]
        else:
            recent[slot] = at
            weights[at] = weights[i]
            at += 1
    return at


@allocating
def _is_minimal(stack: WeightStack, depth: int, atom: int, weight: int, most: int) -> bool:
    """Whether the set with this atom, which has this weight, is open without any of its others."""
    # Without the last one: otherwise the atom was no candidate here.
    for k in range(1, depth):
        first, end = stack.starts[depth, k], stack.starts[depth, k + 1]
        if weight + _weight_between(stack.words, stack.weights, first, end, atom) <= most:
            return False
    return True


@allocating
def _look(
    stack: WeightStack, bound: Bound, depth: int, room: Masks, weights: I64, count: int
) -> int:
    """Emit the answers that have one more atom, and keep the candidates that lead further."""
    first, end = stack.starts[depth, 0], stack.starts[depth, 1]
    candidates = stack.candidates[depth]
    for w in range(candidates.size):
        word = candidates[w]
        while word != ZERO:
            atom = 64 * w + lowest(word)
            bit = word & (ZERO - word)
            word ^= bit
            weight = _weight_between(stack.words, stack.weights, first, end, atom)
            stack.sums[depth, atom] = weight
            if bound.most < weight < stack.weight[depth]:
                continue
            candidates[w] ^= bit
            if weight <= bound.most and _is_minimal(stack, depth, atom, weight, bound.most):
                row = room[count]
                row[:] = ZERO
                row[w] = bit
                for k in range(depth):
                    row[stack.path[k] >> 6] |= ONE << np.uint64(stack.path[k] & 63)
                weights[count] = weight
                count += 1
    return count


@allocating
def _branch(stack: WeightStack, bound: Bound, depth: int) -> None:
    """Grow an open set as far as it goes, and branch on the candidates outside of it."""
    candidates, order = stack.candidates[depth], stack.branches[depth]
    left = 0
    for w in range(candidates.size):
        word = candidates[w]
        while word != ZERO:
            atom = 64 * w + lowest(word)
            word &= word - ONE
            at = left
            while at > 0 and stack.sums[depth, order[at - 1]] < stack.sums[depth, atom]:
                order[at] = order[at - 1]
                at -= 1
            order[at] = atom
            left += 1
    branches = 0
    # The evidences of the open set stand where the next level will.
    first, end = stack.starts[depth, 0], stack.starts[depth, 1]
    words, weights, to = stack.words, stack.weights, stack.starts[depth, depth + 1]
    for k in range(left):
        atom = order[k]
        if _weight_between(words, weights, first, end, atom) > bound.most:
            row, shift, at = atom >> 6, np.uint64(atom & 63), to
            for i in range(first, end):
                if (words[row, i] >> shift) & ONE != ZERO:
                    for w in range(words.shape[0]):
                        words[w, at] = words[w, i]
                    weights[at] = weights[i]
                    at += 1
            first, end = to, at
        else:
            candidates[atom >> 6] ^= ONE << np.uint64(atom & 63)
            order[branches] = atom
            branches += 1
    stack.done[depth, 0] = branches


@kernel
def _descend(stack: WeightStack, together: Masks, bound: Bound, depth: int) -> bool:
    """Take the next branch; returns whether it leads anywhere."""
    atom = stack.branches[depth, stack.done[depth, 1]]
    stack.done[depth, 1] += 1
    row, bit = atom >> 6, ONE << np.uint64(atom & 63)
    fresh = stack.near[depth, row] & bit == ZERO
    touched = stack.touched[depth] + (1 if fresh else 0)
    union = ZERO
    for w in range(stack.candidates.shape[1]):
        near = stack.near[depth, w] | together[atom, w]
        word = stack.candidates[depth, w]
        if touched == bound.groups:
            word &= near
        stack.near[depth + 1, w] = near
        stack.candidates[depth + 1, w] = word
        union |= word
    # It stays open to the later branches.
    stack.candidates[depth, row] |= bit
    if union == ZERO:
        return False
    words, weights, recent = stack.words, stack.weights, stack.recent
    starts, candidates = stack.starts[depth], stack.candidates[depth + 1]
    at = starts[depth + 1]
    for part in range(depth + 1):
        stack.starts[depth + 1, part] = at
        holding = _Part(starts[part], starts[part + 1], row, bit, bit)
        at = _copied(words, weights, recent, holding, candidates, at)
        if part > 0 and at == stack.starts[depth + 1, part]:
            return False  # whatever comes below does without that atom as well
    stack.starts[depth + 1, depth + 1] = at
    if depth + 1 < bound.last:
        lacking = _Part(starts[0], starts[1], row, bit, ZERO)
        at = _copied(words, weights, recent, lacking, candidates, at)
        if at == stack.starts[depth + 1, depth + 1]:
            return False
    stack.starts[depth + 1, depth + 2] = at
    stack.path[depth] = atom
    stack.touched[depth + 1] = touched
    stack.weight[depth + 1] = stack.sums[depth, atom]
    return True


@allocating
def _search(
    stack: WeightStack, together: Masks, bound: Bound, room: Masks, weights: I64, steps: int
) -> int:
    depth, fresh = stack.state[0], stack.state[1] != 0
    count = 0
    while depth >= 0 and steps > 0:
        end = stack.starts[depth, depth + 1]
        size = end - stack.starts[depth, 0]
        if fresh:
            if count + together.shape[0] > room.shape[0] or end + size > stack.weights.size:
                break
            fresh = False
            count = _look(stack, bound, depth, room, weights, count)
            stack.done[depth, 0] = stack.done[depth, 1] = 0
            if depth < bound.last:
                _branch(stack, bound, depth)
        elif stack.done[depth, 1] == stack.done[depth, 0]:
            depth -= 1
            continue
        elif _descend(stack, together, bound, depth):
            depth += 1
            fresh = True
        steps -= size + 1
    stack.state[0], stack.state[1] = depth, 1 if fresh else 0
    return count
