"""Constraints as values: they compare, print and know their dict form."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from holdfast.model.errors import InputError
from holdfast.model.markup import Written, rows
from holdfast.model.names import listed, quoted

Row = dict[str, Any]


class Constraint(Protocol):
    """What every constraint can do; ``str`` gives the form that the grammar parses."""

    @property
    def body(self) -> str:
        """The form under a heading that names the table."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""


HOLDS, REFUTED, EMPTY = range(3)
"""What was found of a candidate for an inclusion of several columns; empty: the left side has no
tuple without a null."""

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
class Key(Written):
    """Columns on which no two rows agree, and no fewer of them would do.

    >>> str(Key("orders", ("id",))), str(Key("orders", ())), Key("orders", ("a", "b")).body
    ('orders: key(id)', 'orders: key()', 'key(a, b)')
    """

    table: str
    columns: tuple[str, ...]
    error: float | None = None  # the share of row pairs that agree on it; None: none does

    def __str__(self) -> str:
        return f"{quoted(self.table)}: {self.body}"

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"key({', '.join(map(quoted, self.columns))})"

    def __repr__(self) -> str:
        return f"<Key {self}{'' if self.error is None else f', error {self.error:.3g}'}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which stands under its table's name."""
        form: dict[str, Any] = {"columns": list(self.columns)}
        return form if self.error is None else {**form, "error": self.error}

    @staticmethod
    def from_dict(table: str, form: dict[str, Any]) -> Key:
        """The value of a JSON form."""
        return Key(table, tuple(form["columns"]), form.get("error"))


@dataclass(frozen=True)
class NonKey(Written):
    """Columns on which two rows agree, and with any further column none do."""

    table: str
    columns: tuple[str, ...]
    witness: tuple[Row, Row] | None = None

    def __str__(self) -> str:
        return listed(self.columns)

    def __repr__(self) -> str:
        return f"<NonKey {self}>"

    def _repr_html_(self) -> str:
        return super()._repr_html_() + (rows(self.witness, self.columns) if self.witness else "")

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which stands under its table's name."""
        witness = list(self.witness) if self.witness else None
        return {"columns": list(self.columns), "witness": witness}

    @staticmethod
    def from_dict(table: str, form: dict[str, Any]) -> NonKey:
        """The value of a JSON form."""
        witness = form["witness"]
        return NonKey(table, tuple(form["columns"]), (witness[0], witness[1]) if witness else None)


@dataclass(frozen=True)
class FunctionalDependency(Written):
    """Rows that agree on the left side agree on the right, and no fewer columns on the left do.

    >>> str(FunctionalDependency("people", ("zip",), "city"))
    'people: zip -> city'
    >>> FunctionalDependency("people", (), "planet").body
    '{} -> planet'
    """

    table: str
    lhs: tuple[str, ...]
    rhs: str
    error: float = 0.0  # the share of row pairs that violate it

    def __str__(self) -> str:
        return f"{quoted(self.table)}: {self.body}"

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"{listed(self.lhs)} -> {quoted(self.rhs)}"

    def __repr__(self) -> str:
        return f"<FunctionalDependency {self}{_error(self.error)}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which stands under its table's name."""
        return {"lhs": list(self.lhs), "rhs": self.rhs, "error": self.error}

    @staticmethod
    def from_dict(table: str, form: dict[str, Any]) -> FunctionalDependency:
        """The value of a JSON form."""
        return FunctionalDependency(table, tuple(form["lhs"]), form["rhs"], form["error"])


@dataclass(frozen=True)
class NotNull(Written):
    """A column that has a value in every row.

    >>> str(NotNull("orders", "id"))
    'orders: id not null'
    """

    table: str
    column: str

    def __str__(self) -> str:
        return f"{quoted(self.table)}: {self.body}"

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"{quoted(self.column)} not null"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which stands under its table's name."""
        return {"column": self.column}

    @staticmethod
    def from_dict(table: str, form: dict[str, Any]) -> NotNull:
        """The value of a JSON form."""
        return NotNull(table, form["column"])


@dataclass(frozen=True)
class Predicate:
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

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"left": list(self.left), "op": self.op, "right": list(self.right)}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> Predicate:
        """The value of a JSON form."""
        (row, column), (other_row, other) = form["left"], form["right"]
        return Predicate((row, column), form["op"], (other_row, other))


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


@dataclass(frozen=True)
class DenialConstraint(Written):
    """No two rows satisfy all the predicates.

    >>> earlier = Predicate(("t", "hired"), "<", ("s", "hired"))
    >>> str(DenialConstraint("staff", (earlier, Predicate(("t", "id"), ">", ("s", "id")))))
    'staff: not (t.hired < s.hired and t.id > s.id)'
    """

    table: str
    predicates: tuple[Predicate, ...]
    error: float = 0.0  # the share of ordered row pairs that violate it

    def __str__(self) -> str:
        return f"{quoted(self.table)}: {self.body}"

    @property
    def body(self) -> str:
        """How it is written under its table's heading."""
        return f"not ({' and '.join(map(str, self.predicates))})"

    def __repr__(self) -> str:
        return f"<DenialConstraint {self}{_error(self.error)}>"

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

    def to_dict(self) -> dict[str, Any]:
        """The JSON form, which stands under its table's name."""
        predicates = [each.to_dict() for each in self.predicates]
        return {"form": self.form, "predicates": predicates, "error": self.error}

    @staticmethod
    def from_dict(table: str, form: dict[str, Any]) -> DenialConstraint:
        """The value of a JSON form."""
        predicates = tuple(map(Predicate.from_dict, form["predicates"]))
        return DenialConstraint(table, predicates, form["error"])


@dataclass(frozen=True)
class AgreeSet:
    """The columns in which some pairs of rows agree, and no others, with how many pairs do."""

    columns: tuple[str, ...]
    pairs: int

    def __repr__(self) -> str:
        return f"<AgreeSet {listed(self.columns)}, pairs {self.pairs:,}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {"columns": list(self.columns), "pairs": self.pairs}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> AgreeSet:
        """The value of a JSON form."""
        return AgreeSet(tuple(form["columns"]), form["pairs"])


Sets = TypeVar("Sets", Key, NonKey, AgreeSet)


def shortest_first(sets: Iterable[Sets], columns: Sequence[str]) -> list[Sets]:
    """By their number of columns, and those alike in table order.

    >>> keys = [Key("t", ("b", "a")), Key("t", ("b",)), Key("t", ("a",))]
    >>> [key.body for key in shortest_first(keys, "ab")]
    ['key(a)', 'key(b)', 'key(b, a)']
    """
    place = {name: i for i, name in enumerate(columns)}
    return sorted(sets, key=lambda each: (len(each.columns), [place[c] for c in each.columns]))


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


@dataclass(frozen=True)
class Attribute:
    """A column of a table, as one among those of all tables.

    >>> str(Attribute("orders", "customer id")), str(Attribute("a.b", "c`d"))
    ('orders.customer id', '`a.b`.`c``d`')
    """

    table: str
    column: str

    def __str__(self) -> str:
        return f"{_dotted(self.table)}.{_dotted(self.column)}"

    @staticmethod
    def parse(text: str) -> Attribute:
        """The attribute that prints like this.

        >>> Attribute.parse("`a.b`.c")
        Attribute(table='a.b', column='c')
        """
        match = re.fullmatch(r"(`(?:[^`]|``)+`|[^`.]+)\.(`(?:[^`]|``)+`|[^`.]+)", text, re.DOTALL)
        if match is None:
            raise InputError(
                f"{text!r} is not a column of a table; write table.column, and a name that has a "
                "dot or a backtick in backticks"
            )
        return Attribute(*(_undotted(name) for name in match.groups()))

    @staticmethod
    def of(given: Attribute | str) -> Attribute:
        """The attribute that is meant: one, or how it prints."""
        if isinstance(given, Attribute):
            return given
        if isinstance(given, str):
            return Attribute.parse(given)
        raise InputError(
            f"{given!r} is not a column of a table; give an Attribute, such as "
            "foreign_key.dependent[0], or text, such as 'orders.customer_id'"
        )


def _dotted(name: str) -> str:
    if "." in name or "`" in name:
        return "`" + name.replace("`", "``") + "`"
    return name


def _undotted(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name


@dataclass(frozen=True)
class Cluster:
    """Attributes that have some values in common, and no other attribute has them."""

    attributes: tuple[Attribute, ...]
    values: int  # how many

    def __str__(self) -> str:
        return ", ".join(map(str, self.attributes))

    def __repr__(self) -> str:
        return f"<Cluster {self}, values {self.values:,}>"

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        attributes = [[each.table, each.column] for each in self.attributes]
        return {"attributes": attributes, "values": self.values}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> Cluster:
        """The value of a JSON form."""
        attributes = (Attribute(table, column) for table, column in form["attributes"])
        return Cluster(tuple(attributes), form["values"])


@dataclass(frozen=True)
class InclusionDependency(Written):
    """Every value of the dependent columns occurs in the referenced ones, or a share of them does.

    The columns of a side are of one table. Of one that a change lost, the coverage is what the
    change left of it: None where that is not known (several columns), or where there are no values
    any more.

    >>> str(InclusionDependency((Attribute("orders", "customer"),), (Attribute("people", "id"),)))
    'orders(customer) in people(id)'
    """

    dependent: tuple[Attribute, ...]
    referenced: tuple[Attribute, ...]
    coverage: float | None = 1.0  # the share of the dependent's distinct values

    def __str__(self) -> str:
        return f"{_side(self.dependent)} in {_side(self.referenced)}"

    def __repr__(self) -> str:
        known = self.coverage is not None and self.coverage < 1
        partly = f", coverage {self.coverage:.6g}" if known else ""
        return f"<InclusionDependency {self}{partly}>"

    def _notes(self) -> list[str]:
        known = self.coverage is not None and self.coverage < 1
        return [f"{self.coverage:.6g} of the values"] if known else []

    @property
    def body(self) -> str:
        """The same as the whole: it names its tables itself."""
        return str(self)

    @property
    def sides(self) -> tuple[tuple[Attribute, ...], tuple[Attribute, ...]]:
        """What it is about, whatever its coverage."""
        return self.dependent, self.referenced

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {**_sides(self.dependent, self.referenced), "coverage": self.coverage}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> InclusionDependency:
        """The value of a JSON form."""
        return InclusionDependency(
            _attributes(form["dependent"]), _attributes(form["referenced"]), form["coverage"]
        )


@dataclass(frozen=True)
class ForeignKey(Written):
    """An inclusion in a minimal key of another table, with how likely it is meant: 0 to 1."""

    dependent: tuple[Attribute, ...]
    referenced: tuple[Attribute, ...]
    score: float
    coverage: float = 1.0  # the share of the dependent's distinct values

    def __str__(self) -> str:
        return f"{_side(self.dependent)} in {_side(self.referenced)}"

    def __repr__(self) -> str:
        return f"<ForeignKey {self}, score {self.score:.3g}>"

    def _notes(self) -> list[str]:
        return [f"score {self.score:.3g}"]

    @property
    def inclusion(self) -> InclusionDependency:
        """The dependency alone, which can be asked for."""
        return InclusionDependency(self.dependent, self.referenced, self.coverage)

    @property
    def body(self) -> str:
        """The same as the whole: it names its tables itself."""
        return str(self)

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        sides = _sides(self.dependent, self.referenced)
        return {**sides, "score": self.score, "coverage": self.coverage}

    @staticmethod
    def from_dict(form: dict[str, Any]) -> ForeignKey:
        """The value of a JSON form."""
        return ForeignKey(
            _attributes(form["dependent"]), _attributes(form["referenced"]), form["score"]
        )


Rule = Key | FunctionalDependency | InclusionDependency | NotNull | DenialConstraint
"""What the grammar can say."""


def _side(attributes: tuple[Attribute, ...]) -> str:
    columns = ", ".join(quoted(each.column) for each in attributes)
    return f"{quoted(attributes[0].table)}({columns})"


def _sides(dependent: tuple[Attribute, ...], referenced: tuple[Attribute, ...]) -> dict[str, Any]:
    """The JSON form of both sides; the columns of a side are of one table."""
    return {
        name: {"table": side[0].table, "columns": [each.column for each in side]}
        for name, side in (("dependent", dependent), ("referenced", referenced))
    }


def _attributes(side: dict[str, Any]) -> tuple[Attribute, ...]:
    return tuple(Attribute(side["table"], column) for column in side["columns"])


def _error(share: float) -> str:
    return f", error {share:.3g}" if share else ""
