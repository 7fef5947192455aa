"""Denial constraints as values: comparisons of cells of two rows that no rows satisfy together."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from holdfast.model.constraints import FunctionalDependency, Key, OfTable
from holdfast.model.errors import InputError
from holdfast.model.names import listed, quoted
from holdfast.model.records import Serializable

Cell = tuple[str, str]
"""A cell in a predicate: its row, ``t`` or ``s``, and its column."""

ROWS = ("t", "s")
OPERATORS = ("=", "!=", "<", "<=", ">", ">=")

WEAK = {
    "=": ("<=", ">="),
    "!=": ("!=",),
    "<": ("<=", "!="),
    "<=": ("<=",),
    ">": (">=", "!="),
    ">=": (">=",),
}
"""The weak operators that together say the same, where cells have an order."""

STRONG = {frozenset(weak): operator for operator, weak in WEAK.items()}
"""The operator that says the same as some weak ones; all three together no cells satisfy."""

TURNED = {"=": "=", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Each operator when its two sides change places."""

FORMS = ("order", "conditional", "key", "fd", "other")
"""What a denial constraint can be: columns that rise or fall together, the same among rows that
agree, a key, a functional dependency, or none of these."""

COMPATIBLE, ORDERED, STRICT = "order-compatible", "order", "strict order"
"""How two columns are in order: never against each other; the same, and ties of the left one are
ties of the right one; the same, and there are no ties."""


@dataclass(frozen=True)
class Predicate(Serializable):
    """A comparison of two cells, of two rows ``t`` and ``s`` or of one of them.

    >>> str(Predicate(("t", "hired"), "<", ("s", "hired")))
    't.hired < s.hired'
    """

    left: Cell
    op: str
    right: Cell

    def __post_init__(self) -> None:
        if self.op not in OPERATORS:
            raise InputError(f"{self.op!r} is no comparison; there are {' '.join(OPERATORS)}")
        for row, column in (self.left, self.right):
            if row not in ROWS:
                raise InputError(f"{row!r}, the row of column {column!r}, has to be t or s")

    def __str__(self) -> str:
        (row, column), (other_row, other) = self.left, self.right
        return f"{row}.{quoted(column)} {self.op} {other_row}.{quoted(other)}"

    @property
    def turned(self) -> Predicate:
        """The same with its two sides in each other's place."""
        return Predicate(self.right, TURNED[self.op], self.left)


@dataclass(frozen=True)
class OrderRule:
    """How the order of rows by one column is that by another, perhaps among rows that agree.

    >>> rule = OrderRule("salary", "tax", within=("state",))
    >>> str(rule), rule.sentence
    ('order: salary ↑ → tax ↑, within state', 'tax rises with salary, within state')
    >>> rule = OrderRule("age", "price", falling=True, strength=COMPATIBLE)
    >>> str(rule), rule.sentence
    ('order-compatible: age ↑ ~ price ↓', 'price never rises when age rises')
    """

    lhs: str
    rhs: str
    falling: bool = False  # whether the right side falls when the left side rises
    strength: str = ORDERED  # or COMPATIBLE, STRICT
    within: tuple[str, ...] = ()  # the columns in which rows have to agree

    def __str__(self) -> str:
        sign = "~" if self.strength == COMPATIBLE else "→"
        arrow = "↓" if self.falling else "↑"
        body = f"{self.strength}: {quoted(self.lhs)} ↑ {sign} {quoted(self.rhs)} {arrow}"
        return body + self._condition

    @property
    def sentence(self) -> str:
        """The rule in words."""
        lhs, rhs = quoted(self.lhs), quoted(self.rhs)
        if self.strength == COMPATIBLE:
            body = f"{rhs} never {'rises' if self.falling else 'falls'} when {lhs} rises"
        elif self.falling:
            body = f"{rhs} falls when {lhs} rises"
        else:
            body = f"{rhs} rises with {lhs}"
        return body + (", without ties" if self.strength == STRICT else "") + self._condition

    @property
    def _condition(self) -> str:
        return f", within {listed(self.within)}" if self.within else ""


@dataclass(frozen=True, repr=False)
class DenialConstraint(OfTable):
    """No two rows satisfy all the predicates.

    >>> earlier = Predicate(("t", "hired"), "<", ("s", "hired"))
    >>> str(DenialConstraint("staff", (earlier, Predicate(("t", "id"), ">", ("s", "id")))))
    'staff: not (t.hired < s.hired and t.id > s.id)'
    """

    FORM = ("form", "predicates", "error")

    predicates: tuple[Predicate, ...]
    error: float = 0.0  # the share of ordered row pairs, or of rows within which it compares cells

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"not ({' and '.join(map(str, self.predicates))})"

    @property
    def involved(self) -> tuple[str, ...]:
        """The columns that it compares."""
        cells = [
            cell for predicate in self.predicates for cell in (predicate.left, predicate.right)
        ]
        return tuple(dict.fromkeys(column for _, column in cells))

    def _notes(self) -> list[str]:
        return [*([self.sentence] if self.sentence else []), *super()._notes()]

    @property
    def form(self) -> str:
        """What it is: one of ``FORMS``. A key has only equalities of columns with themselves, a
        functional dependency also one ``!=``, an order rule two inequalities and nothing else, a
        conditional one equalities beside them.

        >>> equal = Predicate(("t", "zip"), "=", ("s", "zip"))
        >>> differ = Predicate(("t", "city"), "!=", ("s", "city"))
        >>> DenialConstraint("people", (equal,)).form
        'key'
        >>> DenialConstraint("people", (equal, differ)).form
        'fd'
        """
        operators = self._of_columns()
        if operators is None:
            return "other"
        equal = sum(each == "=" for each in operators.values())
        differing = sum(each == "!=" for each in operators.values())
        inequalities = len(operators) - equal - differing
        if not inequalities and differing < 2:
            return "fd" if differing else "key"
        if inequalities == 2 and not differing:
            return "conditional" if equal else "order"
        return "other"

    @property
    def order_rule(self) -> OrderRule | None:
        """What an order rule, conditional or not, says; None: it is neither.

        >>> weak = Predicate(("t", "id"), "<=", ("s", "id"))
        >>> later = Predicate(("t", "hired"), ">", ("s", "hired"))
        >>> str(DenialConstraint("staff", (weak, later)).order_rule)
        'order: id ↑ → hired ↑'
        """
        operators = self._of_columns()
        if operators is None or self.form not in ("order", "conditional"):
            return None
        within = tuple(column for column, operator in operators.items() if operator == "=")
        (one, first), (two, second) = (
            (column, operator) for column, operator in operators.items() if operator != "="
        )
        weak = sum(operator.endswith("=") for operator in (first, second))
        if weak == 1 and second.endswith("="):
            # Ties of the side with the weak operator are ties of the other.
            one, two = two, one
        falling = first[0] == second[0]
        return OrderRule(one, two, falling, (COMPATIBLE, ORDERED, STRICT)[weak], within)

    @property
    def plain(self) -> Key | FunctionalDependency | None:
        """The key or functional dependency that says the same; None: it is neither.

        >>> equal = Predicate(("t", "zip"), "=", ("s", "zip"))
        >>> str(DenialConstraint("people", (equal,)).plain)
        'people: key(zip)'
        """
        operators = self._of_columns()
        if operators is None or self.form not in ("key", "fd"):
            return None
        same = tuple(column for column, operator in operators.items() if operator == "=")
        differing = [column for column, operator in operators.items() if operator == "!="]
        if differing:
            return FunctionalDependency(self.table, same, differing[0])
        return Key(self.table, same)

    @property
    def sentence(self) -> str | None:
        """An order rule, conditional or not, in words."""
        rule = self.order_rule
        return None if rule is None else rule.sentence

    @property
    def is_within_a_row(self) -> bool:
        """Whether it compares cells of one row alone.

        >>> late = Predicate(("t", "ordered"), ">", ("t", "shipped"))
        >>> DenialConstraint("orders", (late,)).is_within_a_row
        True
        """
        return len({row for each in self.predicates for row, _ in (each.left, each.right)}) == 1

    def _of_columns(self) -> dict[str, str] | None:
        """The operator by which each column of t is compared with that of s; None: there are other
        comparisons, or no cells can satisfy all of them."""
        weak: dict[str, frozenset[str]] = {}
        for each in self.predicates:
            (row, column), (other_row, other) = each.left, each.right
            if row == other_row or column != other:
                return None
            operator = each.op if row == "t" else TURNED[each.op]
            weak[column] = weak.get(column, frozenset()).union(WEAK[operator])
        if any(each not in STRONG for each in weak.values()):
            return None
        return {column: STRONG[each] for column, each in weak.items()}


def rules_first(
    constraints: Iterable[DenialConstraint], columns: Sequence[str]
) -> list[DenialConstraint]:
    """Order rules, then conditional ones, then the others; in each the shorter first, and those
    alike in table order."""
    place = {name: i for i, name in enumerate(columns)}

    rows = {both: i for i, both in enumerate([("t", "s"), ("t", "t"), ("s", "s"), ("s", "t")])}

    def key(each: DenialConstraint) -> tuple[int, int, list[tuple[int, int, int, int]]]:
        predicates = [
            (place[left], place[right], rows[row, other_row], OPERATORS.index(predicate.op))
            for predicate in each.predicates
            for (row, left), (other_row, right) in [(predicate.left, predicate.right)]
        ]
        return min(FORMS.index(each.form), 2), len(predicates), predicates

    return sorted(constraints, key=key)
