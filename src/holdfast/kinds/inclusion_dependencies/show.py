"""Inclusion dependencies and foreign keys in JSON and on the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from holdfast.kinds.parts import ProfilePart
from holdfast.model.inclusion_dependencies import ForeignKey, InclusionDependency, Reference
from holdfast.model.records import JsonObject
from holdfast.screen.text import count, plain, share

if TYPE_CHECKING:
    from holdfast.report.snapshot import Snapshot
    from holdfast.screen.page import Page

AnyReference = TypeVar("AnyReference", bound=Reference)

_NULLS = {
    "ignored": "A null need not occur on the right side.",
    "values": "A null is a value: it has to occur on the right side, too.",
}


class InclusionList(ProfilePart):
    """Inclusion dependencies."""

    name = "inds"
    field = "inclusion_dependencies"
    nouns = ("inclusion dependency", "inclusion dependencies")

    def listed(self, snapshot: Snapshot) -> list[InclusionDependency]:
        """The highest coverage first."""
        inclusions = snapshot.inclusions
        return [] if inclusions is None else _about(snapshot, inclusions.dependencies())

    def form(self, snapshot: Snapshot) -> JsonObject:
        """With what nulls mean."""
        inclusions = snapshot.inclusions
        arity = None if inclusions is None else inclusions.arity
        depth = {} if arity is None else {"inclusions_complete_up_to": arity}
        nulls = snapshot.options["inclusion_nulls"]
        return {"inclusion_nulls": nulls, **depth, **super().form(snapshot)}

    def show(self, page: Page, snapshot: Snapshot, asked: bool) -> None:
        """With the share of the values, where it is not all of them."""
        dependencies = self.listed(snapshot)
        if not dependencies and not asked:
            return
        page.line()
        page.line(self.heading(len(dependencies)), "bold")
        page.line(_NULLS[snapshot.options["inclusion_nulls"]], "dim", 2)
        if snapshot.inclusions is not None and (arity := snapshot.inclusions.arity):
            columns = count(arity, "column")
            page.line(f"Complete up to {columns}: the time budget ended there.", "yellow", 2)
        for each in dependencies[: page.limit]:
            page.line(plain(str(each)) + covered(each), "green" if each.coverage == 1 else "", 2)
        page.more(len(dependencies))


class ForeignKeyList(ProfilePart):
    """Foreign keys."""

    name = "foreign-keys"
    field = "foreign_keys"
    nouns = ("foreign key", "foreign keys")

    def listed(self, snapshot: Snapshot) -> list[ForeignKey]:
        """The likeliest first."""
        inclusions = snapshot.inclusions
        return [] if inclusions is None else _about(snapshot, inclusions.foreign_keys())

    def show(self, page: Page, snapshot: Snapshot, asked: bool) -> None:
        """With their scores."""
        foreign_keys = self.listed(snapshot)
        if not foreign_keys and not asked:
            return
        page.line()
        page.line(self.heading(len(foreign_keys)), "bold")
        if foreign_keys:
            page.line("The score says how likely each is meant as one: 0 to 1.", "dim", 2)
        for each in foreign_keys[: page.limit]:
            line = f"{each.score:.2f}  {plain(str(each))}{covered(each)}"
            page.line(line, "green" if each.coverage == 1 else "", 2, hang=6)
        page.more(len(foreign_keys))


def covered(each: InclusionDependency | ForeignKey, still: str = "") -> str:
    """How many of the dependent's values are contained, where it is not all of them."""
    if each.coverage is None or each.coverage == 1:
        return ""
    return f"  ({still}{share(each.coverage)} of the values)"


def _about(snapshot: Snapshot, references: Iterable[AnyReference]) -> list[AnyReference]:
    """Those that have a shown table on either side."""
    shown = set(snapshot.tables)
    return [reference for reference in references if shown & {*reference.tables}]
