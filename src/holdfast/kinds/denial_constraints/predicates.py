"""Between sets of atoms and denial constraints: strong predicates one way, weak ones the other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

from holdfast.input.row_input import Columns
from holdfast.kernels import bitsets, violations
from holdfast.kernels.bitsets import Masks
from holdfast.kinds.denial_constraints.ordering import column_order
from holdfast.kinds.denial_constraints.predicate_listing import WITH_ORDER
from holdfast.model.comparisons import BOTH, EQUALITY, FIRST, ORDER, SECOND, Comparison, Space
from holdfast.model.constraints import FunctionalDependency, Key
from holdfast.model.denial_constraints import STRONG, WEAK, Cell, DenialConstraint, Predicate
from holdfast.model.errors import InputError
from holdfast.model.names import lacking, listed, quoted
from holdfast.tasks.single_rows import Satisfies

_ROWS = {BOTH: ("t", "s"), FIRST: ("t", "t"), SECOND: ("s", "s")}


def constraints(
    sets: Masks, space: Space, table: str, columns: Sequence[str]
) -> list[DenialConstraint]:
    """The constraint of every set of atoms: one predicate a comparison, in column order, with row t
    on the left. A set with all atoms of a comparison says that cells are both equal and not."""
    rank = {k: at for at, k in enumerate(column_order(space))}
    # Atoms in column order are in the order of their comparisons, and most predicates recur.
    atoms = [(rank[space.comparison_of[atom]], atom) for atom in range(space.atoms)]
    known: dict[tuple[int, ...], tuple[Predicate, ...]] = {}
    out = []
    for each in bitsets.to_columns(sets):
        groups: dict[int, tuple[int, ...]] = {}
        for at, atom in sorted(atoms[atom] for atom in each):
            groups[at] = (*groups.get(at, ()), atom)
        predicates: list[Predicate] = []
        for group in groups.values():
            if group not in known:
                known[group] = _predicates(group, space, columns)
            predicates += known[group]
        out.append(DenialConstraint(table, tuple(predicates)))
    return out


def _predicates(
    atoms: tuple[int, ...], space: Space, columns: Sequence[str]
) -> tuple[Predicate, ...]:
    """Atoms of one comparison as the strongest operator, or two that contradict each other."""
    number = space.comparison_of[atoms[0]]
    comparison = space.comparisons[number]
    operators = [comparison.operators[atom - space.first[number]] for atom in atoms]
    if comparison.operators == ORDER:
        strong = STRONG.get(frozenset(operators))
        operators = ["=", "!="] if strong is None else [strong]
    rows = _ROWS[comparison.rows]
    left, right = (rows[0], columns[comparison.left]), (rows[1], columns[comparison.right])
    return tuple(Predicate(left, operator, right) for operator in operators)


def atoms_of(constraint: DenialConstraint, space: Space, columns: Sequence[str]) -> tuple[int, ...]:
    """The atoms that a constraint consists of, however it is written. One that the space cannot say
    is an error."""
    atoms: set[int] = set()
    numbers: dict[tuple[int, int, int] | None, int] = {
        (each.left, each.right, each.rows): k for k, each in enumerate(space.comparisons)
    }
    for predicate in constraint.predicates:
        for each in (predicate, predicate.turned):
            compared = _compared_columns(each, constraint.table, columns)
            if compared in numbers:
                atoms |= _atoms(each, predicate, space, numbers[compared], constraint.table)
                break
        else:
            _refuse(predicate, space, constraint.table, columns)
    return tuple(sorted(atoms))


def denial_of(rule: Key | FunctionalDependency | DenialConstraint) -> DenialConstraint:
    """What a rule about two rows denies.

    >>> str(denial_of(FunctionalDependency("people", ("zip",), "city")))
    'people: not (t.zip = s.zip and t.city != s.city)'
    """
    if isinstance(rule, DenialConstraint):
        return rule
    lhs = rule.columns if isinstance(rule, Key) else rule.lhs
    predicates = [Predicate(("t", column), "=", ("s", column)) for column in lhs]
    if isinstance(rule, FunctionalDependency):
        predicates.append(Predicate(("t", rule.rhs), "!=", ("s", rule.rhs)))
    return DenialConstraint(rule.table, tuple(predicates))


def row_rule(constraint: DenialConstraint, columns: Columns) -> Satisfies | None:
    """What a constraint about single rows denies of each; None: no cells satisfy all of that."""
    space = space_of(constraint, columns)
    asked = violations.terms(space, atoms_of(constraint, space, columns.names))
    return None if asked is None else Satisfies(tuple(asked))


def is_said(constraint: DenialConstraint, space: Space, columns: Sequence[str]) -> bool:
    """Whether a space has the predicates of a constraint."""
    try:
        atoms_of(constraint, space, columns)
    except InputError:
        return False
    return True


def space_of(constraint: DenialConstraint, columns: Columns) -> Space:
    """The smallest space that has the predicates of a constraint, and their mirror images."""
    wanted: dict[tuple[int, int, int], bool] = {}  # whether a comparison asks for order
    for predicate in constraint.predicates:
        ordered = predicate.op not in ("=", "!=")
        either = [
            _compared_columns(each, constraint.table, columns.names)
            for each in (predicate, predicate.turned)
        ]
        compared = next(each for each in either if each is not None)
        wanted[compared] = wanted.get(compared, False) or ordered
    _expect_comparable(constraint, columns, wanted)
    both: dict[tuple[int, int, int], bool] = {}
    for (left, right, rows), ordered in wanted.items():
        mirror = Comparison(left, right, EQUALITY, rows).mirror
        for compared in ((left, right, rows), (mirror.left, mirror.right, mirror.rows)):
            both[compared] = both.get(compared, False) or ordered
    # A comparison has the order that its mirror image has.
    comparisons = []
    for left, right, rows in both:
        mirror = Comparison(left, right, EQUALITY, rows).mirror
        ordered = both[left, right, rows] or both[mirror.left, mirror.right, mirror.rows]
        comparisons.append(Comparison(left, right, ORDER if ordered else EQUALITY, rows))
    return Space("rule", len(columns.names), tuple(comparisons))


def _expect_comparable(
    constraint: DenialConstraint, columns: Columns, wanted: Mapping[tuple[int, int, int], bool]
) -> None:
    for (left, right, _), ordered in wanted.items():
        kinds = [columns.family(c) for c in (left, right)]
        if kinds[0] != kinds[1]:
            raise InputError(
                f"{constraint}: column {quoted(columns.names[left])} has values of the kind "
                f"{kinds[0]} and {quoted(columns.names[right])} of the kind {kinds[1]}, which are "
                "never equal"
            )
        if ordered and columns.concealed:
            raise InputError(
                f"{constraint}: column {quoted(columns.names[left])} has no order, because the "
                "profile keeps no values; rules can compare by = and != alone"
            )
        if ordered and kinds[0] not in WITH_ORDER:
            raise InputError(
                f"{constraint}: column {quoted(columns.names[left])} is of type "
                f"{columns.types[left]}, which has no order"
            )


def _compared_columns(
    predicate: Predicate, table: str, columns: Sequence[str]
) -> tuple[int, int, int] | None:
    """The columns that a predicate compares, by position, and of which rows; None where row s is
    on the left of row t, which no space has."""
    positions = []
    for _, column in (predicate.left, predicate.right):
        if column not in columns:
            raise InputError(lacking(f"table {table!r}", "column", column, columns))
        positions.append(columns.index(column))
    rows = (predicate.left[0], predicate.right[0])
    whose = next((each for each, both in _ROWS.items() if both == rows), None)
    return None if whose is None else (positions[0], positions[1], whose)


def _atoms(
    predicate: Predicate, written: Predicate, space: Space, number: int, table: str
) -> set[int]:
    comparison = space.comparisons[number]
    weak = WEAK[predicate.op] if comparison.operators == ORDER else (predicate.op,)
    if not set(weak) <= set(comparison.operators):
        columns = dict.fromkeys(column for _, column in (written.left, written.right))
        verb = "is" if len(columns) == 1 else "are"
        raise InputError(
            f"{written} cannot be asked of table {table!r}: {listed(columns)} {verb} compared by "
            f"{' and '.join(comparison.operators)} alone"
        )
    return {space.first[number] + comparison.operators.index(each) for each in weak}


def _refuse(predicate: Predicate, space: Space, table: str, columns: Sequence[str]) -> NoReturn:
    if predicate.left == predicate.right:
        raise InputError(f"{predicate} compares a cell of table {table!r} with itself")
    compared = {c for each in space.comparisons for c in (each.left, each.right)}
    for _, column in (predicate.left, predicate.right):
        if columns.index(column) not in compared:
            raise InputError(
                f"{predicate} cannot be asked of table {table!r}: column {quoted(column)} is not "
                f"compared; compared are {listed(columns[c] for c in sorted(compared))}"
            )
    left, right = predicate.left[1], predicate.right[1]
    partners = {
        other
        for each in space.comparisons
        for one, other in [(each.left, each.right), (each.right, each.left)]
        if one == columns.index(left) and _same_rows(each, predicate.left, predicate.right)
    }
    names = [columns[c] for c in sorted(partners)]
    where = "in one row" if predicate.left[0] == predicate.right[0] else "in two rows"
    raise InputError(
        f"{predicate} cannot be asked of table {table!r}: {where}, {quoted(left)} is not compared "
        f"with {quoted(right)}, but with {listed(names) if names else 'no column'}"
    )


def _same_rows(comparison: Comparison, left: Cell, right: Cell) -> bool:
    return (comparison.rows == BOTH) == (left[0] != right[0])
