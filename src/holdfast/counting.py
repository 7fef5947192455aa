"""Counted evidence of a table: how it is counted, kept, changed by a batch, and stored.

Every agree-set is kept with its number of pairs (DynASt, property 1): a batch adds the pairs of its
new rows and takes away those of its deleted rows, each pair once. Functional dependencies are read
from the agree-sets that appear and vanish, errors from the counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.cover.agree import AgreeSets
from holdfast.cover.approximate import allowed, within
from holdfast.cover.dependencies import Dependencies
from holdfast.errors import InputError
from holdfast.kernels import agree as kernels
from holdfast.kernels import bitsets
from holdfast.options import Options
from holdfast.placement import Progress, living
from holdfast.runner import Call, Runner
from holdfast.snapshot import KEY_SIDE
from holdfast.store import Store
from holdfast.tasks import agree as tasks
from holdfast.tasks.segments import Segment
from holdfast.tasks.view import View

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]

COUNTED_FILES = ("agree", "fds", "recount")
"""Kinds of files: all agree-sets, all dependencies, and the last batch's change of the counts."""

_CELLS_PER_SECOND = 5e9
_MASKS_PER_SECOND = 5e6
"""Rates of one core, measured on adult (15 columns, direct) and uniprot (222 columns, hashed)."""

_MOST_SECONDS = 300.0


@dataclass(frozen=True)
class Counted:
    """All agree-sets with their counts, the dependencies, and what the last batch changed."""

    sets: AgreeSets
    dependencies: Dependencies
    change: tuple[U64, I64]


def expected_seconds(rows: int, columns: int, tasks: int) -> float:
    """About how long counting all pairs takes."""
    pairs = rows * (rows - 1) / 2
    each = columns / _CELLS_PER_SECOND
    if columns > kernels.DIRECT:
        each += 1 / _MASKS_PER_SECOND
    return pairs * each / max(1, tasks)


def check_size(table: str, rows: int, columns: int, runner: Runner) -> None:
    """Refuse a table whose pairs are too many to count."""
    seconds = expected_seconds(rows, columns, runner.tasks)
    if seconds > _MOST_SECONDS:
        raise InputError(
            f"table {table!r} has {rows:,} rows: comparing all pairs for functional dependencies "
            f"would take about {seconds / 60:,.0f} minutes here; profile it with --kinds keys"
        )


def count_all(runner: Runner, view: View, options: Options, progress: Progress) -> Counted:
    """All pairs of the living rows."""
    progress("count", rows=living(view))
    none = AgreeSets.none(view.columns)
    found = _counted(runner, view, (), (), np.empty(0, np.int64), everything=True)
    sets, _, _ = none.changed(*found)
    progress("cover", agree_sets=len(sets.masks))
    dependencies = Dependencies.build(view.columns, sets.masks, options.max_columns)
    return Counted(sets, dependencies, (sets.masks, sets.counts))


def count_batch(
    runner: Runner,
    counted: Counted,
    view: View,
    added: tuple[Segment, ...],
    before: tuple[Segment, ...],
    gone: I64,
    progress: Progress,
) -> Counted:
    """The pairs that a batch brought and took; ``before`` are segments as they were."""
    progress("count", rows=living(view))
    lost = tuple(s for s in before if (gone >> 32 == s.number).any())
    found = _counted(runner, view, added, lost, gone, everything=False)
    sets, appeared, vanished = counted.sets.changed(*found)
    dependencies = counted.dependencies.changed(appeared, vanished, sets.masks)
    change = kernels.total(*found, counted.sets.masks.shape[1])
    return Counted(sets, dependencies, change)


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


def masks_of(matrix: U64) -> pa.Array:
    """A column of masks."""
    width = 8 * matrix.shape[1]
    data = pa.py_buffer(np.ascontiguousarray(matrix).tobytes())
    return pa.FixedSizeBinaryArray.from_buffers(pa.binary(width), len(matrix), [None, data])


def matrix_of(column: pa.ChunkedArray, words: int) -> U64:
    """The masks of a column."""
    parts = [np.empty((0, words), np.uint64)]
    for chunk in column.chunks:
        data = np.frombuffer(chunk.buffers()[1], np.uint64).reshape(-1, words)
        parts.append(data[chunk.offset : chunk.offset + len(chunk)])
    return np.concatenate(parts)


def contents(counted: Counted, options: Options) -> Iterator[tuple[str, pa.Table]]:
    """The files of counted evidence."""
    sets, atoms = counted.sets, len(counted.dependencies.covers)
    # For which right sides a mask is maximal evidence, so that opening need not find out again.
    maximal = np.zeros_like(sets.masks)
    maximal[sets.places(counted.dependencies.masks)] = counted.dependencies.rights
    yield (
        "agree",
        pa.table(
            {
                "mask": masks_of(sets.masks),
                "pairs": sets.counts,
                "maximal_for": masks_of(maximal),
            }
        ),
    )
    masks, counts = counted.change
    yield "recount", pa.table({"mask": masks_of(masks), "change": counts})
    yield "fds", _dependencies(counted, atoms, options)


def _dependencies(counted: Counted, atoms: int, options: Options) -> pa.Table:
    """All dependencies, shortest first; with a bound also approximate ones, and such keys."""
    left, right = counted.dependencies.pairs
    error = np.zeros(len(left))
    if options.max_error is not None and counted.sets.pairs:
        most = allowed(counted.sets.pairs, options.max_error)
        for side in [*range(atoms), KEY_SIDE]:
            target = None if side == KEY_SIDE else side
            found = within(counted.sets, atoms, target, most, options.max_columns)
            some = found.violations > 0
            left = np.concatenate([left, found.masks[some]])
            right = np.append(right, np.full(int(some.sum()), side, np.int32))
            error = np.append(error, found.violations[some] / counted.sets.pairs)
    order = np.lexsort((right, *_ranks(left)))
    return pa.table({"mask": masks_of(left[order]), "right": right[order], "error": error[order]})


def _ranks(left: U64) -> tuple[I64]:
    """A number per mask that sorts like the canonical order of masks, equal for equal ones."""
    order = bitsets.canonical_order(left)
    fresh = np.zeros(len(left), np.int64)
    fresh[1:] = (left[order][1:] != left[order][:-1]).any(axis=1)
    ranks = np.empty(len(left), np.int64)
    ranks[order] = np.cumsum(fresh)
    return (ranks,)


def load(store: Store, files: dict[str, Any], atoms: int, options: Options) -> Counted:
    """What :func:`contents` wrote."""
    words = bitsets.words_for(atoms)
    agreed = _read(store, files["agree"])
    sets = AgreeSets(matrix_of(agreed.column("mask"), words), agreed.column("pairs").to_numpy())
    maximal = matrix_of(agreed.column("maximal_for"), words)
    kept = _read(store, files["fds"])
    exact = kept.column("error").to_numpy() == 0
    left = matrix_of(kept.column("mask"), words)[exact]
    right = kept.column("right").to_numpy()[exact]
    by_right = np.argsort(right, kind="stable")
    bounds = np.searchsorted(right[by_right], np.arange(atoms + 1))
    minimal = [left[by_right[lo:hi]] for lo, hi in pairwise(bounds)]
    some = maximal.any(axis=1)
    dependencies = Dependencies.known(
        atoms, sets.masks[some], maximal[some], minimal, options.max_columns
    )
    change = (sets.masks[:0], sets.counts[:0])
    return Counted(sets, dependencies, change)


def load_sets(store: Store, path: str, atoms: int) -> AgreeSets:
    """The agree-sets alone."""
    kept = _read(store, path)
    masks = matrix_of(kept.column("mask"), bitsets.words_for(atoms))
    return AgreeSets(masks, kept.column("pairs").to_numpy())


def _read(store: Store, path: str) -> pa.Table:
    return pa.ipc.open_file(pa.memory_map(store.file(path))).read_all()
