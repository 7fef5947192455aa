"""Boxes: rows of two sides, cut along their numbers, to leave out what cannot go together.

Each group of rows is cut in two along one number after another, like a k-d tree. A pair of boxes,
one of each side, is left out where the smallest number of one is above the largest of the other, or
where two numbers that have to differ are constant and equal.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64
from holdfast.kernels.jit import kernel


class Boxes(NamedTuple):
    """The rows of a side, cut into boxes: a binary tree for every group."""

    rows: I64
    numbers: I32  # (rows, inequalities and differences)
    span: I64  # (boxes, 2): the rows of each
    children: I64  # the first of two that stand together; -1: none
    low: I32  # (boxes, inequalities and differences)
    high: I32


def boxes(rows: I64, numbers: I32, order: I64, starts: I64, leaf: int) -> Boxes:
    """Rows with their numbers ``(numbers, rows)``, in the order of their groups, which begin at
    ``starts``."""
    # Every cut leaves rows on both sides. Memory that is never touched is never taken.
    most = 2 * len(rows)
    whole = Boxes(
        rows,
        np.ascontiguousarray(numbers.T),
        np.empty((most, 2), np.int64),
        np.empty(most, np.int64),
        np.empty((most, len(numbers)), np.int32),
        np.empty((most, len(numbers)), np.int32),
    )
    order = order.copy()
    ends = np.append(starts, len(rows))
    size = _cut(whole, order, ends, np.empty(most, np.int64), leaf)
    placed = rows[order], whole.numbers[order]
    return Boxes(*placed, *(array[:size] for array in whole[2:]))


@kernel
def _cut(boxes: Any, order: Any, ends: Any, turn: Any, leaf: int) -> int:
    """Cut every group into boxes of about half the rows, along one number after another, until they
    are small, or all their rows are alike. Returns how many boxes there are; the first ones are
    those of whole groups."""
    numbers, span, children = boxes.numbers, boxes.span, boxes.children
    low, high = boxes.low, boxes.high
    wide = numbers.shape[1]
    size = ends.size - 1
    for g in range(size):
        span[g, 0], span[g, 1] = ends[g], ends[g + 1]
        turn[g] = 0
    at = 0
    while at < size:
        start, stop = span[at, 0], span[at, 1]
        for k in range(wide):
            low[at, k] = high[at, k] = numbers[order[start], k]
        for i in range(start + 1, stop):
            for k in range(wide):
                number = numbers[order[i], k]
                low[at, k] = min(low[at, k], number)
                high[at, k] = max(high[at, k], number)
        children[at] = -1
        tried = 0
        while tried < wide and low[at, turn[at]] == high[at, turn[at]]:
            turn[at] = (turn[at] + 1) % wide
            tried += 1
        if stop - start > leaf and tried < wide:
            middle = _halved(numbers[:, turn[at]], order, start, stop)
            children[at] = size
            span[size, 0], span[size, 1] = start, middle
            span[size + 1, 0], span[size + 1, 1] = middle, stop
            turn[size] = turn[size + 1] = (turn[at] + 1) % wide
            size += 2
        at += 1
    return size


@kernel
def _halved(numbers: Any, order: Any, start: int, stop: int) -> int:
    """Put rows that are not all alike into two parts by their numbers, about as many in each, and
    equal ones in one of them. Returns where the second begins."""
    middle = (start + stop) // 2
    a, b = start, stop
    below = above = middle
    while True:
        one, two, three = numbers[order[a]], numbers[order[(a + b) // 2]], numbers[order[b - 1]]
        pivot = max(min(one, two), min(max(one, two), three))
        below, i, above = a, a, b
        while i < above:
            number = numbers[order[i]]
            if number < pivot:
                order[i], order[below] = order[below], order[i]
                below += 1
                i += 1
            elif number > pivot:
                above -= 1
                order[i], order[above] = order[above], order[i]
            else:
                i += 1
        if middle < below:
            b = below
        elif middle >= above:
            a = above
        else:
            break
    # Rows equal to the one in the middle lie between: cut at the nearer end of them, unless that
    # leaves no rows on one side.
    if below > start and (above == stop or middle - below <= above - middle):
        return below
    return above


@kernel
def _possible(ones: Any, others: Any, t: int, s: int, inequalities: int) -> bool:
    """Whether rows of two boxes may go together."""
    for k in range(ones.low.shape[1]):
        if k < inequalities:
            if ones.low[t, k] > others.high[s, k]:
                return False
        elif (
            ones.low[t, k] == ones.high[t, k]
            and others.low[s, k] == others.high[s, k]
            and ones.low[t, k] == others.low[s, k]
        ):
            return False
    return True


class Walk(NamedTuple):
    """Where a walk over pairs of boxes is, so that it can pause and go on."""

    stack: I64  # (depth, 2): pairs of boxes that are still to be looked at
    state: I64  # groups begun, pairs on the stack, pairs in the caller's room

    @staticmethod
    def start() -> Walk:
        """Before the first group."""
        return Walk(np.empty((1024, 2), np.int64), np.zeros(3, np.int64))

    @property
    def pair_count(self) -> int:
        """How many pairs the caller's room has."""
        return int(self.state[2])

    def empty_room(self) -> None:
        """Begin the caller's room anew."""
        self.state[2] = 0


@kernel
def _certain(ones: Any, others: Any, t: int, s: int, inequalities: int) -> bool:
    """Whether all rows of two boxes go together."""
    for k in range(ones.low.shape[1]):
        if k < inequalities:
            if ones.high[t, k] > others.low[s, k]:
                return False
        elif ones.high[t, k] >= others.low[s, k] and others.high[s, k] >= ones.low[t, k]:
            return False
    return True


@kernel
def meet(
    ones: Any,
    others: Any,
    groups: Any,
    inequalities: int,
    whole_boxes: bool,
    room: Any,
    walk: Any,
    steps: int,
) -> bool:
    """What may go together in pairs of boxes, from those of whole groups down; whether the walk is
    over, or pauses after so many steps.

    With ``whole_boxes``, pairs of boxes that are not cut any more, of which there has to be room
    for one a step. Without, pairs of rows that do go together, at most one for every two boxes,
    until there is no room.
    """
    t_children, s_children = ones.children, others.children
    stack, state = walk.stack, walk.state
    g, depth, count = state[0], state[1], state[2]
    left = steps
    while depth > 0 or g < groups.shape[0]:
        if left == 0:
            state[0], state[1], state[2] = g, depth, count
            return False
        left -= 1
        if depth == 0:
            stack[0, 0], stack[0, 1] = groups[g, 0], groups[g, 1]
            depth = 1
            g += 1
        depth -= 1
        t, s = stack[depth, 0], stack[depth, 1]
        if not _possible(ones, others, t, s, inequalities):
            continue
        uncut = t_children[t] < 0 and s_children[s] < 0
        if whole_boxes and uncut:
            room[count, 0], room[count, 1] = t, s
            count += 1
        elif not whole_boxes and (uncut or _certain(ones, others, t, s, inequalities)):
            if _pair(ones, others, t, s, inequalities, room[count]):
                count += 1
                if count == room.shape[0]:
                    break
        else:
            t_rows = ones.span[t, 1] - ones.span[t, 0]
            s_rows = others.span[s, 1] - others.span[s, 0]
            cut_t = s_children[s] < 0 or (t_children[t] >= 0 and t_rows > s_rows)
            for half in range(2):
                stack[depth, 0] = t_children[t] + half if cut_t else t
                stack[depth, 1] = s if cut_t else s_children[s] + half
                depth += 1
    state[2] = count
    return True


@kernel
def _pair(ones: Any, others: Any, t: int, s: int, inequalities: int, out: Any) -> bool:
    """The first pair of rows of two boxes that goes together."""
    for i in range(ones.span[t, 0], ones.span[t, 1]):
        for j in range(others.span[s, 0], others.span[s, 1]):
            together = True
            for k in range(ones.numbers.shape[1]):
                one, other = ones.numbers[i, k], others.numbers[j, k]
                together = together and (one <= other if k < inequalities else one != other)
            if together:
                out[0] = ones.rows[i]
                out[1] = others.rows[j]
                return True
    return False
