"""A rule in its one form, and what it is measured by.

Keys and functional dependencies are measured by pairs of rows that have the same tuple, inclusions
by the tuples of their two sides, rules within a row by rows, and all other denial constraints by
pairs of rows. A denial constraint that says what a key or a functional dependency says is measured
like it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from holdfast.input.row_input import Columns
from holdfast.kernels import bitsets, violations
from holdfast.kinds.denial_constraints.predicates import atoms_of, constraints, row_rule, space_of
from holdfast.model.commits import unknown_table
from holdfast.model.comparisons import Space
from holdfast.model.constraints import FunctionalDependency, Key, NotNull
from holdfast.model.denial_constraints import DenialConstraint, Predicate
from holdfast.model.errors import InputError
from holdfast.model.grammar import Rule, parse
from holdfast.model.inclusion_dependencies import Attribute, InclusionDependency
from holdfast.model.options import Options
from holdfast.tasks.tuples import RowRule

Tables = Mapping[str, Columns]


@dataclass(frozen=True)
class Side:
    """Columns of a table whose tuples are counted."""

    table: str
    columns: tuple[str, ...]
    nulls: bool  # whether a null is a value; else a tuple with one is left out
    of: str | None = None  # the rule whose left side it is, of an inclusion


@dataclass(frozen=True)
class Agreeing:
    """Pairs of rows that agree on a side and, where there is another, not on that."""

    table: str
    lhs: Side
    both: Side | None = None
    ordered: bool = False  # a pair counts twice, once for each order of its rows

    @property
    def sides(self) -> tuple[Side, ...]:
        """What is counted; all rows agree on no columns."""
        return tuple(each for each in (self.lhs, self.both) if each is not None and each.columns)


@dataclass(frozen=True)
class Contained:
    """Tuples of the left side that the right side lacks."""

    left: Side
    right: Side

    @property
    def sides(self) -> tuple[Side, ...]:
        """What is counted."""
        return self.left, self.right


@dataclass(frozen=True)
class OfRows:
    """Rows that violate a rule by themselves."""

    table: str
    rule: RowRule


@dataclass(frozen=True)
class OfPairs:
    """Ordered pairs of rows that satisfy all atoms."""

    table: str
    space: Space
    atoms: tuple[int, ...]


Measure = Agreeing | Contained | OfRows | OfPairs


def canonical(text: str, tables: Tables) -> str:
    """A rule as Holdfast writes it: columns in table order, each once, and of two ways to say the
    same one. A rule that these tables cannot have is an error."""
    return str(_canonical(parse(text), tables))


def _canonical(rule: Rule, tables: Tables) -> Rule:
    if isinstance(rule, InclusionDependency):
        return _canonical_inclusion(rule, tables)
    columns = _columns(rule.table, tables)
    if isinstance(rule, Key):
        return Key(rule.table, _in_order(rule.columns, rule.table, columns))
    if isinstance(rule, FunctionalDependency):
        columns.position(rule.rhs, rule.table)
        return replace(rule, lhs=_in_order(rule.lhs, rule.table, columns))
    if isinstance(rule, NotNull):
        columns.position(rule.column, rule.table)
        return rule
    return _canonical_denial(rule, columns)


def _columns(table: str, tables: Tables) -> Columns:
    if table not in tables:
        raise unknown_table(table, tables)
    return tables[table]


def _in_order(names: tuple[str, ...], table: str, columns: Columns) -> tuple[str, ...]:
    return tuple(sorted(set(names), key=lambda name: columns.position(name, table)))


def _canonical_inclusion(rule: InclusionDependency, tables: Tables) -> InclusionDependency:
    pairs: dict[tuple[Attribute, Attribute], tuple[int, int]] = {}
    for pair in zip(rule.dependent, rule.referenced, strict=True):
        sides = [(_columns(each.table, tables), each) for each in pair]
        places = [columns.position(each.column, each.table) for columns, each in sides]
        kinds = [columns.family(c) for (columns, _), c in zip(sides, places, strict=True)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{rule}: {pair[0]} has values of the kind {kinds[0]} and {pair[1]} of the kind "
                f"{kinds[1]}, which are never equal"
            )
        pairs[pair] = places[0], places[1]
    ordered = sorted(pairs, key=lambda pair: pairs[pair])
    return InclusionDependency(
        tuple(left for left, _ in ordered), tuple(right for _, right in ordered)
    )


def _canonical_denial(rule: DenialConstraint, columns: Columns) -> DenialConstraint:
    names = columns.names
    for each in rule.predicates:
        for _, column in (each.left, each.right):
            columns.position(column, rule.table)
        if each.left == each.right:
            raise InputError(f"{rule}: {each} compares a cell with itself")
    rule = replace(rule, predicates=tuple(map(_turned, rule.predicates)))
    if not rule.predicates:
        return rule
    space = space_of(rule, columns)
    atoms = atoms_of(rule, space, names)
    if violations.terms(space, atoms) is None:
        raise InputError(f"{rule}: no cells satisfy all of that, so it says nothing")
    both = bitsets.from_columns([atoms, space.mirrored(atoms)], space.atoms)
    written = constraints(both, space, rule.table, names)
    # Row t comes first in a rule that is about one row.
    return min(written, key=lambda each: (each.predicates[0].left[0] != "t", str(each)))


def _turned(each: Predicate) -> Predicate:
    """A predicate about two cells of one row, with these in one order."""
    same_row = each.left[0] == each.right[0]
    return each.turned if same_row and each.left > each.right else each


def measure(rule: Rule, tables: Tables, options: Options) -> Measure:
    """What a rule in its one form is measured by."""
    if isinstance(rule, InclusionDependency):
        nulls = options.inclusion_nulls == "values"
        left, right = (
            Side(each[0].table, tuple(one.column for one in each), nulls)
            for each in (rule.dependent, rule.referenced)
        )
        return Contained(replace(left, of=str(rule)), right)
    columns = tables[rule.table]
    if isinstance(rule, NotNull):
        return OfRows(rule.table, RowRule(columns.position(rule.column, rule.table)))
    if isinstance(rule, DenialConstraint):
        return _measure_of_denial(rule, columns, options)
    return _agreeing(rule, columns, options)


def _agreeing(rule: Key | FunctionalDependency, columns: Columns, options: Options) -> Agreeing:
    nulls = options.nulls == "equal"
    lhs = rule.columns if isinstance(rule, Key) else rule.lhs
    side = Side(rule.table, lhs, nulls)
    if isinstance(rule, Key):
        return Agreeing(rule.table, side)
    both = _in_order((*lhs, rule.rhs), rule.table, columns)
    return Agreeing(rule.table, side, Side(rule.table, both, nulls))


def _measure_of_denial(rule: DenialConstraint, columns: Columns, options: Options) -> Measure:
    if rule.form in ("key", "fd"):
        differing = [each.left[1] for each in rule.predicates if each.op == "!="]
        equal = _in_order(
            tuple(each.left[1] for each in rule.predicates if each.op != "!="), rule.table, columns
        )
        same = (
            FunctionalDependency(rule.table, equal, differing[0])
            if differing
            else Key(rule.table, equal)
        )
        return replace(_agreeing(same, columns, options), ordered=True)
    if rule.is_within_a_row:
        alone = row_rule(rule, columns)
        assert alone is not None
        return OfRows(rule.table, alone)
    space = space_of(rule, columns)
    atoms = atoms_of(rule, space, columns.names)
    return OfPairs(rule.table, space, atoms)
