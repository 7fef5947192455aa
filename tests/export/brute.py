"""What violates a rule, by its definition: the slow twin of the queries."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations, permutations
from typing import Any

from holdfast.model.column_values import ValueRule
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.grammar import Rule
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.model.whole_tables import TableRule
from tests import oracle

HOLD = {
    "=": "=", "!=": "<>?!", "<": "<", "<=": "<=", ">": ">", ">=": ">=",
}  # fmt: skip
"""The outcomes of two cells that satisfy each operator."""


def violations(
    rule: Rule,
    rows: Sequence[tuple[Any, ...]],
    names: Sequence[str],
    nulls: str,
    inclusion_nulls: str = "ignored",
) -> set[Any]:
    """What a query should find, by the definition: groups, values, or pairs of rows as far as the
    rule looks at them."""

    def at(row: tuple[Any, ...], asked: Any) -> tuple[Any, ...]:
        return tuple(row[names.index(name)] for name in asked)

    def agree(one: Any, two: Any, asked: Any) -> bool:
        places = [names.index(name) for name in asked]
        return all(oracle.outcome(one[c], two[c], False, nulls) == "=" for c in places)

    if isinstance(rule, Key):
        some = combinations(rows, 2)
        return {at(one, rule.columns) for one, two in some if agree(one, two, rule.columns)}
    if isinstance(rule, FunctionalDependency):
        return {
            at(one, rule.lhs)
            for one, two in combinations(rows, 2)
            if agree(one, two, rule.lhs) and not agree(one, two, [rule.rhs])
        }
    if isinstance(rule, NotNull):
        return {row for row in rows if at(row, [rule.column]) == (None,)}
    if isinstance(rule, ValueRule):
        return {row for row in rows if not oracle.passes(rule, *at(row, [rule.column]))}
    if isinstance(rule, InclusionDependency):
        mine, theirs = ([a.column for a in side] for side in rule.sides)
        there = {at(row, theirs) for row in rows}
        values = inclusion_nulls == "values" and len(mine) == 1
        left = {at(row, mine) for row in rows}
        return {each for each in left - there if values or None not in each}
    assert not isinstance(rule, TableRule)
    columns = [
        name
        for name in names
        if any(name == column for p in rule.predicates for _, column in (p.left, p.right))
    ]

    def satisfied(t: Any, s: Any) -> bool:
        cells = {"t": t, "s": s}

        def cell(of: tuple[str, str]) -> Any:
            row, column = of
            return at(cells[row], [column])[0]

        return all(
            oracle.outcome(cell(p.left), cell(p.right), True, nulls) in HOLD[p.op]
            for p in rule.predicates
        )

    used = {row for p in rule.predicates for row, _ in (p.left, p.right)}
    if len(used) == 1:
        # A rule about single rows is asked of each row, also of one that is alone.
        return {row for row in rows if satisfied(row, row)}
    pairs = [(t, s) for t, s in permutations(rows, 2) if satisfied(t, s)]
    return {at(t, columns) + at(s, columns) for t, s in pairs}
