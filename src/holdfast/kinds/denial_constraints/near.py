"""Denial constraints that nearly hold: comparisons of two cells of one row, and order rules over
two columns, among all rows or among those that agree in a third column.

Others, too, nearly hold, but nearly all of them by chance: the more predicates a constraint has,
the fewer rows violate it. Those that are looked for are told from luck by what chance would give.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING

from holdfast.kernels import bitsets
from holdfast.kinds.denial_constraints.predicates import atoms_of, is_said
from holdfast.kinds.denial_constraints.show import SPACE
from holdfast.model.comparisons import FIRST, ORDER, Comparison, Space
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.near import NearBounds, NearRule
from holdfast.rules.orders import (
    MOST_ROWS,
    DrawnPairs,
    OrderedRows,
    counted,
    drawn_pairs,
    nearly_hold,
)
from holdfast.rules.single_rows import SingleRows
from holdfast.table.change import RowChange
from holdfast.tasks.orders import ColumnsInOrder

if TYPE_CHECKING:
    from holdfast.input.row_input import Columns
    from holdfast.kernels.bitsets import Masks
    from holdfast.kinds.denial_constraints.examine import DenialExaminer
    from holdfast.kinds.table_state import Step, TableState
    from holdfast.model.options import Options
    from holdfast.rules.form import Tables
    from holdfast.runtime.run import Run

_OUTCOMES = {"<": (0,), "=": (1,), ">": (2,), "<=": (0, 1), ">=": (1, 2), "!=": (0, 2)}
"""Which outcomes of a comparison satisfy each operator."""


def near_form(
    rule: DenialConstraint, examiner: DenialExaminer, tables: Tables, options: Options
) -> SingleRows | OrderedRows | None:
    """What rows are judged by; None: it is none of the constraints that are looked for."""
    if not is_looked_for(rule):
        return None
    form = examiner.form(rule, tables, options)
    if isinstance(form, SingleRows):
        return form
    order = order_of(rule, tables[rule.table])
    return OrderedRows(form.table, form.space, form.atoms, form.tries, order=order)  # type: ignore[attr-defined]


def is_looked_for(rule: DenialConstraint) -> bool:
    """Whether it is one of those that may be listed."""
    if rule.is_within_a_row:
        return len(rule.predicates) == 1
    order = rule.order_rule
    strict = all(each.op in ("<", ">", "=") for each in rule.predicates)
    return order is not None and strict and len(order.within) <= 1


def order_of(rule: DenialConstraint, columns: Columns) -> ColumnsInOrder:
    """The columns of an order rule."""
    order = rule.order_rule
    assert order is not None
    lhs, rhs, *within = map(columns.names.index, (order.lhs, order.rhs, *order.within))
    return ColumnsInOrder(lhs, rhs, order.falling, within[0] if within else None)


def near_rules(
    run: Run, state: TableState, bounds: NearBounds, examiner: DenialExaminer
) -> list[NearRule]:
    """Those of a table that nearly hold, of which no part holds or nearly does."""
    evidence, rows = state.evidence.get(SPACE), state.table.rows
    if evidence is None or rows < bounds.repeated_rows:
        return []
    search = _Search(run, state, evidence.space, evidence.covers.keys.minimal, examiner)
    return [*search.of_single_rows(bounds), *search.of_orders(bounds)]


class _Search:
    """The constraints that a table's space can say."""

    def __init__(
        self, run: Run, state: TableState, space: Space, holding: Masks, examiner: DenialExaminer
    ) -> None:
        self._run, self._table, self._space, self._holding = run, state.table, space, holding
        self._examiner = examiner
        self._names = state.table.columns.names
        self._tables = {state.table.name: state.table.columns}
        own = [each for each in space.comparisons if each.is_own]
        self._groups = [each.left for each in own]
        self._ordered = [each.left for each in own if each.operators == ORDER]
        self._crossing = [each for each in space.comparisons if each.rows == FIRST]
        self._drawn: dict[int | None, DrawnPairs] = {}

    def of_single_rows(self, bounds: NearBounds) -> Iterator[NearRule]:
        """A comparison of two cells of a row, with the weakest operators that few rows satisfy, and
        far fewer than two random rows would."""
        if not self._crossing:
            return
        self._draw([None])
        rules = [
            (comparison, rule, operator, atoms)
            for comparison in self._crossing
            for operator, rule, atoms in self._of_a_row(comparison)
        ]
        asked = [rule for _, rule, _, atoms in rules if not self._holds(atoms)]
        numbers = self._violating(asked)
        few: dict[Comparison, list[set[int]]] = {}
        for comparison, rule, operator, atoms in rules:
            removal = numbers.get(rule, 0)
            by_chance = self._share_by_chance(comparison, operator) * self._table.rows
            passing = removal <= bounds.key_removal * self._table.rows and (
                not removal or removal <= (1 - bounds.strength) * by_chance
            )
            known = few.setdefault(comparison, [])
            if passing and not any(each <= {*atoms} for each in known):
                known.append({*atoms})
                if removal:
                    yield NearRule(rule, rule.table, removal, self._table.rows)

    def _of_a_row(
        self, comparison: Comparison
    ) -> Iterator[tuple[str, DenialConstraint, tuple[int, ...]]]:
        """The constraints that compare two cells of a row, weak operators first."""
        left, right = (self._names[c] for c in (comparison.left, comparison.right))
        strong = ("=", "<", ">") if comparison.operators == ORDER else ("=",)
        weak = ("<=", ">=", "!=") if comparison.operators == ORDER else ("!=",)
        for operator in (*weak, *strong):
            predicate = Predicate(("t", left), operator, ("t", right))
            rule = DenialConstraint(self._table.name, (predicate,))
            rule = self._examiner.canonical(rule, self._tables)
            yield operator, rule, atoms_of(rule, self._space, self._names)

    def _violating(self, rules: Sequence[DenialConstraint]) -> Mapping[DenialConstraint, int]:
        """How many rows violate constraints about single rows, in one job."""
        forms = [self._examiner.form(rule, self._tables, self._run.options) for rule in rules]
        single = [form for form in forms if isinstance(form, SingleRows)]
        everything = RowChange(self._table, self._table, self._table.segments)
        numbers = SingleRows.change(self._run, single, [everything], [0] * len(single))
        return {rule: number or 0 for rule, number in zip(rules, numbers, strict=True)}

    def _share_by_chance(self, comparison: Comparison, operator: str) -> float:
        """The share of random pairs of rows in which a cell of the one compares so with a cell of
        the other."""
        drawn = self._drawn[None]
        outcomes = drawn.outcomes[self._crossing.index(comparison)]
        return float(outcomes[[*_OUTCOMES[operator]]].sum()) / drawn.drawn

    def of_orders(self, bounds: NearBounds) -> Iterator[NearRule]:
        """Two columns that rise with each other, or against each other: among all rows, or else
        among those that agree in a third."""
        if len(self._ordered) < 2 or not 1 < self._table.rows <= MOST_ROWS:
            return
        self._draw([None, *self._groups])
        pairs = [
            (one, two, falling)
            for one, two in combinations(self._ordered, 2)
            for falling in (False, True)
        ]
        nearly = yield from self._counted([ColumnsInOrder(*each) for each in pairs], bounds)
        yield from self._counted(
            [
                ColumnsInOrder(*each, within)
                for each in pairs
                if ColumnsInOrder(*each) not in nearly
                for within in self._groups
                if within not in each[:2]
            ],
            bounds,
        )

    def _counted(
        self, orders: Sequence[ColumnsInOrder], bounds: NearBounds
    ) -> Generator[NearRule, None, set[ColumnsInOrder]]:
        """Those of some order rules that nearly hold; returns which hold, or nearly do."""
        rules = {order: self._rule(order) for order in orders}
        known = {
            order
            for order, rule in rules.items()
            if self._holds(atoms_of(rule, self._space, self._names))
        }
        asked = [
            order
            for order in orders
            if order not in known and self._drawn[order.within].may_hold(order, bounds)
        ]
        self._run.progress("near", candidates=len(asked))
        for order, counts in zip(asked, counted(self._run, self._table, asked), strict=True):
            if nearly_hold(counts, self._table.rows, bounds):
                known.add(order)
                if counts.removal:
                    rule = rules[order]
                    yield NearRule(rule, rule.table, counts.removal, self._table.rows)
        return known

    def _rule(self, order: ColumnsInOrder) -> DenialConstraint:
        """What an order rule denies."""
        within = [] if order.within is None else [(order.within, "=")]
        said = [*within, (order.lhs, "<"), (order.rhs, "<" if order.falling else ">")]
        predicates = tuple(
            Predicate(("t", self._names[c]), op, ("s", self._names[c])) for c, op in said
        )
        rule = DenialConstraint(self._table.name, predicates)
        written: DenialConstraint = self._examiner.canonical(rule, self._tables)
        return written

    def _draw(self, within: Sequence[int | None]) -> None:
        """Draw pairs of rows, unless that was done before."""
        missing = [each for each in within if each not in self._drawn]
        own = [each for each in self._space.comparisons if each.is_own and each.operators == ORDER]
        comparisons = [*own, *self._crossing]
        found = drawn_pairs(self._run, self._table, comparisons, missing)
        self._drawn |= dict(zip(missing, found, strict=True))

    def _holds(self, atoms: Sequence[int]) -> bool:
        """Whether a set of atoms holds, as far as the evidence tells."""
        return holds(atoms, self._space, self._holding)


def holds(atoms: Sequence[int], space: Space, holding: Masks) -> bool:
    """Whether a set of atoms contains one that no pair of rows satisfies."""
    [mask] = bitsets.from_columns([atoms], space.atoms)
    return bool(((holding & ~mask) == 0).all(axis=1).any())


def was_broken(rule: DenialConstraint, step: Step) -> bool:
    """Whether a batch broke one, by the minimal sets before and after."""
    evidence = step.evidence(SPACE)
    if evidence is None:
        return False
    before, after = evidence
    names = step.after.table.columns.names
    if not is_said(rule, after.space, names):
        return False
    atoms = atoms_of(rule, after.space, names)
    old, new = (holds(atoms, after.space, each.covers.keys.minimal) for each in (before, after))
    return old and not new
