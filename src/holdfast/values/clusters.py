"""Clusters: sets of attributes, each with the number of values that occur in exactly these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.model.commits import ValueRun
from holdfast.model.errors import StoreError
from holdfast.store import Store
from holdfast.store.codecs import matrix_of, stored_file
from holdfast.values.overlaps import ValueMoves, numbers


@dataclass(frozen=True)
class Clusters:
    """Sets of attributes with their numbers of values: stored in runs of differences, which are
    added up, and the moves since."""

    words: int  # of a mask
    runs: tuple[ValueRun, ...] = ()
    store: Store | None = None  # that has the files of the runs
    moves: ValueMoves | None = None  # not yet in a run

    def all(self) -> tuple[U64, I64]:
        """All clusters, sorted by their masks."""
        blocks = [self.stored(run) for run in self.runs]
        if self.moves is not None:
            blocks.append(differences(self.moves))
        masks, counts = grouped(
            np.concatenate([np.empty((0, self.words), np.uint64), *(masks for masks, _ in blocks)]),
            np.concatenate([np.empty(0, np.int64), *(counts for _, counts in blocks)]),
        )
        if (counts < 0).any():
            raise unfit()
        return masks, counts

    def stored(self, run: ValueRun) -> tuple[U64, I64]:
        """The differences of a run."""
        assert self.store is not None
        tables = [stored_file(self.store, path) for path in run.files]
        masks = [matrix_of(table.column("mask"), self.words) for table in tables]
        counts = [numbers(table, "values") for table in tables]
        return np.concatenate(masks), np.concatenate(counts)


def unfit() -> StoreError:
    """The error for counts that are impossible."""
    return StoreError(
        "the value counts of this profile do not fit its rows; rebuild the profile: "
        "holdfast profile SOURCE... --into NEW_DIRECTORY"
    )


def differences(moves: ValueMoves) -> tuple[U64, I64]:
    """How moved values change the sizes of clusters. The empty cluster is where values come from
    and go to."""
    masks = np.concatenate([moves.before, moves.after])
    counts = np.concatenate([-moves.counts, moves.counts])
    known = masks.any(axis=1)
    return grouped(masks[known], counts[known])


def grouped(masks: U64, counts: I64) -> tuple[U64, I64]:
    """Distinct masks with the sums of their counts; those with the sum 0 are left out."""
    if not len(masks):
        return masks, counts
    order = np.lexsort(masks.T)
    masks, counts = masks[order], counts[order]
    starts = np.flatnonzero(bitsets.begins_run(masks))
    masks, counts = masks[starts], np.add.reduceat(counts, starts)
    return masks[counts != 0], counts[counts != 0]
