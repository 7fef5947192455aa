"""One key or functional dependency: rows in groups that agree on its left side, and the minimal
sets near it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from holdfast.families.examine import Question, Version
from holdfast.families.stored import KEY_RHS
from holdfast.kernels import bitsets
from holdfast.kernels.bitsets import Masks
from holdfast.model.comparisons import AGREEMENTS
from holdfast.model.constraints import Constraint
from holdfast.model.explanation import NEAREST, Nearby, Removal, Violations
from holdfast.store.codecs import matrix_of
from holdfast.table.placement import parts
from holdfast.tasks import examine as tasks
from holdfast.tasks.runner import Call


def violations(
    question: Question, name: str, lhs: Sequence[str], rhs: str | None, orders: int = 1
) -> Violations:
    """Rows that agree on the left and, unless a key is asked for, differ on the right; ``orders``:
    in how many orders a pair counts."""
    table, run = question.table(name), question.run
    columns = table.columns
    left = tuple(sorted({columns.position(each, name) for each in lhs}))
    right = None if rhs is None else columns.position(rhs, name)
    view = table.view(run.store.path, run.options)
    count = parts(run.runner, view)
    calls: list[Call] = [
        (tasks.grouped, tasks.Grouped(view, left, right, part, count, question.shown))
        for part in range(count)
    ]
    results = question.asked(calls)
    groups, rows, pairs, agreeing, removed = (
        sum(each.facts[what] for each in results)
        for what in ("groups", "rows", "pairs", "agreeing", "removed")
    )
    every = table.rows * (table.rows - 1) // 2
    return Violations(
        rows,
        groups,
        orders * pairs,
        orders * every,
        Removal(removed, removed),
        question.examples(table, results),
        orders * (every if rhs is None else agreeing),
    )


class MinimalSets:
    """The minimal sets of one rhs that a version stores, with a number of columns up to which they
    are complete; None: they are not looked for."""

    def __init__(self, version: Version, name: str, rhs: int) -> None:
        table = version.table(name)
        self.names = table.columns
        record = table.record.evidence.get(AGREEMENTS)
        self.masks: Masks | None = None
        self.limit: int | None = None
        if record is None or (rhs != KEY_RHS and record.choice.strategy is None):
            return
        self.limit = record.limits.keys if rhs == KEY_RHS else record.limits.dependencies
        self.masks = exact_sets(table.file("sets"), rhs, len(self.names))

    def inside(self, columns: Sequence[str]) -> Masks | None:
        """Those that have no other columns."""
        if self.masks is None:
            return None
        mask = self._mask(columns)
        found: Masks = self.masks[((self.masks & ~mask) == 0).all(axis=1)]
        return found

    def says(self, columns: Sequence[str]) -> bool | None:
        """Whether a set contains a minimal one; None: that is not known."""
        found = self.inside(columns)
        if found is None:
            return None
        if len(found):
            return True
        return None if self.limit is not None and len({*columns}) > self.limit else False

    def nearest(self, columns: Sequence[str]) -> list[tuple[str, ...]]:
        """The smallest sets that contain these columns and a minimal one."""
        if self.masks is None or not len(self.masks):
            return []
        mask = self._mask(columns)
        more = bitsets.popcount(self.masks & ~mask)
        # A set twice where two minimal ones add the same.
        joined = bitsets.distinct(self.masks[more == more.min()] | mask)
        return self._named(joined)

    def _mask(self, columns: Sequence[str]) -> Any:
        places = [self.names.index(each) for each in columns]
        return bitsets.from_columns([places], len(self.names))[0]

    def _named(self, masks: Masks) -> list[tuple[str, ...]]:
        return [tuple(self.names[c] for c in each) for each in bitsets.to_columns(masks)]

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
            found = [make(each) for each in self.nearest(columns)[:NEAREST]]
            return Nearby(tuple(found), notes=tuple(notes))
        inside = self._named(self.inside(columns))  # type: ignore[arg-type]  # there are some
        less = [each for each in inside if len(each) < len({*columns})]
        minimal = None if not inside else not less
        return Nearby((), tuple(make(each) for each in less[:NEAREST]), minimal, tuple(notes))


def exact_sets(sets: Any, rhs: int, atoms: int) -> Masks:
    """The minimal sets of one rhs in a file that no pair violates."""
    right = np.array(sets.column("rhs").to_pylist(), np.int64)
    error: NDArray[np.float64] = np.array(sets.column("error").to_pylist(), np.float64)
    masks: Masks = matrix_of(sets.column("mask"), bitsets.words_for(atoms))
    found: Masks = masks[(right == rhs) & (error == 0)]
    return found


def source(version: Version, name: str, space: str = AGREEMENTS) -> Any:
    """What a version says of minimal sets depends on this."""
    record = version.commit.table(name)
    evidence = record.evidence.get(space)
    files = None if evidence is None else (evidence.files["sets"], evidence.limits)
    return files, bool(record.duplicates)
