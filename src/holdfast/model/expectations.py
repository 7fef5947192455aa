"""Expectations: rules that people rely on, and how far the rows are from them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from holdfast.model.constraints import Row
from holdfast.model.errors import InputError
from holdfast.model.grammar import Rule, parse
from holdfast.model.records import ADDED, INLINE, LATER, JsonObject, Serializable, from_form
from holdfast.model.whole_tables import Finding

ERROR, WARN = "error", "warn"
SEVERITIES = (ERROR, WARN)
"""What a rule that breaks does: stops a load, or is only told."""


@dataclass(frozen=True)
class Expectation:
    """A rule of the grammar that is expected to hold, perhaps up to an error.

    >>> Expectation("orders: key(id)", name="one row per order").label
    'one row per order'
    """

    rule: str  # as Holdfast writes it: two texts of one rule are one
    severity: str = ERROR
    max_error: float = 0.0  # the share of pairs, rows or values that may violate it
    name: str | None = None
    max_rows: int | None = field(default=None, metadata=LATER)
    """So many rows may have to go before it holds; None: the bound is the error."""

    def __post_init__(self) -> None:
        if self.severity not in SEVERITIES:
            raise InputError(
                f"{self.rule}: the severity is one of {', '.join(SEVERITIES)}, "
                f"not {self.severity!r}"
            )
        if isinstance(self.max_error, bool) or not 0 <= self.max_error < 1:
            raise InputError(
                f"{self.rule}: max_error is a share from 0 to below 1, not {self.max_error!r}"
            )
        if self.max_rows is not None:
            if isinstance(self.max_rows, bool) or self.max_rows < 0:
                raise InputError(
                    f"{self.rule}: max_rows is a number of rows from 0, not {self.max_rows!r}"
                )
            if self.max_error:
                raise InputError(
                    f"{self.rule}: is bounded by max_error and by max_rows; give one of them"
                )
        if self.name is not None and not self.name.strip():
            raise InputError(f"{self.rule}: a name has at least one letter; leave it out instead")

    @property
    def constraint(self) -> Rule:
        """What the rule says."""
        return parse(self.rule)

    @property
    def tables(self) -> tuple[str, ...]:
        """The tables that it is about."""
        return self.constraint.tables

    @property
    def label(self) -> str:
        """What it is called: its name, or the rule."""
        return self.name or self.rule


@dataclass(frozen=True)
class Suggestion(Serializable):
    """A rule that holds, or nearly does, and is not expected yet, with why it may be meant."""

    rule: str
    reason: str
    max_rows: int | None = None
    """So many rows break one that nearly holds, which is its bound then."""

    def __repr__(self) -> str:
        return f"<Suggestion {self.rule}>"


@dataclass(frozen=True)
class Tally:
    """How far rows are from a rule: the pairs, or the rows, that violate it, the share that its
    error is, and how many rows would have to go. Of an inclusion the error is the share of the
    distinct values that are missing.

    >>> Tally(3, 3, 10).error
    0.3
    """

    violations: int | None  # None: it is violated, and by more pairs than can be counted
    wrong: int | None
    total: int
    removal: int | None = field(default=None, metadata=LATER)
    """The least number of rows that would have to go; None: that is not kept of this rule."""

    found: Finding | None = field(default=None, metadata=ADDED)
    """What a rule about a whole table found; None: it is another one."""

    @property
    def error(self) -> float | None:
        """The share; None: not known, but above 0."""
        if self.wrong is None:
            return None
        return self.wrong / self.total if self.total else 0.0

    def within(self, expectation: Expectation) -> bool:
        """Whether that is no more than what is allowed: so many rows, or such a share, as the
        decimal says it."""
        if expectation.max_rows is not None:
            return self.removal is not None and self.removal <= expectation.max_rows
        if self.wrong is None:
            return False
        most = Fraction(str(expectation.max_error))
        return self.wrong == 0 or Fraction(self.wrong, self.total) <= most


NONE = Tally(0, 0, 0, 0)
"""Of a table without rows."""


@dataclass(frozen=True)
class Standing(Serializable):
    """An expectation in a version: whether it holds, and how far from it the rows are."""

    FORM = (
        *("rule", ("name", "expectation.name"), ("severity", "expectation.severity")),
        *(("max_error", "expectation.max_error"), ("max_rows", "expectation.max_rows")),
        (INLINE, "state"),
    )

    expectation: Expectation
    tally: Tally = NONE

    @property
    def rule(self) -> str:
        """The rule, as Holdfast writes it."""
        return self.expectation.rule

    @property
    def holds(self) -> bool:
        """Whether rows violate it no more than they may."""
        return self.tally.within(self.expectation)

    @property
    def violations(self) -> int | None:
        """The pairs of rows, or the rows, that violate it; None: more than can be counted."""
        return self.tally.violations

    @property
    def error(self) -> float | None:
        """The share of pairs, rows or values; None: not known, but above 0."""
        return self.tally.error

    @property
    def removal(self) -> int | None:
        """The least number of rows that would have to go; None: that is not kept of this rule."""
        return self.tally.removal

    @property
    def excess(self) -> int | None:
        """What its bound is about: the rows that would have to go, or what violates it. None: some,
        and nobody knows how many."""
        return self.violations if self.expectation.max_rows is None else self.removal

    @property
    def masked(self) -> Standing:
        """The same without a value."""
        found = self.tally.found and self.tally.found.masked
        return replace(self, tally=replace(self.tally, found=found))

    def __str__(self) -> str:
        return self.rule

    def __repr__(self) -> str:
        state = "holds" if self.holds else "does not hold"
        return f"<Standing {self.rule}, {self.expectation.severity}, {state}>"

    @property
    def state(self) -> JsonObject:
        """How far the rows are from it, in the JSON form."""
        tally = self.tally
        return {
            "holds": self.holds,
            "violations": tally.violations,
            "error": tally.error,
            "wrong": tally.wrong,
            "total": tally.total,
            "removal": tally.removal,
            **({} if tally.found is None else {"found": tally.found.to_dict()}),
        }


@dataclass(frozen=True)
class Group(Serializable):
    """Rows that violate a rule together, some of them, and how many there are: those that share a
    key, or agree on a left side, of which one is shown for each value on the right; a pair; or rows
    each of which does so by itself."""

    FORM = ("number", "rows", "new")

    rows: tuple[Row, ...]
    number: int
    new: tuple[bool, ...] = field(default=(), metadata=LATER)
    """Of each row, whether the batch brought it; these come first."""


@dataclass(frozen=True)
class ExpectationChange(Serializable):
    """What a batch did, or would do, to an expectation; ``before`` is None where it was declared
    only then."""

    FORM = ((INLINE, "after"), "breaks", ("before", "before.state"), "groups")

    before: Standing | None
    after: Standing
    groups: tuple[Group, ...] = field(default=(), compare=False)  # rows that violate it, some

    @property
    def rule(self) -> str:
        """The rule, as Holdfast writes it."""
        return self.after.rule

    @property
    def breaks(self) -> bool:
        """Whether it held and does not any more, or more violates it than before."""
        if self.after.holds or self.before is None:
            return False
        was, now = self.before.excess, self.after.excess
        return self.before.holds or (was is not None and (now is None or now > was))

    @property
    def stops(self) -> bool:
        """Whether that is an error."""
        return self.breaks and self.after.expectation.severity == ERROR

    @property
    def is_whole(self) -> bool:
        """Whether it is about a whole table, so that no row breaks it by itself."""
        return self.after.tally.found is not None

    def __repr__(self) -> str:
        what = "breaks" if self.breaks else "holds" if self.after.holds else "does not hold"
        return f"<ExpectationChange {self.rule}, {what}>"

    @staticmethod
    def from_dict(form: Any) -> ExpectationChange:
        """The value of a JSON form."""
        expectation = from_form(Expectation, form)
        before = form["before"]
        return ExpectationChange(
            None if before is None else Standing(expectation, from_form(Tally, before)),
            Standing(expectation, from_form(Tally, form)),
            from_form(tuple[Group, ...], form["groups"]),
        )


@dataclass(frozen=True)
class Quarantine(Serializable):
    """Rows of a batch that were not applied, because they break rules: how many of each kind of
    change and by which rule, and the files that have them."""

    rows: int
    kinds: dict[str, int]
    rules: dict[str, int]
    files: tuple[str, ...]


def named(standings: Iterable[Standing], asked: str, rule: str | None) -> Standing:
    """The expectation that has this name, or this rule."""
    kept = list(standings)
    for each in kept:
        if asked == each.expectation.name or rule == each.rule:
            return each
    has = ", ".join(repr(each.expectation.label) for each in kept) or "none"
    raise InputError(f"the profile expects no rule {asked!r}; expected are: {has}")
