"""What pairs of rows are compared in, and the atoms that a pair can satisfy.

A *comparison* puts a cell of row t beside a cell of row s: column A with A, or A with B; a
single-row one compares two cells of t, and its mirror image two of s. Its *atoms* are weak
predicates: ``=`` alone where only agreement counts (keys, functional dependencies), ``=`` and
``!=`` where cells have no order, ``<=``, ``>=`` and ``!=`` where they have one. Strong predicates
are sets of atoms: ``=`` is {<=, >=}, ``<`` is {<=, !=}. A constraint is a set of atoms, and a pair
violates it iff the pair satisfies them all.

A :class:`Space` numbers the atoms of some comparisons; evidence, covers and candidates know only
these numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from holdfast.model.records import form_of_field

AGREEMENT = ("=",)
EQUALITY = ("=", "!=")
ORDER = ("<=", ">=", "!=")
"""The atoms that a comparison can have."""

AGREEMENTS = "agreement"
"""The name of the space of keys and functional dependencies."""

BOTH, FIRST, SECOND = range(3)
"""Whose cells a comparison compares: one of t with one of s, two of t, two of s."""


@dataclass(frozen=True)
class Comparison:
    """A column beside a column, and the operators that are its atoms."""

    left: int
    right: int
    operators: tuple[str, ...] = AGREEMENT
    rows: int = BOTH

    @property
    def is_own(self) -> bool:
        """Whether it compares a column of t with the same column of s."""
        return self.left == self.right and self.rows == BOTH

    @property
    def mirror(self) -> Comparison:
        """The comparison that takes this one's place when t and s change places."""
        if self.rows == BOTH:
            return Comparison(self.right, self.left, self.operators, self.rows)
        other = SECOND if self.rows == FIRST else FIRST
        return Comparison(self.left, self.right, self.operators, other)


_LISTS = form_of_field(
    write=lambda comparisons: [[c.left, c.right, [*c.operators], c.rows] for c in comparisons],
    read=lambda form: tuple(
        Comparison(left, right, tuple(operators), rows) for left, right, operators, rows in form
    ),
)


@dataclass(frozen=True)
class Space:
    """The comparisons of a table's rows; atoms are numbered in their order.

    >>> space = Space("order", 2, (Comparison(0, 0, ORDER), Comparison(1, 1, EQUALITY)))
    >>> space.atoms, space.first
    (5, (0, 3))
    >>> space.mirrored([0, 2, 4])
    (1, 2, 4)
    """

    name: str
    columns: int  # of the table, whether compared or not
    comparisons: tuple[Comparison, ...] = field(metadata=_LISTS)

    @cached_property
    def first(self) -> tuple[int, ...]:
        """The first atom of every comparison."""
        at, firsts = 0, []
        for comparison in self.comparisons:
            firsts.append(at)
            at += len(comparison.operators)
        return tuple(firsts)

    @cached_property
    def atoms(self) -> int:
        """How many atoms there are."""
        return sum(len(comparison.operators) for comparison in self.comparisons)

    @cached_property
    def comparison_of(self) -> tuple[int, ...]:
        """The comparison that each atom belongs to."""
        sizes = (len(comparison.operators) for comparison in self.comparisons)
        return tuple(k for k, size in enumerate(sizes) for _ in range(size))

    def agreeing(self, k: int) -> tuple[int, ...]:
        """The atoms of a comparison that say that its cells are equal."""
        operators = self.comparisons[k].operators
        return tuple(self.first[k] + place for place, op in enumerate(operators) if op != "!=")

    @cached_property
    def agreement(self) -> bool:
        """Whether atoms are columns: evidence is the agree-set of a pair."""
        return self.comparisons == agreements(self.columns).comparisons

    @cached_property
    def symmetric(self) -> bool:
        """Whether both rows of a pair see the same, so that pairs have no order."""
        return self.mirror == tuple(range(self.atoms))

    @cached_property
    def mirror(self) -> tuple[int, ...]:
        """The atom that takes each one's place when t and s change places."""
        number = {comparison: k for k, comparison in enumerate(self.comparisons)}
        out = []
        for comparison in self.comparisons:
            other = number[comparison.mirror]
            operators = list(comparison.operators)
            if comparison.rows == BOTH and "<=" in operators:
                operators = [{"<=": ">=", ">=": "<="}.get(op, op) for op in operators]
            out += [self.first[other] + comparison.operators.index(op) for op in operators]
        return tuple(out)

    def written(self, atoms: Iterable[int], names: Sequence[str]) -> tuple[str, ...]:
        """Atoms as people read them: the column where agreement is all that counts, else the
        weak predicate."""
        out = []
        for atom in atoms:
            k = self.comparison_of[atom]
            comparison = self.comparisons[k]
            one = "s" if comparison.rows == SECOND else "t"
            two = "t" if comparison.rows == FIRST else "s"
            operator = comparison.operators[atom - self.first[k]]
            left, right = names[comparison.left], names[comparison.right]
            plain = comparison.operators == AGREEMENT and comparison.left == comparison.right
            out.append(left if plain else f"{one}.{left} {operator} {two}.{right}")
        return tuple(out)

    def mirrored(self, atoms: Iterable[int]) -> tuple[int, ...]:
        """A set of atoms as the other row of the pair sees it."""
        return tuple(sorted(self.mirror[atom] for atom in atoms))


def agreements(columns: int) -> Space:
    """The space of keys and functional dependencies: atom c is "equal in column c"."""
    return Space(AGREEMENTS, columns, tuple(Comparison(c, c) for c in range(columns)))
