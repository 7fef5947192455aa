"""Foreign keys of two columns: what may refer to a key of another table, and whether it does.

The tuples of candidates are counted (:mod:`holdfast.values.tuples`), so a batch costs what it
contains. What is no candidate any more, because a key or a part of it broke, stays counted for some
time: it is often one again soon.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import product
from typing import TYPE_CHECKING

import numpy as np

from holdfast.model.inclusion_dependencies import EMPTY, HOLDS, REFUTED, UNKNOWN, Attribute
from holdfast.model.likeness import alike
from holdfast.model.limits import OutOfTime
from holdfast.model.tuples import Reference, TupleSide
from holdfast.runtime.run import Run
from holdfast.table.change import RowChange
from holdfast.table.state import Table
from holdfast.values.n_ary import Candidate, Verdict, Verdicts
from holdfast.values.overlaps import Stretch
from holdfast.values.shared import Pairs, Wanted
from holdfast.values.tuples import TupleCounts

if TYPE_CHECKING:
    from holdfast.values.state import ValueState

MOST = 200
"""So many candidates of a profile are counted, those whose names are most alike."""

_UNUSED = 32
"""So many sides stay counted that no candidate has."""

LEAST_ALIKE = 0.55
"""How alike the names of two columns are to those of a key, at least, on average."""

Keys = Mapping[str, Sequence[tuple[int, int]]]
"""Of each table the keys of two columns that others may refer to, as positions."""

_alike = lru_cache(maxsize=1 << 16)(alike)


def candidates(
    pairs: Pairs,
    keys: Keys,
    attributes: Sequence[Attribute],
    stretches: Mapping[str, Stretch],
) -> Iterator[Candidate]:
    """Two columns of a table, each of which is contained in a column of a key of another table, and
    has, on average, a name like that. ``pairs`` are the dependencies of one column."""
    numbers = {
        table: [tuple(stretches[table][0] + c for c in key) for key in of_table]
        for table, of_table in keys.items()
    }
    keyed = np.array(
        [c for of_table in numbers.values() for key in of_table for c in key], np.int64
    )
    chosen = np.isin(pairs.referenced, keyed)
    inside: dict[tuple[str, int], list[int]] = defaultdict(list)
    referring: dict[str, set[str]] = defaultdict(set)
    for a, b in zip(
        pairs.dependent[chosen].tolist(), pairs.referenced[chosen].tolist(), strict=True
    ):
        table = attributes[a].table
        inside[table, b].append(a)
        referring[attributes[b].table].add(table)
    for other, tables in referring.items():
        for table, key in product(sorted(tables - {other}), numbers[other]):
            for pair in product(*(inside.get((table, c), ()) for c in key)):
                names = [attributes[a] for a in pair], [attributes[b] for b in key]
                if pair[0] != pair[1] and _likeness(*names) >= LEAST_ALIKE:
                    left, right = zip(*sorted(zip(pair, key, strict=True)), strict=True)
                    yield Candidate(
                        table,
                        tuple(a - stretches[table][0] for a in left),
                        other,
                        tuple(b - stretches[other][0] for b in right),
                    )


def _likeness(left: Sequence[Attribute], right: Sequence[Attribute]) -> float:
    """How alike the names are, on average."""
    return sum(map(_alike, left, right)) / len(left)


def with_references(
    run: Run,
    state: ValueState,
    tables: Mapping[str, Table],
    before: ValueState | None,
    batch: Mapping[str, RowChange],
) -> ValueState:
    """The state with verdicts on what may refer to keys; none where the time of the run ends before
    they are counted. A batch can change only those that have one of its tables on a side."""
    if not (any(state.keys.values()) or state.counts.sides):
        return state
    wanted = Wanted(1.0, run.options.empty_columns)
    verdicts: Verdicts = {}
    if before is None:
        pairs = state.shared.pairs(wanted)
    else:
        pairs = Pairs.together(
            [state.shared.pairs_of(*state.stretches[table], wanted) for table in batch]
        )
        changed = {*batch}
        verdicts = {
            candidate: verdict
            for candidate, verdict in before.verdicts.items()
            if not changed & {candidate.table, candidate.other}
        }
    found = [*candidates(pairs, state.keys, state.attributes, state.stretches)]
    chosen = _chosen([*verdicts, *found], state)
    references = {
        each: _reference(run, state, each)
        for each in (*found, *verdicts)
        if each in chosen and (each not in verdicts or verdicts[each].status == UNKNOWN)
    }
    rows = [rows for change in batch.values() for rows in (change.arrived, change.departed)]
    counts = state.counts.change(run, rows)
    known = {*counts.sides}
    new = [each for each in references.values() if each.left not in known]
    named = {side.table: tables[side.table] for each in new for side in each.sides}
    try:
        counts = counts.also(run.bounded(), new, named)
    except OutOfTime:
        return replace(state, verdicts={}, counts=TupleCounts(), arity=1)
    verdicts |= {each: Verdict(UNKNOWN) for each in (*found, *verdicts) if each not in chosen}
    for candidate, each in references.items():
        values, contained = counts.side(each.left).distinct, counts.reference(each.sides).distinct
        status = EMPTY if not values else HOLDS if contained == values else REFUTED
        verdicts[candidate] = Verdict(status)
    needed = [_reference(run, state, each) for each in chosen]
    if len(counts.sides) > _UNUSED + len({side for each in needed for side in each.sides}):
        counts = counts.only(needed)
    return replace(state, verdicts=verdicts, counts=counts)


def _chosen(of: Sequence[Candidate], state: ValueState) -> set[Candidate]:
    """The candidates that are counted."""
    if len(of) <= MOST:
        return {*of}

    def order(one: Candidate) -> tuple[float, str]:
        rule = state.named(one)
        return -_likeness(*rule.sides), str(rule)

    return {*sorted(of, key=order)[:MOST]}


def _reference(run: Run, state: ValueState, candidate: Candidate) -> Reference:
    """A candidate as sides whose tuples are counted; left ones are not shared, since it is counted
    with them how much the right side has."""
    rule = state.named(candidate)
    left, right = (
        TupleSide(
            side[0].table,
            tuple(attribute.column for attribute in side),
            nulls=run.options.inclusion_nulls == "values",
        )
        for side in rule.sides
    )
    return Reference(replace(left, of=str(rule)), right)
