"""What a batch did to the denial constraints that are reported."""

from __future__ import annotations

import numpy as np

from holdfast.cover.cover import Cover
from holdfast.evidence.mirrors import mirrored
from holdfast.kernels import bitsets
from holdfast.kernels.bitsets import Masks
from holdfast.kinds.denial_constraints.reduction import closed, reported
from holdfast.kinds.sets import SetChanges
from holdfast.model.comparisons import Space


class ReportedChanges(SetChanges):
    """How reported sets changed. One that is reported no more, and holds, is implied by another."""

    def __init__(self, rhs: int, before: Cover, after: Cover, space: Space) -> None:
        self._space = space
        super().__init__(rhs, before, after, lambda sets: reported(sets, space))

    def _sort_out(self, lost: Masks) -> None:
        violated = bitsets.any_superset(lost, self._after.evidence)
        self.broken, rest = lost[violated], lost[~violated]
        closures, _ = closed(rest, self._space)
        implied = bitsets.any_subset(closures, self._both_images())
        self.superseded, self.unchecked = rest[implied], rest[~implied]

    def smaller(self, mask: Masks) -> Masks:
        """A reported set that implies another one."""
        closures, _ = closed(mask[None, :], self._space)
        inside = ((self._both_images() & ~closures) == 0).all(axis=1)
        implying: Masks = self.reported[np.flatnonzero(inside)[0] % len(self.reported)]
        return implying

    def _both_images(self) -> Masks:
        return np.concatenate([self.reported, mirrored(self.reported, self._space)])
