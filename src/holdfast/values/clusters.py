"""Inclusion dependencies: which values the attributes have, kept as clusters.

An *attribute* is a column of a table. A value's *cluster* is the set of attributes in which it
occurs, and A ⊆ B holds iff every cluster with A has B (Incremental Discovery of ValueState
Dependencies, lemma 4.2). The values live in runs of entries, in files, and so do the clusters with
their numbers of values, and what follows from them: how many values every two attributes share. A
batch moves values between clusters, and touches only the values it contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from holdfast.input.row_input import Columns
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import I64, U64
from holdfast.model.commits import ValueRun
from holdfast.model.errors import StoreError
from holdfast.model.inclusion_dependencies import EMPTY, HOLDS, Attribute, InclusionDependency
from holdfast.model.options import Options
from holdfast.store import Store
from holdfast.store.codecs import matrix_of, stored_file
from holdfast.values.n_ary import Candidate, Verdicts
from holdfast.values.overlaps import Moves, Overlaps, Stretch, numbers
from holdfast.values.shared import Shared


@dataclass(frozen=True)
class Clusters:
    """Sets of attributes with their numbers of values: in runs of differences, which add up, and
    what moved since."""

    words: int  # of a mask
    runs: tuple[ValueRun, ...] = ()
    store: Store | None = None  # that has the files of the runs
    moves: Moves | None = None  # not yet in a run

    def all(self) -> tuple[U64, I64]:
        """All of them, in the order of their masks."""
        blocks = [self.stored(run) for run in self.runs]
        if self.moves is not None:
            blocks.append(differences(self.moves))
        masks, counts = grouped(
            np.concatenate([np.empty((0, self.words), np.uint64), *(each for each, _ in blocks)]),
            np.concatenate([np.empty(0, np.int64), *(each for _, each in blocks)]),
        )
        if (counts < 0).any():
            raise _unfit()
        return masks, counts

    def stored(self, run: ValueRun) -> tuple[U64, I64]:
        """The differences of a run."""
        assert self.store is not None
        tables = [stored_file(self.store, path) for path in run.files]
        masks = [matrix_of(table.column("mask"), self.words) for table in tables]
        counts = [numbers(table, "values") for table in tables]
        return np.concatenate(masks), np.concatenate(counts)


@dataclass(frozen=True)
class ValueState:
    """What is known of the values of all tables in one version."""

    attributes: tuple[Attribute, ...]
    families: tuple[str, ...]
    runs: tuple[ValueRun, ...]
    clusters: Clusters
    overlaps: Overlaps
    tuples: Verdicts = field(default_factory=dict)  # on candidates of several columns
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # once written, by role

    @staticmethod
    def none(tables: Mapping[str, Columns]) -> ValueState:
        """Attributes without values."""
        attributes, families = [], []
        for table, columns in tables.items():
            for c, name in enumerate(columns.names):
                attributes.append(Attribute(table, name))
                families.append(columns.family(c))
        return _without_values(tuple(attributes), tuple(families))

    @property
    def emptied(self) -> ValueState:
        """The same attributes without values."""
        return _without_values(self.attributes, self.families)

    @cached_property
    def stretches(self) -> dict[str, Stretch]:
        """The numbers of each table's attributes, in the order of its columns."""
        stretches: dict[str, Stretch] = {}
        for number, each in enumerate(self.attributes):
            stretches[each.table] = (stretches.get(each.table, (number,))[0], number + 1)
        return stretches

    @cached_property
    def shared(self) -> Shared:
        """What dependencies are read from."""
        return Shared(self.attributes, self.families, self.overlaps)

    def moved(self, masks: U64, counts: I64, tables: set[str]) -> ValueState:
        """The clusters after values of some tables moved: each row has the mask before and the
        mask after."""
        words = self.clusters.words
        before, after = (np.ascontiguousarray(masks[:, at : at + words]) for at in (0, words))
        changed = tuple(self.stretches[name] for name in self.stretches if name in tables)
        moves = Moves(before, after, counts, changed)
        overlaps = self.overlaps.moved(moves)
        if (overlaps.distinct < 0).any():
            raise _unfit()
        return replace(self, clusters=replace(self.clusters, moves=moves), overlaps=overlaps)


def _without_values(attributes: tuple[Attribute, ...], families: tuple[str, ...]) -> ValueState:
    count = len(attributes)
    none = Overlaps(np.zeros(count, np.int64))
    return ValueState(attributes, families, (), Clusters(bitsets.words_for(count)), none)


def _unfit() -> StoreError:
    return StoreError(
        "the value counts of this profile do not fit its rows; rebuild the profile: "
        "holdfast profile SOURCE... --into NEW_DIRECTORY"
    )


def differences(moves: Moves) -> tuple[U64, I64]:
    """How values that moved change the clusters. The empty one is where values come from and go
    to."""
    masks = np.concatenate([moves.before, moves.after])
    counts = np.concatenate([-moves.counts, moves.counts])
    known = masks.any(axis=1)
    return grouped(masks[known], counts[known])


def holding(verdicts: Verdicts, options: Options) -> list[Candidate]:
    """The candidates of several columns that hold."""
    wanted = (HOLDS, EMPTY) if options.empty_columns else (HOLDS,)
    return [each for each, verdict in verdicts.items() if verdict.status in wanted]


def named(each: Candidate, state: ValueState) -> InclusionDependency:
    """A candidate as a constraint."""
    left, right = state.stretches[each.table][0], state.stretches[each.other][0]
    return InclusionDependency(
        tuple(state.attributes[left + c] for c in each.columns),
        tuple(state.attributes[right + c] for c in each.others),
    )


def grouped(masks: U64, counts: I64) -> tuple[U64, I64]:
    """Distinct masks with the sums of their counts, where these are not 0."""
    if not len(masks):
        return masks, counts
    order = np.lexsort(masks.T)
    masks, counts = masks[order], counts[order]
    first = np.ones(len(masks), np.bool_)
    first[1:] = (masks[1:] != masks[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    masks, counts = masks[starts], np.add.reduceat(counts, starts)
    return masks[counts != 0], counts[counts != 0]
