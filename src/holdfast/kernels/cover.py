"""Minimal hitting sets: two depth-first searches that meet every answer exactly once.

Both keep, for the set S at hand, two bitsets over the edges: those that S misses, and those that S
hits in one atom only. An atom of S is needed iff some edge of the second kind holds it (a
*critical* edge), and critical edges only vanish as S grows, so a branch with an unneeded atom is
dead. Every answer is therefore minimal by construction, and no answer is compared with another.

- ``search`` finds the minimal hitting sets of all edges, or those inside given areas. It branches
  on the missed edge with the fewest candidates (MMCS in Murakami and Uno, "Efficient algorithms
  for dualizing large-scale hypergraphs", 2014).
- ``extend`` starts from the minimal hitting sets of the first edges and takes the others in order
  (RS in the same paper). Whatever is minimal for some first edges has one parent among the sets
  that are minimal for one edge less: itself, or itself without the one atom that only the last
  edge needs. So distinct seeds never lead to the same answer.

A search stops after a number of steps or when its output is full, and goes on where it stopped,
so that the caller can be interrupted and memory follows the number of answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64
from holdfast.kernels.bitsets import (
    FULL,
    ONE,
    ZERO,
    Flags,
    Masks,
    Tick,
    copy_row,
    count_ones,
    lowest,
)
from holdfast.kernels.jit import allocating, kernel

# These only bound how long a kernel keeps Python waiting; the answer does not depend on them.
STEPS = 100_000
ROOM = 16_384
EDGES = 256
"""Edges up to which a kernel takes so many steps at once; with more a step takes longer."""

MOST = 10_000_000
"""Sets that one search may find: the number can be exponential, and memory is not."""


class TooMany(Exception):
    """A search found more than :data:`MOST` sets."""


class Edges(NamedTuple):
    """A hypergraph, read both ways: the atoms of an edge, and the edges of an atom."""

    rows: Masks
    columns: Masks


class AtomGroups(NamedTuple):
    """How atoms belong together. A limit on the size of sets counts the groups that they touch."""

    of: I64  # the group of every atom
    sizes: I64  # the atoms of every group


def groups(atoms: int, of: I64 | None = None) -> AtomGroups:
    """Groups by the number of each atom's; by default every atom is one of its own."""
    numbers = np.arange(atoms) if of is None else np.require(of, np.int64, ["C", "W"])
    return AtomGroups(numbers, np.bincount(numbers, minlength=1))


def touched(sets: Masks, groups: AtomGroups) -> I64:
    """How many groups each set touches."""
    if (groups.sizes <= 1).all():
        return bitsets.popcount(sets).astype(np.int64)
    flags = bitsets.to_flags(sets, len(groups.of))
    out = np.zeros(len(sets), np.int64)
    for group in range(len(groups.sizes)):
        out += flags[:, groups.of == group].any(axis=1)
    return out


class CoverStack(NamedTuple):
    """A search that can be left and resumed; row ``d`` of an array belongs to depth ``d``."""

    missed: Masks
    once: Masks
    candidates: Masks
    todo: Masks
    areas: Masks
    path: I64
    pivot: I64
    touched: I64  # the groups of the path
    room: I64  # the atoms of those groups that are not on the path
    # depth, next seed, length of the path at depth 0, whether a longer set was left out
    state: I64


def edges(rows: Masks) -> Edges:
    """The hypergraph with these edges, in this order."""
    rows = bitsets.plain(rows)
    return Edges(rows, bitsets.transpose(rows))


def search(
    graph: Edges, areas: Masks, limit: int, groups: AtomGroups, tick: Tick | None = None
) -> tuple[Masks, bool]:
    """Minimal hitting sets that touch at most ``limit`` groups and lie inside one of ``areas``; and
    whether there can be none that are longer."""
    words = graph.rows.shape[1]
    if not len(areas) or (limit == 0 and len(graph.rows)):
        return graph.rows[:0], not len(areas)
    if not len(graph.rows):
        return np.zeros((1, words), np.uint64), True
    inside = edges(areas)
    stack = _stack(graph, inside.columns.shape[1], limit, groups)
    _start(graph, inside, stack)
    steps = _steps(graph)
    minimal = _gathered(
        lambda: stack.state[0] >= 0,
        lambda room: _search(graph, inside, stack, limit, groups, room, steps),
        words,
        tick,
    )
    return minimal, not stack.state[3]


def short(rows: Masks, limit: int, atoms: int) -> tuple[Masks, bool]:
    """Minimal hitting sets of edges of at most one atom, in order, or with ``limit`` 0 of none; and
    whether there can be none that are longer."""
    if not len(rows):
        return np.zeros((1, rows.shape[1]), np.uint64), True
    if limit == 0:
        return rows[:0], False
    everywhere = np.bitwise_and.reduce(rows, axis=0)
    [hitting] = bitsets.to_columns(everywhere[None])
    # A longer set has none of these, and there is one unless an edge has no other atoms.
    longer = (rows & ~everywhere).any(axis=1).all()
    return bitsets.from_columns([(atom,) for atom in hitting], atoms), not longer


def extend(
    seeds: Masks, graph: Edges, limit: int, groups: AtomGroups, tick: Tick | None = None
) -> Masks:
    """Minimal hitting sets of ``graph`` that grow from ``seeds``, of at most ``limit`` groups.

    The seeds are the minimal hitting sets of the first edges (or some of them); each misses
    another edge.
    """
    words = graph.rows.shape[1]
    seeds = bitsets.plain(seeds)
    stack = _stack(graph, 1, limit, groups)
    steps = _steps(graph)
    return _gathered(
        lambda: stack.state[0] >= 0 or stack.state[1] < len(seeds),
        lambda room: _extend(seeds, graph, stack, limit, groups, room, steps),
        words,
        tick,
    )


def _steps(graph: Edges) -> int:
    return max(1, STEPS * EDGES // max(EDGES, len(graph.rows)))


def _gathered(
    goes_on: Callable[[], bool], step: Callable[[Masks], int], words: int, tick: Tick | None
) -> Masks:
    """All sets that a search finds, in steps between which the clock is looked at."""
    blocks, total = [np.empty((0, words), np.uint64)], 0
    room = np.empty((ROOM, words), np.uint64)
    while True:
        if tick is not None:
            tick(len(blocks[-1]))
        if not goes_on():
            return np.concatenate(blocks)
        blocks.append(room[: step(room)].copy())
        total += len(blocks[-1])
        if total > MOST:
            raise TooMany


def irredundant(sets: Masks, graph: Edges) -> Flags:
    """Which sets would hit fewer edges without any one of their atoms."""
    return _irredundant(bitsets.plain(sets), graph)


def _stack(graph: Edges, areas: int, limit: int, groups: AtomGroups) -> CoverStack:
    words = graph.columns.shape[1]
    depth = min(len(groups.of), limit * int(groups.sizes.max(initial=0))) + 2
    atom_words = graph.rows.shape[1]
    return CoverStack(
        missed=np.zeros((depth, words), np.uint64),
        once=np.zeros((depth, words), np.uint64),
        candidates=np.zeros((depth, atom_words), np.uint64),
        todo=np.zeros((depth, atom_words), np.uint64),
        areas=np.zeros((depth, areas), np.uint64),
        path=np.zeros(depth, np.int64),
        pivot=np.zeros(depth, np.int64),
        touched=np.zeros(depth, np.int64),
        room=np.zeros(depth, np.int64),
        state=np.array([-1, 0, 0, 0], np.int64),
    )


@kernel
def _fill(row: Masks, bits: int) -> None:
    """Set the first ``bits`` bits."""
    for w in range(row.size):
        left = bits - 64 * w
        if left >= 64:
            row[w] = FULL
        elif left > 0:
            row[w] = (ONE << np.uint64(left)) - ONE
        else:
            row[w] = ZERO


@kernel
def _load(members: Masks, graph: Edges, missed: Masks, once: Masks, path: I64) -> int:
    """The edges' state for a whole set; returns its size."""
    _fill(missed, graph.rows.shape[0])
    once[:] = ZERO
    size = 0
    for v in range(members.size):
        word = members[v]
        while word != ZERO:
            atom = 64 * v + lowest(word)
            word &= word - ONE
            path[size] = atom
            size += 1
            for w in range(missed.size):
                hit = graph.columns[atom, w]
                once[w] = (once[w] & ~hit) | (missed[w] & hit)
                missed[w] &= ~hit
    return size


@kernel
def _add_atom(column: Masks, stack: CoverStack, depth: int) -> bool:
    """The edges' state one level deeper, with an atom more; returns whether any is missed."""
    missed, once = stack.missed[depth], stack.once[depth]
    missed_next, once_next = stack.missed[depth + 1], stack.once[depth + 1]
    left = ZERO
    for w in range(column.size):
        hit = column[w]
        before = missed[w]
        missed_next[w] = before & ~hit
        once_next[w] = (once[w] & ~hit) | (before & hit)
        left |= before & ~hit
    return bool(left != ZERO)


@kernel
def _touch(groups: AtomGroups, stack: CoverStack, size: int, depth: int, atom: int) -> None:
    """The groups one level deeper, with an atom beside the first ``size`` of the path."""
    group = groups.of[atom]
    for k in range(size):
        if groups.of[stack.path[k]] == group:
            stack.touched[depth + 1] = stack.touched[depth]
            stack.room[depth + 1] = stack.room[depth] - 1
            return
    stack.touched[depth + 1] = stack.touched[depth] + 1
    stack.room[depth + 1] = stack.room[depth] + groups.sizes[group] - 1


@kernel
def _too_long(stack: CoverStack, depth: int, limit: int, missing: bool) -> bool:
    """Whether the path touches too many groups, or has to, because it misses an edge and has all
    atoms of the groups that it may touch."""
    at_limit = missing and stack.touched[depth] == limit and stack.room[depth] == 0
    return at_limit or stack.touched[depth] > limit


@kernel
def _all_needed(path: I64, size: int, once: Masks, columns: Masks, last: int) -> bool:
    """Whether each of the first ``size`` atoms has a critical edge among edges 0 … ``last``."""
    whole = last >> 6
    tail = FULL >> np.uint64(63 - (last & 63))
    for k in range(size):
        column = columns[path[k]]
        needed = column[whole] & once[whole] & tail != ZERO
        w = 0
        while not needed and w < whole:
            needed = column[w] & once[w] != ZERO
            w += 1
        if not needed:
            return False
    return True


@kernel
def _emit(path: I64, size: int, row: Masks) -> None:
    row[:] = ZERO
    for k in range(size):
        row[path[k] >> 6] |= ONE << np.uint64(path[k] & 63)


@kernel
def _confine(areas: Masks, rows: Masks, candidates: Masks) -> None:
    """Keep the candidates that lie in one of the areas still open."""
    for w in range(candidates.size):
        reachable = ZERO
        for v in range(areas.size):
            open_areas = areas[v]
            while open_areas != ZERO:
                reachable |= rows[64 * v + lowest(open_areas), w]
                open_areas &= open_areas - ONE
        candidates[w] &= reachable


@kernel
def _branch(graph: Edges, stack: CoverStack, depth: int) -> None:
    """Choose the missed edge with the fewest candidates, and set them aside to be tried."""
    missed, candidates = stack.missed[depth], stack.candidates[depth]
    best, fewest = 0, 1 << 62
    for v in range(missed.size):
        word = missed[v]
        while word != ZERO:
            e = 64 * v + lowest(word)
            word &= word - ONE
            count = 0
            for w in range(candidates.size):
                count += count_ones(graph.rows[e, w] & candidates[w])
            if count < fewest:
                best, fewest = e, count
        if fewest == 0:
            break
    for w in range(candidates.size):
        stack.todo[depth, w] = graph.rows[best, w] & candidates[w]
        candidates[w] &= ~graph.rows[best, w]


@kernel
def _next(todo: Masks) -> int:
    """Take the lowest atom out, or return -1 when none is left."""
    for w in range(todo.size):
        if todo[w] != ZERO:
            atom = 64 * w + lowest(todo[w])
            todo[w] &= todo[w] - ONE
            return atom
    return -1


@kernel
def _start(graph: Edges, inside: Edges, stack: CoverStack) -> None:
    _fill(stack.missed[0], graph.rows.shape[0])
    _fill(stack.areas[0], inside.rows.shape[0])
    _fill(stack.candidates[0], 64 * graph.rows.shape[1])
    _confine(stack.areas[0], inside.rows, stack.candidates[0])
    _branch(graph, stack, 0)
    stack.state[0] = 0


@kernel
def _search(
    graph: Edges,
    inside: Edges,
    stack: CoverStack,
    limit: int,
    groups: AtomGroups,
    room: Masks,
    steps: int,
) -> int:
    depth = stack.state[0]
    last = graph.rows.shape[0] - 1
    count = 0
    while depth >= 0 and steps > 0 and count < room.shape[0]:
        steps -= 1
        atom = _next(stack.todo[depth])
        if atom < 0:
            depth -= 1
            continue
        missing = _add_atom(graph.columns[atom], stack, depth)
        _touch(groups, stack, depth, depth, atom)
        too_long = _too_long(stack, depth + 1, limit, missing)
        if too_long and stack.state[3]:
            continue
        if not _all_needed(stack.path, depth, stack.once[depth + 1], graph.columns, last):
            continue
        if too_long:
            stack.state[3] = 1
            continue
        reachable, fewer = ZERO, False
        for w in range(stack.areas.shape[1]):
            areas = stack.areas[depth, w] & inside.columns[atom, w]
            fewer |= areas != stack.areas[depth, w]
            stack.areas[depth + 1, w] = areas
            reachable |= areas
        if reachable == ZERO:
            continue
        stack.path[depth] = atom
        if missing:
            copy_row(stack.candidates[depth], stack.candidates[depth + 1])
            if fewer:
                _confine(stack.areas[depth + 1], inside.rows, stack.candidates[depth + 1])
            _branch(graph, stack, depth + 1)
        else:
            _emit(stack.path, depth + 1, room[count])
            count += 1
        # An atom that could be added stays open to the branches of its later siblings; one that
        # could not be added here cannot be added below them either.
        stack.candidates[depth, atom >> 6] |= ONE << np.uint64(atom & 63)
        if missing:
            depth += 1
    stack.state[0] = depth
    return count


@kernel
def _first(missed: Masks) -> int:
    for w in range(missed.size):
        if missed[w] != ZERO:
            return 64 * w + lowest(missed[w])
    return -1


@kernel
def _extend(
    seeds: Masks,
    graph: Edges,
    stack: CoverStack,
    limit: int,
    groups: AtomGroups,
    room: Masks,
    steps: int,
) -> int:
    depth, seed, base = stack.state[0], stack.state[1], stack.state[2]
    count = 0
    while steps > 0 and count < room.shape[0]:
        steps -= 1
        if depth < 0:
            if seed == seeds.shape[0]:
                break
            base = _load(seeds[seed], graph, stack.missed[0], stack.once[0], stack.path)
            seed += 1
            stack.touched[0] = stack.room[0] = 0
            for k in range(base):
                _touch(groups, stack, k, 0, stack.path[k])
                stack.touched[0], stack.room[0] = stack.touched[1], stack.room[1]
            if _too_long(stack, 0, limit, True):
                continue
            depth = 0
            stack.pivot[0] = _first(stack.missed[0])
            copy_row(graph.rows[stack.pivot[0]], stack.todo[0])
        atom = _next(stack.todo[depth])
        if atom < 0:
            depth -= 1
            continue
        missing = _add_atom(graph.columns[atom], stack, depth)
        size = base + depth
        _touch(groups, stack, size, depth, atom)
        if _too_long(stack, depth + 1, limit, missing):
            continue
        # Needed by the edges up to the pivot alone: otherwise another parent leads here.
        if not _all_needed(
            stack.path, size, stack.once[depth + 1], graph.columns, stack.pivot[depth]
        ):
            continue
        stack.path[size] = atom
        if missing:
            depth += 1
            stack.pivot[depth] = _first(stack.missed[depth])
            copy_row(graph.rows[stack.pivot[depth]], stack.todo[depth])
        else:
            _emit(stack.path, size + 1, room[count])
            count += 1
    stack.state[0], stack.state[1], stack.state[2] = depth, seed, base
    return count


@allocating
def _irredundant(sets: Masks, graph: Edges) -> Flags:
    flags = np.zeros(sets.shape[0], np.bool_)
    words, last = graph.columns.shape[1], graph.rows.shape[0] - 1
    missed, once = np.empty(words, np.uint64), np.empty(words, np.uint64)
    path = np.empty(64 * sets.shape[1], np.int64)
    for i in range(sets.shape[0]):
        size = _load(sets[i], graph, missed, once, path)
        flags[i] = size == 0 or (last >= 0 and _all_needed(path, size, once, graph.columns, last))
    return flags
