"""Rules that nearly hold: how far they are from holding, and the cells that break them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from holdfast.model.constraints import Constraint, FunctionalDependency, Key, Row
from holdfast.model.grammar import parse
from holdfast.model.options import Options
from holdfast.model.records import ADDED, Serializable, form_of_field
from holdfast.model.results import Tabular

SHOWN = 20
"""So many rules that nearly hold are shown of a table, and so many suspects, unless all are asked
for."""


LISTED = 20
"""So many near rules of a table are listed and kept at most; the others are counted."""


@dataclass(frozen=True)
class NearBounds:
    """When a rule nearly holds."""

    strength: float = 0.8
    """The least share of the rhs that a lhs explains beyond chance (μ⁺)."""

    removal: float = 0.1
    """The largest share of the rows that a dependency would have to lose in order to hold."""

    key_removal: float = 0.01
    """The same of a key."""

    repeated_rows: int = 30
    """So many rows at least lie in groups of two and more that agree on a lhs."""

    repeated_share: float = 0.01
    """And such a share of the rows at least."""

    columns: int = 2
    """The most columns of a lhs, and of a key."""

    @staticmethod
    def of(options: Options) -> NearBounds:
        """Those of a profile."""
        return NearBounds(
            options.near_strength,
            options.near_removal,
            options.near_key_removal,
            columns=options.near_columns,
        )

    def twice(self) -> NearBounds:
        """Bounds that are twice as wide: a listed rule stays listed within these."""
        return replace(
            self,
            strength=1 - 2 * (1 - self.strength),
            removal=2 * self.removal,
            key_removal=2 * self.key_removal,
        )

    def admit(self, near: NearRule) -> bool:
        """Whether a rule nearly holds, as far as its removal and its strength tell."""
        share = self.key_removal if near.strength is None else self.removal
        strong = near.strength is None or near.strength >= self.strength
        return strong and near.removal <= share * near.of_rows


@dataclass(frozen=True)
class NearRule(Serializable):
    """A key or a dependency that would hold without a few rows."""

    rule: Constraint = field(metadata=form_of_field(str, parse))
    table: str
    removal: int
    """The least number of rows that would have to go (g3, as a number of rows)."""

    of_rows: int
    """The rows of the table."""

    strength: float | None = field(default=None, metadata=ADDED)
    """How much of the rhs a lhs explains beyond chance (μ⁺), to six digits; None for a key."""

    values: int | None = field(default=None, metadata=ADDED)
    """Of a key, the values that are used more than once."""

    rows: int | None = field(default=None, metadata=ADDED)
    """Of a key, the rows that have such a value."""

    @property
    def lhs(self) -> tuple[str, ...]:
        """The columns of a key, or on the left of a dependency."""
        return sides_of(self.rule)[0]

    @property
    def rhs(self) -> str | None:
        """The column on the right; None for a key."""
        return next(iter(sides_of(self.rule)[1]), None)

    @property
    def holds(self) -> bool:
        """Whether no row breaks it any more."""
        return self.removal == 0

    def __repr__(self) -> str:
        return f"<NearRule {self.rule}, {self.removal:,} of {self.of_rows:,} rows>"


@dataclass(frozen=True)
class NearList(Serializable):
    """What a version keeps of the rules of a table that nearly hold."""

    rules: tuple[NearRule, ...] = ()
    """Those that are listed, the strongest first, and those of them that hold again."""

    since: int = 0
    """The version in which they were looked for: since then no further ones were."""

    rows: int = 0
    """The rows of the table in that version."""

    columns: int = 0
    """The list is complete for keys and left sides of up to so many columns."""

    more: int = 0
    """How many more there were than are listed."""

    dismissed: tuple[str, ...] = ()
    """Rules that somebody does not want to see, or to have suspects of."""

    watched: tuple[str, ...] = ()
    """Rules that held and matter: where a few rows break one, it is listed from then on."""

    @property
    def near(self) -> tuple[NearRule, ...]:
        """Those that rows break."""
        return tuple(each for each in self.rules if not each.holds)

    def joined(self, others: Sequence[NearRule]) -> NearList:
        """With others at the end, as far as there is room."""
        known = {each.rule for each in self.rules}
        rest = [each for each in others if each.rule not in known]
        return replace(self, rules=(*self.rules, *rest)[:LISTED])


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
    return round(max(0.0, 1 - unexplained / chance * (rows - 1) / repeated), 6)


def has_suspects(rule: Constraint) -> bool:
    """Whether cells can be suspected of breaking a rule."""
    return isinstance(rule, Key | FunctionalDependency)


def sides_of(rule: Constraint) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The columns on the left and on the right of one that has; a key has none there."""
    assert isinstance(rule, Key | FunctionalDependency)
    return (rule.columns, ()) if isinstance(rule, Key) else (rule.lhs, (rule.rhs,))


@dataclass(frozen=True)
class Suspect:
    """A cell that differs from most of its group; of a key, a row that shares its values."""

    table: str

    columns: tuple[str, ...]
    """The column of the cell, or those of a key."""

    row: Row
    """The row as it came; only its number where rows are not kept."""

    suggested: Any
    """The value that most of the group has; None where there is none, or it is a null."""

    agreeing: int
    """So many rows of the group have it; of a key, the rows that share the values."""

    group: int
    """So many rows are in the group."""

    rule: Constraint
    """The strongest rule that suspects it."""

    rules: int
    """So many rules suspect it."""

    score: float
    """The sum of their strengths."""

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "table": self.table,
            "columns": [*self.columns],
            "row": self.row,
            "suggested": self.suggested,
            "agreeing": self.agreeing,
            "group": self.group,
            "rule": str(self.rule),
            "rules": self.rules,
            "score": self.score,
        }


@dataclass(frozen=True)
class Suspects(Tabular):
    """The rules that nearly hold, and the cells that they suspect, the highest scores first."""

    near: Sequence[NearRule]
    cells: Sequence[Suspect]

    total: int
    """How many cells are suspected, listed or not."""

    def _listed(self) -> tuple[type, Sequence[Suspect]]:
        return Suspect, self.cells

    def to_dict(self) -> dict[str, Any]:
        """The JSON form."""
        return {
            "near": [each.to_dict() for each in self.near],
            "suspects": [each.to_dict() for each in self.cells],
            "total": self.total,
        }
