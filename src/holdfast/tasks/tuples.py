"""Counted tuples: how often rows have which values together, and what follows from that.

A *side* is some columns of a table; its tuples are entries in runs, like the values of inclusion
dependencies (:mod:`holdfast.tasks.values`). Rows that come and go change the counts of their own
tuples alone, so the sums over all tuples (how many there are, how many pairs of rows have the
same one, how much of a side is found in another) change by what these tuples add to them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from holdfast.kernels import values, violations
from holdfast.kernels.arrays import I64, U64, Flags
from holdfast.kernels.violations import Term
from holdfast.runtime.result import TaskResult
from holdfast.tasks.coding import Coding
from holdfast.tasks.segments import Segment
from holdfast.tasks.values import ChangedEntries, positions_of, written
from holdfast.tasks.view import View

_CHUNK = 1 << 16
"""Rows whose cells are compared at a time."""


@dataclass(frozen=True)
class Recount(ChangedEntries):
    """Change the counts of tuples whose codes are in a range."""

    sides: int  # their numbers are below
    references: tuple[tuple[int, int], ...]
    shown: int  # codes of each side and reference that are shown, of tuples that violate something


@dataclass(frozen=True)
class RowRule:
    """What a row must not be: null in a column, or such that its cells satisfy some terms."""

    column: int | None
    terms: tuple[Term, ...] = ()


@dataclass(frozen=True)
class Tested:
    """Rows that violate rules about single rows: the living ones, or those that had been deleted
    ``later``."""

    view: View
    schema: pa.Schema
    rules: tuple[RowRule, ...]
    most: int  # ids that are given of each rule
    later: tuple[Segment, ...] | None = None
    weight: int = 1  # -1: the rows are gone


def recount(item: Recount) -> Iterator[TaskResult]:
    """Write what changed, and tell by how much the sums changed."""
    delta, old = item.entries()
    new = values.merged([old, delta])
    task_result = written(Path(item.root), item.prefix, delta)
    task_result.facts["wrong"] = bool((new[:, 3].view(np.int64) < 0).any())
    before, after = (_sums(entries, item) for entries in (old, new))
    arrays = {name: after[name] - before[name] for name in after}
    yield TaskResult(task_result.facts, {**arrays, **_violating(new, delta, item)})


def _sums(entries: U64, item: Recount) -> dict[str, I64]:
    """Sums over some tuples, by side and by reference."""
    side, count = entries[:, 2].astype(np.int64), entries[:, 3].view(np.int64)
    sums = np.zeros((item.sides, 3), np.int64)
    for place, each in enumerate((np.ones_like(count), count, count * (count - 1) // 2)):
        np.add.at(sums[:, place], side, each)
    contained = np.zeros((len(item.references), 2), np.int64)
    for place, (of_left, is_contained) in enumerate(_references(entries, item.references)):
        contained[place] = is_contained.sum(), count[of_left][is_contained].sum()
    return {"sides": sums, "references": contained}


def _references(entries: U64, references: Iterable[tuple[int, int]]) -> Iterator[tuple[I64, Flags]]:
    """Of each reference the entries of its left side, and whether the right side has the tuple."""
    first = np.ones(len(entries), np.bool_)
    first[1:] = (entries[1:, :2] != entries[:-1, :2]).any(axis=1)
    group = np.cumsum(first) - 1
    for left, right in references:
        has = np.zeros(len(entries), np.bool_)
        has[group[entries[:, 2] == right]] = True
        of_left = np.flatnonzero(entries[:, 2] == left)
        yield of_left, has[group[of_left]]


def _violating(new: U64, delta: U64, item: Recount) -> dict[str, U64]:
    """Some codes of tuples that more rows than one have, by side, of those that changed; and of
    tuples that a right side lacks, by reference."""
    if not item.shown:
        return {}
    none = np.empty((0, 3), np.uint64)
    shared, lacking = [none], [none]
    several = new[(new[:, 3].view(np.int64) > 1) & _is_member(new, delta)]
    shared += [several[several[:, 2] == s][: item.shown, :3] for s in np.unique(several[:, 2])]
    for number, (of_left, is_contained) in enumerate(_references(new, item.references)):
        codes = new[of_left[~is_contained][: item.shown], :3].copy()
        codes[:, 2] = number
        lacking.append(codes)
    return {"shared": np.concatenate(shared), "lacking": np.concatenate(lacking)}


def _is_member(entries: U64, among: U64) -> Flags:
    """Which entries have a code and a side that others have."""
    out = np.ones(len(entries), np.bool_)
    out[values.arrivals(entries, among)] = False
    return out


def check_rows(item: Tested) -> Iterator[TaskResult]:
    """How many rows violate each rule, and the ids of a few of them."""
    number = np.zeros(len(item.rules), np.int64)
    shown: list[tuple[I64, I64]] = [(np.empty(0, np.int64), np.empty(0, np.int64))]
    for rule, ids in violating_rows(item):
        room = item.most - int(number[rule])
        number[rule] += len(ids)
        if room > 0:
            shown.append((np.full(len(ids[:room]), rule), ids[:room]))
    rules, ids = (np.concatenate(each) for each in zip(*shown, strict=True))
    yield TaskResult({}, {"number": item.weight * number, "rules": rules, "ids": ids})


def violating_rows(item: Tested) -> Iterator[tuple[int, I64]]:
    """The ids of rows that violate a rule, by its place, a chunk of rows at a time."""
    view = item.view
    compared = [each for rule in item.rules for each, _ in rule.terms]
    coding = Coding.of(item.schema, compared)
    for segment in view.segments:
        positions = positions_of(view, segment, None, item.later)
        for start in range(0, len(positions), _CHUNK):
            chosen = positions[start : start + _CHUNK]
            rows = view.rows(segment, chosen)
            codes = coding.codes(rows, view.shape.first) if compared else None
            for place, rule in enumerate(item.rules):
                if rule.column is not None:
                    word = rows[:, view.shape.owner.size + rule.column // 64]
                    wrong = word >> np.uint64(rule.column % 64) & np.uint64(1) == 1
                else:
                    assert codes is not None
                    wrong = violations.within_rows([*codes], rule.terms, view.nulls_equal)
                yield place, chosen[wrong] + segment.base
