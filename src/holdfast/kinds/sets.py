"""What a batch did to minimal sets of atoms: for every kind that is read from pair evidence.

A set that was minimal and is not any more is *broken* (a pair of rows violates it), *superseded*
(it holds, and a part of it is enough) or *unchecked* (it is longer than there was time for).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from holdfast.cover.cover import Cover
from holdfast.evidence.pairs import PairEvidence
from holdfast.evidence.storage import approximate_sets
from holdfast.kernels import bitsets
from holdfast.kernels.arrays import U64
from holdfast.kinds.table_state import Step
from holdfast.model.changes import SHOWN, Broken, ErrorChange, KindChanges, Superseded
from holdfast.model.constraints import Constraint, Row
from holdfast.runtime.run import Run
from holdfast.tasks.shown import rows_as_text

Make = Callable[[tuple[int, ...], int, float | None], Constraint]
"""A set's atoms, its rhs and its error in, the constraint out."""

Pair = tuple[int, int]

Errors = dict[tuple[tuple[int, ...], int], float]
"""Errors by the words of a set and its rhs."""


Reading = Callable[[U64], U64]
"""Minimal sets in, those that are reported out."""


def _all(sets: U64) -> U64:
    return sets


class SetChanges:
    """How the minimal sets of one rhs changed, as a kind reads them."""

    def __init__(self, rhs: int, before: Cover, after: Cover, reading: Reading = _all) -> None:
        self.rhs = rhs
        self._before, self._after = before, after
        old = new = reading(before.minimal)
        if after.minimal is not before.minimal:
            new = reading(after.minimal)
        self.reported = new
        same = old is new
        self.gained = new[:0] if same else new[~bitsets.is_member(new, old)]
        self.by_repeated = new[:0]  # what only two equal rows break, and those rows
        self.repeated: Pair | None = None
        self._sort_out(old[:0] if same else old[~bitsets.is_member(old, new)])

    def _sort_out(self, lost: U64) -> None:
        violated = bitsets.any_superset(lost, self._after.evidence)
        self.broken, rest = lost[violated], lost[~violated]
        shorter = bitsets.any_subset(rest, self._after.minimal)
        self.superseded, self.unchecked = rest[shorter], rest[~shorter]

    def all_lost(self, repeated: list[int] | None) -> SetChanges:
        """Where the first repeated row broke everything."""
        self.gained = self.gained[:0]
        self._sort_out(self._before.minimal)
        self.by_repeated = np.concatenate([self.superseded, self.unchecked])
        self.superseded = self.unchecked = self.gained
        self.repeated = (repeated[0], repeated[1]) if repeated else None
        return self

    def all_gained(self) -> SetChanges:
        """Where the last repeated row has gone."""
        self.gained = self._after.minimal
        self._sort_out(self.gained[:0])
        return self

    def smaller(self, mask: U64) -> U64:
        """A minimal set inside another one."""
        minimal = self._after.minimal
        inside = ((minimal & ~mask) == 0).all(axis=1)
        smaller: U64 = minimal[np.flatnonzero(inside)[0]]
        return smaller


@dataclass(frozen=True)
class _Listed:
    mask: U64
    changes: SetChanges
    repeated: bool = False


def changes_of_kind(
    run: Run,
    step: Step,
    space: str,
    sets: Iterable[SetChanges],
    make: Make,
    counts: dict[str, int] | None = None,
    reading: Reading = _all,
) -> KindChanges:
    """The changes of a kind: the shortest of every list, with rows that show what broke."""
    evidence = step.evidence(space)
    assert evidence is not None
    sets = list(sets)
    table = step.after.table
    names = table.columns.names

    def constraint(mask: U64, rhs: int, error: float | None = None) -> Constraint:
        return make(bitsets.to_columns(mask[None, :])[0], rhs, error)

    gained, broken, superseded, unchecked = (
        [_Listed(mask, each) for each in sets for mask in getattr(each, what)]
        for what in ("gained", "broken", "superseded", "unchecked")
    )
    broken += [_Listed(mask, each, True) for each in sets for mask in each.by_repeated]
    totals = {
        **(counts or {}),
        "gained": len(gained),
        "broken": len(broken),
        "superseded": len(superseded),
        "unchecked": len(unchecked),
    }
    shown = _shortest(broken)
    pairs = [_witness(evidence[1], each) for each in shown]
    ids = np.array([id_ for pair in pairs if pair for id_ in pair], np.int64)
    text = rows_as_text(run.store.path, table.segments, names, ids)
    return KindChanges(
        tuple(constraint(each.mask, each.changes.rhs) for each in _shortest(gained)),
        tuple(
            Broken(constraint(each.mask, each.changes.rhs), _rows(pair, text), each.repeated)
            for each, pair in zip(shown, pairs, strict=True)
        ),
        tuple(
            Superseded(
                constraint(each.mask, each.changes.rhs),
                constraint(each.changes.smaller(each.mask), each.changes.rhs),
            )
            for each in _shortest(superseded)
        ),
        tuple(constraint(each.mask, each.changes.rhs) for each in _shortest(unchecked)),
        *_errors(run, evidence, [each.rhs for each in sets], constraint, totals, reading),
    )


def _shortest(listed: list[_Listed]) -> list[_Listed]:
    if len(listed) <= 1:
        return listed
    sizes = bitsets.popcount(np.stack([each.mask for each in listed]))
    return [listed[at] for at in np.argsort(sizes, kind="stable")[:SHOWN]]


def _witness(evidence: PairEvidence, each: _Listed) -> Pair | None:
    if each.repeated:
        return each.changes.repeated
    return evidence.violating_pair(each.mask, each.changes.rhs)


def _rows(pair: Pair | None, text: dict[int, str]) -> tuple[Row, ...]:
    return () if pair is None else tuple(json.loads(text[id_]) for id_ in pair)


def _errors(
    run: Run,
    evidence: tuple[PairEvidence, PairEvidence],
    rhs: list[int],
    constraint: Callable[[U64, int, float | None], Constraint],
    counts: dict[str, int],
    reading: Reading,
) -> tuple[tuple[ErrorChange, ...], dict[str, int]]:
    """How the errors of approximate sets changed, where they are looked for."""
    bound = run.options.max_error
    if bound is None:
        return (), counts
    before, after = (
        _reported(approximate_sets(run.store, pairs, bound), reading) for pairs in evidence
    )
    changed = [
        (key, before.get(key), after.get(key))
        for key in sorted({*before, *after}, key=lambda key: (sum(map(int.bit_count, key[0])), key))
        if key[1] in rhs and before.get(key) != after.get(key)
    ]
    listed = tuple(
        ErrorChange(
            constraint(np.array(mask, np.uint64), rhs, then if now is None else now), then, now
        )
        for (mask, rhs), then, now in changed[:SHOWN]
    )
    return listed, {**counts, "errors": len(changed)}


def _reported(errors: Errors, reading: Reading) -> Errors:
    """The errors of the sets that a kind reports."""
    if reading is _all or not errors:
        return errors
    read = {tuple(mask) for mask in reading(np.array([m for m, _ in errors], np.uint64)).tolist()}
    return {key: error for key, error in errors.items() if key[0] in read}
