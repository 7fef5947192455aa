"""Counted evidence of a table: how it is counted, kept, changed by a batch, and stored.

Every agree-set is kept with its number of pairs (DynASt, property 1): a batch adds the pairs of its
new rows and takes away those of its deleted rows, each pair once. The covers of functional
dependencies are told of the agree-sets that appear and vanish; errors are read from the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.cover.agree import AgreeSets
from holdfast.cover.approximate import allowed, within
from holdfast.cover.candidates import Lefts
from holdfast.cover.dependencies import KEY, Covers
from holdfast.kernels import agree as kernels
from holdfast.kernels import bitsets
from holdfast.model.options import Options
from holdfast.model.progress import Progress
from holdfast.store import Store
from holdfast.store.codecs import masks_of, matrix_of, stored
from holdfast.table.placement import living, parts
from holdfast.tasks import agree as tasks
from holdfast.tasks.runner import Call, Runner
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Counted:
    """All agree-sets with their counts, and what the last batch changed."""

    sets: AgreeSets
    change: tuple[U64, I64]


def count_all(runner: Runner, view: View, progress: Progress) -> Counted:
    """All pairs of the living rows."""
    progress("count", rows=living(view))
    none = AgreeSets.none(view.columns)
    found = _counted(runner, view, (), (), np.empty(0, np.int64), everything=True)
    sets, _, _ = none.changed(*found)
    return Counted(sets, (sets.masks, sets.counts))


def count_batch(
    runner: Runner,
    counted: Counted,
    view: View,
    added: tuple[Segment, ...],
    before: tuple[Segment, ...],
    gone: I64,
    progress: Progress,
) -> tuple[Counted, U64, U64]:
    """The pairs that a batch brought and took; ``before`` are segments as they were. Returns also
    the agree-sets that appeared and that vanished."""
    progress("count", rows=living(view))
    lost = tuple(s for s in before if (gone >> 32 == s.number).any())
    found = _counted(runner, view, added, lost, gone, everything=False)
    sets, appeared, vanished = counted.sets.changed(*found)
    change = kernels.total(*found, counted.sets.masks.shape[1])
    return Counted(sets, change), appeared, vanished


def agreeing(runner: Runner, view: View, sets: tuple[tuple[int, ...], ...]) -> list[int]:
    """The pairs of living rows that agree on each of some sets of columns, by grouping."""
    count = parts(runner, view)
    calls: list[Call] = [
        (tasks.agreeing, tasks.Agreeing(view, sets, part, count)) for part in range(count)
    ]
    told = [p.facts["pairs"] for result in runner.run(calls) for p in result]
    return [sum(each) for each in zip(*told, strict=True)]


def _counted(
    runner: Runner,
    view: View,
    added: tuple[Segment, ...],
    before: tuple[Segment, ...],
    gone: I64,
    everything: bool,
) -> tuple[list[U64], list[I64]]:
    numbers = tuple(segment.number for segment in added)
    shares = runner.tasks if everything or len(gone) + sum(s.rows for s in added) > 1 else 1
    calls: list[Call] = [
        (
            tasks.count,
            tasks.Count(view, numbers, before, gone, everything, share, shares),
        )
        for share in range(shares)
    ]
    parcels = [parcel for result in runner.run(calls) for parcel in result]
    return [p.arrays["masks"] for p in parcels], [p.arrays["counts"] for p in parcels]


# Files


def contents(counted: Counted) -> Iterator[tuple[str, pa.Table]]:
    """The files of counted evidence."""
    sets = counted.sets
    yield "agree", pa.table({"mask": masks_of(sets.masks), "pairs": sets.counts})
    masks, counts = counted.change
    yield "recount", pa.table({"mask": masks_of(masks), "change": counts})


def dependencies(covers: Covers, sets: AgreeSets | None, options: Options) -> pa.Table:
    """All dependencies, shortest first; with a bound also approximate ones, and last such keys."""
    left, right = covers.dependencies
    error = np.zeros(len(left))
    if options.max_error is not None and sets is not None and sets.pairs:
        most = allowed(sets.pairs, options.max_error)
        for side in [*covers.columns, KEY]:
            target = None if side == KEY else side
            longest = covers.limits.keys if side == KEY else covers.limits.dependencies
            found = within(sets, covers.atoms, target, most, longest)
            some = found.violations > 0
            left = np.concatenate([left, found.masks[some]])
            right = np.append(right, np.full(int(some.sum()), side, np.int32))
            error = np.append(error, found.violations[some] / sets.pairs)
    order = np.lexsort((right, _ranks(left), right == KEY))
    return pa.table({"mask": masks_of(left[order]), "right": right[order], "error": error[order]})


def by_side(kept: pa.Table, sides: list[int], words: int) -> Lefts:
    """The left sides in a file that hold without error, by right side."""
    left = matrix_of(kept.column("mask"), words)
    right = kept.column("right").to_numpy()
    if "error" in kept.column_names:
        exact = kept.column("error").to_numpy() == 0
        left, right = left[exact], right[exact]
    order = np.argsort(right, kind="stable")
    left, right = left[order], right[order]
    lo, hi = np.searchsorted(right, sides, "left"), np.searchsorted(right, sides, "right")
    return {side: left[lo[i] : hi[i]] for i, side in enumerate(sides)}


def _ranks(left: U64) -> I64:
    """A number per mask that sorts like the canonical order of masks, equal for equal ones."""
    order = bitsets.canonical_order(left)
    fresh = np.zeros(len(left), np.int64)
    fresh[1:] = (left[order][1:] != left[order][:-1]).any(axis=1)
    ranks = np.empty(len(left), np.int64)
    ranks[order] = np.cumsum(fresh)
    return ranks


def load(store: Store, path: str, atoms: int) -> Counted:
    """The counts of a file."""
    sets = load_sets(store, path, atoms)
    return Counted(sets, (sets.masks[:0], sets.counts[:0]))


def load_sets(store: Store, path: str, atoms: int) -> AgreeSets:
    """The agree-sets alone."""
    kept = stored(store, path)
    masks = matrix_of(kept.column("mask"), bitsets.words_for(atoms))
    return AgreeSets(masks, kept.column("pairs").to_numpy())
