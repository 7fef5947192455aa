"""One key or functional dependency beside the minimal sets that a version stores."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from holdfast.kernels.arrays import U64
from holdfast.kinds.stored import KEY_RHS
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Constraint
from holdfast.model.errors import InputError
from holdfast.model.explanation import NEAREST, Nearby
from holdfast.model.near import sides_of
from holdfast.rules.version import Version

if TYPE_CHECKING:
    from holdfast.evidence.pairs import PairEvidence
    from holdfast.kinds.table_state import Step, TableState
    from holdfast.table.state import Table


def was_broken(rule: Constraint, step: Step) -> bool:
    """Whether a batch broke a key or a dependency of its table."""
    before, after = (
        _holds(rule, state.table, state.evidence) for state in (step.before, step.after)
    )
    return before and not after


def _holds(rule: Constraint, table: Table, evidence: Mapping[str, PairEvidence]) -> bool:
    """Whether one holds, as far as evidence tells."""
    lhs, rhs = sides_of(rule)
    place, known = table.columns.names.index, evidence.get(AGREEMENTS)
    if known is None or (not rhs and table.duplicates):
        return False
    return known.covers.holds(map(place, lhs), place(rhs[0]) if rhs else None)


class MinimalSets:
    """The minimal sets of one rhs that a version stores, with a number of columns up to which they
    are complete; None: they are not looked for."""

    def __init__(self, version: Version, name: str, rhs: int) -> None:
        table = version.commit.table(name)
        self.names = table.columns.names
        record = table.evidence.get(AGREEMENTS)
        self.masks: U64 | None = None
        self.limit: int | None = None
        if record is None or (rhs != KEY_RHS and record.choice.strategy is None):
            return
        self.limit = record.limits.keys if rhs == KEY_RHS else record.limits.dependencies
        self.masks = version.sets(name, AGREEMENTS, len(self.names)).of_rhs(rhs)

    def inside(self, columns: Sequence[str]) -> U64 | None:
        """Those that have no other columns."""
        if self.masks is None:
            return None
        mask = self._mask(columns)
        inside: U64 = self.masks[((self.masks & ~mask) == 0).all(axis=1)]
        return inside

    def says(self, columns: Sequence[str]) -> bool | None:
        """Whether a set contains a minimal one; None: that is not known."""
        inside = self.inside(columns)
        if inside is None:
            return None
        if len(inside):
            return True
        return None if self.limit is not None and len({*columns}) > self.limit else False

    def nearest(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """The smallest sets that contain these columns and a minimal one."""
        if self.masks is None or not len(self.masks):
            return []
        mask = self._mask(columns)
        more = _flags(self.masks & ~mask).sum(axis=1)
        return self._named(self.masks[more == more.min()] | mask)

    def _mask(self, columns: Iterable[str]) -> U64:
        mask = np.zeros(-(-len(self.names) // 64), np.uint64)
        for place in map(self.names.index, columns):
            mask[place // 64] |= np.uint64(1 << place % 64)
        return mask

    def _named(self, masks: U64) -> list[tuple[str, ...]]:
        """The columns of sets, each once, shortest first."""
        places = {tuple(np.flatnonzero(each).tolist()) for each in _flags(masks)}
        ordered = sorted(places, key=lambda each: (len(each), each))
        return [tuple(self.names[place] for place in each) for each in ordered]

    def nearby(
        self,
        columns: Sequence[str],
        holds: bool,
        make: Callable[[tuple[str, ...]], Constraint],
        what: str,
    ) -> Nearby:
        """The shortest extensions that hold, or the parts that are enough."""
        if self.masks is None:
            return Nearby(notes=(f"the profile does not look for {what}",))
        notes = []
        if self.limit is not None:
            notes.append(f"{what} are known up to {self.limit} columns")
        if not holds:
            extensions = [make(each) for each in self.nearest(columns)[:NEAREST]]
            return Nearby(tuple(extensions), notes=tuple(notes))
        inside = self._named(self.inside(columns))  # type: ignore[arg-type]  # there are some
        less = [each for each in inside if len(each) < len({*columns})]
        minimal = None if not inside else not less
        return Nearby((), tuple(make(each) for each in less[:NEAREST]), minimal, tuple(notes))


def _flags(masks: U64) -> NDArray[np.uint8]:
    """A flag for every column of every set."""
    octets = np.ascontiguousarray(masks).view(np.uint8)
    return np.unpackbits(octets, axis=1, bitorder="little")


def source(version: Version, name: str, space: str = AGREEMENTS) -> Any:
    """What a version says of minimal sets depends on this."""
    record = version.commit.table(name)
    evidence = record.evidence.get(space)
    files = None if evidence is None else (evidence.files["sets"], evidence.limits)
    return files, bool(record.duplicates)


def counted_error(state: TableState, lhs: Sequence[str], rhs: str | None) -> float | None:
    """The share of counted row pairs that agree on the left side and, unless it is a key, differ on
    the right; None: pairs are not counted. That none are compared is an error."""
    from holdfast.cover.dependencies import KEY

    pairs = state.evidence.get(AGREEMENTS)
    if pairs is None:
        raise InputError(
            "the profile compares no pairs of rows; profile the tables with --kinds keys"
        )
    place = state.table.columns.names.index
    return pairs.error(state.table.rows, map(place, lhs), KEY if rhs is None else place(rhs))
