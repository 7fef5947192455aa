"""What can be shown of a kind of constraint: lists, each a PART of ``holdfast show DIR PART``.

A list of a table is a :class:`TablePart`, one of the whole profile a :class:`ProfilePart`. They say
what is in the list; how JSON and the terminal show it is the same for all that say no more.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, overload

from holdfast.model.options import Settings
from holdfast.model.records import JsonObject
from holdfast.screen.text import count, plain, rounded

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot, TableSnapshot
    from holdfast.screen.page import Page


class Forms(Sequence[JsonObject]):
    """The JSON forms of constraints, each built when it is asked for: there may be a million."""

    def __init__(self, constraints: Sequence[Any]) -> None:
        self._constraints = constraints

    def __len__(self) -> int:
        return len(self._constraints)

    @overload
    def __getitem__(self, at: int) -> JsonObject: ...

    @overload
    def __getitem__(self, at: slice) -> Forms: ...

    def __getitem__(self, at: int | slice) -> JsonObject | Forms:
        if isinstance(at, slice):
            return Forms(self._constraints[at])
        form: JsonObject = self._constraints[at].to_dict()
        return form

    def __iter__(self) -> Iterator[JsonObject]:
        return (each.to_dict() for each in self._constraints)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, list | Forms) and [*self] == [*other]

    __hash__ = None  # type: ignore[assignment]  # like that of a list


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

    def described(self, constraint: Any) -> JsonObject:
        """One of the list as the report page shows it: its JSON form, and how it is written."""
        return {**constraint.to_dict(), "text": getattr(constraint, "body", str(constraint))}

    def heading(self, number: int) -> str:
        """How many there are."""
        return count(number, *self.nouns) if number else f"no {self.nouns[0]}"


class TablePart(Part):
    """A list of a table."""

    limit: ClassVar[str | None] = None
    """The JSON name of what bounds the length of the sets of the list; None: nothing does."""

    unit: ClassVar[str] = "column"
    """What that length counts."""

    option: ClassVar[str] = "max_columns"
    """The option that bounds it."""

    @abstractmethod
    def listed(self, table: TableSnapshot) -> Sequence[Any]:
        """The list, of a table where its kind was looked for."""

    def whole(self, table: TableSnapshot) -> Sequence[Any]:
        """The list with what holds only nearly, where that is apart."""
        return self.listed(table)

    def form(self, table: TableSnapshot, options: Settings) -> JsonObject:  # noqa: ARG002
        """Its fields in the JSON form of a table."""
        return {self.field: Forms(self.listed(table))}

    def show(self, page: Page, table: TableSnapshot, options: Settings, verbose: bool) -> None:  # noqa: ARG002
        """Its lines under the heading of a table."""
        constraints = self.listed(table)
        page.line(self.heading(len(constraints)) + self.limited(table, options), indent=2)
        for each in constraints[: page.limit]:
            page.line(plain(each.body), "green", 4)
        page.more(len(constraints), 4)

    def limited(self, table: TableSnapshot, options: Settings) -> str:
        """Why the list may lack something."""
        most = self.longest(table, options)
        if most is None:
            return ""
        why = "there may be more"
        if most != options.get(self.option):
            why = f"the time budget of {options['time_budget']:g} s ended there"
        return f" (searched up to {count(most, self.unit)}: {why})"

    def longest(self, table: TableSnapshot, options: Settings) -> int | None:
        """The longest sets that were searched for, where there can be longer ones."""
        if self.limit is None:
            return None
        ends = [self.reached(table), options.get(self.option)]
        most = min((end for end in ends if end is not None), default=self.most(table))
        return None if most >= self.most(table) else most

    def reached(self, table: TableSnapshot) -> int | None:
        """How long the sets are up to which all are listed; None: however long."""
        limits = table.limits.by_kind()
        return None if self.limit is None else limits[self.limit]

    def most(self, table: TableSnapshot) -> int:
        """How long a set can be at all."""
        return len(table.columns)


class ProfilePart(Part):
    """A list of the whole profile."""

    @abstractmethod
    def listed(self, snapshot: Snapshot) -> Sequence[Any]:
        """The list, of a profile that looks for its kind: what is about the tables shown."""

    def form(self, snapshot: Snapshot) -> JsonObject:
        """Its fields in the JSON form of a version."""
        return {self.field: Forms(self.listed(snapshot))}

    @abstractmethod
    def show(self, page: Page, snapshot: Snapshot, asked: bool) -> None:
        """Its lines below the tables. That there are none is said only if it is ``asked`` for, and
        nothing else is."""


def explain_evidence(page: Page, table: TableSnapshot, space: str, what: str) -> None:
    """By which strategy the evidence of a space is known, and why."""
    known = table.evidence.get(space)
    if known is not None and known.choice.strategy is not None:
        choice = known.choice
        page.line(f"{what}: {choice.strategy}, {choice.reason}", indent=2)
        seconds, limit = f"{choice.seconds:,.1f} s", f"{choice.limit:,.0f} s"
        page.line(f"counting all pairs: about {seconds}; the limit is {limit}", "dim", 4)
        if choice.device is not None and choice.pairs_per_second is not None:
            device = "the processor" if choice.device == "cpu" else plain(choice.device)
            rate = f"{rounded(choice.pairs_per_second)} pairs a second in each task"
            page.line(f"counted last on {device}: {rate}", "dim", 4)


def complete_up_to(
    parts: Iterable[TablePart], table: TableSnapshot, options: Settings
) -> dict[str, int]:
    """How long the sets are that there was time for, by limit, where that is less than what was
    asked for."""
    ends = {part.limit: part.longest(table, options) for part in parts}
    asked = {part.limit: options.get(part.option) for part in parts}
    return {
        limit: most
        for limit, most in ends.items()
        if limit is not None and most is not None and most != asked[limit]
    }
