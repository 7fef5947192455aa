"""What can be shown of a kind of constraint: lists, each a PART of ``holdfast show DIR PART``.

A list of a table is a :class:`TablePart`, one of the whole profile a :class:`ProfilePart`. They say
what is in the list; how JSON and the terminal show it is the same for all that say no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from holdfast.model.limits import Limits
from holdfast.screen.text import count, plain

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.screen.page import Page

Form = dict[str, Any]


class Part(ABC):
    """A list that can be shown."""

    name: ClassVar[str]
    """As ``holdfast show DIR PART`` names it: ``non-keys``."""

    field: ClassVar[str]
    """As JSON names it: ``non_keys``."""

    nouns: ClassVar[tuple[str, str]]
    """As people name one of the list, and several."""

    brief: ClassVar[bool] = True
    """Whether ``holdfast profile`` shows it, too."""

    def heading(self, number: int) -> str:
        """How many there are."""
        return count(number, *self.nouns) if number else f"no {self.nouns[0]}"


class TablePart(Part):
    """A list of a table."""

    limit: ClassVar[str | None] = None
    """Which of a table's limits (by its JSON name) says how long the sets of the list can be."""

    @abstractmethod
    def listed(self, table: TableSnapshot) -> Sequence[Any]:
        """The list, of a table where its kind was looked for."""

    def form(self, table: TableSnapshot, options: Form) -> Form:  # noqa: ARG002
        """Its fields in the JSON form of a table."""
        return {self.field: [each.to_dict() for each in self.listed(table)]}

    def show(self, page: Page, table: TableSnapshot, options: Form, verbose: bool) -> None:  # noqa: ARG002
        """Its lines under the heading of a table."""
        constraints = self.listed(table)
        page.line(self.heading(len(constraints)) + self.limited(table, options), indent=2)
        for each in constraints[: page.limit]:
            page.line(plain(each.body), "green", 4)
        page.more(len(constraints), 4)

    def limited(self, table: TableSnapshot, options: Form) -> str:
        """Why the list may lack something."""
        most = self.longest(table, options)
        if most is None:
            return ""
        why = "there may be more"
        if self.limit in complete_up_to(table, options):
            why = f"the time budget of {options['time_budget']:g} s ended there"
        return f" (searched up to {count(most, 'column')}: {why})"

    def longest(self, table: TableSnapshot, options: Form) -> int | None:
        """The most columns that the list was searched for, where there can be more."""
        return None if self.limit is None else _longest(table, options)[self.limit]


class ProfilePart(Part):
    """A list of the whole profile."""

    @abstractmethod
    def listed(self, snapshot: Snapshot) -> Sequence[Any]:
        """The list, of a profile that looks for its kind: what is about the tables shown."""

    def form(self, snapshot: Snapshot) -> Form:
        """Its fields in the JSON form of a version."""
        return {self.field: [each.to_dict() for each in self.listed(snapshot)]}

    @abstractmethod
    def show(self, page: Page, snapshot: Snapshot, asked: bool) -> None:
        """Its lines below the tables. That there are none is told only if it is ``asked`` for, and
        nothing else is."""


def explain_evidence(page: Page, table: TableSnapshot, space: str, what: str) -> None:
    """By which strategy the evidence of a space is known, and why."""
    known = table.evidence.get(space)
    if known is not None and known.choice.strategy is not None:
        choice = known.choice
        page.line(f"{what}: {choice.strategy}, {choice.reason}", indent=2)
        seconds, limit = f"{choice.seconds:,.1f} s", f"{choice.limit:,.0f} s"
        page.line(f"counting all pairs: about {seconds}; the limit is {limit}", "dim", 4)


def complete_up_to(table: TableSnapshot, options: Form) -> dict[str, int]:
    """How many columns there was time for, by limit, where that is less than what was asked for."""
    asked = options.get("max_columns")
    most = _longest(table, options)
    return {limit: length for limit, length in most.items() if length not in (None, asked)}


def _longest(table: TableSnapshot, options: Mapping[str, Any]) -> dict[str, Any]:
    """The most columns that were searched for, by limit; None: all that there can be."""
    limits = table.limits.within(Limits.both(options.get("max_columns"))).to_dict()
    return {
        limit: None if most is None or most >= len(table.columns) else most
        for limit, most in limits.items()
    }
