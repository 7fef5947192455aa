"""Rules that nearly hold: how far they are from holding, and the cells that break them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.model.constraints import Constraint, FunctionalDependency, Key, Row
from holdfast.model.denial_constraints import WEAK, DenialConstraint
from holdfast.model.grammar import parse
from holdfast.model.inclusion_dependencies import InclusionDependency
from holdfast.model.names import listed
from holdfast.model.options import Options
from holdfast.model.records import ADDED, Serializable, form_of_field
from holdfast.model.results import AS_TEXT, Tabular

SHOWN = 20
"""So many rules that nearly hold are shown of a table, and so many suspects, unless all are asked
for."""


NEAR = "near"
"""Their part of ``holdfast show DIR PART``, which is no list of a kind."""

LISTED = 20
"""So many near rules of a table are listed at most; the others are counted."""

KEPT = 100
"""So many are kept at most, and suspect cells: the more rules suspect a cell, the likelier it is
wrong, also where these say nearly the same."""


@dataclass(frozen=True)
class NearBounds:
    """When a rule nearly holds."""

    strength: float = 0.8
    """The least share of the rhs that a lhs explains beyond chance (μ⁺)."""

    removal: float = 0.1
    """The largest share of the rows that a dependency would have to lose in order to hold."""

    key_removal: float = 0.01
    """The same of a key, and of a denial constraint."""

    missing: float = 0.05
    """The largest share of the distinct values of a foreign key that are missing."""

    repeated_rows: int = 30
    """So many rows at least lie in groups of two and more that agree on a lhs."""

    repeated_share: float = 0.01
    """And such a share of the rows at least."""

    gain: float = 0.5
    """The least share of what a lhs without one of its columns leaves open that this column
    explains."""

    columns: int = 2
    """The most columns of a lhs, and of a key."""

    @staticmethod
    def of(options: Options) -> NearBounds:
        """Those of a profile."""
        return NearBounds(
            options.near_strength,
            options.near_removal,
            options.near_key_removal,
            options.near_missing,
            columns=options.near_columns,
        )

    def twice(self) -> NearBounds:
        """Bounds that are twice as wide: a listed rule stays listed within these."""
        return replace(
            self,
            strength=1 - 2 * (1 - self.strength),
            removal=2 * self.removal,
            key_removal=2 * self.key_removal,
            missing=2 * self.missing,
        )

    def admit(self, near: NearRule) -> bool:
        """Whether a rule nearly holds, as far as its removal and its strength tell."""
        if near.of_values is not None:
            return (near.values or 0) <= self.missing * near.of_values
        share = self.key_removal if near.strength is None else self.removal
        strong = near.strength is None or near.strength >= self.strength
        return strong and near.removal <= share * near.of_rows


@dataclass(frozen=True)
class GroupSums:
    """What a batch changes of a dependency whose groups are looked up: how many groups of rows
    agree on the lhs, and how much they explain (:mod:`holdfast.kernels.explained`)."""

    groups: int
    explained: int  # rows, whole
    fraction: int  # and fractions of them


@dataclass(frozen=True)
class NearRule(Serializable):
    """A rule that would hold without a few rows: a key, a dependency, a foreign key, or a denial
    constraint."""

    rule: Constraint = field(metadata=form_of_field(str, parse))
    table: str
    removal: int
    """The least number of rows that would have to go (g3, as a number of rows)."""

    of_rows: int
    """The rows of the table."""

    strength: float | None = field(default=None, metadata=ADDED)
    """How much of the rhs a lhs explains beyond chance (μ⁺), to six digits; None for what is no
    dependency."""

    values: int | None = field(default=None, metadata=ADDED)
    """Of a key, the values that are used more than once; of a foreign key, those that are
    missing."""

    rows: int | None = field(default=None, metadata=ADDED)
    """Of a key, the rows that have such a value."""

    of_values: int | None = field(default=None, metadata=ADDED)
    """Of a foreign key, all distinct values of its columns."""

    sums: GroupSums | None = field(default=None, metadata=ADDED, repr=False)
    """What is stored of a dependency whose groups are looked up; None: its tuples are counted."""

    FORM = ("rule", "table", "removal", "of_rows", "strength", "values", "rows", "of_values")

    @property
    def lhs(self) -> tuple[str, ...]:
        """The columns of a key, on the left of a dependency, or that refer to others."""
        return sides_of(self.rule)[0]

    @property
    def rhs(self) -> str | None:
        """The column on the right of a dependency; None for others."""
        return next(iter(sides_of(self.rule)[1]), None)

    @property
    def suspected_column(self) -> str | None:
        """The column whose cells it suspects; None: it suspects several of a row together."""
        if self.rhs is not None:
            return self.rhs
        return self.lhs[0] if self.of_values is not None and len(self.lhs) == 1 else None

    @property
    def holds(self) -> bool:
        """Whether no row breaks it any more."""
        return self.removal == 0

    @property
    def sentence(self) -> str:
        """How far it is from holding.

        >>> NearRule(Key("orders", ("id",)), "orders", 9, 60000, values=9, rows=18).sentence
        '9 values are used twice (18 rows)'
        >>> country = FunctionalDependency("orders", ("city",), "country")
        >>> NearRule(country, "orders", 12, 60000, 0.99).sentence
        '12 rows of 60,000 differ from the rest of their city'
        """
        if self.holds:
            return "holds again"
        if self.of_values is not None:
            verb = "value is" if self.values == 1 else "values are"
            in_rows = "1 row" if self.removal == 1 else f"{self.removal:,} rows"
            return f"{self.values:,} {verb} missing ({in_rows})"
        if self.values is not None:
            verb = "value is" if self.values == 1 else "values are"
            often = "twice" if self.rows == 2 * self.values else "more than once"
            return f"{self.values:,} {verb} used {often} ({self.rows or 0:,} rows)"
        if self.rhs is None:
            rows = "row" if self.removal == 1 else "rows"
            return f"{self.removal:,} {rows} of {self.of_rows:,} would have to go"
        verb = "row of {:,} differs" if self.removal == 1 else "rows of {:,} differ"
        group = listed(self.lhs) if self.lhs else "table"
        return f"{self.removal:,} {verb.format(self.of_rows)} from the rest of their {group}"

    def __repr__(self) -> str:
        return f"<NearRule {self.rule}, {self.removal:,} of {self.of_rows:,} rows>"


@dataclass(frozen=True)
class NearList(Serializable):
    """What a version keeps of the rules of a table that nearly hold."""

    rules: tuple[NearRule, ...] = ()
    """Those that are kept, the strongest first, and those of them that hold again."""

    since: int = 0
    """The version in which they were looked for: since then no further ones were."""

    rows: int = 0
    """The rows of the table in that version."""

    columns: int = 0
    """The list is complete for keys and left sides of up to so many columns."""

    more: int = 0
    """How many more there were than are kept."""

    dismissed: tuple[str, ...] = ()
    """Rules that somebody does not want to see, or to have suspects of."""

    watched: tuple[str, ...] = ()
    """Rules that held and matter: where a few rows break one, it is listed from then on."""

    left_out: tuple[str, ...] = field(default=(), metadata=ADDED)
    """The kinds of rules that there was no time to look for, as people name them."""

    FORM = (("rules", "listed"), "since", "columns", ("more", "unlisted"), "dismissed", "left_out")

    @property
    def near(self) -> tuple[NearRule, ...]:
        """Those that rows break."""
        return tuple(each for each in self.rules if not each.holds)

    @property
    def listed(self) -> tuple[NearRule, ...]:
        """The first of them."""
        return self.near[:LISTED]

    @property
    def unlisted(self) -> int:
        """How many more there are, kept or not."""
        return self.more + len(self.near) - len(self.listed)

    def named(self, rule: Constraint) -> NearRule | None:
        """What it has of a rule; None: it is not listed."""
        return next((each for each in self.rules if each.rule == rule), None)

    def joined(self, others: Sequence[NearRule]) -> NearList:
        """With others at the end, as far as there is room."""
        known = {each.rule for each in self.rules}
        rest = [each for each in others if each.rule not in known]
        return replace(self, rules=(*self.rules, *rest)[:KEPT])


@dataclass(frozen=True)
class NearChange(Serializable):
    """What a batch did to a rule that nearly holds: None before where it held, or was not listed,
    and None after where it is not listed any more."""

    rule: str
    before: NearRule | None
    after: NearRule | None

    @property
    def more(self) -> int:
        """How many more rows break it; negative: fewer."""
        before, after = (0 if each is None else each.removal for each in (self.before, self.after))
        return after - before

    @property
    def is_new(self) -> bool:
        """Whether it was not listed before, and some rows break it now."""
        return self.before is None and self.after is not None

    @property
    def body(self) -> str:
        """The rule under its table's heading."""
        [*_, near] = filter(None, (self.before, self.after))
        return near.rule.body

    @property
    def sentence(self) -> str:
        """What happened.

        >>> country = FunctionalDependency("orders", ("city",), "country")
        >>> one, two = (NearRule(country, "orders", rows, 60300, 0.99) for rows in (12, 15))
        >>> NearChange("orders: city -> country", one, two).sentence
        'city -> country: 3 more rows break it (15 of 60,300)'
        >>> NearChange("orders: city -> country", None, one).sentence
        'city -> country: nearly holds now: 12 rows break it'
        """
        return f"{self.body}: {self._event}"

    @property
    def _event(self) -> str:
        before, after = self.before, self.after
        if after is None:
            return "is not listed any more"
        if after.holds:
            return "holds again"
        if before is None:
            return f"nearly holds now: {_breaking(after.removal)}"
        what = "more " if self.more > 0 else "fewer " if self.more < 0 else ""
        number = abs(self.more) or after.removal
        return f"{_breaking(number, what)} ({after.removal:,} of {after.of_rows:,})"


def near_changes(before: NearList, after: NearList) -> tuple[NearChange, ...]:
    """What happened to the rules of a table: those that rows began or ceased to break, or that
    another number of rows breaks, and those that are not listed any more."""
    old, new = ({str(each.rule): each for each in one.rules} for one in (before, after))
    changes = (NearChange(rule, old.get(rule), new.get(rule)) for rule in {**old, **new})
    return tuple(
        each
        for each in changes
        if each.before is None or each.after is None or each.before.removal != each.after.removal
    )


def _breaking(rows: int, what: str = "") -> str:
    return f"{rows:,} {what}{'row breaks' if rows == 1 else 'rows break'} it"


def strength(rows: int, groups: int, explained: float, squares: int) -> float:
    """How much of a rhs a lhs explains beyond chance (μ⁺), to six digits: of so many rows, in so
    many groups that agree on the lhs, so many are explained by their group; ``squares`` is the sum
    of the squares of how often each value of the rhs occurs. 0 where the lhs is a key, or the rhs
    constant.

    >>> strength(4, 2, 4.0, 8), strength(4, 2, 3.0, 8)
    (1.0, 0.25)
    """
    repeated, chance = rows - groups, 1 - squares / rows**2 if rows else 0.0
    if repeated <= 0 or chance <= 0:
        return 0.0
    unexplained = (rows - explained) / rows
    exactly = max(0.0, 1 - unexplained / chance * (rows - 1) / repeated)
    # Halves are rounded up although what is explained may be counted as a little less.
    return math.floor(exactly * 1e6 + 0.501) / 1e6


def has_suspects(rule: Constraint) -> bool:
    """Whether cells break a rule: a key, a dependency, or a foreign key."""
    return is_of_groups(rule) or isinstance(rule, InclusionDependency)


def is_of_groups(rule: Constraint) -> bool:
    """Whether rows that agree on some columns break a rule together: a key, or a dependency."""
    return isinstance(rule, Key | FunctionalDependency)


def denied(rule: Constraint) -> frozenset[str]:
    """What no two rows satisfy together under a key, a dependency or a denial constraint, in weak
    predicates: where a rule denies less at once than another one, that follows from it. Empty for
    other rules.

    >>> city = denied(FunctionalDependency("t", ("city",), "country"))
    >>> sorted(city), city <= denied(FunctionalDependency("t", ("id", "city"), "country"))
    (['!= country', '= city'], True)
    """
    if is_of_groups(rule):
        lhs, rhs = sides_of(rule)
        return frozenset([*(f"= {column}" for column in lhs), *(f"!= {column}" for column in rhs)])
    predicates = rule.predicates if isinstance(rule, DenialConstraint) else ()
    said = set[str]()
    for each in predicates:
        (row, left), (other, right) = each.left, each.right
        own = left == right and row != other
        for operator in {each.op, *WEAK[each.op]}:
            said.add(f"{operator} {left}" if own else f"{each.left} {operator} {each.right}")
    return frozenset(said)


def sides_of(rule: Constraint) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns of a rule, those on the right of a dependency apart."""
    if isinstance(rule, FunctionalDependency):
        return rule.lhs, (rule.rhs,)
    return rule.involved, ()


@dataclass(frozen=True)
class Suspect(Serializable):
    """A cell that differs from most of its group; of a key, a row that shares its values; of a
    foreign key, one whose values are missing."""

    table: str

    id: int
    """The number of the row."""

    row_key: Row | None
    """What tells the row from others: its values in the columns of the grain; None where the table
    has no grain, or rows are not kept."""

    columns: tuple[str, ...]
    """The column of the cell, or those of a key."""

    value: Any = field(metadata=AS_TEXT)
    """The value of the cell; of a key of several columns a list of them."""

    suggested: Any = field(metadata=AS_TEXT)
    """The value that most of the group has, or that is one edit away from one that is missing; None
    where there is none, or it is a null."""

    agreeing: int
    """So many rows of the group have it; of a key, and of a foreign key, the rows that share the
    values."""

    group: int
    """So many rows are in the group."""

    rule: Constraint = field(metadata=form_of_field(str, parse))
    """The strongest rule that suspects it."""

    rules: int
    """So many rules suspect it."""

    score: float
    """The sum of their strengths."""

    row: Row
    """The row as it came; only its number where rows are not kept."""

    @property
    def suspicion(self) -> str | None:
        """What is wrong with values that no group disagrees with: others share them, or they are
        missing elsewhere."""
        if isinstance(self.rule, InclusionDependency):
            return f"not in {self.rule.referenced_side}"
        return f"used by {self.group:,} rows" if isinstance(self.rule, Key) else None


@dataclass(frozen=True)
class Suspects(Tabular):
    """The rules that nearly hold, and the cells that they suspect, the highest scores first."""

    near: Sequence[NearRule]
    cells: Sequence[Suspect]

    total: int
    """How many cells are suspected, listed or not."""

    groups: int
    """In how many groups they are, of rows that agree on what is left of a rule; of a key, the
    values that rows share; of a foreign key, those that are missing."""

    def _listed(self) -> tuple[type, Sequence[Suspect]]:
        return Suspect, self.cells

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "near": [each.to_dict() for each in self.near],
            "suspects": [each.to_dict() for each in self.cells],
            "total": self.total,
            "groups": self.groups,
        }
