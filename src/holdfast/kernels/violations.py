"""Pairs of rows that satisfy a set of atoms, found without comparing all pairs.

What a pair (t, s) has to satisfy is brought into one form: both rows are in the same *group* (all
that has to be equal), some numbers of t are at most some numbers of s, and some others differ. A
comparison within a row only says which rows may be t, or s. ``<`` is ``<=`` beside the number
before; ``>=`` compares negative numbers; t and s are different rows, which is one more "differ"
where nothing else says so.

- :func:`by_sweep` takes at most two inequalities and one "differ": rows of a group in the order of
  the first inequality, and of the rows s so far the one that is largest in the second, and the
  largest one that differs from it.
- :func:`by_tree` takes any: both sides are cut into boxes like a k-d tree's, and pairs of boxes are
  left out as soon as no row of one can go with a row of the other.

Hydra (Bleifuß, Kruse, Naumann, PVLDB 2017, section 6) refines partitions instead, and so finds all
pairs; here a few of every set are enough, and none has to be sure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels import boxes
from holdfast.kernels.arrays import I32, I64, Flags
from holdfast.kernels.jit import kernel
from holdfast.kernels.pairs import Tick, no_tick
from holdfast.kernels.ranks import NULL, Codes
from holdfast.model.comparisons import BOTH, FIRST, Comparison, Space

LEAF = 16
"""Rows of a box that is not cut any more, where single pairs are looked for."""

TILE = 1_024
"""Rows of a box that is not cut any more, where all its pairs are compared."""

STEPS = 1 << 20
"""Pairs of boxes that are looked at before the clock is."""

_SPAN = 1 << 62
"""Keys stay below, so that they fit a word."""

Term = tuple[Comparison, str]
"""A comparison, and how it has to come out: one of ``= != < <= > >=``."""

_STRONG = {
    frozenset({"<=", ">="}): "=",
    frozenset({"<=", "!="}): "<",
    frozenset({">=", "!="}): ">",
}


def terms(space: Space, atoms: Iterable[int]) -> list[Term] | None:
    """A set of atoms with its weak predicates joined to strong ones; None where all of a
    comparison's are in it, which no pair satisfies.

    >>> from holdfast.model.comparisons import ORDER
    >>> [op for _, op in terms(Space("order", 1, (Comparison(0, 0, ORDER),)), [0, 2])]
    ['<']
    """
    by: dict[int, set[str]] = {}
    for atom in atoms:
        k = space.comparison_of[atom]
        by.setdefault(k, set()).add(space.comparisons[k].operators[atom - space.first[k]])
    out = []
    for k, operators in sorted(by.items()):
        if len(operators) > 2 or operators == {"=", "!="}:
            return None
        one = operators if len(operators) == 1 else {_STRONG[frozenset(operators)]}
        out.append((space.comparisons[k], *one))
    return out


class Sides(NamedTuple):
    """What is asked of pairs of a row t and a row s."""

    t: I64  # rows that may be t
    s: I64
    t_key: I64  # their groups: equal keys
    s_key: I64
    span: int  # keys are below
    low: I32  # (inequalities, rows t): at most …
    high: I32  # (inequalities, rows s): … this
    t_value: I32  # (differences, rows t): unequal to …
    s_value: I32  # (differences, rows s): … this


def sides(codes: Sequence[Codes], asked: Sequence[Term], nulls_equal: bool) -> Sides:
    """The form of some terms over planes of codes."""
    allowed = np.ones((2, len(codes[0])), np.bool_)
    across = []
    for comparison, op in asked:
        left, right = codes[comparison.left], codes[comparison.right]
        if comparison.rows != BOTH:
            allowed[comparison.rows - FIRST] &= _holds(left, op, right, nulls_equal)
            continue
        across.append((comparison, op))
        if op in ("<", ">") or (op != "!=" and not nulls_equal):
            allowed[0] &= left != NULL
            allowed[1] &= right != NULL
    t, s = np.flatnonzero(allowed[0]), np.flatnonzero(allowed[1])
    same: list[tuple[I32, I32]] = []
    at_most: list[tuple[I32, I32]] = []
    differ: list[tuple[I32, I32]] = []
    apart = False  # whether no row goes with itself
    for comparison, op in across:
        left, right = codes[comparison.left][t], codes[comparison.right][s]
        nulls = bool((left == NULL).any() or (right == NULL).any())
        if comparison.left == comparison.right:
            apart |= op in ("<", ">") or (op == "!=" and (nulls_equal or not nulls))
        if op == "=":
            same.append((left, right))
        elif op == "!=":
            if not nulls_equal:
                right = np.where(right == NULL, np.int32(NULL - 1), right)
            differ.append((left, right))
        else:
            if nulls:
                # A null is at most a null, and nothing else.
                same.append(((left == NULL).astype(np.int32), (right == NULL).astype(np.int32)))
            if op in (">", ">="):
                left, right = -left, -right
            at_most.append((left, right - np.int32(op in ("<", ">"))))
    if not apart:
        differ.append((t.astype(np.int32), s.astype(np.int32)))
    groups = keys(same, len(t), len(s))
    low, high = _stacked(at_most, len(t), len(s))
    return Sides(t, s, *groups, low, high, *_stacked(differ, len(t), len(s)))


def within_rows(codes: Sequence[Codes], asked: Iterable[Term], nulls_equal: bool) -> Flags:
    """Which rows satisfy all terms, each about two cells of one row."""
    satisfied = np.ones(len(codes[0]), np.bool_)
    for comparison, op in asked:
        satisfied &= _holds(codes[comparison.left], op, codes[comparison.right], nulls_equal)
    return satisfied


def find(
    codes: Sequence[Codes],
    asked: Sequence[Term],
    nulls_equal: bool,
    most: int,
    look: Tick = no_tick,
) -> I64:
    """Up to ``most`` pairs of rows (t, s), as row numbers, that satisfy all terms; none only if
    there is none. ``look`` is called now and then."""
    form = sides(codes, asked, nulls_equal)
    if len(form.low) <= 2 and len(form.t_value) <= 1:
        return by_sweep(form, most)
    return by_tree(form, most, look)


def _holds(left: Codes, op: str, right: Codes, nulls_equal: bool) -> Flags:
    both = (left != NULL) & (right != NULL)
    same: Flags = (left == right) & (both | nulls_equal)
    if op in ("=", "!="):
        return same if op == "=" else ~same
    less: Flags = both & (left < right if op in ("<", "<=") else left > right)
    return less | same if op in ("<=", ">=") else less


def _stacked(pairs: list[tuple[I32, I32]], ones: int, others: int) -> tuple[I32, I32]:
    low, high = np.empty((len(pairs), ones), np.int32), np.empty((len(pairs), others), np.int32)
    for k, (left, right) in enumerate(pairs):
        low[k], high[k] = left, right
    return low, high


def keys(same: list[tuple[I32, I32]], ones: int, others: int) -> tuple[I64, I64, int]:
    """One number for all that has to be equal, and how many numbers there may be."""
    left, right, span = np.zeros(ones, np.int64), np.zeros(others, np.int64), 1
    for one, other in same:
        size = int(max(one.max(initial=NULL), other.max(initial=NULL))) + 2
        if span * size > _SPAN:
            distinct, groups = np.unique(np.concatenate([left, right]), return_inverse=True)
            left, right, span = groups[:ones], groups[ones:], len(distinct)
        left, right, span = left * size + one + 1, right * size + other + 1, span * size
    return left, right, span


# A sweep.


class _Swept(NamedTuple):
    """The rows of a side in the order of the sweep: by group, then largest first."""

    rows: I64
    key: I64
    first: I32  # in the order of the sweep
    second: I32
    value: I32


def by_sweep(form: Sides, most: int) -> I64:
    """Pairs for at most two inequalities and one difference."""
    if len(form.low) > 2 or len(form.t_value) > 1:
        raise ValueError("a sweep takes two inequalities and one difference")
    ones, others = _in_order(form, 0), _in_order(form, 1)
    room = np.empty((most, 2), np.int64)
    return room[: _sweep(ones, others, room)].copy()


def _in_order(form: Sides, side: int) -> _Swept:
    rows, key = (form.t, form.t_key) if side == 0 else (form.s, form.s_key)
    numbers, values = (form.low, form.t_value) if side == 0 else (form.high, form.s_value)
    none = np.zeros(len(rows), np.int32)
    first = numbers[0] if len(numbers) else none
    second = numbers[1] if len(numbers) > 1 else none
    value = values[0] if len(values) else none + np.int32(side)  # always different
    largest = int(first.max(initial=0))
    width = largest - int(first.min(initial=0)) + 1
    if form.span * width <= _SPAN:
        order = np.argsort(key * width + (largest - first.astype(np.int64)))
    else:
        order = np.lexsort((-first, key))
    return _Swept(rows[order], key[order], first[order], second[order], value[order])


@kernel
def _sweep(ones: Any, others: Any, room: Any) -> int:
    """Note a pair for rows t that have one: all, or evenly chosen ones where there is no room."""
    key, first, second, value = ones.key, ones.first, ones.second, ones.value
    s_key, s_first = others.key, others.first
    s_second, s_value = others.second, others.value
    count, seen, stride = 0, 0, 1
    j = 0
    best = other = -1  # the largest row s in the second number, and one of another value
    for i in range(key.size):
        if i == 0 or key[i] != key[i - 1]:
            best = other = -1
            while j < s_key.size and s_key[j] < key[i]:
                j += 1
        while j < s_key.size and s_key[j] == key[i] and s_first[j] >= first[i]:
            if best < 0:
                best = j
            elif s_second[j] > s_second[best]:
                if s_value[j] != s_value[best]:
                    other = best
                best = j
            elif s_value[j] != s_value[best] and (other < 0 or s_second[j] > s_second[other]):
                other = j
            j += 1
        with_s = best
        if best >= 0 and s_value[best] == value[i]:
            with_s = other
        if with_s < 0 or s_second[with_s] < second[i]:
            continue
        if seen % stride == 0:
            if count == room.shape[0]:
                count = _thinned(room)
                stride *= 2
            if seen % stride == 0 and count < room.shape[0]:
                room[count, 0] = ones.rows[i]
                room[count, 1] = others.rows[with_s]
                count += 1
        seen += 1
    return count


@kernel
def _thinned(room: Any) -> int:
    """Keep every other pair; at least the first."""
    size = (room.shape[0] + 1) // 2
    for k in range(size):
        room[k, 0] = room[2 * k, 0]
        room[k, 1] = room[2 * k, 1]
    return size


# Boxes.


def by_tree(form: Sides, most: int, look: Tick = no_tick) -> I64:
    """Pairs for any inequalities and differences."""
    room = np.empty((most, 2), np.int64)
    ones, others, groups = _cut(form, LEAF)
    look()
    walk = boxes.Walk.start()
    while not boxes.meet(ones, others, groups, len(form.low), False, room, walk, STEPS):
        look()
    return room[: walk.pair_count].copy()


def together(form: Sides, part: int, parts: int, look: Tick = no_tick) -> Iterator[tuple[I64, I64]]:
    """Every pair that is asked for, and others: rows t of a box, and all rows s that may go with
    one of them; of the boxes one part. ``look`` is called now and then."""
    ones, others, groups = _cut(form, TILE)
    look()
    room, pairs = np.empty((STEPS, 2), np.int64), []
    walk, is_over = boxes.Walk.start(), False
    while not is_over:
        walk.empty_room()
        is_over = boxes.meet(ones, others, groups, len(form.low), True, room, walk, STEPS)
        pairs.append(room[: walk.pair_count].copy())
        look()
    room = np.concatenate(pairs)
    for t in np.unique(room[:, 0])[part::parts]:
        spans = others.span[room[room[:, 0] == t, 1]]
        s = np.concatenate([others.rows[start:stop] for start, stop in spans.tolist()])
        yield ones.rows[slice(*ones.span[t].tolist())], s


def _cut(form: Sides, leaf: int) -> tuple[boxes.Boxes, boxes.Boxes, I64]:
    """Both sides in boxes, and the boxes of the groups that both have."""
    t_order, s_order = np.argsort(form.t_key), np.argsort(form.s_key)
    t_keys, t_starts = np.unique(form.t_key[t_order], return_index=True)
    s_keys, s_starts = np.unique(form.s_key[s_order], return_index=True)
    _, t_group, s_group = np.intersect1d(t_keys, s_keys, assume_unique=True, return_indices=True)
    t_numbers = np.concatenate([form.low, form.t_value])
    s_numbers = np.concatenate([form.high, form.s_value])
    ones = boxes.boxes(form.t, t_numbers, t_order, t_starts, leaf)
    others = boxes.boxes(form.s, s_numbers, s_order, s_starts, leaf)
    return ones, others, np.stack([t_group, s_group], axis=1)
