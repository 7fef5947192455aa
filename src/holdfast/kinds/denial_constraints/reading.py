"""Denial constraints as a version's files have them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from holdfast.kinds.sequences import ConstraintSequence
from holdfast.model.comparisons import Space
from holdfast.model.denial_constraints import FORMS, DenialConstraint
from holdfast.model.errors import MissingFileError

if TYPE_CHECKING:
    from holdfast.cover.counts import EvidenceCounts, SampledPairs
    from holdfast.kernels.bitsets import Masks

T = TypeVar("T")


class Denials(ConstraintSequence[DenialConstraint]):
    """The denial constraints that are reported, order rules first."""

    of = DenialConstraint

    def __init__(
        self,
        kept: pa.Table,
        space: Space,
        table: str,
        names: Sequence[str],
        counts: Callable[[], EvidenceCounts] | None = None,
        sampled: Callable[[], EvidenceCounts] | None = None,
        equal: Callable[[], list[SampledPairs]] | None = None,
    ) -> None:
        self._kept, self._space, self._table, self._names = kept, space, table, names
        self._counts, self._sampled, self._equal = counts, sampled, equal

    @property
    def space(self) -> Space:
        """The predicates that they consist of."""
        return self._space

    @cached_property
    def counts(self) -> EvidenceCounts | None:
        """How many pairs of rows show each evidence, where that is counted and still there."""
        return _read(self._counts)

    @cached_property
    def sampled(self) -> EvidenceCounts | None:
        """How many of a few random pairs show each evidence, where pairs are not counted."""
        return _read(self._sampled)

    @cached_property
    def equal(self) -> list[SampledPairs] | None:
        """A few random pairs that are equal in one comparison, where pairs are not counted."""
        return _read(self._equal)

    @cached_property
    def _reported(self) -> tuple[Masks, NDArray[np.float64]]:
        """Their sets of atoms, with errors, in the order in which they are shown."""
        from holdfast.kernels import bitsets
        from holdfast.kinds.denial_constraints.ordering import rules_first
        from holdfast.kinds.denial_constraints.reduction import reported
        from holdfast.store.codecs import matrix_of

        masks = matrix_of(self._kept.column("mask"), bitsets.words_for(self._space.atoms))
        errors = np.array(self._kept.column("error").to_pylist(), np.float64)
        sets_in_order, errors_in_order = [], []
        for some in (errors == 0, errors > 0):
            sets = reported(masks[some], self._space)
            sets = sets[rules_first(sets, self._space)]
            order = bitsets.canonical_order(masks[some])
            places = bitsets.find(sets, masks[some][order])
            sets_in_order.append(sets)
            errors_in_order.append(errors[some][order][places])
        return np.concatenate(sets_in_order), np.concatenate(errors_in_order)

    def __len__(self) -> int:
        return len(self._reported[0])

    def block(self, part: slice) -> list[DenialConstraint]:
        """Some of them."""
        masks, errors = self._reported
        return self._constraints(masks[part], errors[part])

    def _constraints(self, masks: Masks, errors: NDArray[np.float64]) -> list[DenialConstraint]:
        from holdfast.kinds.denial_constraints.predicates import constraints

        without_errors = constraints(masks, self._space, self._table, self._names)
        return [
            DenialConstraint(each.table, each.predicates, error)
            for each, error in zip(without_errors, errors.tolist(), strict=True)
        ]

    def besides(self, forms: Sequence[str]) -> Sequence[DenialConstraint]:
        """Those that have none of these forms."""
        return self.of_forms([form for form in FORMS if form not in forms])

    def of_forms(self, forms: Sequence[str]) -> Sequence[DenialConstraint]:
        """Those that have one of these forms."""
        from holdfast.kinds.denial_constraints.ordering import forms as forms_of

        masks, errors = self._reported
        some = np.isin(forms_of(masks, self._space), [FORMS.index(form) for form in forms])
        return _Some(self, masks[some], errors[some])

    def without(self, others: Denials) -> tuple[DenialConstraint, ...]:
        """Those that hold, and are not among the others that do; in the same order."""
        from holdfast.kernels import bitsets

        (masks, errors), (known, errors_there) = self._reported, others._reported
        new = (errors == 0) & ~bitsets.is_member(masks, known[errors_there == 0])
        return tuple(self._constraints(masks[new], errors[new]))


def _read(read: Callable[[], T] | None) -> T | None:
    try:
        return None if read is None else read()
    except MissingFileError:
        return None


class _Some(Denials):
    """Some of the constraints."""

    def __init__(self, whole: Denials, masks: Masks, errors: NDArray[np.float64]) -> None:
        super().__init__(
            whole._kept,
            whole._space,
            whole._table,
            whole._names,
            whole._counts,
            whole._sampled,
            whole._equal,
        )
        self._some = masks, errors

    @property
    def _reported(self) -> tuple[Masks, NDArray[np.float64]]:
        return self._some
