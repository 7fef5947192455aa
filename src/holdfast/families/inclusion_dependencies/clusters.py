"""Inclusion dependencies: which values the attributes have, kept as clusters.

An *attribute* is a column of a table. A value's *cluster* is the set of attributes in which it
occurs, and A ⊆ B holds iff every cluster with A has B (Incremental Discovery of Inclusion
Dependencies, lemma 4.2). The values live in runs of entries, in files; the clusters with their
numbers of values live here, and so does what follows from them: how many values every two
attributes share. A batch moves values between clusters, and touches only the values it contains.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from holdfast.families.inclusion_dependencies.foreign_keys import Shared
from holdfast.families.inclusion_dependencies.n_ary import Candidate, Verdicts
from holdfast.input.row_input import Columns
from holdfast.kernels import bitsets
from holdfast.kernels import values as kernels
from holdfast.model.commits import ValueRun
from holdfast.model.constraints import EMPTY, HOLDS, Attribute, InclusionDependency
from holdfast.model.errors import StoreError
from holdfast.model.options import Options

U64 = NDArray[np.uint64]
I64 = NDArray[np.int64]


@dataclass(frozen=True)
class Inclusion:
    """What is known of the values of all tables in one version."""

    attributes: tuple[Attribute, ...]
    families: tuple[str, ...]
    runs: tuple[ValueRun, ...]
    masks: U64  # the clusters, over the attributes
    counts: I64  # and how many values each has
    overlaps: I64  # values that two attributes share; with itself: an attribute's distinct values
    tuples: Verdicts = field(default_factory=dict)  # on candidates of several columns
    files: dict[str, tuple[str, ...]] = field(default_factory=dict)  # once written, by role

    @staticmethod
    def none(tables: Mapping[str, Columns]) -> Inclusion:
        """Attributes without values."""
        attributes, families = [], []
        for table, columns in tables.items():
            for c, name in enumerate(columns.names):
                attributes.append(Attribute(table, name))
                families.append(columns.family(c))
        return _without_values(tuple(attributes), tuple(families))

    @property
    def emptied(self) -> Inclusion:
        """The same attributes without values."""
        return _without_values(self.attributes, self.families)

    def moved(self, masks: U64, counts: I64) -> Inclusion:
        """The clusters after values moved: each row has the mask before and the mask after."""
        words = self.masks.shape[1]
        before, after = masks[:, :words], masks[:, words:]
        overlaps = self.overlaps.copy()
        kernels.add_overlaps(np.ascontiguousarray(before), -counts, overlaps)
        kernels.add_overlaps(np.ascontiguousarray(after), counts, overlaps)
        all_masks = np.concatenate([self.masks, before, after])
        all_counts = np.concatenate([self.counts, -counts, counts])
        # The empty cluster is where values come from and go to.
        known = all_masks.any(axis=1)
        together, totals = grouped(all_masks[known], all_counts[known])
        if (totals < 0).any():
            raise StoreError(
                "the value counts of this profile do not fit its rows; rebuild the profile: "
                "holdfast profile SOURCE... --into NEW_DIRECTORY"
            )
        return replace(
            self, masks=together[totals > 0], counts=totals[totals > 0], overlaps=overlaps
        )


def _without_values(attributes: tuple[Attribute, ...], families: tuple[str, ...]) -> Inclusion:
    count = len(attributes)
    nothing = np.zeros((count, count), np.int64)
    return Inclusion(attributes, families, (), bitsets.empty(count), np.empty(0, np.int64), nothing)


def dependencies(state: Inclusion, options: Options) -> list[InclusionDependency]:
    """The inclusion dependencies that the options ask for."""
    shared = Shared(state.attributes, state.families, state.overlaps)
    unary = shared.inclusion_dependencies(
        options.min_coverage, options.empty_columns, options.within_tables
    )
    names = by_table(state.attributes)
    return unary + [_named(each, names) for each in _holding(state.tuples, options)]


def _holding(verdicts: Verdicts, options: Options) -> list[Candidate]:
    wanted = (HOLDS, EMPTY) if options.empty_columns else (HOLDS,)
    return [each for each, verdict in verdicts.items() if verdict.status in wanted]


def by_table(attributes: tuple[Attribute, ...]) -> dict[str, list[Attribute]]:
    names: dict[str, list[Attribute]] = {}
    for each in attributes:
        names.setdefault(each.table, []).append(each)
    return names


def _named(each: Candidate, names: dict[str, list[Attribute]]) -> InclusionDependency:
    return InclusionDependency(
        tuple(names[each.table][c] for c in each.columns),
        tuple(names[each.other][c] for c in each.others),
    )


def grouped(masks: U64, counts: I64) -> tuple[U64, I64]:
    """Distinct masks with the sums of their counts."""
    if not len(masks):
        return masks, counts
    order = np.lexsort(masks.T)
    masks, counts = masks[order], counts[order]
    first = np.ones(len(masks), np.bool_)
    first[1:] = (masks[1:] != masks[:-1]).any(axis=1)
    starts = np.flatnonzero(first)
    return masks[starts], np.add.reduceat(counts, starts)
