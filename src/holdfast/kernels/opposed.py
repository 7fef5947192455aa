"""Pairs of rows that satisfy a set of atoms, counted and matched by comparing them.

What is asked of pairs is in the form of :class:`holdfast.kernels.violations.Sides`. Every row t is
compared with the rows s of its group, so that the cost is that of all pairs inside groups.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from holdfast.kernels.arrays import I32, I64, Flags
from holdfast.kernels.jit import kernel
from holdfast.kernels.violations import Sides


class OpposedRows(NamedTuple):
    """Rows of one side, in the order of their groups."""

    rows: I64
    group: I64
    starts: I64  # where the rows of the other side's group begin, and …
    stops: I64  # … end
    low: I32  # (rows, inequalities): at most the negative ones of the other side
    value: I32  # (rows, differences): unequal to those of the other side


class OpposedSides(NamedTuple):
    """Both sides."""

    t_side: OpposedRows
    s_side: OpposedRows

    @property
    def t(self) -> I64:
        """The rows that may be t."""
        return self.t_side.rows

    @property
    def s(self) -> I64:
        """The rows that may be s."""
        return self.s_side.rows

    @property
    def t_group(self) -> I64:
        """The groups of those that may be t."""
        return self.t_side.group

    @property
    def work(self) -> int:
        """How many pairs are in one group."""
        return int((self.t_side.stops - self.t_side.starts).sum())

    def of_t(self, chosen: Flags) -> OpposedRows:
        """Some of the rows t."""
        return _subset(self.t_side, chosen)

    def of_s(self, chosen: Flags) -> OpposedRows:
        """Some of the rows s."""
        return _subset(self.s_side, chosen)


def form(sides: Sides) -> OpposedSides:
    """Both sides in the order of their groups, each with where its partners are.

    Seen from s, ``low <= high`` is ``-high <= -low``: so both sides have numbers that are at most
    the negative ones of the other.
    """
    t_order = np.argsort(sides.t_key, kind="stable")
    s_order = np.argsort(sides.s_key, kind="stable")
    t_key, s_key = sides.t_key[t_order], sides.s_key[s_order]
    t_side = OpposedRows(
        sides.t[t_order],
        t_key,
        np.searchsorted(s_key, t_key, "left"),
        np.searchsorted(s_key, t_key, "right"),
        np.ascontiguousarray(sides.low[:, t_order].T),
        np.ascontiguousarray(sides.t_value[:, t_order].T),
    )
    s_side = OpposedRows(
        sides.s[s_order],
        s_key,
        np.searchsorted(t_key, s_key, "left"),
        np.searchsorted(t_key, s_key, "right"),
        np.ascontiguousarray(-sides.high[:, s_order].T),
        np.ascontiguousarray(sides.s_value[:, s_order].T),
    )
    return OpposedSides(t_side, s_side)


def _subset(side: OpposedRows, chosen: Flags) -> OpposedRows:
    return OpposedRows(*(array[chosen] for array in side))


def partners(side: OpposedRows, other: OpposedRows, most: int) -> I64:
    """How many rows of the other side go with each row, counted up to ``most``."""
    out = np.zeros(len(side.rows), np.int64)
    _partners(side, other, most, out)
    return out


@kernel
def _partners(side: Any, other: Any, most: int, out: Any) -> None:
    for i in range(side.rows.size):
        count = 0
        for j in range(side.starts[i], side.stops[i]):
            if _meet(side, i, other, j):
                count += 1
                if count == most:
                    break
        out[i] = count


@kernel
def _meet(side: Any, i: int, other: Any, j: int) -> bool:
    for k in range(side.low.shape[1]):
        if side.low[i, k] > -other.low[j, k]:
            return False
    for k in range(side.value.shape[1]):
        if side.value[i, k] == other.value[j, k]:
            return False
    return True


@kernel
def match(side: Any, other: Any, free: Any) -> int:
    """Match free rows that go with each other until there are none left; how many pairs that is."""
    count = 0
    for i in range(side.rows.size):
        row = side.rows[i]
        if not free[row]:
            continue
        for j in range(side.starts[i], side.stops[i]):
            partner = other.rows[j]
            if partner != row and free[partner] and _meet(side, i, other, j):
                free[row] = False
                free[partner] = False
                count += 1
                break
    return count


def pruned(form: OpposedSides, cover: Flags) -> int:
    """Take rows out of a cover as long as every pair that goes together has a row in it; how many
    are left."""
    positions = np.full((2, len(cover)), -1, np.int64)
    for position, side in zip(positions, form, strict=True):
        position[side.rows] = np.arange(len(side.rows))
    for row in np.flatnonzero(cover):
        at = positions[0, row], positions[1, row]
        cover[row] = (at[0] >= 0 and _needs(form.t_side, at[0], form.s_side, cover)) or (
            at[1] >= 0 and _needs(form.s_side, at[1], form.t_side, cover)
        )
    return int(cover.sum())


@kernel
def _needs(side: Any, i: int, other: Any, cover: Any) -> bool:
    """Whether a row goes with one that is not in the cover."""
    for j in range(side.starts[i], side.stops[i]):
        if not cover[other.rows[j]] and _meet(side, i, other, j):
            return True
    return False
