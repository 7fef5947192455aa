"""Pairs of rows that satisfy a set of atoms: how many there are, in which rows, how many rows would
have to go for there to be none, and which rows of a batch are in one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from holdfast.kernels import clashes, dominance, opposed, violations
from holdfast.kernels.violations import Sides, Term
from holdfast.model import thresholds
from holdfast.runtime.result import TaskResult
from holdfast.tasks.coding import Coding
from holdfast.tasks.completion import Planes
from holdfast.tasks.segments import Segment, live_positions
from holdfast.tasks.view import View

_CHUNK = 1 << 14
"""Rows that a batch is compared with at a time."""


@dataclass(frozen=True)
class Opposed:
    """Count the pairs of rows that satisfy a set of atoms, and the rows and groups of rows that
    are in them: for one part of the rows."""

    planes: Planes
    atoms: tuple[int, ...]
    part: int
    parts: int
    with_rows: bool  # else the pairs alone are counted


@dataclass(frozen=True)
class Matched:
    """Pair off rows that satisfy a set of atoms, until no two are left that do."""

    planes: Planes
    atoms: tuple[int, ...]


@dataclass(frozen=True)
class Beside:
    """Rows of a batch that satisfy terms with other rows of some segments."""

    view: View  # of the other rows
    batch: tuple[Segment, ...]
    schema: pa.Schema
    terms: tuple[Term, ...]


def opposed_rows(item: Opposed) -> Iterator[TaskResult]:
    """The numbers of pairs, of rows in them and, where rows have to be equal in something, of
    groups; or how many pairs would have to be compared, where that is too many."""
    sides = _sides(item.planes, item.atoms)
    if sides is None or (dominance.is_countable(sides) and item.part):
        # One task counts all where it need not compare pairs.
        yield TaskResult({"pairs": 0, "rows": 0, "groups": 0})
        return
    rows = item.planes.rows
    taking_part = np.zeros(rows, np.bool_)
    if dominance.is_countable(sides):
        of_t, of_s = dominance.partners(sides)
        taking_part[sides.t[of_t > 0]] = True
        taking_part[sides.s[of_s > 0]] = True
        pairs, groups = int(of_t.sum()), len(np.unique(sides.t_key[of_t > 0]))
        yield TaskResult({"pairs": pairs, "rows": int(taking_part.sum()), "groups": groups})
        return
    form = opposed.form(sides)
    if form.work > thresholds.current.examined_pairs:
        yield TaskResult({"too_many": form.work})
        return
    low, high = rows * item.part // item.parts, rows * (item.part + 1) // item.parts
    of_part = form.of_t((form.t >= low) & (form.t < high))
    partners = opposed.partners(of_part, form.s_side, rows)
    facts = {"pairs": int(partners.sum())}
    if item.with_rows:
        taking_part[of_part.rows[partners > 0]] = True
        as_s = form.of_s((form.s >= low) & (form.s < high))
        taking_part[as_s.rows[opposed.partners(as_s, form.t_side, 1) > 0]] = True
        in_groups = form.of_t(form.t_group % item.parts == item.part)
        has_partner = opposed.partners(in_groups, form.s_side, 1) > 0
        facts["rows"] = int(taking_part.sum())
        facts["groups"] = len(np.unique(in_groups.group[has_partner]))
    yield TaskResult(facts)


def matched(item: Matched) -> Iterator[TaskResult]:
    """How many rows would have to go, at least and at most: of an order rule, all but the most that
    go together. Otherwise, rows are paired off: as many have to go at least as there are pairs.
    Every violating pair has a row among them, and of these rows, those that are needed for that are
    counted: as many have to go at most. None, where too many pairs would have to be compared."""
    sides = _sides(item.planes, item.atoms)
    if sides is None:
        yield TaskResult({"matched": 0, "covering": 0})
        return
    most = dominance.most_compatible(sides)
    if most is not None:
        fewest = len(sides.t) - most
        yield TaskResult({"matched": fewest, "covering": fewest})
        return
    form = opposed.form(sides)
    if form.work > thresholds.current.examined_pairs:
        yield TaskResult({"matched": None, "covering": None})
        return
    free = np.ones(item.planes.rows, np.bool_)
    matched_pairs = int(opposed.match(form.t_side, form.s_side, free))
    yield TaskResult({"matched": matched_pairs, "covering": opposed.pruned(form, ~free)})


def beside(item: Beside) -> Iterator[TaskResult]:
    """The ids of the rows of the batch, of one row each that they clash with, and which are t."""
    view = item.view
    coding = Coding.of(item.schema, [comparison for comparison, _ in item.terms])
    living = [(segment, live_positions(view.path, segment)) for segment in item.batch]
    words = np.concatenate([view.rows(segment, positions) for segment, positions in living])
    ids = np.concatenate([positions + segment.base for segment, positions in living])
    clash, is_t = np.full(len(ids), -1, np.int64), np.zeros(len(ids), np.bool_)
    for segment in sorted(view.segments, key=lambda segment: segment.number):
        positions = live_positions(view.path, segment)
        for start in range(0, len(positions), _CHUNK):
            left = np.flatnonzero(clash < 0)
            chunk = positions[start : start + _CHUNK]
            both = np.concatenate([words[left], view.rows(segment, chunk)])
            every = np.concatenate([ids[left], chunk + segment.base])
            codes = coding.codes(both, view.shape.first)
            places, first = clashes.partners(codes, every, len(left), item.terms, view.nulls_equal)
            clash[left[places >= 0]] = every[places[places >= 0]]
            is_t[left] = first
    wrong = clash >= 0
    yield TaskResult({}, {"ids": ids[wrong], "clashes": clash[wrong], "is_t": is_t[wrong]})


def _sides(planes: Planes, atoms: tuple[int, ...]) -> Sides | None:
    """What is asked of pairs; None: no pair satisfies it."""
    asked = violations.terms(planes.space, atoms)
    if asked is None:
        return None
    return violations.sides(planes.codes(), asked, planes.view.nulls_equal)
