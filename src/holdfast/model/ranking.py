"""What matters first: constraints with scores, and the grain of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from holdfast.model.constraints import Constraint, Key
from holdfast.model.near import NearRule, denied
from holdfast.model.records import ADDED, INLINE, Serializable

STABILITY = 0.15
"""The weight of the confidence in a score; the rest is what the kind itself says."""

UNTRIED = 0.5
"""The confidence in a constraint that no batch has tried yet."""


@dataclass(frozen=True)
class Stability(Serializable):
    """How a constraint stood up to the batches of its tables.

    >>> Stability(batches=0, rows=0).confidence
    0.5
    >>> Stability(batches=8, rows=500, survived=8).confidence
    0.9
    """

    FORM = (
        *("batches", "rows", "survived", "broke", "since", "known_from"),
        ("confidence", "rounded_confidence"),
    )

    batches: int  # that it has survived since it came, or since the history begins
    rows: int  # that those batches inserted, deleted or updated
    survived: int = 0  # batches in all of the history
    broke: int = 0  # how often it did
    since: int = 1  # the version from which on it has held
    known_from: int = 1  # the version with which the history of it begins

    @property
    def confidence(self) -> float:
        """From 0 to 1: the share of batches that it survives, by the rule of succession."""
        return (self.survived + 1) / (self.survived + self.broke + 2)

    @property
    def sentence(self) -> str:
        """For how long it has held."""
        batches = f"{self.batches:,} batch{'' if self.batches == 1 else 'es'}"
        rows = f"{self.rows:,} changed row{'' if self.rows == 1 else 's'}"
        often = "once" if self.broke == 1 else f"{self.broke:,} times"
        if self.batches:
            held = f"held through {batches} with {rows}"
        else:
            held = f"back since version {self.since}" if self.broke else "not tried by a batch yet"
        return held + (f", broke {often} before" if self.broke else "")

    @property
    def rounded_confidence(self) -> float:
        """The confidence as it is shown."""
        return round(self.confidence, 4)


@dataclass(frozen=True)
class Ranked(Serializable):
    """A constraint with how much it matters: 0 to 1, to be compared within its kind alone."""

    FORM = (
        *((INLINE, "constraint"), "score", "reasons", "tested", "by_chance"),
        *("implied_by", "stability", "near"),
    )

    constraint: Constraint
    score: float
    reasons: tuple[str, ...] = ()
    implied_by: tuple[Constraint, ...] = field(default=(), metadata=ADDED)
    """Others of the list, or rules that nearly hold, from which it follows."""
    stability: Stability | None = field(default=None, metadata=ADDED)  # None: nobody looked
    near: NearRule | None = field(default=None, metadata=ADDED)  # None: it holds
    tested: int | None = field(default=None, metadata=ADDED)
    """Pairs of rows (of a rule about single rows, rows) that could have broken it; None: that is
    not known, or says nothing."""
    by_chance: bool = field(default=False, metadata=ADDED)
    """Whether so few could have that it likely holds by chance: then it is counted, not shown."""

    @property
    def stands_alone(self) -> bool:
        """Whether it follows from nothing else, and is more than chance."""
        return not self.implied_by and not self.by_chance

    def __str__(self) -> str:
        return str(self.constraint)

    def __repr__(self) -> str:
        return f"<Ranked {self.constraint}, score {self.score:.3g}>"


@dataclass(frozen=True)
class Grain(Serializable):
    """What one row of a table stands for: the columns of its best key; None: it has no key. That
    may be one that nearly holds."""

    FORM = (("columns", "key.columns"), "reason", "removal")

    table: str
    key: Key | None
    reason: str
    removal: int = field(default=0, metadata=ADDED)
    """So many rows are too many, where the key nearly holds."""


def in_order(some: Iterable[Ranked]) -> list[Ranked]:
    """Those with the highest scores first; behind them what others imply, and then what likely
    holds by chance."""
    return sorted(some, key=lambda each: (each.by_chance, bool(each.implied_by), -each.score))


def behind(near: Sequence[NearRule], some: Iterable[Ranked]) -> list[Ranked]:
    """Some that hold, in order; behind the others, those that follow from a rule that nearly
    does: they say no more than it, but for the rows that break it."""
    rules = [(each.rule, said) for each in near if (said := denied(each.rule))]
    return in_order(_behind(rules, each) for each in some)


def _behind(rules: Sequence[tuple[Constraint, frozenset[str]]], each: Ranked) -> Ranked:
    said = denied(each.constraint)
    by = tuple(rule for rule, less in rules if less <= said and rule != each.constraint)
    return replace(each, implied_by=by) if by else each


def broke(ranked: Ranked) -> str:
    """A note that a constraint broke before, where it did."""
    stability = ranked.stability
    return f"  ({stability.sentence})" if stability is not None and stability.broke else ""
